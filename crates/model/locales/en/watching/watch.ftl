# `chokepoint watch`: what it prints, and the headlines of incidents.

watch-second = { $time } { $target }: { $number } in flight, { $rate }; most: { $place } ({ $most })
watch-second-nowhere = { $time } { $target }: { $number } in flight, { $rate }
watch-rate = { $rate }/s
watch-rate-unknown = how many a second is not known
watch-said-good = No drop compared with the last minutes: { $number } requests in flight, { $rate }.
watch-said-choked = { $summary } Seen at { $time }.
watch-said-learning = Too early to compare: { $number } requests in flight, { $rate }.
watch-said-quiet = It had no requests in the last second.
watch-said-unseen = The last second could not be observed.
watch-said-limit = the { $number } workers of { $tier }
watch-drop-gone = { $target }: nothing listens any more.
watch-drop-losses = { $target }: { $share } % of the requests are refused or fail, { $before } % before.
watch-drop-losses-now = { $target }: { $share } % of the requests are refused or fail; how it was before is not known.
watch-drop-losses-uncounted = { $target }: at least { $number } requests a second are refused or lost; how many are answered is not known.
watch-drop-full = { $target }: a queue is full or all workers are taken, and others wait or are refused.
watch-drop-slower = { $target }: a request takes { $times } times as long as before.
watch-drop-slower-daily = { $target }: a request takes { $times } times as long as at this time on earlier days.
watch-drop-slower-somehow = { $target }: requests take longer than before.
watch-drop-stalled = { $target }: requests wait and none is answered.
watch-no-cause = No cause was found. Measured right after it was noticed: { $summary }
watch-grown = Requests at { $place }: { $during }, before { $before }.
watch-busier = The program { $program } uses { $during } cores, { $before } before.
watch-undiagnosed = It could not be diagnosed: { $why }.
watch-incident = { $time } incident { $number }: { $headline }
watch-incident-over = { $time } incident { $number } is over: { $headline }

watch-no-incidents = There are no incidents.
watch-flame-title = CPU time during incident { $number } of { $target }
watch-incident-title = Incident { $number } of { $target }: { $state }
watch-began = began { $time }
watch-ended = last seen { $time }
watch-state-diagnosing = being diagnosed
watch-state-open = lasts
watch-state-over = over
watch-state-lasts = lasted so long that it is taken for how the server is now
watch-state-left = still lasted when recording ended
watch-state-passed = a burst, over before its cause was found
watch-unknown = unknown
watch-figure = { $name }: { $now }, before { $before }
watch-figure-rate = answers a second
watch-figure-under-way = requests in flight
watch-figure-response = mean response time
watch-figure-bad = refused or failed
watch-changes = Changed since the last look before it (at most ten minutes):
watch-change = { $of }: { $name }: { $before } -> { $now }

watch-title = { $time }  { $number ->
    [one] one server is watched
   *[other] { $number } servers are watched
}
watch-head-in-flight = in flight
watch-head-rate = answers/s
watch-head-time = time each
watch-head-lost = lost/s
watch-more-servers = and { $number } more: s
watch-not-listening = Nothing listens there now.
watch-not-measured = It was not measured lately.
watch-stale = Nothing was measured for { $seconds } s. What follows is of { $time }.
watch-stale-never = Nothing was measured yet, for { $seconds } s.
watch-row-incident = { $number }  { $time }  { $state }: { $headline }
watch-response-log = last minute: p50 { $p50 }, p95 { $p95 }, p99 { $p99 } (access log)
watch-response-sockets = last minute: p50 { $p50 }, p95 { $p95 }, p99 { $p99 } (sockets)
watch-keys = q quit  s next server
watch-page = page: { $address }
