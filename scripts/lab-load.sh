# shellcheck shell=bash
# The common beginning of measurements on the lab's nginx and php-fpm: a binary, a scratch directory and the lab. All of it is removed when the caller ends, and
# the process $load too. Source it from the root of the tree, with the required programs in $tools.
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
