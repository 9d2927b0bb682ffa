#!/bin/sh
# Breaks the core in one place at a time and expects the models to notice. The weakened memory orders are in ci/loom.sh.
#   ci/mutants.sh              a third of the mutants, another one with each commit; real atomics behind the door always
#   ci/mutants.sh all          all, and some by random schedules
#   ci/mutants.sh --deep       these alone
#   ci/mutants.sh --record ..  any of these, and README.md's table is brought up to date
#   ci/mutants.sh --lines      deletes every statement that admits, one at a time
#   ci/mutants.sh NAME..       the mutants whose names contain one of these
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
    "")
        commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
        exec python3 loom-tests/mutants.py --third $((commits % 3))
        ;;
    all)
        shift
        exec python3 loom-tests/mutants.py "$@"
        ;;
    *) exec python3 loom-tests/mutants.py "$@" ;;
esac
