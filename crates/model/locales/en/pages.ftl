# The pages of `chokepoint explain`: a station or a finding each, with the same five sections.

heading-limits = What it limits
heading-shows = How it shows
heading-sure = How sure
heading-remedies = Remedies and their risk
heading-sources = Sources

page-load-generator-title = Load generator
page-load-generator-limits =
    The client that offers the load. Where it is itself the limit, every figure is about the client and none about the server.
page-load-generator-shows =
    Its threads, with the soft interrupts attributed to them, use 90 % or more of the CPUs they may run on; or sends of an open loop go out late while it is busy; or its own ports, file descriptors or socket memory run out.
page-load-generator-sure =
    CPU time is the threads' own clock. Without exact accounting the kernel charges soft interrupts to whatever ran, so that clock has most of them in it; what ran in ksoftirqd on the generator's core is added. On a veth link about half a core of the server's receive work can run on the client's core.
page-load-generator-remedies =
    More threads (--threads), more cores, another host. Sharing cores with the server is a warning, not this finding.
page-load-generator-sources =
    clock_gettime(2) CLOCK_THREAD_CPUTIME_ID; /proc/PID/schedstat of ksoftirqd; the generator's own outcome counts.

page-load-generator-limited-title = The load generator was the limit
page-load-generator-limited-limits =
    The measurement itself: the server may have room that was never asked for.
page-load-generator-limited-shows =
    The verdict is client-limited and no rate verdict about the server is given. Refusals that the server counted are still findings.
page-load-generator-limited-sure =
    High where CPU or local errors show it. A server at its limit makes requests wait and the generator idle; a generator at its limit is busy.
page-load-generator-limited-remedies =
    Give the generator more threads or cores, spread it over hosts, or widen its own limits (port range, open files).
page-load-generator-limited-sources =
    As for station load-generator.

page-clients-title = Clients
page-clients-limits =
    The demand: a fixed number of connections with one request under way each can be answered no more often than one answer takes, and a fixed rate gives no more than itself.
page-clients-shows =
    Connections and their peak use. The ceiling of a closed loop is its connections over the time of an answer without any queue: the time for which it holds a worker, and its CPU. That of an open loop is its rate.
page-clients-sure =
    It is never a fault. Where it is the lowest ceiling the server is healthy and limited by demand, and a prediction that names it says that more connections would show the next limit. Without a worker pool on the path, the time of an answer has queues in it that cannot be told apart, and no ceiling is given for a closed loop.
page-clients-remedies =
    More connections (-c) or a higher rate (-q), to see what the server can do beyond.
page-clients-sources =
    The load's own shape and outcome counts; the sockets and processes of worker pools for the time of service.

page-link-title = Link
page-link-limits =
    The network interface through which the answers leave, at the device's speed or at the rate of the shaper on it, whichever is lower.
page-link-shows =
    Bits per second at 95 % or more of that rate. Then the server is healthy and limited by the link: fewer bytes per answer or a faster link are the only gain.
page-link-sure =
    Bytes are counted by the interface on the wire. veth and virtio devices know no speed: without a shaper such a link has no limit to compare with, and none is invented.
page-link-remedies =
    Compression, caching, smaller answers; raising the shaper's rate where it is yours.
page-link-sources =
    rtnetlink(7) IFLA_STATS64 and TCA_STATS2; ethtool link settings; tc(8).

page-transport-title = Transport
page-transport-limits =
    How soon what is sent arrives: TCP sends a lost packet again only after a timeout, or once later ones have arrived, and sends less at once after each loss.
page-transport-shows =
    Segments that each namespace of the path sent and sent again, and how often its senders waited for a timeout or a probe.
page-transport-sure =
    The counters are of a whole namespace: connections of other programs are in them. SYNs are left out, for full queues lose them as well, and so is what the peer reports to have had already (duplicate SACK): a peer that is slow to answer makes TCP send twice, and nothing was lost.
page-transport-remedies =
    See packet-loss: what is lost has to be found on the way.
page-transport-sources =
    Tcp.OutSegs and Tcp.RetransSegs of /proc/net/snmp (RFC 4022); TCPTimeouts, TCPLossProbes, TCPSynRetrans, TCPDSACKRecvSegs of /proc/net/netstat (Linux Documentation/networking/snmp_counter.rst); RFC 2883, RFC 6298, RFC 8985.

page-packet-loss-title = Packets get lost on the way
page-packet-loss-limits =
    Response time, and the throughput of clients that wait for an answer before they ask again: a lone lost packet costs at least a fifth of a second. Long answers: with a share p of the segments lost the congestion window is about 1.22 / sqrt(p) segments.
