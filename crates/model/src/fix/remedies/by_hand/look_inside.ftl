# What remedy look-inside does, and its risk.

remedy-allow-more-connections-text = { $kind ->
    [at-once] Let { $tier } pass more than { $connections } at a time to { $remote }: { remedy-allow-more-connections-setting }. First check that { $remote } has spare capacity: the limit may protect it.
   *[all] Let { $tier } open more than { $connections } { $connections ->
        [one] connection
       *[other] connections
    } to { $remote }: { remedy-allow-more-connections-setting }. First check that { $remote } has spare capacity: the limit may protect it.
}
remedy-allow-more-connections-setting = { $server ->
    [haproxy] maxconn of the server line, or minconn and fullconn where that line has minconn
    [nginx] max_conns of the upstream's server
    [varnishd] .max_connections of the backend
    [squid] max-conn= of the cache_peer
   *[other] the size of its pool of connections, or its limit of requests at once
}
remedy-allow-more-connections-risk = The server behind gets more requests at once. If it has no spare capacity, they wait there instead, or fail.
remedy-look-inside-text = Find what the threads of { $tier } wait for: look at the stacks where they stop running, and at how often they make the call that waits. A stack that most threads share names the lock, the queue or the pool. The limits of the program are in its documentation.
remedy-look-inside-call-text = Let { $tier } go on serving while it waits for { $what }: by a library that works with its event loop, in other threads (asyncio.to_thread, run_in_executor, worker_threads), or by more processes. More connections alone change nothing.
remedy-look-inside-java = Java: the stack of each thread, with the lock that it waits for and the thread that holds it:
remedy-look-inside-python = Python: the stack of each thread, by its own function names (pip install py-spy; the program goes on):
remedy-look-inside-ruby = Ruby: the stack of the thread that runs, by its own function names (rbspy; the program goes on):
remedy-look-inside-node = Node.js: where its only thread spends time is what --cpu-prof writes at the end (node --cpu-prof); kill -USR1 { $pid } opens the inspector of the running program (chrome://inspect).
remedy-look-inside-php = PHP: php-fpm writes the stack of each request that takes longer than request_slowlog_timeout to the file in slowlog; phpspy --pid={ $pid } shows the functions of the running one.
remedy-look-inside-go = If it is written in Go: all goroutines and what they wait for are at /debug/pprof/goroutine?debug=2 (net/http/pprof), or, where that is not served, in what it prints when it is ended by kill -QUIT { $pid }, which ends programs in other languages too.
remedy-look-inside-risk = Sampling uses a few per cent of a core while it runs.
remedy-look-inside-for-text = { $class ->
    [held-up] Shorten what the one that has { $what } waits for, since all others wait for it as well: a disk that completes writes sooner, fewer and larger writes, or writes that nobody waits for where the data allows to lose the last ones (PostgreSQL: synchronous_commit, commit_delay; MariaDB: innodb_flush_log_at_trx_commit); a reader of the output that keeps up; a name server whose answers are kept. Or hold the lock for less: let each do that wait before it takes the lock or after it has let go.
    [lock] Find which code of { $tier } holds { $what }: the stacks at which its threads stop running show it. Then hold it for a shorter time, split it, or do without.
    [transaction] Find who has the lock (PostgreSQL: SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE wait_event_type = 'Lock'), and what that transaction does meanwhile: it may wait for its program. Then end it (pg_terminate_backend), commit sooner, or change fewer rows that others want.
    [session] Find who has the lock: of the sessions that SHOW FULL PROCESSLIST lists (MariaDB, MySQL), the one that does not wait for it. For rows, SELECT * FROM sys.innodb_lock_waits and information_schema.innodb_trx name both. Then see what it does meanwhile: it may wait for its program. End it (KILL), commit or unlock sooner, or change fewer rows that others want.
    [output] Make whoever reads that output faster, or let { $tier } write less of it (the level of a log, a file instead of a pipe): until there is room, each write waits, and the request with it.
    [names] Find why the name server is slow, or let answers be kept (systemd-resolved, nscd, dnsmasq, the cache of the program or its runtime), or connect to an address instead of a name.
   *[other] Find which code of { $tier } waits for { $what }: the stacks at which its threads stop running show it. Then wait less often, for a shorter time, or not while a request is served.
}
remedy-look-inside-turns-text = Find what the workers of { $tier } wait for: look at the stacks where they stop running. A stack that most of them share names the lock, the file or the pool. Then hold it for a shorter time, split it, or do without.
remedy-look-inside-hang-text = Find what these requests of { $tier } wait for: its log of slow or ended requests names their script or address (php-fpm: slowlog; gunicorn: WORKER TIMEOUT; uWSGI: HARAKIRI), the stack of a worker the call. Then give that wait a limit of its own: a timeout of the query, of the call, of the lock. More workers would be held the same way.
remedy-look-inside-behind-text = Find what the requests wait for at { $tier }: locks, slow statements, its limit of connections. If it is at its limit, more workers only make more of them wait there; if it takes as long for a single request, more workers let more pass.
remedy-look-inside-mysql = MariaDB, MySQL: SHOW FULL PROCESSLIST says what each connection does and for how long, SHOW ENGINE INNODB STATUS which lock it waits for and who holds it.
remedy-look-inside-postgres = PostgreSQL: SELECT pid, wait_event_type, wait_event, pg_blocking_pids(pid), query FROM pg_stat_activity says what each connection waits for, and who holds that.
remedy-look-inside-redis = Redis: SLOWLOG GET 20 shows the commands that took longest, while all others waited. CLIENT LIST shows the clients that wait in a blocking command (flags=b, cmd=blpop): where these wait for what other clients put there, those may be too few, or too slow.
remedy-look-inside-peer-text = Find what { $tier } has that the others behind { $caller } have not: look at the stacks where its threads stop, its disk, its data, its version. Until it is as quick as they are, take it out of the servers that { $caller } asks.
remedy-look-inside-silent-text = Find why { $tier } does not answer: look at the stacks where its threads stop. Then restart it. Until it answers, take it out of the servers that are asked (a health check does that).
remedy-look-inside-sleepers-text = Find why { $tier } does not accept at { $listener }: look at the stacks where its threads stop. Then restart it.
remedy-look-inside-replaced-text = Let each process of { $tier } serve more requests before it ends (gunicorn --max-requests, php-fpm pm.max_requests, Apache MaxConnectionsPerChild), or find in its error log why it ends.
remedy-look-inside-accepting-text = Give { $tier } more of what accepts and serves (workers, threads, connections at once; see its documentation), or find what its threads wait for before they accept again.
