#!/bin/sh
# Random schedules of the core's real code, under shuttle: the models' scenarios and generated ones, too long for all of
# their schedules, with words sequentially consistent and calls in the order of real time.
#   ci/deep.sh [SEED] [RUNS] [NAME..]   RUNS schedules for each model and each limiter (300); seed 1 if
#                                       none is given, so that the gate repeats itself; names select as in ci/loom.sh
set -eu
cd "$(dirname "$0")/.."
seed=${1:-1}
runs=${2:-300}
shift $(($# < 2 ? $# : 2))
# A folder of its own: another RUSTFLAGS would rebuild everything each time.
: "${DEEP_TARGET_DIR:=${CARGO_TARGET_DIR:-target}/deep}"
export CARGO_TARGET_DIR="$DEEP_TARGET_DIR"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg tollgate_loom --cfg tollgate_shuttle"
cargo test --quiet --profile model -p tollgate-check --test random
echo "deep: seed $seed, $runs schedules a row"
exec cargo run --quiet --profile model -p tollgate-models -- deep --seed "$seed" --runs "$runs" "$@"
