#!/usr/bin/env bash
# The Redis tier against servers that the tests start themselves: every store against its oracle, failures, field cases, two
# tiers, processes, a cluster of three; the tier's protocol in every state of small worlds; its benchmarks once.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --quiet -p tollgate-redis --all-targets --all-features -- -D warnings
cargo test --quiet -p tollgate-redis --all-features
cargo test --quiet -p tollgate-redis --all-features --benches
