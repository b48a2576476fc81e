# What advice read-its-log says.

remedy-read-its-log-text = Read why { $tier } answers so in its error log{ $log ->
    [none] {""}
   *[other] {" "}({ $log })
}, and mend that. Only the server itself knows it.
remedy-read-its-log-risk = Reading changes nothing.
