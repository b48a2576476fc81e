# Station waiting: its states, findings and evidence, and what brings them about.

short-waiting = waiting

state-waiting-ok = { $number } of { $under_way } requests waited inside { $tier } on average; the reason could not be observed.
state-waiting-errors = { $errors } of { $requests } requests were answered with a server error that { $tier } made, most with status { $clients_status }.
state-waiting-most = { $number } of { $under_way } requests waited inside { $tier } on average, for each other.

finding-waits-inside-title = { $number } of { $under_way } requests wait inside { $tier }
finding-waits-inside-title-calls = { $kind ->
    [at-once] { $number } of { $under_way } requests wait inside { $tier }, which has at most { $connections } at a time at { $remote }
   *[all] { $number } of { $under_way } requests wait inside { $tier }, which uses all of its { $connections } { $connections ->
        [one] connection
       *[other] connections
    } to { $remote } all the time
}
finding-waits-inside-title-peers = { $number } of { $under_way } requests wait inside { $tier } ({ $listener }): it takes { $own_ms } ms for one, and { $others ->
    [one] the other server
   *[other] the { $others } others
} behind { $caller } { $others_ms } ms
finding-waits-inside-explanation-peers = { $caller } passes requests to { $tier } and to { $others ->
    [one] another server
   *[other] { $others } others
} that run the same program, and no more of them to { $tier }. Each takes longer there, so what slows them down is its own: its data, its disk, its host, a bad release, or work that only it does. Until that is mended, more requests pass without it, or with a smaller part for it.
finding-waits-inside-title-late = { $number } of { $under_way } requests wait inside { $tier }, or until it reads them
finding-waits-inside-explanation-late = { $tier } leaves requests unread for long, though it hardly computes meanwhile, and a single request is answered much faster. So one call holds up all others: a sleep, a lock, a write to a slow pipe or log, or a query that an event loop waits for. Which of these cannot be seen from outside.
finding-waits-inside-explanation-held-up = { $tier } leaves requests unread for long, though its threads hardly run meanwhile. Whoever serves many connections in turns reads all that has come before it waits again, so one call holds up all others: a sleep, a lock, a program that it starts, a write to a slow pipe or log, or a query that an event loop waits for. Which of these cannot be seen from outside.
finding-waits-inside-explanation-calls = { $kind ->
    [at-once] { $tier } has read these requests but does not work on them: they wait until one of the { $connections } that it has at { $remote } is answered. It passes no more than that at a time, although it has { $all } connections, so the number is most likely a limit: maxconn or max_conns of a proxy, or a limit of requests at once in a program. The server behind it gets no more work than that.
   *[all] { $tier } has read these requests but does not work on them: they wait until one of its { $connections } connections to { $remote } is free. It opens no more, so their number is most likely a limit: maxconn or max_conns of a proxy, or the size of a connection pool. The server behind it gets no more work than that.
}
finding-waits-inside-explanation-alone = { $tier } has read these requests, but neither computes nor waits for a server that can be observed. A single request is answered much faster, so the requests wait for each other: for a lock, a limit inside the program or a connection from a pool. Which of these cannot be seen from outside.
finding-waits-inside-explanation-grows = { $tier } has read these requests, but neither computes nor waits for a server that can be observed. The more of them it holds, the longer each takes, so they wait for each other: for a lock, a limit inside the program or a pool. Which of these cannot be seen from outside.

finding-waits-inside-title-for = { $thread ->
    [only] { $number } of { $under_way } requests wait for { $tier }, whose serving thread waits for { $what }
   *[some] { $number } of { $under_way } requests wait inside { $tier }, for { $what }
}
finding-waits-inside-explanation-for = { $thread ->
    [only] { $tier } serves with one thread, and most of the time that thread was found waiting for { $what }. Meanwhile it reads, computes and answers nothing else. More requests pass if it does not wait for that itself, or not as long.
   *[some] { $tier } has these requests, and neither computes nor waits for a connection. It was found waiting for { $what }. More requests pass if it waits for that less often, or not as long.
}
awaited-answer = an answer of { $remote }
awaited-file-lock = { $is_known ->
    [yes] a lock on { $object }
   *[no] locks on files
}{ $held ->
    [yes] , held by { $holder } (process { $pid })
    [unnamed] , held by process { $pid }
   *[no] {""}
}
awaited-retried-lock = { $is_known ->
    [yes] a lock on { $object } (it sleeps and tries again)
   *[no] locks on files (it sleeps and tries again)
}
awaited-semaphore = a semaphore (semop)
awaited-shared-lock = a lock in memory that processes share (futex)
awaited-meanwhile = { $what }, while one of them waits for { $for ->
    [disk] the disk
    [name-server] a name server
    [child] a process that it starts
   *[output] whoever reads its output
}
awaited-disk = { $is_known ->
    [yes] the disk ({ $object })
   *[no] the disk (several files)
}
awaited-full-pipe = { $is_known ->
    [yes] whoever reads { $object } (a full pipe)
   *[no] whoever reads its output (a full pipe)
}
awaited-full-socket = the reader of a full Unix datagram socket, such as a log daemon
awaited-empty-pipe = what others write to a pipe
awaited-name-server = { $is_known ->
    [yes] the name server { $object }
   *[no] name servers
}
awaited-child = { $is_known ->
    [yes] processes that it starts ({ $object })
   *[no] processes that it starts
}
awaited-timer = a timer (it sleeps)
awaited-transaction = { $is_known ->
    [yes] a lock that another transaction has ({ $object })
   *[no] a lock that another transaction has
}
awaited-session = a lock that another session has
evidence-awaited-woken = Each of these waits has a time at which it gives up. At the next look, before that time, threads were gone from there: another thread had ended their wait.
evidence-awaited-meanwhile = { $threads } of its processes, on average, waited meanwhile for { $for ->
    [disk] the disk
    [name-server] a name server
    [child] a process that they started
   *[output] whoever reads their output
}: most likely the one that has the lock.
evidence-awaited-for-all = The other requests wait for one of these to be free, or for the same answer. If the program looks names up in a few threads, more threads help as well.
evidence-awaited = { $of ->
    [sockets] { $seen } of { $looks } looks at its processes found connected sockets that ask { $what }: { $threads } on average.
    [sessions] { $seen } of { $looks } looks at its processes found sessions that wait for { $what }: { $threads } on average.
   *[threads] { $seen } of { $looks } looks at its processes found threads that wait for { $what }: { $threads } on average.
}

