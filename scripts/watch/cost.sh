#!/bin/bash
# What `chokepoint watch` costs beside an nginx that logs RATE requests a second on SOCKETS open connections: scripts/watch/cost.sh OUT [SECONDS]
# Prints its CPU time as a share of a core and its memory, each minute and in all. CHOKEPOINT names the program. Needs root, nginx, python3, curl and jq.
# An hour (3600) is the soak: the memory of the last half hour against that after ten minutes.
set -euo pipefail

out=$(realpath -m "$1")
seconds=${2:-180}
program=${CHOKEPOINT:-target/debug/chokepoint}
rate=${RATE:-10000}
sockets=${SOCKETS:-10000}
mkdir -p "$out"
cat >"$out/site.toml" <<'END'
schema = 1
name = "watch-cost"
title = "nginx logs every request and answers at once."

[[host]]
name = "client"
sysctls = { "net.ipv4.ip_local_port_range" = "10000 65535" }

[[host]]
name = "server"
sysctls = { "net.core.somaxconn" = 16384, "net.ipv4.tcp_max_syn_backlog" = 16384 }

[[link]]
a = { host = "client", addresses = ["10.79.2.1/24", "fd79:2::1/64"] }
b = { host = "server", addresses = ["10.79.2.2/24", "fd79:2::2/64"] }

[[server]]
name = "nginx"
host = "server"
kind = "nginx"
nofile = 20000
config = """
user {user};
worker_processes 1;
worker_rlimit_nofile 20000;
error_log {run}/nginx-error.log warn;
events { worker_connections 16384; }
http {
    {nginx_temp_paths}
    log_format main_ext '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for" '
        '"$host" sn="$server_name" rt=$request_time ua="$upstream_addr" us="$upstream_status" ut="$upstream_response_time" ul="$upstream_response_length" cs=$upstream_cache_status';
    access_log {run}/nginx-access.log main_ext buffer=64k flush=1s;
    keepalive_requests 1000000;
    keepalive_timeout 1h;
    server {
        listen 80 backlog=16384;
        return 200 "hello";
    }
}
"""

[client]
host = "client"

[load]
url = "http://10.79.2.2/"
connections = 8
duration = "5s"

[expect]
verdict = "healthy"
finding = "none"
END
# shellcheck disable=SC2329  # the trap calls it
clean() {
    [ -z "${watch-}" ] || kill "$watch" 2>/dev/null || true
    [ -z "${load-}" ] || kill "$load" 2>/dev/null || true
    [ -z "${hold-}" ] || kill "$hold" 2>/dev/null || true
    wait 2>/dev/null || true
    "$program" lab down watch-cost >/dev/null 2>&1 || true
}
trap clean EXIT
"$program" lab up "$out/site.toml" >"$out/up"
ulimit -n 20000
nice -n "${LOAD_NICE:-0}" "$program" bench --no-keep --json --client-netns cp-watch-cost-client -y -q "$rate" -c 200 -t 5s -z "$((seconds + 60))s" http://10.79.2.2/ \
    >"$out/load.json" 2>"$out/load.notes" &
load=$!
# The load uses only as many connections as it needs; the others are kept, each after one request.
cat >"$out/hold.py" <<'END'
import socket, sys, time
held = []
for n in range(int(sys.argv[1])):
    one = socket.create_connection(("10.79.2.2", 80))
    one.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    one.recv(4096)
    held.append(one)
print("held", flush=True)
time.sleep(86400)
END
ip netns exec cp-watch-cost-client python3 "$out/hold.py" "$sockets" >"$out/held" &
hold=$!
until [ -s "$out/held" ]; do sleep 0.5; done
sleep 5
"$program" watch --headless --server-netns cp-watch-cost-server --listen 127.0.0.1:18898 --data-dir "$out/data" http://10.79.2.2/ 2>"$out/notes" &
watch=$!
log=/run/chokepoint/lab/watch-cost/run/nginx-access.log
ticks() { awk '{ print $14 + $15 }' "/proc/$watch/stat"; }
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$watch/status"; }
logged() { wc -l <"$log"; }
sleep 20
hz=$(getconf CLK_TCK)
first=$(ticks) begun=$(date +%s) lines=$(logged) most=0
for ((minute = 1; $(date +%s) - begun < seconds; minute++)); do
    from=$(ticks) at=$(date +%s.%N)
    left=$((seconds - $(date +%s) + begun))
    sleep $((left < 60 ? left : 60))
    kb=$(memory)
    most=$((kb > most ? kb : most))
    awk -v n="$minute" -v t="$(($(ticks) - from))" -v hz="$hz" -v a="$at" -v b="$(date +%s.%N)" -v kb="$kb" \
        'BEGIN { printf "minute %d: %.2f %% of a core, %.1f MB\n", n, 100 * t / hz / (b - a), kb / 1024 }' | tee -a "$out/minutes"
    # The log would fill the disk in an hour.
    if [ "$(stat -c %s "$log")" -gt 2000000000 ]; then lines=$((lines - $(logged))); : >"$log"; fi
done
spent=$(($(date +%s) - begun))
sockets_seen=$(ip netns exec cp-watch-cost-server ss -Htn state established | wc -l)
awk -v t="$(($(ticks) - first))" -v hz="$hz" -v s="$spent" -v l="$(($(logged) - lines))" -v c="$sockets_seen" -v kb="$most" \
    'BEGIN { printf "%d s: %.0f requests/s logged, %d connections: %.2f %% of a core, at most %.1f MB\n", s, l / s, c, 100 * t / hz / s, kb / 1024 }' | tee "$out/result"
curl -s 'http://127.0.0.1:18898/api/v1/sum?ago_s=60' | jq -c '.samples[0].targets[] | {target, under_way, rate, logged: .logged.status, response}' | tee -a "$out/result"
