//! What went wrong in the field with tools that read access logs, end to end.
#![allow(missing_docs)]

mod common;

use common::{json, plan, planned, replay};
use serde_json::{Value, json as value};

/// Admitted and refused by the exact log.
fn counts(report: &Value) -> (u64, u64) {
    let log = &report["results"][0];
    assert_eq!(log["algorithm"], "log");
    (log["admitted"].as_u64().unwrap(), log["refused"].as_u64().unwrap())
}

/// A plan's busiest window of any key, and its requests, in windows of `window`.
fn peak(log: impl AsRef<[u8]>, window: &str) -> (u64, u64) {
    let report = planned(log, &["--windows", window]);
    let requests = report["input"]["requests"].as_u64().unwrap();
    (report["windows"][0]["peaks"]["max"].as_u64().unwrap(), requests)
}

/// A line in the combined format.
fn line(client: &str, time: &str) -> String {
    format!("{client} - - [{time}] \"GET / HTTP/1.1\" 200 2 \"-\" \"-\"\n")
}

#[test]
fn f103_the_zone_offset_is_ignored() {
    for (one, other) in [
        ("08/Aug/2016:16:49:16 +0800", "08/Aug/2016:08:49:16 +0000"),
        ("08/Aug/2016:05:19:16 -0330", "08/Aug/2016:22:34:16 +1345"),
    ] {
        let log = line("192.0.2.1", one) + &line("192.0.2.1", other);
        let report = json(log, &["--limit", "1", "--per", "1s", "--key", "client"]);
        assert_eq!(counts(&report), (1, 1), "{one}, {other}");
        assert_eq!(report["input"]["first"], "2016-08-08T08:49:16Z");
        assert_eq!(report["input"]["last"], "2016-08-08T08:49:16Z");
        assert_eq!(peak(line("192.0.2.1", one) + &line("192.0.2.1", other), "1s"), (2, 2));
    }
}

#[test]
fn f104_the_clock_was_corrected_while_the_log_was_written() {
    let at = |client, time: &str| line(client, &format!("10/Oct/2020:{time} +0000"));
    let log = at("a", "12:48:50") + &at("a", "12:39:12") + &at("a", "12:39:24") + &at("b", "12:39:24");
    let options = ["--limit", "1", "--per", "10s", "--key", "client"];
    let by_time = json(&log, &options);
    let by_file = json(&log, &[&options[..], &["--order", "file"]].concat());
    assert_eq!((by_time["input"]["order"].as_str(), counts(&by_time)), (Some("time"), (4, 0)));
    // The older lines of `a` take 12:48:50.
    assert_eq!((by_file["input"]["order"].as_str(), counts(&by_file)), (Some("file"), (2, 2)));
    for report in [by_time, by_file] {
        assert_eq!(report["input"]["requests"], 4);
        assert_eq!(report["input"]["out_of_order"], 3);
    }
    let said = |order| replay(&log, &["--key", "client", "--order", order]).out;
    assert!(said("time").contains("3 lines out of order; order time: sorted by time"), "{}", said("time"));
    assert!(said("file").contains("3 lines out of order; order file: a key's time never goes back"));

    // Every second line half a minute late.
    let tangled: String = (0..60)
        .map(|i| at("a", &format!("12:00:{:02}", if i % 2 == 0 { 30 + i / 2 } else { i / 2 })))
        .collect();
    let options = ["--limit", "1", "--per", "1s", "--key", "client"];
    let by_time = json(&tangled, &options);
    let by_file = json(&tangled, &[&options[..], &["--order", "file"]].concat());
    assert_eq!(counts(&by_time), (60, 0));
    assert_eq!(counts(&by_file), (30, 30));
    assert_eq!(by_file["input"]["out_of_order"], 30);
    // A plan goes by time, and says so.
    assert_eq!((peak(&log, "10s"), peak(&tangled, "1s")), ((1, 4), (1, 60)));
    let said = plan(&tangled, &[]).out;
    assert!(said.contains("30 lines out of order; order time: sorted by time"), "{said}");
}

