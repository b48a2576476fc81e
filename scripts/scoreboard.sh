#!/bin/bash
# Runs every built-in scenario N times (0: never) with load and without a fix, PASSIVE times only watched, and FIXED times with `--fix` if it expects one. Runs
# DRAWS randomly drawn stacks. Writes the combined results to docs/scoreboard.md and docs/scoreboard.json.
# Usage: [SECONDS_PER_RUN=5] [RECORDINGS=DIR] [PASSIVE=N] [FIXED=N] [DRAWS=100] [SEED=1] scripts/scoreboard.sh [N [SCENARIO...]]; as root, on an otherwise
# idle host. If scenarios are named, only those are run and nothing is drawn. target/scoreboard.jsonl keeps the single runs, and RECORDINGS keeps
# their recordings, which a later version can judge again (`chokepoint diagnose --replay`).
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-10}
shift || true
seconds=${SECONDS_PER_RUN:-5}
passive=${PASSIVE:-$count}
fixed=${FIXED:-$count}
draws=${DRAWS:-100}
target=${CARGO_TARGET_DIR:-target}
program=$target/release/chokepoint
scoreboard=$target/release/scoreboard
runs=$target/scoreboard.jsonl
command -v jq >/dev/null || { echo "jq(1) is needed" >&2; exit 1; }
# The reference belongs to another scenario.
all=$("$program" lab list --json | jq -r '.scenarios[] | select(.name != "throughput-by-hand") | "\(.name) \(.fix)"')
if [ $# -gt 0 ]; then
    draws=0
    all=$(for name in "$@"; do grep "^$name " <<<"$all"; done)
fi
# An unexpected or failed run becomes a row of the table (or a line here). It does not stop the script.
run() {
    echo "$(date +%T) $*" >&2
    "$@" --duration "$seconds" --json >>"$runs" 2>"$target/scoreboard.err" || tail -n 3 "$target/scoreboard.err" >&2
}
# Runs a scenario, with a separate directory for each way to run it.
scenario() {
    local kind=$1 name=$2 keep=()
    shift
    [ -z "${RECORDINGS:-}" ] || keep=(--record "$RECORDINGS/$name-$kind")
    run "$program" lab run "$@" "${keep[@]}"
}
: >"$runs"
[ -z "${RECORDINGS:-}" ] || mkdir -p "$RECORDINGS"
while read -r name fix; do
    [ "$count" -eq 0 ] || scenario load "$name" --repeat "$count" --no-fix
    [ "$passive" -eq 0 ] || scenario watched "$name" --repeat "$passive" --passive
    if [ "$fix" = true ] && [ "$fixed" -gt 0 ]; then
        scenario fix "$name" --repeat "$fixed"
    fi
done <<<"$all"
[ "$draws" -eq 0 ] || run "$scoreboard" run --random "$draws" --seed "${SEED:-1}" ${RECORDINGS:+--keep "$RECORDINGS/drawn"}
"$scoreboard" score "$runs" >docs/scoreboard.md
"$scoreboard" score --json "$runs" >docs/scoreboard.json
