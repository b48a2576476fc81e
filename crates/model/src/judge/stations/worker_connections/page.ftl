# `chokepoint explain worker-connections`: the pages of the station and of its findings, with the same five sections.

page-worker-connections-title = Worker connections
page-worker-connections-limits =
    The connections that one nginx worker may hold at once (worker_connections: 512 by default, 768 on Debian), to clients and to upstreams together. All workers together hold worker_processes times as many, but each worker has its own limit.
page-worker-connections-shows =
    The sockets that each worker holds against its limit, the error log ("N worker_connections are not enough"), and accepts minus handled on the status page (stub_status) if there is one.
page-worker-connections-sure =
    Sockets are counted about once a second, without the channels between workers. The limit in force is the number in the log line if there is one, else the one in the file. A kept connection counts as much as a busy one.
page-worker-connections-remedies =
    See worker-connections-exhausted.
page-worker-connections-sources =
    nginx: ngx_event_accept.c, ngx_connection.c (`ngx_get_connection`, `ngx_drain_connections`), ngx_core_module; /proc/PID/fd.

page-worker-connections-exhausted-title = nginx workers have no connection left
page-worker-connections-exhausted-limits =
    New connections, and requests that need one to an upstream. They are closed without an answer or answered with 500.
page-worker-connections-exhausted-shows =
    "worker_connections are not enough" (level alert) in the error log, and connections that are closed or reset before the answer. If connections are kept, the worker first closes kept and new ones to free places; nginx logs that only at level warn, once a second. The access log shows nothing of what was refused.
page-worker-connections-exhausted-sure =
    High if the error log shows refused connections that explain the failures of this load, or if it shows that places were freed and a worker had less than a sixteenth of its connections left while connections were closed without an answer. Medium if only one of these two shows. Without a load, connections that were closed with an unread request in them (TcpExt.TCPAbortOnClose) count as harm. Silent if a small limit is not reached, and if lines in the log do not belong to this load.
page-worker-connections-exhausted-remedies =
    Raise worker_connections to the number of connections at once, twice that for proxied requests, and worker_rlimit_nofile with it if the limit of open files would be next. It costs about 450 bytes for each connection, used or not. A shorter keepalive_timeout needs fewer. In front of slow upstreams, more connections only wait there.
page-worker-connections-exhausted-sources =
    As for station worker-connections.
