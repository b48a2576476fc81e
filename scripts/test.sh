#!/bin/bash
# All checks and all tests, in the order of their cost. Ends with the time that it took and with every test that had to be skipped.
set -euo pipefail

cd "$(dirname "$0")/.."
cargo=scripts/cargo.sh
log=$(mktemp "${TMPDIR:-/tmp}/chokepoint-test.XXXXXXXX")
trap 'rm -f "$log"' EXIT

step() {
    printf '\n== %s\n' "$*"
    "$@" 2>&1 | tee -a "$log"
}

step "$cargo" fmt --all --check
step "$cargo" clippy --workspace --all-targets --features chokepoint/bpf --quiet -- -D warnings
# Without BPF and so without clang, as a plain `cargo build` has it.
step "$cargo" clippy --package chokepoint --package chokepoint-profile --all-targets --quiet -- -D warnings
step scripts/deny.sh
step "$cargo" xtask tidy
step "$cargo" xtask docs --check
if command -v shellcheck >/dev/null 2>&1; then
    step shellcheck scripts/*.sh .ci/run
else
    echo "skipped: shellcheck is not installed" | tee -a "$log"
fi
# Tests that a host cannot run print "skipped: why" and pass; --show-output brings those lines to light.
step "$cargo" test --workspace --features chokepoint/bpf --quiet -- --show-output

printf '\n== done in %d min %02d s\n' $((SECONDS / 60)) $((SECONDS % 60))
skipped=$(grep '^skipped: ' "$log" | sort | uniq -c | sed 's/^ *\([0-9]*\) skipped: /  \1 x /' || true)
if [ -n "$skipped" ]; then
    echo "skipped:"
    echo "$skipped"
else
    echo "nothing was skipped"
fi
