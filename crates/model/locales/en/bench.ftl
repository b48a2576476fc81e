# The report of `chokepoint bench`.

bench-summary-us = { $rate } requests/s answered as expected ({ $share }{ "\u00A0" }%), p99 { $p99 }{ "\u00A0" }µs.
bench-summary-ms = { $rate } requests/s answered as expected ({ $share }{ "\u00A0" }%), p99 { $p99 }{ "\u00A0" }ms.
bench-summary-s = { $rate } requests/s answered as expected ({ $share }{ "\u00A0" }%), p99 { $p99 }{ "\u00A0" }s.
bench-nothing-ended = Not one request was sent.
bench-nothing-answered = Nothing answered: not one of { $requests } requests.
bench-nothing-answered-refused = Nothing answered: every connection was refused; nothing listens there.
bench-nothing-expected = Nothing was answered as expected: { $requests } requests, most of the answers with status { $status }; is this the right URL?

bench-offered-closed = { $connections ->
    [one] closed loop, { $connections } connection
   *[other] closed loop, { $connections } connections
}
bench-offered-open = open loop, { $rate }/s over at most { $connections } connections
bench-offered-ramp = open loop, from { $start }/s { $stages }, over at most { $connections } connections
bench-offered-stage = to { $rate }/s in { $duration }
bench-offered-jump = to { $rate }/s at once
bench-offered-in-turn = { $n ->
    [one] { $n } target
   *[other] { $n } targets in turn
}
bench-offered-drawn = { $n } targets drawn at random (seed { $seed })
bench-offered-bind = from { $n ->
    [one] { $addresses }
   *[other] { $n } addresses ({ $addresses })
}
bench-offered-duration = { $duration }
bench-offered-requests = { $requests } requests
bench-offered-warm-up = { $duration } of warm-up before
bench-offered-single = a connection for each request
bench-offered-carried = { $n } requests on each connection
bench-label-offered = offered
bench-label-done = done
bench-label-connections = connections
bench-connections = { $n } opened
bench-handshakes = { $full } TLS handshakes in full and { $resumed } resumed
bench-sent = { $size } sent
bench-received = { $size } received
bench-drained = { $n } ended after the time, while they were waited for
bench-label-tcp = TCP
bench-tcp-rtt = round trip { $median } ({ $min } to { $max })
bench-tcp-cwnd = window of { $median } segments
bench-tcp-retransmits = { $n ->
    [one] { $n } segment sent again
   *[other] { $n } segments sent again
}
bench-tcp-busy = sending for { $busy }, { $rwnd } of it held up by the server's receive window and { $sndbuf } by the send buffer
bench-tcp-sample = { $n ->
    [one] sample of { $n } connection at the end
   *[other] sample of { $n } connections at the end
}
bench-bytes = { $n }{ "\u00A0" }bytes
bench-kilobytes = { $n }{ "\u00A0" }kB
bench-megabytes = { $n }{ "\u00A0" }MB
bench-gigabytes = { $n }{ "\u00A0" }GB

bench-times = Time
bench-times-open = Time, from the intended start
bench-time-total = total
bench-time-good = expected answers
bench-time-first-byte = first byte
bench-time-connect = connect
bench-time-tls = TLS handshake
bench-time-corrected = total, corrected
bench-distribution = Distribution of the total
bench-warnings = To know
bench-samples = First of each kind that went wrong
bench-failed = Failed
bench-failed-us = { $condition }: { $measured }
bench-failed-share = { $condition }: { $measured }{ "\u00A0" }%
bench-failed-rate = { $condition }: { $measured }/s
bench-stopped = The load was stopped: { $guard }
bench-interrupted = The load was interrupted before its end.

bench-warning-suspended = The load generator was stopped for { $seconds }{ "\u00A0" }s (Ctrl-Z) and sent nothing meanwhile: that time is in the rates, and in the times of the requests that were under way or came due in it.
bench-warning-generator-cpu = The load generator was itself the limit: its busiest thread used { $busy }{ "\u00A0" }% of a core (cores { $cores }). The server may give more, and the times include the generator's own wait: give it more threads (--threads) or another host.
bench-warning-generator-waited = The load generator was kept from running: its busiest thread ran { $busy }{ "\u00A0" }% of the time and waited { $waited }{ "\u00A0" }% for a core that soft interrupts, the server or other programs used. The server may give more, and the times include that wait.
bench-warning-local = The load generator ran out of its own means: { $ports } requests found no local port, { $files } no file descriptor, { $memory } no socket memory. They say nothing about the server.
bench-warning-late-held = { $late } requests ({ $share }{ "\u00A0" }%) were sent over 1{ "\u00A0" }ms late because all { $connections } connections were waiting for answers. Their time counts from the intended start, so nothing is hidden; with more connections (-c) they would wait in the server.
bench-warning-late-generator = { $late } requests ({ $share }{ "\u00A0" }%) were sent over 1{ "\u00A0" }ms late by the load generator itself. Their time counts from the intended start and includes its delay.
bench-warning-never-sent = { $n } requests had come due and found no free connection before the end. They count as failed, with the time that they had waited.
bench-warning-omitted = Slow answers kept this closed loop from sending what other clients would have sent meanwhile: { $name } is { $raw }{ "\u00A0" }ms of what was sent and { $corrected }{ "\u00A0" }ms of what would have been (the row "corrected"). Measure with -q, which leaves nothing out.
bench-warning-stalled = Nothing ended for { $seconds }{ "\u00A0" }s, from { $at }{ "\u00A0" }s after the start, although requests were under way.
bench-warning-redirected = Every answer was a redirect (status { $status }), which is not followed: is this the right URL?
bench-warning-closed = The server closed most connections although they were to be kept: { $connections } were opened for { $answers } answers.
bench-warning-few = { $requests } requests are few for { $name }: it is close to the largest value.
bench-warning-shared = Server and load generator share the cores of this host, and the generator used { $busy }{ "\u00A0" }% of one: the server may give more elsewhere. --cpus keeps it to cores of its own.

bench-junit-answered = requests are answered as expected
bench-junit-not = not { $condition }

# The view while the load runs; a terminal may have 40 columns.
bench-live-elapsed = { $elapsed } of { $length }
bench-live-elapsed-only = { $elapsed }
bench-live-warm-up = warm-up, { $elapsed }
bench-live-rate = now { $now }/s, mean { $mean }/s
bench-live-good = { $percent } as expected
bench-live-in-flight = { $n } under way
bench-live-history = requests/s in { $seconds }{ "\u00A0" }s, at most { $most }
bench-live-recent = last second
bench-live-all = so far
bench-live-outcomes = Outcomes
bench-live-interrupt = Ctrl-C ends it and shows the report
