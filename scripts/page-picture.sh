#!/bin/sh
# Makes the picture of the report as a page in docs/report.md from the stored page of the tests. Needs chromium; without it the picture stays as it is.
set -eu
cd "$(dirname "$0")/.."
if ! command -v chromium >/dev/null 2>&1; then
    echo "skipped: chromium is not installed, docs/pictures/report-html.png stays as it is" >&2
    exit 0
fi
built=crates/dashboard/page
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    printf '<!doctype html><html lang="en"><meta charset="utf-8"><style>'
    gunzip -c "$built/page.css.gz"
    printf '</style><body><div id="page"></div><script type="application/json" id="report">'
    cat crates/cli/tests/data/page/collapse.json
    printf '</script><script type="module">'
    gunzip -c "$built/page.js.gz"
    printf '</script></html>\n'
} >"$work/page.html"
chromium --headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars --user-data-dir="$work/profile" \
    --screenshot=docs/pictures/report-html.png --window-size=1000,1250 --virtual-time-budget=2000 "$work/page.html" 2>"$work/log" || {
    cat "$work/log" >&2
    exit 1
}
