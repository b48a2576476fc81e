# `chokepoint explain cpu-quota`: the pages of the station and of its findings, with the same five sections.

page-cpu-quota-title = CPU quota
page-cpu-quota-limits =
    The CPU time that a cgroup allows its processes in each period (CFS bandwidth control). Quota divided by period is a number of cores. Divided by the CPU-seconds of a good response, it is the most that the servers in the cgroup can serve, however many cores the host has.
page-cpu-quota-shows =
    Cores used against cores allowed, and the periods in which the cgroup was throttled. If several quotas apply to a tier, on its own cgroup or on one above it, the tightest is shown. A tier without a quota has no such station.
page-cpu-quota-sure =
    The kernel counts the periods and the CPU time itself. If it keeps no CPU time for a cgroup, the CPU time of the processes on the path is used instead. Quotas of cgroups above this cgroup namespace are not visible: inside a container the host's limits may be hidden. The number of cores that a program counts (worker_processes auto) ignores its quota.
page-cpu-quota-remedies =
    See cgroup-cpu-throttled.
page-cpu-quota-sources =
    cgroups(7); /proc/PID/cgroup and /proc/PID/mountinfo (proc(5)); version 1: cpu.cfs_quota_us, cpu.cfs_period_us, cpu.stat, cpuacct.usage; version 2: cpu.max, cpu.stat; Linux Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst.

page-cgroup-cpu-throttled-title = A CPU quota stops servers while cores are idle
page-cgroup-cpu-throttled-limits =
    All requests that need CPU time of the servers in this cgroup. When the quota of a period is used up, every process in the cgroup stops until the next period begins, usually 100 ms long.
page-cgroup-cpu-throttled-shows =
    nr_throttled in cpu.stat grows while the cores are idle or run other programs. If the quota is too small for the load, this happens in nearly every period: goodput stays at what the quota pays for, and the accept queue and the workers in front fill up. If it is too small only for bursts, goodput is normal and the slowest responses take about a period longer.
page-cgroup-cpu-throttled-sure =
    With a load: the cgroup was throttled in at least half of all periods, used at least three quarters of its quota, mostly for the servers of the path, the cores on which they may run had idle time (half of what other programs used counts as idle), and the load would have taken more. Or: the p99 is above --slo while the median is below it, and the servers were stopped long enough to explain that. Watching alone: the first rule, with medium confidence. Silent if the quota is large enough, if it throttles only at a start or now and then, and if the servers themselves keep the cores busy: then the cores are the limit. A full accept queue, busy workers and used-up connections of the same servers are its symptoms. The CPU cost of a response at full speed is unknown under a quota, so no goodput is predicted if the cores are the next limit.
page-cgroup-cpu-throttled-remedies =
    A larger quota, written to the cgroup's file at once (raise-cpu-quota), up to the number of cores; undo takes it back. It lasts until the cgroup ends or its manager writes it again, so change it there as well: CPUQuota= of a systemd unit, --cpus of a container, limits.cpu of a pod. Whoever set the quota may have had a reason. Fewer threads than cores times quota make bursts shorter; a shorter period makes stops shorter and costs more context switches.
page-cgroup-cpu-throttled-sources =
    As for station cpu-quota; kernel/sched/fair.c (struct cfs_bandwidth).
