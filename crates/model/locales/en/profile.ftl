# Where the CPU time goes: layers, bounds, and what could be faster by them.

report-profile = Where the CPU time goes
report-profile-tier = { $tier } kept { $cores } cores busy: { $layers }.
report-profile-tier-cost = { $tier } kept { $cores } cores busy, { $duration } per good response: { $layers }.
report-profile-layer = { $title } { $share }

profile-others = other programs and kernel work
profile-quality = { $samples } samples in the last { $seconds } s ({ $clock }); { $lost ->
        [0] none was lost
        [one] one was lost
       *[other] { $lost } were lost
    }; { $broken } % of the user stacks are incomplete.
profile-bound = { $tier } spends { $share } % of { $of } on { $what }: at most { $gain } { $how } (other effects not counted).
profile-bound-by-none = if this work cost nothing
profile-bound-by-kernel-network = with a kernel bypass
profile-bound-by-connection = if connections were kept
profile-bound-by-tls-handshake = if sessions were resumed
profile-bound-by-tls-signature = if sessions were resumed
profile-bound-by-script-compile = if compiled scripts were cached
profile-bound-by-error-log = if only errors were logged
profile-bound-by-garbage-collection = if no garbage had to be collected
profile-bound-by-port-search = if ports were reused
profile-gain-percent = { $gain } % more throughput
profile-gain-factor = { $factor } times the throughput
profile-of-cores = { $count ->
    [1] the time of core { $cores }
   *[other] the time of cores { $cores }
}
profile-of-own = the time that other programs leave of { $count ->
    [1] core { $cores }
   *[other] cores { $cores }
}
profile-of-threads = { $threads ->
    [1] the time of the only serving thread
   *[other] the time of the { $threads } serving threads
}
profile-few = { $samples } samples are too few to say where the CPU time went: at least { $least } are needed.
profile-own-work = { $threads ->
    [one] { $tier } answers all requests with one thread, which is always running or ready: { $cost ->
        [known] each answer takes { $ms } ms of CPU time, { $share } % of it
       *[unknown] { $share } % of its CPU time goes into
    } { $layer }.
   *[several] { $cost ->
        [known] Each answer takes { $ms } ms of the CPU time of { $tier }, { $share } % of it
       *[unknown] { $share } % of the CPU time of { $tier } goes into
    } { $layer }.
} With half of that work { $tier } could answer { $times } times as much on the cores that it gets.
profile-few-limiting = Too few samples are of the CPU time that limits to say what saving some of it would give.
profile-no-bound-small = No part of the servers' CPU time is large enough that saving it would raise throughput.
profile-no-bound-others = CPU time of the servers is not the limit: saving some would only leave more of the cores to other programs.
profile-no-bound = CPU time is not the limit: saving some would only leave the cores idle for longer.
profile-no-bound-polling = Which CPU time is the limit is unknown: { $tier } polls and keeps its cores busy with or without requests.

layer-application = application
layer-interpreter = interpreter
layer-allocator = allocator
layer-tls = TLS and cryptography
layer-compression = compression
layer-syscall-entry = system call entry and exit
layer-file-system = files and sendfile
layer-socket-send = socket send
layer-socket-receive = socket receive
layer-connection = connection set-up and close
layer-tcp-transmit = TCP/IP transmit
layer-softirq-receive = packet receive
layer-netfilter = firewall and connection tracking
layer-port-search = searching for a free port
layer-scheduler = scheduler and wake-ups
layer-lock = locks
layer-page-fault = page faults
layer-interrupt = interrupts and timers
layer-polling = polling without finding work
layer-kernel-other = other kernel code
layer-unknown = no stack recorded
layer-idle = idle
layer-kernel-network = the kernel's network path
layer-tls-handshake = TLS handshakes
layer-tls-signature = private-key signatures
layer-script-compile = script compilation
layer-error-log = writing the error log
layer-garbage-collection = collecting garbage
layer-process-start = starting and ending processes
layer-softirq = soft interrupts for received packets

