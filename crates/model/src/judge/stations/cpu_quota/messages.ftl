# Station cpu-quota: its states, findings and evidence, and what brings them about.

short-cpu-quota = CPU quota

state-cpu-quota-ok = Cgroup { $cgroup } used { $used } of the { $limit } cores that it may use; it was never throttled.
state-cpu-quota-near = Cgroup { $cgroup } used { $used } of the { $limit } cores that it may use: almost at its limit.
state-cpu-quota-harmless = Cgroup { $cgroup } may use { $limit } cores, used { $used }, and was throttled in { $periods } of { $of } periods. That did not limit this traffic, or the cores were fully used anyway.
state-cpu-quota-throttled = Cgroup { $cgroup } may use { $limit } cores and was throttled in { $periods } of { $of } periods.
state-cpu-quota-unknown = Cgroup { $cgroup } may use { $limit } cores; its use or its throttling could not be read.

finding-cgroup-cpu-throttled-title = a CPU quota of { $limit } cores throttles { $tier } while cores are idle
finding-cgroup-cpu-throttled-title-shared = a CPU quota of { $limit } cores throttles { $tier }, which could have more of the cores that other programs use
finding-cgroup-cpu-throttled-explanation = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, even if cores are idle. { $tier } was stopped in { $share } % of the periods: requests wait for the next period, and the quota limits how many pass. Queues and worker pools fill up meanwhile; larger ones would only let more requests wait.
finding-cgroup-cpu-throttled-explanation-wait = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, even if cores are idle. { $tier } was stopped in { $share } % of the periods: the quota is just enough for the requests that arrive, and most of them wait for the next period longer than they take to process. With slightly more requests per second, the queue would grow without end.
finding-cgroup-cpu-throttled-explanation-tail = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, even if cores are idle. { $tier } has enough CPU time on average, but many requests at once, or several threads on several cores, use up a period's quota before the period ends. Requests that arrive then wait for the next period. Only the slowest responses show this.

evidence-cpu-quota-throttled = The cgroup was throttled in { $periods } of the { $of } periods in which it had work, { $share } % of all periods.
evidence-cpu-quota-limit = It may use { $quota } ms of CPU time in each { $period } ms ({ $limit } cores), and used { $used } cores{ $is_over ->
    [yes] : the kernel hands that time out in slices for each core (sched_cfs_bandwidth_slice_us), which may come to a little more
   *[no] {""}
}.
evidence-cpu-quota-idle = Of the { $count } cores on which its servers may run, { $idle } were idle on average and { $others } ran other programs.
evidence-cpu-quota-waiting = On average { $waiting } of its threads were ready to run but not running.
evidence-cpu-quota-harm = { $goodput } requests per second were answered as expected; the p99 response time was { $p99 } ms.
evidence-cpu-quota-wait = The median response time was { $p50 } ms and the p99 { $p99 } ms; a single request took { $alone } ms.
evidence-cpu-quota-tail = The median response time was { $p50 } ms and the p99 { $p99 } ms; the objective is { $slo } ms.

coupling-quota-search = The search for a free port uses up the CPU time. Without the search, the quota would be the cause.
