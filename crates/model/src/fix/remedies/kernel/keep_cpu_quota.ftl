# What remedy keep-cpu-quota does, and its risk.

remedy-keep-cpu-quota-text = To make it last: raise the quota where cgroup { $cgroup } is made. systemd: CPUQuota= of the unit; Docker: --cpus or --cpu-quota; Kubernetes: limits.cpu of the container.
remedy-keep-cpu-quota-text-systemd = To make it last: raise CPUQuota= of the unit to which cgroup { $cgroup } belongs; set-property keeps it in a drop-in.
remedy-keep-cpu-quota-text-container = To make it last: raise the limit of the container whose cgroup is { $cgroup }, and in what it is started from.
remedy-keep-cpu-quota-text-kubernetes = To make it last: raise limits.cpu in the manifest of the pod whose cgroup is { $cgroup }, or leave the limit out and keep requests.cpu. The kubelet takes back what is written to the cgroup.
remedy-keep-cpu-quota-risk = Whoever set the quota may have meant it: ask. Others on these cores get less.
