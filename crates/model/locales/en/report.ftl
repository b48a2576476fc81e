# The text report. A no-break space (U+00A0, written { "\u00A0" }) keeps a number and its unit on one line.

report-number = { $n }
report-percent = { $n }{ "\u00A0" }%
report-percent-little = <1{ "\u00A0" }%
report-us = { $n }{ "\u00A0" }µs
report-ms = { $n }{ "\u00A0" }ms
report-s = { $n }{ "\u00A0" }s
report-bits = { $n }{ "\u00A0" }bit/s
report-kilobits = { $n }{ "\u00A0" }kbit/s
report-megabits = { $n }{ "\u00A0" }Mbit/s
report-gigabits = { $n }{ "\u00A0" }Gbit/s

report-unit-connections = { $n ->
    [one] connection
   *[other] connections
}
report-unit-cores = { $n ->
    [one] core
   *[other] cores
}
report-unit-entries = { $n ->
    [one] entry
   *[other] entries
}
report-unit-ports = { $n ->
    [one] port
   *[other] ports
}
report-unit-threads = { $n ->
    [one] thread
   *[other] threads
}
report-unit-workers = { $n ->
    [one] worker
   *[other] workers
}

# The first lines.
report-label-target = target
report-label-load = load
report-label-latency = latency
report-label-tls = TLS
report-label-answers = answers
report-label-unanswered = no answer
report-listener = { $listener } in netns { $netns }
report-load = { $requests ->
    [one] { $requests } request in { $duration }
   *[other] { $requests } requests in { $duration }
}
report-threads = { $threads ->
    [one] sent by 1 thread, { $busy } busy
   *[other] sent by { $threads } threads, the busiest of them { $busy } busy
}
report-handshakes = { $full } full handshakes, { $resumed } resumed
report-throughput = { $rate }/s completed
report-goodput = { $rate }/s answered as expected ({ $share })
report-percentile = { $name } { $duration }
report-longest = max { $duration }
report-mean = mean { $duration } by the sockets
report-no-times = no response times in the access log
report-lost = { $share } of the clients' time was lost to requests that failed or took too long
report-status = { $count } with status { $status }
report-no-load = none applied: existing traffic was watched
report-error-connect-refused = { $n } refused
report-error-connect-timeout = { $n } timed out connecting
report-error-connect-failed = { $n } could not connect
report-error-tls-failed = { $n } failed in the TLS handshake
report-error-response-timeout = { $n } timed out waiting for the response
report-error-reset = { $n } reset
report-error-closed-before-answer = { $n } closed before the response
report-error-bad-response = { $n } got an invalid HTTP response
report-error-local-ports = { $n } found no local port
report-error-local-files = { $n } found no local file descriptor
report-error-local-memory = { $n } found no local socket memory
report-error-never-sent = { $n } never sent

# When and where it was measured.
report-run-time = measured { $value }
report-run-host = host { $value }
report-run-kernel = Linux { $value }
report-run-version = chokepoint { $value }

# The path.
report-path = The request's path
report-choke-point = CHOKE POINT
report-generator-limit = THE LIMIT OF THIS RUN
report-also-cause = see { $n }
report-symptom = symptom of { $n }
report-symptom-alone = symptom, see { $n }
report-of = { $used } of { $limit }
report-limit = limit { $limit }
report-waiting = { $n } waiting
report-refused = { $n }/s refused
report-refused-connections = { $n } connections/s failed
report-refused-tries = { $n } tries/s refused
report-ceiling = ceiling { $value }/s ({ $low } to { $high })
report-pids = { $count ->
    [one] pid { $pids }
   *[other] pids { $pids }
}
report-processes = { $count } processes
report-at-core = core { $cpu }
report-at-cores = cores { $cpu }
report-at-pid = pid { $pid }
report-in-netns = netns { $netns }

# The chains from cause to symptom.
report-chain = Cause and symptom
report-chain-place = ({ $place })
report-chain-above = see above
report-chain-limit = at its limit, no fault
report-chain-words = { $cause } causes { $symptom }

