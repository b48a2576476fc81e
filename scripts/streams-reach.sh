#!/bin/sh
# Measures the time and memory of `chokepoint streams` for captures of 60,119 and 5 million connections, both from the generator.
# Usage: scripts/streams-reach.sh [DIRECTORY]     (0.5 GB there; build before:
#   cargo build --release -p chokepoint -p chokepoint-packets --examples --bin chokepoint)
set -eu
target=${CARGO_TARGET_DIR:-target}/release
file=${1:-${TMPDIR:-/tmp}}/chokepoint-reach-$$.pcap
trap 'rm -f "$file"' EXIT
"$target/examples/generate" 60119 1 7000 >"$file"
stat -c %s "$file" | awk '{ print $1 / 1e6 " MB" }'
cat "$file" >/dev/null
for _ in 1 2 3 4 5 6 7; do
    "$target/examples/measure" "$file"
done
rm -f "$file"
echo "5 million connections, as they are made:"
CONNECTIONS=5000000 cargo test --quiet --release -p chokepoint-packets --test it bounded:: -- --nocapture
