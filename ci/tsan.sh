#!/usr/bin/env bash
# Threads on every limiter of the core under ThreadSanitizer: no access without order. The stable toolchain does, with
# the permission to use its unstable flags; std is not instrumented, see ci/tsan/src/main.rs for what follows from that.
# Canaries first: three races, one of them inside the core. If one is not reported, the run is void.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(rustc -vV | sed -n 's/^host: //p')
case $target in
    x86_64-*-linux-gnu | aarch64-*-linux-gnu) ;;
    *) echo "tsan: not for $target"; exit 0 ;;
esac
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/tsan"
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
# With a target of its own, what runs during the build (build scripts, macros) is built without the sanitizer.
cargo build --quiet --manifest-path ci/tsan/Cargo.toml --target "$target"
binary=$CARGO_TARGET_DIR/$target/debug/tollgate-tsan
# Its shadow memory does not bear every layout that a newer kernel draws. A container may forbid to ask for another.
fixed=(setarch --addr-no-randomize)
"${fixed[@]}" true 2>/dev/null || fixed=()
run() {
    TSAN_OPTIONS="exitcode=66 ${TSAN_OPTIONS:-}" "${fixed[@]}" "$binary" "$@" 2>&1
}

for canary in race lock reset; do
    output=$(run "$canary") && status=0 || status=$?
    if [ $status != 66 ] || ! grep -q 'WARNING: ThreadSanitizer: data race' <<<"$output"; then
        echo "tsan: void: the canary \"$canary\" is not reported (exit $status)"
        echo "$output"
        exit 1
    fi
    # A race that it sees in the core lies in the core.
    if [ "$canary" = reset ] && ! grep -q 'tollgate::' <<<"$output"; then
        echo "tsan: void: the core is not instrumented"
        exit 1
    fi
done
if ! output=$(run); then
    echo "$output"
    echo "tsan: FAIL"
    exit 1
fi
echo "tsan: three canaries reported, nothing else"
