# shellcheck shell=bash
# What measurements on the lab's nginx and php-fpm begin with: a binary, a scratch directory, the lab, and that all of it goes with the caller, a load
# that runs as $load too. Sourced from the top of the tree, with the programs that are needed in $tools.
binary=${BINARY:-${CARGO_TARGET_DIR:-target}/release/chokepoint}
for tool in ${tools:?the programs that are needed} "$binary"; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not here" >&2; exit 2; }
done
scratch=$(mktemp -d "${TMPDIR:-/tmp}/chokepoint-load.XXXXXXXX")
load=
clean() {
    [ -z "$load" ] || kill "$load" 2>/dev/null || true
    "$binary" lab down healthy-php >/dev/null 2>&1 || true
    rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT TERM

"$binary" lab up healthy-php >/dev/null
