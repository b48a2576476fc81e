# What remedy allow-more-tasks says, and its risk.

remedy-allow-more-tasks-text = { $scope ->
    [cgroup] Let cgroup { $whose } have { $to } processes and threads instead of { $from }
    [host] Let the host have { $to } processes and threads instead of { $from } (kernel.threads-max)
    [ids] Let there be { $to } process ids instead of { $from } (kernel.pid_max)
    [mappings] Let a process have { $to } mappings of memory instead of { $from } (vm.max_map_count)
   *[user] Let user { $whose } have { $to } processes and threads instead of { $from }
  }: { $sum }. chokepoint does not change this: the limit may protect the rest of the machine.
remedy-allow-more-tasks-risk = Each takes memory, and a program that starts them without end then takes more of it before it stops.
step-unit-tasks = in the unit that starts the server (systemctl edit), or --pids-limit of its container:
step-sysctl-tasks = in a file below /etc/sysctl.d:
sum-ids-most = the most process ids that the kernel can give: { $needed }
