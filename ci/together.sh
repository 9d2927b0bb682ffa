#!/usr/bin/env bash
# A Rust program and a C program with one region, killed again and again: together they never exceed a limit; counts are printed.
# Usage: ci/together.sh [--seconds N]
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
here=ffi/tests/together
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --quiet --profile ffi -p tollgate-ffi
cargo build --quiet --profile crash -p tollgate --features shared --example party
gcc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -Iffi/include $here/party.c "$CARGO_TARGET_DIR/ffi/libtollgate.a" \
    -o "$work/party" -pthread -ldl -lm
python3 $here/together.py "$@" rust="$CARGO_TARGET_DIR/crash/examples/party" c="$work/party"
