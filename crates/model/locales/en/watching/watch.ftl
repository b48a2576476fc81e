# `chokepoint watch`: what it prints, and the headlines of incidents.

watch-second = { $time } { $target }: { $number } in flight, { $rate }/s; most: { $place } ({ $most })
watch-second-nowhere = { $time } { $target }: { $number } in flight, { $rate }/s
watch-drop-gone = { $target }: nothing listens any more.
watch-drop-losses = { $target }: { $share } % of the requests are refused or fail, { $before } % before.
watch-drop-slower = { $target }: a request takes { $times } times as long as before.
watch-drop-stalled = { $target }: requests wait and none is answered.
watch-no-cause = No cause was found: { $summary }
watch-undiagnosed = It could not be diagnosed: { $why }.
watch-incident = { $time } incident { $number }: { $headline }
watch-incident-over = { $time } incident { $number } is over: { $headline }

watch-no-incidents = No incident is kept.
watch-incident-title = Incident { $number } of { $target }: { $state }
watch-began = began { $time }
watch-ended = last seen { $time }
watch-state-diagnosing = being diagnosed
watch-state-open = lasts
watch-state-over = over
watch-state-lasts = lasted so long that it is taken for how the server is now
watch-state-passed = a burst, over before its cause was found
watch-unknown = unknown
watch-figure = { $name }: { $now }, before { $before }
watch-figure-rate = requests answered a second
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
watch-row-incident = { $number }  { $time }  { $state }: { $headline }
watch-keys = q quit  s next server