evidence-ports-search = In a profile, the search took { $share } % ({ $low } to { $high } %) of the CPU time that limits { $tier }, most of it in { $function } ({ $samples } samples).
evidence-hot-share = This work takes { $share } % ({ $low } to { $high } %) of { $of } ({ $samples } samples).
evidence-handshakes-unsent = The share is the CPU time spent in TLS beyond the most that encrypting the bytes sent can take. Most requests opened a connection.
evidence-sessions-refused = ssl_session_tickets is off and ssl_session_cache is { $cache }: clients get no ticket and the server stores no session, so no client can resume one.
evidence-sessions-resumed = The server lets clients resume sessions. The full handshakes are those of clients that offer no session.
evidence-sessions-offered = Each connection of the load offered the session of an earlier one: { $full } handshakes were full, { $resumed } were resumed.
evidence-sessions-unoffered = The load was told to offer no session, so all of its { $full } handshakes would have been full in any case.
evidence-sessions-forbidden = ssl_session_cache is set in the configuration: somebody decided to store no session.
evidence-sessions-verified = The server verifies client certificates (ssl_verify_client). It does not verify them again when a session is resumed, so the owner has to decide.
evidence-sessions-returning = At least { $share } % of the { $seen } connections seen came from an address that had connected before, so these clients could have offered a session. Whether they would is unknown.
evidence-sessions-signed = Resumed sessions need no signature. Signing functions alone take { $share } % ({ $low } to { $high } %) of that time.
evidence-sessions-rest = Some stacks end inside TLS, most likely in the signature. They count only as far as neither the bytes sent nor { $us } µs per key exchange (more than any measured exchange took) explain them.
evidence-debug-log = error_log { $to } logs at { $levels }. At this level it records each step of each request.
evidence-rewrite-log = rewrite_log is on, and its lines are logged.
evidence-debug-log-grew = The error logs of { $tier } grew by { $mib } MiB during the measurement, { $bytes } bytes per request.
evidence-debug-log-memory = The log stays in memory, which is intended for servers under load.
evidence-debug-connection = debug_connection logs each step for some clients: somebody is debugging, and these lines stay at any log level.
evidence-hot-function = Most of it is in { $function }.
evidence-hot-bound = Saving all that can be saved of this work would raise throughput { $is_factor ->
    [yes] to { $times } times ({ $times_low } to { $times_high })
   *[no] by { $gain } % ({ $low } to { $high } %)
}; other effects are not counted.
evidence-single-ran = { $tier } kept { $ran } cores busy.
evidence-port-search-gain = Without the search throughput could rise by at least { $gain } %; other effects are not counted.
evidence-single-waits = { $waiting } of { $under_way } requests waited on average until { $tier } had time for them.
evidence-single-setting = worker_processes is { $count }: nginx starts so many workers, each with one serving thread.
evidence-single-bound = { $are_held ->
    [yes] On the cores that are idle or that other programs hold,
   *[no] On the idle cores
} throughput could rise to at most { $times } times, if more threads used them and nothing else is the limit first.
evidence-single-idle = Of the { $cores } cores it may run on, { $idle } were idle on average{ $are_held ->
    [yes] , and other programs held { $held }
   *[no] { "" }
}.
evidence-softirq-share = Core { $cpu } was { $busy } % busy. Soft interrupts for received packets took { $share } % ({ $low } to { $high } %) of that time. No other core was above 70 %.

