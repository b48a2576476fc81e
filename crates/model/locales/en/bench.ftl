# The report of `chokepoint bench`.

bench-summary-us = { $rate } requests/s answered as expected ({ $share }{ "\u00A0" }%), p99 { $p99 }{ "\u00A0" }µs.
bench-summary-ms = { $rate } requests/s answered as expected ({ $share }{ "\u00A0" }%), p99 { $p99 }{ "\u00A0" }ms.
bench-summary-s = { $rate } requests/s answered as expected ({ $share }{ "\u00A0" }%), p99 { $p99 }{ "\u00A0" }s.
bench-nothing-ended = No request was sent.
bench-nothing-answered = None of { $requests } requests got a response.
bench-nothing-answered-refused = Every connection was refused: nothing listens at this address.
bench-nothing-expected = None of { $requests } requests got an expected response; most got status { $status }. Check the URL.

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
bench-offered-drawn = { $n } targets chosen at random (seed { $seed })
bench-offered-bind = from { $n ->
    [one] { $addresses }
   *[other] { $n } addresses ({ $addresses })
}
bench-offered-duration = { $duration }
bench-offered-requests = { $requests } requests
bench-offered-warm-up = after a warm-up of { $duration }
bench-offered-single = one request per connection
bench-offered-carried = { $n } requests on each connection
bench-label-offered = offered
bench-label-done = done
bench-label-connections = connections
bench-connections = { $n } opened
bench-handshakes = TLS handshakes: { $full } full, { $resumed } resumed
bench-sent = { $size } sent
bench-received = { $size } received
bench-drained = { $n } completed after the end of the load
bench-label-tcp = TCP
bench-tcp-rtt = round-trip time { $median } ({ $min } to { $max })
bench-tcp-cwnd = congestion window { $median } segments
bench-tcp-retransmits = { $n ->
    [one] { $n } segment retransmitted
   *[other] { $n } segments retransmitted
}
bench-tcp-busy = sending for { $busy }, limited { $rwnd } of it by the server's receive window and { $sndbuf } by the send buffer
bench-tcp-sample = { $n ->
    [one] sampled on { $n } connection at the end
   *[other] sampled on { $n } connections at the end
}
bench-bytes = { $n }{ "\u00A0" }bytes
bench-kilobytes = { $n }{ "\u00A0" }kB
bench-megabytes = { $n }{ "\u00A0" }MB
bench-gigabytes = { $n }{ "\u00A0" }GB

bench-times = Response time
bench-times-open = Response time, from the intended start
bench-time-total = total
bench-time-good = expected responses
bench-time-first-byte = first byte
bench-time-connect = connect
bench-time-tls = TLS handshake
bench-time-corrected = total, corrected
bench-distribution = Distribution of total
bench-warnings = Notes
bench-samples = First failure of each kind
bench-failed = Failed
bench-failed-us = { $condition }: { $measured }
bench-failed-share = { $condition }: { $measured }{ "\u00A0" }%
bench-failed-rate = { $condition }: { $measured }/s
bench-stopped = The load was stopped early: { $guard }
bench-interrupted = The load was interrupted before its end.

bench-warning-suspended = The load generator was suspended for { $seconds }{ "\u00A0" }s (Ctrl-Z) and sent nothing during that time. The rates include it. So do the response times of requests that were in flight or due then.
bench-warning-generator-cpu = The load generator was the limit: { $threads ->
    [one] its only thread
   *[other] the busiest of its { $threads } threads
} used { $busy }{ "\u00A0" }% of a core (cores { $cores }). The server may be able to serve more, and the response times include delays of the generator. Give it more threads (--threads), or run it on another host.
bench-warning-generator-waited = The load generator did not get enough CPU time: its busiest thread ran for { $busy }{ "\u00A0" }% of the time and waited for a core for { $waited }{ "\u00A0" }%, while soft interrupts, the server or other programs used it. The server may be able to serve more, and the response times include that wait.
bench-warning-local = The load generator ran out of local resources: { $ports } requests found no local port, { $files } no file descriptor, { $memory } no socket memory. These failures say nothing about the server.
bench-warning-late-held = { $late } requests ({ $share }{ "\u00A0" }%) were sent more than 1{ "\u00A0" }ms late, because all { $connections } connections were waiting for responses. Their response time counts from the intended start, so it includes the delay. With more connections (-c) they would wait in the server instead.
bench-warning-late-generator = The load generator sent { $late } requests ({ $share }{ "\u00A0" }%) more than 1{ "\u00A0" }ms late. Their response time counts from the intended start, so it includes the delay.
bench-warning-never-sent = { $n } requests were due but found no free connection before the end. They count as failed, with the time they had waited.
bench-warning-omitted = Slow responses kept this closed loop from sending requests that independent clients would have sent: { $name } is { $raw }{ "\u00A0" }ms for the requests sent, and { $corrected }{ "\u00A0" }ms if the missing ones are added (the row "corrected"). Use an open loop (-q), which misses none.
bench-warning-stalled = No request completed for { $seconds }{ "\u00A0" }s, from { $at }{ "\u00A0" }s after the start, although requests were in flight.
bench-warning-redirected = Every response was a redirect (status { $status }). Redirects are not followed; check the URL.
bench-warning-closed = The server closed most connections, although keepalive was requested: { $connections } were opened for { $answers } responses.
bench-warning-few = { $name } is close to the largest value, because { $requests } requests are too few for it.
bench-warning-shared = Server and load generator share the cores of this host, and the generator used { $busy }{ "\u00A0" }% of one. The server may be able to serve more without it. --cpus restricts the generator to cores of its own.

bench-junit-answered = requests are answered as expected
bench-junit-not = not { $condition }

# The view while the load runs; a terminal may have 40 columns.
bench-live-elapsed = { $elapsed } of { $length }
bench-live-elapsed-only = { $elapsed }
bench-live-warm-up = warm-up, { $elapsed }
bench-live-rate = now { $now }/s, mean { $mean }/s
bench-live-good = { $percent } as expected
bench-live-in-flight = { $n } in flight
bench-live-history = requests/s in { $seconds }{ "\u00A0" }s, at most { $most }
bench-live-recent = last second
bench-live-all = so far
bench-live-outcomes = Outcomes
bench-live-interrupt = Ctrl-C stops the load and shows the report
