# Pages of findings that a CPU profile shows, with the same five sections.

page-compression-hot-title = Compression takes much of the CPU time that limits
page-compression-hot-limits =
    Nothing on its own. It is shown as a possible improvement if CPU time is the limit of a tier and saving half of its compression would raise throughput beyond noise. It is a cause if nginx's gzip_comp_level is above 6, the level that zlib takes by itself: more time for hardly a smaller response.
page-compression-hot-shows =
    In a profile of the last third of the measurement: time in zlib, Brotli, zstd and similar libraries, as a share of the cores or threads that are the limit.
page-compression-hot-sure =
    The interval of the share follows from the number of samples. Silent without a profile, and if CPU time is not the limit. Beside other programs on the same cores the share is that of the time which these leave, and it is a cause as well if even the lower end of its interval would raise throughput beyond noise. The share is the most that can be saved, not what will be saved.
page-compression-hot-remedies =
    Use a lower level, compress fewer types, and compress files in advance. Responses grow, so check the link.
page-compression-hot-sources =
    perf_event_open(2); zlib Manual; nginx ngx_http_gzip_module, ngx_http_gzip_static_module; Amdahl 1967.

page-tls-handshake-hot-title = TLS handshakes take much of the CPU time that limits
page-tls-handshake-hot-limits =
    The CPU time of a tier that serves TLS, if CPU time is its limit. It is a cause if the server lets no client resume a session. Otherwise it is shown as a possible improvement, because the client decides whether it keeps its connection or offers a session.
page-tls-handshake-hot-shows =
    In a profile: all time below the functions that do a handshake, as a share of the cores or threads that are the limit. Encryption of the data sent afterwards is not included.
page-tls-handshake-hot-sure =
    This needs function names and user stacks that reach the handshake function. Stacks often end inside the signature itself. So if most requests of a load open a connection, another count is used if it is higher: the CPU time spent in TLS beyond the most that encryption can take (5 ns per byte sent, 20 µs per request). Silent without a profile, and if CPU time is not the limit.

    It is a cause only if three things hold. First, nginx's configuration says ssl_session_tickets off and does not mention ssl_session_cache, whose default stores no session. Second, resumed sessions would certainly save more than noise, judged by the lower end of the interval. This saving is the time in signing functions. Of stacks that end inside TLS, it is the time that neither the bytes sent nor 300 µs per key exchange explain (not counted if ssl_ecdh_curve names slower curves). Third, clients would resume: the connections of the load offered a session and resumed none, or, in traffic that is only watched, connections came from addresses that had connected before.

    It stays a possible improvement if the configuration itself sets ssl_session_cache to off or none, if the server verifies client certificates (ssl_verify_client), if the load offered no session, if servers of one address differ, and if the configuration is unknown.
page-tls-handshake-hot-remedies =
    A session cache that all workers share, if the server refuses to resume sessions; kept connections; an ECDSA key.
page-tls-handshake-hot-sources =
    perf_event_open(2); RFC 8446; nginx ngx_http_ssl_module; OpenSSL's speed(1) for the cost of signatures.

page-debug-log-title = A debug log takes much of the CPU time that limits
page-debug-log-limits =
    The CPU time of an nginx that logs each step of each request, if CPU time is its limit. It formats dozens of lines per request and writes each with its own system call.
page-debug-log-shows =
    In a profile: all time below the function that writes error logs, as a share of the cores or threads that are the limit. And in the configuration that applies to this request (its location, its server, the default server of its address, or the main context): an error_log at level debug (or debug_http and similar), or rewrite_log on with a log that takes its lines.
page-debug-log-sure =
    A cause if even the lower end of the share's interval would raise throughput beyond noise. It stays a possible improvement if the log was intended for a server under load: all such logs are kept in memory (error_log memory:...), or debug_connection selects clients. Silent if no log that applies records each step (for example because debug_connection limits it to some clients); if the lines are errors; if nginx was built without --with-debug, because it then writes no such line; and without a profile or the configuration.
page-debug-log-remedies =
    Use level error, which is the default. Lines of level warn or notice that were requested separately stay if another log takes them.
page-debug-log-sources =
    perf_event_open(2); nginx, "A debugging log", ngx_core_module (error_log, debug_connection), ngx_http_rewrite_module (rewrite_log), src/core/ngx_log.c; Amdahl 1967.

page-opcode-cache-off-title = Scripts are compiled for each request
page-opcode-cache-off-limits =
    The CPU time of a tier that compiles its scripts for each request, if CPU time is its limit.
page-opcode-cache-off-shows =
    In a profile: time in the compiler of PHP, Python or Ruby, as a share of the cores or threads that are the limit. A server that caches compiled scripts spends no time there once it has warmed up.
page-opcode-cache-off-sure =
    A cause if even the lower end of the share's interval would raise throughput beyond noise; otherwise a possible improvement. The share shows that scripts are compiled, but not why: the cache may be off or too small, or the scripts may change. Silent without a profile, and if CPU time is not the limit.
page-opcode-cache-off-remedies =
    Switch the opcode cache on, with room for all scripts.
page-opcode-cache-off-sources =
    perf_event_open(2); PHP Manual, OPcache.

page-process-starts-hot-title = Processes are started and ended all the time
page-process-starts-hot-limits =
    The CPU time of a tier that starts a process for each request, or for every few, if CPU time is its limit: CGI scripts, a server that forks for each connection, workers that end after a few requests.
page-process-starts-hot-shows =
    In a profile: time in fork, exec and exit in the kernel, in the dynamic linker, in the start of an interpreter, and in page faults of processes that began meanwhile, as a share of the cores or threads that are the limit; and how many processes the tier started. What a process does after its start (reading its configuration, importing modules) counts only where the interpreter's functions have names, so that the share is what it takes at least.
