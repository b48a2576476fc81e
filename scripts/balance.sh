#!/bin/sh
# Checks whether the account of watched traffic balances: compares the sum of the ledger with wrk's connections, and its mean response time with wrk's mean.
# Each run builds a scenario of lab/balance, lets wrk load it, watches without a load of its own, and takes the scenario down.
# Usage: scripts/balance.sh [FILE [SCENARIO:CONNECTIONS...]]
#   (as root; needs wrk, haproxy, nodejs, golang, php-fpm, nginx, openssl, python3, jq, iproute2; a release build in target/release, or CHOKEPOINT=...)
#   WATCH=8 is the time of watching in seconds. KEEP=DIRECTORY stores reports, recordings and the output of wrk. Without runs it does all 24, in six minutes.
# FILE gets a line of JSON for each run ("-": no file). At the end it prints a table in Markdown. For runs with response times above 5 ms it counts those with
# a sum within 5 % and a time within 10 %; for faster runs, those within 25 % and those that report that they cannot tell. The exit status is 1 if a run failed.
#
# wrk's run begins two seconds before the watching and ends after it, so wrk's mean covers the time that is watched. wrk corrects for coordinated omission: it
# adds latencies that it did not measure to the mean that it prints. The account is compared with the mean of the measured latencies. The printed mean is
# reported too, with the number of runs within the limits by it.
set -eu

