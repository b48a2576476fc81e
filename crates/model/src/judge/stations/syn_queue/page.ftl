# `chokepoint explain syn-queue`: the pages of the station and of its findings, with the same five sections.

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
