# Station worker-pool: its states, findings and evidence, and what brings them about.

short-worker-pool = worker pool

state-worker-pool-ok = { $busy } of { $workers } { $unit ->
    [threads] threads
   *[workers] workers
} were busy on average.
state-worker-pool-near = { $busy } of { $workers } { $unit ->
    [threads] threads
   *[workers] workers
} were busy on average: almost at the limit.
state-worker-pool-full = { $busy } of { $workers } { $unit ->
    [threads] threads
   *[workers] workers
} were busy on average; in { $share } % of the samples connections waited for one, { $waiting } on average.
state-worker-pool-unread = { $busy } of { $workers } { $unit ->
    [threads] threads
   *[workers] workers
} were busy on average; in { $share } % of the samples requests waited unread for one, { $waiting } on average.
state-worker-pool-clients = { $held } connections were answered and waited for the client to close, while { $waiting } waited to be accepted.

finding-worker-pool-exhausted-title-for = { $kind ->
    [unread] { $workers ->
        [1] the one thread of { $tier } that serves requests is taken, and does not compute but waits for { $what }
        [2] both threads of { $tier } that serve requests are taken, and they do not compute but wait for { $what }
       *[other] all { $workers } threads of { $tier } that serve requests are taken, and they do not compute but wait for { $what }
    }
   *[wait] { $workers ->
        [1] the one worker of { $tier } is taken, and does not compute but waits for { $what }
        [2] both workers of { $tier } are taken, and they do not compute but wait for { $what }
       *[other] all { $workers } workers of { $tier } are taken, and they do not compute but wait for { $what }
    }
}
awaited-server = { $name }
finding-worker-pool-exhausted-title-streaming = { $streaming } of the { $all } threads of { $tier } hold responses that do not end, and the { $workers } others are taken
finding-worker-pool-exhausted-streaming = A thread that sends a response which does not end (events, a stream, a long poll) serves nothing else until its client leaves. More such clients take the other threads as well. Let a server hold these connections that spends no thread on each (an event loop), or give them threads of their own.
evidence-worker-pool-streaming = { $threads } connections of { $tier } carried responses that went on without being asked for again, while { $tier } left other requests unread: each holds a thread.
finding-worker-pool-exhausted-title = { $kind ->
    [readers] { $workers ->
        [1] the one worker of { $tier } is taken, most of the time by a response that is read slowly
        [2] both workers of { $tier } are taken, most of the time by responses that are read slowly
       *[other] all { $workers } workers of { $tier } are taken, most of them by responses that are read slowly
    }
    [unread] { $workers ->
        [1] the one thread of { $tier } that serves requests is taken, and does not compute but waits
        [2] both threads of { $tier } that serve requests are taken, and they do not compute but wait
       *[other] all { $workers } threads of { $tier } that serve requests are taken, and they do not compute but wait
    }
    [unread-compute] { $workers ->
        [1] the one thread of { $tier } that serves requests is busy, and other cores are idle
        [2] both threads of { $tier } that serve requests are busy, and other cores are idle
       *[other] all { $workers } threads of { $tier } that serve requests are busy, and other cores are idle
    }
    [threads-compute] { $tier } serves at most { $workers } connections at a time, and other cores are idle
    [threads] { $tier } serves at most { $workers } connections at a time
    [loops] { $tier } accepts at most { $workers } connections at a time
    [loops-behind] { $tier } accepts at most { $workers } connections at a time
    [left] { $tier } accepts at most { $workers } connections and leaves the rest unanswered
    [compute] { $workers ->
        [1] the one worker of { $tier } is busy, and other cores are idle
        [2] both workers of { $tier } are busy, and other cores are idle
       *[other] all { $workers } workers of { $tier } are busy, and other cores are idle
    }
   *[wait] { $workers ->
        [1] the one worker of { $tier } is taken, and does not compute but waits
        [2] both workers of { $tier } are taken, and they do not compute but wait
       *[other] all { $workers } workers of { $tier } are taken, and they do not compute but wait
    }
}
finding-worker-pool-exhausted-explanation = { $kind ->
    [readers] Each worker of { $tier } serves one connection at a time, and keeps it until the response has left. Most of them hold responses that wait in the socket for their clients, or for the network to these. Meanwhile more connections wait for a worker. A proxy before { $tier } that takes each response whole (nginx: proxy_buffering, on by default) frees the worker at once; a server that holds connections without a worker for each (an event loop) needs none for them.
    [unread] { $tier } accepts every connection, but a request waits unread until a thread is free. At most { $workers } requests were in service at once while more waited, so that is the number of serving threads. They did not keep their cores busy: they wait for a disk, another server, a lock or a timer. More threads let more requests wait in parallel. If they wait for a shared resource that is at its limit, such as a database, more threads only move the wait there.
    [unread-compute] { $tier } accepts every connection, but a request waits unread until a thread is free. At most { $workers } requests were in service at once while more waited, so that is the number of serving threads. They were running most of the time, several at once, while cores on which more threads could run were idle.
    [threads-compute] Each of these threads of { $tier } serves one connection at a time. At most { $workers } connections were in service at once while more waited in the accept queue, so that is the number of serving threads. They were running most of the time, several at once, while cores on which more threads could run were idle.
    [threads] Each of these threads of { $tier } serves one connection at a time. At most { $workers } connections were in service at once while more waited in the accept queue, so that is the number of serving threads. They did not keep their cores busy: they wait for a disk, another server, a lock or a timer. More threads or processes let more requests wait in parallel. If they wait for a shared resource that is at its limit, more threads only move the wait there.
    [loops] { $tier } serves its connections with event loops, which had time left. Still, it never held more than { $workers } connections while more waited in the accept queue: it stops accepting at a limit of its own (maxconn, max connections, the size of a pool). Raise that limit. A longer accept queue would only let more clients wait.
    [loops-behind] { $tier } never held more than { $workers } connections while more waited in the accept queue: it stops accepting at a limit of its own (maxconn, max connections, the size of a pool). { $number } of these had a request at { $upstream }: raise that limit if { $upstream } can do more at once, else more of them only wait there. Time a single request to { $upstream } by hand: if it takes as long as now, it can. The event loops of { $tier } had time left.
    [left] { $tier } held { $workers } connections at once while others waited in the accept queue all the time. It stops accepting at a limit of its own (maxconn, max connections), and each accepted client keeps its place for as long as the connection is kept. The others wait until they give up, however many requests the first get answered. Raise that limit, or let kept connections end sooner (keep-alive timeout, requests per connection).
    [compute] Each worker of { $tier } serves one connection at a time and runs on one core at a time. { $workers ->
        [1] It was busy
        [2] Both were busy
       *[other] All { $workers } were busy
    } and more connections waited in the accept queue, while cores on which more workers could run were idle.
   *[wait] Each worker of { $tier } serves one connection at a time. { $workers ->
        [1] It was taken
        [2] Both were taken
       *[other] All { $workers } were taken
    } and more connections waited in the accept queue, but most of the time they did not run. They wait for something themselves: a disk, another server, a timer, or the next request on a kept connection. More workers let more requests wait in parallel. If they wait for a shared resource that is at its limit, such as a database, more workers only move the wait there.
}

