#!/bin/bash
# Runs all checks and all tests. At the end it prints the total time, what was skipped, failed or unstable, and the counts.
set -euo pipefail

cd "$(dirname "$0")/.."
cargo=scripts/cargo.sh
began=$(date +%s)

scripts/with-progress.sh "installing packages" scripts/packages.sh
scripts/with-progress.sh "installing packages" scripts/packages.sh chromium codespell curl fish gunicorn man node npm openssl prometheus shellcheck systemd-analyze tomcat zsh ||
    echo "what takes a program that is missing will be skipped" >&2
scripts/with-progress.sh "installing packages of the page" ui/page.sh packages || echo "the tests of the page will be skipped" >&2
scripts/with-progress.sh "building the runner of the tests" "$cargo" build --quiet --package xtask
"$cargo" xtask test --checks --began "$began"
