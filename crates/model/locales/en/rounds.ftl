# The loop of --fix: why a change stayed or not, and what went wrong on the way.

# What improved is the reason. What goodput did beside it is a fact in brackets.
kept-yes = { $sign ->
    [gone] Its cause is gone
   *[signal] Its signal improved
} and { $gain ->
    [goodput] goodput went from { $before } to { $after } requests/s.
    [reach] more clients are served: requests that failed or took too long cost { $lost_before } % of the clients' time before and { $lost_after } % after (goodput { $before } before, { $after } requests/s after).
    [failed] the share of failed requests went from { $share_before } % to { $share_after } % (goodput { $before } before, { $after } requests/s after).
    [latency] p99 went from { $p99_before_ms } to { $p99_after_ms } ms (goodput { $before } before, { $after } requests/s after).
   *[none] nothing got worse beyond noise (goodput { $before } before, { $after } requests/s after).
}
kept-yes-explained = { $sign ->
    [gone] Its cause is gone
   *[signal] Its signal improved
}{ $gain ->
    [goodput] {" "}and goodput went from { $before } to { $after } requests/s
    [reach] {" "}and more clients are served: requests that failed or took too long cost { $lost_before } % of the clients' time before and { $lost_after } % after
    [failed] {" "}and the share of failed requests went from { $share_before } % to { $share_after } %
    [latency] {" "}and p99 went from { $p99_before_ms } to { $p99_after_ms } ms
   *[none] {""}
}. The next cause now { $loss ->
    [reach] costs more of the clients' time: { $lost_before } % of it was lost before, { $lost_after } % after.
    [failed] makes more requests fail: { $share_before } % before, { $share_after } % after.
    [latency] makes requests wait: p99 { $p99_before_ms } ms before, { $p99_after_ms } ms after.
   *[goodput] holds goodput back: { $before } before, { $after } requests/s after.
}
kept-yes-goodput = Its signal did not improve, but goodput went from { $before } to { $after } requests/s.
kept-yes-reach-alone = Its signal did not improve, but more clients are served: requests that failed or took too long cost { $lost_before } % of the clients' time before and { $lost_after } % after (goodput { $before } before, { $after } requests/s after).
kept-yes-gain = Its signal did not improve, but the share of failed requests went from { $share_before } % to { $share_after } % (goodput { $before } before, { $after } requests/s after).
kept-yes-gone = Its cause is gone{ $gain ->
    [failed] {" "}and the share of failed requests went from { $share_before } % to { $share_after } %
    [latency] {" "}and p99 went from { $p99_before_ms } to { $p99_after_ms } ms
   *[none] {""}
}. The next cause now holds goodput back: { $before } before, { $after } requests/s after.
kept-yes-together = Put back: each of these changes seemed unnecessary when it alone was left out, but with all of them out, goodput fell to { $after } requests/s ({ $before } before).
kept-yes-missed = Put back: after it had been left out, the confirmation found its cause again (goodput { $after } requests/s, { $before } with it). It is not left out again.
kept-no-fell = Its signal improved, but goodput fell from { $before } to { $after } requests/s, and no next cause explains that.
kept-no-reach = Its signal improved, and goodput went from { $before } to { $after } requests/s, but fewer clients are served: requests that failed or took too long cost { $lost_before } % of the clients' time before and { $lost_after } % after.
kept-no-failed = Its signal improved, but more requests failed ({ $share_before } % before, { $share_after } % after), and goodput went from { $before } to { $after } requests/s.
kept-no-latency = Its signal improved, but p99 went from { $p99_before_ms } to { $p99_after_ms } ms, and goodput did not rise in return ({ $before } before, { $after } requests/s after).
kept-no-objective = Goodput went from { $before } to { $after } requests/s, but p99 missed the objective: { $p99_before_ms } ms before, { $p99_after_ms } ms after.
kept-no-tail = Goodput went from { $before } to { $after } requests/s, but p99 went from { $p99_before_ms } to { $p99_after_ms } ms, and no objective (--slo) allows that.
kept-no-gave-up = Goodput went from { $before } to { $after } requests/s, but { $failed_after } of { $requests_after } requests failed ({ $failed_before } of { $requests_before } before).
kept-no-gave-up-why = Goodput went from { $before } to { $after } requests/s, but { $failed_after } of { $requests_after } requests failed ({ $failed_before } of { $requests_before } before): { $why }.
kept-no-signal = Its signal did not improve (goodput { $before } before, { $after } requests/s after).
kept-no-client = The load generator became the limit, and goodput fell from { $before } to { $after } requests/s. This run proves nothing about the change.
kept-no-alternative = It helped, but { $remedy } helped more.
kept-no-alternative-lost = It helped, but it could not be put back after its alternatives had been tried.
kept-no-held = It helped, but it was left out while the other changes were judged, and the run ended before it was put back.
kept-no-idle = It helped at first, but adds nothing to the other changes. Left out: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_before } %), p99 { $p99_after_ms } ms ({ $p99_before_ms } ms).
kept-no-better = It helped at first, but does harm together with the other changes. Left out: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_before } %), p99 { $p99_after_ms } ms ({ $p99_before_ms } ms).
kept-replaced = It stayed until a later change set the same setting again.
kept-no-whole = Taken back at the end: with all changes goodput was { $after } requests/s; without this one it was { $before }.
kept-no-whole-reach = Taken back at the end: with all changes, requests that failed or took too long cost { $lost_after } % of the clients' time; without this one { $lost_before } %.
kept-no-whole-failed = Taken back at the end: with all changes { $share_after } % of the requests failed; without this one { $share_before } %.
kept-no-whole-objective = Taken back at the end: with all changes p99 was { $p99_after_ms } ms and missed the objective; without this one it was { $p99_before_ms } ms.
kept-no-whole-latency = Taken back at the end: with all changes p99 was { $p99_after_ms } ms and goodput { $after } requests/s; without this one they were { $p99_before_ms } ms and { $before }.
kept-no-interrupted = Taken back: the run was interrupted before the change was judged.
kept-no-lost = It is needed, but could not be put back after it had been left out.
kept-no-stuck = It did not help, but could not be taken back: it is still active.

