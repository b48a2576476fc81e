#!/bin/sh
# Measures the noise floor: runs one healthy scenario N times and prints the spread of goodput, p99 and CPU per request between identical runs.
# Usage: scripts/noise-floor.sh [RUNS] [SCENARIO]     (as root; needs jq; a release build in target/release)
set -eu

cd "$(dirname "$0")/.."
runs=${1:-30}
scenario=${2:-healthy-php}
binary=${CARGO_TARGET_DIR:-target}/release/chokepoint
lines=$(mktemp "${TMPDIR:-/tmp}/chokepoint-noise.XXXXXXXX")
trap 'rm -f "$lines"' EXIT

ticks() { # busy and soft interrupt ticks of each core (proc(5))
    awk '/^cpu[0-9]/ { print $1, $2 + $3 + $4 + $7 + $8 + $9, $8, $5 + $6 }' /proc/stat
}

before=$(ticks)
"$binary" lab run "$scenario" --repeat "$runs" --json >"$lines"
after=$(ticks)

echo "$scenario, $runs runs, kernel $(uname -r), $(nproc) cores, $(date -u +%F)"
jq -rs '
    def spread($name; $digits):
        map(select(. != null)) | sort
        | { median: .[length / 2 | floor], low: .[0], high: .[-1], p05: .[length * 0.05 | floor], p95: .[length * 0.95 | floor],
            mean: (add / length), sd: ((add / length) as $m | (map((. - $m) * (. - $m)) | add / (length - 1) | sqrt)) }
        | "\($name)\t\(.median)\t\(.low)\t\(.high)\t\(100 * .sd / .mean | . * 10 | round / 10) %\t\(100 * (.p95 - .p05) / .median | . * 10 | round / 10) %";
    "measure\tmedian\tlowest\thighest\tstandard deviation\t5th to 95th percentile",
    (map(.goodput_rps) | spread("goodput, requests/s"; 0)),
    (map(.latency_us_p99) | spread("p99, us"; 0)),
    (map(.cpu_us_per_good) | spread("servers'"'"' CPU per request, us"; 1)),
    (map(.generator_share) | spread("generator'"'"'s share of its core"; 3)),
    (map(.verdict_after_ms) | spread("verdict after the load, ms"; 0)),
    "as expected: \(map(select(.ok)) | length) of \(length); causes named: \(map(select(.first_cause != null)) | length)"
' "$lines" | awk -F'\t' 'NF > 1 { printf "%-34s %12.12s %12.12s %12.12s %20s %24s\n", $1, $2, $3, $4, $5, $6; next } { print }'
echo "soft interrupts, share of each core's time over all runs:"
printf '%s\n%s\n' "$before" "$after" | awk '
    !($1 in busy) { busy[$1] = $2; soft[$1] = $3; idle[$1] = $4; next }
    { all = $2 - busy[$1] + $4 - idle[$1]; if (all > 0) printf "  %s  %.1f %% soft interrupts, %.1f %% busy\n", $1, 100 * ($3 - soft[$1]) / all, 100 * ($2 - busy[$1]) / all }'
