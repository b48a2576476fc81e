#!/bin/bash
# Ends `diagnose --fix` by SIGKILL or SIGHUP at random moments and checks that `undo` restores the previous state: the configuration files of both servers byte
# for byte, the sysctls, the CPU quota and the active limits of the accept queues. Needs root; works in its own network namespaces and state directory.
#
#   scripts/kill-fix.sh [ROUNDS [LANES]]     200 rounds in 3 labs side by side, by default
#
# Prints a line for each round, "ok" or the difference, and at the end the number of rounds without a difference. The exit status is 0 if all are.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
rounds=${1:-200}
lanes=${2:-3}
chokepoint=${CHOKEPOINT:-${CARGO_TARGET_DIR:-target}/release/chokepoint}
work=$(mktemp -d "${TMPDIR:-/tmp}/chokepoint-kill.XXXXXXXX")

if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: network namespaces take root" >&2
    exit 1
fi
if [ ! -x "$chokepoint" ]; then
    echo "build it first: cargo build --release (or set CHOKEPOINT to the binary)" >&2
    exit 1
fi

# The state that must not differ: the files, the sysctls, the quota, and the active limits of the listeners.
state() { # NAME
    local run=/run/chokepoint/lab/$1/run
    sha256sum "$run/nginx.conf" "$run/php-fpm.conf" | cut -d' ' -f1
    stat -c '%U %G %a' "$run/nginx.conf" "$run/php-fpm.conf"
    find "$run" -maxdepth 1 -name '.*' -type f
    ip netns exec "cp-$1-server" sysctl -n net.core.somaxconn net.ipv4.ip_local_port_range net.ipv4.tcp_tw_reuse net.ipv4.tcp_max_syn_backlog
    ip netns exec "cp-$1-server" ss -Hltn | awk '{ print $4, $3 }' | sort
    cat "/sys/fs/cgroup/cpu/cp-$1-php/cpu.cfs_quota_us" 2>/dev/null || cat "/sys/fs/cgroup/cp-$1-php/cpu.max"
}

fix() { # NAME
    exec "$chokepoint" diagnose --fix --yes -c 200 -z 1s -t 1s --client-netns "cp-$1-client" --server-netns "cp-$1-server" http://10.78.0.2/
}

# One lab, in which every LANES-th round runs.
lane() { # NUMBER
    local name=kill-fix-$1 own=$work/$1 before after pid signal status pending n whole_ms delay_ms begin said
    export CHOKEPOINT_STATE_DIR=$own/state
    mkdir -p "$own"
    sed "s/^name = \"kill-fix\"/name = \"$name\"/" scripts/kill-fix.toml >"$own/stack.toml"
    if ! "$chokepoint" lab up "$own/stack.toml" >"$own/up" 2>&1; then
        echo "lane $1: the lab did not come up: $(tail -n 1 "$own/up")"
        return
    fi
    before=$(state "$name")
    # The time of a whole run, from which the moments are drawn.
    begin=$(date +%s%3N)
    (fix "$name") >"$own/whole" 2>&1
    whole_ms=$(($(date +%s%3N) - begin))
    "$chokepoint" undo >"$own/undo" 2>&1
    [ "$(state "$name")" = "$before" ] || echo "lane $1: a whole run was not undone: $(tail -n 1 "$own/undo")"
    n=$1
    while ((n <= rounds)); do
        signal=$([ $((n % 2)) -eq 0 ] && echo KILL || echo HUP)
        delay_ms=$(((RANDOM * 32768 + RANDOM) % whole_ms))
        (fix "$name") >"$own/fix" 2>"$own/fix-notes" &
        pid=$!
        sleep "$(printf '%d.%03d' $((delay_ms / 1000)) $((delay_ms % 1000)))"
        kill -s "$signal" "$pid" 2>/dev/null || signal=ended
        wait "$pid" 2>/dev/null
        status=$?
        if [ "$signal" = ended ]; then
            # This run ended before the drawn moment, so --fix was not interrupted: the round does not count.
            whole_ms=$delay_ms
            "$chokepoint" undo >"$own/undo" 2>&1
            [ "$(state "$name")" = "$before" ] || echo "round $n: DIFFERS after a run that ended: $(tail -n 1 "$own/undo")"
            continue
        fi
        pending=$("$chokepoint" undo --list --json 2>/dev/null | grep -c '"was"')
        "$chokepoint" undo >"$own/undo" 2>&1
        after=$(state "$name")
        said=$("$chokepoint" undo 2>&1)
        if [ "$after" = "$before" ] && [ "$said" = "nothing is applied" ]; then
            echo "round $n: ok ($signal after $delay_ms ms of $whole_ms, exit status $status, $pending changes were in force)"
        else
            echo "round $n: DIFFERS ($signal after $delay_ms ms, exit status $status): undo said: $(tr '\n' ';' <"$own/undo")$said"
            diff <(echo "$before") <(echo "$after")
            # The next round needs a complete stack.
            "$chokepoint" lab down "$name" >/dev/null 2>&1
            rm -rf "$CHOKEPOINT_STATE_DIR"
            "$chokepoint" lab up "$own/stack.toml" >"$own/up" 2>&1
            before=$(state "$name")
        fi
        n=$((n + lanes))
    done
    "$chokepoint" lab down "$name" >/dev/null 2>&1
}

# The labs are taken down however this script ends.
clean() {
    trap - EXIT
    trap '' INT TERM HUP
    local pids lane_number
    pids=$(jobs -p)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2>/dev/null
    wait 2>/dev/null
    for ((lane_number = 1; lane_number <= lanes; lane_number++)); do
        CHOKEPOINT_STATE_DIR=$work/$lane_number/state "$chokepoint" lab down "kill-fix-$lane_number" >/dev/null 2>&1
    done
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

for ((number = 1; number <= lanes; number++)); do
    lane "$number" | tee "$work/lane-$number" &
done
wait

ok=$(cat "$work"/lane-* | grep -c ': ok (')
busy=$(cat "$work"/lane-* | grep ': ok (' | grep -vc ' 0 changes were in force')
killed=$(cat "$work"/lane-* | grep -c ': ok (KILL')
hung=$(cat "$work"/lane-* | grep -c ': ok (HUP')
echo
echo "$ok of $rounds undone to the byte: $killed after SIGKILL, $hung after SIGHUP; $busy with changes in force when it ended"
[ "$ok" -eq "$rounds" ]
