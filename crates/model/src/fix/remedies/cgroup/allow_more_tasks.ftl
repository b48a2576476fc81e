# What remedy allow-more-tasks says, and its risk.

remedy-allow-more-tasks-text = Let { $scope ->
    [cgroup] cgroup { $whose }
   *[user] user { $whose }
  } have { $to } processes and threads instead of { $from }: { $sum }. chokepoint does not change this: the limit may protect the rest of the machine.
remedy-allow-more-tasks-risk = Each takes memory, and a program that starts them without end then takes more of it before it stops.
step-unit-tasks = in the unit that starts the server (systemctl edit), or --pids-limit of its container:
