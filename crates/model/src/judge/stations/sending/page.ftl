# `chokepoint explain sending`: the pages of the station and of its findings, with the same five sections.

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