finding-worker-pool-exhausted-awaited = Most of the time its { $unit ->
    [threads] threads
   *[workers] workers
} were found waiting for { $what }. If that takes less time, the same number of them serves more requests.
finding-worker-pool-exhausted-untold = Watching does not show whether they wait for each other: a request holds one for { $ms } ms. If a single request is answered much sooner while nothing else is asked, they do, and more of them only wait as well.

evidence-workers-ended = { $count ->
    [1] One worker of { $tier } ended meanwhile: it was killed or crashed,
   *[other] { $count } workers of { $tier } ended meanwhile: they were killed or crashed,
} or reached a limit of time, of requests or of memory. What a killed worker had to answer is lost.
evidence-worker-pool-busy = { $unit ->
    [connections] { $busy } connections were held on average, and { $workers }, the most, in { $full } of { $samples } samples.
    [threads] { $busy } of { $workers } threads held a connection on average, and all of them in { $full } of { $samples } samples.
   *[workers] { $busy } of { $workers } workers held a connection on average, and all of them in { $full } of { $samples } samples.
}
evidence-worker-pool-process-max = All pools of this php-fpm may have { $limit } workers together (process.max), fewer than the sum of their own limits.
evidence-worker-pool-configured = Pool { $pool } may have { $limit } workers (pm.max_children, pm = { $pm }).
evidence-worker-pool-active = In { $full } of { $looks } readings of php-fpm's status page, { $workers ->
    [1] the one worker of pool { $pool } was
    [2] both workers of pool { $pool } were
   *[other] all { $workers } workers of pool { $pool } were
} active.
evidence-worker-pool-reached = php-fpm's status page says that pool { $pool } needed more than { $workers } workers { $times } times.
evidence-worker-pool-waiting = On average { $waiting } connections waited to be accepted.
evidence-worker-pool-unread = On average { $waiting } requests waited unread on connections that were already accepted.
evidence-worker-pool-ready = { $unit ->
    [connections] Its processes were running or ready to run { $share } % of the time.
    [threads] The processes were running or ready to run { $share } % of the time; the rest the threads waited for something other than a core.
   *[workers] The workers were running or ready to run { $share } % of the time; the rest they waited for something other than a core.
}
evidence-worker-pool-left-watched = On average { $waiting } connections with a request waited for more than a second to be accepted, while { $served } others were answered again and again.
evidence-worker-pool-left = The clients spent { $share } % of their time on requests that were never answered.
evidence-worker-pool-cpu = The cores on which they may run were { $share } % busy.
evidence-worker-pool-times = A request took a worker for about { $service } ms, after about { $wait } ms of waiting.

