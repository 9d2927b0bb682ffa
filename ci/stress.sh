#!/usr/bin/env bash
# Real threads on the core for so many seconds in all (10): every admission is recorded, and every window of the recorded
# times and every refusal is checked afterwards. The same tests as in ci/unit.sh, each in rounds that follow one another.
#   ci/stress.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
stress() {
    cargo test --quiet --profile stress -p tollgate --test contract -- threads:: one_word:: sharded::threads layers::threads live:: soak "$@"
}
tests=$(stress --list | grep -c ': test$')
[ "$tests" -ge 16 ] || { echo "stress: only $tests tests were found"; exit 1; }
export TOLLGATE_STRESS_MS=$((seconds * 1000 / tests))
echo "stress: $tests tests, $TOLLGATE_STRESS_MS ms each"
stress --nocapture --test-threads 1
