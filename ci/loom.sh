#!/bin/sh
# Runs the model checks.
#   ci/loom.sh                         the harness's tests and golden reports, then the models with 2 preemptions
#   ci/loom.sh run --bound 3 NAME..    the models whose names contain all of these; also kill, orders: see loom-tests
#   ci/loom.sh -p NAME ARGS..          cargo test of one package
set -eu
cd "$(dirname "$0")/.."
# A folder of its own: another RUSTFLAGS would rebuild everything each time.
: "${LOOM_TARGET_DIR:=${CARGO_TARGET_DIR:-target}/loom}"
export CARGO_TARGET_DIR="$LOOM_TARGET_DIR"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg tollgate_loom"
models() {
    cargo run --quiet --profile model -p tollgate-models -- "$@"
}
case "${1:-}" in
    "") cargo test --quiet --profile model -p tollgate-check && models run ;;
    -*) cargo test --profile model "$@" ;;
    *) models "$@" ;;
esac
