//! `tollgate replay` as its users meet it: the table, the JSON, every error, pipes, terminals and Ctrl-C.
#![allow(missing_docs)]

mod common;

use std::fs;

use common::{golden, interruptible, json, replay, run, tollgate};
use serde_json::{Value, json as value};

/// The log of the golden tests, with options that make every algorithm refuse something.
const SMALL: [&str; 8] = ["replay", "small.log", "--limit", "10", "--per", "1s", "--key", "client"];

/// The text with the last column of the first table, the one that varies, masked.
fn masked(text: &str) -> String {
    let mut table = false;
    let mut masked = String::new();
    for line in text.lines() {
        let rest = line.len().saturating_sub("ns/check".len());
        if table && !line.is_empty() {
            masked.push_str(&line[..rest]);
            masked.push_str("      NS");
        } else {
            masked.push_str(line);
        }
        masked.push('\n');
        table = line.ends_with("ns/check") || table && !line.is_empty();
    }
    masked
}

/// The report with the one figure that varies taken out, after checking that it is there.
fn timeless(mut report: Value) -> Value {
    for result in report["results"].as_array_mut().unwrap() {
        let ns = result.as_object_mut().unwrap().remove("ns_per_check").unwrap();
        assert!(ns.as_f64().is_some_and(|ns| ns > 0.0), "{ns}");
    }
    report
}

/// A log of `n` requests at one time, in the `epoch` format.
fn burst(n: usize) -> String {
    "1700000000 a\n".repeat(n)
}

// === the table ===

#[test]
fn the_table_of_all_algorithms() {
    let ran = run(&SMALL);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    golden("all.txt", &masked(&ran.out));
}

