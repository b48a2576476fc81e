# What remedy raise-nofile does, and its risk.

remedy-raise-nofile-text = Let each worker of nginx open { $to } files instead of { $from } (worker_rlimit_nofile): two for each connection that it may hold.
remedy-raise-nofile-risk = Hardly any cost by itself.
