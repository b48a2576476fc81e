#!/bin/bash
# Judges recordings with two builds of chokepoint and prints each recording with a difference: verdict, limit, or causes in their order.
# Usage: scripts/disagree.sh OLD NEW [RECORDING...]; by default all recordings below tests/ and crates/. The exit status is 1 if there is a
# difference.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
command -v jq >/dev/null || { echo "jq(1) is needed" >&2; exit 2; }
old=$1 new=$2
shift 2
[ $# -gt 0 ] || mapfile -t files < <(git ls-files '*.rec')
[ $# -eq 0 ] || files=("$@")
judged() {
    # The status is 1 for an unknown verdict.
    { "$1" diagnose --json --replay "$2" || [ $? -eq 1 ]; } |
        jq -r '[.verdict, (.limited_by // "-"), ([.findings[] | select(.role == "cause") | .id + " of " + .tier] | join(", "))] | join("; ")'
}
disagreements=0
for file in "${files[@]}"; do
    before=$(judged "$old" "$file") after=$(judged "$new" "$file")
    if [ "$before" != "$after" ]; then
        disagreements=$((disagreements + 1))
        printf '%s\n  old  %s\n  new  %s\n' "$file" "$before" "$after"
    fi
done
echo "${#files[@]} recordings, $disagreements disagreements"
[ "$disagreements" -eq 0 ]
