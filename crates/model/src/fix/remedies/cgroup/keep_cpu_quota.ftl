# What remedy keep-cpu-quota does, and its risk.

remedy-keep-cpu-quota-text = To keep the change: raise the quota where cgroup { $cgroup } is created. systemd: CPUQuota= of the unit; Docker: --cpus or --cpu-quota; Kubernetes: limits.cpu of the container.
remedy-keep-cpu-quota-text-systemd = To keep the change: raise CPUQuota= of the unit that owns cgroup { $cgroup }. systemctl set-property stores it in a drop-in.
remedy-keep-cpu-quota-text-container = To keep the change: raise the limit of the container with cgroup { $cgroup }, and the limit in the file or command that starts it.
remedy-keep-cpu-quota-text-kubernetes = To keep the change: raise limits.cpu in the manifest of the pod with cgroup { $cgroup }, or remove the limit and keep requests.cpu. The kubelet reverts direct changes to the cgroup.
remedy-keep-cpu-quota-risk = The quota may have been set on purpose: ask its owner. Other programs on these cores get less CPU time.
