#!/bin/sh
# Runs cargo as the user who owns the toolchain. Under sudo, root often has no toolchain and must not leave its own files in target/.
set -eu

for candidate in cargo "${CARGO_HOME:-${HOME:-/root}/.cargo}/bin/cargo"; do
    if command -v "$candidate" >/dev/null 2>&1; then
        exec "$candidate" "$@"
    fi
done

if [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
    home=$(getent passwd "$SUDO_USER" | cut -d: -f6)
    if [ -x "$home/.cargo/bin/cargo" ]; then
        exec sudo -u "$SUDO_USER" -H -- "$home/.cargo/bin/cargo" "$@"
    fi
fi

echo "cargo was not found: install Rust 1.95 or later, see https://rustup.rs" >&2
exit 1
