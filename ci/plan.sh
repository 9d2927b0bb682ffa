#!/usr/bin/env bash
# The plan's figures against those of an independent script, on the example log and on generated ones.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet -p tollgate-cli
target=${CARGO_TARGET_DIR:-target}
python3 ci/plan-check.py "$target/debug/tollgate" examples/access.log.gz
