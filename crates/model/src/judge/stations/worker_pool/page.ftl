# `chokepoint explain worker-pool`: the pages of the station and of its findings, with the same five sections.

page-worker-pool-title = Worker pool
page-worker-pool-limits =
    Processes or threads that serve one connection at a time: php-fpm children, prefork and sync workers, thread pools. Workers divided by the time that one is held, without what it waits for a core or for a tier behind, is the most they can give.
page-worker-pool-shows =
    Connections that the processes hold against the number of processes, and connections that wait in the accept queue in front of them.
page-worker-pool-sure =
    A server with more connections than processes is an event loop or has threads. Threads are counted where they are all taken: the connections in service stay the same, at most as many as there are threads, while others wait to be accepted. An event loop that accepts all is not counted; one that has time to spare, or leaves clients without any answer, and yet always holds the same number while others wait at its door has a limit of its own (maxconn, max connections). The number of workers is what was running; a pool that still grows is not called exhausted.
page-worker-pool-remedies =
    See worker-pool-exhausted.
page-worker-pool-sources =
    sock_diag(7) for connections with an inode at the pool's listener; /proc/PID/stat for the processes; the pool's own access log where it has durations; Little 1961 for the ceiling.

page-worker-pool-exhausted-title = All workers are taken and wait
page-worker-pool-exhausted-limits =
    Every request of this tier: it waits for a worker before it is served.
page-worker-pool-exhausted-shows =
    All workers taken in nearly every sample, connections standing in the accept queue, and workers that neither run nor are ready to for most of their time (scheduler statistics; cores with time to spare where those are missing), or that compute while other cores on which they may run are idle. php-fpm logs "server reached pm.max_children".
page-worker-pool-exhausted-sure =
    High: all three are read directly. Low where the kernel keeps no scheduler statistics and idle cores stand in for them: the workers may be kept from those. Silent where the workers compute on cores that are all busy, or wait for a core (a small pool before a page that computes is right: more workers would only share the same cores; the same holds where a neighbour takes the cores), where nothing waits, and where the pool still grows.
page-worker-pool-exhausted-remedies =
    More workers: the number that is needed is the rate times the time one is held (Little's law), bounded by memory divided by what one worker takes. If they wait for a database or another server that is itself at its limit, more workers make it worse: look there first.
page-worker-pool-exhausted-sources =
    As for station worker-pool, with the status page of php-fpm where there is one. Set pm.status_listen: without it a worker of the pool answers for the page, which is not to be had when all are taken.

page-workers-blocked-on-upstream-title = Workers wait for another server
page-workers-blocked-on-upstream-limits =
    Every request of this tier: its workers are all taken, and what takes them is the wait for a server behind them, such as a database or an interface of another host.
page-workers-blocked-on-upstream-shows =
    A pool that is full as in worker-pool-exhausted, and of the looks at its busy workers, once a second each, at least half found one in a system call (read, recv, poll, select, connect and the like) that waits for a connection which it made itself. Where the other server is on this host, connections that wait for it to accept them show that it takes no more.
page-workers-blocked-on-upstream-sure =
    High where connections wait at the other server's door, else medium: from here, a server at its limit and one that always takes its time look alike. Silent where the workers wait for something else (a timer, a disk, a lock), where the other server is a pool with workers to spare (then more workers here help), and where the pool calls itself. A symptom where the other server is on this host and has a finding of its own, or computes on cores that are all busy.
page-workers-blocked-on-upstream-remedies =
    At the other server: its workers, locks, slow queries, its connection limit. Here: fewer calls for each request, calls side by side, a cache, a shorter timeout, so that a slow server does not take all workers. More workers help only where the other server has room: time one request to it alone, and again under load; if both take the same time, it has.
page-workers-blocked-on-upstream-sources =
    proc_pid_syscall(5) for the system call and its descriptor, /proc/PID/mem for the descriptors of poll(2) and select(2), /proc/PID/fd and sock_diag(7) for the address at the other end.
