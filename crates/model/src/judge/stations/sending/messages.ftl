# Station sending: its states, findings and evidence, and what brings them about.

state-sending-ok = Of { $sockets } connections of { $tier } at { $name } that were sampled, { $sending } had something to send at a time; of that time { $buffer } % passed with a full send buffer, { $window } % with the peer's window full.

finding-send-buffer-limited-title = The send buffers of { $tier } at { $name } hold less than the way does: { $share } % of the requests' time passes with a full one
finding-send-buffer-limited-explanation = { $tier } writes as much as the send buffer takes, TCP sends all of it, and until the first acknowledgement comes back, { $ms } ms later, there is no room to write more and nothing left to send. A connection then carries one buffer a round trip, however fast the line, the cores and the disks are: a buffer must hold what is under way in a round trip at the rate that is wanted.
finding-delayed-ack-stall-title = Answers of { $tier } at { $name } wait for delayed acknowledgements: { $share } % of the requests' time
finding-delayed-ack-stall-explanation = { $tier } writes an answer in pieces. Nagle's algorithm holds the last, small piece back until what was sent before it is acknowledged; the client waits for the rest of the answer before it acknowledges, and gives that up only after 40 ms. Both sides wait for each other meanwhile, with the cores idle.

evidence-buffer-full = { $sockets } sampled connections spent { $full } % of their busy time with a full send buffer of which all had been sent: { $share } % of the time of the requests under way.
evidence-buffer-bound = A buffer takes { $buffer } KiB, overhead included, but the write that passes its end is taken whole: { $data } KiB at the most were under way. The shortest round trip takes { $ms } ms: a connection carries no more than { $rate } Mbit/s.
evidence-buffer-sysctl = It has grown as far as the kernel lets it: { $max } KiB.
evidence-buffer-program = The kernel would let it grow to { $max } KiB: the program itself set it (SO_SNDBUF).
evidence-stall-seen = { $seen } times a sampled connection held back less than a segment though both windows had room, with segments sent long before that were not acknowledged; something to send was found { $sending } times.
evidence-stall-took = A quarter of the requests took { $ms } ms or longer; the shortest round trip takes { $trip } ms.

finding-small-initial-window-title = New connections of { $tier } at { $name } begin with { $window ->
    [1] one segment
   *[other] { $window } segments
}: answers take { $trips } round trips instead of { $usual }
finding-small-initial-window-explanation = A new connection may send { $window } segments before the first acknowledgement, and twice as many in each round trip after. Linux begins with ten (RFC 6928); fewer are set for the route. Answers of { $segments } segments wait { $longer } ms for round trips that they need not make, and each request has a connection of its own.
finding-receiver-limited-title = The clients' receive windows hold the answers of { $tier } at { $name } back: { $share } % of the requests' time
finding-receiver-limited-explanation = What the clients have room for is under way, and the server may send no more until they say that they took it, a round trip of { $ms } ms later. Nothing at the server changes that: neither its workers nor its buffers are the limit.

evidence-first-window-seen = Sampled connections of which no segment was acknowledged yet had a window of { $window } segments.
evidence-first-window-trips = An answer has about { $segments } segments: { $trips } round trips of { $ms } ms, with ten segments at first { $usual }. The others are { $longer } ms, { $share } % of the median response time.
evidence-receiver-full = { $sockets } sampled connections spent { $full } % of their busy time with the peer's window full: { $share } % of the time of the requests under way.
evidence-receiver-window = The largest window that a peer offered is { $window } KiB, and the shortest round trip takes { $ms } ms.
