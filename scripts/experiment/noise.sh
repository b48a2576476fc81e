#!/bin/sh
# How often experiments without a true difference call one, and what they could have seen: repeats the preset `same` and keeps each result.
# DIR/goodput gets the trials of each experiment in a line, in the order of time: crates/experiment/tests/data/same.txt is such a file.
# Usage: scripts/experiment/noise.sh DIR [TIMES] [BUDGET]     CHOKEPOINT names the program. It needs root and jq.
set -eu
dir=$1 times=${2:-40} budget=${3:-20s}
program=${CHOKEPOINT:-target/release/chokepoint}
mkdir -p "$dir"
n=0
while [ "$n" -lt "$times" ]; do
    n=$((n + 1))
    file=$dir/$(printf %02d "$n").json
    [ -s "$file" ] || $program experiment --preset same --budget "$budget" --json >"$file.part" 2>"$dir/log"
    [ -s "$file" ] || mv "$file.part" "$file"
done
jq -r --slurp '
    [.[].comparisons[0]] as $all
    | "\($all | length) experiments, \([$all[] | select(.outcome != "no-difference")] | length) called a difference",
      "rounds: \([$all[].pairs] | sort | .[0]) to \([$all[].pairs] | sort | .[-1])",
      "smallest difference that would be seen (4 of 5): median \([$all[].smallest_percent] | sort | .[length / 2 | floor])%"
' "$dir"/*.json
jq -r '[.trials[].figures.goodput | round] | join(" ")' "$dir"/*.json >"$dir/goodput"
