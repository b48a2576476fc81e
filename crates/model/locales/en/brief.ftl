# The short text report.

brief-choked = CHOKED
brief-healthy = HEALTHY
brief-overloaded = OVERLOADED
brief-client-limited = CLIENT-LIMITED
brief-unknown = UNKNOWN
brief-fixed = FIXED
brief-improved = IMPROVED, still limited
brief-before = before
brief-after = after
brief-row-good = good
brief-row-failed = failed
brief-row-p99 = p99
brief-row-limit = limit
brief-rate = { $rate }/s
brief-figures = { $rate }/s good, { $failed } failed, { $time } ({ $requests ->
    [one] { $requests } request
   *[other] { $requests } requests
} in { $duration }{ $threads ->
    [0] )
    [one] {" "}by 1 thread)
   *[other] {" "}by { $threads } threads)
}
brief-watched = No load was applied: existing traffic was watched.
brief-cause = cause: { $title }
brief-cause-found = cause found: { $title }
brief-also = also
brief-other-cause = { $id } of { $tier } (cause)
brief-other-symptom = { $id } of { $tier } (symptom)
brief-remedy = fix
brief-predicted = Predicted: { $rate }/s.
brief-predicted-same = Predicted: as many as now, and fewer that fail, wait long or are left out.
brief-predicted-less = Predicted: { $rate }/s, fewer than now, and fewer that fail, wait long or are left out.
brief-changes = changes
brief-column-good = good/s
brief-more-settings = { $n ->
    [one] , and 1 more
   *[other] , and { $n } more
}
brief-more-changes = { $n ->
    [one] 1 other change was taken back (--verbose)
   *[other] { $n } other changes were taken back (--verbose)
}
brief-left-out = Each change that stays was left out once under the same load, and put back.
brief-places-found = As found, before the changes:
brief-requests = requests
brief-path = path
brief-ceiling = at most { $rate }/s
brief-others-fine = { $n ->
    [one] 1 other fine
   *[other] { $n } others fine
}
brief-fine = { $n ->
    [one] 1 station fine
   *[other] { $n } stations fine
}
brief-others-unread = { $n } not read
brief-notes = notes
brief-faster = Could be faster: { $title } ({ $id }).
brief-more-notes = { $n ->
    [one] 1 more note (--verbose)
   *[other] { $n } more notes (--verbose)
}
brief-next = next
brief-root = as root
brief-root-lacks = Root may not read all of { $names } here: it has not the privilege { $needs }, as in many containers.
brief-root-adds = This user may not read { $names }. Run it as root (sudo) to have these, too.
brief-command-fix = chokepoint diagnose --fix ...
brief-command-fix-load = chokepoint diagnose --load --fix ...
brief-command-explain = chokepoint explain { $id }
brief-next-fix = apply it, measure, keep what helps
brief-next-list = what is changed on this host now, and by whom
brief-next-again = again, once nothing is in its way
brief-next-undo = take the changes back
brief-next-explain = details and remedies
brief-next-root = reads what this user may not
