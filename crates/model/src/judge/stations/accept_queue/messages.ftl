# Station accept-queue: its states, findings and evidence, and what brings them about.

state-accept-queue-ok = At most { $peak } of { $limit } connections waited at { $listener }; none was refused.
state-accept-queue-near = { $peak } of { $limit } connections waited at { $listener }; none was refused yet.
state-accept-queue-harmless = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }); too few requests suffered from it to count as harm.
state-accept-queue-start = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }) when the load began and all came at once, none after that.
state-accept-queue-refusing = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }).

finding-accept-queue-full-title = the accept queue of { $tier } at { $listener } overflows (room for { $limit })
finding-accept-queue-full-explanation = { $tier } accepts connections fast enough on average, but they come in bursts, and only { $limit } may wait at { $listener }. What finds the queue full is dropped, and the client tries again after 1, 3 and 7 seconds, although waiting in a longer queue would take a fraction of that. The limit is the smaller of the backlog that { $tier } asked for and net.core.somaxconn.
finding-accept-queue-full-unix = { $tier } accepts connections fast enough on average, but they come in bursts, and only { $limit } may wait at { $listener }. At a unix socket what finds the queue full is not tried again: the connect fails at once (errno 11, EAGAIN) and the client gets an error such as 502, although waiting in a longer queue would take a moment. The limit is the smaller of the backlog that { $tier } asked for and net.core.somaxconn.
finding-accept-queue-full-symptom = Connections stand at { $listener } because { $tier } does not come to accept them: it waits for something behind it, or has too few workers. A longer queue would only add waiting.

evidence-accept-queue-drops = { $count } connections found the queue of { $listener } full in { $seconds } s.
evidence-accept-queue-gateway = The queue of { $listener } was seen full, and { $count } requests were answered with 502 or 503 in { $seconds } s; no log of the calling server could be read that counts who was turned away.
evidence-accept-queue-own = { $count } connections of this load found the queue of { $listener } full in { $seconds } s and were refused (EAGAIN).
evidence-accept-queue-limit = At most { $peak } waited with room for { $limit }; { $mean } on average.
evidence-accept-queue-harm = { $failed } of { $requests } requests failed, and the p99 of response time was { $p99 } ms.
evidence-accept-queue-wait = In a queue long enough a connection would wait about { $ms } ms.

finding-setting-not-in-force-queue-title = room for { $limit } is in force at { $listener } of { $tier }, though its configuration gives room for { $written }
finding-setting-not-in-force-queue = The accept queue of { $listener } overflows, and the configuration of { $tier } has room for all who come at once. A listener gets its limit when its server calls listen(), from the backlog and net.core.somaxconn as they are at that moment: one of both was raised later, and { $tier } has not called it since. A reload alone does not: nginx listens again only where the value of backlog= is another, and php-fpm keeps its sockets.
finding-setting-not-in-force-queue-edited = The accept queue of { $listener } overflows, and the configuration of { $tier } has room for all who come at once; but { $file } was changed after { $tier } read it, and what was written there is not in force.

evidence-not-in-force-queue = Room for { $limit } is in force at { $listener }; what is written gives room for { $written }.
evidence-not-in-force-backlog = The { $setting } is { $value }.
evidence-not-in-force-somaxconn = net.core.somaxconn, which bounds it when a server begins to listen, is { $somaxconn } now.

coupling-queue-pool = All workers of the tier are taken, so that none comes to accept, and a longer queue would only add waiting. With a worker free the queue would be the cause.
coupling-queue-files = accept() fails for want of a file descriptor, and who waits stays in the queue. With descriptors to spare the queue would be the cause.
coupling-queue-connections = Workers without a free connection put off accepting, and the queue stands. One that overflows only in bursts would be a cause beside them.
coupling-queue-search = The search for a free port takes the cores on which this tier runs, so that it comes to accept too late. Without the search the queue would be the cause.
coupling-queue-unforced = The configured backlog of this listener would suffice, but a smaller one is active. If the configured one were active, the queue would be the cause.
coupling-queue-cores = The cores that the tier may use are all busy, so that it comes to accept too late, and a longer queue would only add waiting. With cores idle something else would keep it from accepting.
coupling-unforced-files = Without a file descriptor nothing can be accepted, however much room the queue has. With descriptors to spare the setting would be the cause.
coupling-queue-quota = A CPU quota stops the processes that should accept for most of the time, and a longer queue would only add waiting. With CPU time left the queue would be the cause.
coupling-unforced-quota = A CPU quota stops the servers, so that what is written would be filled up as well. With CPU time left the setting would be the cause.
