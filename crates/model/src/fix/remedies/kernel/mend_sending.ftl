# What remedy mend-sending does, and its risk.

remedy-raise-send-buffer-text = Let send buffers of { $name } grow to { $to } KiB instead of { $from } KiB (the third number of net.ipv4.tcp_wmem): { $sum }. The kernel enlarges a buffer only as far as the connection's window needs.
remedy-raise-send-buffer-risk = Each connection over a long path may use this much memory while it sends. net.ipv4.tcp_mem limits the total of all connections.
remedy-free-send-buffer-text = Let the kernel choose the size of the send buffers of { $name }: remove { $kind ->
    [nginx] "sndbuf=" from nginx's listen line (takes effect only on a restart)
   *[other] what sets SO_SNDBUF from the program or its configuration
}. The kernel never enlarges a buffer of a fixed size. If it must be fixed, make it twice the rate you want times the round-trip time.
remedy-free-send-buffer-risk = A restart closes connections. Without a fixed size, a connection may use as much memory as the third number of net.ipv4.tcp_wmem.
remedy-send-at-once-text = Switch off Nagle's algorithm for the connections at { $name }: { $kind ->
    [nginx] "tcp_nodelay on;" in nginx (its default)
    [java] setTcpNoDelay(true) on the program's sockets, or -Dsun.net.httpserver.nodelay=true for the JDK's own HTTP server
    [node] socket.setNoDelay(true), or noDelay of http.createServer
    [python] setsockopt(IPPROTO_TCP, TCP_NODELAY, 1) on the program's sockets, or disable_nagle_algorithm = True in a handler of socketserver or http.server
    [ruby] setsockopt(:TCP, :NODELAY, 1) on the program's sockets
   *[other] TCP_NODELAY on the program's sockets
}. Or write { $side ->
    [asks] all of a request in one call (writev, or a buffered writer that is flushed at the end). The server there cannot fix this.
   *[answers] the header and body of a response in one call (writev, or a buffered writer that is flushed at the end). The client cannot fix this.
}
remedy-send-at-once-risk = Without Nagle's algorithm, a program that writes many small pieces sends a packet for each: let it write larger ones.
remedy-widen-first-window-text = Start with ten segments, the default of Linux. "ip route get CLIENT" shows the route to the clients. Run "ip route change ROUTE initcwnd 10" and keep everything else as "ip route show" prints it, or remove initcwnd from the route. If the network configuration sets it (systemd-networkd InitialCongestionWindow=, ifupdown, a container network), change it there as well. Kept connections need a larger first window only once.
remedy-widen-first-window-risk = If a route was slowed down on purpose, for a narrow line, that line loses packets again.
remedy-ask-clients-text = At the clients: a larger third number of net.ipv4.tcp_rmem, net.ipv4.tcp_moderate_rcvbuf = 1, no small SO_RCVBUF, and programs that read without delay. At the server, only sending less helps: smaller responses, or compression. If its workers serve one client at a time, let a proxy take over their responses (proxy_buffering).
remedy-ask-clients-risk = Larger windows use memory at the clients, for each connection that the program does not read fast enough.
