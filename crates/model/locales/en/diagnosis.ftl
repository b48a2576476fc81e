# Verdicts and warnings: sentences of the diagnosis as a whole.

verdict-choked = Choked: { $title }.
verdict-client-limited = No verdict about the server's rate: { $title }.
verdict-healthy-cpu = Healthy, limited by CPU: { $why }
verdict-healthy-link = Healthy, limited by the link: { $why }
verdict-healthy-demand = Healthy: { $connections } connections are too few to reach any limit of the server.
verdict-healthy-demand-open = Healthy: the server answered all of the { $rate } requests/s that were offered; no limit was reached.
verdict-healthy-passive = Healthy: no station on the path refused or was at its limit while the traffic was watched.
verdict-unknown-unsampled = Cannot tell: no station on the path refused or was at its limit while the traffic was watched, but where the requests stood was not sampled.
verdict-unknown-watched-untold = Cannot tell: { $number } connections carry several requests at once, send without being asked, or do not show whether a request is under way, so that it is not known where most requests stand.
verdict-unknown-watched-inside = Cannot tell: { $number } of { $under_way } requests wait inside { $tier }, and watching does not tell whether they wait for each other or each for its own time, as long polling and slow work do. Load tells (-c): an answer alone takes as long as under load, or it does not.
verdict-unknown-watched-elsewhere = Cannot tell: { $number } of { $under_way } requests wait for an answer of { $remote } to { $tier }, and that server is not on this host.
verdict-unknown-watched-mixed = Cannot tell: { $number } of { $under_way } requests stand at no core, no link and no client, and no station that was read explains it; see where requests stood.
verdict-unknown-ambiguous = Cannot tell: several network namespaces have a listener for this target ({ $netns }); name one with --server-netns.
verdict-unknown-unreadable = Cannot tell: the sockets of this host could not be read.
verdict-unknown-no-listener = Cannot tell: nothing on this host listens on port { $port } for this address.
verdict-unknown-no-socket = Cannot tell: nothing on this host listens at the unix socket { $socket } for this client.
verdict-unknown-no-traffic = Cannot tell: no connection reached the server while it was watched; apply load with -c, -q, -n or --load, or watch longer with -z.
verdict-unknown-nothing-sent = Cannot tell: not one request was sent.
verdict-unknown-refused = Cannot tell: every connection was refused; nothing listens at this address and port.
verdict-unknown-refused-unix = Cannot tell: every connection was refused; nothing listens at this unix socket, or nobody accepts what waits there.
verdict-unknown-status = Cannot tell: every answer had status { $status }; is this the right URL?
verdict-unknown-no-good-answer = Cannot tell: none of { $requests } requests was answered as expected, and no station that was read explains it.
verdict-unknown-failures = Cannot tell: { $failed } requests ({ $share } %) failed, and no station that was read explains it.
verdict-unknown-losses = Cannot tell: { $share } % of the clients' time was lost in requests that failed or took longer than { $patience_s } s, while half of all were answered within { $median_ms } ms, and no station that was read explains it.
verdict-unknown-starved = Cannot tell: on average { $waiting } connections with a request waited for more than a second to be accepted by { $tier }, while { $served } others were answered again and again, and no station that was read explains it.
verdict-unknown-refusing = Cannot tell what causes it, but station { $station } turns requests away: { $why }
verdict-unknown-short-of-rate = Cannot tell: only { $goodput } of the { $rate } requests/s that were offered were answered, and no station that was read explains it.
verdict-unknown-waiting = Cannot tell: about { $mean } connections wait for { $tier } at { $listener } while its cores are not busy; its workers may be too few or wait for something themselves.
verdict-unknown-waits = Cannot tell: an answer took { $loaded } ms with { $connections } connections and { $alone } ms alone, while the cores are idle and no station is at its limit. The limit is something that cannot be observed: threads of one process, a lock, a limit of connections, or a server behind { $tier } on another host.
verdict-unknown-generator-waits = Cannot tell: the load generator itself waited for a core for { $share } % of the time, so that the times it measured with { $connections } connections are not the server's. Give it cores of its own (--cpus), fewer threads, or measure while other programs rest.
verdict-unknown-remote = Cannot tell: the server is not on this host, so none of its stations could be read; nothing on this side of the path was at its limit.

warning-shared-cores = The load generator shares cores with the servers: rates are lower than the servers could give.
warning-other-tenants = Other programs used { $share } % of the servers' cores ({ $cores }): what is said about CPU is theirs in part.
warning-ledger-multiplexed = { $number } connections of { $tier } carry several requests at once or messages without an answer: where requests stood counts one for each connection.
warning-ledger-streaming = { $number } connections of { $tier } send without being asked again (events, or an answer in pieces): they are not counted as requests that stand anywhere.
warning-ledger-undecided = On { $number } connections of { $tier } it cannot be told whether a request is under way.
warning-ledger-fast = Answers take less than a tick of the kernel's clock ({ $tick } ms). How many requests are under way, and how long they take, cannot be told exactly.
warning-guard = The guard "{ $guard }" stopped the load early.
warning-interrupted = The load was interrupted; figures are for the time until then.
warning-no-listener = No listener on this host answers for the target: only the client's side could be read.
warning-failed-readings = { $count ->
    [one] One source could not be read or understood; see the readings.
   *[other] { $count } sources could not be read or understood; see the readings.
}
warning-edge-configured = No connection from { $tier } to { $upstream } was seen: the edge is taken from the configuration, and requests for this URL may not take it.
warning-translated = Connections to { $original } are translated to { $translated } in the network namespace { $netns } (conntrack).
warning-unplaced = Part of the recording was not understood: { $what }.

prediction-refused-passive = no load was applied, so nothing was measured that a prediction could start from
prediction-refused-few = only { $good } good answers were seen: too few to measure what one costs
prediction-refused-hidden = only { $share } % of the requests were answered well, which hides what the next limit would be
prediction-refused-other = { $what } holds it back as well, and what comes behind both is hidden
prediction-refused-losses = { $count } of { $requests } requests failed in a way that { $station } does not explain, and no model tells what that costs
prediction-refused-unread = the readings do not tell how much { $station } could pass
prediction-refused-service = the readings do not tell how long an answer takes where nothing waits
prediction-refused-tenants = other programs use { $share } % of the servers' cores, which would limit next
prediction-refused-slept = { $station } hides what an answer costs the cores, which would limit next
prediction-refused-further = the limit of { $station } moves further off, and nothing tells whether far enough
prediction-refused-unseen = the next limit is not known
prediction-refused-threads = { $threads } threads of { $tier } do the work on { $cores } cores, and what more each could do was not measured
prediction-refused-fills = at { $rate }/s { $station } would fill
prediction-refused-wide = { $station } would limit next somewhere between { $low } and { $high }/s, too wide to be held against
prediction-refused-search = the cost per request after the fix is unknown; it will be measured

verdict-unknown-polling = Cannot tell: nothing refused, but requests wait, and whether for the CPU time of { $tier } cannot be told, which keeps its cores busy with or without requests.
verdict-unknown-cpu = Cannot tell: nothing refused, but the CPU times could not be read, so it cannot be said what limits the server.

unsettled-accept-queue = { $count } connections of an earlier load still waited at { $listener } when the measurement began.
unsettled-conntrack = The table of { $netns } still held { $count } of { $max } conntrack entries of an earlier load when the measurement began.
unsettled-time-wait = { $count } sockets of an earlier load to { $remote } were still in TIME_WAIT in { $netns } when the measurement began.
