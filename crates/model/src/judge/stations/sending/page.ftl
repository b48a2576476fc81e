# `chokepoint explain sending`: the pages of the station and of its findings, with the same five sections.

page-sending-title = Sending
page-sending-limits =
    How fast written data leaves a server's sockets: the size of the send buffer, the peer's receive window, the congestion window, and how soon acknowledgements arrive.
page-sending-shows =
    Up to 32 connections of each namespace are sampled once a second: how many have data to send, and how much of that time the send buffer or the peer's window was full.
page-sending-sure =
    The kernel keeps these times for each connection. Connections with data to send are sampled first. There is nothing to sample on unix sockets or on another host. Not shown if the kernel reports no single sockets.
page-sending-remedies =
    See the findings: send-buffer-limited, delayed-ack-stall, small-initial-window, receiver-limited.
page-sending-sources =
    struct tcp_info (linux/tcp.h) and SK_MEMINFO_SNDBUF by sock_diag(7); tcp(7).

page-send-buffer-limited-title = The send buffer is smaller than a round trip's data
page-send-buffer-limited-limits =
    What one connection carries: one full buffer per round trip. A long response takes as many round trips as it fills buffers.
page-send-buffer-limited-shows =
    Sampled connections whose busy time passes with a full send buffer of which everything is sent (sndbuf_limited): a third or more of the time of the requests in flight, with a round trip of 1 ms or longer and idle time on the cores.
page-send-buffer-limited-sure =
    High: the kernel itself keeps the time. Silent if round trips take twice as long as the shortest one, because then a queue on the way is full and a larger buffer would only fill it; if the peer's window limits more; if the round trip is so short that the receiver is the limit; and without a load.
page-send-buffer-limited-remedies =
    A larger net.ipv4.tcp_wmem if the buffers have grown to its maximum. Otherwise the program set SO_SNDBUF, and the report says what to remove.
page-send-buffer-limited-sources =
    tcpi_sndbuf_limited, tcpi_busy_time, tcpi_min_rtt, SK_MEMINFO_SNDBUF; net.ipv4.tcp_wmem (tcp(7)); tcp_sndbuf_expand in net/ipv4/tcp_input.c.

page-delayed-ack-stall-title = Small writes wait for delayed acknowledgements
page-delayed-ack-stall-limits =
    Response time: about 40 ms more for each response, and with it the throughput of clients that wait for a response before they send the next request.
page-delayed-ack-stall-shows =
    Sampled connections with less than a segment unsent behind unacknowledged data, both windows open, and a round trip much shorter than the time since the last packet, in a third or more of the time of the requests in flight; and a quarter of the requests take 36 ms or longer.
page-delayed-ack-stall-sure =
    High: no other state of a healthy connection looks like it. The counter of delayed acknowledgements proves nothing, because harmless ones are sent all the time. Silent with round trips of 20 ms or longer, where the two cannot be told apart, on connections that lost packets. It is a symptom beside a longer queue: where more requests wait to be read by the server than for acknowledgements, or all of its threads are taken, they would only wait longer there without the stall.
page-delayed-ack-stall-remedies =
    Advice only: TCP_NODELAY, or a single write for each response.
page-delayed-ack-stall-sources =
    tcpi_notsent_bytes, tcpi_unacked, tcpi_last_data_sent, tcpi_min_rtt; RFC 896, RFC 1122 4.2.3.2; TCP_DELACK_MIN in include/net/tcp.h.

page-small-initial-window-title = New connections start with few segments
page-small-initial-window-limits =
    Response time on new connections: the window starts small and doubles in each round trip until the response is sent.
page-small-initial-window-shows =
    Sampled connections that have sent their first flight, without an acknowledgement yet, have a window below ten segments. Responses and round trips are so long that the additional round trips take a third of the median response time, at least half of the requests use a connection of their own, and the cores have idle time.
page-small-initial-window-sure =
    Medium: the additional round trips are calculated, as the smallest number under any congestion control. Silent with ten segments or more, which is Linux's default, however long the responses are; on kept connections, also after an idle time (net.ipv4.tcp_slow_start_after_idle); on round trips shorter than 1 ms; for connections between tiers; and without a load.
page-small-initial-window-remedies =
    Advice only: the route's initcwnd.
page-small-initial-window-sources =
    tcpi_snd_cwnd, tcpi_delivered, tcpi_min_rtt; RFC 6928, RFC 5681; ip-route(8).

page-receiver-limited-title = The clients accept no more data
page-receiver-limited-limits =
    What one connection carries: one receive window per round trip. The server cannot change it.
page-receiver-limited-shows =
    Sampled connections to clients whose busy time passes with the peer's window full (rwnd_limited): a third or more of the time of the requests in flight, with a round trip of 1 ms or longer and servers that have idle time. The verdict is client-limited.
page-receiver-limited-sure =
    High: the kernel itself keeps the time. Silent on shorter round trips, where the window is full because the client has no core; if the send buffer limits more; for connections between tiers; and without a load.
page-receiver-limited-remedies =
    Advice for the clients only.
page-receiver-limited-sources =
    tcpi_rwnd_limited, tcpi_busy_time, tcpi_snd_wnd, tcpi_min_rtt; net.ipv4.tcp_rmem (tcp(7)).