page-packet-loss-shows =
    Segments sent again in a namespace of the path, and senders that waited for a timeout or a probe; as many requests that took a fifth of a second longer than the others, and that was a tenth of the clients' time or one of a hundred requests. Or answers of more than ten segments, for which the additional round trips of the smaller window are a third of the response time. All this with cores that have room.
page-packet-loss-sure =
    High where requests waited as long as a timeout takes and as often as the counters say; medium where the time of long answers is worked out from the share of loss and the time of a connect. Silent where this host itself explains a tenth of what was lost: a full accept queue, SYN queue or connection tracking table, sockets that are not read, backlogs of busy cores, or a shaper at four fifths of its rate or more, which drops because it is full (see link). Silent, too, where the load hardly suffers: every long line loses a packet now and then. A policer elsewhere, beyond this host, cannot be told from a bad line.
page-packet-loss-remedies =
    Words alone: find where they vanish. Interfaces and their queues count what they drop on this host; beyond it, captures at both ends tell.
page-packet-loss-sources =
    As for station transport; TCP_RTO_MIN in include/net/tcp.h; Mathis, Semke, Mahdavi and Ott 1997.

page-sending-title = Sending
page-sending-limits =
    How fast what a server has written leaves its sockets: what a send buffer holds, what the peer's window and the congestion window allow, and how soon acknowledgements come back.
page-sending-shows =
    Of up to 32 connections of each namespace, sampled once a second, how many have something to send, and how much of that time passed with a full send buffer or with the peer's window full.
page-sending-sure =
    The kernel keeps these times for each connection. Those that have something to send are sampled first, and none is where connections go over unix sockets or to another host. Not shown where the kernel does not tell of single sockets.
page-sending-remedies =
    See the findings: send-buffer-limited, delayed-ack-stall, small-initial-window, receiver-limited.
page-sending-sources =
    struct tcp_info (linux/tcp.h) and SK_MEMINFO_SNDBUF by sock_diag(7); tcp(7).

page-send-buffer-limited-title = The send buffer holds less than the way does
page-send-buffer-limited-limits =
    What one connection carries: a full buffer in each round trip. Long answers take as many round trips as they have buffers.
page-send-buffer-limited-shows =
    Sampled connections whose busy time passes with a full send buffer of which all is sent (sndbuf_limited): a third of the time of the requests under way or more, on a way of 1 ms or longer, with cores that have room.
page-send-buffer-limited-sure =
    High: the kernel itself keeps the time. Silent where round trips take twice as long as the shortest one, for then a queue on the way is full and a larger buffer would only fill it; where the peer's window holds back more; where the way is so short that the receiver is waited for; and without load of our own.
page-send-buffer-limited-remedies =
    A larger net.ipv4.tcp_wmem where buffers have grown as far as that allows; otherwise the program set SO_SNDBUF, and words tell what to take out.
page-send-buffer-limited-sources =
    tcpi_sndbuf_limited, tcpi_busy_time, tcpi_min_rtt, SK_MEMINFO_SNDBUF; net.ipv4.tcp_wmem (tcp(7)); tcp_sndbuf_expand in net/ipv4/tcp_input.c.

page-delayed-ack-stall-title = Small writes wait for delayed acknowledgements
page-delayed-ack-stall-limits =
    Response time: about 40 ms more for each answer, and with it the throughput of clients that wait for an answer before they ask again.
page-delayed-ack-stall-shows =
    Sampled connections with less than a segment unsent beside sent and unacknowledged data, both windows open, on a way much shorter than the time since the last packet; in a third of the time of the requests under way or more, and a quarter of the requests take 36 ms or longer.
page-delayed-ack-stall-sure =
    High: no other state of a healthy connection looks like it. The counter of delayed acknowledgements does not tell, for they are sent without harm all the time. Silent on ways of 20 ms or longer, where they cannot be told from the way itself, on connections that lost something, and without load of our own.
page-delayed-ack-stall-remedies =
    Words: TCP_NODELAY, or one write for an answer.
page-delayed-ack-stall-sources =
    tcpi_notsent_bytes, tcpi_unacked, tcpi_last_data_sent, tcpi_min_rtt; RFC 896, RFC 1122 4.2.3.2; TCP_DELACK_MIN in include/net/tcp.h.

page-small-initial-window-title = New connections begin with few segments
page-small-initial-window-limits =
    Response time on new connections: an answer takes as many round trips as a window that begins small and doubles needs for it.
page-small-initial-window-shows =
    Sampled connections that have sent their first flight, of which nothing is acknowledged yet, with a window below ten segments; answers so long, and a way so long, that the additional round trips are a third of the median response time; half of the requests or more on a connection of their own; cores with room.
page-small-initial-window-sure =
    Medium: the additional round trips are worked out, as few as any congestion control makes of them. Silent with ten segments or more, which is what Linux does by itself, however long the answers are; on kept connections, also where they rest and begin anew (net.ipv4.tcp_slow_start_after_idle); on ways shorter than 1 ms; for connections between tiers; and without load of our own.
