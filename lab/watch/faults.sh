#!/bin/bash
# Breaks a healthy site under a steady load while `chokepoint watch` runs, in one way after the other, and tells after how many seconds each incident came and which
# cause it names: lab/watch/faults.sh OUT [FAULT ...]
# Needs root. CHOKEPOINT names the program. Each fault takes about a minute and a half and has a site of its own.
set -euo pipefail

out=$1
shift
program=${CHOKEPOINT:-target/debug/chokepoint}
here=$(dirname "$0")
rate=${RATE:-150}
calm_s=${CALM:-45}
url=http://10.79.1.2/
run=/run/chokepoint/lab/watch-site/run
server="ip netns exec cp-watch-site-server"
mkdir -p "$out"

# What each fault is, and the finding that names its cause. Where two names are true, either is right.
declare -A right=(
    [slow-pages]=worker-pool-exhausted
    [backend-hangs]=workers-blocked-on-upstream
    [few-workers]="worker-pool-exhausted"
    [quota]=cgroup-cpu-throttled
    [conntrack]=conntrack-table-full
    [shaper]="egress-shaped link"
    [rate-limit]=rate-limited-by-config
    [worker-connections]=worker-connections-exhausted
    [files]=file-descriptors-exhausted
    [ports]=ephemeral-ports-exhausted
    [loss]=packets-filtered
    [hog]=cpu
)
all="slow-pages backend-hangs few-workers quota conntrack shaper rate-limit worker-connections files ports loss hog"

# The master of a server by its configuration file.
master() { pgrep -f "(nginx|php-fpm).*$run/$1[./]" | sort -n | head -n 1; }
reload() { sed -i "$2" "$(config "$1")"; kill -s "$3" "$(master "$1")"; }
config() { find "$run" -maxdepth 2 -name "$1*.conf" | head -n 1; }

inject() {
    case $1 in
    slow-pages) echo 250 >"$run/www/wait" ;;
    backend-hangs) pgrep -P "$(master backend)" | xargs kill -s STOP ;;
    few-workers) reload php-fpm 's/max_children = 20/max_children = 1/' USR2 ;;
    quota) quota_file=$(find /sys/fs/cgroup -path '*cp-watch-site-php*' -name cpu.cfs_quota_us -o -path '*cp-watch-site-php*' -name cpu.max | head -n 1)
        case $quota_file in *cpu.max) echo "4000 100000" ;; *) echo 4000 ;; esac >"$quota_file" ;;
    conntrack) sysctl -qw net.netfilter.nf_conntrack_max=500 ;;
    shaper) $server tc qdisc replace dev eth0 root tbf rate 2mbit burst 32k latency 50ms ;;
    rate-limit) reload nginx 's/rate=1000r/rate=50r/; s/burst=1000/burst=5/' HUP ;;
    # About two requests are in flight, each with a connection to the client and one to php-fpm.
    worker-connections) reload nginx 's/worker_connections 1024/worker_connections 5/' HUP ;;
    files) for pid in $(pgrep -P "$(master nginx)"); do
        open=$(find "/proc/$pid/fd" -mindepth 1 | wc -l)
        # Another user's process may be limited by that user.
        setpriv --reuid=www-data --regid=www-data --clear-groups prlimit --pid "$pid" --nofile=$((open - 2)):$((open - 2))
    done ;;
    ports) $server sysctl -qw net.ipv4.ip_local_port_range="40000 40004" ;;
    hog) for _ in 1 2 3 4 5 6; do (exec -a hog sh -c 'while :; do :; done') & hogs+=($!); done ;;
    loss) $server nft insert rule inet filter input tcp dport 80 numgen random mod 100 '<' 10 drop ;;
    esac
}

conntrack_max=$(sysctl -n net.netfilter.nf_conntrack_max 2>/dev/null || echo '')
# shellcheck disable=SC2329  # the trap calls it
clean() {
    [ -z "${watch-}" ] || kill "$watch" 2>/dev/null || true
    [ -z "${load-}" ] || kill "$load" 2>/dev/null || true
    [ -z "${hogs[*]-}" ] || kill "${hogs[@]}" 2>/dev/null || true
    hogs=()
    [ -z "$conntrack_max" ] || sysctl -qw "net.netfilter.nf_conntrack_max=$conntrack_max"
    pkill -CONT -f "$run/" || true
    "$program" lab down watch-site >/dev/null 2>&1 || true
}
trap clean EXIT

now_ms() { date +%s%3N; }

# fault NAME: prints its row.
fault() {
    local name=$1 lines=$out/$1.lines incident='' injected told=none cause=none
    "$program" lab up "$here/site.toml" >"$out/$name.up" 2>&1 || { cat "$out/$name.up" >&2; return 1; }
    "$program" bench --no-keep --json --client-netns cp-watch-site-client -y -q "$rate" -c 50 -t 2s -z 300s "$url" >"$out/$name.load" 2>&1 &
    load=$!
    "$program" watch --json --client-netns cp-watch-site-client --server-netns cp-watch-site-server --listen off --data-dir "$out/$name.data" "$url" \
        >"$lines" 2>"$out/$name.notes" &
    watch=$!
    sleep "$calm_s"
    if grep -q chokepoint/incident/1 "$lines"; then incident="before the fault"; fi
    injected=$(now_ms)
    inject "$name"
    while [ $(($(now_ms) - injected)) -lt 40000 ] && ! grep -q chokepoint/incident/1 "$lines"; do sleep 0.1; done
    if grep -q chokepoint/incident/1 "$lines"; then
        told=$(awk -v ms=$(($(now_ms) - injected)) 'BEGIN { printf "%.1f", ms / 1000 }')
        cause=$(grep -m 1 chokepoint/incident/1 "$lines" | jq -r '.cause.id // "none"')
    fi
    clean
    wait "$watch" "$load" 2>/dev/null || true
    watch='' load=''
    local verdict=wrong
    [[ " ${right[$name]} " != *" $cause "* ]] || verdict=right
    printf '| %s | %s | %s | %s %s |\n' "$name" "$told" "$cause" "$verdict" "$incident" | tee -a "$out/table"
}

: >"$out/table"
read -ra names <<<"${*:-$all}"
for name in "${names[@]}"; do
    fault "$name"
done
