# `chokepoint size`: how much a server gives, and how many workers it takes.

size-capacity = { $kind ->
    [given] { $rate } requests per second at p99 < { $objective } ms; { $safe } per second are safe
   *[default] { $rate } requests per second with p99 < { $objective } ms (no --slo given); { $safe } per second are safe
}
size-capacity-unsafe = { $rate } requests per second at p99 < { $objective } ms; no rate is safe for requests that arrive at random
size-capacity-missed = none of the rates from { $lowest } to { $highest }/s keeps p99 < { $objective } ms; at most { $rate } requests per second are answered
size-capacity-hopeless = a single request alone takes longer than the objective of { $objective } ms; at most { $rate } requests per second are answered
size-capacity-untried = at most { $rate } requests per second; the rate at p99 < { $objective } ms was not measured
size-client-limited = The load generator was the limit, so the capacity of the server is not known. { $why }
size-nothing-answered = Nothing answered as expected. { $why }
size-partial = Stopped after { $steps } steps, before everything was measured: raise --budget for the rest.

size-knee = { $connections } connections give all that it can ({ $rate }/s, p99 { $ms } ms); { $last } only wait longer (p99 { $last_ms } ms)
size-knee-falls = { $connections } connections give most ({ $rate }/s, p99 { $ms } ms); { $last } give less ({ $last_rate }/s, p99 { $last_ms } ms)
size-knee-beyond = not reached: goodput still rises at { $connections } connections ({ $rate }/s, p99 { $ms } ms)
size-knee-bound = not reached: goodput still rises at { $connections } connections, the most that --max-connections allows ({ $rate }/s, p99 { $ms } ms)
size-knee-unknown = not known

size-law = contention { $contention } % ({ $contention_low } to { $contention_high }), coherency { $coherency } % ({ $coherency_low } to { $coherency_high })
size-law-peak = peak at { $peak } connections
size-law-none = not fitted: { $why }
size-law-few = { $points } numbers of connections are too few for a fit
size-law-ceiling = a hard ceiling of { $ceiling }/s from { $knee } connections on fits much better: something has a fixed capacity
size-law-shape = the curve has another shape, or is too noisy
size-law-unsolved = no coefficients in their range fit

size-workers = { $tier }: { $workers } { $unit ->
    [threads] threads
   *[processes] workers
} for { $rate }/s
size-workers-more = { $tier }: { $workers } { $unit ->
    [threads] threads
   *[processes] workers
} instead of { $now }, for { $rate }/s
size-workers-fewer = { $tier }: { $workers } { $unit ->
    [threads] threads
   *[processes] workers
} are enough for { $rate }/s ({ $now } now)
size-workers-same = { $tier }: { $now } { $unit ->
    [threads] threads
   *[processes] workers
} are right for { $rate }/s
size-workers-memory = { $tier }: { $workers } { $unit ->
    [threads] threads
   *[processes] workers
}, as many as there is memory for ({ $now } now)
size-workers-blocked = { $tier }: { $now } { $unit ->
    [threads] threads
   *[processes] workers
} stay: they wait for another server at its limit, and more would wait as well
size-workers-loops = { $tier }: one event loop for each core
size-workers-unknown = { $tier }: the number of workers is not known, because the time of a request here was not measured
size-service-cpu = A request takes { $held } ms, nearly all of it CPU ({ $cpu } ms): one worker for each of { $cores } { $cores ->
    [one] core
   *[other] cores
}.
size-service-wait = A request takes { $held } ms: { $cpu } ms CPU and { $wait } ms waiting. It costs these cores { $cost } ms in all: { $cores } { $cores ->
    [one] core
   *[other] cores
} / { $cost } ms = { $ceiling }/s. { $ceiling }/s x { $held } ms = { $at_once } at once, plus reserve: { $enough }.
size-service-rate = A request takes { $held } ms: { $cpu } ms CPU and { $wait } ms waiting. { $rate }/s x { $held } ms = { $at_once } at once, plus reserve: { $enough }.
size-note-connections = At most { $most } are advised, as many as --max-connections allows at once.
size-note-extrapolated = These servers used at most { $busy } % of the cores: what a request costs once they are full is an estimate, so run size again with these workers.
size-note-shared = If they wait for something shared (a database, a lock), more workers only wait longer: run size again after the change.

size-memory = { $shared ->
    [yes] The threads share { $needed } MiB; { $available } MiB are available.
   *[no] { $worker } MiB for each worker ({ $measure ->
        [resident] with what it shares
       *[private] what it has to itself
    }), { $needed } MiB in all; { $available } MiB are available.
}
size-memory-unknown = { $shared ->
    [yes] The threads share { $needed } MiB; the available memory could not be read.
   *[no] { $worker } MiB for each worker ({ $measure ->
        [resident] with what it shares
       *[private] what it has to itself
    }), { $needed } MiB in all; the available memory could not be read.
}
size-memory-unread = Memory of the workers was not read: { $why }.

size-line-loops = one event loop for each core
size-line-files = a descriptor for each connection
size-line-connections = connections to clients and to servers behind
size-line-queue = requests that may wait and still be in time
size-line-queue-restart = requests that may wait and still be in time; in force after a restart
size-line-queue-somaxconn = requests that may wait and still be in time; net.core.somaxconn must not be less
size-line-static = all workers exist from the start
size-line-workers = requests in service at once
size-line-limit = upper limit of processes; in force after a restart
size-line-threads = threads of each process
size-line-server = number of workers behind it; further requests wait in HAProxy

size-page-brand = chokepoint size
size-page-facts = What it gives
size-page-curve = Goodput and response time by load
size-page-steps = What was measured
size-page-line = setting
size-page-why = what it is for
size-title = How much { $url } gives
size-label-capacity = capacity
size-label-most = most
size-label-safe = safe rate
size-label-knee = knee
size-label-law = scaling law
size-label-limit = limits first
size-label-memory = memory
size-label-file = usually in { $file }
size-label-file-line = in { $file }, line { $line }
size-most = { $rate }/s ({ $low } to { $high }), whatever the response times
size-at-objective = { $rate }/s held the objective, { $high }/s did not
size-at-objective-only = { $rate }/s held the objective
size-at-objective-none = none of the rates from { $low } to { $high }/s held the objective
size-at-objective-untried = not measured: no rate was tried
size-safe = { $rate }/s, if requests arrive at random and not evenly as in the test
size-safe-none = none
size-steps = What was measured
size-steps-connections = connections
size-steps-rate = rate/s
size-steps-goodput = good/s
size-steps-p50 = p50
size-steps-p99 = p99
size-steps-failed = failed
size-steps-limit = limit
size-warnings = Notes
size-next = --verbose  all steps; --html FILE  the curve
size-plot-goodput = Goodput over connections
size-plot-p99 = p99 over connections
size-plot-x = connections
size-plot-y-goodput = requests/s
size-plot-y-p99 = ms
size-plot-measured = measured
size-plot-law = scaling law
size-plot-knee = knee
size-plot-objective = objective
size-progress-connections = { $connections } connections
size-progress-rate = { $rate }/s
size-warm-up = warming up
