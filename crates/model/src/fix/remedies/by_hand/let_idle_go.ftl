# What remedy let-idle-connections-go does, and its risk.

remedy-let-idle-connections-go-text = { $setting ->
    [unknown] Let { $tier } keep idle connections for a shorter time (its keep-alive timeout), or turn keep-alive off; or keep them without a worker: an event loop of its own, if it has one, or nginx or HAProxy in front, which closes its own connections to { $tier }.
    [KeepAliveTimeout] Let { $tier } keep idle connections without a worker: the event MPM instead of prefork or worker. Or for a shorter time: a lower KeepAliveTimeout (default 5 s), or KeepAlive Off.
   *[other] Let { $tier } keep idle connections for a shorter time: a lower { $setting }. Or keep them without a worker: nginx or HAProxy in front, which closes its own connections to { $tier }.
} One for each connection would be { $all } { $unit ->
    [threads] threads
   *[workers] workers
} ({ $taken } that are held + { $waiting } that wait).
remedy-let-idle-connections-go-text-behind = Let { $caller } keep fewer idle connections to { $tier } than it has workers ({ $workers }), all of its processes together, or close them after each request: keepalive in nginx's upstream block counts for each worker process of nginx, and without fastcgi_keep_conn nginx closes. One for each connection would be { $all } { $unit ->
    [threads] threads
   *[workers] workers
} ({ $taken } that are held + { $waiting } that wait).
remedy-let-idle-connections-go-text-loops = Let { $tier } keep idle connections for a shorter time{ $setting ->
    [unknown] { " " }(its keep-alive timeout)
   *[other] : a lower { $setting }
}. Or let it accept more connections, if it has memory and descriptors for them: those that are here now are { $all } ({ $taken } that are held + { $waiting } that wait).
remedy-let-idle-connections-go-risk = Clients that come back later open a connection again: a round trip more, over TLS two, and the CPU time of a handshake.
