# `chokepoint explain syn-queue`: the pages of the station and of its findings, with the same five sections.

page-syn-queue-title = SYN queue
page-syn-queue-limits =
    Open handshakes at each listener: the SYN has arrived, the SYN-ACK was sent, the last packet is missing. The limit is that of the accept queue (the smaller of the listen() backlog and net.core.somaxconn). With SYN cookies off it is also three quarters of net.ipv4.tcp_max_syn_backlog; the rest is reserved for peers that the kernel already knows.
page-syn-queue-shows =
    Sockets in SYN-RECV against that limit, and the counters of SYNs that found the queue full: TCPReqQFullDrop if the listener's own limit was reached with cookies off, ListenDrops without ListenOverflows if tcp_max_syn_backlog was, TCPReqQFullDoCookies if cookies were sent instead.
page-syn-queue-sure =
    A full queue with cookies on refuses nobody. The counters are per namespace: they count for this listener as far as its own drop counter allows and its queue was seen full. A short listen() backlog shortens this queue too, so "possible SYN flooding" in the kernel log can be harmless.
page-syn-queue-remedies =
    See syn-queue-full: SYN cookies, or space for more handshakes.
page-syn-queue-sources =
    net/ipv4/tcp_input.c (tcp_conn_request); tcp(7); Linux Documentation/networking/ip-sysctl.rst; /proc/net/netstat; sock_diag(7).

page-syn-queue-full-title = A SYN queue is full and SYN cookies are off
page-syn-queue-full-limits =
    New connections to this listener: the kernel drops a SYN that finds the queue full, whoever sent it.
page-syn-queue-full-shows =
    Clients time out while connecting or take seconds: a client sends a lost SYN again after 1, 2, 3, 4, 5, 7 and 11 s (net.ipv4.tcp_syn_linear_timeouts is 4 by default since Linux 6.5; before, and with 0, after 1, 3, 7 and 15 s). Meanwhile the server is idle, and kept connections work normally. The kernel may log "possible SYN flooding ... Dropping request", once for each listener.
page-syn-queue-full-sure =
    High with a load whose connects were affected and a queue that was seen full; medium if only counters show it. It is a symptom if the accept queue of the same listener overflows, because a handshake stays open until that queue has space. Silent with cookies on, if too few requests were affected to count as harm, and if the queue is short but never full.
page-syn-queue-full-remedies =
    SYN cookies (net.ipv4.tcp_syncookies = 1, the kernel's default) work at once and only while the queue is full. They lose a few TCP options if a client sends no timestamps. A higher net.ipv4.tcp_max_syn_backlog gives space for bursts and slow handshakes up to the listener's own backlog; a flood fills any queue. Then find out whose handshakes stay open: stop a flood before it reaches the server, and repair a firewall or route that loses SYN-ACKs or last packets. Undo restores the old values.
page-syn-queue-full-sources =
    As for station syn-queue.
