# Findings: title, explanation, evidence, remedies.

finding-conntrack-table-full-title = the connection tracking table of { $netns } is full ({ $max } entries)
finding-conntrack-table-full-explanation = The firewall tracks every connection in a table of { $max } entries. When it is full, the kernel drops each packet that would begin a new connection: the client's SYN is lost and sent again after 1, 3 and 7 seconds, so requests time out although the server is idle. Entries stay after a connection is closed (TIME_WAIT, 120 s by default), so a high rate of short connections fills the table even with few clients.

evidence-conntrack-drops = { $drops } packets were dropped for want of an entry in { $seconds } s.
evidence-conntrack-count = The table held { $peak } entries of { $max }.
evidence-conntrack-time-to-full = It was full { $ms } ms after the load began.
evidence-conntrack-log = { $lines ->
    [one] The kernel logged "table full, dropping packet" (it limits how often it says so).
   *[other] The kernel logged "table full, dropping packet" { $lines } times (it limits how often it says so).
}
evidence-conntrack-states = What fills it: { $mix }.
evidence-load-timeouts = Of { $requests } requests, { $connect } timed out connecting and { $response } waiting for the answer.

remedy-raise-conntrack-max-text = Raise the limit of the table from { $from } to { $to } entries: room for the rate at which connections came, for as long as an entry stays.
remedy-raise-conntrack-max-risk = Takes up to { $mib } MiB of kernel memory when the table fills; holds for every network namespace of the host.

remedy-shorten-conntrack-time-wait-text = Keep entries of closed connections for { $to } s instead of { $from } s: { $share } % of the entries are of that kind.
remedy-shorten-conntrack-time-wait-risk = A segment that arrives after 30 s would be taken for a new connection's; none does on today's paths.

finding-load-generator-limited-title = the load generator was the limit
finding-load-generator-limited-explanation = The generator could not offer more, so what was measured is its own speed and not the server's. Give it more threads or cores, or another host.

evidence-generator-cpu = Its busiest thread used { $share } % of its CPU, soft interrupts included.
evidence-generator-late = { $count } of { $of } requests were sent late or not at all.
evidence-generator-local = Its own limits refused: { $ports } times no local port, { $files } times no file descriptor, { $memory } times no socket memory.

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

remedy-send-syn-cookies-text = Answer a SYN that finds no room at { $listener } with a SYN cookie (tcp_syncookies 1 instead of 0): the connection needs no place in the queue until the client has answered.
remedy-send-syn-cookies-risk = Takes effect only while the queue is full. A connection that began with a cookie has no window scaling and no selective acknowledgements where the client sends no timestamps: slower over long paths, but there.
remedy-raise-syn-backlog-text = Raise tcp_max_syn_backlog from { $from } to { $to }: then the listener's own backlog ({ $limit }) is the bound. Enough for a burst or slow handshakes; a flood fills any queue.
remedy-raise-syn-backlog-risk = Each open handshake takes about 300 bytes of kernel memory; holds for every listener of the namespace.

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

finding-worker-connections-exhausted-title = the workers of { $tier } have no connection left ({ $limit } each, worker_connections)
finding-worker-connections-exhausted-explanation = Each of the { $workers } workers of { $tier } may hold { $limit } connections at once, those to clients and those to upstreams together: a request that is passed on takes two. When they are used up, the worker closes kept and fresh connections to make room, and what it can make no room for it accepts and closes at once. Clients see a connection that is closed or reset without an answer, or a 500 where the connection to the upstream was the one too many; the refused never reach the access log.

evidence-worker-connections-limit = Each of { $workers } workers may hold { $limit } connections (worker_connections).
evidence-worker-connections-dropped = nginx accepted { $count } connections that it did not handle (accepts and handled of its status page).
evidence-worker-connections-held = A worker held { $peak } of { $limit } connections.
evidence-worker-connections-cut = { $count } connections were closed with a request in them that nobody had read: the kernel reset them.
evidence-worker-connections-harm = { $closed } of { $requests } requests lost their connection before the answer and { $answers } got a 500, 502 or 503.