page-small-initial-window-remedies =
    Words: the route's initcwnd.
page-small-initial-window-sources =
    tcpi_snd_cwnd, tcpi_delivered, tcpi_min_rtt; RFC 6928, RFC 5681; ip-route(8).

page-receiver-limited-title = The clients take no more
page-receiver-limited-limits =
    What one connection carries: a receive window in each round trip. The server has no part in it.
page-receiver-limited-shows =
    Sampled connections to clients whose busy time passes with the peer's window full (rwnd_limited): a third of the time of the requests under way or more, on a way of 1 ms or longer, with servers that have room. The verdict is client-limited.
page-receiver-limited-sure =
    High: the kernel itself keeps the time. Silent on shorter ways, where the window is full because the client has no core; where the send buffer holds back more; for connections between tiers; and without load of our own.
page-receiver-limited-remedies =
    Words for the clients.
page-receiver-limited-sources =
    tcpi_rwnd_limited, tcpi_busy_time, tcpi_snd_wnd, tcpi_min_rtt; net.ipv4.tcp_rmem (tcp(7)).

page-conntrack-table-title = Connection tracking table
page-conntrack-table-limits =
    How many connections the firewall can follow at once, closed ones included until their entries expire. It is a cliff: harmless until full, then nothing new gets through.
page-conntrack-table-shows =
    nf_conntrack_count against nf_conntrack_max, and the column "drop" of /proc/net/stat/nf_conntrack.
page-conntrack-table-sure =
    "drop" alone proves nothing, for it also counts clashes that could not be resolved; a table near its limit alone harms nobody; "early_drop" means that the kernel made room. Only all together count: entries at 95 % or more of the limit, drops that grow, and requests that time out or take as long as a lost SYN takes. The count is kept per network namespace; on most kernels the limit is the host's and read-only elsewhere.
page-conntrack-table-remedies =
    See conntrack-table-full.
page-conntrack-table-sources =
    Linux Documentation/networking/nf_conntrack-sysctl.rst; net/netfilter/nf_conntrack_core.c; /proc/sys/net/netfilter; /proc/net/stat/nf_conntrack (read by its header, columns differ by kernel); /proc/net/nf_conntrack.

page-conntrack-table-full-title = The connection tracking table is full
page-conntrack-table-full-limits =
    Every new connection through this network namespace, also those between the servers on it over loopback where the firewall tracks them.
page-conntrack-table-full-shows =
    Clients time out connecting while the server idles; goodput falls to nearly nothing; the kernel log says "nf_conntrack: table full, dropping packet", rate limited. Expired entries still count until they are collected, 15 to 90 s later.
page-conntrack-table-full-sure =
    High: entries at the limit, drops counted and time-outs seen by the client or told by the kernel log. Medium or low where one of these could not be read. Silent where the table is nearly full and nothing is dropped, where drops come from clashes in an empty table, where early eviction makes room, and where less than one request in a thousand suffered or all pages are as slow as a lost SYN makes them: then it is somebody else's packets that are dropped.
page-conntrack-table-full-remedies =
    Best is to need fewer entries: reuse connections (keep-alive), shorter time-outs for closed connections, or no tracking of this flow (notrack) where no rule needs its state. Raising the limit works at once and costs about 320 bytes of kernel memory an entry when used; buckets are raised with it where chains would grow long. It holds for the whole host. Undo sets the old value back, and entries above it stay until they expire.
page-conntrack-table-full-sources =
    As for station conntrack-table, and the kernel log (/dev/kmsg).

page-syn-queue-title = SYN queue
page-syn-queue-limits =
    Handshakes that are open at each listener: its SYN came, its SYN-ACK went, the last packet has not come. As many as may wait to be accepted (the smaller of the listen() backlog and net.core.somaxconn); with SYN cookies off at the most three quarters of net.ipv4.tcp_max_syn_backlog, the rest being kept for peers that the kernel has measured before.
page-syn-queue-shows =
    Sockets in SYN-RECV against that limit, and the counters of what found no room: TCPReqQFullDrop where the listener's own limit was reached with cookies off, ListenDrops without ListenOverflows where tcp_max_syn_backlog was, TCPReqQFullDoCookies where cookies were sent instead.
page-syn-queue-sure =
    A full queue with cookies on refuses nobody. The counters are the namespace's: they are this listener's as far as its own drop counter allows, and as its queue was seen full. A short listen() backlog shortens this queue too, so that "possible SYN flooding" in the kernel log can be harmless.
page-syn-queue-remedies =
    See syn-queue-full: SYN cookies, or room for more handshakes.