finding-compression-hot-title = { $tier } spends { $share } % of { $of } on compression
finding-compression-hot-explanation-high = CPU time is the limit, and much of it goes into compressing responses at a level that makes them hardly smaller: above level 6, which zlib takes by itself, a response takes up to several times as long. Level 1, nginx's default, takes less than half of the time of level 6, and makes responses some per cent larger. Files that do not change can be compressed once, in advance.
evidence-compression-level-high = gzip_comp_level is { $level }; zlib's own level is { $usual }, nginx's default 1.
evidence-compression-level = gzip_comp_level is { $level }.
finding-compression-hot-explanation = { $beside ->
    [yes] The servers lack CPU time, whoever has the other cores, and much of what they get
   *[no] Nothing is wrong: CPU time is the limit, and much of it
} goes into compressing responses. A lower compression level takes about half the time and makes responses a few per cent larger. Files that do not change can be compressed once, in advance.
finding-tls-handshake-hot-title = { $tier } spends { $share } % of { $of } on TLS handshakes
finding-tls-handshake-hot-explanation = { $beside ->
    [yes] The servers lack CPU time, whoever has the other cores, and much of what they get
   *[no] Nothing is wrong: CPU time is the limit, and much of it
} goes into TLS handshakes, most of that into the signature with the server's private key. Kept connections need no handshake, and resumed sessions need no signature. An ECDSA key signs many times faster than an RSA key.
finding-tls-handshake-hot-title-refused = { $tier } refuses to resume TLS sessions and spends { $share } % of { $of } on full handshakes
finding-tls-handshake-hot-explanation-refused = CPU time is the limit, and much of it goes into full TLS handshakes, most of that into the signature with the server's private key. A returning client could resume its session without a signature, but this server lets no client do so.
finding-tls-handshake-hot-explanation-resumed = Nothing is wrong: CPU time is the limit, and much of it goes into TLS handshakes. Most of them already resume a session and need no signature. Kept connections need no handshake at all.
finding-opcode-cache-off-title = { $tier } spends { $share } % of { $of } on compiling scripts
finding-opcode-cache-off-explanation = CPU time is the limit, and much of it goes into compiling scripts. A server needs to compile a script once, not for each request.
finding-debug-log-title = { $tier } writes a debug log, which takes { $share } % of { $of }
finding-debug-log-explanation = CPU time is the limit, and much of it goes into a log that records each step of each request. Only somebody who is debugging needs it.
finding-debug-log-explanation-meant = CPU time is the limit, and much of it goes into a log that records each step of each request. The log is configured for a server under load, so nothing is wrong, but throughput would be higher without it.
finding-process-starts-hot-title = { $tier } starts processes all the time, which takes { $share } % of { $of }
finding-process-starts-hot-explanation = CPU time is the limit, and much of it goes into starting and ending processes, as a server does that starts one for each request (CGI) or connection, or ends its workers after a few. Processes that stay serve the next request without that.
evidence-process-starts = { $is_known ->
    [yes] { $tier } started { $per_s } processes a second, { $each } for each response.
   *[no] { $tier } started { $per_s } processes a second.
  }
finding-allocator-hot-title = { $tier } spends { $share } % of { $of } in the allocator
finding-allocator-hot-explanation = Nothing is wrong: CPU time is the limit, and part of it goes into allocating and freeing memory. Another allocator may take less time, and may need more memory. The gain shown is the most that is possible.
finding-lock-contention-title = { $tier } spends { $share } % of { $of } on locks
finding-lock-contention-explanation = CPU time is the limit, and much of it goes into waiting for locks that another core holds: spinning, or going to sleep and waking up. This time grows with the number of cores that want the same lock, so more cores can make the server slower.
finding-single-core-saturated-title = { $tier } serves requests with { $threads ->
    [1] one thread
   *[other] { $threads } threads
}, although it may run on { $cores } cores
finding-single-core-saturated-title-some = { $threads ->
    [1] one
   *[other] { $threads }
} of the { $workers } workers of { $tier } { $threads ->
    [1] serves
   *[other] serve
} all requests, while the others are idle
finding-single-core-saturated-explanation-some = Each connection stays with the worker that accepted it, and these run all the time, each on one core, while { $free } cores that { $tier } may use are { $are }. If the connections were spread over all of them, the others would serve as well.
finding-single-core-saturated-title-turns = { $by ->
    [interpreter] the interpreter of { $tier } runs one of its { $turns } threads at a time
   *[untold] { $tier } keeps one core busy and never more
}, although it may use { $cores } cores
single-idle = idle
single-idle-or-held = idle or held by other programs
finding-single-core-saturated-explanation-turns = { $by ->
    [interpreter] The threads of { $tier } share the lock of its interpreter: one of them runs at a time, so all of them together use
   *[untold] Whatever the threads of { $tier } do, one of them runs at a time: all of them together always use
} one core, while { $free } cores are { $are }. More processes could use them; more threads could not.
finding-single-core-saturated-explanation-turns-waits = { $by ->
    [interpreter] The threads of { $tier } share the lock of its interpreter: one of them runs at a time, so all of them together use
   *[untold] The threads of { $tier } together always use
} one core, and requests wait for it, while { $free } cores that { $tier } may use are { $are }. { $by ->
    [interpreter] More processes could use them; more threads could not.
   *[untold] So one thread runs at a time: a setting says so (GOMAXPROCS=1), all of them take the same lock, or one of them serves and the others help. More processes could use the cores; more threads could not.
}
finding-single-core-saturated-explanation = The serving threads run all the time, each on one core, while { $free } cores are { $are }. More threads or processes could use them.
finding-single-core-saturated-explanation-waits = The serving threads run all the time, each on one core, and requests wait for them, while { $free } cores that { $tier } may use are { $are }. More threads or processes could use them.
finding-port-search-sampled-title = { $tier } spends { $share } % of { $of } on the search for free local ports
finding-port-search-sampled-explanation = { $tier } opens so many connections that the kernel searches long for a free port for each. Kept connections to the upstream need no port; net.ipv4.tcp_tw_reuse = 1 and a wider net.ipv4.ip_local_port_range shorten the search.
finding-softirq-on-one-core-title = core { $cpu } receives all packets
finding-softirq-on-one-core-explanation = One core is always busy, mostly with received packets, while the other cores have time to spare. The network card delivers its packets to this one core, so the server cannot answer faster than this core receives.
evidence-polling-quiet = In the { $ms } ms before the load, when almost no traffic arrived, { $threads ->
    [1] the only serving thread of { $tier }
   *[other] the { $threads } serving threads of { $tier }
} kept { $ran } cores busy and never slept.
evidence-polling-loaded = Under load, at { $goodput } good responses per second, { $tier } kept { $ran } cores busy: its CPU time does not depend on the number of requests.
evidence-polling-sampled = { $share } % ({ $low } to { $high } %) of the CPU time of { $tier } was spent in functions that only check whether something arrived ({ $samples } samples).
finding-busy-polling-title = { $tier } polls, so its busy cores are no evidence of load
finding-busy-polling-explanation = The program checks for work in a loop instead of sleeping until some arrives. It keeps { $ran } cores busy with or without requests. This is no fault, and it saves a wake-up per request. But the use of these cores does not show how much more the program could serve, and neither does a cost per request computed from it.

