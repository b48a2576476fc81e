# The report of `chokepoint experiment`.

experiment-better = { $variant }: { $metric } is better than with { $baseline } by { $change }{ $unit ->
    [points] { "" } percentage points
   *[percent] %
} (from { $low } to { $high }).
experiment-worse = { $variant }: { $metric } is worse than with { $baseline } by { $change }{ $unit ->
    [points] { "" } percentage points
   *[percent] %
} (from { $low } to { $high }).
experiment-different = { $variant }: { $metric } differs from { $baseline } by { $change }{ $unit ->
    [points] { "" } percentage points
   *[percent] %
} (from { $low } to { $high }).
experiment-no-difference = { $variant }: no difference in { $metric } from { $baseline } larger than { $largest }{ $unit ->
    [points] { "" } percentage points
   *[percent] %
} could be seen.
experiment-too-few = { $variant }: { $pairs ->
    [one] one pair of trials is
   *[other] { $pairs } pairs of trials are
} too few to compare { $metric } with { $baseline }: { $needed } are needed.

experiment-not-quiet = Before the first trial other programs used { $cores } cores. Their work makes the intervals wider.
experiment-disturbed = { $disturbed } of { $all } trials { $disturbed ->
    [one] was disturbed from outside, also when repeated. It counts, and makes
   *[other] were disturbed from outside, also when repeated. They count, and make
} the intervals wider.
experiment-generator-limited = In most trials of { $variant } the load generator was the limit. Its server could have answered more than was measured.
experiment-calls-failed = Calls of { $what } were not counted: { $why }.

experiment-ended-precise = The answer is clear: { $blocks } rounds in { $time }.
experiment-ended-budget = The time is used up: { $blocks } rounds in { $time }.
experiment-ended-interrupted = Interrupted after { $blocks } complete rounds in { $time }.
experiment-smallest = With this noise, { $pairs } rounds show a difference of { $smallest }{ $unit ->
    [points] { "" } percentage points
   *[percent] %
} in four of five experiments.
experiment-more-time = An interval of ±{ $precision }% would take about { $time } more (--budget).
experiment-descriptive = The figure that decides is { $metric }. Intervals are 95% for the whole experiment. Of the other figures one may differ by chance.
experiment-verified = Verified
experiment-warnings = Note
experiment-where = Where requests stood (share of those in flight)
experiment-calls = Calls for each request
experiment-bounds = Largest gain if a layer cost nothing (profile), where the cores are the limit
experiment-functions = Functions whose CPU time for a request differs most from the baseline (profile), µs
experiment-baseline = compared with { $baseline }
experiment-unaccounted = unaccounted
experiment-remarks = How certain it is
experiment-brand = chokepoint experiment
experiment-variants = Variants
experiment-plots = Plots
experiment-figures = Every figure (median, 95% interval)
experiment-setting = Setting
experiment-plan = The plan
experiment-matrix = { $metric } by { $rows } and { $columns }
experiment-intervals = Difference in { $metric }
experiment-percentiles = Response times
experiment-plot-unseen = smaller than could be seen
experiment-plot-interval = 95% interval
experiment-plot-difference = difference
experiment-plot-percent = percent
experiment-plot-points = percentage points
experiment-plot-percentile = percentile
experiment-plot-ms = ms
experiment-plot-max = max
experiment-plot-less = less
experiment-plot-more = more
experiment-plot-trials = Every trial: { $metric }, compared with the median of its variant
experiment-plot-trial = trial
experiment-plot-disturbed = disturbed
experiment-plot-replaced = disturbed, repeated
experiment-plot-seconds = seconds since the beginning
experiment-plot-share = share of the requests in flight
experiment-plot-other = other places

metric-throughput = requests/s
metric-goodput = goodput
metric-failed = failed requests
metric-p50 = p50
metric-p99 = p99
metric-max = longest response time
metric-cpu-per-request = CPU per request
metric-core-user = core user
metric-core-system = core system
metric-core-softirq = core softirq
metric-core-idle = core idle
metric-link = sent
metric-memory = memory
metric-connections = connections
