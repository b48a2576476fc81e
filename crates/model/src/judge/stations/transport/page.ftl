# `chokepoint explain transport`: the pages of the station and of its findings, with the same five sections.

page-transport-title = Transport
page-transport-limits =
    How soon sent data arrives: TCP sends a lost packet again only after a timeout, after a tail loss probe, or when later packets have arrived; and it sends less at once after each loss.
page-transport-shows =
    Segments that each namespace of the path sent and sent again, and how often its senders waited for a timeout or a probe.
page-transport-sure =
    The counters are per namespace and include other programs' connections. SYNs are left out, because full queues lose them as well, and so are segments that the peer reports as received twice (duplicate SACK): a slow peer makes TCP send twice although nothing was lost.
page-transport-remedies =
    See packet-loss: find where packets are lost.
page-transport-sources =
    Tcp.OutSegs and Tcp.RetransSegs of /proc/net/snmp (RFC 4022); TCPTimeouts, TCPLossProbes, TCPSynRetrans, TCPDSACKRecvSegs of /proc/net/netstat (Linux Documentation/networking/snmp_counter.rst); RFC 2883, RFC 6298, RFC 8985.

page-packet-loss-title = Packets are lost on the way
page-packet-loss-limits =
    Response time, and the throughput of clients that wait for a response before they send the next request: a lost packet with no later ones behind it costs a timeout of at least 200 ms or a tail loss probe. Long responses: with a share p of the segments lost, Reno's congestion window is about 1.22 / sqrt(p) segments (CUBIC's is somewhat larger).
page-packet-loss-shows =
    Segments sent again in a namespace of the path, and senders that waited for a timeout or a probe; as many requests took 200 ms longer than the others, and that was a tenth of the clients' time or one request in a hundred. Or responses of more than ten segments whose additional round trips take a third of the response time. Or, where traffic is watched, a tenth of the requests under way stand on connections that send lost segments again. In all these cases the cores have idle time. Packets of full size that do not arrive are told apart: whatever the cores do, a tenth of the requests under way stand on connections with full-size packets out, on which nothing was sent for 200 ms after a timeout, while their clients open other connections and send requests, and acknowledge no packet of that size.
page-packet-loss-sure =
    High if requests waited as long as a timeout takes and as often as the counters say; medium if the time of long responses is calculated from the share of loss and the connect time, or if traffic is only watched. Low if the queues of the interfaces could not be read, or if a full shaper is in a namespace beside the path: it may have dropped the packets. Silent if this host itself explains a tenth of the losses: a full accept queue, SYN queue or connection tracking table, sockets that are not read, backlogs of busy cores, or a shaper at four fifths of its rate or more, which drops because it is full (see link). Silent also if the load hardly suffers: every long line loses a packet now and then. A policer beyond this host looks like a bad line.
page-packet-loss-remedies =
    Advice only: find where packets vanish. Interfaces and their queues count their drops on this host; beyond it, captures at both ends show them.
page-packet-loss-sources =
    As for station transport; RFC 2923, section 2.1 (path MTU discovery without messages), RFC 4821; TCP_RTO_MIN in include/net/tcp.h; Mathis, Semke, Mahdavi and Ott 1997.
