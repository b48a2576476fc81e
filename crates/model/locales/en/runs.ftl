# The reports of `chokepoint runs`.

runs-none = No run is kept{ $filtered ->
    [yes] { " " }that fits
   *[no] { "" }
}.
runs-head-id = run
runs-head-when = when (UTC)
runs-head-kind = kind
runs-head-target = target
runs-head-figure = main figure
runs-head-label = label
runs-head-result = result
runs-head-change = change
runs-running = not finished
runs-interrupted = interrupted

runs-title = Run { $id }: { $kind } of { $target }
runs-began = { $when }, { $time }, chokepoint { $version }
runs-label = Label: { $label }
runs-figures = Figures
runs-load = Load
runs-trials = { $n ->
    [one] One trial is
   *[other] { $n } trials are
} kept with it.

runs-page-which = Which runs
runs-page-name = what
runs-page-earlier = before
runs-page-later = now
runs-compare-title = Run { $later } compared with run { $earlier }
runs-compare-run = Run { $id }: { $kind } of { $target }, { $when }
runs-compare-labelled = Run { $id } "{ $label }": { $kind } of { $target }, { $when }
runs-chosen-named = Both runs were named on the command line.
runs-chosen-faster = Run { $earlier } is the latest earlier run of the same kind, target and load whose goodput was higher by more than { $percent } %.
runs-chosen-previous = No earlier run of the same kind, target and load was faster by more than { $percent } %, so run { $earlier }, the one before, is compared.
runs-chosen-other-load = No earlier run of the same kind and target had the same load. Run { $earlier } is the one before, with another load.
runs-loads-differ = The loads differ, so the figures cannot be compared:
runs-kinds-differ = The runs are of different kinds: { $earlier } and { $later }.
runs-targets-differ = The targets differ: { $earlier } and { $later }.
runs-not-done = Run { $id } did not end by itself.
runs-differences = Differences
runs-only-earlier = Only run { $id } read these
runs-not-read = not read
runs-nothing-differs = { $same ->
    [one] Nothing that both runs read differs: one value is the same.
   *[other] Nothing that both runs read differs: { $same } values are the same.
}
runs-same = { $same ->
    [one] One other value is the same in both runs.
   *[other] { $same } other values are the same in both runs.
}
runs-no-proof = Two single runs at different times are no proof: chance and other programs change figures, too. `chokepoint experiment` lets two configurations take turns and says how sure the difference is.

runs-remove = { $n ->
    [one] Remove one run?
   *[other] Remove { $n } runs?
}
runs-removed = { $n ->
    [one] One run was removed.
   *[other] { $n } runs were removed.
}
runs-not-kept = note: this run is not kept: { $why }
runs-no-directory = no directory for runs is known: set HOME, XDG_STATE_HOME or CHOKEPOINT_STATE_DIR
runs-no-such = there is no run "{ $run }": `chokepoint runs list` lists them; last and previous are names, too
runs-no-previous = there is no run before run { $id } with the same kind and target
runs-not-asked = nothing was removed: add --yes, or answer y
runs-no-terminal = runs are removed only if you agree, and there is no terminal to ask on: add --yes

runs-rate = { $n }/s
runs-share = { $n } %
runs-plain = { $n }
runs-change = { $sign }{ $n } %
