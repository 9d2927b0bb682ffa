#!/usr/bin/env bash
# Whether the tests of the Redis tier notice when its protocol or its scripts are broken: minutes.
#   ci/redis-mutants.sh [NAME..]
set -euo pipefail
cd "$(dirname "$0")/.."

redis/mutants.py "$@"
