#!/bin/bash
# The page of `chokepoint watch` in a real browser, beside a real site that is broken after a while: lab/watch/page.sh OUT
# Pictures of the page are written to OUT. Needs root, node, chromium, and `npm ci` in ui/. CHOKEPOINT names the program.
set -euo pipefail

out=$(realpath -m "$1")
program=${CHOKEPOINT:-target/debug/chokepoint}
here=$(dirname "$0")
url=http://10.79.1.2/
calm_s=${CALM:-45}
run=/run/chokepoint/lab/watch-site/run
mkdir -p "$out"
# Runs that the page shows, and nothing of this host's.
export CHOKEPOINT_STATE_DIR=$out/state
# shellcheck disable=SC2329  # the trap calls it
clean() {
    [ -z "${watch-}" ] || kill "$watch" 2>/dev/null || true
    [ -z "${load-}" ] || kill "$load" 2>/dev/null || true
    wait 2>/dev/null || true
    "$program" lab down watch-site >/dev/null 2>&1 || true
}
trap clean EXIT
"$program" lab up "$here/site.toml" >"$out/up" 2>&1 || { cat "$out/up" >&2; exit 1; }
for label in before after; do "$program" streams --label "$label" "$here/../../crates/packets/tests/data/loss-at-receiver.pcap.gz" >"$out/streams"; done
"$program" bench --no-keep --json --client-netns cp-watch-site-client -y -q "${RATE:-70}" -c 50 -t 2s -z 300s "$url" >"$out/load" 2>&1 &
load=$!
"$program" watch --headless --client-netns cp-watch-site-client --server-netns cp-watch-site-server --listen 127.0.0.1:0 --data-dir "$out/data" "$url" 2>"$out/notes" >"$out/told" &
watch=$!
for _ in $(seq 100); do grep -q 'page is at' "$out/notes" && break; sleep 0.1; done
page=$(sed -n 's/.*page is at \([^,]*\),.*/\1/p' "$out/notes" | head -n 1)
sleep "$calm_s"
PAGE=$page SERVER=$url OUT=$out BAND='accept queue of php-fpm' STATION=worker-pool FAULT="echo 400 >$run/www/wait" REPAIR="echo 10 >$run/www/wait" node "$here/../../ui/e2e/page.mjs"
