#!/bin/bash
# `chokepoint watch` on a host where everything comes and goes: 20 listeners a second, each for 50 ms, 200 short processes a second, 50 network namespaces made and deleted a minute, and a
# real nginx site with 2,000 connections: lab/watch/hostile.sh OUT [SECONDS]
# Prints the seconds that were recorded of those that passed, the missing ones, the CPU time of `watch` as a share of a core, and its memory now and at most; and each minute to OUT/minutes.
# FAULTS=1 adds what else happens in months, once in each ten minutes: a full disk, a kill, and, where the package libfaketime is installed and the program is not static, a clock that is set.
# CHURN=0 leaves out what comes and goes. Needs root, nginx, python3. CHOKEPOINT names the program.
set -euo pipefail

out=$(realpath -m "$1")
seconds=${2:-120}
program=${CHOKEPOINT:-target/debug/chokepoint}
connections=${CONNECTIONS:-2000}
mkdir -p "$out/disk"
rm -f "$out"/lines* "$out"/minutes "$out"/faults "$out"/result
cat >"$out/site.toml" <<'END_SITE'
schema = 1
name = "watch-hostile"
title = "nginx answers at once."

[[host]]
name = "client"
sysctls = { "net.ipv4.ip_local_port_range" = "10000 65535" }

[[host]]
name = "server"
sysctls = { "net.core.somaxconn" = 4096, "net.ipv4.tcp_max_syn_backlog" = 4096 }

