# Verdicts and warnings: sentences of the diagnosis as a whole.

verdict-choked = Choked: { $title }.
verdict-client-limited = No verdict about the server's rate: { $title }.
verdict-healthy-cpu = Healthy, limited by CPU: { $why }
verdict-overloaded-cpu = Overloaded, limited by CPU: { $why } { $failed } % of the requests failed, because more are made than these cores can answer.
verdict-overloaded-link = Overloaded, limited by the link: { $why } { $failed } % of the requests failed, because more are made than it can carry.
verdict-healthy-link = Healthy, limited by the link: { $why }
verdict-healthy-demand = Healthy: { $connections } connections are too few to reach any limit of the server{ $are ->
    [near] , but they come near one: its cores were { $busy } % busy.
   *[free] .
}
verdict-unknown-in-pieces = Cannot tell: responses of { $tier } leave in pieces with pauses between them, on { $number } connections, and nothing on the way holds them back then. A limit of the rate of each response looks so (nginx: limit_rate, X-Accel-Limit-Rate; Apache: mod_ratelimit; lighttpd: kbytes-per-second; HAProxy: bwlim), and a program that makes its response bit by bit.
verdict-healthy-demand-open = Healthy: the server answered all of the { $rate } requests/s that were offered; no limit was reached.
verdict-healthy-watched = Healthy: { $under_way } requests at the server on average, at most { $most }. { $why }, so the server keeps up. { $reserve }
verdict-healthy-watched-timed = Healthy: { $under_way } requests at the server on average, { $ms } ms each, at most { $most }. { $why }, so the server keeps up. { $reserve }
healthy-watched-untried = How much more it could serve was not tried (-c).
healthy-watched-near = Its cores were { $busy } % busy, so that they have little left for more.
healthy-watched-empty = There was none in { $share } % of the samples
healthy-watched-none = No sample found one at the server
healthy-watched-single = A single one waits for no other
healthy-watched-met = They seldom met: even if only one at a time were served, they waited for each other for at most { $share } % of their time
healthy-watched-idle = The clients had { $idle } more connections on which they asked for nothing
healthy-watched-room = { $busy } of the { $workers } { $unit } of { $tier } were taken on average, at most { $most }
healthy-watched-alike = With { $many } in flight they took no longer than with { $few }
healthy-watched-spare = The clients had { $spare } connections to spare
healthy-watched-drained = At times there were { $most }, and soon { $usual } again
healthy-watched-usual = Usually they take { $usual_ms } ms
healthy-watched-independent = They come and go independently of each other
healthy-watched-spent = Most of their time passes on cores, on the network or at the clients
verdict-unknown-unsampled = Cannot tell: no station on the path refused requests or reached its limit while the traffic was watched, but where the requests stood was not sampled.
verdict-unknown-watched-untold = Cannot tell: { $number } connections carry several requests at once, send data without being asked, or do not show whether a request is in flight. So it is not known where most requests stand. A load (-c) tells, because it knows its own requests.
verdict-unknown-watched-inside = Cannot tell: { $number } of { $under_way } requests wait inside { $tier }. Watching showed no other number of them to compare their times with: they may wait for each other, or each for its own time. A load (-c) tells, or watching while the traffic varies (-z).
verdict-unknown-watched-inside-for = Cannot tell: { $number } of { $under_way } requests wait inside { $tier }, whose threads were found waiting for { $what }. Watching showed no other number of them to compare their times with: they may wait for each other there, or each for its own time. A load (-c) tells, or watching while the traffic varies (-z).
verdict-unknown-perhaps-errors = Cannot tell: { $errors } of { $requests } packets that look like responses of { $tier } have a status of an error (5xx or 429). Their connections were open before the watching began, so that a page which quotes such lines looks the same, and no access log was read. A load (-c) tells, because it knows its own responses.
warning-perhaps-errors = { $errors } of { $requests } packets that look like responses of { $tier } have a status of an error (5xx or 429). Their connections were open before the watching began, so that this is not sure.
verdict-unknown-watched-grows = Cannot tell: with { $few } requests in flight they had waited for { $few_ms } ms on average, with { $many } for { $many_ms } ms, so the server does not keep up. No observed station explains it. A load (-c) compares a single request with requests under load.
verdict-unknown-watched-let-go = Cannot tell: { $mean } requests were in flight on average and { $most } at most, and { $gone } of them were gone within { $ms } ms. At that pace hardly any would have to wait, so something stops them again and again{ $tier ->
    [none] {""}
   *[other] , most of them inside { $tier }
}: a lock that a job takes (of a table, a file), a collection of garbage, a program that is stopped, a disk that is flushed. No observed station explains it.
verdict-unknown-watched-full = Cannot tell: { $remote ->
    [none] { $tier } works on { $at_once ->
        [one] one request
       *[other] { $at_once } requests
    } at once and on no more
   *[other] { $tier } asks { $remote } on { $at_once ->
        [one] one connection
       *[other] { $at_once } connections
    } at once and on no more
}, and whenever more have come, the others wait for that: { $share } % of the time that its requests take. Many come at once, or something is slow at times. More { $remote ->
    [none] workers or threads
   *[other] connections
} take more of them at once, if the cores and what it calls can carry that. A load (-c) tells where the limit is.
verdict-unknown-watched-held = Cannot tell: something holds up the requests again and again{ $tier ->
    [none] {""}
   *[other] , most of them at { $tier }
}. Several come one after another, for a while none is answered, and then all are at once: { $share } % of the time that requests take passes so. The longest took { $longest } ms. { $waits ->
    [yes] Its threads were found waiting for { $what }.
   *[no] No observed station explains it: a long command or computation of a thread that serves all, a lock that a job takes, a collection of garbage, a disk that is flushed.
}
verdict-unknown-watched-elsewhere = Cannot tell: { $number } of { $under_way } requests wait for a response from { $remote } to { $tier }, and that server is not on this host. Ask chokepoint there.
verdict-unknown-watched-slower = Cannot tell: requests take { $ms } ms each, and usually { $usual_ms } ms. No observed station explains it; see where requests stood. A load (-c) compares a single request with requests under load.
verdict-unknown-watched-mixed = Cannot tell: { $number } of { $under_way } requests wait for neither a core, nor a link, nor a client, and no observed station explains it. Watching showed no other number of them to compare their times with. A load (-c) tells, because it compares a single request with requests under load.
verdict-unknown-ambiguous = Cannot tell: several network namespaces have a listener for this target ({ $netns }); name one with --server-netns.
verdict-unknown-unreadable = Cannot tell: the sockets of this host could not be read.
verdict-unknown-no-listener = Cannot tell: nothing on this host listens on port { $port } for this address.
verdict-unknown-no-socket = Cannot tell: nothing on this host listens at the unix socket { $socket } for this client.
verdict-unknown-none-moved = Cannot tell: { $number } of { $under_way } requests stood inside { $tier } all the time, and none was answered in the { $seconds } s of watching. Unless they are meant to wait (long polls, streams), { $tier } hangs: look at what its threads wait for, and at what they call.
verdict-unknown-no-traffic = Cannot tell: no connection reached the server while it was watched; apply load with -c, -q, -n or --load, or watch longer with -z.
verdict-unknown-no-requests = Cannot tell: no request was seen in { $seconds } s; apply load with -c, -q, -n or --load, or watch longer with -z.
verdict-unknown-nothing-sent = Cannot tell: not one request was sent.
verdict-unknown-refused = Cannot tell: every connection was refused; nothing listens at this address and port.
verdict-unknown-refused-unix = Cannot tell: every connection was refused; nothing listens at this unix socket, or nobody accepts what waits there.
verdict-unknown-status = Cannot tell: every answer had status { $status }{ $fails ->
    [yes] {""}, so no client gets what it asks for: the server, or one behind it, fails. The error log may say why.
   *[no] {""}; is this the right URL?
}
verdict-unknown-watched-status = Cannot tell: every answer seen had status { $status } ({ $requests } of them), so no client gets what it asks for. The error log may say why.
verdict-unknown-tls-authority = Cannot tell: no TLS handshake succeeded, because this system does not trust the authority that signed the server's certificate. --cacert FILE trusts another authority, and -k accepts any certificate.
verdict-unknown-tls-expired = Cannot tell: no TLS handshake succeeded, because the server's certificate has expired. -k accepts it for this measurement.
verdict-unknown-tls-not-yet-valid = Cannot tell: no TLS handshake succeeded, because the server's certificate is not valid yet; compare the clocks. -k accepts it for this measurement.
verdict-unknown-tls-name = Cannot tell: no TLS handshake succeeded, because the server's certificate is for another name than the URL's. --resolve and --connect-to reach an address by another name, -k accepts any certificate.
verdict-unknown-tls-certificate = Cannot tell: no TLS handshake succeeded, because the server's certificate cannot be accepted. -k accepts any certificate.
verdict-unknown-tls-handshake = Cannot tell: no TLS handshake succeeded. Does this port speak TLS, 1.2 or 1.3?
verdict-unknown-no-good-answer = Cannot tell: none of { $requests } requests was answered as expected, and no observed station explains it.
verdict-unknown-failures = Cannot tell: { $share } % of the requests failed ({ $most }), and no observed station explains it.
failed-status = most with status { $status }
failed-silent = most got no response in time
failed-unconnected = most got no connection
failed-closed = most were cut off before a response
failed-unsent = most could not be sent in time
failed-unknown = how is not known
verdict-unknown-turned-away = Cannot tell: { $missing } of the load's { $connections } connections could not be had, on average: these clients were refused at every try, and no observed station explains it. A packet filter or a balancer that limits connections does this.
verdict-unknown-cut-off = Cannot tell: at least { $count } connections ({ $rate }/s) of { $tier } and of what it calls were closed before what they had sent was read, so that the kernel reset them. These requests got no answer, and no observed station explains it.
verdict-unknown-cut-off-shared = Cannot tell: { $count } connections ({ $rate }/s) of network namespace { $netns } were closed before what they had sent was read, so that the kernel reset them. Other servers and programs have connections in it as well, but the samples met too few: these surely had { $surely }. Whether requests of { $tier } got no answer is not known; a longer watch tells more.
verdict-unknown-losses = Cannot tell: { $share } % of the clients' time was lost in requests that failed or took longer than { $patience_s } s, while half of all were answered within { $median_ms } ms. No observed station explains it.{ $tier ->
    [none] {""}
   *[other] {" "}Most requests stood at { $tier }{ $waits ->
        [yes] , which was found waiting for { $what }
       *[no] {""}
    }.
}
verdict-unknown-starved = Cannot tell: on average { $waiting } connections with a request waited for more than a second to be accepted by { $tier }, while { $served } others were answered again and again. No observed station explains it.
verdict-unknown-pauses = Cannot tell: for { $share } % of the time nothing was answered, for up to { $longest } ms on end, while { $standing } requests stood { $tier ->
    [none] somewhere on the path
   *[other] at { $tier }
}; half of all were answered within { $ms } ms. More connections would wait as well. { $waits ->
    [yes] { $tier } was found waiting for { $what }; no observed station explains the pauses.
   *[no] No observed station explains the pauses: a blocked event loop, a lock, a garbage collection, or a program that is stopped.
}
verdict-unknown-few-take-most = Cannot tell: half of all requests were answered within { $usual } ms, but they took { $mean } ms on average: most of the clients' time passed in the slower ones (p99 { $late } ms), which stood { $tier ->
    [none] somewhere on the path
   *[other] at { $tier }
} although the cores had time. More connections would wait as well. { $waits ->
    [yes] { $tier } was found waiting for { $what }.
   *[no] Something stops them for a moment, again and again: a long command or query of another client, a lock, a collection of garbage, a name server.
}
verdict-unknown-left-unread = Cannot tell: { $share } % of the requests in flight were not even read by { $tier }, although its threads had time to: it waits for something before it reads on. { $waits ->
    [yes] It was found waiting for { $what }.
   *[no] No observed station explains it: a disk, a lock, a limit of its own, or a request before them on the same connection that goes on behind the scenes (a mirror, a background task).
}
verdict-unknown-watched-pauses = Cannot tell: in { $share } % of the time or more { $first } answered nothing, for up to { $longest } ms on end, although { $standing } requests stood{ $tier ->
    [none] {""}
   *[other] , most of them at { $tier }
}. { $waits ->
    [yes] { $tier } was found waiting for { $what }; no observed station explains the pauses.
   *[no] No observed station explains the pauses: a blocked event loop, a lock, a garbage collection, or a program that is stopped.
}
verdict-unknown-ended = Cannot tell: for { $share } % of the time nothing listened on port { $port }: the server ended { $times ->
    [one] once
   *[other] { $times } times
} and was started again, and every connection was refused meanwhile. Its log, or that of what starts it (journalctl, dmesg), says why it ends.
verdict-unknown-undelivered = Cannot tell: { $dropped } packets that reached { $netns } were handed to no socket, { $share } % of those that came, so no server saw them. { $rule ->
    [none] A packet filter drops them (nft list ruleset, iptables-save), or another part of the kernel takes them (IPVS, SYNPROXY).
   *[other] The rule "{ $rule }" takes most of them.
} If they are requests, their clients wait and try again; a filter may also be there for just such packets. "chokepoint profile --drops" shows where.
verdict-unknown-unsent = Cannot tell: on average { $connections } of { $under_way } requests under way stood on a connection of { $netns } that had a segment or more to send, nothing on its way and a peer with room: { $share } % of the clients' time. The host itself holds these packets back or drops them as they leave, which TCP does not count as loss: a rule in the output path (nft list ruleset, iptables -S OUTPUT), a filter of tc, or a paced socket.
verdict-unknown-refusing = Cannot tell the cause, but station { $station } refuses requests: { $why }
verdict-unknown-short-of-rate = Cannot tell: only { $goodput } of the { $rate } requests/s offered were answered, and no observed station explains it.
verdict-unknown-cpu-bursts = Cannot tell: the servers ran on { $ran } cores, and { $delayed } more of their threads were ready and waited for one on average, although { $count ->
    [1] core { $cores } was
   *[other] cores { $cores } were
} not full. Other programs, which used { $others } % of that time, have it in bursts: a job that runs again and again, or one with precedence (chrt, nice). "chokepoint profile" names it.
verdict-unknown-waiting = Cannot tell: about { $mean } connections wait for { $tier } at { $listener }, and it does not fill its cores. It may have too few workers, or they may wait for something themselves.
verdict-unknown-waits = Cannot tell: a response took { $loaded } ms with { $connections } connections and { $alone } ms alone, { $others ->
    [0] while the cores are idle
   *[other] while its servers do not fill the cores (other programs use { $others } % of them)
} and no station is at its limit. The limit cannot be observed: threads of one process, a lock, a limit of connections, or a server behind { $tier } on another host.
verdict-unknown-generator-waits = Cannot tell: the load generator itself waited for a core { $share } % of the time, so the times that it measured with { $connections } connections are not the server's. Give it its own cores (--cpus) or fewer threads, or measure while other programs are idle.
verdict-unknown-few-samples = { $why } Only { $samples ->
    [one] one sample
   *[other] { $samples } samples
} of where requests stood could be taken in { $seconds } s: measure longer, -z { $longer }s.
verdict-unknown-remote = Cannot tell: the server is not on this host, so none of its stations could be read; nothing on this side of the path was at its limit.

