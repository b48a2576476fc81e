#!/bin/sh
# Makes the picture of the HTML report in docs/report.md from the stored page of the tests. Needs chromium; without it the picture stays as it is.
set -eu
cd "$(dirname "$0")/.."
if ! command -v chromium >/dev/null 2>&1; then
    echo "skipped: chromium is not installed, docs/pictures/report-html.png stays as it is" >&2
    exit 0
fi
pages=crates/cli/tests/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The stored page has neither the style sheet nor a policy that allows it.
awk 'FNR == NR { css = css $0 "\n"; next } /Content-Security-Policy/ { next } sub(/<style>.*<\/style>/, "") { print "<style>" css "</style>" } { print }' \
    crates/cli/templates/report.css "$pages/html/collapse.html" >"$work/page.html"
chromium --headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars --user-data-dir="$work/profile" \
    --screenshot=docs/pictures/report-html.png --window-size=1000,1250 "$work/page.html" 2>"$work/log" || {
    cat "$work/log" >&2
    exit 1
}
