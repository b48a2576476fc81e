# Station sending: its states, findings and evidence, and what brings them about.

short-sending = sending

state-sending-ok = { $sockets } connections of { $tier } at { $name } were sampled. On average { $sending } had data to send; in that time the send buffer was full for { $buffer } % and the peer's receive window for { $window } %.
state-sending-counted = { $sockets } connections of { $tier } at { $name } were sampled. On average { $sending } had data to send; for how long a full send buffer or the peer's window held them back was not read.

finding-send-buffer-limited-title = The send buffers of { $tier } at { $name } are too small for the round trip: { $share } % of the requests' time passes with a full one
finding-send-buffer-limited-explanation = { $tier } writes as much as the send buffer takes, and TCP sends all of it. Until the first acknowledgement arrives, { $ms } ms later, there is no space to write more and nothing left to send. A connection then carries one buffer per round trip, however fast the link, the cores and the disks are. A buffer must hold the data of one round trip at the wanted rate.
finding-delayed-ack-stall-title = { $side ->
    [asks] Requests of { $tier } to { $name }
   *[answers] Responses of { $tier } at { $name }
} wait for delayed acknowledgements: { $share } % of the requests' time
finding-delayed-ack-stall-explanation = { $tier } writes { $side ->
    [asks] a request
   *[answers] a response
} in pieces. Nagle's algorithm holds back the last, small piece until the data before it is acknowledged. The { $side ->
    [asks] server there
   *[answers] client
} delays its acknowledgement because it expects more data, and sends it only after 40 ms. Both sides wait for each other while the cores are idle.

evidence-buffer-full = { $sockets } sampled connections spent { $full } % of their busy time with a full send buffer of which everything had been sent: { $share } % of the time of the requests in flight.
evidence-buffer-bound = A buffer holds { $buffer } KiB including overhead. The write that fills it is accepted whole, so at most { $data } KiB were in flight. The shortest round trip takes { $ms } ms: a connection carries at most { $rate } Mbit/s.
evidence-buffer-sysctl = It has grown to the kernel's maximum: { $max } KiB.
evidence-buffer-program = The kernel would let it grow to { $max } KiB: the program set it itself (SO_SNDBUF).
finding-delayed-ack-stall-symptom = Of { $under_way } requests in flight, { $waiting } wait until { $tier } reads them, and { $share } % of the requests' time is this. Without it, clients would only wait longer to be read: what holds the server back comes first.
finding-delayed-ack-stall-symptom-inside = Of { $under_way } requests in flight, { $inside } wait for each other inside { $tier }; the stall takes { $share } % of the requests' time. Without it they would only wait there sooner. What holds them back inside comes first.
finding-delayed-ack-stall-symptom-full = { $threads ->
    [2] Both threads of { $tier } that serve requests are taken
   *[other] All { $threads } threads of { $tier } that serve requests are taken
}, and of { $under_way } requests in flight, { $waiting } wait until one reads them. { $share } % of the requests' time is this; no thread waits for it, because the kernel holds the responses back. Without it, clients would only wait longer for a thread: what takes the threads comes first.
coupling-stall-pool = Requests wait for a worker, more of them than for an acknowledgement or because all workers are taken, and no worker waits for an acknowledgement. Without the stall they would only wait longer for a worker. If no request waited for one, the stall would be the cause.

evidence-stall-seen = { $seen } times a sampled connection held back less than a segment while older segments were unacknowledged, although both windows had space. Data to send was found { $sending } times.
evidence-stall-inside = More requests ({ $inside } % of those in flight) wait inside { $tier }. If they wait for each other there, those that come back sooner wait there for longer, and nothing is gained.
evidence-stall-old = The longest had waited for { $oldest } ms when it was seen; the shortest round trip takes { $trip } ms.
evidence-stall-took = A quarter of the requests took { $ms } ms or longer; the shortest round trip takes { $trip } ms.

finding-small-initial-window-title = New connections of { $tier } at { $name } start with { $window ->
    [1] one segment
   *[other] { $window } segments
}: responses take { $trips } round trips instead of { $usual }
finding-small-initial-window-explanation = A new connection may send { $window } segments before the first acknowledgement, and twice as many in each round trip after it. Linux starts with ten (RFC 6928); the route sets fewer. Responses of { $segments } segments take { $longer } ms longer than necessary, and each request has its own connection.
finding-receiver-limited-title = The clients' receive windows limit the responses of { $tier } at { $name }: { $share } % of the requests' time
finding-receiver-limited-explanation = The server has sent as much as the clients have space for. It may send more only when they report new space, a round trip of { $ms } ms later. Nothing on the server changes that: neither its workers nor its buffers are the limit.

evidence-first-window-seen = Sampled connections without an acknowledged segment had a window of { $window } segments.
evidence-first-window-trips = A response has about { $segments } segments: { $trips } round trips of { $ms } ms, and { $usual } with ten segments at first. The additional ones take { $longer } ms, { $share } % of the median response time.
evidence-receiver-full = { $sockets } sampled connections spent { $full } % of their busy time with the peer's window full: { $share } % of the time of the requests in flight.
evidence-receiver-window = The largest window that a peer offered is { $window } KiB, and the shortest round trip takes { $ms } ms.
