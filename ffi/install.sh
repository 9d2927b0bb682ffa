#!/usr/bin/env bash
# Builds libtollgate and installs it: headers, shared library, static library, pkg-config file, CMake package.
#
#   PREFIX=/usr/local LIBDIR=$PREFIX/lib DESTDIR= ffi/install.sh [OPTION OF cargo build]..
#
# With --no-default-features it builds the library without the quanta clocks, which needs nothing but libc.
# The installed tree finds itself: it may be moved as a whole. Needs Rust, GNU binutils and a C compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
destdir=${DESTDIR:-}
for variable in prefix libdir; do
    case ${!variable} in
        /*) ;;
        *) echo "install: ${variable^^} must be an absolute path, got \"${!variable}\"" >&2; exit 1 ;;
    esac
done
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
built=$CARGO_TARGET_DIR/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}ffi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Makes the archive $1 one object with no global name but ours, as the archive $2. A Rust archive carries a copy of
# the standard library, and two such copies do not link into one program.
seal() {
    local names=() name
    # Binutils with a plugin for LLVM complain about the bitcode of another LLVM; it is not needed, and left out below.
    for name in $(nm -g --defined-only "$1" 2>/dev/null | awk '$3 ~ /^tollgate_/ {print $3}' | sort -u); do
        names+=(-u "$name")
    done
    [ ${#names[@]} -gt 0 ] || { echo "install: $1 defines no tollgate_* name" >&2; return 1; }
    # Without groups: their names become local, and a group kept from the other library would not stand in for ours.
    ${LD:-ld} -r --gc-sections --force-group-allocation "${names[@]}" -o "$work/tollgate.o" "$1"
    ${OBJCOPY:-objcopy} --wildcard --keep-global-symbol='tollgate_*' --strip-debug -R .llvmbc -R .llvmcmd "$work/tollgate.o"
    rm -f "$2"
    ${AR:-ar} rcs "$2" "$work/tollgate.o"
}

# What a program that links the archive needs besides what every C compiler adds: libc, and its own run-time library in
# the form, shared or static, that suits the program.
private_libraries() {
    case " $* " in *" --no-default-features "*) return ;; esac
    rustc --crate-type staticlib --crate-name probe --print native-static-libs -C panic=abort \
        ${CARGO_BUILD_TARGET:+--target "$CARGO_BUILD_TARGET"} -o "$work/probe.a" - </dev/null 2>&1 |
        awk 'sub(/.*native-static-libs:/, "") {
            for (i = 1; i <= NF; i++)
                if ($i != "-lc" && $i != "-lgcc_s") { printf "%s%s", separator, $i; separator = " " }
        }'
}

cargo build --quiet --profile ffi -p tollgate-ffi --lib "$@"

version=$(cargo pkgid -p tollgate-ffi)
version=${version##*[@#]}
# The part of the version that changes when the interface may.
case $version in
    0.*) kin=$(cut -d. -f1-2 <<<"$version") ;;
    *) kin=${version%%.*} ;;
esac
soname=$(readelf -d "$built/libtollgate.so" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
[ -n "$soname" ] || { echo "install: $built/libtollgate.so has no soname" >&2; exit 1; }
seal "$built/libtollgate.a" "$work/libtollgate.a"

libraries=$(private_libraries "$@")
fill() {
    sed -e "s|@version@|$version|g" -e "s|@kin@|${kin//./\\\\.}|g" -e "s|@soname@|$soname|g" -e "s|@libraries@|$libraries|g" \
        -e "s|@libraries_list@|${libraries// /;}|g" \
        -e "s|@prefix_from_pc@|$(realpath -m --relative-to="$libdir/pkgconfig" "$prefix")|g" \
        -e "s|@libdir_from_prefix@|$(realpath -m --relative-to="$prefix" "$libdir")|g" \
        -e "s|@include_from_cmake@|$(realpath -m --relative-to="$libdir/cmake/tollgate" "$prefix/include")|g" "$1"
}
fill ffi/packaging/tollgate.pc.in >"$work/tollgate.pc"
fill ffi/packaging/tollgateConfig.cmake.in >"$work/tollgateConfig.cmake"
fill ffi/packaging/tollgateConfigVersion.cmake.in >"$work/tollgateConfigVersion.cmake"

lib=$destdir$libdir
install -d "$destdir$prefix/include/tollgate" "$lib/pkgconfig" "$lib/cmake/tollgate"
install -m 644 ffi/include/tollgate/* "$destdir$prefix/include/tollgate"
install -m 755 "$built/libtollgate.so" "$lib/libtollgate.so.$version"
ln -sf "libtollgate.so.$version" "$lib/$soname"
ln -sf "$soname" "$lib/libtollgate.so"
install -m 644 "$work/libtollgate.a" "$lib"
install -m 644 "$work/tollgate.pc" "$lib/pkgconfig"
install -m 644 "$work/tollgateConfig.cmake" "$work/tollgateConfigVersion.cmake" "$lib/cmake/tollgate"
echo "install: tollgate $version ($soname) in $destdir$prefix"
