#!/bin/sh
# Runs the presets of `chokepoint experiment` and writes their pages into docs/experiments: the result, the command, and the plots.
# Usage: scripts/experiment/presets.sh [PRESET ...]     CHOKEPOINT names the program. It needs root, and a machine that does nothing else.
set -eu
program=${CHOKEPOINT:-target/release/chokepoint}
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- same allocator keepalive workers workers-waiting cores fastcgi nginx-io pacing sysctl
for preset; do
    case $preset in
    sysctl) arguments="sysctl net.ipv4.tcp_tw_reuse=0,1" ;;
    *) arguments=$preset ;;
    esac
    dir=docs/experiments/$preset
    rm -rf "$dir"
    mkdir -p "$dir"
    # shellcheck disable=SC2086
    $program experiment --preset $arguments --no-keep --markdown "$dir/README.md" --plots "$dir" >/dev/null
    # Flame graphs are pages with a script, which no document shows.
    rm -f "$dir"/flame-*.html
    {
        printf '\n    chokepoint experiment --preset %s\n' "$arguments"
        for plot in "$dir"/matrix.svg "$dir"/intervals.svg "$dir"/response-times*.svg "$dir"/trials.svg "$dir"/where.svg; do
            [ ! -e "$plot" ] || printf '\n![%s](%s)\n' "$(basename "$plot" .svg)" "$(basename "$plot")"
        done
    } >>"$dir/README.md"
done
