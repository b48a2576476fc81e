# Station worker-connections: its states, findings and evidence, and what brings them about.

state-worker-connections-ok = A worker held { $peak } of its { $limit } connections at the most.
state-worker-connections-near = A worker held { $peak } of its { $limit } connections at the most: little is left.
state-worker-connections-unknown = A worker may hold { $limit } connections; how many it held could not be read.
state-worker-connections-harmless = { $count } connections were turned away for want of room among a worker's { $limit }; too few requests suffered from it to count as harm.
state-worker-connections-refusing = { $count } connections were turned away: a worker may hold { $limit }, and they were used up.
state-worker-connections-drained = A worker may hold { $limit } connections and closed some unanswered to make room for others.

finding-worker-connections-exhausted-title = the workers of { $tier } have no connection left ({ $limit } each, worker_connections)
finding-worker-connections-exhausted-explanation = Each of the { $workers } workers of { $tier } may hold { $limit } connections at once, those to clients and those to upstreams together: a request that is passed on takes two. When they are used up, the worker closes kept and fresh connections to make room, and what it can make no room for it accepts and closes at once. Clients see a connection that is closed or reset without an answer, or a 500 where the connection to the upstream was the one too many; the refused never reach the access log.

evidence-worker-connections-limit = Each of { $workers } workers may hold { $limit } connections (worker_connections).
evidence-worker-connections-dropped = nginx accepted { $count } connections that it did not handle (accepts and handled of its status page).
evidence-worker-connections-held = A worker held { $peak } of { $limit } connections.
evidence-worker-connections-cut = { $count } connections were closed with a request in them that nobody had read: the kernel reset them.
evidence-worker-connections-harm = { $closed } of { $requests } requests lost their connection before the answer and { $answers } got a 500, 502 or 503.

coupling-held-quota = A CPU quota stops the workers, and each connection is held for as much longer. With CPU time left their number would be the cause.
