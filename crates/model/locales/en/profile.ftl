# Where the CPU time goes: layers, bounds, and what could be faster by them.

report-profile = Where the CPU time goes
report-profile-tier = { $tier } kept { $cores } cores busy: { $layers }.
report-profile-tier-cost = { $tier } kept { $cores } cores busy, { $duration } for each good answer: { $layers }.
report-profile-layer = { $title } { $share }

profile-others = other programs and the kernel's own work
profile-quality = { $samples } samples in the last { $seconds } s by { $clock }; { $lost ->
        [0] none was lost
        [one] one was lost
       *[other] { $lost } were lost
    }, { $broken } % of the user stacks break off.
profile-bound = { $what } of { $tier }, { $share } % of { $of }: { $gain } { $how }, counting this work alone.
profile-bound-by-none = without it
profile-bound-by-kernel-network = with a kernel bypass
profile-bound-by-connection = with connections that are kept
profile-bound-by-tls-handshake = with sessions that are resumed
profile-bound-by-tls-signature = with sessions that are resumed
profile-bound-by-script-compile = with scripts that stay compiled
profile-bound-by-error-log = with logs of errors alone
profile-bound-by-port-search = with ports that are reused
profile-gain-percent = { $gain } % more throughput
profile-gain-factor = { $factor } times the throughput
profile-of-cores = { $count ->
    [1] the time of core { $cores }
   *[other] the time of cores { $cores }
}
profile-of-threads = { $threads ->
    [1] the time of the one thread of { $tier } that serves
   *[other] the time of the { $threads } threads of { $tier } that serve
}
profile-no-bound = CPU time is not what limits: less of it would at first only mean more idle time.
profile-no-bound-polling = Which CPU time limits cannot be told: { $tier } polls and keeps its cores busy with or without requests.

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
layer-port-search = search for a free port
layer-scheduler = scheduler and wake-ups
layer-lock = locks
layer-page-fault = page faults
layer-interrupt = interrupts and timers
layer-polling = polling without work
layer-kernel-other = kernel, other
layer-unknown = no stack
layer-idle = idle
layer-kernel-network = all of the kernel's network path
layer-tls-handshake = TLS handshakes
layer-tls-signature = signatures with a private key
layer-script-compile = compiling scripts
layer-error-log = writing error logs
layer-softirq = soft interrupts for received packets

evidence-ports-search = In a profile the search took { $share } % ({ $low } to { $high } %) of the CPU time that limits { $tier }; most of it in { $function }, { $samples } samples.
evidence-hot-share = It is { $share } % ({ $low } to { $high } %) of { $of }, by { $samples } samples.
evidence-handshakes-unsent = It is what TLS took beyond the most that the bytes sent can explain, while most requests opened a connection.
evidence-sessions-refused = ssl_session_tickets is off and ssl_session_cache is { $cache }: sessions are neither kept by clients in tickets nor stored by the server, so that no client can resume one.
evidence-sessions-resumed = The server's configuration lets clients resume sessions: full handshakes are those of clients that offer none.
evidence-sessions-offered = Each connection of the load offered the session of an earlier one: { $full } handshakes were full, { $resumed } were resumed.
evidence-sessions-unoffered = The load offered no session, as it was told to: all of its { $full } handshakes would have been full in any case.
evidence-sessions-forbidden = ssl_session_cache stands in the configuration, so that somebody decided that nothing is stored.
evidence-sessions-verified = Some clients show certificates (ssl_verify_client), which are not looked at again in a resumed session: somebody has to decide that.
evidence-sessions-returning = { $share } % or more of the { $seen } connections seen came from an address that had another one before: their clients could have offered a session. Whether they would is not known.
evidence-sessions-signed = Resumed sessions need no signature: seen by its functions, it is { $share } % ({ $low } to { $high } %) of that time.
evidence-sessions-rest = Some stacks break off within TLS, most likely in the signature. Of them counts what is beyond the bytes sent and { $us } µs for each exchange of keys, more than any took.
evidence-debug-log = error_log { $to } logs: { $levels }. At these levels it tells each step of each request.
evidence-rewrite-log = rewrite_log is on, and its lines are logged.
evidence-debug-log-grew = The error logs of { $tier } grew by { $mib } MiB meanwhile, { $bytes } bytes for each request.
evidence-debug-log-memory = These lines stay in memory, which is meant for servers under load.
evidence-debug-connection = debug_connection asks for each step of some clients: somebody is looking for an error, and these lines stay whatever the level is.
evidence-hot-function = Most of it in { $function }.
evidence-hot-bound = Throughput could grow by { $gain } % ({ $low } to { $high } %) where as much of it goes as can be had, counting this work alone.
evidence-single-ran = { $tier } kept { $ran } cores busy.
evidence-single-idle = Of { $cores } cores on which it may run { $idle } were idle on average.
evidence-softirq-share = Core { $cpu } was { $busy } % busy, { $share } % ({ $low } to { $high } %) of that with soft interrupts for received packets; no other core was above 70 %.

