#!/usr/bin/env bash
# The HTTP layer: keys, answers and field cases; axum under wrk and h2load, tonic, and a redis-server, all on loopback; the
# README's answers, and its example.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --quiet -p tollgate-tower --all-targets --all-features -- -D warnings
cargo clippy --quiet -p tollgate-tower -- -D warnings
cargo test --quiet -p tollgate-tower --all-features
