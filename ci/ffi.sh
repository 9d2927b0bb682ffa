#!/usr/bin/env bash
# The C library in each of its builds, as it is shipped: every C program, what it asks the system for.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
builds=$CARGO_TARGET_DIR/ffi-builds

# Builds the library with the given flags, and keeps it where the next build does not overwrite it.
build() {
    local name=$1
    shift
    cargo clippy --quiet --profile ffi --package tollgate-ffi --lib "$@" -- -D warnings
    cargo build --quiet --profile ffi --package tollgate-ffi "$@"
    mkdir -p "$builds/$name"
    cp "$CARGO_TARGET_DIR/ffi/libtollgate.so" "$CARGO_TARGET_DIR/ffi/libtollgate.a" "$builds/$name/"
}

build std
build bare --no-default-features
build heap --no-default-features --features heap
for name in std bare heap; do
    TOLLGATE_LIBRARY_DIR=$builds/$name cargo test --quiet --package tollgate-ffi --test library
done

# Without std it asks for memory and nothing else. A panic left in it would ask for `abort`.
allowed='^(calloc|posix_memalign|free|memcpy|memmove|memset|memcmp|bcmp)$'
undefined=$(nm -D --undefined-only "$builds/bare/libtollgate.so" | awk '$1 != "w" {sub(/@.*/, "", $2); print $2}')
if strangers=$(grep -vE "$allowed" <<<"$undefined"); then
    echo "ffi: the library without std asks for more than memory:" $strangers
    exit 1
fi
strip -o "$builds/bare/stripped.so" "$builds/bare/libtollgate.so"
bytes=$(stat -c %s "$builds/bare/stripped.so")
# Measured: 62,760 before there were shards; the log and the counter in shards add 25,936, counts by rule and the other
# functions since then 10,896.
[ "$bytes" -le 102400 ] || { echo "ffi: $bytes bytes without std, above 102400"; exit 1; }
echo "ffi: without std $bytes bytes, asks for" $undefined
