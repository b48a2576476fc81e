# What remedy raise-cpu-quota does, and its risk.

remedy-raise-cpu-quota-text = Let cgroup { $cgroup } use { $to } cores instead of { $from }: what its processes asked for, as far as there are cores. Quotas around it, and those within it that stop the same servers, are raised with it.
remedy-raise-cpu-quota-text-other = Let cgroup { $cgroup } use { $to } cores instead of { $from }. Its limit, or that of a cgroup around it, cannot be written from here: it belongs to whoever made it.
remedy-raise-cpu-quota-risk = Others on these cores get less. The quota may have been set on purpose, to share the host or because it is paid for. It holds until the cgroup ends or what manages it writes it anew: a restart of the container, a reload of the unit.
