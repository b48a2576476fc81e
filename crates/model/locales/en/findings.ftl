# Evidence that several stations give.

evidence-logged = The server logged this { $about ->
    [1] about { $count } times (of its log, the end was read)
   *[other] { $count ->
        [one] once
       *[other] { $count } times
    }
} while it was watched, first: { $line }

evidence-not-in-force-changed = { $file } was changed after the workers that run were started.
