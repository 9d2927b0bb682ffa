#!/usr/bin/env bash
# Keyed limiters by their memory: bytes per key for a million keys, and ten million strangers in room for 20,000.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --quiet --release -p tollgate --test keyed_memory
