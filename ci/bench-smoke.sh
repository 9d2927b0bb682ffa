#!/usr/bin/env bash
# Every benchmark once: each asserts the path that it claims to measure.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --quiet -p tollgate-benches --benches
