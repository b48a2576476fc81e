# What remedy raise-server-limit does, and its risk.

remedy-raise-server-limit-text = Let { $tier } have { $enough } { $of ->
    [requests] requests at a time
    [connections] connections at a time
   *[other] new connections a second
} instead of { $limit } ({ $setting }, { $place }){ $known ->
    [yes] : { $rate } per second times { $held } ms, and a reserve
    [load] : as many as this load has connections, or twice as many as now
   *[no] : twice as many as now, since it is not known how many would come if they were answered sooner
}. First check that what is behind it has spare capacity: the limit may protect it.
remedy-raise-server-limit-risk = More requests reach the server behind { $tier } at once. If that is full with fewer, each takes longer, and its memory and its connections to others grow.
remedy-raise-server-limit-line = The line to write, then let { $tier } read its configuration again:
remedy-raise-server-limit-undo = Write the line at { $place } as it was:
