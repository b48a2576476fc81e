# What remedy raise-worker-connections does, and its risk.

remedy-raise-worker-connections-text = Let each worker hold { $to } connections instead of { $from }: { $sum }.
remedy-raise-worker-connections-risk = Uses { $mib } MiB of memory for all workers, whether the connections are used or not.
remedy-raise-worker-connections-risk-files = Each worker may open { $limit } files, too few for so many connections, so worker_rlimit_nofile is set to { $files } as well. Uses { $mib } MiB of memory for all workers, whether the connections are used or not.
