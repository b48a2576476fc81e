# Pages of findings that a CPU profile shows, with the same five sections.

page-compression-hot-title = Compression takes much of the CPU time that limits
page-compression-hot-limits =
    Nothing by itself: it is told as what could be faster where CPU time is the limit of a tier, and half of its compression would be worth more than noise.
page-compression-hot-shows =
    In a profile of the last third of the window: zlib, Brotli, zstd and the like, as a share of the cores or threads that limit.
page-compression-hot-sure =
    The share has the interval of its number of samples. Silent without a profile, where CPU time is not the limit, where other programs fill the cores, and where another tier on the same cores takes them. A share says what could be saved at most, not what will be.
page-compression-hot-remedies =
    A lower level, fewer types, files that are compressed beforehand. The answers grow: look at the link.
page-compression-hot-sources =
    perf_event_open(2); zlib Manual; nginx ngx_http_gzip_module, ngx_http_gzip_static_module; Amdahl 1967.

page-tls-handshake-hot-title = TLS handshakes take much of the CPU time that limits
page-tls-handshake-hot-limits =
    The CPU time of a tier that speaks TLS, where CPU time is the limit. A cause where the server itself lets no client resume a session; otherwise told as what could be faster, for whether a client keeps its connection or offers a session is its own doing.
page-tls-handshake-hot-shows =
    In a profile: everything below the functions that carry out a handshake, as a share of the cores or threads that limit. Encrypting what is sent afterwards is not in it.
page-tls-handshake-hot-sure =
    Needs user stacks that reach the handshake's function, and names. Stacks often break off in the signature itself: where most requests of a load open a connection, what TLS took beyond the most that the bytes sent can explain (5 ns a byte, 20 µs a request) is counted instead, if that is more. Silent without a profile and where CPU time is not the limit.

    It is a cause only where nginx's configuration says ssl_session_tickets off and nothing of ssl_session_cache, whose default stores no session; where what sessions that are resumed surely do without would give more than noise, by the lower end of its interval: signatures, seen by their functions, and of stacks that break off within TLS what neither the bytes sent nor 300 µs for each exchange of keys explain (not where ssl_ecdh_curve names slower curves); and where clients would resume: a load whose connections offered a session and resumed none, or, watched alone, connections from addresses that had another one before. It stays told where ssl_session_cache is off or none in the configuration itself, where some clients show certificates (ssl_verify_client), where the load offered no session, where servers of one address differ, and where the configuration is not known.
page-tls-handshake-hot-remedies =
    A session cache that all workers share, where the server refuses to resume; kept connections, an ECDSA key.
page-tls-handshake-hot-sources =
    perf_event_open(2); RFC 8446; nginx ngx_http_ssl_module; OpenSSL's speed(1) for the price of signatures.

page-debug-log-title = A debug log takes much of the CPU time that limits
page-debug-log-limits =
    The CPU time of an nginx that writes down each step of each request, where CPU time is the limit. Dozens of lines a request are put together and written, each by a system call of its own.
page-debug-log-shows =
    In a profile: everything below the function that writes error logs, as a share of the cores or threads that limit; and in the configuration an error_log at the level debug (or debug_http and its like), or rewrite_log on with a log that takes its lines, in force for this request: in its location, its server, the default server of its address, or the main context.
page-debug-log-sure =
    A cause where even the lower end of the share's interval would give more than noise. It stays told where somebody meant it for a server under load: all such logs are kept in memory (error_log memory:...), or debug_connection names clients to look at. Silent where no log in force tells each step, as where debug_connection alone limits that to some clients; where the lines are errors; where nginx was built without --with-debug, for then it writes no such line; without a profile or without the configuration.
page-debug-log-remedies =
    The level error, which is the default. Lines of warn and notice that were asked for apart stay where another log takes them.
page-debug-log-sources =
    perf_event_open(2); nginx, "A debugging log", ngx_core_module (error_log, debug_connection), ngx_http_rewrite_module (rewrite_log), src/core/ngx_log.c; Amdahl 1967.

page-opcode-cache-off-title = Scripts are compiled for each request
page-opcode-cache-off-limits =
    The CPU time of a tier that compiles its scripts for each request, where CPU time is the limit.
page-opcode-cache-off-shows =
    In a profile: the compiler of PHP, Python or Ruby, as a share of the cores or threads that limit. A server that keeps what it compiled shows none of it a moment after its start.
page-opcode-cache-off-sure =
    A cause where even the lower end of the share's interval would give more than noise; otherwise told as what could be faster. The share tells that scripts are compiled, and not why: the cache may be off, too small, or the scripts change. Silent without a profile and where CPU time is not the limit.
