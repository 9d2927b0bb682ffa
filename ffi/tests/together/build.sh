#!/usr/bin/env bash
# Builds the parties: DIRECTORY/rust and DIRECTORY/c.
# Usage: build.sh DIRECTORY
set -euo pipefail
directory=$(realpath "$1")
cd "$(dirname "$0")/../../.."

CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
here=ffi/tests/together

cargo build --quiet --profile ffi -p tollgate-ffi
cargo build --quiet --profile crash -p tollgate --features shared --example party
cp "$CARGO_TARGET_DIR/crash/examples/party" "$directory/rust"
gcc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -Iffi/include $here/party.c "$CARGO_TARGET_DIR/ffi/libtollgate.a" \
    -o "$directory/c" -pthread -ldl -lm
