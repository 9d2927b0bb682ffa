//! `tollgate plan` as its users meet it: the text, the JSON, the files, odd logs, every error, Ctrl-C.
#![allow(missing_docs)]

mod common;

use std::{fs, path::Path, process::Command};

use common::{golden, interruptible, plan, planned, run};
use serde_json::{Value, json as value};

/// The log of the golden tests.
const SMALL: [&str; 2] = ["plan", "small.log"];

/// Names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A log of `n` requests of one client at one time.
fn burst(n: usize) -> String {
    "1700000000.5 a\n".repeat(n)
}

// === what it says ===

#[test]
fn the_text_for_each_client() {
    let ran = run(&SMALL);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    golden("plan.txt", &ran.out);
}

#[test]
fn the_text_for_all_together_with_a_capacity() {
    let options = ["--key", "none", "--windows", "1s", "--capacity", "60/s", "--headroom", "50%"];
    let ran = run(&[&SMALL[..], &options].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    golden("plan-none.txt", &ran.out);
}

#[test]
fn the_json() {
    let ran = run(&[&SMALL[..], &["--json", "--refuse-at-most", "20%", "--capacity", "60/s"]].concat());
    assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (Some(0), "", 1));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    golden("plan.json", &format!("{report:#}\n"));
}

#[test]
fn two_runs_are_equal() {
    assert_eq!(run(&SMALL).out, run(&SMALL).out);
}

/// The request that a limit must refuse is the one too many, and keys are met where their busiest window is larger.
#[test]
fn limits_are_the_smallest_that_keep_the_share() {
    let log: String = (1..=10).map(|key| format!("1700000000 k{key}\n").repeat(key)).collect();
    let limit = |share| {
        let report = planned(&log, &["--windows", "1s", "--refuse-at-most", share]);
        let window = &report["windows"][0];
        let n = |name: &str| window["limit"][name].as_u64().unwrap();
        (n("by_requests"), n("by_keys"), n("proposed"), window["refused"].clone())
    };
    assert_eq!(limit("0%"), (10, 10, 10, value!({"requests": 0, "keys": 0})));
    // Of 55 requests 5 may be refused; of 10 keys one.
    assert_eq!(limit("10%"), (8, 9, 9, value!({"requests": 1, "keys": 1})));
    assert_eq!(limit("100%"), (0, 0, 0, value!({"requests": 55, "keys": 10})));
}

#[test]
fn a_key_that_stands_out_is_named() {
    let text = plan(burst(9) + "1700000000.5 b\n", &["--windows", "1s"]).out;
    assert!(
        text.contains("one key stands out: a has 9 in its busiest 1s; a limit of 1 would refuse nobody else"),
        "{text}"
    );
    let text = plan(burst(9) + &"1700000000.5 b\n".repeat(5), &["--windows", "1s"]).out;
    assert!(!text.contains("stands out"), "{text}");
}

/// Code that somebody pastes unread must not refuse everything, or have another limit than the one in bold.
#[test]
fn limits_that_surprise_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let html = ["--windows", "1s", "--html", path.to_str().unwrap()];
    let nothing = "0 per 1s for all together, from the capacity, refuses everything";
    let another = "the code has the limit from the capacity, 9 per 1s, not the smallest, 3";
    for (options, note) in [
        (
            &["--refuse-at-most", "100%"][..],
            Some("0 per 1s keeps the share asked for, and refuses everything"),
        ),
        (&["--capacity", "30/m"], Some(nothing)),
        (&["--capacity", "9/s", "--key", "none"], Some(another)),
        (&["--capacity", "3/s", "--key", "none"], None),
    ] {
        let text = plan(burst(3), &[&html[..], options].concat()).out;
        let page = fs::read_to_string(&path).unwrap();
        assert_eq!(note.is_some(), text.contains("Notes:"), "{text}");
        assert!(note.is_none_or(|note| text.contains(note) && page.contains(note)), "{text}");
        assert!(!page.contains("Rust: 3 per 1s"), "the code may have another limit");
    }
}

#[test]
fn whole_seconds_are_noted() {
    let note = "all times are whole seconds";
    assert!(plan("1700000000 a\n1700000001 a\n", &[]).out.contains(note));
    assert!(!plan("1700000000 a\n1700000001.5 a\n", &[]).out.contains(note));
    assert!(!plan("1700000000 a\n1700000001 a\n", &["--windows", "10s"]).out.contains(note));
}

