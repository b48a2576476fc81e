# What remedy reuse-time-wait does, and its risk.

remedy-reuse-time-wait-text = Let new outgoing connections reuse ports that have been in TIME_WAIT for a second (tcp_tw_reuse 1 instead of { $from }).
remedy-reuse-time-wait-risk = Safe with timestamps, which tell old segments from new ones; behind NAT that several hosts share, a remote may see timestamps go backwards.
