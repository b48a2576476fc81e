# Station accept-queue: its states, findings and evidence, and what brings them about.

short-accept-queue = accept queue

state-accept-queue-ok = At most { $peak } of { $limit } connections waited at { $listener }; none was refused.
state-accept-queue-near = { $peak } of { $limit } connections waited at { $listener }; none was refused yet.
state-accept-queue-harmless = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }); too few requests were affected to count as harm.
state-accept-queue-start = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }) at the start of the load, when all connections came at once; none after that.
state-accept-queue-refusing = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }).

finding-accept-queue-full-title = the accept queue of { $tier } at { $listener } overflows (room for { $limit })
finding-accept-queue-full-explanation = { $tier } accepts connections fast enough on average, but they arrive in bursts, and at most { $limit } can wait at { $listener }. The kernel drops a connection that finds the queue full, and the client retries { $again }. In a longer queue it would wait for a fraction of that time. The limit is the smaller of the backlog that { $tier } passes to listen() and net.core.somaxconn.
finding-accept-queue-full-unix = { $tier } accepts connections fast enough on average, but they arrive in bursts, and at most { $limit } can wait at { $listener }. A unix socket does not retry: when the queue is full, connect() fails at once (errno 11, EAGAIN) and the client gets an error such as 502. In a longer queue the connection would wait for a moment only. The limit is the smaller of the backlog that { $tier } passes to listen() and net.core.somaxconn.
finding-accept-queue-full-slow = The queue of { $listener } was full in { $full } of { $samples } samples: connections come faster than { $tier } accepts them. The kernel drops a connection that finds the queue full. In a longer queue it would only wait longer.
finding-accept-queue-full-mostly = The queue of { $listener } was full in { $full } of { $samples } samples: connections come faster than { $tier } accepts them, and at most { $limit } can wait there. The kernel drops a connection that finds the queue full, and the client retries { $again }.
finding-accept-queue-full-unix-mostly = The queue of { $listener } was full in { $full } of { $samples } samples: connections come faster than { $tier } accepts them, and at most { $limit } can wait there. A unix socket does not retry: when the queue is full, connect() fails at once (errno 11, EAGAIN) and the client gets an error such as 502.
finding-accept-queue-full-unread = Which processes accept connections at { $listener } could not be read. If they are all busy, a longer queue would not help; if not, the queue is too short.
finding-accept-queue-full-symptom = Connections wait at { $listener } because { $tier } does not accept them in time: it waits for another server, or has too few workers. A longer queue would only add waiting time.

evidence-accept-queue-drops = { $count } connections found the queue of { $listener } full in { $seconds } s.
evidence-accept-queue-gateway = The queue of { $listener } was full at times, and { $count } requests were answered with 502 or 503 in { $seconds } s. No log of the calling server could be read that counts the refused connections.
evidence-accept-queue-own = { $count } connections of this load found the queue of { $listener } full in { $seconds } s and were refused (EAGAIN).
evidence-accept-queue-limit = At most { $peak } connections waited, and the limit is { $limit }; { $mean } waited on average.
evidence-accept-queue-harm = { $failed } of { $requests } requests failed, and the p99 response time was { $p99 } ms.
evidence-accept-queue-wait = In a longer queue a connection would wait for about { $ms } ms.

