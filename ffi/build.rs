//! Gives the shared library its soname and, where the linker takes it, the version of its symbols.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=tollgate.map");
    println!("cargo:rerun-if-env-changed=TOLLGATE_VERSION_SCRIPT");
    let target = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if !matches!(target.as_str(), "linux" | "android" | "freebsd" | "netbsd" | "openbsd" | "dragonfly") {
        return;
    }
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtollgate.so.0");
    // ld.bfd refuses a second script beside rustc's own; lld takes it.
    if env::var_os("TOLLGATE_VERSION_SCRIPT").is_some() {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={folder}/tollgate.map");
    }
}
