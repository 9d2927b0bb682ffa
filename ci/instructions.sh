#!/usr/bin/env bash
# Counts the instructions of a call of every kind under callgrind, and fails where one takes more than its budget in
# benches/instructions.txt. Counts repeat to the instruction, so this finds a slowdown that no timing could.
# `ci/instructions.sh --write` makes the budgets anew: what is measured now, and a little slack, but for a refusal of
# the log and the counter no more than the 30 that are promised.
set -euo pipefail
cd "$(dirname "$0")/.."

budgets=benches/instructions.txt
if [ "$(uname -m)" != x86_64 ]; then
    echo "instructions: the budgets are for x86_64"
    exit 0
fi
cargo build --quiet --release -p tollgate-benches --bin instructions
binary=${CARGO_TARGET_DIR:-target}/release/instructions

# The instructions of so many calls of a row; what comes before the calls is in every count.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*one_call*' "$binary" "$1" "$2" 2>&1 |
        awk '/Collected/ {print $4}'
}

calls=10000
failed=0
written=$(mktemp)
trap 'rm -f "$written"' EXIT
printf '%-36s %8s %8s\n' 'instructions of a call' measured budget
while IFS= read -r row; do
    measured=$((($(count "$row" $((2 * calls))) - $(count "$row" "$calls") + calls - 1) / calls))
    most=$((measured + 2 + measured / 50))
    case $row in
    log*', refused' | 'counter, refused') most=$((most < 30 ? most : 30)) ;;
    esac
    printf '%s: %d\n' "$row" "$most" >>"$written"
    budget=$(awk -F': ' -v row="$row" '$1 == row {print $2}' "$budgets" 2>/dev/null || true)
    verdict=
    if [ "${1:-}" != --write ] && { [ -z "$budget" ] || [ "$measured" -gt "$budget" ]; }; then
        verdict='  <- over'
        failed=1
    fi
    printf '%-36s %8d %8s%s\n' "$row" "$measured" "${budget:--}" "$verdict"
done < <("$binary")

if [ "${1:-}" = --write ]; then
    cp "$written" "$budgets"
    echo "instructions: wrote $budgets"
fi
exit "$failed"
