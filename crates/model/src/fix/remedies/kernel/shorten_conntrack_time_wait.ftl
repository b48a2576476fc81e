# What remedy shorten-conntrack-time-wait does, and its risk.

remedy-shorten-conntrack-time-wait-text = Keep entries of closed connections for { $to } s instead of { $from } s: { $share } % of the entries are of this kind.
remedy-shorten-conntrack-time-wait-risk = A segment of a closed connection that arrives after 30 s no longer matches its entry: a firewall may drop it, or it may be taken for a segment of a new connection. TCP allows a segment to live for 2 minutes (RFC 9293), but delays of more than 30 s are rare.
