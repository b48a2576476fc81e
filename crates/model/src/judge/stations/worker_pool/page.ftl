# `chokepoint explain worker-pool`: the pages of the station and of its findings, with the same five sections.

page-worker-pool-title = Worker pool
page-worker-pool-limits =
    Processes or threads that serve one connection at a time: php-fpm children, prefork and sync workers, thread pools. The most that they can serve is the number of workers divided by the time that a request occupies one, without its waits for a core or for a tier behind.
page-worker-pool-shows =
    Connections that the processes hold against the number of processes, and connections that wait in the accept queue in front of them.
page-worker-pool-sure =
    A server with more connections than processes is an event loop or has threads. Serving threads are counted when all are busy: the number of connections in service stays the same, and is at most the number of threads, while others wait to be accepted, or wait unread on accepted connections (Tomcat). An event loop that accepts everything has no such limit. One that has time left, or leaves clients without an answer, and still always holds the same number while others wait in its accept queue has a limit of its own (maxconn, max connections). The number of workers is the number of running ones; a pool that still grows is not called exhausted.
page-worker-pool-remedies =
    See worker-pool-exhausted.
page-worker-pool-sources =
    sock_diag(7) for connections with an inode at the pool's listener; /proc/PID/stat for the processes; the pool's own access log if it has durations; Little 1961 for the ceiling.

page-worker-pool-exhausted-title = All workers are busy
page-worker-pool-exhausted-limits =
    Every request of this tier: it waits for a worker before it is served.
page-worker-pool-exhausted-shows =
    All workers are taken in nearly every sample, connections wait in the accept queue or requests wait unread on accepted connections, and for most of their time the workers neither run nor are ready to run (scheduler statistics; idle cores if those are missing), or they compute while other cores on which they may run are idle. php-fpm logs "server reached pm.max_children". What most workers were found waiting for is named: the disk, a name server, a process that they start, a timer, a pipe, a lock.
page-worker-pool-exhausted-sure =
    High: all three are read directly. Low if the kernel keeps no scheduler statistics and only idle cores show it: the workers may not be allowed to use those. Silent if the workers compute on cores that are all busy, or wait for a core (a small pool in front of a CPU-bound page is right: more workers would share the same cores; the same holds if another program uses the cores), if nothing waits, and while the pool grows.
