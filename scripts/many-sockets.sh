#!/bin/sh
# Compares `chokepoint tcp --live` with `ss -tin` at 60,000 sockets: eleven pairs in turn, in a network namespace that is removed afterwards.
# Asks for root. Build first: cargo build --release -p chokepoint -p chokepoint-sources --example many_sockets --bin chokepoint
set -eu
target=${CARGO_TARGET_DIR:-target}/release
netns=many-sockets-$$
ip netns add "$netns"
trap 'ip netns del "$netns"' EXIT
ip -n "$netns" link set lo up
ip netns exec "$netns" "$target/examples/many_sockets" "${CONNECTIONS:-30000}" "${ROUNDS:-11}" -- "$target/chokepoint" tcp --live --json -- ss -tin
