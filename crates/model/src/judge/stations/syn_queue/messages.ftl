# Station syn-queue: its states, findings and evidence, and what brings them about.

short-syn-queue = SYN queue

state-syn-queue-ok = At most { $peak } of { $limit } handshakes were open at { $listener }; no SYN was dropped.
state-syn-queue-unseen = No SYN for { $listener } was dropped; the number of open handshakes could not be read.
state-syn-queue-unknown = Whether SYNs for { $listener } were dropped could not be read.
state-syn-queue-near = { $peak } of { $limit } handshakes were open at { $listener }; no SYN was dropped yet.
state-syn-queue-cookies = { $peak } handshakes were open at { $listener } with a limit of { $limit }; the kernel answered { $sent } more with SYN cookies and dropped none.
state-syn-queue-harmless = { $count } SYNs found the queue of { $listener } full ({ $peak } of { $limit }); too few requests were affected to count as harm.
state-syn-queue-refusing = { $count } SYNs found the queue of { $listener } full ({ $peak } of { $limit } handshakes open).

finding-syn-queue-full-title = the SYN queue of { $tier } at { $listener } is full ({ $limit } handshakes), and SYN cookies are off
finding-syn-queue-full-explanation = A connection to { $listener } starts with a handshake, and at most { $limit } handshakes may be open at once. A handshake whose last packet does not arrive keeps its place for seconds up to a minute. Causes are a SYN flood, or clients that the server's packets do not reach (a firewall, a wrong route back, packet loss). The kernel drops every further SYN, also those of good clients, which retry { $again } while { $tier } is idle. With SYN cookies, the kernel would answer them without a place in the queue.
finding-syn-queue-full-symptom = Handshakes stay open at { $listener } because the accept queue of { $tier } has no space for their connections: the kernel keeps them and tries again. The accept queue, or what { $tier } waits for, is the cause.

evidence-syn-queue-drops = { $count } SYNs for { $listener } were dropped in { $seconds } s because the queue was full.
evidence-syn-queue-open = At most { $peak } of { $limit } handshakes were open; { $mean } on average.
evidence-syn-queue-whose = They came from { $addresses } { $addresses ->
    [one] address
   *[other] addresses
}; { $count } of { $open } from { $remote }.
evidence-syn-queue-backlog = SYN cookies are off, and tcp_max_syn_backlog is { $backlog }; its last quarter is reserved for peers that the kernel already knows. The listener's own limit is { $limit }.
evidence-syn-queue-listener = SYN cookies are off, and the listener allows { $limit } open handshakes: its accept queue limit.
evidence-syn-queue-harm = Of { $requests } requests, { $timeouts } timed out while connecting; the slowest successful connect took { $ms } ms.

coupling-syn-queue-accept = Handshakes stay open at this listener because its accept queue has no space for their connections. If it had space, the SYN queue would be the cause.
