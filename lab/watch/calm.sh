#!/bin/bash
# A site that is well beside `chokepoint watch`: waves of load, bursts, reloads, a new version of a page, rotated logs, half the demand; nothing is wrong, and nothing is to be told:
# lab/watch/calm.sh OUT [MINUTES]
# Prints how many incidents were told, and leaves each second in OUT/lines: the recorder's tests replay such a recording. Needs root. CHOKEPOINT names the program.
set -euo pipefail

out=$(realpath -m "$1")
minutes=${2:-12}
program=${CHOKEPOINT:-target/debug/chokepoint}
here=$(dirname "$0")
url=http://10.79.1.2/
run=/run/chokepoint/lab/watch-site/run
mkdir -p "$out"
# shellcheck disable=SC2329  # the trap calls it
clean() {
    [ -z "${watch-}" ] || kill -INT "$watch" 2>/dev/null || true
    # The loop first, then the load that it waits for.
    [ -z "${load-}" ] || { kill -STOP "$load"; pkill -INT -P "$load"; kill -KILL "$load"; } 2>/dev/null || true
    wait 2>/dev/null || true
    "$program" lab down watch-site >/dev/null 2>&1 || true
}
trap clean EXIT
master() { pgrep -f "nginx.*$run/nginx[./]" | sort -n | head -n 1; }
offer() { "$program" bench --no-keep --json --client-netns cp-watch-site-client -y -q "$1" -c 50 -t 2s -z "$2" "$url" >>"$out/load" 2>&1; }

"$program" lab up "$here/site.toml" >"$out/up" 2>&1 || { cat "$out/up" >&2; exit 1; }
# A day in six minutes: the demand rises and falls by a factor of three, and halves at once in the middle of each.
(
    while :; do
        for rate in 60 80 110 150 180 170 85 90 150 120 90 70; do
            offer "$rate" 30s
        done
    done
) &
load=$!
"$program" watch --json --client-netns cp-watch-site-client --server-netns cp-watch-site-server --listen off --data-dir "$out/data" "$url" >"$out/lines" 2>"$out/notes" &
watch=$!
until=$(($(date +%s) + 60 * minutes))
turn=0
while [ "$(date +%s)" -lt "$until" ]; do
    sleep 25
    turn=$((turn + 1))
    case $((turn % 4)) in
    0) kill -HUP "$(master)" ;;
    1) offer 200 2s ;;
    2) mv "$run/nginx-access.log" "$run/nginx-access.log.1" 2>/dev/null && kill -USR1 "$(master)" ;;
    3) sed "\$a // version $turn" "$run/www/index.php" >"$run/www/next.php" && mv "$run/www/next.php" "$run/www/index.php" ;;
    esac
done
kill -INT "$watch"
wait "$watch" || true
watch=''
printf '%s seconds, %s incidents\n' "$(grep -c '"chokepoint/sample/1"' "$out/lines")" "$(grep -c '"chokepoint/incident/1"' "$out/lines" || true)"
