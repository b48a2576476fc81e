# What remedy raise-worker-connections does, and its risk.

remedy-raise-worker-connections-text = Let each worker hold { $to } connections instead of { $from }: room for all that came at once, unevenly shared, and twice that where they are passed on.
remedy-raise-worker-connections-risk = Takes { $mib } MiB of memory for all workers, used or not.
remedy-raise-worker-connections-risk-files = Each worker may open { $limit } files, too few for so many connections: worker_rlimit_nofile is set to { $files } with it. Takes { $mib } MiB of memory for all workers, used or not.