finding-compression-hot-title = { $tier } spends { $share } % of { $of } on compression
finding-compression-hot-explanation = Nothing is wrong, and CPU time is the limit. A large part of it goes into compressing answers. A lower level costs about half and makes them a few per cent larger; files that do not change can be compressed once.
finding-tls-handshake-hot-title = { $tier } spends { $share } % of { $of } on TLS handshakes
finding-tls-handshake-hot-explanation = Nothing is wrong, and CPU time is the limit. A large part of it goes into handshakes, of which the signature with the server's private key is the most. Connections that are kept and sessions that are resumed need none, and an ECDSA key signs many times faster than an RSA key.
finding-tls-handshake-hot-title-refused = { $tier } refuses to resume TLS sessions and spends { $share } % of { $of } on full handshakes
finding-tls-handshake-hot-explanation-refused = CPU time is the limit. A large part of it goes into full handshakes, of which the signature with the server's private key is the most. A client that comes back could do without it, but this server lets nobody resume a session.
finding-tls-handshake-hot-explanation-resumed = Nothing is wrong, and CPU time is the limit. A large part of it goes into handshakes. Most of them resume a session already and need no signature; connections that are kept need none of them at all.
finding-opcode-cache-off-title = { $tier } spends { $share } % of { $of } on compiling scripts
finding-opcode-cache-off-explanation = CPU time is the limit. A large part of it goes into compiling scripts, which a server needs to do once and not for each request.
finding-debug-log-title = { $tier } writes a debug log, which takes { $share } % of { $of }
finding-debug-log-explanation = CPU time is the limit. A large part of it goes into a log that tells each step of each request. It helps who looks for an error, and nobody else.
finding-debug-log-explanation-meant = CPU time is the limit. A large part of it goes into a log that tells each step of each request. It was set up for a server under load, so that nothing is wrong; without it there would be more.
finding-allocator-hot-title = { $tier } spends { $share } % of { $of } in the allocator
finding-allocator-hot-explanation = Nothing is wrong, and CPU time is the limit. Part of it goes into allocating and freeing memory, more than noise could hide. Another allocator may do the same for less; it can also take more memory. What is shown is the most that there could be to gain.
finding-lock-contention-title = { $tier } spends { $share } % of { $of } on locks
finding-lock-contention-explanation = CPU time is the limit, and a large part of it goes into waiting for locks that another core holds, spinning or being put to sleep and woken up. Such time grows with the number of cores that want the same thing: more of them can make it slower.
finding-single-core-saturated-title = { $tier } serves with { $threads ->
    [1] one thread
   *[other] { $threads } threads
} and may run on { $cores } cores
finding-single-core-saturated-explanation = The threads that serve run all the time, each on one core at a time, while { $idle } cores are idle. More threads or processes could use them.
finding-softirq-on-one-core-title = core { $cpu } receives the packets for all
finding-softirq-on-one-core-explanation = One core is busy all the time, most of it with packets that come in, while the others have time to spare: the network card gives its packets to one core alone, and what they bring can be answered no faster than that core takes them in.
evidence-polling-quiet = In the { $ms } ms before the load, while next to nothing came in, { $threads ->
    [1] one thread of { $tier } that serves
   *[other] { $threads } threads of { $tier } that serve
} kept { $ran } cores busy and never slept.
evidence-polling-loaded = Under load, at { $goodput } good answers a second, { $tier } kept { $ran } cores busy: the time follows the clock and not the requests.
evidence-polling-sampled = { $share } % ({ $low } to { $high } %) of what { $tier } ran, by { $samples } samples, were functions that only ask whether something came.
finding-busy-polling-title = { $tier } polls: its busy cores are no evidence of load
finding-busy-polling-explanation = It asks again and again whether something came instead of sleeping until it does, and keeps { $ran } cores busy with or without requests. That is no fault, and it saves each request a wake-up; but neither the use of these cores nor a cost per request that is computed from it says how much more could be served.

