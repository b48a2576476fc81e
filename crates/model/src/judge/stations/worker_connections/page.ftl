# `chokepoint explain worker-connections`: the pages of the station and of its findings, with the same five sections.

page-worker-connections-title = Worker connections
page-worker-connections-limits =
    The connections that one worker of nginx may hold at once (worker_connections, 512 by default, 768 on Debian), those to clients and those to upstreams together. All workers together hold worker_processes times as many, but each its own.
page-worker-connections-shows =
    The sockets that each worker holds against its limit, what the error log says ("N worker_connections are not enough"), and accepts less handled of the status page (stub_status) where there is one.
page-worker-connections-sure =
    Sockets are counted about once a second, the ends of the channels between workers taken off. The limit in force is the number in the log's line where there is one, else the one in the file. A kept connection counts as much as a busy one.
page-worker-connections-remedies =
    See worker-connections-exhausted.
page-worker-connections-sources =
    nginx: ngx_event_accept.c, ngx_connection.c (`ngx_get_connection`, `ngx_drain_connections`), ngx_core_module; /proc/PID/fd.

page-worker-connections-exhausted-title = nginx workers have no connection left
page-worker-connections-exhausted-limits =
    New connections, and requests that need one to an upstream. They are closed unanswered or answered with 500.
page-worker-connections-exhausted-shows =
    Lines "worker_connections are not enough" (level alert) in the error log, connections that are closed or reset before the answer. Where connections are kept, the worker first closes kept and fresh ones to make room; that is only logged at level warn, once a second. The access log shows nothing of what was refused.
page-worker-connections-exhausted-sure =
    High where the error log tells what was turned away and that explains what requests of this load lost, or where it tells that room was made and a worker was seen with less than a sixteenth of its connections left while connections were closed unanswered; medium where only one of these two shows. Without load of our own, connections that were closed with a request unread in them (TcpExt.TCPAbortOnClose) count as harm. Silent where a small limit is not reached, and where lines in the log are not this load's.
page-worker-connections-exhausted-remedies =
    Raise worker_connections to what comes at once, twice that for requests that are passed on, and worker_rlimit_nofile with it where the limit of open files would be next. Costs about 450 bytes for each connection, used or not. Keeping idle client connections for a shorter time (keepalive_timeout) needs fewer. In front of upstreams that are too slow, more connections only wait there.
page-worker-connections-exhausted-sources =
    As for station worker-connections.