page-process-starts-hot-sure =
    A cause if even the lower end of the share's interval would raise throughput beyond noise; otherwise a possible improvement. Silent without a profile of the whole machine, if CPU time is not the limit, and for threads, which cost less.
page-process-starts-hot-remedies =
    Processes that stay: FastCGI or an application server instead of CGI, a server with workers instead of a fork for each connection, more requests for each worker.
page-process-starts-hot-sources =
    perf_event_open(2) (PERF_RECORD_FORK), fork(2), execve(2), ld.so(8); RFC 3875 (CGI); Amdahl 1967.

page-allocator-hot-title = The allocator takes CPU time that limits
page-allocator-hot-limits =
    Nothing on its own. It is shown as a possible improvement, with the highest possible gain, if CPU time is the limit of a tier.
page-allocator-hot-shows =
    In a profile: time in malloc, free and similar functions (glibc, jemalloc, tcmalloc, PHP's own, nginx's pools), as a share of the cores or threads that are the limit.
page-allocator-hot-sure =
    Shown if saving the whole share would change throughput more than two identical runs differ by noise. No allocator costs nothing, so measure what another one gives. Silent without a profile, and if CPU time is not the limit.
page-allocator-hot-remedies =
    Another allocator by LD_PRELOAD; fewer and larger allocations; pools.
page-allocator-hot-sources =
    perf_event_open(2); malloc(3), ld.so(8); Amdahl 1967.

page-lock-contention-title = Locks take much of the CPU time that limits
page-lock-contention-limits =
    Nothing on its own. It is shown as a possible improvement if CPU time is the limit of a tier.
page-lock-contention-shows =
    In a profile: time spent spinning for kernel locks and in futex calls, as a share of the cores or threads that are the limit.
page-lock-contention-sure =
    The share counts CPU time only: threads that sleep while they wait for a lock leave cores idle, and do not show here. On a virtual machine, other cores spin when the hypervisor stops the core that holds the lock. Silent without a profile, and if CPU time is not the limit.
page-lock-contention-remedies =
    Share less: one listener per worker, buffered logs, processes instead of threads.
page-lock-contention-sources =
    perf_event_open(2); Linux Documentation/locking/; futex(7).

page-single-core-saturated-title = A server uses one core while others are idle
page-single-core-saturated-limits =
    The throughput of a server with fewer threads than the cores it may run on: each thread uses one core at a time. Under the lock of an interpreter (CPython, PyPy, Ruby) all threads of a process count as one. So they do in other programs that let one thread run at a time: GOMAXPROCS=1, a lock that all threads take, an event loop with helpers.
page-single-core-saturated-shows =
    Serving threads that are always running or ready to run, or a process that uses one core all the time because of its interpreter's lock, or, in other programs, never less and never more than one while at least one request on average waits unread for each that it works on; and at least half a core that they may use and that is idle, or that other programs take while these threads wait for theirs (cores-taken-by-others). It is a cause if requests wait for these threads and the idle cores have room for a tenth more throughput: the servers, interrupts and a load generator on the same cores share them. Otherwise it is shown as a possible improvement.
page-single-core-saturated-sure =
    High if two independent sources agree, the scheduler's clocks and the samples of a profile; medium without a profile. Silent if a thread sometimes waits for anything but a core, if there are as many threads as cores, if a quota stops the threads, and if a profile shows that they ran less.
page-single-core-saturated-remedies =
    nginx: worker_processes, with its file and line. Others: more worker processes or threads, if the program supports them. Where other workers are there and idle, the connections are to be spread over them (nginx: reuseport).
page-single-core-saturated-sources =
    perf_event_open(2); /proc/PID/task/TID/schedstat, /proc/stat (proc(5)).

page-softirq-on-one-core-title = One core receives all packets
page-softirq-on-one-core-limits =
    All traffic that arrives over a network card that delivers its packets to one core.
page-softirq-on-one-core-shows =
    In a profile: one core always busy, at least half of its time in the soft interrupt for received packets, and every other core at most 70 % busy.
page-softirq-on-one-core-sure =
    Medium: the samples show what the core does, but not whether the card could deliver its packets in another way. Silent if the load generator must stay on that core, if the servers may use only one core, if their cores are full anyway, and without a profile.
page-softirq-on-one-core-remedies =
    More queues of the card (RSS), or receive packet steering (RPS).
page-softirq-on-one-core-sources =
    perf_event_open(2); Linux Documentation/networking/scaling.rst.

page-busy-polling-title = A program that polls keeps its cores busy with or without requests
page-busy-polling-limits =
    Nothing on its own, but it hides the limit. Cores that are always busy are no evidence of load, so the CPU station gives no verdict for them and no ceiling is computed.
page-busy-polling-shows =
    Serving threads run all the time under load, and also ran all the time in a tenth of a second before the load, when almost no segment arrived in the namespaces of the path. Or more than half of the program's samples are in functions that only check whether something arrived (poll-mode drivers, the kernel's busy polling).
page-busy-polling-sure =
    A saturated server sleeps before the load; a polling one does not. Silent if segments arrived in that tenth of a second, if clients held connections (they may keep the program busy), if its threads could not be read one by one, and if the program was found only under load. A program with other work in just that tenth of a second, and saturated afterwards, looks the same. To see whether a polling program is at its limit, look at its response times: if they are about as short as without load, it is not.
page-busy-polling-remedies =
    None is needed. To find the capacity, raise the load. A timeout, or interrupts, free the cores while nothing arrives.
page-busy-polling-sources =
    /proc/PID/task/TID/schedstat, /proc/net/snmp (proc(5)); perf_event_open(2); Linux Documentation/networking/napi.rst (busy polling); DPDK Programmer's Guide, Poll Mode Driver.