[[link]]
a = { host = "client", addresses = ["10.79.5.1/24", "fd79:5::1/64"] }
b = { host = "server", addresses = ["10.79.5.2/24", "fd79:5::2/64"] }

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
    access_log {run}/nginx-access.log combined buffer=64k flush=1s;
    keepalive_requests 100000000;
    keepalive_timeout 10h;
    server {
        listen 80 backlog=4096;
        return 200 "hello";
    }
}
"""

[client]
host = "client"

[load]
url = "http://10.79.5.2/"
connections = 8
duration = "5s"

[expect]
verdict = "healthy"
finding = "none"
END_SITE
# Kept connections, each with a request now and then: five hundred a second in all.
cat >"$out/clients.py" <<'END_CLIENTS'
import socket, sys, time
held = []
for n in range(int(sys.argv[1])):
    one = socket.create_connection(("10.79.5.2", 80))
    held.append(one)
print("held", flush=True)
n, next_s = 0, time.monotonic()
while True:
    for one in [held[(n + k) % len(held)] for k in range(5)]:
        one.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        one.recv(4096)
    n += 5
    next_s += 0.01
    time.sleep(max(0, next_s - time.monotonic()))
END_CLIENTS
# Listeners and processes. A turn is 50 ms.
cat >"$out/churn.py" <<'END_CHURN'
import os, socket, time
n, next_s = 0, time.monotonic()
while True:
    if os.fork() == 0:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 19500 + n % 400))
        s.listen(8)
        time.sleep(0.05)
        os._exit(0)
    for _ in range(10):
        os.posix_spawn("/bin/true", ["true"], {})
    n += 1
    next_s += 0.05
    time.sleep(max(0, next_s - time.monotonic()))
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
END_CHURN
# What was recorded: each line of watch has the time at which it was printed, by a clock that nobody sets.
cat >"$out/stamp.py" <<'END_STAMP'
import sys, time
for line in sys.stdin:
    print(time.clock_gettime(time.CLOCK_MONOTONIC), line, end="", flush=True)
END_STAMP
cat >"$out/count.py" <<'END_COUNT'
import json, sys
# Lines and restarts: the time between the end of one program and the first line of the next cannot be measured.
begin, end, site = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
away = [tuple(map(float, line.split()[1:3])) for line in open(sys.argv[5]) if line.startswith("away")] if len(sys.argv) > 5 else []
told, measured = {}, set()
for line in open(sys.argv[4]):
    at, _, text = line.partition(" ")
    sample = json.loads(text)
    if sample.get("schema") != "chokepoint/sample/1" or not begin <= float(at) < end:
        continue
    second = int(float(at) - begin)
    told[second] = told.get(second, 0) + 1
    for target in sample["targets"]:
        if site in target["target"] and target["under_way"][1] > 0:
            measured.add(float(at))
lost = sum(min(b, end) - max(a, begin) for a, b in away if b > begin and a < end)
passed, lines = end - begin - lost, sum(told.values())
print(f"{lines} seconds recorded of {passed:.1f} that could be measured, {len(measured)} with the site measured; missing {max(0, round(passed) - lines)}, of the site {max(0, round(passed) - len(measured))}")
END_COUNT

pids=() watch='' faketime=''
# shellcheck disable=SC2329  # the trap calls it
clean() {
    [ -z "$watch" ] || kill "$watch" 2>/dev/null || true
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    for name in $(ip netns list | awk '/^cp-hostile-/ { print $1 }'); do ip netns del "$name" || true; done
    if mountpoint -q "$out/disk"; then umount -l "$out/disk"; fi
    "$program" lab down watch-hostile >/dev/null 2>&1 || true
}
trap clean EXIT
mountpoint -q "$out/disk" || mount -t tmpfs -o "size=${DISK:-64m},mode=0700" none "$out/disk"
"$program" lab up "$out/site.toml" >"$out/up"
ulimit -n 20000
ip netns exec cp-watch-hostile-client python3 "$out/clients.py" "$connections" >"$out/held" &
pids+=($!)
until [ -s "$out/held" ]; do sleep 0.5; done
if [ "${CHURN:-1}" = 1 ]; then
    python3 "$out/churn.py" &
    pids+=($!)
    (n=0; while :; do ip netns add "cp-hostile-$n"; ip -n "cp-hostile-$n" link set lo up; sleep 0.6; ip netns del "cp-hostile-$n"; n=$((n + 1)); sleep 0.6; done) &
    pids+=($!)
fi
if [ "${FAULTS:-0}" = 1 ]; then
    library=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
    if [ -n "$library" ] && ldd "$program" 2>/dev/null | grep -q libc.so; then faketime=$library; else echo "skipped: no clock is set without libfaketime and a dynamic program" | tee -a "$out/faults"; fi
fi
now() { awk '{ print $1 }' /proc/uptime; }
begin_watch() {
    if [ -n "$faketime" ]; then echo '+0' >"$out/clock"; fi
    # The program is a child of this shell, so that its CPU time and its end are seen.
    mkfifo "$out/pipe.$$" 2>/dev/null || true
    python3 "$out/stamp.py" <"$out/pipe.$$" >>"$out/lines" &
    pids+=($!)
    ${faketime:+env LD_PRELOAD="$faketime" FAKETIME_TIMESTAMP_FILE="$out/clock" FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1} \
        "$program" watch --json --listen "${LISTEN:-off}" --data-dir "$out/disk/data" >"$out/pipe.$$" 2>>"$out/notes" &
    watch=$!
}
ticks() { awk '{ print $14 + $15 }' "/proc/$watch/stat"; }
field() { awk -v f="$1" '$1 == f ":" { print $2 }' "/proc/$watch/status"; }
# A line of this program after so many lines.
until_more() { local from=$1; until [ -e "$out/lines" ] && [ "$(wc -l <"$out/lines")" -gt "$from" ]; do sleep 0.1; done; }

begin_watch
until_more 5
hz=$(getconf CLK_TCK)
begun=$(now) spent=0 first=$(ticks) most=0 minute=0 turn=0
while (($(awk '{ print int($1) }' /proc/uptime) - ${begun%.*} < seconds)); do
    from=$(ticks) at=$(now)
    left=$((seconds - $(awk '{ print int($1) }' /proc/uptime) + ${begun%.*}))
    sleep $((left < 60 ? left : 60))
    minute=$((minute + 1))
    kb=$(field VmRSS) peak=$(field VmHWM)
    most=$((peak > most ? peak : most))
    awk -v n="$minute" -v t="$(($(ticks) - from))" -v hz="$hz" -v a="$at" -v b="$(now)" -v kb="$kb" -v peak="$peak" \
        'BEGIN { printf "minute %d: %.2f %% of a core, %.1f MB, at most %.1f MB\n", n, 100 * t / hz / (b - a), kb / 1024, peak / 1024 }' | tee -a "$out/minutes"
    if [ "${FAULTS:-0}" = 1 ]; then
        turn=$((turn + 1))
        case $((turn % 10)) in
        2) echo "full disk at $(now)" | tee -a "$out/faults"; cat /dev/zero >"$out/disk/filler" 2>/dev/null || true ;;
        3) rm -f "$out/disk/filler"; echo "room again at $(now)" | tee -a "$out/faults" ;;
        5) if [ -n "$faketime" ]; then echo '+3600' >"$out/clock"; echo "clock an hour later at $(now)" | tee -a "$out/faults"; fi ;;
        6) if [ -n "$faketime" ]; then echo '-1800' >"$out/clock"; echo "clock one and a half hours back at $(now)" | tee -a "$out/faults"; fi ;;
        7) if [ -n "$faketime" ]; then echo '+0' >"$out/clock"; echo "clock right at $(now)" | tee -a "$out/faults"; fi ;;
        8)  spent=$((spent + $(ticks) - first))
            killed=$(now) lines=$(wc -l <"$out/lines")
            kill -KILL "$watch"
            wait "$watch" 2>/dev/null || true
            begin_watch
            first=$(ticks)
            until_more "$lines"
            echo "away $killed $(now) : killed and started again" | tee -a "$out/faults" ;;
        esac
    fi
done
ended=$(now)
spent=$((spent + $(ticks) - first))
echo >>"$out/faults"
{
    python3 "$out/count.py" "$begun" "$ended" watch-hostile "$out/lines" "$out/faults"
    awk -v t="$spent" -v hz="$hz" -v a="$begun" -v b="$ended" -v kb="$(field VmRSS)" -v most="$most" \
        'BEGIN { printf "%.0f s: %.2f %% of a core, %.1f MB now, at most %.1f MB (VmHWM)\n", b - a, 100 * t / hz / (b - a), kb / 1024, most / 1024 }'
    grep -c chokepoint/incident/1 "$out/lines" | sed 's/$/ lines about incidents/' || true
} | tee "$out/result"
before=$(now)
kill -TERM "$watch"
wait "$watch" 2>/dev/null || true
watch=''
awk -v a="$before" -v b="$(now)" 'BEGIN { printf "ended %.2f s after SIGTERM\n", b - a }' | tee -a "$out/result"