finding-workers-blocked-on-upstream-title = { $unit ->
    [connections] the connections that { $tier } holds wait for { $upstream }
   *[workers] the workers of { $tier } wait for { $upstream }
}
finding-workers-blocked-on-upstream-explanation = { $unit ->
    [connections] { $tier } held { $workers } connections, as many as it accepts
   *[workers] { $workers ->
        [1] The one worker of { $tier } was taken
        [2] Both workers of { $tier } were taken
       *[other] All { $workers } workers of { $tier } were taken
    }
}, and most of them waited for a response from { $upstream }. If { $upstream } is at its limit, more workers would only send it more requests at once, and those would wait longer. Look there first: at its own workers, locks, slow queries and connections. If it answers a single request just as slowly (time one by hand), it is not at its limit, and more workers of { $tier } would help.
finding-workers-blocked-on-upstream-symptom = { $unit ->
    [connections] { $tier } held { $workers } connections, as many as it accepts,
   *[workers] { $workers ->
        [1] The one worker of { $tier } was taken
        [2] Both workers of { $tier } were taken
       *[other] All { $workers } workers of { $tier } were taken
    }
} because most of them waited for a response from { $upstream }. The cores on which it, or a server behind it, may run are all busy. More workers would not make them faster.

evidence-workers-blocked = In { $count } of { $looks } samples a busy worker waited for { $upstream }.
evidence-workers-blocked-stand = Of { $busy } requests that held a { $unit ->
    [connections] connection
   *[workers] worker
} on average, { $number } stood at { $upstream } or behind it: { $ms } ms of each request, at { $rate }/s.
evidence-workers-blocked-stand-unrated = Of { $busy } requests that held a { $unit ->
    [connections] connection
   *[workers] worker
} on average, { $number } stood at { $upstream } or behind it.
evidence-workers-blocked-time = A request took a worker for about { $ms } ms, of which it waited for other servers for about { $wait } ms.
evidence-workers-blocked-door = On average { $waiting } connections waited to be accepted by { $upstream }.

finding-requests-hang-title = requests hold the workers of { $tier } until these are ended: { $ended } of them ended meanwhile
finding-requests-hang-title-for = requests hold the workers of { $tier } until these are ended ({ $ended } ended meanwhile): they wait for { $what }
finding-requests-hang-explanation = All { $workers } workers of { $tier } are taken, and more requests wait for one. Most of the time they do nothing at all: a request holds its worker until somebody ends the worker (request_terminate_timeout of php-fpm, --timeout of gunicorn, harakiri of uWSGI, or the kernel for memory). That request is lost, and a new worker meets the next one. More workers would be held the same way.
evidence-requests-hang-ended = { $ended ->
    [1] One worker of { $tier } ended meanwhile
   *[other] { $ended } workers of { $tier } ended meanwhile
}. Of { $told } that were read twice before, { $still } had not run between the two readings.
evidence-requests-hang-still = For { $share } % of the time that was watched, the workers did not run at all: whoever works through requests runs between them.
coupling-pool-hang = The workers are taken by requests that hold them until they are ended. Without these the others would do.