finding-accepts-none-title = { $kind ->
    [stopped] { $tier } is { $state } and accepts no connections at { $listener }
    [one-stopped] { $processes ->
        [one] process { $pids } of { $tier } is
       *[other] processes { $pids } of { $tier } are
    } { $state }, and nobody accepts the connections that wait for { $processes ->
        [one] it
       *[other] them
    } at { $listener }
    [one-asleep] { $processes ->
        [one] process { $pids } of { $tier } accepts
       *[other] processes { $pids } of { $tier } accept
    } none of the connections that wait for { $processes ->
        [one] it
       *[other] them
    } at { $listener }
   *[asleep] { $tier } accepts no connections at { $listener }
}
finding-accepts-none-explanation = { $kind ->
    [stopped] The kernel completes the handshakes, but { $processes ->
        [one] process { $pids } of { $tier } is
       *[other] processes { $pids } of { $tier } are
    } stopped, so the connections stay in the accept queue of { $listener } until their clients give up. A longer queue would only let more of them wait.
    [one-stopped] { $sockets } sockets listen at { $listener } (SO_REUSEPORT), each with an accept queue of its own, and the kernel gives each its share of the connections, whether somebody accepts them or not. Those in this queue wait until their clients give up; the other sockets are served. A longer queue would only let more of them wait.
    [one-asleep] { $sockets } sockets listen at { $listener } (SO_REUSEPORT), each with an accept queue of its own, and the kernel gives each its share of the connections, whether somebody accepts them or not. No process that has this socket ran at all: its threads wait for something else, or do not call accept(). The other sockets are served. A longer queue would only let more connections wait.
   *[asleep] The kernel completes the handshakes, but no process of { $tier } that listens at { $listener } ran at all, so the connections stay in its accept queue until their clients give up. Its threads wait for something else, or do not call accept(). A longer queue would only let more of them wait.
}
finding-processes-stopped-title = { $kind ->
    [some] { $processes } of { $all } processes of { $tier } { $processes ->
        [one] is
       *[other] are
    } { $state }, and requests wait for { $processes ->
        [one] it
       *[other] them
    }: { $pids }
    [again-some] { $processes } of { $all } processes of { $tier } { $processes ->
        [one] is
       *[other] are
    } { $state } { $share } % of the time, and requests wait for { $processes ->
        [one] it
       *[other] them
    }: { $pids }
    [again] { $tier } is { $state } { $share } % of the time, and requests wait for it: { $pids }
   *[all] { $tier } is { $state }, and requests wait for it: { $pids }
}
words-halted-signal = stopped (SIGSTOP or a debugger)
words-halted-frozen = frozen (control group { $group })
finding-processes-stopped-explanation = { $kind ->
    [again] Something halts { $tier } again and again and lets it go on each time: cpulimit, a script that sends SIGSTOP and SIGCONT, a backup or snapshot that freezes its container. Nothing moves meanwhile: requests stay unread, and those that it has begun take that much longer.
    [again-some] Something halts these processes again and again and lets them go on each time: cpulimit, a script that sends SIGSTOP and SIGCONT, a backup or snapshot that freezes their container. Requests on their connections wait meanwhile, which no other process can answer.
    [some] A stopped process answers none of the requests on its connections, which no other process can answer, and accepts no others. The processes that are not stopped serve all the rest, and where they are all taken, new connections wait.
   *[all] A stopped process answers none of the requests on its connections, and accepts no others.
}
finding-processes-traced-title = { $kind ->
    [some] { $processes } of { $all } processes of { $tier } { $processes ->
        [one] is
       *[other] are
    } traced by { $name } (pid { $tracer }), which stops { $processes ->
        [one] it
       *[other] them
    } at every step, and requests wait: { $pids }
   *[all] { $tier } is traced by { $name } (pid { $tracer }), which stops it at every step, and requests wait: { $pids }
}
warning-traced = { $name } (pid { $tracer }) traces { $kind ->
    [some] { $processes } of { $all } processes of { $tier } ({ $pids })
   *[all] { $tier } ({ $pids })
}: the kernel stops what is traced at its system calls, which costs time.
finding-processes-traced-explanation = A tracer (strace, a debugger, a tool for security or coverage) attaches with ptrace(2). The kernel then stops each thread of the traced process at its system calls or signals until the tracer has run and let it go on, twice for each call. Requests wait all that time, and both processes use CPU time for it.
finding-accepts-slowly-title = { $tier } accepts too slowly at { $listener }: { $waiting } connections wait for a worker or thread
finding-accepts-slowly-explanation = Connections come to { $listener } faster than { $tier } accepts them, and they wait there all the time. { $tier } does not lack cores: it has too few workers or threads that accept and serve, or these wait for something themselves (a timer, a lock, a disk, another server). A longer queue would only let more connections wait.

evidence-accepts-none-queue = { $spread ->
    [some] { $least } to { $most } connections
   *[none] { $least } { $least ->
        [one] connection
       *[other] connections
    }
} waited in this queue of { $listener } in { $waited } of { $samples } samples, and none was seen to leave the queue; { $refused } found it full (room for { $limit }).
evidence-accepts-none-stopped = { $processes ->
    [one] Process { $pids } was
   *[other] Processes { $pids } were
} { $state } in all { $looks } readings{ $processes ->
    [one] {""}
   *[other] {" "}of each
}.
evidence-accepts-none-ran = The processes that listen there ({ $pids }) ran for 0 ms in { $seconds } s.
evidence-processes-stopped-again = { $halted } of { $looks } readings found { $processes ->
    [one] process { $pid } { $state }
   *[other] process { $pid } { $state }, more often than the others
}.
evidence-processes-stopped-waiting = Of { $under_way } requests in flight, { $waiting } waited for { $processes ->
    [one] this process
   *[other] these processes
}.
evidence-processes-stopped-held = Of { $under_way } requests in flight, { $held } stood on connections that only { $processes ->
    [one] it has
   *[other] they have
} open.
evidence-processes-stopped-queued = Of { $under_way } requests in flight, { $queued } waited to be accepted at { $listener }, nearly all the time, although the cores had room.
evidence-processes-traced-by = { $name } (pid { $tracer }) traces { $processes ->
    [one] process { $pids }
   *[other] processes { $pids }
} of { $tier }.
evidence-processes-traced-stopped = In { $share } % of { $looks } looks the tracer had stopped the thread that was looked at (state t). Threads count by how often they were seen awake.
evidence-processes-traced-waiting = Of { $under_way } requests in flight, { $waiting } waited for these threads or were at one of them.
evidence-accepts-slowly-queue = { $waiting } connections waited at { $listener } on average; the queue (room for { $limit }) was full in { $full } of { $samples } samples, and { $refused } connections were refused.
finding-accepts-slowly-explanation-replaced = Connections come to { $listener } faster than { $tier } accepts them, and they wait there all the time. { $tier } does not lack cores: it starts processes all the time, more than it has to serve, and a new process accepts nothing until it is ready. They end after few requests: by a limit of requests for each, or by an error.
evidence-accepts-slowly-replaced = { $tier } started { $per_s } processes a second, and { $serving ->
    [one] one process was
   *[other] { $serving } processes were
  } seen that may serve.
