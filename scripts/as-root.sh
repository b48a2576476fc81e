#!/bin/sh
# Runs a command as root: directly for root, otherwise with sudo.
set -eu

if [ "$(id -u)" -eq 0 ]; then
    exec "$@"
fi
if ! command -v sudo >/dev/null 2>&1; then
    echo "this needs root and there is no sudo; run as root: $*" >&2
    exit 1
fi
echo "needs root: sudo $*" >&2
exec sudo -- "$@"
