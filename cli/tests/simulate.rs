//! `tollgate simulate` as its users meet it: lines that the other commands read, and judged arrivals.
#![allow(missing_docs)]

mod common;

use std::fs;

use common::{feed, golden, json, planned, run, tollgate};
use serde_json::{Value, json as value};

/// What `simulate` writes with these options.
fn lines(options: &[&str]) -> String {
    let ran = run(&[&["simulate"], options].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    ran.out
}

/// What `simulate --limit .. --json` tells.
fn judged(options: &[&str]) -> Value {
    serde_json::from_str(&lines(&[options, &["--json"]].concat())).unwrap()
}

/// The figures of one algorithm, without the only one that varies.
fn of<'r>(report: &'r Value, algorithm: &str) -> &'r Value {
    report["results"].as_array().unwrap().iter().find(|result| result["algorithm"] == algorithm).unwrap()
}

const ATTACK: [&str; 4] = ["--arrivals", "edge-attack:500/1s", "--seconds", "20"];

#[test]
fn lines_are_the_same_for_a_seed() {
    let options = ["--arrivals", "burst:3/1s,senders=2", "--seconds", "2"];
    golden("simulate.txt", &lines(&options));
    assert_eq!(lines(&options), lines(&[&options[..], &["--seed", "1"]].concat()));
    assert_ne!(lines(&options), lines(&[&options[..], &["--seed", "2"]].concat()));
}

#[test]
fn replay_and_plan_read_what_it_writes() {
    for kind in
        ["poisson:50/s", "diurnal:50/s", "burst:40/2s", "edge-attack:50/1s", "flash-sale:base=2/s,factor=50"]
    {
        let log = lines(&["--arrivals", kind, "--seconds", "6"]);
        let count = log.lines().count();
        assert!(count > 100, "{kind}");
        for report in [json(&log, &["--key", "client"]), planned(&log, &[])] {
            assert_eq!(
                (&report["input"]["requests"], &report["input"]["skipped"]),
                (&value!(count), &value!(0))
            );
            assert_eq!(report["input"]["out_of_order"], 0, "{kind}");
        }
    }
}

/// Judged at once or by way of lines and `replay`: the same.
#[test]
fn judging_is_replaying() {
    let replayed = json(lines(&ATTACK), &["--limit", "500"]);
    let report = judged(&[&ATTACK[..], &["--limit", "500"]].concat());
    let timeless = |result: &Value| {
        let mut result = result.clone();
        let fields = result.as_object_mut().unwrap();
        for name in ["ns_per_check", "peak_seen", "refused_of", "phases"] {
            fields.remove(name);
        }
        result
    };
    for result in replayed["results"].as_array().unwrap() {
        let name = result["algorithm"].as_str().unwrap();
        assert_eq!(timeless(result), timeless(of(&report, name)));
    }
}

/// A limit of 500 per second, 100 senders: the fixed window lets nearly twice the limit through around its edges, the
/// log and the counter never more than the limit.
#[test]
fn an_attack_on_the_edges_passes_the_fixed_window_alone() {
    for seed in ["1", "2", "3"] {
        let report = judged(&[&ATTACK[..], &["--limit", "500", "--seed", seed]].concat());
        let peak = |name| of(&report, name)["rules"][0]["peak"].as_u64().unwrap();
        assert!((800..=1_000).contains(&peak("fixed")), "{}", peak("fixed"));
        assert_eq!((peak("window"), peak("log")), (500, 500));
        assert_eq!(report["senders"], value!([{"kind": "sender", "senders": 100, "requests": 10_000}]));
    }
}

/// Answers that come back late crowd: senders see more than the limit, though the log never recorded more.
#[test]
fn senders_see_other_figures_than_the_limiter_recorded() {
    let options = ["--arrivals", "poisson:5000/s", "--seconds", "20", "--limit", "500", "--algorithm", "log"];
    let report = judged(&[&options[..], &["--delay", "100ms"]].concat());
    let log = of(&report, "log");
    assert_eq!(log["rules"][0]["peak"], 500);
    assert!(log["peak_seen"].as_u64().unwrap() > 500, "{log}");
    let report = judged(&[&options[..], &["--delay", "1ns"]].concat());
    assert!(of(&report, "log")["peak_seen"].as_u64().unwrap() <= 501);
}