// === odd logs ===

#[test]
fn an_empty_log_and_one_of_garbage_plan_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (html, svg) = (folder.path().join("r.html"), folder.path().join("r.svg"));
    let files = ["--html", html.to_str().unwrap(), "--plot", svg.to_str().unwrap()];
    for log in ["", "what\nis\nthis\n"] {
        let options = ["--format", "epoch", "--capacity", "10/s"];
        let ran = plan(log, &[&options[..], &files].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        assert!(ran.out.starts_with("0 requests of standard input\n"), "{}", ran.out);
        assert!(ran.out.contains("no request was read, so nothing is proposed") && !ran.out.contains("Rust"));
        let report = planned(log, &options);
        assert_eq!(report["input"]["skipped"], log.lines().count());
        for window in report["windows"].as_array().unwrap() {
            assert_eq!((&window["limit"]["proposed"], &window["together_mean"]), (&value!(0), &Value::Null));
        }
        assert!(fs::read_to_string(&html).unwrap().ends_with("</html>\n"));
        assert!(fs::read_to_string(&svg).unwrap().trim_end().ends_with("</svg>"));
    }
}

#[test]
fn one_line_is_a_log() {
    let report = planned(burst(1), &[]);
    for window in report["windows"].as_array().unwrap() {
        assert_eq!((&window["limit"]["proposed"], &window["keys_alive"]), (&value!(1), &value!(1)));
        assert_eq!(
            (&window["together_mean"], &window["busiest_ends"]),
            (&Value::Null, &value!("2023-11-14T22:13:20.5Z"))
        );
    }
}

/// From 1970 to 2116, in any order: no loop over the years in between, and no sum that overflows.
#[test]
fn times_as_far_apart_as_they_can_be() {
    let log = "4611686018.4 a\n0 a\n4611686018.4 b\n1 a\n";
    let report = planned(log, &["--format", "epoch", "--windows", "1ns,1s,50000d"]);
    assert_eq!(report["input"]["out_of_order"], 2);
    let peaks: Vec<&Value> =
        report["windows"].as_array().unwrap().iter().map(|window| &window["peaks"]["max"]).collect();
    assert_eq!(peaks, [1, 1, 2]);
}

/// Sorting and the second pass both go through temporary files.
#[test]
fn a_long_log_backwards_is_planned_as_forwards() {
    let line = |i: usize| format!("{}.{:03} k{}\n", 1_700_000_000 + i / 300, i * 7 % 1000, i * i % 97);
    let forwards: String = (0..30_000).map(line).collect();
    let backwards: String = (0..30_000).rev().map(line).collect();
    let windows = |log| planned(log, &["--windows", "1s,1m"])["windows"].clone();
    assert_eq!(windows(forwards), windows(backwards));
}

// === files ===

#[test]
fn the_page_needs_nothing_else_and_trusts_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    // What strangers sent becomes text; Latin-1 bytes do, too.
    let key = b"<script>alert('x')</script>&\xe9";
    let log = [&b"1700000000.5 "[..], key, b"\n"].concat().repeat(3);
    let ran = plan(log, &["--html", path.to_str().unwrap(), "--refuse-at-most", "100%", "--format", "epoch"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\\xE9"), "{page}");
    for outside in ["<script", "src=", "@import", "url(", "<link rel=\"stylesheet", "fetch("] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The name space of SVG is a name, not an address to go to.
    let addresses = page.matches("://").count();
    assert_eq!(addresses, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
    assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (4, 4));
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
    assert_eq!(names(folder.path()), ["report.html"]);
}

#[test]
fn files_that_can_not_be_written_are_named_before_a_line_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/report.html");
    let ran = run(&["plan", "no such.log", "--html", missing.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(
        ran.err.starts_with(&format!("error: {}: can not be written: ", missing.display())),
        "{}",
        ran.err
    );
    let ran = run(&["replay", "no such.log", "--plot", "/missing/x.svg"]);
    assert!(ran.err.starts_with("error: /missing/x.svg: can not be written: "), "{}", ran.err);
}

#[test]
fn a_log_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (log, same) = (folder.path().join("a.svg"), folder.path().join(".").join("a.svg"));
    fs::write(&log, burst(1)).unwrap();
    for command in ["plan", "replay"] {
        let ran = run(&[command, log.to_str().unwrap(), "--plot", same.to_str().unwrap()]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
        assert!(ran.err.ends_with("a.svg is one of the logs, and would be overwritten\n"), "{}", ran.err);
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), burst(1));
}

/// What was there before stays as it was, and nothing lies beside it.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_leaves_no_half_written_file() {
    use std::{io::Write, process::Stdio, thread, time::Duration};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    fs::write(&path, "the report of yesterday").unwrap();
    let mut child = interruptible()
        .args(["plan", "-", "--format", "epoch", "--html", path.to_str().unwrap()])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(burst(100_000).as_bytes()).unwrap();
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let text = fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (2 - 1) != 0
    };
    for _ in 0..2_000 {
        if catches() {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert!(catches());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], &b""[..]));
    assert_eq!(names(folder.path()), ["report.html"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "the report of yesterday");
}

