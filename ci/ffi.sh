#!/usr/bin/env bash
# The C library in both builds, as it is shipped: the header in every language, every C program, what it asks the system for.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
include=ffi/include
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

# The header as C and C++ of every age: no warning, alone and twice.
header() {
    local compiler=$1 language=$2 file=$3
    printf '#include <tollgate/%s>\n#include <tollgate/%s>\nint main(void) { return 0; }\n' "$file" "$file" |
        "$compiler" -std="$language" -x "$([[ $language == c++* ]] && echo c++ || echo c)" -fsyntax-only \
            -Wall -Wextra -Wpedantic -Wconversion -Werror -fno-exceptions -I "$include" -
}

for compiler in gcc clang; do
    for language in c99 c11 c17; do
        header "$compiler" "$language" tollgate.h
    done
done
for compiler in g++ clang++; do
    for language in c++11 c++14 c++17 c++20 c++2b; do
        header "$compiler" "$language" tollgate.h
        [ "$language" = c++11 ] || header "$compiler" "$language" tollgate.hpp
    done
done
echo "ffi: the headers are clean C99 to C17, C++11 to C++23, with gcc and clang"

TOLLGATE_VERSION_SCRIPT=1 build std
readelf --version-info "$builds/std/libtollgate.so" | grep -q 'Name: TOLLGATE_0' ||
    { echo "ffi: the symbols have no version"; exit 1; }
build bare --no-default-features
for name in std bare; do
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
[ "$bytes" -le 65536 ] || { echo "ffi: $bytes bytes without std, above 65536"; exit 1; }
echo "ffi: without std $bytes bytes, asks for" $undefined