finding-waits-inside-untold = { $tier } has read these requests, and other programs use most of its cores. Whether its threads waited for a core could not be read, so the requests wait for each other or for that.

finding-answers-none-title = { $tier } at { $listener } was not seen to answer any request: { $waiting } of { $under_way } requests wait for it
finding-answers-none-explanation = { $kind ->
    [other] { $tier } accepts connections and their requests, and sent nothing on any of those that were seen, while { $other } answers what { $caller } passes to it. What { $caller } passes to { $tier } waits until somebody gives up, and that makes up most of all requests in flight.
   *[alone] { $tier } accepts connections and their requests, and sent nothing on any of those that were seen. The requests fail when somebody gives up.
}
evidence-answers-none-sockets = { $connections } connections of { $tier } were seen with a request, and none of them with an answer; the oldest request had waited for { $oldest } ms.
evidence-answers-none-sibling = Packets showed { $answered } responses of { $other }, and none of { $tier }.
evidence-answers-none-failed = { $failed } of { $requests } requests failed because no answer came in time.
finding-answers-errors-title = { $tier } answers { $share } % of { $whose ->
    [its] its
   *[all] the
} requests with errors, most with status { $status }{ $reason ->
    [header] : the header of a response is larger than its buffer for it
    [invalid] : a server behind it breaks the protocol
    [none-live] : it has no server left to ask
    [none-asked] : it asks no server behind it
    [timed-out] : a server behind it does not answer in time
    [closed] : a server behind it closes without an answer
    [reset] : a server behind it resets connections
    [connect] : it cannot connect to a server behind it
   *[none] {""}
}
finding-answers-errors-explanation-header = { $tier } reads the header of a response into one buffer and ends the request with { $status } if it does not fit: a large cookie, or many headers. The server behind it has answered, and nothing is at its limit.
finding-answers-errors-explanation-none-live = All servers that { $tier } may ask are out: marked as down, or taken out for a while after failures (nginx: after max_fails = 1 failure for fail_timeout = 10 s, unless set otherwise). Meanwhile it answers without asking anybody, however well they do. What failed before stands in its log as well.
finding-answers-errors-explanation-logged = { $tier } makes these responses itself, and its error log says why.
finding-answers-errors-explanation = { $behind ->
    [answers] { $tier } makes these responses itself: the servers behind it answered otherwise. It may have had no server to ask, reached its own limit of connections to them, or waited too long. Its log, if it keeps one, says which.
    [silent] { $tier } makes these responses itself and asks no server behind it. It has none to ask: its checks of them fail, they are taken out or in maintenance, no group of servers is chosen for the request, or a rule of its own answers. Its log, its status page or its control socket says which (HAProxy: "show stat"); what the server behind answers to such a check says why.
    [unread] { $tier } sends these responses. The servers behind it were not seen to send any over plain HTTP, so whether one of them is why cannot be seen from outside. The log of { $tier } says it.
   *[nobody] { $tier } makes these responses itself: no server behind it was seen that could. Its own log or a rule of its configuration says why.
}
evidence-answers-errors-clients = { $errors } of { $requests } requests were answered with a server error, most with status { $clients_status }.
evidence-answers-errors-sibling = { $name }, beside it, answers with errors as well: { $own } of { $own_all } responses.
evidence-answers-errors-logged = Its error log has { $count } lines of that ({ $event }){ $has_others ->
    [yes] , beside { $others }
   *[no] {""}
}, such as: { $line }
evidence-answers-errors-own = Of { $own_all } responses of { $tier } that were read on the wire, { $own } were server errors.
evidence-answers-errors-none-behind = { $seen ->
    [0] Of the servers that { $tier } may ask, no response was seen meanwhile, and no connection with a request.
    [one] Of the servers behind { $tier }, one response was seen on the wire meanwhile.
   *[other] Of the servers behind { $tier }, { $seen } responses were seen on the wire meanwhile: its checks of them, and hardly anything else.
}
evidence-out-of-service = { $tier } itself says that { $out } of the { $all } servers for these requests are out of service.
evidence-answers-errors-behind = Of { $behind_all } responses of the servers behind { $tier } that were read on the wire, { $behind_errors } were server errors.

