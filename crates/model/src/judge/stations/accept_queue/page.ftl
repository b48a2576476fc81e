# `chokepoint explain accept-queue`: the pages of the station and of its findings, with the same five sections.

page-accept-queue-title = Accept queue
page-accept-queue-limits =
    Established connections that wait for the server to accept them, per listener. The limit is the smaller of the listen() backlog and net.core.somaxconn at the time of listen(). Defaults: somaxconn is 4096 since Linux 5.4 and 128 before; the backlog is 511 in nginx and, on Linux, in php-fpm.
page-accept-queue-shows =
    Recv-Q of the listener reaches Send-Q + 1, and the listener's own drop counter grows (TcpExt.ListenOverflows for the whole namespace). Some clients take 1, 2, 3 or more seconds to connect: those whose SYN was dropped and sent again.
page-accept-queue-sure =
    The listener's own drop counter is proof. Sampling 20 times a second sees a full queue in about one sample of ten; the counter misses none. ListenDrops also counts other drops. Unix sockets are in none of these counters: unix_diag shows their queue, and the error log of the connecting server counts the refused connections (errno 11).
page-accept-queue-remedies =
    A longer queue helps only a server that has time to accept and was hit by a burst. In front of blocked or too few workers it only adds waiting time.
page-accept-queue-sources =
    listen(2); sock_diag(7) INET_DIAG_SKMEMINFO (ninth word) and UDIAG_SHOW_RQLEN; /proc/net/netstat; Linux Documentation/admin-guide/sysctl/net.rst and include/linux/socket.h (SOMAXCONN); nginx: NGX_LISTEN_BACKLOG, https://nginx.org/en/docs/http/ngx_http_core_module.html#listen; php-fpm: https://www.php.net/manual/en/install.fpm.configuration.php.

page-accept-queue-full-title = An accept queue overflows
page-accept-queue-full-limits =
    New connections to this listener. The kernel drops those that find the queue full, and the client sends its SYN again after 1, 2, 3, 4, 5, 7 and 11 s (net.ipv4.tcp_syn_linear_timeouts is 4 by default since Linux 6.5; before, and with 0, after 1, 3, 7 and 15 s).
page-accept-queue-full-shows =
    The listener's own drop counter grows, and p99 rises to a second or more while goodput may stay the same and some clients get nothing. A unix socket does not retry: connect() fails at once with errno 11, nginx logs it and answers 502.
page-accept-queue-full-sure =
    It is a cause if the server keeps up on average and the wait in a longer queue would be shorter than the client's retry of one second. It is a symptom if the queue stays full and the wait would be longer: then the workers are too few or blocked, or the cores are busy. Confidence is low if the kernel's count of overflows could not be read and the queue was not seen full, because a listener drops connections for other reasons too. Silent if a small queue never overflows, if too few requests were affected to count as harm, if only the burst at the start of a load overflowed, and if requests fail for another reason.
page-accept-queue-full-remedies =
    Raise the listen() backlog and net.core.somaxconn together. The server must then call listen() again: nginx does so on a reload if backlog= changed, php-fpm only on a restart. It costs a little memory for each waiting connection.
page-accept-queue-full-sources =
    As for station accept-queue.

page-accepts-none-title = Nobody accepts connections
page-accepts-none-limits =
    Connections to this listener, all of them: the kernel completes their handshakes and queues them, and the server never takes them out.
page-accepts-none-shows =
    Connections wait in the accept queue in every sample and their number never falls, while the processes that have the listening socket are stopped (state T) or do not run at all. Clients connect and get no answer; once the queue is full they do not even connect. Of several sockets that share a port (SO_REUSEPORT) each has its own queue: the kernel keeps giving a dead one its share.
page-accepts-none-sure =
    High: to accept a connection, a process has to run. Silent if the queue is ever seen shorter than before, if a process that has the socket ran, or if the time on cores and the state of the processes could not be read. Workers that share all sockets of an address (nginx with reuseport) are told apart by their state alone: at most as many queues stand still as workers are stopped.
page-accepts-none-remedies =
    Let a stopped process go on (kill -CONT PID), or end it. Otherwise look at what its threads wait for, and restart it. No length of the queue helps.
page-accepts-none-sources =
    As for station accept-queue; proc_pid_stat(5), /proc/PID/task/TID/schedstat.

page-processes-stopped-title = Processes are stopped
page-processes-stopped-limits =
    The requests on the connections of the stopped processes, which get no answer, and throughput, at what the other processes can do.
page-processes-stopped-shows =
    /proc/PID/stat says T (SIGSTOP, SIGTSTP) or t (a debugger), or freezer.state or cgroup.events says that its control group is frozen, in every reading. Requests stand unread or unanswered on connections that only these processes have open, or connections always wait to be accepted while the processes that are not stopped are all taken and the cores have room. Or processes are stopped in some readings and go on in others (cpulimit, a snapshot): the share of the time in which they surely are (the lower end of the 95 % interval), by the requests that wait for them, costs a tenth of the throughput or more.
page-processes-stopped-sure =
    High: a stopped process answers nothing. Silent if nothing waits (the others keep up), if fewer than a tenth of the requests in flight wait for them, and for a queue before full cores.
page-processes-stopped-remedies =
    Let them go on (kill -CONT PID; THAWED in freezer.state, 0 in cgroup.freeze; docker unpause), or end them: their master or their supervisor starts others. Where they are stopped again and again, find who does it (cpulimit, a snapshot).
page-processes-stopped-sources =
    As for station accept-queue; proc_pid_stat(5); Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst; Documentation/admin-guide/cgroup-v2.rst, cgroup.freeze.

page-processes-traced-title = Processes are traced
page-processes-traced-limits =
    Throughput and response times, by the time for which the tracer stops the threads that serve requests.
page-processes-traced-shows =
    TracerPid in /proc/PID/status names a process that traces a worker (ptrace: strace, ltrace, gdb and other debuggers, some tools for security and coverage), and in many looks the threads that serve stand in state t. Requests wait for these threads: the time for which they are surely stopped (the lower end of the 95 % interval) costs a tenth of the throughput or more.
page-processes-traced-sure =
    High: the kernel names the tracer, and a thread in state t does nothing until the tracer lets it go on. Silent where the threads were seen in that state too seldom, where few requests wait for them, and where watched traffic is served without requests that wait for each other. A tracer that attaches after the observation began is not seen. Tools that use eBPF or perf events stop nobody and are no tracers.
page-processes-traced-remedies =
    Let the tracer detach (Ctrl-C in strace, "detach" in gdb), or trace fewer system calls (strace -e, --seccomp-bpf), or one worker of several. If it started the server, start the server without it.
page-processes-traced-sources =
    ptrace(2); proc_pid_status(5) (TracerPid); proc_pid_stat(5).

page-accepts-slowly-title = Connections are accepted too slowly
page-accepts-slowly-limits =
    Throughput, at what the workers or threads that accept and serve can do, while cores are idle.
page-accepts-slowly-shows =
    The accept queue is full in most samples and refuses connections, or most of the requests in flight stand in it all the time; the cores are idle and the server's busiest thread runs less than half of the time. A server of one thread, or one that stops accepting at a limit of its own, looks like this.
page-accepts-slowly-sure =
    High if the times of the server's threads were read, else medium. It is shown only if no other finding (a full pool, a quota, files, the server behind) explains what the accepting threads wait for. Silent if the processes are not known, if cores are full, and if a thread computes most of the time.
page-accepts-slowly-remedies =
    More workers, threads or connections that the server may hold; or what holds them up. A longer queue only adds waiting time.
page-accepts-slowly-sources =
    As for station accept-queue.
