# Station transport: its states, findings and evidence, and what brings them about.

state-transport-none = Of { $segments } TCP segments that { $netns } sent none was lost, as far as its counters tell.
state-transport-again = Of { $segments } TCP segments that { $netns } sent { $lost } were lost and sent again ({ $share } %); senders waited { $waits } times for a timeout or a probe.

finding-packet-loss-title = { $share } % of the TCP segments that { $netns } sends get lost on the way
finding-packet-loss-explanation = Packets that { $netns } sends do not arrive, although no server's queue is full and no link on this host is at its rate. Where nothing follows that would tell of the gap, TCP sends a packet again only after at least a fifth of a second: the request waits for that, with the cores idle.
finding-packet-loss-explanation-window = Packets that { $netns } sends do not arrive, although no server's queue is full and no link on this host is at its rate. TCP takes each loss for congestion and halves what it sends at once, so that a long answer needs many more round trips than the way itself would ask for.

evidence-loss-counted = { $netns } sent { $lost } of { $segments } segments again that were lost ({ $share } %), SYNs and what had arrived already left out; its senders waited { $waits } times for a timeout or a probe.
evidence-loss-waited = For { $requests } requests senders waited { $waits } times, and as many requests took { $ms } ms longer than the median, or more.
evidence-loss-waited-closed = For { $requests } requests senders waited { $waits } times, and as many requests took { $ms } ms longer than the others, or more: { $share } % of the clients' time.
evidence-loss-window = An answer has about { $segments } segments, and so much loss leaves a congestion window of about { $window }: the additional round trips take { $ms } ms, { $share } % of the median response time.
evidence-loss-qdisc = The queue ({ $kind }) of { $link } dropped { $count ->
    [one] one packet
   *[other] { $count } packets
} meanwhile.
evidence-loss-link = Interface { $link } counted { $count ->
    [one] one error or drop
   *[other] { $count } errors and drops
} meanwhile.
