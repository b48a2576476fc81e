# `chokepoint explain transport`: the pages of the station and of its findings, with the same five sections.

page-transport-title = Transport
page-transport-limits =
    How soon sent data arrives: TCP sends a lost packet again only after a timeout, after a tail loss probe, or when later packets have arrived; and it sends less at once after each loss.
page-transport-shows =
    Segments that each namespace of the path sent and sent again, and how often its senders waited for a timeout or a probe.
page-transport-sure =
    The counters are per namespace and include other programs' connections. SYNs are left out, because full queues lose them as well, and so are segments that the peer reports as received twice (duplicate SACK): a slow peer makes TCP send twice although nothing was lost.
page-transport-remedies =
    See packets-filtered and packet-loss: find the rule, or where packets are lost.
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

page-packets-filtered-title = A packet filter takes packets of the path
page-packets-filtered-limits =
    Connections and packets that a rule of nftables or iptables drops or rejects: a limit of rate or connections, a list of addresses, a rule left from a test. A dropped SYN costs its client a second, then two, then four; dropped data costs a timeout of at least 200 ms.
page-packets-filtered-shows =
    What a namespace of the path received and handed to no protocol, and what it sent and handed to no interface, less all that the kernel counts elsewhere (errors, routes, fragments, a full table of tracked connections). At least half as many packets of the path were sent again, or connections of the load refused, and the load suffered: connections that came late or not at all, requests that waited for a timeout. Or a server of that namespace answers no SYN of a tier there, or one of another host does not and as many packets did not leave. Nothing else on this host explains a tenth of it (see packet-loss). Rules of nf_tables that drop or reject are read at both ends, with what they counted: the one that took most is named, and one without a counter if it is the only one. Of watched traffic a rule that asks for a port of the path alone, and for no sender, tells by itself: what it took makes up a hundredth of the packets.
page-packets-filtered-sure =
    High if the load's own connections suffered, and no more than twice as many packets were taken as were missed. Medium if traffic is only watched, or if more were taken: those may be strangers', which a filter is there to drop. Packets that are sent to an interface are counted since Linux 6.6; before, only those that arrive can be missed. What XDP or a traffic class drops is not among them. Load balancing in the kernel (IPVS) and SYNPROXY take packets without harm, and make no finding. Clients beyond this host that are only watched are not seen to suffer: without such a rule the verdict is unknown then, with the number of packets. Rules of iptables-legacy are not read.
page-packets-filtered-remedies =
    Advice only. It names the rule, or says how to find the one whose counter grows. Ask who made the rule before you change it.
page-packets-filtered-sources =
    Ip.InReceives, InDelivers, OutRequests, OutTransmits of /proc/net/snmp (RFC 4293; net/ipv4/ip_input.c, ip_output.c), those of /proc/net/snmp6; TCPSynRetrans of /proc/net/netstat; RFC 6298.
