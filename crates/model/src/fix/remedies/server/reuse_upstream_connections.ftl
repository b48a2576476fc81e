# What remedy reuse-upstream-connections does, and its risk.

remedy-reuse-upstream-connections-text = Keep { $connections } { $connections ->
    [one] connection
   *[other] connections
} to { $remote } open in { $workers ->
    [one] nginx's worker
   *[other] each of the { $workers } nginx workers
}, for { $requests } requests each: { $sum }.
remedy-reuse-upstream-connections-text-grown = Give the pool { $children } workers ({ $grown }), and keep { $connections } connections to { $remote } open in { $workers ->
    [one] nginx's worker
   *[other] each of the { $workers } nginx workers
}, for { $requests } requests each: { $sum }.
remedy-reuse-upstream-connections-risk = A kept connection occupies one of the { $children } workers behind it even while it is idle. At most { $kept } workers are occupied this way. The others serve all other connections, which wait longer the longer a connection is kept.
remedy-reuse-upstream-connections-starved = they waited behind kept connections
remedy-reuse-upstream-connections-advice = Keep connections to { $remote }: an upstream with keepalive, and fastcgi_keep_conn on. A kept connection occupies a worker of the pool, so keep fewer connections over all nginx workers than the pool has workers, and close each after some requests (keepalive_requests).
remedy-reuse-upstream-connections-advice-proxy = Keep connections to { $remote }: an upstream with keepalive, proxy_http_version 1.1, and proxy_set_header Connection "" (both are defaults since nginx 1.29.7, but not for a literal address).
remedy-reuse-upstream-connections-advice-other = Let { $tier } keep its connections to { $remote }, as many as it uses at once (Go: MaxIdleConnsPerHost, default 2; Node.js: an agent with keepAlive; HAProxy: http-reuse; a database: a pool or persistent connections).
remedy-reuse-upstream-connections-advice-risk = If a server gives each connection its own worker (prefork, php-fpm), connections beyond the number of its workers have to wait. The upstream must keep idle connections for longer than nginx does, or some requests are sent on a connection that is just being closed.
