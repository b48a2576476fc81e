# What advice read-its-log says.

remedy-read-its-log-text = Read why { $tier } answers so in its error log{ $log ->
    [none] {""}
   *[other] {" "}({ $log })
}, and mend that. Only the server itself knows it.
remedy-read-its-log-risk = Reading changes nothing.

remedy-read-its-log-text-header = Make the buffer for the header larger, in the location that passes the request on: "proxy_buffer_size 16k; proxy_buffers 8 16k;" (fastcgi_, uwsgi_, scgi_ instead of proxy_ where these pass it on; grpc_buffer_size), then reload { $tier }. Or send a smaller header.
remedy-read-its-log-text-none-live = Where only one server is left, let { $tier } ask it whatever failed before: "server ADDRESS max_fails=0;" in its upstream, then reload. With several, bring back those that are down, or raise max_fails, and mend what its log ({ $log }) says of the failures before.
