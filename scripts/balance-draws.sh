#!/bin/sh
# Measures how much of the clients' time is unaccounted for under load, in randomly drawn stacks that are loaded and diagnosed once each. It does not prove
# their faults or grade verdicts (`scoreboard run` does that), so a draw takes only some seconds.
# Usage: scripts/balance-draws.sh DIRECTORY SEED [COUNT [FIRST]]
#   (as root; needs nginx, php-fpm, jq; a release build in target/release, or CHOKEPOINT=...; LOAD=4 is the duration of each load in seconds)
# DIRECTORY gets the scenarios, the recordings, and a line of JSON for each draw in draws.jsonl. At the end it prints how many had less than 5 % unaccounted.
set -eu

cd "$(dirname "$0")/.."
binary=${CHOKEPOINT:-${CARGO_TARGET_DIR:-target}/release/chokepoint}
[ $# -ge 2 ] || { echo "usage: scripts/balance-draws.sh DIRECTORY SEED [COUNT [FIRST]]" >&2; exit 2; }
directory=$1 seed=$2 count=${3:-100} first=${4:-0}
mkdir -p "$directory"
# Results of an earlier run would be counted again.
rm -f "$directory"/draw-*.toml "$directory/draws.jsonl"
scripts/cargo.sh run --quiet --release --package chokepoint-scoreboard -- write --random "$count" --seed "$seed" --index "$first" "$directory"

for scenario in "$directory"/draw-*.toml; do
    name=$(basename "$scenario" .toml)
    rm -rf "${directory:?}/$name"
    "$binary" lab run "$scenario" --duration "${LOAD:-4}" --no-fix --record "$directory/$name" >/dev/null 2>"$directory/$name.err" || true
    recording=$(find "$directory/$name" -name '*.rec' 2>/dev/null | head -n 1)
    [ -n "$recording" ] || { echo "$name gave no recording" >&2; continue; }
    "$binary" diagnose --replay "$recording" --json | jq -c --arg name "$name" '{name: $name, verdict, first: .findings[0].id,
        under_way: .ledger.under_way, rate: .ledger.rate_rps, unaccounted: .ledger.unaccounted.share,
        low: .ledger.unaccounted.low, high: .ledger.unaccounted.high}' | tee -a "$directory/draws.jsonl"
done
jq -s -r '"\(map(select(.unaccounted != null and (.unaccounted | fabs) < 0.05)) | length) of \(length) with less than 5 % unaccounted"' "$directory/draws.jsonl"
