#!/bin/bash
# Runs all checks and all tests. At the end it prints what was skipped, failed or unstable, the counts and the total time.
set -euo pipefail

cd "$(dirname "$0")/.."
cargo=scripts/cargo.sh
trap 'printf "the whole took %d min %02d s\n" $((SECONDS / 60)) $((SECONDS % 60))' EXIT

scripts/with-progress.sh "installing packages" scripts/packages.sh
scripts/with-progress.sh "building the runner of the tests" "$cargo" build --quiet --package xtask
"$cargo" xtask test --checks