#[test]
fn f105_request_fields_that_are_not_http() {
    let odd = |request: &str| {
        format!("192.0.2.9 - - [10/Oct/2020:12:00:00 +0000] \"{request}\" 400 0 \"-\" \"-\"\n")
    };
    let log = line("192.0.2.9", "10/Oct/2020:12:00:00 +0000")
        + &odd(r"\x16\x03\x01")
        + &odd("")
        + &odd("-")
        + &odd("x00Cookie: mstshash=Administr")
        + "what a line\n"
        + &line("192.0.2.9", "10/Oct/2020:12:00:00 +0000");
    let report = json(&log, &["--limit", "4", "--key", "client"]);
    assert_eq!(counts(&report), (4, 2));
    let input = &report["input"];
    assert_eq!(
        (&input["lines"], &input["requests"], &input["skipped"]),
        (&value!(7), &value!(6), &value!(1))
    );
    assert_eq!((&input["bad"][0]["line"], &input["bad"][0]["text"]), (&value!(6), &value!("what a line")));
    let ran = replay(&log, &["--key", "client"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("1 of 7 lines could not be read\n    standard input:6: "), "{}", ran.out);
    let ran = replay(&log, &["--key", "client", "--strict"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.starts_with("error: standard input:6: "), "{}", ran.err);
    assert_eq!(peak(&log, "1s"), (6, 6));
    let said = plan(&log, &[]).out;
    assert!(said.contains("1 of 7 lines could not be read\n    standard input:6: "), "{said}");
    assert_eq!(plan(&log, &["--strict"]).code, Some(1));
}

#[test]
fn f106_quotes_inside_quotes() {
    let with = |referer: &str, agent: &str, more: &str| {
        let begin = r#"192.0.2.7 - - [10/Oct/2020:12:00:00 +0000] "GET / HTTP/1.1" 200 2"#;
        format!("{begin} \"{referer}\" \"{agent}\"{more}\n")
    };
    let log = with("-", r#"Dalvik/2.1.0 (Linux; Alba 10\" Build/LMY47I)"#, "")
        + &with(r#"http://example.com/?q=\"a b\""#, "curl", "")
        + &with("-", r"ends in a backslash\\", "")
        + &with("-", "curl", " \"-\" extra");
    let report = json(&log, &["--limit", "3", "--key", "client", "--format", "combined"]);
    assert_eq!(counts(&report), (3, 1));
    assert_eq!(report["input"]["skipped"], 0);
    assert_eq!(report["top_refused"], value!([{"key": "192.0.2.7", "refused": 1, "requests": 4}]));
    assert_eq!(peak(&log, "1s"), (4, 4));
}

#[test]
fn f107_odd_user_and_host_columns_missing_offset() {
    let log = "192.0.2.1 - \"\" [21/Jun/2012:23:49:36 +0000] \"GET / HTTP/1.1\" 200 2 \"-\" \"-\"\n\
               192.0.2.1 - John Doe [21/Jun/2012:23:49:36 +0000] \"GET / HTTP/1.1\" 200 2 \"-\" \"-\"\n\
               192.0.2.1 - - [21/Jun/2012:23:49:36] \"GET / HTTP/1.1\" 200 2 \"-\" \"-\"\n";
    let report = json(log, &["--limit", "1", "--key", "client"]);
    assert_eq!(counts(&report), (1, 2));
    assert_eq!(report["input"]["zone_assumed"], 1);
    let text = replay(log, &["--key", "client"]).out;
    assert_eq!(text.matches("1 line without a time zone, taken as UTC").count(), 1, "{text}");

    let hosts =
        "www.example.com:80 ::1 - - [21/Jun/2012:23:49:36 +0000] \"GET / HTTP/1.1\" 200 2 \"-\" \"-\"\n"
            .repeat(2);
    let report = json(&hosts, &["--limit", "1", "--key", "client"]);
    assert_eq!(report["top_refused"], value!([{"key": "::1", "refused": 1, "requests": 2}]));
    assert_eq!((peak(log, "1s"), peak(hosts, "1s")), ((3, 3), (2, 2)));
    let text = plan(log, &[]).out;
    assert_eq!(text.matches("1 line without a time zone, taken as UTC").count(), 1, "{text}");
}

#[test]
fn f108_ipv6_and_host_names_as_clients() {
    let clients = ["192.0.2.1", "2001:41d0:8:f69::1", "::1", "node3.example.net"];
    let log: String = clients
        .iter()
        .flat_map(|client| (0..3).map(move |s| line(client, &format!("10/Oct/2020:12:00:0{s} +0000"))))
        .collect();
    let report = json(&log, &["--limit", "2", "--per", "60s", "--key", "client"]);
    assert_eq!(counts(&report), (8, 4));
    let made = planned(&log, &["--windows", "60s"]);
    assert_eq!((&made["input"]["keys"], &made["windows"][0]["peaks"]["p50"]), (&value!(4), &value!(3)));
    let top: Vec<Value> =
        clients.iter().map(|client| value!({"key": client, "refused": 1, "requests": 3})).collect();
    assert_eq!(report["top_refused"], value!(top));
}

#[test]
fn f109_replay_by_log_time_not_by_the_wall_clock() {
    let log = line("a", "10/Oct/2020:12:00:00 +0000") + &line("a", "10/Oct/2020:13:00:00 +0000");
    let started = std::time::Instant::now();
    let report = json(&log, &["--limit", "1", "--per", "60s", "--key", "client"]);
    assert_eq!(counts(&report), (2, 0));
    assert_eq!((peak(&log, "60s"), peak(&log, "1h"), peak(&log, "3601s")), ((1, 2), (1, 2), (2, 2)));
    let burst = line("a", "10/Oct/2020:12:00:00 +0000").repeat(60);
    let options = ["--limit", "10", "--per", "1s", "--key", "client"];
    let [first, second] = [0, 1].map(|_| json(&burst, &options));
    assert_eq!(counts(&first), (10, 50));
    assert_eq!(counts(&second), (10, 50));
    assert!(started.elapsed().as_secs() < 60, "an hour of log took as long as a wall clock's");
}
