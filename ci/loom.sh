#!/bin/sh
# Runs the model checks: the harness's own tests, its examples against their golden reports, and the models.
#   ci/loom.sh                  everything
#   ci/loom.sh -p NAME ARGS     one package
set -eu
cd "$(dirname "$0")/.."
# A folder of its own: another RUSTFLAGS would rebuild everything each time.
: "${LOOM_TARGET_DIR:=${CARGO_TARGET_DIR:-target}/loom}"
export CARGO_TARGET_DIR="$LOOM_TARGET_DIR"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg tollgate_loom"
[ $# -gt 0 ] || set -- -p tollgate-check
exec cargo test --profile model "$@"
