# What remedy raise-nofile does, and its risk.

remedy-raise-nofile-text = Let each nginx worker open { $to } files instead of { $from } (worker_rlimit_nofile): { $sum }.
remedy-raise-nofile-risk = The limit itself costs almost nothing.
