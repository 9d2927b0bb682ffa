#!/bin/sh
# Runs the model checks.
#   ci/loom.sh                         the harness's tests and golden reports, the models with 2 preemptions (the canaries
#                                      first), then every memory order of the core made weaker
#   ci/loom.sh all                     the same, and every mutant: both tables
#   ci/loom.sh run --bound 3 NAME..    the models whose names contain all of these; also kill, orders: see loom-tests
#   ci/loom.sh -p NAME ARGS..          cargo test of one package
set -eu
cd "$(dirname "$0")/.."
# A folder of its own: another RUSTFLAGS would rebuild everything each time.
target=${CARGO_TARGET_DIR:-target}
: "${LOOM_TARGET_DIR:=$target/loom}"
loom() {
    CARGO_TARGET_DIR="$LOOM_TARGET_DIR" RUSTFLAGS="${RUSTFLAGS:-} --cfg tollgate_loom" "$@"
}
models() {
    loom cargo run --quiet --profile model -p tollgate-models -- "$@"
}
case "${1:-}" in
    "" | all)
        loom cargo test --quiet --profile model -p tollgate-check
        models run
        models orders
        [ -z "${1:-}" ] || ci/mutants.sh all
        ;;
    -*) loom cargo test --profile model "$@" ;;
    *) models "$@" ;;
esac
