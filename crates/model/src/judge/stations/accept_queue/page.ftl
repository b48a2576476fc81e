# `chokepoint explain accept-queue`: the pages of the station and of its findings, with the same five sections.

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
