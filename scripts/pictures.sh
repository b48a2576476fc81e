#!/bin/sh
# Makes the pictures of docs/report.md from the stored pages of the tests: the terminal report on light and dark, and the HTML report. Needs chromium.
set -eu
cd "$(dirname "$0")/.."
pages=crates/cli/tests/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shot PAGE PICTURE WIDTH,HEIGHT
shot() {
    chromium --headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars \
        --user-data-dir="$work/profile" --screenshot="$2" --window-size="$3" "$1" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}

# Parameters of Select Graphic Rendition become classes.
escape=$(printf '\033')
terminal() {
    echo "<!doctype html><meta charset=utf-8><style>body{margin:0;background:$2;color:$3}pre{margin:14px;font:14px/19px 'DejaVu Sans Mono',monospace}"
    echo ".s1{font-weight:bold}.s2{color:$4}.s31{color:$5}.s1-31{color:$5;font-weight:bold}.s33{color:$6}.s1-33{color:$6;font-weight:bold}.s1-32{color:$7;font-weight:bold}</style><pre>"
    sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' -e "s/$escape\[0m/<\/span>/g" -e "s/$escape\[1;\([0-9]*\)m/<span class=s1-\1>/g" \
        -e "s/$escape\[\([0-9]*\)m/<span class=s\1>/g" "$1"
    echo "</pre>"
}

report=$pages/text/collapse/brief-color.txt
height=$(($(wc -l <"$report") * 19 + 32))
terminal "$report" '#ffffff' '#1c1c1c' '#6a6a6a' '#b3261e' '#8a5300' '#1a6b3b' >"$work/light.html"
terminal "$report" '#16181d' '#e4e4e4' '#9a9a9a' '#ff7b72' '#e3b341' '#56d364' >"$work/dark.html"
shot "$work/light.html" docs/pictures/report-light.png "708,$height"
shot "$work/dark.html" docs/pictures/report-dark.png "708,$height"
# The stored page has neither the style sheet nor a policy that allows it.
awk 'FNR == NR { css = css $0 "\n"; next } /Content-Security-Policy/ { next } sub(/<style>.*<\/style>/, "") { print "<style>" css "</style>" } { print }' \
    crates/cli/templates/report.css "$pages/html/collapse.html" >"$work/page.html"
shot "$work/page.html" docs/pictures/report-html.png 1000,1250