remedy-raise-worker-connections-text = Let each worker hold { $to } connections instead of { $from }: room for all that came at once, unevenly shared, and twice that where they are passed on.
remedy-raise-worker-connections-risk = Takes { $mib } MiB of memory for all workers, used or not. A reload: workers end once they have answered what they have, and kept connections are closed in order.
remedy-raise-worker-connections-risk-files = Each worker may open { $limit } files, too few for so many connections: worker_rlimit_nofile is set to { $files } with it. Takes { $mib } MiB of memory for all workers, used or not. A reload: workers end once they have answered what they have, and kept connections are closed in order.

finding-file-descriptors-exhausted-title = { $tier } has no file descriptor left ({ $limit } for each process)
finding-file-descriptors-exhausted-explanation = Each connection, file and pipe of a process takes a descriptor, and a process of { $tier } may have { $limit }. When they are used up, accept() fails with "Too many open files" (EMFILE, 24) and connections stand in the accept queue (nginx then stops to accept for half a second); or the upstream or the file for an answer cannot be opened, and the client gets a 500.

evidence-file-descriptors-open = Process { $pid } had { $peak } of { $limit } descriptors open, and was at the limit in { $full } of { $samples } samples.
evidence-file-descriptors-waiting = On average { $waiting } connections waited to be accepted.
evidence-file-descriptors-harm = { $failed } of { $requests } requests failed, and the p99 of response time was { $p99 } ms.

remedy-raise-nofile-text = Let each worker of nginx open { $to } files instead of { $from } (worker_rlimit_nofile): two for each connection that it may hold.
remedy-raise-nofile-risk = Hardly any cost by itself. A reload: workers end once they have answered what they have, and kept connections are closed in order.
remedy-raise-nofile-by-hand-text = Let each process of { $tier } open { $to } files instead of { $from }. This is not done from here: how the limit is set depends on what starts the program.
remedy-raise-nofile-by-hand-risk = prlimit(1) changes running processes until they end, not those that start later. A program that uses select(2) cannot use descriptors beyond 1023; a program that leaks descriptors will use up any number.

finding-rate-limited-by-config-title = { $tier } limits requests by configuration to { $rate } a second (zone { $zone })
finding-rate-limited-by-config-explanation = The configuration of { $tier } allows { $rate } requests a second for each value of { $key } ({ $directive }, zone { $zone }, { $place }). What comes faster is refused with status { $status }. Somebody set this on purpose, and the server does as it was told; for this traffic it is what holds it back. One load generator, or one proxy in front, is one address and so one client to the limit.
finding-rate-limited-by-config-title-delay = { $tier } delays requests by configuration to { $rate } a second (zone { $zone })
finding-rate-limited-by-config-explanation-delay = The configuration of { $tier } lets { $rate } requests a second pass for each value of { $key } ({ $directive }, zone { $zone }, { $place }) and makes up to { $burst } more of them wait their turn. No request fails, but answers come exactly at that rate, however idle the server is. Somebody set this on purpose. One load generator, or one proxy in front, is one address and so one client to the limit.
finding-rate-limited-by-config-title-connections = { $tier } limits connections by configuration to { $connections } (zone { $zone })
finding-rate-limited-by-config-explanation-connections = The configuration of { $tier } allows { $connections } connections with a request in service at once for each value of { $key } ({ $directive }, zone { $zone }, { $place }). Further ones are refused with status { $status }. Somebody set this on purpose, and the server does as it was told; for this traffic it is what holds it back. One load generator, or one proxy in front, is one address and so one client to the limit.

evidence-rate-limit-rate = The configuration allows { $rate } requests a second for each { $key }, { $burst ->
    [0] and no burst: what a turn leaves over in whole milliseconds is lost, and fewer pass (zone { $zone }).
   *[other] and { $burst } more at once (zone { $zone }).
}
evidence-rate-limit-connections = The configuration allows { $connections } connections at once for each { $key } (zone { $zone }).
evidence-rate-limit-answers = { $count } of { $requests } requests were answered with status { $status }; { $goodput } a second were answered as expected.
evidence-rate-limit-waits = { $goodput } requests a second were answered as expected, and half of them took { $count } ms or longer.

