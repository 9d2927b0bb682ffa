//! What a compiled program relies on.

use std::{collections::BTreeSet, fs, process::Command};

use crate::cc::{Link, compile_and_run, has, library, root, run};

fn names(text: &str) -> BTreeSet<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_library_exports_what_is_listed_and_the_header_declares() {
    let listed = fs::read_to_string(root().join("abi/symbols.txt")).unwrap();
    let object = library().join("libtollgate.so");
    let found = run(Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(object));
    let found: String = found.lines().map(|line| format!("{}\n", line.split('@').next().unwrap())).collect();
    // A region's functions are there or not: a library without them has no room for what would only say so.
    let is_there = |name: &&str| has("shm") || !name.starts_with("tollgate_shm_");
    assert_eq!(names(&found), names(&listed).into_iter().filter(is_there).collect());

    let header = fs::read_to_string(root().join("include/tollgate/tollgate.h")).unwrap();
    let declared: BTreeSet<&str> = header
        .split("TOLLGATE_API")
        .skip(3) // Its definition comes first.
        .map(|declaration| declaration.split('(').next().unwrap())
        .map(|start| start.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap())
        .collect();
    assert_eq!(declared, names(&listed));
}

#[test]
fn the_soname_carries_the_abi_version() {
    let found = run(Command::new("readelf").arg("-d").arg(library().join("libtollgate.so")));
    assert!(found.contains("Library soname: [libtollgate.so.0]"), "{found}");
}

#[test]
fn the_version_is_that_of_the_package() {
    let header = fs::read_to_string(root().join("include/tollgate/tollgate.h")).unwrap();
    for (part, version) in [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ] {
        let line = format!("#define TOLLGATE_VERSION_{part} {version}\n");
        assert!(header.contains(&line), "not there: {line}");
    }
}

/// `abi.c` asserts the sizes and offsets that the Rust side has.
#[test]
fn sizes_offsets_and_numbers_are_the_same_in_c() {
    for link in [Link::Static, Link::Shared] {
        let printed = compile_and_run("abi", link, &[]);
        assert_eq!(printed.trim(), env!("CARGO_PKG_VERSION"));
    }
}