warning-shared-cores = The load generator shares cores with the servers, and on average { $waiting } of their threads waited for one: without it the servers would be faster.
warning-shared-cores-unread = The load generator shares cores with the servers. Whether their threads waited for one was not read.
warning-generator-waited = The load generator itself waited for a core { $share } % of the time, and the response times include that. With cores of its own (--cpus) they would be the server's alone.
warning-start-drops = { $count } connections found the queue of { $listener } full ({ $peak } of { $limit }) at the start of the load, when all connections came at once, and none after that. It cost { $share } % of the clients' time, less than the cause above.
warning-failures-beside = { $share } % of the requests failed ({ $most }). The cause found makes requests slow and does not explain that: look for it in the error logs of the servers, and in what closes connections between them.
warning-other-clients = { $whose ->
    [own] Other clients, or a server of the path that calls the first one,
   *[others] Other clients
} had { $others } of the { $all } requests under way ({ $share } %). Shares and limits are those of all requests; goodput and response times are those of the load.
warning-other-tenants = { $kind ->
    [unnamed] Other programs used { $share } % of the servers' cores ({ $cores }): part of the CPU use is theirs.
    [yield] Other programs used { $share } % of the servers' cores ({ $cores }), most of it { $names }, which had only what the servers left.
   *[named] Other programs used { $share } % of the servers' cores ({ $cores }), most of it { $names }: part of the CPU use is theirs.
}
warning-ledger-multiplexed = { $number } connections of { $tier } carry several requests at once, or messages without an answer; where requests stood counts each connection once.
warning-ledger-streaming = { $number } connections of { $tier } send data without being asked again (events, or a response in pieces); they do not count as requests in flight.
warning-ledger-undecided = { $number } connections of { $tier } do not show whether a request is in flight.
warning-ledger-fast = Responses take less than a tick of the kernel's clock ({ $tick } ms). The number of requests in flight and their time are estimates.
warning-resent = { $count } requests ({ $share } %) were sent once more on a new connection, as clients do: the server had closed the kept one without "Connection: close" in its response. That costs a round trip each, and a client that does not try again sees an error.
warning-undelivered = { $dropped } packets that reached { $netns } were handed to no socket ({ $share } % of those that came): { $rule ->
    [none] a packet filter drops them, or another part of the kernel takes them.
   *[other] the rule "{ $rule }" takes most of them.
} The load lost hardly any: they are others'.
warning-guard = The guard "{ $guard }" stopped the load early.
warning-interrupted = The load was interrupted; the figures cover the time until then.
warning-watch-cut = Only { $seconds } s were watched of the { $asked } s that were asked for: the figures cover the time until the interrupt.
warning-no-listener = No listener on this host answers for the target: only the client's side was read.
warning-failed-readings = { $count ->
    [one] One source could not be read or understood: { $sources }.
   *[other] { $count } sources could not be read or understood: { $sources }{ $more ->
        [0] .
       *[other] {" "}and { $more } more.
    }
} { $unjudged ->
    [0] Every station of the path was judged without it.
    [one] The { $stations } could not be judged.
    [2] The { $stations } could not be judged.
    [3] The { $stations } could not be judged.
   *[other] { $unjudged } stations could not be judged, among them the { $stations }.
}
warning-elsewhere = { $tier } also passes requests to { $upstreams }{ $more ->
    [0] { "" }
   *[other] { " " }and { $more } more
}, but none for this URL: what happens there is not judged.
warning-elsewhere-waiting = { $tier } also passes requests to { $upstreams }{ $more ->
    [0] { "" }
   *[other] { " " }and { $more } more
}, where up to { $waiting } connections wait. None of them are for this URL: that is another site's, and is not judged here.
warning-no-times-nginx = The access log of { $tier } has no response times: add $request_time to its log_format.
warning-no-times = The access log of { $tier } has no response times.
server-out-of-service = { $name } is { $state ->
    [maintenance] in maintenance
    [draining] taken out (drained)
   *[down] down
}{ $has_since ->
    [yes] { " " }for { $since } { $unit ->
        [days] days
        [hours] hours
        [minutes] minutes
       *[seconds] s
    }
   *[no] {""}
}{ $check ->
    [none] {""}
    [L4TOUT] : nobody answers the connection of its check
    [L4CON] : the connection of its check fails, as where nobody listens
    [L6TOUT] : its check gets no answer to the TLS handshake
    [L6RSP] : the TLS handshake of its check fails
    [L7TOUT] : its check is not answered in time
    [L7RSP] : its check gets an answer that is none
    [L7STS] : its check gets status { $code }
   *[other] : its check ended with { $check }{ $has_code ->
        [yes] { " " }and { $code }
       *[no] {""}
    }
}.
warning-servers-out = { $tier } has { $out } of { $all } servers for these requests out of service: { $first }
warning-upstream-opens = { $tier } opened { $opened } connections to { $remote } for each request: it keeps fewer than it uses at once. Each costs CPU time at both ends (to keep more: MaxIdleConnsPerHost in Go, 2 by default; keepalive in nginx; an agent or a pool in other programs).
warning-calls-repeated = { $tier } asks { $asked } { $calls } times for each request, at least: { $kind ->
    [given-up] it gives up { $failed_calls } of these calls before the answer
    [unanswered] { $failed_calls } of these calls end without an answer
   *[error] { $failing } % of these calls fail with an error
}. Each further try is more work there. With fewer tries, and a growing pause between them, less of it is for nothing.
evidence-calls-repeated-errors = For each request of { $tier } that was read on the wire, { $calls } responses of { $asked } were: { $bad } of them an error ({ $failing } %). A call that fails is made again: the load on { $asked } is a multiple of the requests.
warning-edge-supposed = { $upstream } may be behind { $tier }: connections of the same user lead there, but whose they are was not seen. They may be those of another program of that user.
warning-cut-off-shared = { $count } connections of network namespace { $netns } were closed before what they had sent was read. Other servers and programs have connections in it as well, so it is not known whose they were; nothing shows that they were those of { $tier }.
warning-log-not-believed = The error log of { $tier } has { $count ->
    [one] one line that says
   *[other] { $count } lines that say
} that { $says }, but { $why }: they were not believed. Whoever sends requests can write such lines.
log-says-connections = a worker had no connection left
log-says-files = no further file could be opened
log-says-ports = no local port was free
log-says-queue = the queue of a socket was full
log-says-limited = a limit refused requests
log-says-delayed = a limit delayed requests
log-says-workers = a pool had no worker left
log-but-connections = a worker was seen with at most { $peak } of { $limit } connections, and at most { $more } more can have come between two looks
log-but-handled = its status page counts no connection that it did not serve
log-but-files = a process was seen with at most { $peak } of { $limit } open files, and at most { $more } more can have come between two looks
log-but-ports = at most { $peak } of { $limit } ports were seen taken towards one address, and at most { $more } more can have been taken between two looks
log-but-queue = at most { $peak } connections were seen waiting where { $limit } may, and at most { $more } more can have come between two looks
log-but-no-limit = its configuration has no { $directive } of that name
log-but-no-status = none of the responses in its access log has the status of that limit ({ $status })
log-but-no-status-load = none of the load's responses has the status of that limit ({ $status })
log-but-never-delays = no such limit of its configuration delays any request
log-but-faster = more requests were answered than the limit lets pass
log-but-not-counted = its status page counts no such moment
log-but-workers = at most { $peak } connections were seen at its { $limit } workers, and at most { $more } more can have come between two looks
warning-left-out = { $tier } passes requests to { $used } and none to { $names }, which its configuration has in the same set. What it chooses by (the client's address, a cookie, a hash of the URL, weights, checks that fail) leads all of them to { $used }. If { $used } is what holds them back, spread them.
warning-edge-configured = No connection from { $tier } to { $upstream } was seen: the edge is taken from the configuration, and requests for this URL may not take it.
warning-translated = Connections to { $original } are translated to { $translated } in the network namespace { $netns } (conntrack).
warning-unplaced = Part of the recording was not understood: { $what }.

prediction-refused-passive = no load was applied, so there is no measurement to start from
prediction-refused-others = other clients have { $share } % of the requests, and how much of the gain they take is not known
prediction-refused-few = only { $good } good responses were seen: too few to measure the cost of one
prediction-refused-hidden = only { $share } % of the requests succeeded, so the next limit is not visible
prediction-refused-other = { $what } limits it as well, and what comes behind both is not visible
prediction-refused-losses = { $count } of { $requests } requests failed in a way that { $station } does not explain, and no model gives the cost of that
prediction-refused-unread = the capacity of { $station } could not be read
prediction-refused-service = the response time without waiting could not be measured
prediction-refused-tenants = other programs use { $share } % of the servers' cores, which would be the next limit
prediction-refused-slept = { $station } hides the CPU cost of a response, and the CPU would be the next limit
prediction-refused-further = the limit of { $station } rises, but it is not known whether far enough
prediction-refused-unseen = the next limit is not known
prediction-refused-threads = { $threads } threads of { $tier } do the work on { $cores } cores, and how much more each could do was not measured
prediction-refused-held = under load a request holds a worker of { $tier } for longer than a whole response takes alone ({ $alone } ms), so the workers wait for each other or for something else at its limit, and more of them may only wait as well
prediction-refused-behind = { $share } % of the workers of { $tier } wait for { $upstream }, and it is not known whether that has room for more
prediction-refused-fills = at { $rate }/s { $station } would be full
prediction-refused-wide = { $station } would be the next limit, somewhere between { $low } and { $high }/s: too wide to be useful
prediction-refused-search = the cost per request after the fix is unknown; it will be measured

verdict-unknown-polling = Cannot tell: nothing was refused, but requests wait. Whether they wait for CPU time of { $tier } is not known, because it keeps its cores busy with or without requests.
verdict-unknown-whose = Cannot tell: nothing that was read is at its limit, but which processes serve { $tier } could not be read. Their threads and the servers that they call are therefore not known.
verdict-healthy-unseen = { $why } No access log of { $tier } was read: errors among its responses would not show.
verdict-unknown-started = Cannot tell: the cores are full, and { $share } % of what the servers used is the work of processes that were started meanwhile and ended again. How much of it is only their start, which workers that stay would save, was not read: a profile of the whole machine (as root, or with CAP_PERFMON) tells.
verdict-unknown-late-elsewhere = Cannot tell: half of the requests took { $usual } ms, but one in a hundred took { $late } ms or longer, and all took { $mean } ms on average. { $elsewhere } % of that time they stood at no server, so packets are lost or dropped on the way. Nothing here counts them: look for filters at the client and on the way (nft list ruleset), and capture at both ends (chokepoint streams).
verdict-unknown-standing = Cannot tell: { $connections } of { $under_way } responses under way stand. What { $netns } sends on these connections is lost again and again, and nothing comes back: their clients are gone, or the way to them is broken. Ask for the page from there (curl).
verdict-healthy-pauses-for = { $why } Most of the time passes inside { $tier }, which was found waiting for { $what }. If a request need not take that long, that wait is what to shorten.
verdict-healthy-pauses = { $why } Most of the time passes inside { $tier }: a pause or a pace that it sets itself would not show.
verdict-unknown-cpu-whose = Cannot tell: nothing was refused, but { $why }
verdict-unknown-cpu-processes = Cannot tell: nothing was refused, but it is not known which processes serve, so the CPU time that they use is not known either.
verdict-unknown-cpu-delays = Cannot tell: { $inside } of { $under_way } requests wait inside { $tier }, and other programs use { $others } % of its cores ({ $cores }). Whether its threads wait for a core could not be read, so the requests wait for each other or for that. Measure while the other programs are idle.
verdict-unknown-cpu = Cannot tell: nothing was refused, but the CPU times could not be read, so the server's limit is not known.

unsettled-accept-queue = { $count } connections of an earlier load still waited at { $listener } when the measurement began.
unsettled-conntrack = The table of { $netns } still held { $count } of { $max } conntrack entries of an earlier load when the measurement began.
unsettled-time-wait = { $count } sockets of an earlier load to { $remote } were still in TIME_WAIT in { $netns } when the measurement began.

number-range = { $low } to { $high }
number-one = { $high }
