# What remedy raise-server-limit does, and its risk.

remedy-raise-server-limit-text = Let { $tier } have { $enough } { $counted } instead of { $limit } ({ $setting }, { $place }){ $known ->
    [yes] : { $rate } per second times { $held } ms, and a reserve
    [load] : as many as this load has connections, or twice as many as now
   *[no] : twice as many as now, since it is not known how many would come if they were answered sooner
}. { $is_refused ->
    [yes] Or let its clients share fewer: with a pool of connections, whose size its requests wait for, none is refused. Each connection takes memory.
   *[no] First check that what is behind it has spare capacity: the limit may protect it.
}
remedy-raise-server-limit-risk = More requests reach the server behind { $tier } at once. If that is full with fewer, each takes longer, and its memory and its connections to others grow.
remedy-raise-server-limit-risk-own = { $tier } works on more at once: each takes longer if its cores or disks are full, and its memory grows with each connection.
remedy-raise-server-limit-line = What to write there, the rest of the line as it is, then { $restart ->
    [yes] restart { $tier }
   *[no] let { $tier } read its configuration again
}:
remedy-raise-server-limit-undo = Write the line at { $place } as it was:
