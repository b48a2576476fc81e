# Station worker-pool: its states, findings and evidence, and what brings them about.

state-worker-pool-ok = { $busy } of { $workers } workers were busy on average.
state-worker-pool-near = { $busy } of { $workers } workers were busy on average: little is left.
state-worker-pool-full = { $busy } of { $workers } workers were busy on average, and in { $share } % of the samples connections waited for one, { $waiting } on average.

finding-worker-pool-exhausted-title = { $kind ->
    [threads] { $tier } serves no more than { $workers } connections at a time
    [loops] { $tier } takes no more than { $workers } connections at a time
    [left] { $tier } takes no more than { $workers } connections and leaves the rest unanswered
    [compute] all { $workers } workers of { $tier } are taken, and cores beside them are idle
   *[wait] all { $workers } workers of { $tier } are taken, and they do not compute but wait
}
finding-worker-pool-exhausted-explanation = { $kind ->
    [threads] Each of these threads of { $tier } serves one connection at a time. { $workers } connections were in service at once, never more, while further ones waited in the accept queue: so many threads take connections. They did not keep their cores busy: they wait for something, such as a disk, another server, a lock or a timer, or more of them could compute. More threads or processes let more requests wait side by side. Where they wait for a shared resource that is itself at its limit, more of them move the wait there and no further.
    [loops] { $tier } serves its connections by event loops, which had time to spare, and yet { $workers } were held at once, never more, while further ones waited in the accept queue: it stops accepting at a number of its own (maxconn, max connections, a pool's size). Raise that number. A longer accept queue would only let more clients wait.
    [left] { $workers } connections were held at once, never more, while others waited in the accept queue all the time: { $tier } stops accepting at a number of its own (maxconn, max connections), and who got in keeps a place for as long as the connection is kept. The others wait until they give up, however many requests the first get answered. Raise that number, or let kept connections end sooner (keep-alive timeout, requests per connection).
    [compute] Each worker of { $tier } serves one connection at a time and runs on one core at a time. All { $workers } were taken and further connections waited in the accept queue, while cores on which more workers could run were idle.
   *[wait] Each worker of { $tier } serves one connection at a time. All { $workers } were taken and further connections waited in the accept queue, but the workers hardly ran: they wait for something themselves, such as a disk, another server or a timer. More workers let more requests wait side by side. Where they wait for a shared resource that is itself at its limit, such as a database, more workers move the wait there and no further.
}

evidence-worker-pool-busy = { $unit ->
    [connections] { $busy } connections were held on average, and { $workers }, the most, in { $full } of { $samples } samples.
   *[workers] { $busy } of { $workers } workers held a connection on average, and all of them in { $full } of { $samples } samples.
}
evidence-worker-pool-configured = Pool { $pool } may have { $limit } workers (pm.max_children, pm = { $pm }).
evidence-worker-pool-active = php-fpm's status page counted all { $workers } workers of pool { $pool } as active in { $full } of { $looks } looks.
evidence-worker-pool-reached = php-fpm's status page says that pool { $pool } wanted more than { $workers } workers { $times } times meanwhile.
evidence-worker-pool-waiting = On average { $waiting } connections waited to be accepted.
evidence-worker-pool-ready = { $unit ->
    [connections] Its processes ran, or were ready to, in { $share } % of their time.
   *[workers] The workers ran, or were ready to, in { $share } % of their time; the rest they waited for something else than a core.
}
evidence-worker-pool-left = The clients spent { $share } % of their time on requests that were never answered.
evidence-worker-pool-cpu = The cores on which they may run were { $share } % busy.
evidence-worker-pool-times = A request was held for about { $service } ms and had waited about { $wait } ms before.

finding-workers-blocked-on-upstream-title = the workers of { $tier } wait for { $upstream }
finding-workers-blocked-on-upstream-explanation = All { $workers } workers of { $tier } were taken, and most of them waited for an answer of { $upstream }. If { $upstream } is at its limit, more workers would only send it more requests at once, and those wait longer: look there first, at its own workers, locks, slow queries and connections. If it answers one request alone just as slowly (time one by hand), it has room, and more workers of { $tier } would help.
finding-workers-blocked-on-upstream-symptom = All { $workers } workers of { $tier } were taken because most of them waited for an answer of { $upstream }, and the cores on which it, or what it calls, may run are all busy. More workers would not make them faster.

evidence-workers-blocked = { $count } of { $looks } looks at busy workers found one waiting for { $upstream }.
evidence-workers-blocked-time = A request held its worker for about { $ms } ms, of which it waited for other servers for about { $wait } ms.
evidence-workers-blocked-door = On average { $waiting } connections waited for { $upstream } to accept them.

finding-setting-not-in-force-pool-title = { $running } workers of { $tier } run, though pm.max_children of [{ $pool }] says { $written }
finding-setting-not-in-force-pool = All workers of { $tier } are taken and wait, and its configuration gives it more; but { $file } was changed after { $tier } read it, and what was written there is not in force.

evidence-not-in-force-pool = pm.max_children of [{ $pool }] is { $written }, and { $running } workers run.

coupling-pool-blocked = The workers are taken because most of them wait for another server. If they waited for a timer or a disk, the pool would be the cause.
coupling-pool-files = A process without a file descriptor takes no further connection, however many it could serve. With descriptors to spare the pool would be the cause.
coupling-pool-unforced = The workers that are written for this very pool would be enough, and fewer run. With as many running the pool would be the cause.
coupling-pool-link = The link through which the tier's answers leave is full, so that its workers wait to send. With room on the link they would wait for something of their own.
coupling-blocked-loss = Packets between the two are lost on the way, and each loss keeps a worker waiting until they are sent again. With nothing lost the other server would be the place to look.
coupling-pool-buffer = The tier's send buffers are full of what was sent and is not acknowledged, and its workers wait for room in them. With room they would be free as soon as the answer is written.
coupling-pool-receiver = The clients take answers no faster than their windows allow, and workers wait until they have. With clients that take more at once they would be free.
coupling-pool-first-window = Answers leave in more round trips than they need, and workers wait meanwhile. With a usual first window they would be free sooner.
coupling-pool-loss = Packets of the tier's answers are lost on the way, and its workers wait until they were sent again. With nothing lost they would wait for something of their own.
coupling-blocked-table = Connections towards the other server are dropped on the way and hang. With the table not full that server would be the place to look.
coupling-blocked-awaited = The server that the workers wait for, or one behind it, has a cause of its own. If it had none, it would be the place to look.
coupling-blocked-cores = The server that the workers wait for, or one behind it, computes on cores that are all busy. With cores idle it would be the place to look.
coupling-pool-quota = A CPU quota stops the workers in the middle of what they serve, and more of them would share the same CPU time. With CPU time left the pool would be the cause.
