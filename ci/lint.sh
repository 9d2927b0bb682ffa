#!/usr/bin/env bash
# Formatting, clippy with and without std, and rustdoc: no warnings.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets -- -D warnings
cargo clippy --quiet -p tollgate --no-default-features -- -D warnings
cargo clippy --quiet -p tollgate --all-targets --features tokio,metrics,shared -- -D warnings
cargo clippy --quiet -p tollgate --no-default-features --features keyed -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --features tollgate/tokio,tollgate/metrics,tollgate/shared
