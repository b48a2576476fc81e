# The loop of --fix: why a change stayed or not, and what went wrong on the way.

# What improved is the reason. What goodput did beside it is a fact in brackets.
kept-yes = { $sign ->
    [gone] Its cause is gone
   *[signal] Its signal improved
} and { $gain ->
    [goodput] goodput went from { $before } to { $after } requests/s.
    [reach] less of the clients' time was lost in requests that failed or took too long: { $lost_before } % before, { $lost_after } % after (goodput { $before } before, { $after } requests/s after).
    [failed] the share of failed requests went from { $share_before } % to { $share_after } % (goodput { $before } before, { $after } requests/s after).
    [latency] p99 went from { $p99_before_ms } to { $p99_after_ms } ms (goodput { $before } before, { $after } requests/s after).
   *[none] nothing got worse beyond noise (goodput { $before } before, { $after } requests/s after).
}
kept-yes-explained = { $sign ->
    [gone] Its cause is gone
   *[signal] Its signal improved
}{ $gain ->
    [goodput] {" "}and goodput went from { $before } to { $after } requests/s
    [reach] {" "}and less of the clients' time was lost: { $lost_before } % before, { $lost_after } % after
    [failed] {" "}and the share of failed requests went from { $share_before } % to { $share_after } %
    [latency] {" "}and p99 went from { $p99_before_ms } to { $p99_after_ms } ms
   *[none] {""}
}. The next cause now { $loss ->
    [reach] costs more of the clients' time: { $lost_before } % of it was lost before, { $lost_after } % after.
    [failed] makes more requests fail: { $share_before } % before, { $share_after } % after.
    [latency] makes requests wait: p99 { $p99_before_ms } ms before, { $p99_after_ms } ms after.
   *[goodput] holds goodput back: { $before } before, { $after } requests/s after.
}
kept-yes-goodput = Its own signal did not improve, but goodput went from { $before } to { $after } requests/s.
kept-yes-reach-alone = Its own signal did not improve, but less of the clients' time was lost in requests that failed or took too long: { $lost_before } % before, { $lost_after } % after (goodput { $before } before, { $after } requests/s after).
kept-yes-gain = Its own signal did not improve, but the share of failed requests went from { $share_before } % to { $share_after } % (goodput { $before } before, { $after } requests/s after).
kept-yes-gone = Its cause is gone{ $gain ->
    [failed] {" "}and the share of failed requests went from { $share_before } % to { $share_after } %
    [latency] {" "}and p99 went from { $p99_before_ms } to { $p99_after_ms } ms
   *[none] {""}
}. The next cause now holds goodput back: { $before } before, { $after } requests/s after.
kept-yes-together = Goodput fell to { $after } requests/s while the changes that seemed idle one by one were all out ({ $before } before): they were put back.
kept-yes-missed = Put back: it had been left out, and the confirmation showed again what it mends (goodput { $after } requests/s, { $before } with it). It is not left out again.
kept-no-fell = Its signal improved, but goodput fell from { $before } to { $after } requests/s and nothing explains that.
kept-no-reach = Its signal improved and goodput went from { $before } to { $after } requests/s, but it reaches fewer clients: { $lost_before } % of their time was lost before in requests that failed or took too long, { $lost_after } % after.
kept-no-failed = Its signal improved, but more requests failed ({ $share_before } % before, { $share_after } % after) and goodput went from { $before } to { $after } requests/s.
kept-no-latency = Its signal improved, but p99 went from { $p99_before_ms } to { $p99_after_ms } ms and goodput did not rise for it ({ $before } before, { $after } requests/s after).
kept-no-objective = Goodput went from { $before } to { $after } requests/s, but p99 left the objective: { $p99_before_ms } ms before, { $p99_after_ms } ms after.
kept-no-tail = Goodput went from { $before } to { $after } requests/s, but p99 went from { $p99_before_ms } to { $p99_after_ms } ms: more than half of the time after which a request is given up.
kept-no-signal = Its signal did not improve (goodput { $before } before, { $after } requests/s after).
kept-no-client = The load generator became the limit and goodput fell from { $before } to { $after } requests/s: nothing is proven.
kept-no-alternative = It worked, but its alternative { $remedy } served better (goodput { $before } before, { $after } requests/s after).
kept-no-alternative-lost = It worked, but it could not be put back after its alternatives had been tried.
kept-no-held = It worked, but it had been left out while the other changes were judged, and the run ended before it was put back.
kept-no-idle = It worked when it was made, but does nothing beside the other changes. Left out: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_before } %), p99 { $p99_after_ms } ms ({ $p99_before_ms } ms).
kept-no-better = It worked when it was made, but does harm beside the other changes. Left out: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_before } %), p99 { $p99_after_ms } ms ({ $p99_before_ms } ms).
kept-no-replaced = A later change sets the same setting; this one does nothing any more.
kept-no-whole = Taken back at the end: with all changes goodput was { $after } requests/s, while { $before } had been reached without this one.
kept-no-whole-reach = Taken back at the end: with all changes { $lost_after } % of the clients' time was lost in requests that failed or took too long, without this one { $lost_before } %.
kept-no-whole-failed = Taken back at the end: with all changes { $share_after } % of the requests failed, without this one { $share_before } %.
kept-no-whole-objective = Taken back at the end: with all changes p99 was { $p99_after_ms } ms and left the objective; without this one it was { $p99_before_ms } ms.
kept-no-whole-latency = Taken back at the end: with all changes p99 was { $p99_after_ms } ms and goodput { $after } requests/s; without this one they were { $p99_before_ms } ms and { $before }.
kept-no-interrupted = Taken back: the run was interrupted before it was finally judged.
kept-no-lost = It was needed, but could not be put back after it had been left out.
kept-no-stuck = It did not help and could not be taken back: it is still in force.

