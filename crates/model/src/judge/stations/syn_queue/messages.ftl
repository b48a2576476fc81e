# Station syn-queue: its states, findings and evidence, and what brings them about.

state-syn-queue-ok = At most { $peak } of { $limit } handshakes were open at { $listener }; none was refused.
state-syn-queue-unseen = No SYN for { $listener } was refused; how many handshakes were open could not be read.
state-syn-queue-unknown = Whether SYNs for { $listener } were refused could not be read.
state-syn-queue-near = { $peak } of { $limit } handshakes were open at { $listener }; none was refused yet.
state-syn-queue-cookies = { $peak } handshakes were open at { $listener } with room for { $limit }; what found no room was answered with SYN cookies ({ $sent }), and nothing was refused.
state-syn-queue-harmless = { $count } SYNs found no room at { $listener } ({ $peak } of { $limit }); too few requests suffered from it to count as harm.
state-syn-queue-refusing = { $count } SYNs found no room at { $listener } ({ $peak } of { $limit } handshakes open).

finding-syn-queue-full-title = the SYN queue of { $tier } at { $listener } is full (room for { $limit } handshakes), and SYN cookies are off
finding-syn-queue-full-explanation = A connection to { $listener } begins with a handshake, and { $limit } of them may be open at once. Handshakes whose last packet does not come hold their places for seconds up to a minute: a flood of SYNs, or clients to whom the answers do not get through (a firewall that drops them, a route back that leads elsewhere, loss). Every further SYN is dropped, that of a good client too: it tries again after 1, 3 and 7 seconds, while { $tier } idles. With SYN cookies on, the kernel would answer it without a place in the queue.
finding-syn-queue-full-symptom = Handshakes stay open at { $listener } because the accept queue of { $tier } has no room for their connections: the kernel keeps them and tries again. That queue, or what { $tier } waits for, is the cause.

evidence-syn-queue-drops = { $count } SYNs for { $listener } were dropped for want of room in { $seconds } s.
evidence-syn-queue-open = At most { $peak } handshakes were open with room for { $limit }; { $mean } on average.
evidence-syn-queue-whose = They came from { $addresses } { $addresses ->
    [one] address
   *[other] addresses
}; { $count } of { $open } from { $remote }.
evidence-syn-queue-backlog = SYN cookies are off, and tcp_max_syn_backlog is { $backlog }: of that the last quarter is kept for peers that the kernel knows already. The listener itself has room for { $limit }.
evidence-syn-queue-listener = SYN cookies are off, and the listener has room for { $limit } handshakes: as many as may wait to be accepted.
evidence-syn-queue-harm = Of { $requests } requests, { $timeouts } timed out connecting; of those that connected, the longest took { $ms } ms to do so.

coupling-syn-queue-accept = Handshakes stay open at this listener because the accept queue has no room for their connections. With room there the SYN queue would be the cause.