remedy-compress-less-text = Compress less: a lower level (nginx: gzip_comp_level 1), only types that shrink (gzip_types), nothing small (gzip_min_length); compress what does not change beforehand (gzip_static on).
remedy-compress-less-risk = Answers grow: where the link is near its limit, that costs more than it saves.
remedy-resume-tls-sessions-text = Let clients come back without a whole handshake: a session cache shared by the workers (nginx: ssl_session_cache shared:TLS:10m, ssl_session_timeout 1h), connections that are kept longer (keepalive_timeout), and a certificate with an ECDSA key.
remedy-resume-tls-sessions-risk = Keys of session tickets must be changed now and then, or what was recorded can be read later. Very old clients know no ECDSA.
remedy-store-tls-sessions-text = Store TLS sessions in a cache that all workers share: ssl_session_cache { $cache } in the http block. Clients that come back resume theirs; tickets stay off.
remedy-store-tls-sessions-risk = Keys of sessions stay in the server's memory for as long as ssl_session_timeout says (5 minutes by default). The cache holds about { $sessions } sessions; the oldest go first. It holds for all servers of the http block that set none of their own.
remedy-log-errors-alone-text = Log errors alone: error_log { $to } at the level { $quiet } instead of { $levels }.
remedy-log-errors-alone-risk = The steps of requests are no longer logged: if an error is being looked for by this log, look first.
remedy-switch-steps-off-text = Take out what tells each step once nobody needs it: rewrite_log on, error_log memory:..., debug_connection.
remedy-switch-steps-off-risk = Whoever looks for an error by these lines loses them.
remedy-keep-scripts-compiled-text = Keep scripts compiled: for PHP opcache.enable=1 with enough opcache.memory_consumption and opcache.max_accelerated_files, for others what their documentation offers.
remedy-keep-scripts-compiled-risk = A changed script is seen only after opcache.revalidate_freq seconds, or after a reload where opcache.validate_timestamps is off.
remedy-try-another-allocator-text = Try another allocator without a rebuild: LD_PRELOAD=libjemalloc.so.2 in the service's environment, and measure both by turns under the same load.
remedy-try-another-allocator-risk = Memory use changes, and a program that relies on glibc's malloc hooks may break. Much of what programs allocate goes past malloc (nginx's pools, PHP's own allocator), which this does not change.
remedy-split-lock-text = Find out which lock it is (chokepoint profile shows its callers), then give each worker its own of what they share: a listener with reuseport, a log with a buffer, processes instead of threads, a shared memory zone less.
remedy-split-lock-risk = With reuseport each worker has a queue of its own: connections that wait for a busy worker are not taken over by a free one.
remedy-use-more-cores-text = Let it run on more cores: more worker processes or threads (nginx: worker_processes auto; Node.js: cluster; gunicorn: --workers), or several of it behind a proxy.
remedy-use-more-cores-risk = Each process needs memory, and what they share (sessions, caches in memory) must lie outside of them.
remedy-spread-received-packets-text = Spread received packets over the cores: more queues of the network card (ethtool -L), else receive packet steering (a mask of cores in /sys/class/net/DEVICE/queues/rx-0/rps_cpus).
remedy-spread-received-packets-risk = Packets change cores, which costs some CPU time of its own; the programs on those cores get less.
remedy-look-at-answers-text = Judge it by its answers: raise the load step by step (chokepoint bench --rate) until answers come late or fail; that is what it can do. Where its cores are wanted for something else, let it sleep when nothing comes: a timeout in its poll or epoll_wait, HAProxy without busy-polling, net.core.busy_poll 0, the interrupt mode of a DPDK driver, idle_sleep of F-Stack.
remedy-look-at-answers-risk = A program that sleeps is woken for each request that finds it idle, which costs some microseconds.