round-needed-goodput = Needed: without it goodput was { $after } requests/s ({ $low }-{ $high } with it).
round-needed-reach = Needed: without it, requests that failed or took too long cost { $lost_after } % of the clients' time ({ $lost_before } % with it).
round-needed-failed = Needed: without it { $share_after } % of the requests failed ({ $share_low }-{ $share_high } % with it).
round-needed-objective = Needed: without it p99 was { $p99_after_ms } ms and missed the objective; with it { $p99_before_ms } ms.
round-needed-refusals = Needed: without it { $station } refused { $refused } requests per second (goodput { $after } instead of { $before } requests/s).
round-needed-latency = Needed: without it p99 was { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms with it).
round-needed-finding = Needed: without it its cause returned (goodput { $after } instead of { $before } requests/s).
round-idle = Left out: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms). Nothing got worse beyond the noise of this run.
round-better = Left out: the server does better without it: { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms).
round-again = Measured again: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms). No other sign shows that it is needed.
round-unsure = Stays: without it { $after } good requests/s ({ $low }-{ $high } with it), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms). The noise of this run is as large as its gain, so whether it is needed is unknown.
round-unknown = Stays: without it { $after } good requests/s ({ $before } with it), failures { $share_after } % ({ $share_before } %), p99 { $p99_after_ms } ms ({ $p99_before_ms } ms). The load was too short, or too few requests completed, to measure the noise of these figures.
round-confirm = With all changes that stay: goodput { $after } requests/s ({ $before } before the changes were left out one by one).
round-confirm-missed = With all changes that stay, the cause of a change that was left out is back: goodput { $after } requests/s, failures { $share_after } %, p99 { $p99_after_ms } ms. That change is put back.
round-confirm-fell = With all changes that stay, the server did worse than before changes were left out one by one: goodput { $after } requests/s ({ $low }-{ $high } before), failures { $share_after } % ({ $share_low }-{ $share_high } %), p99 { $p99_after_ms } ms ({ $p99_low_ms }-{ $p99_high_ms } ms).

round-row-without = without { $remedy }
round-row-confirm = all that stay

prediction-refused-round = nothing was changed in this round, so nothing was predicted

warning-nothing-to-apply = Nothing was changed: no cause has a remedy that --fix can make.
warning-not-applied = Remedy { $remedy } could not be applied: { $why }
warning-watched-ended = While watching went on, { $after } requests were in flight on average, and { $before } before: most of the traffic had ended. The verdict is about the traffic before that.
warning-not-taken-back = A change could not be taken back: { $why } Run "chokepoint undo" to try again.
warning-not-put-back = Remedy { $remedy } was left out for a trial and could not be put back: { $why }
warning-not-judged = Remedy { $remedy } was taken back: the run was interrupted before it could be judged.
warning-not-confirmed = The last measurement gave { $after } requests/s, but { $before } had been reached with the same changes: something else changed in between.
warning-not-better = All changes were taken back, because the server did worse with them ({ $before } requests/s before, { $after } after).
