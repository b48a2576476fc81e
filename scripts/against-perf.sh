#!/bin/sh
# Compares `chokepoint profile` with `perf record -F 99 -g` on the lab's nginx and php-fpm under load. Prints the ten hottest functions by perf, the share of
# each in both profiles, and whether the shares differ by at most two points. Samples of the idle task are excluded from both.
# Usage: scripts/against-perf.sh [SECONDS]     (as root; needs perf, wrk and jq; a release build in target/release, or BINARY=...)
set -eu

cd "$(dirname "$0")/.."
seconds=${1:-60}
points=2
tools='perf wrk jq'
. scripts/lab-load.sh
ip netns exec cp-healthy-php-client taskset -c 0 wrk -c 50 -t 1 -d "$((seconds + 20))s" -H 'Connection: close' http://10.78.0.2/ >/dev/null &
load=$!
sleep 2
perf record -q -F 99 -g -a -o "$scratch/perf.data" -- sleep "$seconds" >/dev/null 2>"$scratch/perf.err" &
perf=$!
"$binary" profile --no-keep -z "${seconds}s" --record "$scratch/profile.json" >"$scratch/text" 2>/dev/null
wait "$perf" || { cat "$scratch/perf.err" >&2; exit 1; }

# Samples by function: "COUNT<tab>NAME". Functions without a name are one function, because the two programs print addresses differently.
jq -r '.frames as $frames | .stacks as $stacks | .threads as $threads | .samples[]
    | select($threads[.[2]].pid != 0) | $stacks[.[3]].frames | if length == 0 then "without a name" else $frames[.[-1]] | if .named then .name else "without a name" end end' \
    "$scratch/profile.json" | sort | uniq -c | awk '{ count = $1; sub(/^ *[0-9]+ /, ""); print count "\t" $0 }' >"$scratch/ours"
perf report -i "$scratch/perf.data" --no-children -g none -F sample,comm,sym -t '|' --stdio 2>/dev/null | awk -F'|' '
    /^#/ || NF < 3 { next }
    { count = $1; comm = $2; name = $3; gsub(/^ +| +$/, "", comm); gsub(/^ +| +$/, "", name); sub(/^\[.\] /, "", name); sub(/@.*/, "", name) }
    comm == "swapper" { next }
    { if (name ~ /^0x/ || name == "[unknown]") name = "without a name"; sum[name] += count }
    END { for (name in sum) print sum[name] "\t" name }' >"$scratch/theirs"

echo "$(uname -r), $(nproc) cores, $(perf --version), ${seconds} s, $(date -u +%F)"
grep -m 2 -E '^(cycles|cpu-clock|user stacks)' "$scratch/text" || true
sort -rn "$scratch/theirs" | awk -F'\t' -v points="$points" '
    FILENAME == ARGV[1] { ours[$2] += $1; our_sum += $1; next }
    { their_sum += $1; name[++count] = $2; theirs[count] = $1 }
    END {
        if (!our_sum || !their_sum) { print "nothing was sampled"; exit 1 }
        printf "%-40s %11s %8s %11s\n", "function", "chokepoint", "perf", "difference"
        for (at = 1; at <= 10 && at <= count; at++) {
            our = 100 * ours[name[at]] / our_sum; their = 100 * theirs[at] / their_sum; apart = our - their
            if (apart > points || -apart > points) far++
            printf "%-40.40s %9.2f %% %6.2f %% %+11.2f\n", name[at], our, their, apart
        }
        printf "%d of ten lie further apart than %d points; %d and %d samples\n", far, points, our_sum, their_sum
        exit far > 0
    }' "$scratch/ours" -
