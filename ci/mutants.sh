#!/bin/sh
# Breaks the core in one place at a time, and weakens every memory order, and expects the models to notice.
#   ci/mutants.sh              both, and some mutants by random schedules
#   ci/mutants.sh --deep       these alone
#   ci/mutants.sh NAME..       the mutants whose names contain one of these
set -eu
cd "$(dirname "$0")/.."
python3 loom-tests/mutants.py "$@"
[ $# -eq 0 ] || exit 0
python3 loom-tests/mutants.py --deep
: "${LOOM_TARGET_DIR:=${CARGO_TARGET_DIR:-target}/loom}"
export CARGO_TARGET_DIR="$LOOM_TARGET_DIR"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg tollgate_loom"
exec cargo run --quiet --profile model -p tollgate-models -- orders
