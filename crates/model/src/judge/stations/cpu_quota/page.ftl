# `chokepoint explain cpu-quota`: the pages of the station and of its findings, with the same five sections.

page-cpu-quota-title = CPU quota
page-cpu-quota-limits =
    The CPU time that a cgroup allows its processes in each period (CFS bandwidth control): quota divided by period is a number of cores. That number divided by CPU-seconds per good answer is the most the servers in it can give, however many cores the host has.
page-cpu-quota-shows =
    Cores used against cores allowed, and the periods at whose end the cgroup was stopped. Of all quotas that hold a tier, on its own cgroup or on one around it, the tightest is shown; a tier without any has no such station.
page-cpu-quota-sure =
    The kernel counts periods and CPU time itself. Where it keeps no account of a cgroup's CPU time, that of the processes seen on the path stands for it. A quota of a cgroup that is above what this cgroup namespace shows cannot be seen: inside a container the host's own limits of it may be hidden. The number of cores that a program counts (worker_processes auto) says nothing about its quota.
page-cpu-quota-remedies =
    See cgroup-cpu-throttled.
page-cpu-quota-sources =
    cgroups(7); /proc/PID/cgroup and /proc/PID/mountinfo (proc(5)); version 1: cpu.cfs_quota_us, cpu.cfs_period_us, cpu.stat, cpuacct.usage; version 2: cpu.max, cpu.stat; Linux Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst.

page-cgroup-cpu-throttled-title = A CPU quota stops servers whose cores have more to give
page-cgroup-cpu-throttled-limits =
    All requests that need CPU time of the servers in this cgroup. When the quota of a period is used up, every process in the cgroup stands still until the next period begins, mostly a tenth of a second.
page-cgroup-cpu-throttled-shows =
    nr_throttled of cpu.stat grows while the cores are idle or serve others. Where the quota is too small for the load, it does so in nearly every period, goodput stays at what the quota has CPU time for, and the accept queue and the workers in front fill up. Where it is only too small for bursts, goodput is right and the slowest answers take about a period longer.
page-cgroup-cpu-throttled-sure =
    With load of our own: the cgroup was stopped in at least half of all periods of the window, used three quarters of its quota or more, most of it for the servers of the path, the cores on which they may run had something left, be it what other programs used (half of that counts), and the load would have taken more. Or the p99 is above --slo while half of the requests keep to it, and they were stopped for long enough to explain that. Watching alone: the same as the first with traffic, and medium. Silent where a quota is large enough, where it stops its processes at a start or now and then, and where the cores are busy with the servers themselves: then the cores are the limit. A full accept queue, all workers taken, and connections used up in the same servers are its symptoms. What the cgroup does not know is the cost of an answer at full speed: where the cores are next, no goodput is predicted.
page-cgroup-cpu-throttled-remedies =
    A larger quota: written to the cgroup's file at once (raise-cpu-quota), no further than there are cores, taken back by undo. It lasts until the cgroup ends or its manager writes it anew, so that what made the cgroup must be told as well: CPUQuota= of a systemd unit, --cpus of a container, limits.cpu of a pod. Whoever set it may have meant it. Fewer threads than cores times quota make bursts shorter; a shorter period makes stops shorter and costs more switches.
page-cgroup-cpu-throttled-sources =
    As for station cpu-quota; kernel/sched/fair.c (struct cfs_bandwidth).
