#!/usr/bin/env bash
# Every test of every crate, and the core's without std.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --workspace
cargo test -p tollgate --features tokio --test waiting
cargo test -p tollgate --features tokio --doc waiting
cargo test -p tollgate --no-default-features --lib
cargo test -p tollgate --no-default-features --features keyed --lib