finding-workers-wait-for-each-other-title = the { $workers } workers of { $tier } wait for each other: { $few ->
    [yes] less than one at a time goes on
   *[no] about { $at_once } at a time go on
}
finding-workers-wait-for-each-other-title-for = the { $workers } workers of { $tier } wait for each other ({ $few ->
    [yes] less than one at a time goes on
   *[no] about { $at_once } at a time go on
}): for { $what }
finding-workers-wait-for-each-other-title-sleep = the { $workers } workers of { $tier } sleep until something is free: { $few ->
    [yes] less than one at a time goes on
   *[no] about { $at_once } at a time go on
}
finding-workers-wait-for-each-other-explanation-sleep = All { $workers } workers of { $tier } are taken, and more requests wait for one. A single request takes { $alone } ms, but under load each holds its worker for { $held } ms, and the workers were found sleeping: they try again and again to get what others have, such as a database file (SQLite), a lock in a cache or the limit of a service. Whoever has it may be one of them or another program. More workers would sleep as well.
finding-workers-wait-for-each-other-title-lock = the { $unit ->
    [threads] { $workers } threads
   *[workers] { $workers } workers
} of { $tier } wait for { $what }
finding-workers-wait-for-each-other-explanation-lock = All { $workers } { $unit ->
    [threads] threads
   *[workers] workers
} of { $tier } are taken, and more requests wait for one. They were found waiting for { $what }. { $kind ->
    [full-pipe] Whoever reads it reads more slowly than they write. More of them would wait as well.
    [full-socket] Whoever reads there (for a log, its daemon) reads more slowly than they write. More of them would wait as well.
    [name-server] They look names up for each request instead of keeping the answers. A name cache on this host (nscd, systemd-resolved, dnsmasq) ends that; more of them would only ask more often.
   *[other] It is hardly ever free: whoever holds it lets the others wait. More of them would wait as well.
}
evidence-each-other-taken = { $busy } of { $workers } { $unit ->
    [threads] threads
   *[workers] workers
} were taken on average, and { $waiting } connections waited for one.
finding-workers-wait-for-each-other-explanation-for = All { $workers } workers of { $tier } are taken, and more requests wait for one. A single request takes { $alone } ms, but under load each holds its worker for { $held } ms without computing: the workers wait for each other, and were found waiting for { $what }. More workers would wait as well.
finding-workers-wait-for-each-other-explanation = All { $workers } workers of { $tier } are taken, and more requests wait for one. A single request takes { $alone } ms, but under load each holds its worker for { $held } ms without computing: the workers wait for each other, for a lock, a file, a connection or a limit inside the program. Which of these cannot be seen from outside. More workers would wait as well.

evidence-each-other-little = { $rate }/s x { $alone } ms = { $at_once } at a time: so many requests go through { $tier } at once, if each takes as long as one alone.
evidence-each-other-held = A request took a worker for about { $held } ms; a single request takes { $alone } ms, without delays of acknowledgements.
evidence-each-other-inside = On average { $waiting } of the requests that held one of { $workers } workers waited inside { $tier }, while no thread computed for them or was ready to.

finding-workers-wait-for-each-other-title-threads = { $kind ->
    [one] { $waiting } of the { $workers } threads of { $tier } that serve requests wait for one lock
   *[other] { $waiting } of the { $workers } threads of { $tier } that serve requests wait for other threads of it
}
finding-workers-wait-for-each-other-explanation-threads = All { $workers } threads of { $tier } that serve requests are taken, and more requests wait for one. { $kind ->
    [one] Nearly all of them wait in futex(2) at the same address: for one lock in memory. Whoever holds it goes on alone.
   *[other] Most of them wait in futex(2) without a timeout: until another thread of the same process lets them go on, which holds a lock, a semaphore, or a connection that they share.
} More threads would wait as well. Which lock it is cannot be seen from outside: the stacks of the threads name it.

evidence-each-other-threads = In { $looks } looks at threads of its processes, { $seen } of { $looked } waited { $kind ->
    [one] for one lock (futex(2) at one address)
   *[other] for another thread (futex(2) without a timeout)
} on average.
evidence-each-other-stand = Of { $busy } requests that held a thread on average, { $inside } waited inside { $tier }: not on a core, and not at another server.

finding-idle-held-title = { $unit ->
    [connections] { $idle } of the { $workers } connections that { $tier } accepts at most are idle: nothing is asked on them
   *[other] { $workers ->
        [1] the one { $unit ->
            [threads] thread
           *[workers] worker
        } of { $tier } is held by a connection on which nothing is asked
       *[other] { $idle } of { $workers } { $unit ->
            [threads] threads
           *[workers] workers
        } of { $tier } are held by connections on which nothing is asked
    }
}
finding-idle-held-explanation = { $unit ->
    [connections] { $tier } accepts no more connections at its limit, and most of those that it holds are idle: their clients have their responses, or have not asked yet, and keep the connections open.
    [threads] A thread serves one connection at a time, and keeps it while its client, which has its response or has not asked yet, leaves it open. Meanwhile it serves nobody else.
   *[workers] A worker serves one connection at a time, and keeps it while its client, which has its response or has not asked yet, leaves it open. Meanwhile it serves nobody else.
} On average { $waiting } connections wait to be accepted. { $asked ->
    [0] Hardly a place is taken by a request.
   *[other] Requests take { $asked } of the { $workers } places.
}

