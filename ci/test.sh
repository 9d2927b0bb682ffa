#!/usr/bin/env bash
# Every check there is, after installing what a fresh Debian machine lacks. Needs Rust (rustup.rs) and root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."

install() {
    local missing=()
    for package in "$@"; do
        dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        local root=()
        [ "$(id -u)" = 0 ] || root=(sudo)
        "${root[@]}" apt-get update -qq
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
    fi
}

run() {
    printf '\n=== %s\n' "$*"
    local start=$SECONDS
    "$@"
    printf '=== %s: %d s\n' "$*" $((SECONDS - start))
}

install binutils bsdutils chromium clang cmake g++ gcc libc6-dev libclang-rt-dev make nghttp2-client nginx nginx-dev pkg-config procps python3 redis-server valgrind wrk
for job in lint unit crash ffi ffi-kit together nginx keyed plan pictures redis redis-mutants tower no_std replay instructions bench-smoke loom mutants tsan stress deep; do
    run "ci/$job.sh"
done
