# Station transport: its states, findings and evidence, and what brings them about.

short-transport = packets

state-transport-none = { $netns } sent { $segments } TCP segments; its counters show no loss.
state-transport-again = { $netns } sent { $segments } TCP segments; { $lost } were lost and sent again ({ $share } %), and senders waited { $waits } times for a timeout or a probe.

finding-packets-filtered-title = a packet filter of { $netns } drops or rejects packets of the path: { $taken } in { $seconds } s
finding-packets-filtered-title-rule = a rule of the packet filter of { $netns } drops or rejects packets of the path: { $rule }, { $taken } packets in { $seconds } s
finding-packets-filtered-explanation = They reached { $netns } or were sent there, and netfilter let them go no further: no queue, table or route of the kernel counts them. That is a rule of nftables or iptables (a list, a limit of rate or connections, a random part). A sender whose packet is dropped waits and sends it again: a SYN after a second, then two, then four. One whose packet is rejected is told so, and gives up or fails over.

finding-packet-loss-title = { $share } % of the TCP segments that { $netns } sends are lost on the way
finding-packet-loss-explanation = Packets that { $netns } sends do not arrive, although no server's queue is full and no link on this host is at its rate. If no later packet reveals the gap, TCP sends the lost one again only after a timeout (at least 200 ms) or a tail loss probe. The request waits for that while the cores are idle.
finding-packet-loss-explanation-window = Packets that { $netns } sends do not arrive, although no server's queue is full and no link on this host is at its rate. TCP takes each loss for congestion and reduces its congestion window (CUBIC by 30 %, Reno by half), so a long response needs many more round trips.
finding-packet-loss-explanation-recovering = Packets that { $netns } sends do not arrive, although no server's queue is full and no link on this host is at its rate. While a connection sends lost packets again, its response has a hole, its congestion window is small, and its client waits.

finding-packet-loss-title-size = full-size packets that { $netns } sends do not arrive, smaller ones do
finding-packet-loss-explanation-size = Responses that need more than one packet stay: TCP sends the first packet, with { $mss } bytes of data, again after ever longer pauses, and no acknowledgement comes. Meanwhile handshakes and requests of the same clients get through. So it is as if a part of the way takes only smaller packets (a tunnel, a VPN, PPPoE), and the message that says so (ICMP "fragmentation needed", ICMPv6 "packet too big") is dropped. A filter that drops what { $tier } sends on open connections looks the same: then small responses do not arrive either.

evidence-loss-standing = On average { $connections } of { $under_way } requests under way stood on a connection with full-size packets out, on which for 200 ms or longer after a timeout nothing more was sent: { $time } % of the clients' time.
evidence-loss-standing-opened = Meanwhile the same clients opened { $opened ->
    [1] one connection
   *[other] { $opened } connections
} and sent requests on { $opened ->
    [1] it
   *[other] them
}. None of them acknowledged a packet of that size.
evidence-loss-counted = { $netns } lost { $lost } of { $segments } segments and sent them again ({ $share } %), not counting SYNs and segments that had arrived. Its senders waited { $waits } times for a timeout or a probe.
evidence-loss-waited = In { $requests } requests, senders waited { $waits } times, and as many requests took at least { $ms } ms longer than the median.
evidence-loss-waited-closed = In { $requests } requests, senders waited { $waits } times, and as many requests took at least { $ms } ms longer than the others: { $share } % of the clients' time.
evidence-loss-window = A response has about { $segments } segments, and this loss allows a congestion window of about { $window }: the additional round trips take { $ms } ms, { $share } % of the median response time.
evidence-loss-recovering = On average { $connections } of { $under_way } requests under way stood on a connection that was sending lost segments again: { $share } % of the clients' time.
evidence-loss-qdisc = The queue ({ $kind }) of { $link } dropped { $count ->
    [one] one packet
   *[other] { $count } packets
} in that time.
evidence-loss-link = Interface { $link } counted { $count ->
    [one] one error or drop
   *[other] { $count } errors and drops
} in that time.
evidence-filtered-rule = The rule "{ $rule }" took { $count } packets.
evidence-filtered-rule-rest = The rule "{ $rule }" took { $count } packets: it does not count them, but is the only rule there that takes packets without counting.
evidence-filtered-rule-may = The rule "{ $rule }" may have taken them: it does not count, and it is not the only one.
evidence-filtered-came = { $count } packets that arrived in { $netns } were handed to no protocol.
evidence-filtered-left = { $count } packets that { $netns } sent were handed to no interface.
evidence-filtered-syns = { $count } SYNs were sent again on the path.
evidence-filtered-segments = { $count } segments of the path's connections were lost and sent again.
evidence-filtered-kept = Data stood ready and could not leave about { $count } times, for { $ms } ms or longer.
evidence-filtered-refused = { $count } connections of the load were refused, although a server listens.

coupling-packets-filtered = The packets of these connections are taken by a packet filter on this host. A server that is not there looks the same to whoever connects.
