# `chokepoint explain transport`: the pages of the station and of its findings, with the same five sections.

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