page-worker-pool-exhausted-remedies =
    More workers: the rate times the time that a request occupies one (Little's law), limited by memory divided by the memory of a worker. If they wait for a database or another server that is at its limit, or for each other, more workers make it worse: look there first. No gain is predicted where it is not known that what they wait for has room for more.
page-worker-pool-exhausted-sources =
    As for station worker-pool, with php-fpm's status page if there is one. Set pm.status_listen: without it a worker of the pool has to answer the status page, and no worker is free when the pool is exhausted.

page-workers-blocked-on-upstream-title = Workers wait for another server
page-workers-blocked-on-upstream-limits =
    Every request of this tier: all of its workers are taken, because they wait for a server behind them, such as a database or an interface of another host.
page-workers-blocked-on-upstream-shows =
    A pool that is full as in worker-pool-exhausted, and in at least half of the samples of its busy workers (one per second each), a worker in a system call (read, recv, poll, select, connect and the like) that waits for a connection which it opened itself. Where no look at a worker tells it (threads, connections that are gone too soon): at least half of the requests that hold a worker stand at the servers that it calls over TCP. If the other server is on this host, connections that wait in its accept queue show that it accepts no more.
page-workers-blocked-on-upstream-sure =
    High if connections wait in the other server's accept queue, else medium: from here, a server at its limit and one that is always slow look alike. Silent if the workers wait for something else (a timer, a disk, a lock), if the other server is a pool with free workers (then more workers here help), and if the pool calls itself. It is a symptom if the other server is on this host and has a finding of its own, or computes on cores that are all busy.
page-workers-blocked-on-upstream-remedies =
    No gain is predicted for more workers. At the other server: its workers, locks, slow queries, its connection limit. Here: fewer calls per request, parallel calls, a cache, a shorter timeout, so that a slow server does not take all workers. More workers help only if the other server is not at its limit: time a single request to it, alone and under load. If both take the same time, it is not.
page-workers-blocked-on-upstream-sources =
    proc_pid_syscall(5) for the system call and its descriptor, /proc/PID/mem for the descriptors of poll(2) and select(2), /proc/PID/fd and sock_diag(7) for the address at the other end.

page-workers-wait-for-each-other-title = Workers wait for each other
page-workers-wait-for-each-other-limits =
    Every request of this tier: all of its workers are taken, and only a few of them go on at a time, whatever their number.
page-workers-wait-for-each-other-shows =
    A pool that is full as in worker-pool-exhausted. With load: the rate times the time of a single request is the number that goes on at a time (Little's law); at least half of the workers hold a request beyond that number which waits inside the tier: not on a core or ready for one, and not at a server behind. For threads, watched traffic shows it as well: in the looks at the threads of each process (16 of them, once a second), at least half of those that are taken wait in futex(2) at one address (one lock in memory), or without a timeout (a semaphore, a queue, a connection that is shared), while as many requests wait inside the tier.
page-workers-wait-for-each-other-sure =
    High: the time of single requests was measured just before the load, or threads were seen to wait at one address. Medium if they wait at several: the thread that they wait for may be one that waits for a timer. Threads that are not taken may wait for work in the same way, so all of those count as waiting for work first. Silent without load for processes, and for threads whose system calls could not be read; if threads sleep or wait until a time of their own; if requests hold workers about as long as one alone (then more workers help), if cores or a quota make them slower, if they stand at a server behind (workers-blocked-on-upstream), and for a single worker.
page-workers-wait-for-each-other-remedies =
    Find what they wait for: the stacks at which the workers stop. Then hold it for a shorter time, split it, or do without: a session file of PHP, a synchronized section, one connection that all share, SQLite. More workers wait as well.
page-workers-wait-for-each-other-sources =
    /proc/PID/task/TID/syscall for what threads wait for (numbers alone are kept, no address). The load generator for the rate and for single requests; sock_diag(7) for the requests in each tier; /proc/PID/task/TID/schedstat; Little 1961.

page-waits-for-clients-title = Workers wait for clients that have their response
page-waits-for-clients-limits =
    Every request of this tier: its workers are kept by clients that have their response already. Where each worker serves one connection at a time (Apache's prefork, a thread for each connection), a connection that its client keeps open and asks nothing on keeps one. And a server may close its side after a response and wait until the client closes too, so that the end of the response is not lost (lingering close, RFC 9112 section 9.6).
page-waits-for-clients-shows =
    Idle connections: the pool is full as in worker-pool-exhausted, and on at least half of the connections that its workers hold nothing is unread, unanswered or unsent. How many connections were held in the time watched, and for how long each (Little's law), is evidence beside it. The same holds for the places of an event loop that accepts a limited number of connections.
    Ends: accepted connections in FIN_WAIT2 that a process holds, with nothing unread, at least half as many as the connections that workers hold in all, while the pool is full and connections wait in the accept queue; or in at least half of the samples of its busy processes a main thread in a system call on such a connection. The time since the response, and clients' ends on this host in CLOSE_WAIT, are evidence beside it.
page-waits-for-clients-sure =
    High if system calls could be read, else medium: from the sockets alone. Silent if no connection waits to be accepted, as at a server that keeps any number of idle connections in an event loop; if most of the connections have a request; for unix sockets, which do not show whether they have one; if an event loop closes like that (nginx's lingering_close: it waits for many ends at once, and no worker is kept); for connections that no process holds (the kernel ends them by itself, net.ipv4.tcp_fin_timeout); and if the workers were seen to wait for something else.
page-waits-for-clients-remedies =
    Idle connections: keep them without a worker (Apache's event MPM, or a proxy with an event loop in front), or for a shorter time (KeepAliveTimeout), or not at all (KeepAlive Off). More workers help as far as there is one for each connection. Where another server keeps them, let it keep fewer than there are workers.
    Ends: find the clients: who holds the other end in CLOSE_WAIT (ss -tnp state close-wait), and lets it close after each response. Put a proxy with an event loop in front that closes its connections at once (nginx, HAProxy), or serve by an event loop: Apache's event MPM, gunicorn behind nginx. Fewer seconds of lingering help if the server can be told: it waits up to 2 s in gunicorn, up to 30 s in Apache.
page-waits-for-clients-sources =
    sock_diag(7) for states, inodes and the times of struct tcp_info; proc_pid_syscall(5) and /proc/PID/fd for what the workers wait for.

page-requests-hang-title = Requests hold workers until these are ended
page-requests-hang-limits =
    Every request of this tier: its workers are held by requests that do not go on, until a time limit, an engineer or the kernel ends the worker.
page-requests-hang-shows =
    A pool of processes that is full as in worker-pool-exhausted, of which workers ended while another of its processes went on. Most of those that ended had not run between their last two readings (half a second or more), and most of the time of all workers passed so.
page-requests-hang-sure =
    Medium: a worker that has done its number of requests (max_requests) ends as well, and its last one may have been long. Silent if workers run between their readings, as those do that work through requests; if no worker ended; if the kernel keeps no scheduler statistics; with a time limit below a second, since processes are read once a second.
page-requests-hang-remedies =
    Find what these requests wait for, and give that wait a limit of its own (of the query, of the call to another server): it ends the wait and not the worker. A shorter limit of the worker frees it sooner. More workers are held the same way.
page-requests-hang-sources =
    /proc/PID/stat and /proc/PID/schedstat of the tier's processes; sock_diag(7) for the connections that they hold.
