#!/bin/bash
# Runs every built-in scenario N times with load and without a fix, PASSIVE times passively, and those of several faults N times with `--fix`;
# writes the table of verdicts to docs/verdicts.md.
# Usage: [SECONDS_PER_RUN=8] [PASSIVE=N] scripts/verdicts.sh [N [SCENARIO...]]; as root. The single runs stay in target/verdicts.jsonl.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-10}
shift || true
passive=${PASSIVE:-$count}
seconds=${SECONDS_PER_RUN:-8}
target=${CARGO_TARGET_DIR:-target}
program=$target/release/chokepoint
runs=$target/verdicts.jsonl
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    # The reference is a part of another scenario.
    mapfile -t names < <("$program" lab list --json | jq -r '.scenarios[].name' | grep -v '^throughput-by-hand$')
fi
: >"$runs"
for name in "${names[@]}"; do
    case $name in
    pair-*) modes=("--repeat $count") ;;
    *) modes=("--repeat $count --no-fix" "--repeat $passive --passive") ;;
    esac
    for mode in "${modes[@]}"; do
        echo "$name $mode" >&2
        # A run that is not as expected is a row of the table and not the end of it.
        # shellcheck disable=SC2086
        "$program" lab run "$name" --duration "$seconds" --json $mode >>"$runs" 2>/dev/null || true
    done
done
{
    cat <<TEXT
# Verdicts on the built-in scenarios

Made by \`SECONDS_PER_RUN=$seconds PASSIVE=$passive scripts/verdicts.sh $count\` (as root) on kernel $(uname -r | cut -d- -f1) with $(nproc) shared cores, $(date -u +%F).

## One fault, or none
Every scenario built anew for each run, loaded for $seconds s and diagnosed without a fix; and again passively, while a load that the diagnosis knows
nothing of runs. A run is right where the first cause is the expected one (or none where none is), no forbidden finding was made, the verdict and what
limits are as the scenario says, and the lab was taken down clean.

| scenario | expected first cause | with load | first causes seen | goodput/s, median (range) | passive | first causes seen |
|---|---|---|---|---|---|---|
TEXT
    jq -rs '
        def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor] else (.[length / 2] + .[length / 2 - 1]) / 2 end;
        def range: if length == 0 then "" else "\(median | round) (\(min | round) to \(max | round))" end;
        def right: if length == 0 then "" else "\(map(select(.ok)) | length) of \(length)" end;
        def causes: map(.first_cause // "none") | group_by(.) | map("\(.[0]) \(length)") | join(", ");
        [to_entries[] | .value + {order: .key}] | map(select(.scenario | startswith("pair-") | not)) | group_by(.scenario) | sort_by(map(.order) | min)[]
        | (map(select(.passive | not))) as $load | (map(select(.passive))) as $passive
        | "| \(.[0].scenario) | \(.[0].expected // "any") | \($load | right) | \($load | causes) | \($load | map(.goodput_rps // empty) | range) | \($passive | right) | \($passive | causes) |"
    ' "$runs"
    cat <<TEXT

## Several faults
The same with \`--fix\`. A run is right where the expected causes were all named over the rounds, each change that stays was shown to be needed, the end is as
the scenario asks, and everything was undone.

| scenario | expected causes | right | acted on, in this order | goodput/s before, median (range) | after | changes that stay, median |
|---|---|---|---|---|---|---|
TEXT
    jq -rs '
        def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor] else (.[length / 2] + .[length / 2 - 1]) / 2 end;
        def range: if length == 0 then "" else "\(median | round) (\(min | round) to \(max | round))" end;
        [to_entries[] | .value + {order: .key}] | map(select(.scenario | startswith("pair-"))) | group_by(.scenario) | sort_by(map(.order) | min)[]
        | "| \(.[0].scenario) | \(if .[0].expected_causes == [] then .[0].expected else .[0].expected_causes | join(", ") end) | \(map(select(.ok)) | length) of \(length) | \(map(.named | join(", ")) | group_by(.) | map("\(.[0]): \(length)") | join("; ")) | \(map(.goodput_rps // empty) | range) | \(map(.goodput_rps_after // empty) | range) | \(map(.kept | length) | median) |"
    ' "$runs"
} >docs/verdicts.md
jq -rs '"\(map(select(.ok)) | length) of \(length) runs were right"' "$runs" >&2
