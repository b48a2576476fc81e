#!/bin/sh
# Checks licences, sources, duplicates and advisories of all dependencies. Installs cargo-deny below target/ where there is none.
set -eu

cd "$(dirname "$0")/.."
cargo=scripts/cargo.sh
# Seconds for the advisory database, a git repository on the network.
fetch_s=60

if command -v cargo-deny >/dev/null 2>&1; then
    deny="cargo-deny"
else
    deny=target/tools/bin/cargo-deny
    if [ ! -x "$deny" ]; then
        echo "installing cargo-deny below target/tools (a few minutes, once)" >&2
        "$cargo" install cargo-deny --locked --quiet --root target/tools
    fi
fi

"$deny" --log-level warn check --hide-inclusion-graph licenses bans sources

if timeout "$fetch_s" "$deny" --log-level error fetch db >/dev/null 2>&1; then
    "$deny" --log-level warn check --disable-fetch advisories
else
    echo "skipped: advisory database not reachable"
fi