# The findings.
report-findings = Why
harm-rule = A station is named as a cause if goodput would rise by at least { $goodput } % without it, or if at least { $requests } % of the requests fail there or are slow because of it.
report-cause = cause
report-symptom-of = symptom of { $ids }
report-symptom-of-unnamed = symptom
report-confidence-low = low confidence
report-confidence-medium = medium confidence
report-confidence-high = high confidence
report-improvements = Could be faster
report-improvement = no fault, { $confidence }
report-improvements-note = This does not limit the server. --fix tries it only after it has fixed something else, and never changes a server on which nothing is wrong.
report-evidence = Evidence
report-fix = Fix
report-fix-choice = Fix { $n } of { $count }
report-label-now = now
report-label-keep = to keep
report-label-effect = in effect
report-label-risk = risk
report-label-undo = undo
report-label-proof = proof
report-label-predicted = predicted
report-live = at once
report-reload = after a reload of the server
report-restart = after a restart of the server
report-signal-refusals = refusals at { $station } fall to zero
report-signal-goodput = goodput rises beyond noise
report-signal-latency = p99 falls beyond noise
report-beside-others = beside other programs
report-predicted = { $rate }/s ({ $low } to { $high }), then { $station } limits
# As many as now within noise: what changes is how many fail or wait.
report-predicted-same = as many as now ({ $low } to { $high }/s), and fewer that fail, wait long or are left out; then { $station } limits
report-predicted-less = { $rate }/s ({ $low } to { $high }), fewer than now, and fewer that fail, wait long or are left out; then { $station } limits
report-not-predicted = no rate, because { $why }
report-not-predicted-bound = at most { $most } requests/s, because the rest of the path allows no more; no exact rate, because { $why }
report-offer-fix = --fix makes these changes one at a time, measures each under the same load, and keeps only those that help; `chokepoint undo` takes them back.

# The rounds of --fix.
report-rounds = What was tried
report-column-change = change
report-column-before = before/s
report-column-goodput = goodput/s
report-column-p99 = p99
report-column-failed = failed
report-result = After { $remedies }:
report-as-found = as found
report-kept-provisional = kept for now
report-kept-final = kept
report-kept-replaced = set again later
report-kept-no = taken back
report-round-found = found: { $finding }
report-round-predicted = predicted: { $what }

# The ledger.
report-ledger = Where requests stood
report-ledger-head = On average { $number } requests were in flight.
report-ledger-head-rate = On average { $number } requests were in flight, { $rate } per second completed, and each took { $duration }.
report-ledger-place-client = at the client (not sent or not read)
report-ledger-place-connecting = connecting to { $tier }
report-ledger-place-handshake = in a handshake with { $tier }
report-ledger-place-tls-handshake = in a TLS handshake with { $tier }
report-ledger-place-accept-queue = accept queue of { $tier }
report-ledger-place-unread = not yet read by { $tier }
report-ledger-place-receiving = still arriving at { $tier }
report-ledger-place-cpu = in { $tier }, on a CPU
report-ledger-place-ready = in { $tier }, ready to run
report-ledger-place-throttled = in { $tier }, stopped by a CPU quota
report-ledger-place-waiting = in { $tier }, waiting
report-ledger-place-undecided = connections of { $tier } that may be idle
report-ledger-place-sending = responses leaving { $tier }
report-ledger-others = others
report-ledger-unaccounted = unaccounted
report-ledger-loss = lost: { $rate }/s { $kind }{ $where ->
    [0] {""}
   *[1] , by { $place } of { $tier }
}
report-ledger-lost-refused = refused
report-ledger-lost-dropped = packets of new connections dropped
report-ledger-lost-connect-timeout = not connected
report-ledger-lost-reset = reset or closed
report-ledger-lost-response-timeout = not answered in time
report-ledger-lost-wrong = answered with another status
report-ledger-lost-tls = failed in the TLS handshake
report-ledger-lost-bad-response = answered with invalid HTTP
report-ledger-lost-client = not sent by the client
report-column-place = place
report-column-mean = requests
report-column-share = share

# What else there is to know.
report-bisect = Each tier on its own
report-part-own = on its own, a page that it answers itself
report-part-direct = on its own, requested directly
report-part-left = not loaded
report-part-failed = { $share } failed
report-part-cpu = { $duration } of CPU time each
report-column-part = requested
report-column-verdict = verdict
report-warnings = Warnings
report-unread = Not read
report-unread-more = { $count } more
report-needs = needs { $needs }
report-failed = failed
