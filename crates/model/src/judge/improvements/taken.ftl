# Cores that other programs take: title, explanation, evidence, page.

finding-cores-taken-title = { $name } takes { $share } % of the cores that { $tier } needs
finding-cores-taken-title-several = { $name } and { $others ->
    [1] one other program
   *[other] { $others } other programs
} take { $share } % of the cores that { $tier } needs
finding-cores-taken-title-stolen = the hypervisor gives others { $share } % of the cores that { $tier } needs
finding-cores-taken-explanation = { $tier } has work and no core for it: its threads are ready to run, and wait while other programs of this host run on { $count ->
    [1] core { $cores }
   *[other] cores { $cores }
}. No connection between them and these servers was seen. Requests wait that long, and queues fill up in front of { $tier } although its own limits are not reached.
finding-cores-taken-explanation-stolen = { $tier } has work and no core for it: its threads are ready to run, and wait while the hypervisor lets other guests run on { $count ->
    [1] core { $cores }
   *[other] cores { $cores }
}. Nothing on this host can change that.
finding-cores-taken-own = The work of { $tier } itself counts as well: { $threads ->
    [one] one thread answers all requests, and { "" }
   *[several] { "" }
}{ $cost ->
    [known] each answer takes { $ms } ms of CPU time, { $share } % of it
   *[unknown] { $share } % of its CPU time goes into
} { $layer }. With half of that it could answer { $times } times as much on the cores that it gets.
evidence-cores-taken-ran = The servers used { $ran } cores, and { $delayed } more of their threads were ready and waited for one, on average.
evidence-cores-taken-by = { $more ->
    [0] { $name } (pid { $pid }, user { $user }) used { $used } cores.
   *[other] { $name } (pid { $pid } and { $more } more of user { $user }) used { $used } cores.
}
evidence-cores-taken-by-group = { $more ->
    [0] { $name } (pid { $pid }, user { $user }, in { $group }) used { $used } cores.
   *[other] { $name } (pid { $pid } and { $more } more of user { $user }, in { $group }) used { $used } cores.
}
evidence-cores-taken-realtime = { $name } has real-time priority ({ $policy }, { $priority }): the kernel runs it before every ordinary program, for as long as it wants.
evidence-cores-taken-held = { $tier } may run on { $count ->
    [1] core { $cores }
   *[other] cores { $cores }
} alone (taskset, a cpuset, worker_cpu_affinity), while { $idle } of the others ({ $beyond }) had no work. If nobody means that, let it use them.
evidence-cores-taken-lowered = { $kind ->
    [group] The kernel shares the time out among control groups, and { $group }, in which { $tier } runs, has { $value } in { $file }: { $usual } is usual.
    [idle] Process { $pid } of { $tier } is of the class SCHED_IDLE: it runs where no other program wants to.
    [nice] Process { $pid } of { $tier } has nice value { $value }, the other program { $other }: each step is a fifth less.
   *[session] The session of process { $pid } of { $tier } has nice value { $value } (/proc/{ $pid }/autogroup), that of the other program { $other }: each step is a fifth less.
}
evidence-cores-taken-stolen = { $stolen } cores were given to other guests (steal).
evidence-cores-taken-bound = With these cores the servers would run at most { $times } times as much.

remedy-give-cores-back-text = Give { $tier } its cores back: end or pause the other program, or run it later or on another host. Or lower its priority until it ends (nice, chrt): --verbose shows the commands, with the way back.
remedy-give-cores-back-text-stolen = Ask the provider for cores of its own, or move { $tier } to another machine.
remedy-give-cores-back-risk = The other program takes longer. If somebody waits for it, ask first.
remedy-give-cores-back-unit = Priority among the services (systemd, cgroup v2):
remedy-give-cores-back-class = Another class of priority (sched(7)):
remedy-give-cores-back-nice = Priority within its session:
remedy-give-cores-back-session = Priority of its whole session (for kernel.sched_autogroup_enabled = 1, where nice counts only within a session):

remedy-raise-priority-text = Give { $tier } the usual priority: { $kind ->
    [kubernetes] raise requests.cpu of its pod, from which Kubernetes makes the share.
   *[other] the command in the report with --verbose does it until the next start.
} If the low priority is meant, end or pause the other program, or run it later or on another host.
remedy-raise-priority-risk = Programs beside it get less CPU time: somebody may have chosen the low priority for their sake.

page-cores-taken-by-others-title = Other programs take cores that the servers need
page-cores-taken-by-others-limits =
    The servers' throughput, by the cores that programs outside of the request's path use, or that the hypervisor gives to other guests.
page-cores-taken-by-others-shows =
    The cores are full. Threads of the servers were ready and waited for a core (run_delay of schedstat), while other programs used more than 15 % of these cores, so that the servers could run a tenth more without them. Requests wait for these threads: the part of their time in which no core was free costs a tenth of the throughput or more. Threads that a slow client, a disk or a reader of their output holds count with that time too. What most of the servers' own CPU time goes into is told beside it.
page-cores-taken-by-others-sure =
    Only programs that were read by name count: those with most CPU time, once a second. Left out are the servers of the path, what they started, their clients on the same host, and programs with a TCP connection that was not seen elsewhere, which may be clients. Programs that get less than a tenth of a core that a server wants, by their priority, do not count either: their class (SCHED_IDLE) or nice value where both are scheduled in one group, the nice values of their sessions where these are the groups. In a container other containers' programs have no name, and nothing is claimed of them. Watching alone, it is a cause if a thread was never without work, or if requests wait for each other. Silent where a CPU quota stops the servers.
page-cores-taken-by-others-remedies =
    If the server's own priority was lowered (cpu.shares or cpu.weight of its control group, its nice value or class, the nice value of its session), give it the usual one. End, move or delay the other program. Lower its priority (CPUWeight of its unit, nice, the nice value of its session). Give the servers cores of their own (cpuset). If the hypervisor gives the time away, use another machine.
page-cores-taken-by-others-sources =
    proc(5) /proc/stat (steal), /proc/PID/stat; Documentation/scheduler/sched-stats.rst; sched(7), autogroup; kernel/sched/core.c, sched_prio_to_weight; systemd.resource-control(5).
