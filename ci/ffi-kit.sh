#!/usr/bin/env bash
# What surrounds the C library: its installation and those who build against it, its headers in every language they
# promise, threads, signals, forks and unloading, sanitizers, fuzzing, the examples, the benchmark.
# Usage: ci/ffi-kit.sh [STEP..], to run some of the steps alone; without, all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
target=$(rustc -vV | sed -n 's/^host: //p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=ffi/tests/programs
warnings=(-Wall -Wextra -Wpedantic -Werror)
strict=("${warnings[@]}" -Wconversion)
prefix=$work/prefix

# Prints a command, then runs it.
run() {
    printf '$ %s\n' "${*//$work/\$work}"
    "$@"
}

# The same without what it prints, unless it fails.
quietly() {
    printf '$ %s\n' "${*//$work/\$work}"
    "$@" >"$work/output" 2>&1 || { cat "$work/output"; return 1; }
}

step_install() {
    run env PREFIX="$prefix" ffi/install.sh
}

step_headers() {
    local compiler standard
    for compiler in gcc clang; do
        for standard in c99 c11 c17; do
            run "$compiler" -std=$standard "${strict[@]}" -I"$prefix/include" -fsyntax-only ffi/tests/headers/tollgate_h.c
        done
        for standard in c++11 c++14 c++17 c++20 c++2b; do
            run "$compiler" -x c++ -std=$standard "${strict[@]}" -I"$prefix/include" -fsyntax-only ffi/tests/headers/tollgate_h.c
        done
        for standard in c++14 c++17 c++20 c++2b; do
            run "$compiler" -x c++ -std=$standard "${strict[@]}" -I"$prefix/include" -fsyntax-only ffi/tests/headers/tollgate_hpp.cpp
        done
        run "$compiler" -x c++ -std=c++14 -fno-exceptions -fno-rtti "${strict[@]}" -I"$prefix/include" -fsyntax-only \
            ffi/tests/headers/tollgate_hpp.cpp
    done
}

# Compiles a program of ours against the shared library, if it names anything of it: build NAME OUTPUT COMPILER [OPTION..]
build() {
    local name=$1 output=$2
    shift 2
    run "$@" -std=gnu11 -g "${warnings[@]}" -I"$prefix/include" "$programs/$name.c" -o "$output" \
        -Wl,--as-needed -L"$prefix/lib" -ltollgate -Wl,-rpath,"$prefix/lib" -pthread -ldl
}

step_programs() {
    local name
    for name in stress signal fork unload; do
        build $name "$work/$name" gcc -O2
    done
    run "$work/stress"
    run "$work/signal"
    run "$work/fork"
    run "$work/unload" "$prefix/lib/libtollgate.so"
    run valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=definite,indirect,possible \
        "$work/stress" 1
    run valgrind --quiet --error-exitcode=99 --leak-check=full "$work/unload" "$prefix/lib/libtollgate.so" 10
}

step_sanitizers() {
    local compiler name
    for compiler in gcc clang; do
        for name in stress signal fork unload; do
            build $name "$work/$name-$compiler" $compiler -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
        done
        run "$work/stress-$compiler" 2
        run "$work/signal-$compiler"
        run "$work/fork-$compiler" 20
        run "$work/unload-$compiler" "$prefix/lib/libtollgate.so" 50
    done
}

# Builds the static library with every function instrumented, in a folder of its own: instrumented NAME FEATURES FLAG..
# There is only a copy of std without instruments.
instrumented() {
    local name=$1 features=$2
    shift 2
    run env RUSTC_BOOTSTRAP=1 RUSTFLAGS="$*" CARGO_TARGET_DIR="$CARGO_TARGET_DIR/ffi-$name" \
        cargo rustc --quiet --profile ffi -p tollgate-ffi --crate-type staticlib --no-default-features --features "$features" --target "$target" \
        --config 'profile.ffi.lto="off"'
}
# Without std, what is left of alloc's unwinding, which optimisation of the whole would drop, names a function of std that is never
# called.
alone=("-Wl,--defsym=rust_eh_personality=0")

step_tsan() {
    case $target in
        x86_64-*-linux-gnu | aarch64-*-linux-gnu) ;;
        *) echo "tsan: not for $target"; return ;;
    esac
    # Without std, whose locks would be taken for none.
    instrumented tsan heap,shards -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer
    local runtime fixed=(setarch --addr-no-randomize) name
    runtime=$(rustc --print sysroot)/lib/rustlib/$target/lib/librustc-stable_rt.tsan.a
    # Its shadow memory does not bear every layout that a newer kernel draws. A container may forbid to ask for another.
    "${fixed[@]}" true 2>/dev/null || fixed=()
    for name in stress race; do
        run gcc -std=gnu11 -g -O1 "${warnings[@]}" -fsanitize=thread -I"$prefix/include" -c "$programs/$name.c" -o "$work/$name.o"
        run gcc "$work/$name.o" "$CARGO_TARGET_DIR/ffi-tsan/$target/ffi/libtollgate.a" -o "$work/$name-tsan" \
            -Wl,--whole-archive "$runtime" -Wl,--no-whole-archive -lpthread -lm -ldl -lrt -lgcc_s "${alone[@]}"
    done
    # A canary first: a race inside the library. If it is not reported, the run is void.
    local output status=0
    output=$(TSAN_OPTIONS=exitcode=66 run "${fixed[@]}" "$work/race-tsan" 2>&1) || status=$?
    if [ $status != 66 ] || ! grep -q 'data race' <<<"$output" || ! grep -q ' tollgate_reset ' <<<"$output"; then
        echo "$output"
        echo "tsan: void: the canary is not reported inside the library (exit $status)"
        return 1
    fi
    run env TSAN_OPTIONS=exitcode=66 "${fixed[@]}" "$work/stress-tsan" 1 tsan
}