cd "$(dirname "$0")/.."
binary=${CHOKEPOINT:-${CARGO_TARGET_DIR:-target}/release/chokepoint}
watch=${WATCH:-8}
file=${1:--}
[ $# -eq 0 ] || shift
# Each scenario runs with two numbers of connections. The response times of the last four are below 5 ms.
[ $# -gt 0 ] || set -- php:40 php:100 php-unix:30 php-unix:80 nginx-node:50 nginx-node:200 nginx-go:40 nginx-go:120 nginx-tls:20 nginx-tls:50 \
    haproxy:50 haproxy:100 node-timer:10 node-timer:100 node-work:20 node-work:60 go-limit:50 go-limit:200 python-pool:40 python-pool:120 \
    static:10 static:50 static-tls:10 go-fast:20

missing=
for tool in wrk:wrk haproxy:haproxy node:nodejs go:golang nginx:nginx openssl:openssl python3:python3 jq:jq ip:iproute2 taskset:util-linux; do
    command -v "${tool%%:*}" >/dev/null || missing="$missing ${tool##*:}"
done
# The program's name contains the version.
fpm=$(echo "$PATH:/usr/sbin" | tr : '\n' | xargs -I '{}' find '{}' -maxdepth 1 -name 'php-fpm*' 2>/dev/null | head -n 1)
[ -n "$fpm" ] || missing="$missing php-fpm"
command -v "$binary" >/dev/null || missing="$missing $binary"
[ -z "$missing" ] || { echo "missing:$missing" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "namespaces take root" >&2; exit 2; }
for run; do
    [ -f "lab/balance/${run%%:*}.toml" ] || { echo "no scenario: $run" >&2; exit 2; }
    [ "${run##*:}" -gt 0 ] 2>/dev/null || { echo "no number of connections: $run" >&2; exit 2; }
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/chokepoint-balance.XXXXXXXX")
load=
watcher=
lab=
failed=0
# Ends the processes that this script started and takes down what it built.
stop() {
    for process in $watcher $load; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    for try in 1 2 3; do
        [ -n "$lab" ] || break
        if "$binary" lab down "$lab" >"$scratch/down" 2>&1; then
            lab=
        else
            echo "try $try: $lab is still up: $(cat "$scratch/down")" >&2
            sleep 1
        fi
    done
    [ -z "$lab" ] || failed=1
    load=
    watcher=
    lab=
}
# shellcheck disable=SC2317 # The trap calls it.
clean() {
    stop
    rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

chmod 755 "$scratch" # Servers run as other users.
cp lab/balance/*.js lab/balance/*.py lab/balance/*.lua "$scratch"
go build -o "$scratch/answers" lab/balance/answers.go
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=balance -keyout "$scratch/server.key" \
    -out "$scratch/server.crt" 2>/dev/null
results=$file
[ "$file" != - ] || results=$scratch/results
: >"$results"
[ -z "${KEEP:-}" ] || mkdir -p "$KEEP"

# Builds, loads and watches; prints one line of JSON. The caller stops the processes that still run.
measure() {
    scenario=$1
    connections=$2
    sed "s|@programs@|$scratch|g" "lab/balance/$scenario.toml" >"$scratch/scenario.toml"
    url=$(sed -n 's/^url = "\(.*\)"$/\1/p' "$scratch/scenario.toml")
    lab=balance-$scenario
    "$binary" lab up "$scratch/scenario.toml" >/dev/null || return 1
    busy=$(cut -d ' ' -f 1 /proc/loadavg)
    CONNECTIONS=$connections ip netns exec "cp-$lab-client" taskset -c 0 wrk -t1 -c "$connections" -d "$((watch + 30))s" --timeout 10s --latency \
        -s "$scratch/report.lua" "$url" >"$scratch/wrk" 2>&1 &
    load=$!
    sleep 2
    set -- --client-netns "cp-$lab-client" --server-netns "cp-$lab-server" -z "${watch}s" --json
    [ -z "${KEEP:-}" ] || set -- "$@" --record "$KEEP/$scenario-$connections.recording"
    "$binary" diagnose "$@" "$url" >"$scratch/report" 2>"$scratch/errors" &
    watcher=$!
    # Without a verdict the exit status is 1, but the ledger is printed.
    wait "$watcher" || [ -s "$scratch/report" ] || { cat "$scratch/errors" >&2; return 1; }
    watcher=
    kill -INT "$load" 2>/dev/null || true
    wait "$load" || { cat "$scratch/wrk" >&2; return 1; }
    load=
    if [ -n "${KEEP:-}" ]; then
        cp "$scratch/report" "$KEEP/$scenario-$connections.json"
        cp "$scratch/wrk" "$KEEP/$scenario-$connections.wrk"
    fi
    tail -n 1 "$scratch/wrk" | jq -c --slurpfile report "$scratch/report" --arg scenario "$scenario" --argjson connections "$connections" \
        --argjson busy "$busy" '
        def off($is; $be): if $is == null then null else $is / $be - 1 end;
        def at_most($most): . != null and fabs <= $most;
        . as $wrk | $report[0] as $report | $report.ledger as $ledger
        | [$ledger.places[]?] as $places
        | {
            scenario: $scenario, connections: $connections,
            wrk: {
                rps: ($wrk.requests / $wrk.seconds), mean_ms, printed_ms, p50_ms, p99_ms, failed,
                # The mean if each connection sends its next request at once.
                by_rate_ms: (if $wrk.requests > 0 then 1e3 * $connections * $wrk.seconds / $wrk.requests else null end)
            },
            ledger: {
                sum: (if $ledger then [$places[].mean] | add // 0 else null end), rate_rps: $ledger.rate_rps, mean_ms: $ledger.response_time_ms,
                unaccounted: $ledger.unaccounted.mean, most: ($places | max_by(.mean) | if . then "\(.tier) \(.place) \(.mean * 10 | round / 10)" else null end)
            },
            verdict: $report.verdict, limited_by: $report.limited_by,
            # The text about connections whose requests cannot be counted.
            said: [$report.warnings[]? | select(test("cannot be told whether a request is|cannot be told exactly|carry several requests at once|send without being asked"))],
            busy_before: $busy
        }
        | .sum_off = off(.ledger.sum; $connections) | .mean_off = off(.ledger.mean_ms; .wrk.mean_ms) | .printed_off = off(.ledger.mean_ms; .wrk.printed_ms)
        | .fast = (.wrk.mean_ms <= 5)
        | .cannot_tell = (.ledger.sum == null or .ledger.mean_ms == null or (.said | length > 0))
        | (if .fast then [0.25, 0.25] else [0.05, 0.1] end) as [$sum, $mean]
        | .within = ((.sum_off | at_most($sum)) and (.mean_off | at_most($mean)))
        | .printed_within = ((.sum_off | at_most($sum)) and (.printed_off | at_most($mean)))' >>"$results"
}

for run; do
    if measure "${run%%:*}" "${run##*:}"; then
        tail -n 1 "$results" >&2
    else
        echo "failed: $run" >&2
        failed=1
    fi
    stop
done

echo "Linux $(uname -r), $(nproc) cores, $(date -u +%F), $(wrk -v 2>&1 | sed -n '1s/ \[.*//p'), watched for $watch s"
echo
jq -rs '
    def to($digits): if . == null then "-" else . * $digits | round / $digits | tostring end;
    def percent: if . == null then "-" else . * 1000 | round / 10 | if . > 0 then "+\(.)" else "\(.)" end end;
    def row: "| " + join(" | ") + " |";
    (["scenario", "connections", "requests/s by wrk", "sum of the ledger", "off, %", "mean by wrk, ms", "printed, ms",
        "by the ledger, ms", "off, %", "most stand", "verdict", "within"] | row),
    ([range(12) | "---"] | row),
    (.[] | [.scenario, (.connections | tostring), (.wrk.rps | to(1)), (.ledger.sum | to(10)), (.sum_off | percent), (.wrk.mean_ms | to(100)),
        (.wrk.printed_ms | to(100)), (.ledger.mean_ms | to(100)), (.mean_off | percent), .ledger.most // "-",
        .verdict + (if .limited_by then ", \(.limited_by)" else "" end),
        (if .within then "yes" else "**no**" end) + (if .cannot_tell then ", cannot tell" else "" end)
            + (if .wrk.failed > 0 then ", \(.wrk.failed) failed" else "" end)] | row),
    "",
    ([.[] | select(.fast | not)] | "answers of over 5 ms: \([.[] | select(.within)] | length) of \(length) within 5 % of the sum and 10 % of the time, "
        + "\([.[] | select(.printed_within)] | length) by the printed time"),
    ([.[] | select(.fast)] | "faster answers: \([.[] | select(.within)] | length) of \(length) within 25 %, "
        + "\([.[] | select(.printed_within)] | length) by the printed time; \([.[] | select((.within | not) and .cannot_tell)] | length) that were not "
        + "say that they cannot tell")
    ' "$results"
exit "$failed"
