# What remedy reuse-upstream-connections does, and its risk.

remedy-reuse-upstream-connections-text = Keep { $connections } connections to { $remote } in each of nginx's { $workers } workers, each for { $requests } requests.
remedy-reuse-upstream-connections-text-grown = Give the pool { $children } workers and keep { $connections } connections to { $remote } in each of nginx's { $workers } workers, each for { $requests } requests.
remedy-reuse-upstream-connections-risk = A kept connection holds one of the { $children } workers behind it even while nothing is asked of it: { $kept } are held at the most, and the rest serves all other connections, which wait longer the longer one is kept.
remedy-reuse-upstream-connections-advice = Keep connections to { $remote }: an upstream with keepalive, and fastcgi_keep_conn on. Over all of nginx's workers keep fewer than the pool has workers, and close each after some requests (keepalive_requests): a kept connection holds a worker.
remedy-reuse-upstream-connections-advice-proxy = Keep connections to { $remote }: an upstream with keepalive, proxy_http_version 1.1, and proxy_set_header Connection "" (nginx does so by itself from 1.29.7 on, but not for a literal address).
remedy-reuse-upstream-connections-advice-other = Let { $tier } keep its connections to { $remote }: as many as it uses at once (Go: MaxIdleConnsPerHost, 2 by itself; Node.js: an agent with keepAlive; HAProxy: http-reuse; a database: a pool or persistent connections).
remedy-reuse-upstream-connections-advice-risk = A server that gives each connection a worker of its own (prefork, php-fpm) starves the connections beyond its workers. The upstream must keep idle connections for longer than nginx does, or some requests meet a connection that is just being closed.
