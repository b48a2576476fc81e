#!/bin/bash
# All checks and all tests, in the order of their cost. Ends with every test that had to be skipped, that failed or that was unstable, and their numbers.
set -euo pipefail

cd "$(dirname "$0")/.."
cargo=scripts/cargo.sh
log=$(mktemp "${TMPDIR:-/tmp}/chokepoint-test.XXXXXXXX")
trap 'rm -f "$log"' EXIT
# Under sudo the tests may run as another user, who reads it too.
chmod 644 "$log"

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
printf '\n== checks done in %d min %02d s\n' $((SECONDS / 60)) $((SECONDS % 60))
# Tests that a host cannot run say "skipped: why" and pass; those lines are listed at the end, with those of the checks above.
printf '\n== tests\n'
"$cargo" xtask test --earlier "$log"