remedy-compress-less-text = Compress less: a lower level (nginx: gzip_comp_level 1), only types that shrink (gzip_types), no small responses (gzip_min_length). Compress files that do not change in advance (gzip_static on).
remedy-compress-less-risk = Responses grow. If the link is near its limit, that costs more than it saves.
remedy-resume-tls-sessions-text = Let returning clients skip the full handshake: use a session cache that all workers share (nginx: ssl_session_cache shared:TLS:10m, ssl_session_timeout 1h), keep connections for longer (keepalive_timeout), and use a certificate with an ECDSA key.
remedy-resume-tls-sessions-risk = Rotate the keys of session tickets regularly: whoever obtains a key can decrypt recorded traffic of its sessions. Very old clients do not support ECDSA.
remedy-store-tls-sessions-text = Store TLS sessions in a cache that all workers share: ssl_session_cache { $cache } in the http block. Returning clients resume their session; tickets stay off.
remedy-store-tls-sessions-risk = Session keys stay in the server's memory for ssl_session_timeout (5 minutes by default). The cache holds about { $sessions } sessions; the oldest are removed first. The setting applies to all servers of the http block that set no cache of their own.
remedy-log-errors-alone-text = Log only errors: set error_log { $to } to level { $quiet } instead of { $levels }.
remedy-log-errors-alone-risk = The steps of requests are no longer logged. If somebody is debugging with this log, ask first.
remedy-switch-steps-off-text = When nobody needs the log of each step any more, remove what writes it: rewrite_log on, error_log memory:..., debug_connection.
remedy-switch-steps-off-risk = Whoever is debugging with these lines loses them.
remedy-keep-scripts-compiled-text = Cache compiled scripts. For PHP: opcache.enable=1, with opcache.memory_consumption and opcache.max_accelerated_files large enough for all scripts. For other languages, see their documentation.
remedy-keep-scripts-compiled-risk = A changed script is noticed only after opcache.revalidate_freq seconds, or after a reload if opcache.validate_timestamps is off.
remedy-keep-processes-text = Let the server keep its processes: FastCGI or an application server instead of CGI scripts, workers instead of a fork for each connection, and more requests for each worker before it ends (gunicorn --max-requests, php-fpm pm.max_requests, Apache MaxConnectionsPerChild).
remedy-keep-processes-text-connections = If { $tier } starts a process for each connection, as PostgreSQL does, let { $callers } keep its connections in a pool, as many as it uses at once, or put a pooler between them (PgBouncer). If it starts one for each request (CGI), let a server keep them: FastCGI or an application server.
remedy-keep-processes-risk = A process that stays keeps what a program leaks, in memory and open files, until it is started anew: let it end after some thousand requests.
remedy-try-another-allocator-text = Try another allocator without a rebuild: set LD_PRELOAD=libjemalloc.so.2 in the environment of the service. Measure both in turn under the same load.
remedy-try-another-allocator-risk = Memory use changes, and a program that relies on glibc's malloc hooks may break. Memory that a program does not get from malloc (nginx's pools, PHP's own allocator) is not affected.
remedy-split-lock-text = Find the lock: chokepoint profile shows its callers. Then give each worker its own copy of what they share: a listener with reuseport, a buffered log, processes instead of threads, fewer shared memory zones.
remedy-split-lock-risk = With reuseport each worker has its own accept queue: a free worker cannot take a connection that waits for a busy one.
remedy-raise-worker-processes-text = Let nginx start a worker for each core: set worker_processes to auto (it is { $count } in { $where }, and nginx may use { $cores } cores), test with nginx -t, and reload.
remedy-raise-worker-processes-risk = Each worker has its own connections (worker_connections), its own kept connections to upstreams and its own memory.
remedy-use-more-cores-text = Let the program use more cores: more worker processes or threads (nginx: worker_processes auto; Node.js: cluster; gunicorn: --workers), or several instances behind a proxy.
remedy-use-more-cores-text-some = Let the connections of { $tier } spread over its workers: "reuseport" on nginx's listen line gives each worker a queue of its own, to which the kernel spreads new connections; clients and proxies with more connections, or that open them anew from time to time (keepalive_requests), spread better. More workers change nothing while the others are idle.
remedy-use-more-cores-text-redis = Find the commands that take its one thread (SLOWLOG GET 20; INFO commandstats): KEYS, large ranges, scripts and sorts take time for all of the others. Ask for less at once (SCAN, smaller values, an index of its own), or spread the keys over several instances. Threads for input and output (io-threads) execute no commands.
remedy-use-more-cores-text-turns = { $by ->
    [interpreter] Let the program use more cores: more worker processes (gunicorn: --workers; Puma: workers), or several instances behind a proxy. More threads do not help: the lock of the interpreter lets one run at a time.
   *[untold] Find what lets one thread run at a time. Go: GOMAXPROCS in the environment or in the code. A lock that all take shows in a profile (mutex, contention). Otherwise run more processes (Node.js: cluster), or several instances behind a proxy.
}
remedy-use-more-cores-risk = Each process needs memory. What they share (sessions, in-memory caches) must be stored outside of them.
remedy-spread-received-packets-text = Spread received packets over the cores: configure more queues of the network card (ethtool -L), or else receive packet steering (a mask of cores in /sys/class/net/DEVICE/queues/rx-0/rps_cpus).
remedy-spread-received-packets-risk = Moving packets between cores takes some CPU time. The programs on those cores get less.
remedy-give-more-heap-text = Start { $tier } with a larger heap: java -Xmx (its default is a quarter of the memory that the machine or the container has; -XX:MaxRAMPercentage changes that), DOTNET_GCHeapHardLimit for .NET, a larger GOGC or GOMEMLIMIT for Go, --max-semi-space-size and --max-old-space-size for Node.js. If it grows to any size, find what the program keeps: jcmd { $pid } GC.class_histogram.
remedy-give-more-heap-risk = It takes memory from whatever else runs there, and each collection of a larger heap may take longer.
remedy-look-at-answers-text = Judge the program by its responses: raise the load step by step (chokepoint bench --rate) until responses are late or fail. That is its capacity. If its cores are needed for something else, let it sleep when nothing arrives: a timeout in its poll or epoll_wait, HAProxy without busy-polling, net.core.busy_poll 0, the interrupt mode of a DPDK driver, idle_sleep of F-Stack.
remedy-look-at-answers-risk = A sleeping program must be woken for a request that finds it idle, which takes some microseconds.
