#!/usr/bin/env bash
# A Rust program and a C program with one region, killed again and again: together they never exceed a limit; counts are printed.
# Usage: ci/together.sh [--seconds N]
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ffi/tests/together/build.sh "$work"
python3 ffi/tests/together/together.py "$@" rust="$work/rust" c="$work/c"
