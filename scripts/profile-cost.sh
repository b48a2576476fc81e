#!/bin/sh
# Measures the cost of `chokepoint profile` on the lab's nginx and php-fpm under load: its CPU time and memory over 30 s with all files written, and the goodput
# lost while it samples, in pairs in alternating order, with the 95 % interval of their mean (Student's t).
# Usage: scripts/profile-cost.sh [PAIRS [SECONDS]]     (as root; needs jq and GNU time; a release build in target/release, or BINARY=...)
set -eu

cd "$(dirname "$0")/.."
pairs=${1:-12}
seconds=${2:-5}
tools='jq /usr/bin/time'
. scripts/lab-load.sh
echo "$(uname -r), $(nproc) cores, $(date -u +%F)"
bench() {
    "$binary" bench --no-keep --client-netns cp-healthy-php-client --cpus 0 -c 50 "$@" http://10.78.0.2/
}

bench --disable-keepalive -z 40s >/dev/null &
load=$!
sleep 2
/usr/bin/time -f '30 s: %U s of user and %S s of system time, %M KB at most, %e s in all' \
    "$binary" profile --no-keep -z 30s --record "$scratch/profile.json" --html "$scratch/flames.html" >"$scratch/text"
grep -m 1 'user stacks' "$scratch/text" || true
wait "$load" || true
load=

# Goodput with and without sampling.
sampled() {
    "$binary" profile --no-keep -z "$((seconds + 2))s" --record "$scratch/profile.json" >/dev/null 2>&1 &
    sleep 0.7
    alone
    wait
}
alone() {
    bench --warm-up 500ms -z "${seconds}s" --json | jq '.load.goodput_rps // .goodput_rps'
}
for pair in $(seq "$pairs"); do
    if [ $((pair % 2)) -eq 0 ]; then with=$(sampled); without=$(alone); else without=$(alone); with=$(sampled); fi
    echo "$with $without"
done | awk '
    { taken = 100 * (1 - $1 / $2); printf "with %.0f/s, without %.0f/s: %+.1f %%\n", $1, $2, taken; sum += taken; squares += taken * taken; count++ }
    END {
        # Quantiles of the t distribution at 0.975 for 5 to 30 degrees of freedom (within 0.5 %, Cornish and Fisher 1937).
        free = count - 1; z = 1.959964; t = z + (z ^ 3 + z) / (4 * free) + (5 * z ^ 5 + 16 * z ^ 3 + 3 * z) / (96 * free ^ 2)
        mean = sum / count; error = sqrt((squares - count * mean * mean) / free / count)
        printf "being sampled takes %.1f %% of goodput, 95 %% interval %.1f to %.1f %% (%d pairs)\n", mean, mean - t * error, mean + t * error, count
    }'
