# `chokepoint explain tasks`: the pages of the station and of its finding, with the same five sections.

page-tasks-title = Processes and threads
page-tasks-limits =
    How many processes and threads may exist together: in a cgroup and all below it (pids.max, which TasksMax= of a unit and --pids-limit of a container set), of one user on the whole machine (RLIMIT_NPROC; root is exempt), on the whole host (kernel.threads-max), or in a pid namespace, where each has an id of its own (kernel.pid_max). Within a process, the stack of each thread takes mappings of memory (vm.max_map_count).
page-tasks-shows =
    The most that there were, of the limit that is closest, and how often a start was refused.
page-tasks-sure =
    A cgroup's kernel counters are exact. Tasks of a user are counted at the beginning and at the end, those of the server each second, and so are those of the host. Since Linux 6.14 each pid namespace has its own pid_max, and only that of this program is read. The limits of the kernel are shown from half of their use on.
page-tasks-remedies =
    See tasks-exhausted: a higher limit, or fewer threads at once.
page-tasks-sources =
    fork(2), getrlimit(2), mmap(2); kernel/fork.c, kernel/pid.c, mm/mmap.c; Documentation/admin-guide/sysctl/kernel.rst and vm.rst; Documentation/admin-guide/cgroup-v1/pids.rst; Documentation/admin-guide/cgroup-v2.rst; systemd.resource-control(5).

page-tasks-exhausted-title = No process or thread can be started
page-tasks-exhausted-limits =
    Servers that start a process or thread for a connection or a request, and pools that want to grow.
page-tasks-exhausted-shows =
    The count of refused starts of a cgroup grows (pids.events), or the user of the server, the host or the pid namespace has as many tasks as it may in every sample, or the server as many mappings of memory; and requests fail, are closed, or stand at the server.
page-tasks-exhausted-sure =
    High if as many starts were refused as matter to the requests; medium if there were few, or for a limit of a user or of the kernel, whose refusals nobody counts. Silent at the limit while no client suffers, if what was refused cost too few requests, and at a limit of the host for a server whose threads stay the same.
page-tasks-exhausted-remedies =
    A higher TasksMax=, --pids-limit or LimitNPROC=, or a higher kernel.threads-max, kernel.pid_max or vm.max_map_count, if memory and cores have room for so many. Fewer threads at once (a pool instead of one for each connection) are better than more of them.
page-tasks-exhausted-sources =
    As for station tasks.