remedy-ask-limit-owner-text = Ask whoever set the limit at { $place } whether it is meant for this traffic. If not, raise the rate of zone { $zone } ({ $zone_place }), or leave this address out of the limit: requests whose key is empty are not counted.
remedy-ask-limit-owner-text-connections = Ask whoever set the limit at { $place } whether it is meant for this traffic. If not, raise the number, or leave this address out of the limit: connections whose key is empty are not counted.
remedy-ask-limit-owner-risk = The limit may be what keeps abuse away or the servers behind it alive. It is never changed from here.

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

finding-ephemeral-ports-exhausted-title = { $tier } has no local port left towards { $remote } ({ $usable } in all)
finding-ephemeral-ports-exhausted-explanation = Each connection from { $tier } to { $remote } needs a local port of its own for as long as it lives, and where { $tier } closes first for a minute longer (TIME_WAIT). All { $usable } ports that it may use are taken, so connect() fails with "Cannot assign requested address" and the client gets an error answer at once.
finding-time-wait-port-search-title = the search for a free local port on { $edge } burns the CPU
finding-time-wait-port-search-explanation-sampled = { $tier } looks at port after port for each new connection to { $remote }, until it finds a free one: of { $usable } ports, { $live } carry a connection and { $waiting } are in TIME_WAIT. No error shows this; the profile shows that it takes the CPU.
finding-time-wait-port-search-explanation = { $tier } closes its connections to { $remote } first, so their ports stay in TIME_WAIT for a minute and may not be taken over. Half of the { $usable } ports are, all those of the parity that connect() prefers: every new connection looks at each of them before it finds a free one. No error shows; throughput falls by a factor of ten to a hundred.

evidence-ports-used = { $live } live connections and { $waiting } sockets in TIME_WAIT on the dialling side towards { $remote } at the most.
evidence-ports-range = The range is { $low } to { $high }: { $usable } ports for each remote address and port.
evidence-ports-gateway = { $count } of { $requests } requests got an error answer of the gateway (500, 502 or 503).
evidence-ports-no-reuse = Taking over ports in TIME_WAIT is not in force for this remote address (tcp_tw_reuse 2, the default, covers loopback alone; timestamps are needed).

remedy-widen-port-range-text = Use ports { $low } to { $high } for outgoing connections instead of { $from } ports.
remedy-widen-port-range-risk = A service that is started later on a port of the range can find it taken by an outgoing connection for a moment.
remedy-widen-port-range-risk-listeners = Services listen on ports of the range ({ $ports }): were one restarted, an outgoing connection could hold its port for a moment; net.ipv4.ip_local_reserved_ports keeps such ports free.
remedy-reuse-time-wait-text = Let new outgoing connections take over ports that have been in TIME_WAIT for a second (tcp_tw_reuse 1 instead of { $from }).
remedy-reuse-time-wait-risk = Safe with timestamps, which tell old segments from new ones; behind NAT that several hosts share, a remote may see timestamps go backwards.

finding-upstream-connection-churn-title = { $tier } opens a connection to { $remote } for each request
finding-upstream-connection-churn-explanation = Nothing is wrong, and the cores are the limit. But part of what they do is opening, accepting and closing a connection from { $tier } to { $remote } for each request, and these pages cost so little that this counts. Connections that are kept for some requests save it. They also hold workers: what is kept must stay well below their number, and for how long is a trade between throughput and the response time of those who wait.
finding-upstream-connection-churn-explanation-wasted = The cores are the limit, and part of their work could be left out: for each request { $tier } opens a connection to { $remote }, which accepts it, and both close it. Kept connections save this. They also hold workers: keep well below as many as there are workers.
finding-upstream-connection-churn-explanation-far = Before each request { $tier } waits for a new connection to { $remote } to be established: a round trip there and back, in which nothing else happens. The cores are idle meanwhile; the clients wait. A connection that is kept needs it once.

evidence-churn-configured = { $kind }_pass to { $remote } without reuse: an upstream with keepalive, or what its protocol needs beside it, is not there.
evidence-churn-opened = Connections opened for each request: { $opened }.
evidence-churn-time = In { $share } % of a request's time it waited for its connection (connections in SYN-SENT, of all requests under way), and hardly a SYN was sent twice.
evidence-churn-share = Opening and closing these connections took { $share } % ({ $low } to { $high } %) of the CPU time that limits, both ends together, by { $samples } samples.
evidence-churn-gain = Throughput would grow by { $gain } % ({ $low } to { $high } %) from this work alone; fewer wake-ups add to that.
evidence-churn-cpu = A request cost the servers { $us } µs of CPU; a connection of its own is up to { $connection } µs of that ({ $share } %).

