#!/bin/sh
# Runs a command and prints a line every 25 s while it runs: with-progress.sh WHAT COMMAND [ARGUMENT]...
set -eu

what=$1
shift
begin=$(date +%s)
"$@" &
command=$!
trap 'kill "$command" 2>/dev/null' INT TERM HUP

(
    elapsed_s=0
    while sleep 25 >/dev/null 2>&1; do
        elapsed_s=$(($(date +%s) - begin))
        printf '%3d min %02d s  %s\n' $((elapsed_s / 60)) $((elapsed_s % 60)) "$what"
    done
) &
progress=$!

status=0
wait "$command" || status=$?
kill "$progress" 2>/dev/null || true
exit "$status"
