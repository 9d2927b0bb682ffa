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

# Runs every C program against a build, which has these features.
programs() {
    TOLLGATE_LIBRARY_DIR=$builds/$1 TOLLGATE_LIBRARY_FEATURES=$2 cargo test --quiet --package tollgate-ffi --test library
}

build std
build bare --no-default-features
build pieces --no-default-features --features heap,shards
for features in heap shards std,heap shm; do # What nobody ships is built as well.
    cargo clippy --quiet --profile ffi --package tollgate-ffi --lib --no-default-features --features $features -- -D warnings
done
programs std "std heap shards shm"
programs bare ""
programs pieces "heap shards"

# Without std it asks for memory and nothing else. A panic left in it would ask for `abort`.
allowed='^(calloc|posix_memalign|free|memcpy|memmove|memset|memcmp|bcmp)$'
undefined=$(nm -D --undefined-only "$builds/bare/libtollgate.so" | awk '$1 != "w" {sub(/@.*/, "", $2); print $2}')
if strangers=$(grep -vE "$allowed" <<<"$undefined"); then
    echo "ffi: the library without std asks for more than memory:" $strangers
    exit 1
fi
strip -o "$builds/bare/stripped.so" "$builds/bare/libtollgate.so"
bytes=$(stat -c %s "$builds/bare/stripped.so")
[ "$bytes" -le 65536 ] || { echo "ffi: $bytes bytes without std, above 65536"; exit 1; }
echo "ffi: without std $bytes bytes, asks for" $undefined
