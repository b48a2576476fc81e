#!/bin/sh
# Checks licences, sources, duplicates and advisories of all dependencies. Installs cargo-deny below target/ if it is missing.
set -eu

cd "$(dirname "$0")/.."
cargo=scripts/cargo.sh
# Time limit for the advisory database, a git repository on the network, seconds.
fetch_s=60

if command -v cargo-deny >/dev/null 2>&1; then
    deny="cargo-deny"
else
    deny=target/tools/bin/cargo-deny
    if [ ! -x "$deny" ]; then
        echo "installing cargo-deny below target/tools (a minute or two, once)" >&2
        # It runs for a second, and optimising it would take longer than that.
        "$cargo" install cargo-deny --locked --quiet --debug --config profile.dev.debug=false --root target/tools
    fi
fi

"$deny" --log-level warn check --hide-inclusion-graph licenses bans sources

if timeout "$fetch_s" "$deny" --log-level error fetch db >/dev/null 2>&1; then
    "$deny" --log-level warn check --disable-fetch advisories
else
    echo "skipped: advisory database not reachable"
fi