remedy-reuse-upstream-connections-text = Keep { $connections } connections to { $remote } in each of nginx's { $workers } workers, each for { $requests } requests.
remedy-reuse-upstream-connections-text-grown = Give the pool { $children } workers and keep { $connections } connections to { $remote } in each of nginx's { $workers } workers, each for { $requests } requests.
remedy-reuse-upstream-connections-risk = A kept connection holds one of the { $children } workers behind it even while nothing is asked of it: { $kept } are held at the most, and the rest serves all other connections, which wait longer the longer one is kept.
remedy-reuse-upstream-connections-advice = Keep connections to { $remote }: an upstream with keepalive, and fastcgi_keep_conn on. Over all of nginx's workers keep fewer than the pool has workers, and close each after some requests (keepalive_requests): a kept connection holds a worker.
remedy-reuse-upstream-connections-advice-proxy = Keep connections to { $remote }: an upstream with keepalive, proxy_http_version 1.1, and proxy_set_header Connection "" (nginx does so by itself from 1.29.7 on, but not for a literal address).
remedy-reuse-upstream-connections-advice-other = Let { $tier } keep its connections to { $remote }: as many as it uses at once (Go: MaxIdleConnsPerHost, 2 by itself; Node.js: an agent with keepAlive; HAProxy: http-reuse; a database: a pool or persistent connections).
remedy-reuse-upstream-connections-advice-risk = A server that gives each connection a worker of its own (prefork, php-fpm) starves the connections beyond its workers. The upstream must keep idle connections for longer than nginx does, or some requests meet a connection that is just being closed.

evidence-logged = The server logged this { $about ->
    [1] about { $count } times (of its log, the end was read)
   *[other] { $count ->
        [one] once
       *[other] { $count } times
    }
} while it was watched, first: { $line }

remedy-raise-max-children-text = Let the pool of { $tier } have { $to } workers instead of { $from }: as many as were asked for at once, as far as cores and memory carry them.
remedy-raise-max-children-text-other = Give { $tier } { $to } workers instead of { $from } (how, its own documentation says): as many as were asked for at once, as far as cores and memory carry them.
remedy-raise-max-children-text-loops = Let { $tier } hold { $to } connections at once instead of { $from } (its own limit, as maxconn or max connections: its documentation says how): as many as came at once.
remedy-raise-max-children-risk = Takes up to { $mib } MiB of memory more. The reload lets workers finish their requests for as long as process_control_timeout says.
remedy-raise-max-children-risk-lost = Takes up to { $mib } MiB of memory more. The reload ends the requests that are in service at that moment, because process_control_timeout is not set.
remedy-raise-max-children-risk-loops = Each connection takes a file, memory, and perhaps one to the server behind it: what comes next is limited there.
remedy-raise-max-children-risk-other = Takes up to { $mib } MiB of memory more. Where the workers wait for another server, more of them load that one more.

finding-setting-not-in-force-queue-title = room for { $limit } is in force at { $listener } of { $tier }, though its configuration gives room for { $written }
finding-setting-not-in-force-queue = The accept queue of { $listener } overflows, and the configuration of { $tier } has room for all who come at once. A listener gets its limit when its server calls listen(), from the backlog and net.core.somaxconn as they are at that moment: one of both was raised later, and { $tier } has not called it since. A reload alone does not: nginx listens again only where the value of backlog= is another, and php-fpm keeps its sockets.
finding-setting-not-in-force-queue-edited = The accept queue of { $listener } overflows, and the configuration of { $tier } has room for all who come at once; but { $file } was changed after { $tier } read it, and what was written there is not in force.
finding-setting-not-in-force-pool-title = { $running } workers of { $tier } run, though pm.max_children of [{ $pool }] says { $written }
finding-setting-not-in-force-pool = All workers of { $tier } are taken and wait, and its configuration gives it more; but { $file } was changed after { $tier } read it, and what was written there is not in force.

