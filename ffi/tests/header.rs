//! The committed header is the one that the sources make.

use std::{env, fs, path::Path};

/// The sources, in the order in which a C programmer should read them.
const SOURCES: [&str; 12] = [
    "version",
    "status",
    "clock",
    "config",
    "handle",
    "life",
    "hot",
    "control",
    "stats",
    "keyed",
    "shm",
    "shm/by_key",
];

#[test]
fn the_header_is_the_one_that_the_sources_make() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config);
    let sources = SOURCES.iter().map(|name| root.join("src").join(name).with_extension("rs"));
    let mut made = Vec::new();
    sources.fold(builder, |builder, path| builder.with_src(path)).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();

    let path = root.join("include/tollgate/tollgate.h");
    if env::var_os("TOLLGATE_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    for (line, (made, committed)) in made.lines().zip(committed.lines()).enumerate() {
        assert_eq!(made, committed, "line {}: run with TOLLGATE_WRITE_HEADER=1 to write it", line + 1);
    }
    assert_eq!(made, committed, "run with TOLLGATE_WRITE_HEADER=1 to write it");
}
