# What advice read-its-log says.

remedy-read-its-log-text = Read why { $tier } answers so in its error log{ $log ->
    [none] {""}
   *[other] {" "}({ $log })
}, and mend that. If the log says nothing, a rule of its configuration may answer so (such as "return 503"): that is no error to the server.
remedy-read-its-log-risk = Reading changes nothing.

remedy-read-its-log-text-header = Make the buffer for the header larger, in the location that passes the request on: "proxy_buffer_size 16k; proxy_buffers 8 16k;" (fastcgi_, uwsgi_, scgi_ instead of proxy_ where these pass it on; grpc_buffer_size), then reload { $tier }. Or send a smaller header.
remedy-read-its-log-text-out = Mend what the checks of { $tier } find, or the checks themselves if these servers are well: ask one as the check does. Those in maintenance come back with "set server BACKEND/NAME state ready" on its command socket, or without "disabled" in its configuration.
remedy-read-its-log-text-none-live = Where only one server is left, let { $tier } ask it whatever failed before: "server ADDRESS max_fails=0;" in its upstream, then reload. With several, bring back those that are down, or raise max_fails, and mend what its log ({ $log }) says of the failures before.
