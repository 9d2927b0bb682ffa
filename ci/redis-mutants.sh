#!/usr/bin/env bash
# Whether the tests of the Redis tier notice when its protocol or its scripts are broken.
#   ci/redis-mutants.sh            a tenth of the mutants, another one with each commit
#   ci/redis-mutants.sh all        all: half an hour
#   ci/redis-mutants.sh NAME..     those whose names contain one of these
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    "") redis/mutants.py --tenth "$(git rev-list --count HEAD 2>/dev/null || echo 0)" ;;
    all) redis/mutants.py ;;
    *) redis/mutants.py "$@" ;;
esac