#[test]
fn the_table_of_several_rules() {
    let ran = run(&[&SMALL[..], &["--rule", "4/100ms", "--order", "file", "--top", "1"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    golden("rules.txt", &masked(&ran.out));
}

#[test]
fn the_table_of_one_limit_for_all() {
    let ran = run(&["replay", "small.log", "small.log", "--limit", "40", "--burst", "5", "--buckets", "20"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    golden("one.txt", &masked(&ran.out));
}

#[test]
fn an_empty_log_is_no_error() {
    let ran = replay("", &["--format", "epoch"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.starts_with("0 requests of standard input\n"), "{}", ran.out);
    let report = json("", &["--format", "epoch"]);
    assert_eq!((&report["input"]["first"], &report["input"]["keys"]), (&Value::Null, &value!(0)));
    for result in report["results"].as_array().unwrap() {
        assert_eq!((&result["admitted"], &result["ns_per_check"]), (&value!(0), &value!(0.0)));
    }
}

// === the JSON ===

#[test]
fn the_json_of_all_algorithms() {
    let ran = run(&[&SMALL[..], &["--json"]].concat());
    assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (Some(0), "", 1));
    let report = timeless(serde_json::from_str(&ran.out).unwrap());
    golden("all.json", &format!("{:#}\n", report));
}

/// The promised names, their types and what binds them together.
#[test]
fn the_json_keeps_its_promise() {
    let log = burst(30) + "1700000001 b\nnonsense\n1700000001.5 c\n";
    let report = json(
        log,
        &["--limit", "20", "--key", "client", "--format", "epoch", "--to", "2023-11-14T22:13:21.2Z"],
    );
    let names = |value: &Value| {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(names(&report), ["input", "left_out", "results", "rules", "top_refused"]);
    assert_eq!(
        report["input"],
        value!({
            "files": ["standard input"], "lines": 33, "requests": 31, "skipped": 1, "filtered": 1, "keys": 2,
            "first": "2023-11-14T22:13:20Z", "last": "2023-11-14T22:13:21Z", "order": "time",
            "out_of_order": 0, "zone_assumed": 0,
            "bad": [{
                "file": "standard input", "line": 32, "text": "nonsense",
                "why": report["input"]["bad"][0]["why"],
            }],
            "trailing_garbage": [],
        })
    );
    assert!(report["input"]["bad"][0]["why"].as_str().is_some_and(|why| !why.is_empty()));
    assert_eq!(report["rules"], value!([{"limit": 20, "window_ns": 1_000_000_000}]));
    let algorithms =
        ["log", "window", "compact", "fixed", "two-window", "token", "leaky", "paced", "sampled", "wheel"];
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|result| &result["algorithm"]).collect::<Vec<_>>(), algorithms);
    for result in results {
        let n = |name: &str| result[name].as_u64().unwrap();
        assert_eq!(n("admitted") + n("refused"), 31, "{result}");
        assert!(n("false_refusals") <= n("refused") && n("bytes_per_key") >= 8, "{result}");
        let [rule] = result["rules"].as_array().unwrap().as_slice() else { panic!("{result}") };
        assert_eq!(
            rule["over"].as_u64(),
            Some(rule["peak"].as_u64().unwrap().saturating_sub(20)),
            "{result}"
        );
        assert!(result["ns_per_check"].as_f64().is_some_and(|ns| ns > 0.0), "{result}");
    }
    assert_eq!(results[0]["false_refusals"], 0);
    assert_eq!(report["top_refused"], value!([{"key": "a", "refused": 10, "requests": 30}]));
}

#[test]
fn the_paced_queue_tells_waits_and_drops() {
    let options = ["--limit", "10", "--burst", "4", "--algorithm", "paced", "--format", "epoch"];
    let report = json(burst(8), &options);
    let paced = &report["results"][0];
    // One in service, four behind it, 100 ms apart; three find the queue full.
    assert_eq!(
        (&paced["admitted"], &paced["refused"], &paced["drops"]),
        (&value!(5), &value!(3), &value!(3))
    );
    assert_eq!(paced["waits"]["max_ns"], 400_000_000);
    let p50 = paced["waits"]["p50_ns"].as_u64().unwrap();
    assert!(p50.abs_diff(200_000_000) < 200_000, "{p50}");
    assert_eq!(paced["waits"]["p99_ns"], 400_000_000);
    // By departures the five stand in one window; at the drops only the first had left.
    assert_eq!((&paced["rules"][0]["peak"], &paced["false_refusals"]), (&value!(5), &value!(3)));
}

#[test]
fn with_several_rules_a_refusal_is_false_only_if_every_rule_had_room() {
    let log = "1700000000 a\n1700000000 a\n1700000000.05 a\n1700000000.1 a\n1700000000.5 a\n1700000000.9 a\n";
    let options = ["--limit", "3", "--rule", "2/100ms", "--algorithm", "log", "--format", "epoch"];
    let report = json(log, &options);
    let exact = &report["results"][0];
    assert_eq!((&exact["admitted"], &exact["refused"]), (&value!(3), &value!(3)));
    assert_eq!(exact["rules"], value!([{"peak": 3, "over": 0}, {"peak": 2, "over": 0}]));
    assert_eq!(exact["false_refusals"], 0);
    assert_eq!(report["left_out"], value!([]));
}

#[test]
fn all_leaves_out_what_does_not_take_the_rules_and_says_so() {
    let report = json(burst(3), &["--rule", "2/100ms", "--format", "epoch"]);
    let names = |list: &str| -> Vec<String> {
        let list = report[list].as_array().unwrap().iter();
        list.map(|item| item["algorithm"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("results"), ["log", "window"]);
    assert_eq!(
        names("left_out"),
        ["compact", "fixed", "two-window", "token", "leaky", "paced", "sampled", "wheel"]
    );
    assert_eq!(report["left_out"][0]["why"], "takes one rule, and 2 are given");

    // A value that other windows would take, and a default that nobody gave.
    for (options, why) in [
        (["--buckets", "3"], "window 1s is not a multiple of 333.333333ms, one of 3 buckets of 1s"),
        (["--per", "5ns"], "10 buckets are not between 1 and 5"),
    ] {
        let report = json(burst(3), &[&options[..], &["--limit", "3", "--format", "epoch"]].concat());
        assert_eq!(report["left_out"], value!([{"algorithm": "window", "why": why}]));
    }
    // None of the algorithms that are left has a use for it.
    let rules = ["--rule", "2/100ms", "--burst", "0", "--format", "epoch"];
    assert_eq!(json(burst(3), &rules)["results"].as_array().unwrap().len(), 2);
}

#[test]
fn the_first_algorithm_asked_for_ranks_the_keys() {
    let log = "1700000000.9 a\n".repeat(10) + &"1700000001 a\n".repeat(10) + &"1700000001 b\n".repeat(15);
    let options = |first| {
        [
            "--algorithm",
            first,
            "--algorithm",
            "paced",
            "--limit",
            "10",
            "--key",
            "client",
            "--format",
            "epoch",
        ]
    };
    let top = |first| json(&log, &options(first))["top_refused"].clone();
    let key = |key, refused, requests| value!({"key": key, "refused": refused, "requests": requests});
    assert_eq!(top("log"), value!([key("a", 10, 20), key("b", 5, 15)]));
    assert_eq!(top("fixed"), value!([key("b", 5, 15)]));
    let none = json(&log, &["--limit", "10", "--format", "epoch"]);
    assert_eq!(none["top_refused"], value!([]));
}

/// Equal counts: the lesser key first, byte by byte, in every run.
#[test]
fn ties_are_broken_by_key() {
    let log: String = (0..300).map(|i| format!("1700000000 k{:02}\n", (i * 37) % 50)).collect();
    let report = json(&log, &["--limit", "1", "--key", "client", "--top", "3", "--format", "epoch"]);
    let keys: Vec<&Value> = report["top_refused"].as_array().unwrap().iter().map(|top| &top["key"]).collect();
    assert_eq!(keys, ["k00", "k01", "k02"]);
}

#[test]
fn keys_that_are_not_utf8_are_shown_all_the_same() {
    let log = [&b"1700000000 \xff\xfe\n"[..], b"1700000000 \xff\xfd\n"].concat().repeat(2);
    let report = json(log, &["--limit", "1", "--key", "client", "--format", "epoch"]);
    let key = |key| value!({"key": key, "refused": 1, "requests": 2});
    assert_eq!(report["top_refused"], value!([key(r"\xFF\xFD"), key(r"\xFF\xFE")]));
}

#[test]
fn two_runs_are_equal() {
    let run = |args: &[&str]| masked(&run(args).out);
    assert_eq!(run(&SMALL), run(&SMALL));
    let log: String = (0..20_000)
        .map(|i| format!("{}.{:03} k{}\n", 1_700_000_000 + i / 500, i * 7919 % 1000, i * i % 97))
        .collect();
    let options = ["--limit", "3", "--key", "client", "--format", "epoch", "--top", "100"];
    let [first, second] = [0, 1].map(|_| timeless(json(&log, &options)));
    assert_eq!(first, second);
}

// === errors ===

#[test]
fn what_can_not_be_done_is_said() {
    let usage: [(&[&str], &str); 31] = [
        (
            &["--limit", "-1"],
            "invalid value '-1' for '--limit <N>': `-1` is not a whole number from 0 to 18446744073709551615",
        ),
        (
            &["--limit", "1.5"],
            "invalid value '1.5' for '--limit <N>': `1.5` is not a whole number from 0 to ",
        ),
        (
            &["--limit", "18446744073709551616"],
            "invalid value '18446744073709551616' for '--limit <N>': `18446744073709551616` is not a whole",
        ),
        (
            &["--buckets", "-1"],
            "invalid value '-1' for '--buckets <K>': `-1` is not a whole number from 0 to ",
        ),
        (&["--burst", "x"], "invalid value 'x' for '--burst <N>': `x` is not a whole number from 0 to "),
        (&["--per", "-1s"], "invalid value '-1s' for '--per <SPAN>': `-1s` is not above 0"),
        (&["--rule", "-1/1s"], "invalid value '-1/1s' for '--rule <N/SPAN>': `-1/1s` is not a rule such as "),
        (&["--format", "csv:1", "--key", "client"], "there is no key client: CSV has columns, as in csv:2"),
        (&["--per", "soon"], "invalid value 'soon' for '--per <SPAN>': `soon` is not a span such as 100ms"),
        (&["--per", "0s"], "invalid value '0s' for '--per <SPAN>': `0s` is not above 0"),
        (
            &["--rule", "200"],
            "invalid value '200' for '--rule <N/SPAN>': `200` is not a rule such as 200/100ms",
        ),
        (&["--rule", "x/1s"], "invalid value 'x/1s' for '--rule <N/SPAN>'"),
        (&["--algorithm", "sieve"], "invalid value 'sieve' for '--algorithm <NAME>'"),
        (&["--key", "shoe-size"], "invalid value 'shoe-size' for '--key <KEY>'"),
        (&["--order", "random"], "invalid value 'random' for '--order <ORDER>'"),
        (&["--format", "morse"], "invalid value 'morse' for '--format <FORMAT>'"),
        (&["--from", "yesterday"], "invalid value 'yesterday' for '--from <TIME>'"),
        (&["--to", "tomorrow"], "invalid value 'tomorrow' for '--to <TIME>'"),
        (&["--top", "many"], "invalid value 'many' for '--top <N>'"),
        (
            &["--from", "2026-01-02", "--to", "2026-01-01"],
            "--from 2026-01-02T00:00:00Z is not before --to 2026-01-01T00:00:00Z",
        ),
        (&["--colour"], "unexpected argument '--colour' found"),
        (
            &["--rule", "9/1m", "--algorithm", "fixed"],
            "--algorithm fixed: fixed takes one rule, and 2 are given (only log and window take several)",
        ),
        (
            &["--buckets", "0", "--algorithm", "window"],
            "--algorithm window: 0 buckets are not between 1 and ",
        ),
        (
            &["--per", "1s", "--rule", "9/700ms", "--algorithm", "window"],
            "--algorithm window: window 1s is not a multiple of 70ms, one of 10 buckets of 700ms\n",
        ),
        (
            &["--buckets", "3", "--algorithm", "window"],
            "--algorithm window: window 1s is not a multiple of 333.333333ms, one of 3 buckets of 1s\n",
        ),
        (&["--buckets", "0"], "window: 0 buckets are not between 1 and 65536 (--buckets)\n"),
        (
            &["--buckets", "65537", "--per", "65537s"],
            "window: 65537 buckets are not between 1 and 65536 (--buckets)\n",
        ),
        (&["--burst", "0"], "token: burst 0 is not between 1 and 1383505805528 (--burst)\n"),
        (
            &["--burst", "18446744073709551615"],
            "token: burst 18446744073709551615 is not between 1 and 1383505805528 (--burst)\n",
        ),
        (&["--burst", "0", "--algorithm", "token"], "--algorithm token: burst 0 is not between 1 and "),
        (&["--per", "200000d", "--algorithm", "log"], "--algorithm log: window 17280000000s is not between "),
    ];
    for (options, why) in usage {
        let ran = run(&[&["replay", "small.log"], options].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{options:?}");
        assert!(ran.err.starts_with(&format!("error: {why}")), "{options:?}: {}", ran.err);
    }
    let many = ["--rule", "9/1s"].repeat(8);
    let ran = run(&[&["replay", "small.log"], many.as_slice()].concat());
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert_eq!(ran.err, "error: no algorithm takes these rules: log: 9 rules are not between 1 and 8\n");
    for (args, code) in
        [(&[][..], 2), (&["replay"][..], 2), (&["pay"][..], 2), (&["replay", "--help"][..], 0)]
    {
        assert_eq!(run(args).code, Some(code), "{args:?}");
    }
}

#[test]
fn what_can_not_be_read_is_named() {
    for (args, why) in [
        (&["replay", "no such.log"][..], "error: no such.log: "),
        (&["replay", "."][..], "error: .: "),
        (&["replay", "small.log", "no such.log"][..], "error: no such.log: "),
        (&["replay", "small.log", "--strict"][..], "error: small.log:21: "),
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{args:?}");
        assert!(ran.err.starts_with(why) && ran.err.lines().count() == 1, "{args:?}: {}", ran.err);
    }
}

#[test]
fn what_follows_a_compressed_log_is_noted() {
    use std::io::Write;
    let mut log = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    log.write_all(burst(3).as_bytes()).unwrap();
    let log = log.finish().unwrap();
    let padded = [&log[..], &[0; 512]].concat();
    let garbage = [&padded[..], b"garbage"].concat();
    let note = "standard input: what follows its compressed bytes was left alone";
    for (log, left) in [(padded, value!([])), (garbage, value!(["standard input"]))] {
        let input = &json(&log, &["--strict"])["input"];
        assert_eq!((&input["requests"], &input["trailing_garbage"]), (&value!(3), &left));
        assert_eq!(replay(&log, &[]).out.contains(note), left != value!([]));
    }
    let ran = replay(&log[..log.len() - 1], &[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.starts_with("error: standard input: can not be read: "), "{}", ran.err);
}

/// The help says so.
#[test]
fn a_line_without_its_key_and_a_heading_are_not_read() {
    let log = "time,who\n1700000000,a\n1700000001,-\n1700000002,a\n";
    let options = ["--format", "csv:1", "--key", "csv:2"];
    let report = json(log, &options);
    let bad: Vec<&Value> =
        report["input"]["bad"].as_array().unwrap().iter().map(|bad| &bad["line"]).collect();
    assert_eq!((&report["input"]["requests"], bad), (&value!(2), vec![&value!(1), &value!(3)]));
    for (log, error) in [
        (log, "error: standard input:1: its time can not be read: time,who\n"),
        (&log[9..], "error: standard input:2: the key's column is empty: 1700000001,-\n"),
    ] {
        let ran = replay(log, &[&options[..], &["--strict"]].concat());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(1), "", error));
    }
}

#[test]
fn the_help_tells_exit_codes_and_figures() {
    let help = run(&["replay", "--help"]).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Exit codes:",
        "130",
        "false refusals",
        "arrival + wait",
        "--algorithm",
        "[default: 100]",
        "[default: 10]",
        "about 8 bytes x limit",
        "in TMPDIR; where that is not set, in /var/tmp",
        "A line without its key counts as one that can not be read",
        "and so the heading of a CSV file",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(run(&["--version"]).out.starts_with("tollgate "));
}

// === around it ===

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    use std::{io::Write, process::Stdio};
    let mut child = tollgate()
        .args(["replay", "-", "--format", "epoch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(burst(10).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_can_not_be_written_is_an_error() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = tollgate().args(SMALL).stdout(full()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err.starts_with("error: standard output: "), "{err}");
    // Nowhere left to complain: still no panic, and the exit code stays.
    let status = tollgate().args(["replay", "no such.log"]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

/// Runs the tool on a terminal of its own.
#[cfg(target_os = "linux")]
fn on_a_terminal(args: &str, colours: bool) -> String {
    let shell = format!("{} {args}", env!("CARGO_BIN_EXE_tollgate"));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &shell, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
    script.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    if !colours {
        script.env("NO_COLOR", "1");
    }
    let output = script.stdin(std::process::Stdio::null()).output().expect("`script` of util-linux");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn colours_and_the_bar_are_for_terminals() {
    let args = SMALL.join(" ");
    let seen = on_a_terminal(&args, true);
    assert!(seen.contains("\x1b[1malgorithm"), "{seen}");
    assert!(!on_a_terminal(&args, false).contains("\x1b[1m"));
    // The bar stands on standard error, so a table in a file is free of it and of colours.
    let bar = on_a_terminal(&format!("{args} >/dev/null"), true);
    assert!(bar.contains("reading") && !bar.contains("algorithm"), "{bar}");
    let piped = run(&SMALL);
    assert!(!piped.out.contains('\x1b') && piped.err.is_empty());
}

/// A script starts its background jobs with interrupts ignored, so that Ctrl-C ends only what stands in front.
#[cfg(target_os = "linux")]
#[test]
fn interrupts_ignored_from_the_start_stay_ignored() {
    use std::process::{Command, Stdio};
    let tool = env!("CARGO_BIN_EXE_tollgate");
    // The tool has had its say about signals and waits for input when it is interrupted.
    let script = format!(
        "trap '' INT; mkfifo pipe; '{tool}' replay --format epoch - <pipe & exec 3>pipe; \
         until readlink /proc/$!/exe | grep -q tollgate; do sleep 0.01; done; sleep 0.5; \
         kill -INT $!; sleep 0.1; echo '1700000000 a' >&3; exec 3>&-; wait $!"
    );
    let folder = tempfile::tempdir().unwrap();
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(folder.path()).stdin(Stdio::null()).output();
    let output = output.unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert!(output.stdout.starts_with(b"1 request of standard input"));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_with_130_and_leaves_nothing() {
    use std::{
        io::Write,
        process::{Command, Stdio},
        thread,
        time::Duration,
    };
    let folder = tempfile::tempdir().unwrap();
    let mut child = interruptible()
        .args(["replay", "-", "--format", "epoch", "--key", "client"])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Enough for the sort to spill to disk; then it waits for more, with its standard input still open.
    let mut stdin = child.stdin.take().unwrap();
    let key = "k".repeat(4000);
    for i in 0..20_000 {
        writeln!(stdin, "{} {key}", 1_700_000_000 - i).unwrap();
    }
    stdin.flush().unwrap();
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
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], &b""[..]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
