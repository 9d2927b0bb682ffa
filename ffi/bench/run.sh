#!/usr/bin/env bash
# Builds the benchmark against an installation and runs it, linked in three ways: ffi/bench/run.sh PREFIX [ROUNDS [CALLS]]
set -euo pipefail

prefix=$(realpath "${1:?where tollgate is installed}")
shift
cd "$(dirname "$0")/../.."
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")/ffi-inlined
export CARGO_TARGET_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --quiet --release --manifest-path ffi/bench/inlined/Cargo.toml
inlined=$CARGO_TARGET_DIR/release/libtollgate_inlined.a
grep -m1 'model name' /proc/cpuinfo || true
rustc --version
${CC:-cc} --version | head -1
build() {
    local name=$1
    shift
    ${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -I"$prefix/include" ffi/bench/bench.c "$inlined" -o "$work/bench" "$@" -pthread
    echo
    "$work/bench" "$name" "${arguments[@]}"
}
arguments=("$@")
build static "$prefix/lib/libtollgate.a"
build shared -L"$prefix/lib" -ltollgate -Wl,-rpath,"$prefix/lib"
build "shared, -fno-plt" -fno-plt -L"$prefix/lib" -ltollgate -Wl,-rpath,"$prefix/lib"