evidence-not-in-force-queue = Room for { $limit } is in force at { $listener }; what is written gives room for { $written }.
evidence-not-in-force-backlog = The { $setting } is { $value }.
evidence-not-in-force-somaxconn = net.core.somaxconn, which bounds it when a server begins to listen, is { $somaxconn } now.
evidence-not-in-force-pool = pm.max_children of [{ $pool }] is { $written }, and { $running } workers run.
evidence-not-in-force-changed = { $file } was changed after the workers that run were started.

remedy-listen-again-text = Let { $tier } listen again at { $listener }, so that { $limit } may wait instead of { $from }: write { $to } for its backlog, since nginx listens again only where the value is another, and reload it.
remedy-listen-again-text-live = Call listen() again at { $listener } of { $tier } with { $to }, so that { $limit } may wait instead of { $from }. By hand only a new start does that.
remedy-listen-again-risk = Connections that wait stay. A longer queue helps only against bursts.
remedy-reload-configuration-queue = See what else was changed in { $file }, then reload { $tier } yourself: { $command }. If its limit is not { $limit } after that, nginx saw the same value of backlog= as before and did not listen again: diagnose once more.
remedy-reload-configuration-pool = See what else was changed in { $file }, then reload { $tier } yourself, so that it runs { $written } workers instead of { $running }: { $command }
remedy-reload-configuration-risk = The reload puts in force everything that was written in its files meanwhile.

remedy-raise-accept-backlog-text = Let { $to } connections wait at { $listener } instead of { $from }: room for all that can come at once, while { $tier } accepts them one after the other.
remedy-raise-accept-backlog-text-other = Let { $to } connections wait at { $listener } instead of { $from }: raise the backlog that { $tier } gives to listen() and net.core.somaxconn, then start it anew.
remedy-raise-accept-backlog-risk = A longer queue hides nothing but a burst: were the server to fall behind for good, requests would wait longer before they fail. Each waiting connection takes a few KiB of kernel memory.

finding-cgroup-cpu-throttled-title = a CPU quota of { $limit } cores stops { $tier }, and the cores have more to give
finding-cgroup-cpu-throttled-explanation = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, whatever the cores have to do. { $tier } was stopped so in { $share } % of the time's periods: requests wait for the next period, and no more of them pass than the quota has CPU time for. Queues and pools before stopped workers fill up, and longer ones would only let more requests wait.
finding-cgroup-cpu-throttled-explanation-wait = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, whatever the cores have to do. { $tier } was stopped so in { $share } % of the time's periods: the quota just suffices for the requests that come, and most of them wait for the next period for longer than they take. A few more requests a second, and they pile up.
finding-cgroup-cpu-throttled-explanation-tail = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, whatever the cores have to do. { $tier } has CPU time enough on average, but many requests at once, or several threads on several cores, use a period's share up before it ends: what comes then waits for the next one. That is seen in the slowest answers alone.

evidence-cpu-quota-throttled = The cgroup was stopped in { $periods } of { $of } periods in which it had work, { $share } % of all.
evidence-cpu-quota-limit = It may use { $quota } ms of CPU time in each { $period } ms ({ $limit } cores), and used { $used } cores.
evidence-cpu-quota-idle = Of the cores on which its servers may run ({ $count }), { $idle } were idle on average and { $others } served other programs.
evidence-cpu-quota-waiting = On average { $waiting } of their threads were ready to run and did not.
evidence-cpu-quota-harm = { $goodput } requests a second were answered as expected; the p99 of response time was { $p99 } ms.
evidence-cpu-quota-wait = Half of the requests took { $p50 } ms or more and the p99 was { $p99 } ms, where one alone took { $alone } ms.
evidence-cpu-quota-tail = Half of the requests took { $p50 } ms or less and the p99 was { $p99 } ms, against an objective of { $slo } ms.