# Replays what once broke something, then looks for more: fuzz PROGRAM INPUTS LONGEST
fuzz() {
    local name=$1 inputs=ffi/tests/fuzz/$2
    run gcc -std=gnu11 -g -O1 "${warnings[@]}" -DREPLAY -fsanitize=address,undefined -fno-sanitize-recover=all -I"$prefix/include" \
        "ffi/tests/fuzz/$name.c" -o "$work/replay" -L"$prefix/lib" -ltollgate -Wl,-rpath,"$prefix/lib"
    run "$work/replay" "$inputs"/*
    run clang -std=gnu11 -g -O1 "${warnings[@]}" -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        -I"$prefix/include" "ffi/tests/fuzz/$name.c" "$CARGO_TARGET_DIR/ffi-fuzz/$target/ffi/libtollgate.a" -o "$work/$name" -ldl -lm
    mkdir "$work/corpus-$name"
    # A gate looks at the same inputs each time; others are for those who ask: FUZZ_SECONDS=600.
    local how=(-seed=1 -runs=40000)
    [ -z "${FUZZ_SECONDS:-}" ] || how=(-max_total_time="$FUZZ_SECONDS")
    quietly "$work/$name" "${how[@]}" -timeout=5 -max_len="$3" -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="${FUZZ_ARTIFACTS:-$work/}" "$work/corpus-$name" "$inputs"
    grep 'stat::number_of_executed_units' "$work/output"
}

step_fuzz() {
    instrumented fuzz std,heap,shards,shm -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer
    fuzz fuzz inputs 512
    fuzz region inputs-region 4096
}

step_two_libraries() {
    run rustc --edition 2024 -C opt-level=1 -C panic=abort --crate-type staticlib --crate-name other "$programs/other.rs" \
        -o "$work/libother.a"
    run gcc -std=gnu11 "${warnings[@]}" -I"$prefix/include" "$programs/two_libraries.c" "$prefix/lib/libtollgate.a" \
        "$work/libother.a" -o "$work/two_libraries" -pthread -ldl -lm
    run "$work/two_libraries"
    # It links because nothing else is global, and the order of the two does not matter.
    if nm -g --defined-only "$prefix/lib/libtollgate.a" | awk 'NF == 3 && $3 !~ /^tollgate_/' | grep .; then
        echo "two_libraries: the archive defines names that are not ours"
        return 1
    fi
}

# Builds and runs every consumer against an installation, by pkg-config and by CMake: consumers ROOT LIBDIR
consumers() {
    local root=$1 lib=$2 language compiler
    export PKG_CONFIG_PATH=$lib/pkgconfig
    for language in c cpp; do
        compiler=$([ $language = c ] && echo cc || echo c++)
        # shellcheck disable=SC2046
        run $compiler ffi/tests/consumer/consumer.$language -o "$work/shared" $(pkg-config --cflags --libs tollgate)
        readelf -d "$work/shared" | grep -q 'NEEDED.*libtollgate\.so\.[0-9]' || { echo "not linked with the soname"; return 1; }
        run env LD_LIBRARY_PATH="$lib" "$work/shared"
        # shellcheck disable=SC2046
        run $compiler -static ffi/tests/consumer/consumer.$language -o "$work/static" $(pkg-config --static --cflags --libs tollgate)
        run "$work/static"
    done
    quietly cmake -S ffi/tests/consumer -B "$work/cmake" -DCMAKE_PREFIX_PATH="$root" -DTOLLGATE_WANTED=0.1
    quietly cmake --build "$work/cmake"
    readelf -d "$work/cmake/consumer_c_tollgate" | grep -q 'NEEDED.*libtollgate\.so\.[0-9]' || { echo "not linked with the soname"; return 1; }
    if readelf -d "$work/cmake/consumer_c_tollgate_static" | grep -q libtollgate; then echo "not linked statically"; return 1; fi
    quietly ctest --test-dir "$work/cmake" --output-on-failure
    rm -rf "$work/cmake"
    # What another version asks for is not found.
    cmake -S ffi/tests/consumer -B "$work/cmake" -DCMAKE_PREFIX_PATH="$root" -DTOLLGATE_WANTED=0.2 >"$work/output" 2>&1 || true
    grep -q 'compatible with requested version "0.2"' "$work/output" || { echo "CMake takes this version for another"; return 1; }
    rm -rf "$work/cmake"
}

step_consumers() {
    local lib
    # The program that the README begins with, as it tells to build it.
    awk '/^```/ {if (inside) exit; inside = /^```c$/; next} inside' ffi/README.md >"$work/limit.c"
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    # shellcheck disable=SC2046
    run cc "$work/limit.c" $(pkg-config --cflags --libs tollgate) -o "$work/limit"
    [ "$(LD_LIBRARY_PATH=$prefix/lib "$work/limit")" = pass ] || { echo "consumers: the program of the README does not pass"; return 1; }
    lib=lib/$(gcc -print-multiarch)
    run env DESTDIR="$work/stage" PREFIX=/opt/tollgate LIBDIR="/opt/tollgate/$lib" ffi/install.sh
    consumers "$work/stage/opt/tollgate" "$work/stage/opt/tollgate/$lib"
    run mv "$work/stage/opt/tollgate" "$work/moved"
    consumers "$work/moved" "$work/moved/$lib"
    # The library without the clocks, which needs libc alone.
    run env PREFIX="$work/no_std" ffi/install.sh --no-default-features
    consumers "$work/no_std" "$work/no_std/lib"
    run gcc -std=gnu11 "${warnings[@]}" -I"$prefix/include" "$programs/two_builds.c" -o "$work/two_builds" -ldl
    run "$work/two_builds" "$prefix/lib/libtollgate.so" "$work/no_std/lib/libtollgate.so"
    run env PREFIX="$work/shards" ffi/install.sh --no-default-features --features shards
    run "$work/two_builds" "$prefix/lib/libtollgate.so" "$work/shards/lib/libtollgate.so" shards
}

step_examples() {
    local name
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    for name in event_loop prefork keyed; do
        # shellcheck disable=SC2046
        run cc -O2 "${warnings[@]}" ffi/examples/$name.c -o "$work/$name" $(pkg-config --cflags --libs tollgate)
        run env LD_LIBRARY_PATH="$prefix/lib" "$work/$name"
    done
    # shellcheck disable=SC2046
    run c++ -std=c++14 -O2 "${warnings[@]}" -pthread ffi/examples/thread_pool.cpp -o "$work/thread_pool" $(pkg-config --cflags --libs tollgate)
    run env LD_LIBRARY_PATH="$prefix/lib" "$work/thread_pool"
}

# Once, so that every row asserts the path that it names. Times: ffi/bench/run.sh PREFIX.
step_bench() {
    quietly ffi/bench/run.sh "$prefix" 3 1000
}

steps=("$@")
[ $# -gt 0 ] || steps=(headers programs two_libraries consumers examples bench sanitizers tsan fuzz)
for step in install "${steps[@]}"; do
    start=$SECONDS
    "step_$step"
    printf -- '-- %s: %d s\n' "$step" $((SECONDS - start))
done
