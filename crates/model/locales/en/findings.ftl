# Evidence that several stations give.

evidence-logged = The server logged this { $about ->
    [1] about { $count } times (only the end of its log was read)
   *[other] { $count ->
        [one] once
       *[other] { $count } times
    }
} during the measurement, first: { $line }

evidence-not-in-force-changed = { $file } was changed after the running workers had started.