evidence-idle-held = Of { $taken ->
    [1] 1 connection
   *[other] { $taken } connections
} held on average, { $idle } had nothing unread, unanswered or unsent: nothing was asked on { $idle ->
    [1] it
   *[other] them
}.
evidence-idle-held-looks = In { $count } of { $looks } samples a busy worker waited in a system call for data of its client.
evidence-idle-held-turnover = { $connections } connections in { $seconds } s were held for { $ms } ms each, of which nothing was asked for { $idle_ms } ms.
evidence-idle-held-since = Nothing had been sent on them for { $ms } ms (median).

finding-waits-for-clients-title = { $workers ->
    [0] the processes of { $tier } wait for clients that have their response to close the connection
   *[other] { $held } of { $workers } workers of { $tier } wait for clients that have their response to close the connection
}
finding-waits-for-clients-explanation = The workers of { $tier } have sent the response and closed their side of the connection. They still hold the socket and wait for the client to close its side (a lingering close), and serve nobody meanwhile, while { $waiting } connections wait to be accepted. Clients that close late, are far away or have gone without a word keep the workers. More workers would wait for such clients too.

evidence-waits-for-clients = On average { $held } of { $taken } connections that processes held were answered, closed by the server and not by the client (FIN_WAIT2), with nothing unread.
evidence-waits-for-clients-looks = In { $count } of { $looks } samples a busy process waited in a system call for the end of such a connection.
evidence-waits-for-clients-since = The response had been sent { $ms } ms before (median).
evidence-waits-for-clients-open = { $open } of the clients' ends of these connections are on this host: they know that the server has closed, and their programs keep them open (CLOSE_WAIT).

finding-setting-not-in-force-pool-title = { $running } workers of { $tier } run, although pm.max_children of [{ $pool }] is { $written }
finding-setting-not-in-force-pool = All workers of { $tier } are taken and wait, although its configuration allows more. { $file } was changed after { $tier } read it, so the new value is not in force.

evidence-not-in-force-pool = pm.max_children of [{ $pool }] is { $written }, and { $running } workers run.

coupling-pool-blocked = The workers are taken because most of them wait for another server. If they waited for a timer or a disk, the pool would be the cause.
coupling-pool-turns = The workers are taken because they wait for each other. If each took as long as alone, they would be free, and if they still were too few, the pool would be the cause.
coupling-pool-clients = The workers are taken because they wait for clients that have their response. If those closed their connections, the workers would be free, and if the workers waited for something of their own, the pool would be the cause.
coupling-queue-clients = Nobody accepts connections while the processes wait for clients that have their response. If those closed their connections, the queue would be emptied in time.
coupling-pool-files = A process without a file descriptor accepts no further connection, however many it could serve. If descriptors were free, the pool would be the cause.
coupling-pool-unforced = The configured number of workers of this pool would be large enough, but fewer run. If all of them ran, the pool would be the cause.
coupling-pool-link = The link that carries the tier's responses is full, so its workers wait to send. If the link had capacity, they would wait for something of their own.
coupling-blocked-loss = Packets between the two servers are lost, and each loss blocks a worker until they are sent again. If nothing were lost, the other server would be the place to look.
coupling-pool-buffer = The tier's send buffers are full of data that is sent but not acknowledged, and its workers wait for space in them. If there were space, they would be free as soon as the response is written.
coupling-pool-receiver = The clients accept responses only as fast as their windows allow, and workers wait for that. If clients accepted more at once, the workers would be free.
coupling-pool-first-window = Responses take more round trips than necessary, and workers wait meanwhile. With the usual initial window they would be free sooner.
coupling-pool-loss = Packets of the tier's responses are lost, and its workers wait until they are sent again. If nothing were lost, they would wait for something of their own.
coupling-blocked-table = Connections to the other server are dropped on the way and hang. If the table were not full, that server would be the place to look.
coupling-blocked-awaited = The server that the workers wait for, or one behind it, has a cause of its own. If it had none, it would be the place to look.
coupling-blocked-cores = The server that the workers wait for, or one behind it, runs on cores that are all busy. If cores were idle, it would be the place to look.
coupling-pool-quota = A CPU quota stops the workers during their requests, and more workers would share the same CPU time. If CPU time were left, the pool would be the cause.