#[test]
fn a_flash_sale_refuses_abusers_and_hardly_anybody_else() {
    let options = [
        "--arrivals",
        "flash-sale:base=20/s,factor=500,users=20000",
        "--seconds",
        "24",
        "--limit",
        "5",
        "--per",
        "10s",
        "--key",
        "sender",
        "--algorithm",
        "log",
        "--algorithm",
        "window",
    ];
    let report = judged(&options);
    let requests: Vec<u64> =
        report["senders"].as_array().unwrap().iter().map(|kind| kind["requests"].as_u64().unwrap()).collect();
    assert_eq!(
        (&report["senders"][0]["kind"], &report["senders"][1]["kind"]),
        (&value!("user"), &value!("abuser"))
    );
    for name in ["log", "window"] {
        let result = of(&report, name);
        let share = |kind: usize| result["refused_of"][kind].as_u64().unwrap() as f64 / requests[kind] as f64;
        assert!(share(0) < 0.1 && share(1) > 0.95, "{name}: {} {}", share(0), share(1));
        assert_eq!(result["rules"][0]["over"], 0);
    }
}

#[test]
fn the_text_of_judged_arrivals() {
    let options = ["--arrivals", "edge-attack:50/1s", "--seconds", "6", "--limit", "50"];
    golden("simulate-judged.txt", &lines(&options));
}

#[test]
fn a_picture_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edge.svg");
    lines(&[&ATTACK[..], &["--limit", "500", "--plot", path.to_str().unwrap()]].concat());
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    for name in ["fixed", "two-window", "limit 500"] {
        assert!(svg.contains(name), "{name}");
    }
}

#[test]
fn what_can_not_be_done_is_said() {
    let usage: [(&[&str], &str); 11] = [
        (
            &["--arrivals", "poisson:5/s", "--start", "2116-02-20", "--seconds", "86400"],
            "--start 2116-02-20T00:00:00Z and --seconds 86400 reach beyond 2116-02-20T23:53:38.427387903Z\n",
        ),
        (
            &["--arrivals", "flood"],
            "invalid value 'flood' for '--arrivals <KIND:SETTINGS>': unknown kind `flood`",
        ),
        (
            &["--arrivals", "poisson:5/s", "--seconds", "0"],
            "invalid value '0' for '--seconds <N>': `0` is not a whole ",
        ),
        (&["--arrivals", "poisson:5/s", "--seconds", "1e9"], "invalid value '1e9' for '--seconds <N>'"),
        (
            &["--arrivals", "poisson:5/s", "--seed", "-1"],
            "invalid value '-1' for '--seed <N>': `-1` is not a whole ",
        ),
        (&["--arrivals", "poisson:5/s", "--start", "soon"], "invalid value 'soon' for '--start <TIME>'"),
        (
            &["--arrivals", "poisson:5/s", "--json"],
            "the following required arguments were not provided:\n  --limit <N>",
        ),
        (
            &["--arrivals", "poisson:5/s", "--plot", "x.svg"],
            "the following required arguments were not provided:\n  --limit <N>",
        ),
        (
            &["--arrivals", "poisson:5/s", "--limit", "5", "--key", "client"],
            "invalid value 'client' for '--key <KEY>'",
        ),
        (
            &["--arrivals", "poisson:5/s", "--limit", "5", "--buckets", "3", "--algorithm", "window"],
            "--algorithm window: window 1s is not a multiple of ",
        ),
        (&[], "the following required arguments were not provided:\n  --arrivals <KIND:SETTINGS>"),
    ];
    for (options, why) in usage {
        let ran = run(&[&["simulate"], options].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(ran.err.starts_with(&format!("error: {why}")), "{options:?}: {}", ran.err);
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    use std::process::{Command, Stdio};
    let shell =
        format!("{} simulate --arrivals poisson:100000/s | head -n 1", env!("CARGO_BIN_EXE_tollgate"));
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -o pipefail; {shell}")]).stdin(Stdio::null());
    let ran = feed(&mut command, b"");
    assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (Some(0), "", 1));
    let version = tollgate().arg("--version").output().unwrap();
    assert!(version.status.success());
}
