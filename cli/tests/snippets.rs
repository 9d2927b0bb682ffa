//! The code that a plan proposes: the Rust is compiled and run, the C compiled, the TOML read.
#![allow(missing_docs, unreachable_pub)]

mod common;

use std::{fs, process::Command};

use common::{golden, planned};
use tollgate::{Algorithm, Keyed, Nanos};

/// What `c_is_valid` compiles against: the names that the C interface promises.
const HEADER: &str = "\
#include <stdint.h>
#define TOLLGATE_MAX_RULES 8
enum { TOLLGATE_LOG = 1, TOLLGATE_WINDOW = 2, TOLLGATE_CLOCK_PRECISE = 1 };
typedef struct { uint64_t limit, window_ns; } tollgate_rule_t;
typedef struct {
    uint32_t struct_size, algorithm, rule_count, buckets, clock, flags, shards, max_cost;
    uint64_t burst;
    tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    uint64_t reserved[4];
} tollgate_config_t;
";

mod log {
    include!("golden/log.rs");
}

mod window {
    include!("golden/window.rs");
}

/// A log whose plan takes the exact log, with a limit for all together.
fn log_snippet(language: &str) -> String {
    let log = "1700000000.5 a\n".repeat(7) + "1700000000.5 b\n";
    let report = planned(log, &["--windows", "1s", "--capacity", "2000/s"]);
    report["windows"][0]["snippet"][language].as_str().unwrap().to_owned()
}

/// A log whose plan takes the counter: one key needs a large limit, and many others are alive.
fn window_snippet(language: &str) -> String {
    let others: String = (0..700).map(|key| format!("1700000000.5 k{key}\n")).collect();
    let log = "1700000000.5 a\n".repeat(3_000) + &others;
    let report = planned(log, &["--windows", "10s", "--refuse-at-most", "0%"]);
    assert_eq!(report["windows"][0]["choice"]["algorithm"], "window", "{}", report["windows"][0]["choice"]);
    report["windows"][0]["snippet"][language].as_str().unwrap().to_owned()
}

#[test]
fn the_rust_is_what_is_compiled_here() {
    golden("log.rs", &log_snippet("rust"));
    golden("window.rs", &window_snippet("rust"));
}

#[test]
fn the_rust_limits_as_it_says() {
    let (each, all) = (log::limiter().unwrap(), log::limiter_for_all().unwrap());
    let now = Nanos::from_secs(1);
    let admitted = |limits: &Keyed<str>, key: &str, asked: u64| {
        (0..asked).filter(|_| limits.try_acquire_at(key, 1, now)).count()
    };
    assert_eq!(["a", "b"].map(|key| admitted(each.algorithm(), key, 10)), [7, 7]);
    assert_eq!((each.algorithm().capacity(), all.algorithm().rules()[0].limit), (4, 2_000));
    let window = window::limiter().unwrap();
    assert_eq!(["a", "b"].map(|key| admitted(window.algorithm(), key, 4_000)), [3_000, 3_000]);
}

#[test]
fn c_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tollgate")).unwrap();
    fs::write(folder.path().join("tollgate/tollgate.h"), HEADER).unwrap();
    for (name, code) in [("log.c", log_snippet("c")), ("window.c", window_snippet("c"))] {
        let file = folder.path().join(name);
        // A configuration that nobody uses is no fault of the snippet.
        let user = "\nint main(void) { return (int)limiter_config.rule_count - 1; }\n";
        let user = if code.contains("limiter_for_all_config") {
            user.replace(" - 1", " - (int)limiter_for_all_config.rule_count")
        } else {
            user.to_owned()
        };
        fs::write(&file, code.clone() + &user).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"]);
        let output = compiler.arg(folder.path()).arg(&file).output().expect("cc");
        assert!(output.status.success(), "{code}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn toml_is_valid() {
    let script = "import json, sys, tomllib; print(json.dumps(tomllib.loads(sys.stdin.read())))";
    let mut python = Command::new("python3");
    python.args(["-c", script]);
    let ran = common::feed(&mut python, log_snippet("toml").as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let read: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let limit = |key: &str, limit: u64| serde_json::json!({"key": key, "algorithm": "log", "limit": limit, "window_ns": 1_000_000_000});
    assert_eq!(read, serde_json::json!({"limit": [limit("client", 7), limit("none", 2_000)]}));
}
