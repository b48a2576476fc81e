# Evidence that several stations give, and parts of their sentences.

evidence-logged = The server logged this { $about ->
    [1] about { $count } times (only the end of its log was read)
   *[other] { $count ->
        [one] once
       *[other] { $count } times
    }
} during the measurement, first: { $line }

evidence-not-in-force-changed = { $file } was changed after the running workers had started.

# When a client sends a SYN again that got no answer: "the client retries ...".
syn-again = after { $times } s{ $more ->
    [yes] {" "}and so on
   *[no] {""}
}
syn-again-unknown = after one or more seconds