round-needed-goodput = Needed: without it goodput was { $after } requests/s ({ $low }-{ $high } with it).
round-needed-reach = Needed: without it { $lost_after } % of the clients' time was lost in requests that failed or took too long ({ $lost_before } % with it).
round-needed-failed = Needed: without it { $share_after } % of the requests failed ({ $share_low }-{ $share_high } % with it).
round-needed-objective = Needed: without it p99 was { $p99_after_ms } ms, outside the objective, instead of { $p99_before_ms } ms.
round-needed-refusals = Needed: without it { $station } turned { $refused } requests a second away (goodput { $after } instead of { $before } requests/s).
round-needed-latency = Needed: without it p99 was { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms with it).
round-needed-finding = Needed: without it its cause was back (goodput { $after } instead of { $before } requests/s).
round-idle = Left out: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms). Nothing got worse beyond the noise of this run.
round-better = Left out: without it the server does better: { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms).
round-again = Measured again: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms), and nothing else tells that it is needed.
round-unsure = Stays: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms). The noise of this run is as large as what it gave, so nobody can say that it is not needed.
round-unknown = Stays: without it { $after } good requests/s ({ $before } with it), failures { $share_after } % ({ $share_before } %), p99 { $p99_after_ms } ms ({ $p99_before_ms } ms). The load was too short, or too few requests ended, to tell the noise of these figures.
round-confirm = With all changes that stay: goodput { $after } requests/s ({ $before } before the changes were left out one by one).
round-confirm-missed = With all changes that stay, what one that was left out mends is back: goodput { $after } requests/s, failures { $share_after } %, p99 { $p99_after_ms } ms. It is put back.
round-confirm-fell = With all changes that stay the server did worse than before they were left out one by one: goodput { $after } requests/s ({ $low }-{ $high } before), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms).

round-row-without = without { $remedy }
round-row-confirm = all that stays

prediction-refused-round = nothing was applied in this round, so nothing was predicted

warning-not-applied = Remedy { $remedy } could not be applied: { $why }
warning-not-taken-back = A change could not be taken back: { $why } Run "chokepoint undo".
warning-not-put-back = Remedy { $remedy } was left out for a trial and could not be put back: { $why }
warning-not-judged = Remedy { $remedy } was taken back: the run was interrupted before it could be judged.
warning-not-confirmed = The last measurement gave { $after } requests/s where { $before } had been reached with the same changes: something else changed meanwhile.
warning-not-better = All changes were taken back: with them the server did worse than before ({ $before } requests/s before, { $after } after).
