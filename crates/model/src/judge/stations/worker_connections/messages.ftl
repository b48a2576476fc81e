# Station worker-connections: its states, findings and evidence, and what brings them about.

short-worker-connections = worker connections

state-worker-connections-ok = A worker held at most { $peak } of its { $limit } connections.
state-worker-connections-near = A worker held at most { $peak } of its { $limit } connections: almost at the limit.
state-worker-connections-unknown = A worker may hold { $limit } connections; the number that it held could not be read.
state-worker-connections-harmless = { $count } connections were refused because a worker held its { $limit }; too few requests were affected to count as harm.
state-worker-connections-refusing = { $count } connections were refused: a worker may hold { $limit }, and all were in use.
state-worker-connections-drained = A worker may hold { $limit } connections; it closed some without an answer to free places.

finding-worker-connections-exhausted-title = the workers of { $tier } have no connection left ({ $limit } each, worker_connections)
finding-worker-connections-exhausted-explanation = { $workers ->
    [one] The one worker
   *[other] Each of the { $workers } workers
} of { $tier } may hold { $limit } connections at once, to clients and to upstreams together: a proxied request takes two. When they are used up, the worker closes kept and new connections to free places, and accepts and closes those that still find none. Clients see a connection that is closed or reset without an answer, or a 500 if the upstream connection was one too many. Refused connections never appear in the access log.

evidence-worker-connections-limit = { $workers ->
    [one] The one worker
   *[other] Each of { $workers } workers
} may hold { $limit } connections (worker_connections).
evidence-worker-connections-dropped = nginx accepted { $count } connections that it did not handle (accepts minus handled on its status page).
evidence-worker-connections-held = A worker held { $peak } of { $limit } connections.
evidence-worker-connections-cut = { $count } connections were closed with an unread request in them; the kernel reset them.
evidence-worker-connections-harm = { $closed ->
    [one] One time
   *[other] { $closed } times
} a connection was closed before the answer{ $resent ->
    [0] {""}
   *[other] , { $resent } of them so that the request could be sent again
}, and { $answers } of { $requests } requests got a 500, 502 or 503.

coupling-held-quota = A CPU quota stops the workers, so each connection is held longer. If CPU time were left, the number of connections would be the cause.
