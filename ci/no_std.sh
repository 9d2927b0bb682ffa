#!/usr/bin/env bash
# Builds the core without std and checks that it asks the system for memory and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/no_std"
cargo build --quiet --release --manifest-path ci/no_std/Cargo.toml
library=$CARGO_TARGET_DIR/release/libtollgate_no_std.so
nm -D --defined-only "$library" | grep -q ' probe$' || { echo "no_std: the probe is not in $library"; exit 1; }
undefined=$(nm -D --undefined-only "$library" | awk '$1 != "w" {sub(/@.*/, "", $2); print $2}' | sort -u)
allowed='^(aligned_alloc|free|memcpy|memmove|memset|memcmp|bcmp)$'
if strangers=$(grep -vE "$allowed" <<<"$undefined"); then
    echo "no_std: the library asks for more than memory:"
    echo "$strangers"
    exit 1
fi
echo "no_std: asks for" $undefined
