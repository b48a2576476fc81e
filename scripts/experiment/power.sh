#!/bin/sh
# How often a true difference is found: repeats an experiment on a page that costs PERCENT more in the second variant, and counts what it called.
# Usage: scripts/experiment/power.sh DIR PERCENT [TIMES] [BUDGET]     CHOKEPOINT names the program. It needs root and jq.
set -eu
dir=$1 percent=$2 times=${3:-20} budget=${4:-1m}
program=${CHOKEPOINT:-target/release/chokepoint}
here=$(dirname "$(realpath "$0")")
mkdir -p "$dir"
cat >"$dir/plan.toml" <<PLAN
schema = 1
name = "known"
title = "Is a page that costs $percent % more found?"
stack = { scenario = "$here/known.scenario.toml" }
load = { trial = "500ms", warm_up = "200ms" }

[[variant]]
name = "as it is"
set = { rounds = 40000 }

[[variant]]
name = "more"
set = { rounds = $(awk "BEGIN { printf \"%d\", 40000 * (1 + $percent / 100) }") }
PLAN
n=0
while [ "$n" -lt "$times" ]; do
    n=$((n + 1))
    file=$dir/$(printf %02d "$n").json
    [ -s "$file" ] || $program experiment "$dir/plan.toml" --budget "$budget" --json >"$file.part" 2>"$dir/log"
    [ -s "$file" ] || mv "$file.part" "$file"
done
jq -r --slurp '
    [.[].comparisons[0]] as $all
    | def median: sort | .[length / 2 | floor];
      "\($all | length) experiments, \([$all[] | select(.outcome == "worse")] | length) found it, \([$all[] | select(.outcome == "better")] | length) called the opposite",
      "difference: median \([$all[].differences.goodput.value] | median)%, rounds \([$all[].pairs] | min) to \([$all[].pairs] | max), time \([.[].design.used_s] | median | floor) s",
      "smallest difference that would be seen (4 of 5): median \([$all[].smallest_percent] | median)%"
' "$dir"/[0-9]*.json