evidence-accepts-slowly-ran = The busiest thread of { $tier } ran or was ready to { $share } % of the time.
evidence-accepts-stand-rated = Of { $under_way } requests in flight, { $number } waited to be accepted by { $tier }: { $ms } ms of each request, at { $rate }/s.
evidence-accepts-stand = Of { $under_way } requests in flight, { $number } waited to be accepted by { $tier }.

finding-setting-not-in-force-queue-title = the accept queue of { $tier } at { $listener } holds { $limit } connections, although its configuration says { $written }
finding-setting-not-in-force-queue = The accept queue of { $listener } overflows, although the configured backlog of { $tier } is large enough. A listener gets its limit when the server calls listen(), from the backlog and net.core.somaxconn at that moment. One of the two was raised later, and { $tier } has not called listen() since. A reload alone does not help: nginx calls listen() again only if the value of backlog= changed, and php-fpm keeps its sockets.
finding-setting-not-in-force-queue-edited = The accept queue of { $listener } overflows, although the configured backlog of { $tier } is large enough. { $file } was changed after { $tier } read it, so the new value is not in force.

evidence-not-in-force-queue = The limit in force at { $listener } is { $limit }; the configuration gives { $written }.
evidence-not-in-force-backlog = The { $setting } is { $value }.
evidence-not-in-force-somaxconn = net.core.somaxconn, which caps the backlog when a server calls listen(), is { $somaxconn } now.

coupling-queue-pool = All workers of the tier are busy, so none accepts connections, and a longer queue would only add waiting time. If a worker were free, the queue would be the cause.
coupling-queue-files = accept() fails because no file descriptor is left, and connections stay in the queue. If descriptors were free, the queue would be the cause.
coupling-queue-connections = Workers without a free connection stop accepting, and the queue stays full. If the queue overflowed only in bursts, it would be a second cause.
coupling-queue-search = The search for a free port uses up the cores of this tier, so it accepts connections too late. Without the search, the queue would be the cause.
coupling-queue-unforced = The configured backlog of this listener would be large enough, but a smaller one is in force. If the configured value were in force, the queue would be the cause.
coupling-queue-cores = The cores that the tier may use are all busy, so it accepts connections too late, and a longer queue would only add waiting time. If cores were idle, something else would delay accept().
coupling-unforced-files = Without a file descriptor the server cannot accept a connection, however long the queue is. If descriptors were free, the setting would be the cause.
coupling-queue-quota = A CPU quota stops the processes that should accept connections most of the time, and a longer queue would only add waiting time. If CPU time were left, the queue would be the cause.
coupling-unforced-quota = A CPU quota stops the servers, so the configured queue would fill up as well. If CPU time were left, the setting would be the cause.
coupling-queue-none = Nobody accepts the connections that wait, so the queue fills up however long it is. If they were accepted, the queue would be the cause.
coupling-queue-slowly = The queue is full most of the time because connections come faster than they are accepted. If it had room most of the time and overflowed in bursts, the queue would be the cause.
coupling-pool-none = Connections wait because a process accepts none, whatever the workers do. If it accepted them, the pool would be the cause.
coupling-queue-stopped = Stopped processes accept nothing and the others have no time for more, so the queue fills up however long it is. If they went on, the queue would be the cause.
coupling-queue-traced = A tracer stops the threads that accept and serve, so connections wait for them however long the queue is. Without it, the queue would be the cause.
coupling-pool-traced = A tracer stops the threads that serve, so each request takes its worker for longer. Without it, the pool would be the cause.
coupling-pool-stopped = Stopped processes hold requests and serve none, and the others are all taken. If they went on, the pool would be the cause.
