#!/bin/bash
# The page of `chokepoint watch`, whose source is in ui/: ui/page.sh packages|build
#   packages  installs what its build and its tests need, below ui/node_modules
#   build     builds it into crates/dashboard/page, where the program takes it from; what is there is checked in, so that cargo alone builds the program
set -euo pipefail

cd "$(dirname "$0")"
packages() {
    # Unchanged since the last installation.
    if [ -e node_modules/.installed ] && [ ! package-lock.json -nt node_modules/.installed ]; then return; fi
    command -v npm >/dev/null || { echo "npm is missing" >&2; return 1; }
    npm ci --no-audit --no-fund --loglevel error
    touch node_modules/.installed
}
case ${1-} in
packages) packages ;;
build)
    packages
    npm run --silent build
    ;;
*)
    sed -n 's/^# \?//p' "$0" | sed -n '2,4p' >&2
    exit 2
    ;;
esac