coupling-errors-found = Another station holds requests back or refuses them, and these errors may be how that ends. If no other station did, the server that makes them would be the place to look.

evidence-waits-inside = Of { $under_way } requests in flight, { $range } had been read by { $tier } and not answered, while no thread of it computed for them or was ready to, and none of its connections waited for them.
evidence-waits-inside-late = Of { $under_way } requests in flight, { $range } had come to { $tier } and were not answered; { $unread } were not even read. Meanwhile no thread of { $tier } computed for them or was ready to, and none of its connections waited for them.
evidence-waits-inside-calls = { $kind ->
    [at-once] Of { $all } connections of { $tier } to { $remote }, { $connections } waited for an answer in most samples, and never more; { $used } on average.
   *[all] { $tier } had { $connections } { $connections ->
        [one] connection
       *[other] connections
    } to { $remote }; on average { $used } of them waited for an answer.
}
evidence-waits-inside-unanswered = { $count ->
    [1] One connection of { $tier } to { $address } waited for an answer all the time, and none came. What serves its request
   *[other] { $count } connections of { $tier } to { $address } waited for an answer all the time, and none came. What serves their requests
} (a thread, a worker, a place in a pool) serves nothing else meanwhile: a call needs a time limit of its own.
evidence-waits-inside-peers = A request takes { $own_ms } ms at { $tier }, and { $others_ms } ms at most at { $others ->
    [one] the other server
   *[other] the { $others } other servers
} behind { $caller } (number in flight over responses a second).
evidence-waits-inside-little = { $rate }/s x { $ms } ms = { $at_once } at a time: so many requests go through { $tier } at once, if each takes as long as one alone.
evidence-waits-inside-alone = The median response time was { $loaded } ms; a single request took { $alone } ms.
evidence-waits-inside-alone-mean = A response took { $loaded } ms on average; a single request took { $alone } ms.
evidence-waits-inside-grows = With { $few } requests in flight they had waited for { $few_ms } ms on average, with { $many } for { $many_ms } ms.
evidence-waits-inside-held-up = In { $seen } of { $samples } samples requests of the usual length stood unread, and the threads of { $tier } ran or were ready to for { $busy } % of the time, all of them together.
evidence-waits-inside-bound = Without that wait, at most { $low } to { $high } times as many requests could pass, and no more than the next limit allows.
evidence-waits-inside-bound-none = Nearly all of a request's time passes there: without that wait the next limit decides how many pass.
evidence-waits-inside-bound-exact = Without that wait, at most { $high } times as many requests could pass, and no more than the next limit allows.

finding-collects-garbage-title = { $kind ->
    [stands] { $tier } stands still for { $share } % of the time to collect garbage
   *[cores] { $tier } spends { $share } % of the time of its cores on collecting garbage
}
finding-collects-garbage-explanation = { $tier } gives memory back that it no longer uses, again and again: what it still uses leaves little room below the limit of its heap, or each request makes much that is thrown away. A larger heap makes that seldom. With the usual share of { $usual } % or less, about { $times } times as many requests would pass, and no more than the next limit allows.
evidence-collects-garbage-used = Threads that collect garbage ({ $names }) used { $used } of the { $own } cores that { $tier } used.
evidence-collects-garbage-profiled = Functions that collect garbage used at least { $used } of the { $own } cores that { $tier } used.
evidence-collects-garbage-usual-inside = Go's runtime gives up to { $usual } % of its cores to it while it marks; beyond that it makes the program help.
evidence-collects-garbage-stands = One of them ran or was ready to for { $stands } % of the time, and all other threads of the program stand still while it does.
evidence-collects-garbage-usual = Java's virtual machine aims at { $usual } % of the time or less, and enlarges its heap for that up to its limit.
coupling-collector-quota = The CPU quota stops collectors as well, and everything stands still for longer.
coupling-collector-pool = The server's threads stand still while its garbage is collected, and this may be how that shows. With a larger heap it can be measured again.

coupling-silent-found = Another finding shows why the server does not answer. If there were none, the server itself would be the place to look.
coupling-inside-found = Another station holds requests back, and those inside the program may wait for that. If no other station did, the program would be the place to look.
coupling-inside-cores = All cores are busy, so whatever the requests inside the program wait for runs too late. If cores were idle, the program would be the place to look.
coupling-inside-link = The link is full, so responses cannot leave, and requests inside the program may wait for that. If the link had capacity, the program would be the place to look.