remedy-raise-cpu-quota-text = Let cgroup { $cgroup } use { $to } cores instead of { $from }: what its processes asked for, as far as there are cores. Quotas around it, and those within it that stop the same servers, are raised with it.
remedy-raise-cpu-quota-text-other = Let cgroup { $cgroup } use { $to } cores instead of { $from }. Its limit, or that of a cgroup around it, cannot be written from here: it belongs to whoever made it.
remedy-raise-cpu-quota-risk = Others on these cores get less. The quota may have been set on purpose, to share the host or because it is paid for. It holds until the cgroup ends or what manages it writes it anew: a restart of the container, a reload of the unit.
remedy-keep-cpu-quota-text = To make it last: raise the quota where cgroup { $cgroup } is made. systemd: CPUQuota= of the unit; Docker: --cpus or --cpu-quota; Kubernetes: limits.cpu of the container.
remedy-keep-cpu-quota-text-systemd = To make it last: raise CPUQuota= of the unit to which cgroup { $cgroup } belongs; set-property keeps it in a drop-in.
remedy-keep-cpu-quota-text-container = To make it last: raise the limit of the container whose cgroup is { $cgroup }, and in what it is started from.
remedy-keep-cpu-quota-text-kubernetes = To make it last: raise limits.cpu in the manifest of the pod whose cgroup is { $cgroup }, or leave the limit out and keep requests.cpu. The kubelet takes back what is written to the cgroup.
remedy-keep-cpu-quota-risk = Whoever set the quota may have meant it: ask. Others on these cores get less.

finding-waits-inside-title = { $number } of { $under_way } requests wait inside { $tier }
finding-waits-inside-title-calls = { $number } of { $under_way } requests wait inside { $tier }, which has { $connections } { $connections ->
    [one] connection
   *[other] connections
} to { $remote } and uses all of them all the time
finding-waits-inside-explanation-calls = { $tier } has read these requests and does not work on them: they wait until one of its { $connections } connections to { $remote } is free. None more is opened, so that their number is most likely a limit: maxconn or max_conns of a proxy, the size of a program's connection pool. The server behind has no more than that to do.
finding-waits-inside-explanation-alone = { $tier } has read these requests and neither computes nor waits for a server that is seen. One request alone is answered much sooner, so that they wait for each other: for a lock, a limit of the program's own, a connection of a pool. What they wait for cannot be seen from outside.
finding-waits-inside-explanation-even = { $tier } has read these requests and neither computes nor waits for a server that is seen. Their answers come more evenly than they would if each waited for a time or an event of its own: something lets them pass one by one, such as a lock, a limit of the program's own, or a pool. What they wait for cannot be seen from outside.

