# What remedy shorten-conntrack-time-wait does, and its risk.

remedy-shorten-conntrack-time-wait-text = Keep entries of closed connections for { $to } s instead of { $from } s: { $share } % of the entries are of that kind.
remedy-shorten-conntrack-time-wait-risk = A segment that arrives after 30 s would be taken for a new connection's; none does on today's paths.
