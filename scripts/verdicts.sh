#!/bin/bash
# Runs every built-in scenario N times with load and N times passively, without fixing, and writes the table of verdicts to docs/verdicts.md.
# Usage: scripts/verdicts.sh [N [SCENARIO...]]; as root. The single runs stay in target/verdicts.jsonl.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-10}
shift || true
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
    for mode in "" --passive; do
        echo "$name $mode" >&2
        # A run that is not as expected is a row of the table and not the end of it.
        # shellcheck disable=SC2086
        "$program" lab run "$name" --repeat "$count" --no-fix --duration "$seconds" --json $mode >>"$runs" 2>/dev/null || true
    done
done
{
    cat <<TEXT
# Verdicts on the built-in scenarios

Made by \`scripts/verdicts.sh $count\` (as root): every scenario built anew for each run, loaded for $seconds s and diagnosed without a fix; and
again passively, while a load that the diagnosis knows nothing of runs. A run is right where the first cause is the expected one (or none where
none is), no forbidden finding was made, and the lab was taken down clean. Kernel $(uname -r | cut -d- -f1), $(nproc) shared cores, $(date -u +%F).

| scenario | expected first cause | with load | first causes seen | goodput/s, median | passive | first causes seen |
|---|---|---|---|---|---|---|
TEXT
    jq -rs '
        def median: sort | if length == 0 then "" elif length % 2 == 1 then .[length / 2 | floor] else (.[length / 2] + .[length / 2 - 1]) / 2 end;
        def right: "\(map(select(.ok)) | length) of \(length)";
        def causes: map(.first_cause // "none") | group_by(.) | map("\(.[0]) \(length)") | join(", ");
        [to_entries[] | .value + {order: .key}] | group_by(.scenario) | sort_by(map(.order) | min)[]
        | (map(select(.passive | not))) as $load | (map(select(.passive))) as $passive
        | "| \(.[0].scenario) | \(.[0].expected // "any") | \($load | right) | \($load | causes) | \($load | map(.goodput_rps // empty) | median | if . == "" then . else round end) | \($passive | right) | \($passive | causes) |"
    ' "$runs"
} >docs/verdicts.md
jq -rs '"\(map(select(.ok)) | length) of \(length) runs were right"' "$runs" >&2