evidence-waits-inside = Between { $low } and { $high } of { $under_way } requests under way had been read by { $tier } and had no answer, while no thread of it computed for them or was ready to, and none of its connections waited for them.
evidence-waits-inside-calls = { $tier } had { $connections } { $connections ->
    [one] connection
   *[other] connections
} to { $remote }; on average { $used } of them waited for an answer.
evidence-waits-inside-alone = Half of the requests took { $loaded } ms or more, where one alone took { $alone } ms.
evidence-waits-inside-even = The ages of the requests in { $tier } are spread more evenly than chance spreads them in thirty-nine of forty cases (Watson's U²).
evidence-waits-inside-bound = Without that wait at most { $low } to { $high } times as many requests could pass, and no more than the next limit lets through.

evidence-waits-inside-bound-exact = Without that wait at most { $high } times as many requests could pass, and no more than the next limit lets through.

remedy-allow-more-connections-text = Let { $tier } use more than { $connections } { $connections ->
    [one] connection
   *[other] connections
} to { $remote }: maxconn of the server line (HAProxy), max_conns of the upstream's server (nginx), the size of the connection pool (a program). First see whether the server behind has room: a limit that protects it is right.
remedy-allow-more-connections-risk = The server behind gets more at once. Where it has no room, requests wait there instead, or fail.
remedy-look-inside-text = See what the threads of { $tier } wait for: the stacks at which they stop running, and how often they call what waits. Stacks that most threads share name the lock, the queue or the pool. The program's own documentation names its limits.
remedy-look-inside-risk = Sampling takes a few per cent of a core while it lasts.

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

remedy-find-lossy-link-text = Find where the packets go. On each host of the way: errors and drops of the interface (ip -s -s link, ethtool -S), drops of its queue (tc -s qdisc: a shaper or policer whose queue is too short for bursts), rules that drop at random or beyond a rate (nft list ruleset); then the cable, the duplex setting and the switch's counters. A capture at both ends (chokepoint streams) tells between which two points they vanish.
remedy-find-lossy-link-risk = Looking changes nothing. Do not raise retransmission limits or lower timeouts instead: that hides the loss, and sends more of what is lost.

finding-idle-close-race-title = { $remote } closes kept connections at the moment when { $tier } sends a request on them
finding-idle-close-race-explanation = { $tier } keeps connections to { $remote } for further requests, and { $remote } closes those that were idle for a while. A request that is sent before the news of it arrives meets a closed socket: the answer is a reset, and the client gets a 502 wherever { $tier } may not ask again (a POST, or a proxy that is told not to). Nothing is overloaded, and more workers or longer queues change nothing.

evidence-race-failed = { $failed ->
    [one] One request was
   *[other] { $failed } requests were
} answered with 502, of { $met } that met a closed connection.
evidence-race-resets = { $netns } answered { $resets } segments with a reset: so it does where a request comes to a socket that was closed. A program that dies within a request has read it before.
evidence-race-kept = Up to { $kept } idle connections to { $remote } are kept by each worker.

remedy-keep-idle-longer-text = Let the side that dials give up idle connections first. In nginx's upstream block: keepalive_timeout, a second or more below the time for which { $remote } keeps idle connections (60 s unless it is set; nginx 1.15.3 or later). Or let { $remote } keep them for longer than that: keepalive_timeout of nginx, KeepAliveTimeout of Apache httpd (5 s by default), server.keepAliveTimeout of Node.js (5 s), --keep-alive of gunicorn (2 s).
remedy-keep-idle-longer-risk = Idle connections that are kept for longer hold a worker each of a server that gives every connection its own (prefork, php-fpm). Asking again by proxy_next_upstream non_idempotent hides the race, and may carry a request out twice.

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

remedy-raise-send-buffer-text = Let send buffers of { $name } grow to { $to } KiB instead of { $from } KiB (the third number of net.ipv4.tcp_wmem). The kernel makes a buffer as large only as its connection's window asks for.
remedy-raise-send-buffer-risk = Connections on long ways may hold so much memory each while they send; net.ipv4.tcp_mem bounds all of them together.
remedy-free-send-buffer-text = Let the kernel choose the size of the send buffers of { $name }: take "sndbuf=" out of nginx's listen line (nginx takes it anew only by a restart), or the call that sets SO_SNDBUF out of the program. A size that is set is never enlarged; where one must be set, it has to hold twice the rate that is wanted times the round trip.
remedy-free-send-buffer-risk = A restart ends connections. Without a fixed size a connection may hold as much as the third number of net.ipv4.tcp_wmem.
remedy-send-at-once-text = Switch Nagle's algorithm off for the connections at { $name }: "tcp_nodelay on;" in nginx (its default), TCP_NODELAY in a program of your own; or write an answer's header and body at once (writev, a buffered writer that is flushed at the end). The client cannot mend it.
remedy-send-at-once-risk = A program that writes many small pieces sends a packet for each of them without Nagle's algorithm: let it write larger ones.

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

remedy-widen-first-window-text = Begin with ten segments, as Linux does unless it is told otherwise: "ip route get CLIENT" names the route to the clients; "ip route change ROUTE initcwnd 10", with all else as "ip route show" has it, or the route without initcwnd. Where the network configuration sets it (systemd-networkd InitialCongestionWindow=, ifupdown, a container network), there as well. Connections that are kept need it only once.
remedy-widen-first-window-risk = Routes that were made slow on purpose, for a narrow line, lose packets again.
remedy-ask-clients-text = At the clients: a larger third number of net.ipv4.tcp_rmem, net.ipv4.tcp_moderate_rcvbuf = 1, no SO_RCVBUF that is too small, and programs that read as fast as they can. At the server only what the clients need not receive helps: smaller answers, compression; and let a proxy take answers off workers that serve one client at a time (proxy_buffering).
remedy-ask-clients-risk = Larger windows take memory at the clients, for each connection that is behind.
