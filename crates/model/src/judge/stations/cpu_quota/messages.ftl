# Station cpu-quota: its states, findings and evidence, and what brings them about.

state-cpu-quota-ok = { $used } of the { $limit } cores that cgroup { $cgroup } may use were used; it was never stopped.
state-cpu-quota-near = { $used } of the { $limit } cores that cgroup { $cgroup } may use were used: little is left.
state-cpu-quota-harmless = Cgroup { $cgroup } may use { $limit } cores, used { $used }, and was stopped in { $periods } of { $of } periods: not enough to hold this traffic back, or its cores had nothing more to give.
state-cpu-quota-throttled = Cgroup { $cgroup } may use { $limit } cores and was stopped in { $periods } of { $of } periods.
state-cpu-quota-unknown = Cgroup { $cgroup } may use { $limit } cores; how many it used, or how often it was stopped, could not be read.

finding-cgroup-cpu-throttled-title = a CPU quota of { $limit } cores stops { $tier }, and the cores have more to give
finding-cgroup-cpu-throttled-explanation = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, whatever the cores have to do. { $tier } was stopped so in { $share } % of the time's periods: requests wait for the next period, and no more of them pass than the quota has CPU time for. Queues and pools before stopped workers fill up, and longer ones would only let more requests wait.
finding-cgroup-cpu-throttled-explanation-wait = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, whatever the cores have to do. { $tier } was stopped so in { $share } % of the time's periods: the quota just suffices for the requests that come, and most of them wait for the next period for longer than they take. A few more requests a second, and they pile up.
finding-cgroup-cpu-throttled-explanation-tail = Cgroup { $cgroup } may use { $quota } ms of CPU time in each period of { $period } ms. When that is used up, the kernel stops all of its processes until the next period, whatever the cores have to do. { $tier } has CPU time enough on average, but many requests at once, or several threads on several cores, use a period's share up before it ends: what comes then waits for the next one. That is seen in the slowest answers alone.

evidence-cpu-quota-throttled = The cgroup was stopped in { $periods } of { $of } periods in which it had work, { $share } % of all.
evidence-cpu-quota-limit = It may use { $quota } ms of CPU time in each { $period } ms ({ $limit } cores), and used { $used } cores.
evidence-cpu-quota-idle = Of the cores on which its servers may run ({ $count }), { $idle } were idle on average and { $others } served other programs.
evidence-cpu-quota-waiting = On average { $waiting } of their threads were ready to run and did not.
evidence-cpu-quota-harm = { $goodput } requests a second were answered as expected; the p99 of response time was { $p99 } ms.
evidence-cpu-quota-wait = Half of the requests took { $p50 } ms or more and the p99 was { $p99 } ms, where one alone took { $alone } ms.
evidence-cpu-quota-tail = Half of the requests took { $p50 } ms or less and the p99 was { $p99 } ms, against an objective of { $slo } ms.

coupling-quota-search = The search for a free port uses the CPU time up. Without it the quota would be the cause.