page-syn-queue-sources =
    net/ipv4/tcp_input.c (tcp_conn_request); tcp(7); Linux Documentation/networking/ip-sysctl.rst; /proc/net/netstat; sock_diag(7).

page-syn-queue-full-title = A SYN queue is full and SYN cookies are off
page-syn-queue-full-limits =
    New connections to this listener: a SYN that finds no room is dropped, whoever sent it.
page-syn-queue-full-shows =
    Clients time out connecting or take 1, 3 or 7 seconds, while the server idles and kept connections go on undisturbed. The kernel log may say "possible SYN flooding ... Dropping request", once for each listener.
page-syn-queue-full-sure =
    High with a load whose connects suffered and the queue seen full; medium where only counters tell. It is a symptom where the accept queue of the same listener overflows, for a handshake stays open until that has room. Silent with cookies on, where drops harmed less than one connect of the load in a thousand, and where the queue is short but never full.
page-syn-queue-full-remedies =
    SYN cookies (net.ipv4.tcp_syncookies = 1, the kernel's default) act at once, only while the queue is full, and cost a few TCP options where a client sends no timestamps. Raising net.ipv4.tcp_max_syn_backlog gives room for bursts and slow handshakes up to the listener's own backlog; a flood fills any queue. Then look for whose handshakes stay open: a flood is stopped before the server, and a firewall or route that swallows SYN-ACKs or last packets wants mending. Undo sets the old values back.
page-syn-queue-full-sources =
    As for station syn-queue.

page-accept-queue-title = Accept queue
page-accept-queue-limits =
    Connections that are established and wait for the server's process to accept them, for each listener apart. Its limit is the smaller of the listen() backlog and net.core.somaxconn at the time of listen().
page-accept-queue-shows =
    Recv-Q of the listener reaches Send-Q + 1 and the listener's own drop counter grows (TcpExt.ListenOverflows for the namespace as a whole). Clients see connections that take 1 or 3 seconds.
page-accept-queue-sure =
    The listener's own drop counter names it surely. Sampling 20 times a second sees a full queue only in one sample of ten; the counter misses none. ListenDrops counts other things too; unix sockets are never in these counters: their queue is read by unix_diag, and the error log of the server that connects (errno 11) counts who was turned away.
page-accept-queue-remedies =
    A longer queue helps only a server that had time to accept and was hit by a burst; in front of workers that are blocked or too few it adds waiting and nothing else.
page-accept-queue-sources =
    listen(2); sock_diag(7) INET_DIAG_SKMEMINFO (ninth word) and UDIAG_SHOW_RQLEN; /proc/net/netstat.

page-accept-queue-full-title = An accept queue overflows
page-accept-queue-full-limits =
    New connections to this listener: those that find its queue full are dropped and come again a second or more later.
page-accept-queue-full-shows =
    The listener's own drop counter grows, p99 rises to one second and more while goodput may stay, some clients starve. At a unix socket nobody is put off: connect() fails at once with errno 11, nginx logs that and answers 502.
page-accept-queue-full-sure =
    It is a cause where the process keeps up on average and waiting in a longer queue would be shorter than the client's retry of one second; it is a symptom where the queue stands full and waiting would be longer, for then the workers behind it are too few or blocked, or the cores are all busy. Low where the kernel's count of overflows could not be read and the queue was not seen full: a listener drops for other reasons, too. Silent where a queue is small and never overflows, where less than one request, or one of those who came, in a thousand suffered, where only the burst overflowed with which a load begins, and where requests fail for another reason.
page-accept-queue-full-remedies =
    Raise the listen() backlog and net.core.somaxconn together; the server must call listen() again (nginx does at a reload only where backlog= changed, php-fpm only at a restart). Costs a little memory per waiting connection.
page-accept-queue-full-sources =
    As for station accept-queue.

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

page-file-descriptors-title = File descriptors
page-file-descriptors-limits =
    The files, sockets and pipes that one process may have open at once: the soft limit of RLIMIT_NOFILE. It is each process's own; the host's limit (fs.file-max) is another one.
page-file-descriptors-shows =
    Open descriptors of the process that is nearest to its limit.
page-file-descriptors-sure =
    Descriptors are counted about once a second, for a pool of more than eight processes in turns. The limit is the one in force, whatever a configuration says.
page-file-descriptors-remedies =
    See file-descriptors-exhausted.
page-file-descriptors-sources =
    getrlimit(2); /proc/PID/fd and /proc/PID/limits (proc(5)).

page-file-descriptors-exhausted-title = A process has no file descriptor left
page-file-descriptors-exhausted-limits =
    New connections: accept() fails and they stand in the accept queue. Or answers: the upstream or the file cannot be opened, and the client gets a 500.
page-file-descriptors-exhausted-shows =
    Errno 24 (EMFILE) in the server's error log, or a process that stays at its limit while connections wait for it. Clients wait half a second and longer, time out, or get errors. nginx says "accept4() failed (24: Too many open files)" and stops to accept for half a second each time.
page-file-descriptors-exhausted-sure =
    High where the error log has the errno and the failures or pauses are large enough to explain what this load suffered; medium where only the number of open files, the queue and the failures tell, as for any program without a log that is known. Silent where a process has just as many files as it needs, and where nobody suffers. An accept queue that overflows before such a process is its symptom.
page-file-descriptors-exhausted-remedies =
    nginx: worker_rlimit_nofile, in force after a reload; a master that runs as root may give its workers any number up to fs.nr_open. php-fpm: rlimit_files. Other programs: LimitNOFILE= of the unit that starts them, and prlimit(1) for those that run. A program that leaks descriptors needs mending, not a higher limit.
page-file-descriptors-exhausted-sources =
    As for station file-descriptors; accept(2), socket(2), open(2); nginx: ngx_event_accept.c (accept_mutex_delay).

page-rate-limit-title = Rate limit
page-rate-limit-limits =
    What the configuration itself lets one client have where this request goes: requests a second (limit_req of nginx) or connections at once (limit_conn). Limits of other places are not counted.
page-rate-limit-shows =
    The rate of the zone against the goodput. The limit that holds this traffic is shown, else the lowest one on its way.
page-rate-limit-sure =
    Where a request goes is followed through the configuration as nginx does: address, name, location. Where files, conditions or expressions decide, only the log can tell. A dry run limits nothing.
page-rate-limit-remedies =
    See rate-limited-by-config.
page-rate-limit-sources =
    nginx: ngx_http_limit_req_module, ngx_http_limit_conn_module.

page-rate-limited-by-config-title = The configuration limits this traffic
page-rate-limited-by-config-limits =
    Requests of one client (one value of the zone's key, mostly the address) above the rate, or beyond so many connections at once.
page-rate-limited-by-config-shows =
    Answers with the limit's status (503, or limit_req_status, limit_conn_status) and lines "limiting requests" or "limiting connections" with the zone's name in the error log. With burst and without nodelay nothing fails at first: requests wait, and goodput is the rate to the digit. Without any burst it is less than the rate: nginx counts in whole milliseconds, so that of 314 a second, a turn of 3.2 ms, one in 4 ms passes, and never more than 1,000 a second.
page-rate-limited-by-config-sure =
    High where the zone's own lines in the error log are as many as half of those answers or delays; medium where the log does not tell, but the limit is surely on the request's way and goodput is just what it lets through. Silent where the rate is not reached, where the limit belongs to another location, and where answers with that status come from elsewhere. A load generator is one address: real clients, each with its own, may never meet the limit.
page-rate-limited-by-config-remedies =
    Ask its owner: the lines are shown, and nothing is changed from here. A test may be let through by a key that is empty for its address (geo and map).
page-rate-limited-by-config-sources =
    As for station rate-limit.

page-setting-not-in-force-title = What is written is not in force
page-setting-not-in-force-limits =
    A listener whose accept queue is shorter than its configuration says, or a pool with fewer workers: somebody has mended it already, but only on paper.
page-setting-not-in-force-shows =
    An accept queue that overflows (accept-queue-full) at a limit below both the backlog in the server's configuration and net.core.somaxconn as it is now; or a pool of php-fpm that is exhausted (worker-pool-exhausted) with fewer workers than pm.max_children in a file which was changed after the workers had been started.
page-setting-not-in-force-sure =
    As sure as the finding that it is the cause of: the limit in force is the kernel's own word or the number of processes, what is written is read from the file. Silent where nobody suffers; where what is written would not have room for the requests that are under way at once (for a pool: neither for those that wait nor twice the workers); where net.core.somaxconn itself is what is too small; where a file was only touched; before a pool that is exhausted, and where the workers wait for another server. A file that was put in its place with an older time counts as read.
page-setting-not-in-force-remedies =
    A raised backlog or net.core.somaxconn counts only from the next listen() on: nginx calls it at a reload only where the value of backlog= is another, php-fpm only when it is started (chokepoint calls it on a duplicate of the socket). A file that was edited and not read is reloaded by its owner, because nobody else knows what else was changed in it. php-fpm ends the requests in service at a reload, unless process_control_timeout gives them time.
page-setting-not-in-force-sources =
    listen(2); sock_diag(7) for the limit in force; time of the last change of the configuration's files (stat(2)), start of the workers (/proc/PID/stat) and of the kernel (btime of /proc/stat); ngx_cycle.c (ngx_init_cycle, ngx_open_listening_sockets); fpm_sockets.c.

page-ephemeral-ports-title = Ephemeral ports
page-ephemeral-ports-limits =
    How many connections a tier can have at once to one upstream address and port from one local address: the ports of net.ipv4.ip_local_port_range without the reserved ones. Divided by the time that a request keeps one taken they are the most that can pass: the life of the connection where the upstream closes first, and its TIME_WAIT (60 s, or net.ipv4.tcp_tw_reuse_delay where it may be taken over) where the dialling side does.
page-ephemeral-ports-shows =
    Live connections and, on the dialling side, sockets in TIME_WAIT towards that address and port, against the number of ports.
page-ephemeral-ports-sure =
    Only the dialling side takes ports: TIME_WAIT on the accepting side is harmless, however many there are, and so is a host-wide number of TIME_WAIT sockets. Where the upstream closes first, its TIME_WAIT does not hold the dialling side's port. The range is a namespace's own.
page-ephemeral-ports-remedies =
    See ephemeral-ports-exhausted and time-wait-port-search.
page-ephemeral-ports-sources =
    sock_diag(7), all states; Linux Documentation/networking/ip-sysctl.rst; net/ipv4/inet_hashtables.c.

page-ephemeral-ports-exhausted-title = No local port is left towards an upstream
page-ephemeral-ports-exhausted-limits =
    New connections of this tier to this upstream: connect() fails at once with EADDRNOTAVAIL (99), and the client gets a 502.
page-ephemeral-ports-exhausted-shows =
    Nine tenths or more of the usable ports taken towards one address and port, and error answers of the gateway.
page-ephemeral-ports-exhausted-sure =
    Medium from 502s and full ports; high where the server's error log names errno 99, which no counter does; then half of the ports seen taken are enough, and no load is needed. Silent at 80 % use, where ports are full but nothing failed, and where nginx's error log was read and does not name errno 99.
page-ephemeral-ports-exhausted-remedies =
    Best is to need fewer: reuse connections to the upstream (keepalive). Then a wider range, more addresses on either side, tcp_tw_reuse where the dialling side closes first. A wide range may collide with services that start later; reserve their ports.
page-ephemeral-ports-exhausted-sources =
    As for station ephemeral-ports.

page-time-wait-port-search-title = The search for a free port burns the CPU
page-time-wait-port-search-limits =
    New connections of this tier to this upstream: each walks all ports in TIME_WAIT before it finds a free one.
page-time-wait-port-search-shows =
    A profile in which the search for a port takes so much of the CPU time that limits the dialling tier that throughput would rise by a tenth or more without it. Without a profile: on the dialling side, sockets in TIME_WAIT towards one address and port near half of the usable range (connect() prefers one parity), no reuse in force, the tier's cores busy. No error is counted anywhere. Reproduced: 13,000 requests/s fall to 140.
page-time-wait-port-search-sure =
    High where a profile shows the search in more of the CPU time than noise could hide, medium without one: the mechanism is certain, its share is not measured then. Silent where a profile shows that the search is too cheap to matter, where reuse is in force for the remote address, where TIME_WAIT is on the accepting side, where the cores have time to spare, and where the dialling tier itself takes less than a tenth of them in the kernel: then it is the pages that compute. Kernels differ in the cost of the search.
page-time-wait-port-search-remedies =
    Best is to reuse connections to the upstream. Then tcp_tw_reuse 1: it helps the dialling side alone, needs timestamps, and takes a port over after one second. tcp_tw_recycle no longer exists.
page-time-wait-port-search-sources =
    As for station ephemeral-ports; `__inet_hash_connect`, `__inet_check_established`, `tcp_twsk_unique` in the kernel's source.

page-upstream-connect-title = Connections towards an upstream
page-upstream-connect-limits =
    How often a tier waits for a handshake, and how much CPU both ends spend on opening, accepting and closing: once a request, or once for many.
page-upstream-connect-shows =
    Connections opened a second, in the namespace of the tier that dials, and what its configuration says of reuse.
page-upstream-connect-sure =
    The configuration tells what is meant, the counter what happens. For unix sockets nothing counts. Connections that another program of the same namespace opens are in the counter too: it can show that a request has no connection of its own, and not for which edge it has one.
page-upstream-connect-remedies =
    See upstream-connection-churn.
page-upstream-connect-sources =
    Tcp.ActiveOpens in /proc/net/snmp (RFC 4022); sock_diag(7) for connections in SYN-SENT; nginx: ngx_http_upstream_module (keepalive, keepalive_requests), ngx_http_fastcgi_module (fastcgi_keep_conn).

page-upstream-connection-churn-title = A connection is opened for each request
page-upstream-connection-churn-limits =
    Throughput where pages are cheap, since opening a connection is a large part of their CPU; response time where the upstream is far, since each request waits a round trip first.
page-upstream-connection-churn-shows =
    No reuse in the configuration and about one connection opened a request. A cause where the cores are the limit, nothing else is a cause, and a profile shows that opening and closing these connections takes so much of their time that throughput would rise by a tenth or more without it, by the lower end of the interval; told under "Could be faster" where that is not sure, or where no profile was taken and a connection is a tenth or more of the CPU that a request costs. A cause, too, where requests wait for their connection in a third or more of their time, the cores are idle and no SYN was lost.
page-upstream-connection-churn-sure =
    High where the counter shows it, medium for unix sockets, of which only the configuration tells. What it would give is measured, not promised. Silent where pages cost much more than a connection, where the load does not reach the upstream, where connections are kept, where cores are idle and connecting is quick, while anything else is a cause, and where an open loop gets all of its answers.
page-upstream-connection-churn-remedies =
    Reuse with a bound. A kept connection holds a worker that serves one connection at a time (php-fpm, prefork): unbounded reuse doubles the throughput of some connections while the others starve (p99 96 ms to 1.5 s, and timeouts, at 1,000 clients and 20 workers). So the connections that are kept over all of nginx's workers stay below four fifths of the pool, and each is closed after 5, 20 or 100 requests (keepalive_requests, from nginx 1.15.3 on). With --fix, once something else was mended, the three are measured one after the other, and the best within the objective is kept: by default a p99 below half of the request's timeout and no more failures. A literal address in fastcgi_pass gets an upstream block of its own; undo puts the file back byte for byte.
page-upstream-connection-churn-sources =
    As for station upstream-connect.

page-idle-close-race-title = Kept connections are closed under a request
page-idle-close-race-limits =
    Correct answers: requests that may not be sent twice fail with 502, now and then and at any load, most where connections are idle for about as long as the upstream keeps them.
page-idle-close-race-shows =
    A configuration that keeps connections; lines in nginx's error log that the upstream closed or reset the connection before it answered; answers with 502, at least one of a thousand requests; and resets that the upstream's own namespace sent for at least half of those lines.
page-idle-close-race-sure =
    High where the upstream is on this host, so that its resets are counted; medium where it is elsewhere, and there only lines that say "reset" count. Silent where no request failed (nginx asks again where it may), where connections are not kept, where the upstream refused connections, ran out of connections, overflowed its accept queue, or where one of its processes was started or ended meanwhile: all of these end connections as well, and so does a program that dies within a request, but that sends no reset.
page-idle-close-race-remedies =
    Words alone: the idle timeout of the side that dials must be the shorter one. Which of both is to change depends on who owns them.
page-idle-close-race-sources =
    nginx error log; Tcp.OutRsts of /proc/net/snmp (RFC 4022); RFC 9293, section 3.10.7.1 (a segment that comes to a closed socket is answered by a reset); RFC 9112, section 9.6; ngx_http_upstream_module (keepalive_timeout), ngx_http_proxy_module (proxy_next_upstream).

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

page-waiting-title = Waiting inside a program
page-waiting-limits =
    What a program does between reading a request and answering it, other than computing or asking another server: waiting for a lock, for one of a limited number of places, for a connection of its pool, for a timer or an event.
page-waiting-shows =
    Requests that a tier has read and not answered, less those on a CPU, ready for one or stopped by a quota (its threads' scheduler statistics), and less those for which one of its connections waits for another server. Sampled about five times a second.
page-waiting-sure =
    As sure as the account of where requests stood. Connections that carry several requests at once (HTTP/2) or send without being asked (events) are left out. Not shown where requests were not sampled.
page-waiting-remedies =
    See the finding: waits-inside.
page-waiting-sources =
    struct tcp_info (linux/tcp.h) by sock_diag(7); /proc/PID/task/TID/schedstat; Little 1961 (the mean number at a place is the time spent there each second).

page-waits-inside-title = Requests wait inside a program
page-waits-inside-limits =
    Throughput and response time, with cores, links and servers behind at rest: requests wait for each other where nothing outside the program shows it.
page-waits-inside-shows =
    Surely more than half of all requests under way stand inside one program that neither computes nor waits for a server, and one of three things shows that they wait for each other. With load: taken away what would stand there if each took as long as one alone, still more than half of all wait. All connections of the program to one address are in use in nearly every sample. Or, watched: the clients keep their connections and ask again on them at once, so that most of the time none is free, and the ages of the requests are spread more evenly than chance spreads them in thirty-nine of forty cases, as where something lets them pass one by one.
page-waits-inside-sure =
    High with load, or where connections show it; medium where only the evenness of the answers does. A cause only where no other station found one and neither cores nor links are full. Silent where clients have little under way; where an answer takes as long alone as under load, however long that is; for long polling, timers and events, each of which ends by itself (watched, the verdict is then unknown, not healthy); where more connections carry several requests at once than make the difference; for a single request at a time. A limit whose service times vary as much as chance does, clients that open a connection for each request, and a crowd of more than some hundred connections, of which only a share is sampled, cannot be told from such waiting while watching: unknown as well.
page-waits-inside-remedies =
    More connections to the server behind, where these are the limit and that server has room. Else look at what the threads wait for: chokepoint profile --off-cpu --pid PID shows the stacks at which they stop.
page-waits-inside-sources =
    As for station waiting. Queues in closed networks: Denning and Buzen 1978. Evenness: Watson's U² (1961), with Stephens' correction for small numbers (1970).

page-cpu-quota-title = CPU quota
page-cpu-quota-limits =
    The CPU time that a cgroup allows its processes in each period (CFS bandwidth control): quota divided by period is a number of cores. That number divided by CPU-seconds per good answer is the most the servers in it can give, however many cores the host has.
page-cpu-quota-shows =
    Cores used against cores allowed, and the periods at whose end the cgroup was stopped. Of all quotas that hold a tier, on its own cgroup or on one around it, the tightest is shown; a tier without any has no such station.
page-cpu-quota-sure =
    The kernel counts periods and CPU time itself. Where it keeps no account of a cgroup's CPU time, that of the processes seen on the path stands for it. A quota of a cgroup that is above what this cgroup namespace shows cannot be seen: inside a container the host's own limits of it may be hidden. The number of cores that a program counts (worker_processes auto) says nothing about its quota.
page-cpu-quota-remedies =
    See cgroup-cpu-throttled.
page-cpu-quota-sources =
    cgroups(7); /proc/PID/cgroup and /proc/PID/mountinfo (proc(5)); version 1: cpu.cfs_quota_us, cpu.cfs_period_us, cpu.stat, cpuacct.usage; version 2: cpu.max, cpu.stat; Linux Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst.

page-cgroup-cpu-throttled-title = A CPU quota stops servers whose cores have more to give
page-cgroup-cpu-throttled-limits =
    All requests that need CPU time of the servers in this cgroup. When the quota of a period is used up, every process in the cgroup stands still until the next period begins, mostly a tenth of a second.
page-cgroup-cpu-throttled-shows =
    nr_throttled of cpu.stat grows while the cores are idle or serve others. Where the quota is too small for the load, it does so in nearly every period, goodput stays at what the quota has CPU time for, and the accept queue and the workers in front fill up. Where it is only too small for bursts, goodput is right and the slowest answers take about a period longer.
page-cgroup-cpu-throttled-sure =
    With load of our own: the cgroup was stopped in at least half of all periods of the window, used three quarters of its quota or more, most of it for the servers of the path, the cores on which they may run had something left, be it what other programs used (half of that counts), and the load would have taken more. Or the p99 is above --slo while half of the requests keep to it, and they were stopped for long enough to explain that. Watching alone: the same as the first with traffic, and medium. Silent where a quota is large enough, where it stops its processes at a start or now and then, and where the cores are busy with the servers themselves: then the cores are the limit. A full accept queue, all workers taken, and connections used up in the same servers are its symptoms. What the cgroup does not know is the cost of an answer at full speed: where the cores are next, no goodput is predicted.
page-cgroup-cpu-throttled-remedies =
    A larger quota: written to the cgroup's file at once (raise-cpu-quota), no further than there are cores, taken back by undo. It lasts until the cgroup ends or its manager writes it anew, so that what made the cgroup must be told as well: CPUQuota= of a systemd unit, --cpus of a container, limits.cpu of a pod. Whoever set it may have meant it. Fewer threads than cores times quota make bursts shorter; a shorter period makes stops shorter and costs more switches.
page-cgroup-cpu-throttled-sources =
    As for station cpu-quota; kernel/sched/fair.c (struct cfs_bandwidth).

page-cpu-title = CPU
page-cpu-limits =
    The cores on which the servers of the path may run: cores divided by CPU-seconds per good answer is the most they can give.
page-cpu-shows =
    All of those cores busy 95 % of the time or more, or 90 % where on average at least as many threads waited for a core as there are cores. Then the server is healthy and limited by CPU; that is no fault but physics.
page-cpu-sure =
    Busy time is counted in clock ticks per core, and is at least what the servers' own clocks tell: ticks miss work that the same clock sets off. An average over cores hides one hot core, so only the cores that the servers may use are counted, and each is read apart. Programs that poll burn 100 % doing nothing. The cost of an answer falls by a fifth to three fifths as load rises, which the ceiling allows for; what failed answers cost and what other programs took is left out of it.
page-cpu-remedies =
    Cheaper answers (profile first), more cores, fewer other programs on them.
page-cpu-sources =
    proc(5) /proc/stat, /proc/PID/stat, /proc/PID/schedstat; Denning and Buzen 1978, operational analysis.

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