page-opcode-cache-off-remedies =
    The opcode cache, with room for all scripts.
page-opcode-cache-off-sources =
    perf_event_open(2); PHP Manual, OPcache.

page-allocator-hot-title = The allocator takes CPU time that limits
page-allocator-hot-limits =
    Nothing by itself: it is told as what could be faster where CPU time is the limit of a tier, with the most that there is to gain.
page-allocator-hot-shows =
    In a profile: malloc, free and their like (glibc, jemalloc, tcmalloc, PHP's, nginx's pools), as a share of the cores or threads that limit.
page-allocator-hot-sure =
    Told from the share on whose removal would give more than two runs alike differ by noise. No allocator costs nothing: what another one gives is to be measured. Silent without a profile and where CPU time is not the limit.
page-allocator-hot-remedies =
    Another allocator by LD_PRELOAD, fewer and larger allocations, pools.
page-allocator-hot-sources =
    perf_event_open(2); malloc(3), ld.so(8); Amdahl 1967.

page-lock-contention-title = Locks take much of the CPU time that limits
page-lock-contention-limits =
    Nothing by itself: it is told as what could be faster where CPU time is the limit of a tier.
page-lock-contention-shows =
    In a profile: spinning for locks of the kernel, and futexes, as a share of the cores or threads that limit.
page-lock-contention-sure =
    A share of CPU time: threads that sleep for a lock show in idle cores instead, and not here. On virtual machines a core that the hypervisor took away while it held a lock makes others spin. Silent without a profile and where CPU time is not the limit.
page-lock-contention-remedies =
    Share less: a listener of its own for each worker, buffered logs, processes instead of threads.
page-lock-contention-sources =
    perf_event_open(2); Linux Documentation/locking/; futex(7).

page-single-core-saturated-title = A server uses one core while others are idle
page-single-core-saturated-limits =
    Throughput of a server whose threads are fewer than the cores on which they may run: each uses one core at a time.
page-single-core-saturated-shows =
    Threads that serve and run, or are ready to, all the time; a profile with as many cores busy; at least half a core idle beside them.
page-single-core-saturated-sure =
    Told by the scheduler's clocks and by samples, which know nothing of each other. Silent where a thread waits for anything else now and then, where there are as many threads as cores, where a quota stops them, and without a profile.
page-single-core-saturated-remedies =
    More worker processes or threads, as far as the program can.
page-single-core-saturated-sources =
    perf_event_open(2); /proc/PID/task/TID/schedstat, /proc/stat (proc(5)).

page-softirq-on-one-core-title = One core receives the packets for all
page-softirq-on-one-core-limits =
    All that comes in over a network card that gives its packets to one core.
page-softirq-on-one-core-shows =
    In a profile: one core busy all the time, half of it or more below the soft interrupt for received packets, and every other core at most 70 % busy.
page-softirq-on-one-core-sure =
    Medium: samples tell what the core does, not whether the card could do otherwise. Silent where the load generator must stay on that core, where the servers have but one core, where their cores are full anyway, and without a profile.
page-softirq-on-one-core-remedies =
    More queues of the card (RSS), or receive packet steering (RPS).
page-softirq-on-one-core-sources =
    perf_event_open(2); Linux Documentation/networking/scaling.rst.

page-busy-polling-title = A program that polls keeps its cores busy with or without requests
page-busy-polling-limits =
    Nothing by itself. What it hides is the limit: cores that are busy all the time are then no evidence of load, so that the station tells nothing of them, and no ceiling is computed.
page-busy-polling-shows =
    Threads that serve and run all the time under load ran all the time before it as well, in a tenth of a second in which hardly a segment came into the namespaces of the path. Or more than half of a program's samples are functions that only ask whether something came (poll-mode drivers, the kernel's busy polling).
page-busy-polling-sure =
    A server that is only saturated sleeps before the load. Silent where segments came in then, or clients held connections (they may keep it busy), where its threads could not be read one by one, and where it was found only under load. A program that had work of its own to do in just that tenth of a second, and is saturated afterwards, looks the same. Whether a program that polls is at its limit is told by its answers: those that take about as long as alone wait for nothing.
page-busy-polling-remedies =
    None is needed. Capacity is found by raising the load; a timeout, or interrupts, give the cores back while nothing comes.
page-busy-polling-sources =
    /proc/PID/task/TID/schedstat, /proc/net/snmp (proc(5)); perf_event_open(2); Linux Documentation/networking/napi.rst (busy polling); DPDK Programmer's Guide, Poll Mode Driver.
