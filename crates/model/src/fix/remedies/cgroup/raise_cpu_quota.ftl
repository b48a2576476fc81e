# What remedy raise-cpu-quota does, and its risk.

remedy-raise-cpu-quota-text = Let cgroup { $cgroup } use { $to } cores instead of { $from }: { $sum }. Other quotas that stop the same servers, in cgroups above and below it, are raised as well.
remedy-raise-cpu-quota-text-other = Let cgroup { $cgroup } use { $to } cores instead of { $from }: { $sum }. chokepoint cannot write its limit, or the limit of a cgroup above it: ask whoever created it.
remedy-raise-cpu-quota-risk = Other programs on these cores get less CPU time. The quota may have been set on purpose, to share the host or because it is paid for. The change lasts until the cgroup ends or its manager writes the quota again, for example when the container restarts or the unit is reloaded.