// === errors ===

#[test]
fn what_can_not_be_done_is_said() {
    let nine = "1s,2s,3s,4s,5s,6s,7s,8s,9s";
    let usage: [(&[&str], &str); 17] = [
        (&["--capacity", "18446744073709551615/ns"], "--capacity: limit 18446744073709551615 "),
        (
            &["--plot", "no such.svg", "--html", "./no such.svg"],
            "--plot and --html both name no such.svg, and one would be overwritten\n",
        ),
        (
            &["--windows", "soon"],
            "invalid value 'soon' for '--windows <SPAN,..>': `soon` is not a span such as ",
        ),
        (&["--windows", "1s,-1s"], "invalid value '-1s' for '--windows <SPAN,..>': `-1s` is not above 0"),
        (&["--windows", "0s"], "invalid value '0s' for '--windows <SPAN,..>': `0s` is not above 0"),
        (&["--windows", "60000d"], "--windows: window 5184000000s is not between 1ns and "),
        (
            &["--windows", "300000d"],
            "invalid value '300000d' for '--windows <SPAN,..>': `300000d` is longer than ",
        ),
        (&["--windows", nine], "--windows: 9 windows are more than 8\n"),
        (
            &["--refuse-at-most", "101%"],
            "invalid value '101%' for '--refuse-at-most <SHARE>': `101%` is not a share",
        ),
        (
            &["--refuse-at-most", "few"],
            "invalid value 'few' for '--refuse-at-most <SHARE>': `few` is not a share",
        ),
        (
            &["--capacity", "1200"],
            "invalid value '1200' for '--capacity <N/SPAN>': `1200` is not a rate such as ",
        ),
        (
            &["--capacity", "-1/s"],
            "invalid value '-1/s' for '--capacity <N/SPAN>': `-1/s` is not a rate such as ",
        ),
        (
            &["--headroom", "25%"],
            "the following required arguments were not provided:\n  --capacity <N/SPAN>",
        ),
        (
            &["--plot", "x.png"],
            "invalid value 'x.png' for '--plot <FILE>': `x.png` does not end in .svg, and ",
        ),
        (&["--key", "shoe-size"], "invalid value 'shoe-size' for '--key <KEY>'"),
        (&["--order", "file"], "unexpected argument '--order' found"),
        (
            &["--from", "2026-01-02", "--to", "2026-01-01"],
            "--from 2026-01-02T00:00:00Z is not before --to 2026-01-01T00:00:00Z",
        ),
    ];
    for (options, why) in usage {
        let ran = run(&[&SMALL[..], options].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(ran.err.starts_with(&format!("error: {why}")), "{options:?}: {}", ran.err);
    }
    for (args, why) in [
        (&["plan", "no such.log"][..], "error: no such.log: "),
        (&["plan", "small.log", "--strict"][..], "error: small.log:21: "),
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{args:?}");
        assert!(ran.err.starts_with(why) && ran.err.lines().count() == 1, "{args:?}: {}", ran.err);
    }
}

#[test]
fn the_help_tells_figures_examples_and_exit_codes() {
    let help = run(&["plan", "--help"]).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Examples: tollgate plan access.log",
        "[default: 1s,10s,1m]",
        "[default: 0.1%]",
        "[default: client]",
        "all exact",
        "at most 16 MiB in all",
        "Exit codes:",
        "130 interrupted (Ctrl-C): no file is left half-written",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
}
