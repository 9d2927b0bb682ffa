//! The reading as a whole: field cases, files of every kind, and what must hold for any input.

use std::{cell::RefCell, io::Write, path::PathBuf};

use proptest::prelude::*;
use tempfile::{NamedTempFile, TempDir};

use super::*;

const SECOND: u64 = 1_000_000_000;

impl Progress for () {
    fn bytes(&self, _: u64) {}
    fn phase(&self, _: &str) {}
}

type Requests = Vec<(u64, String)>;

fn file(bytes: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes.as_ref()).unwrap();
    file
}

fn options(files: &[&NamedTempFile]) -> Options {
    Options {
        files: files.iter().map(|file| file.path().to_owned()).collect(),
        format: Format::Auto,
        key: KeySpec::Client,
        order: Order::Time,
        from: None,
        to: None,
        strict: false,
    }
}

fn try_run(options: &Options) -> Result<(Requests, Summary), Error> {
    let mut requests = Vec::new();
    let summary = read::<Error>(options, &(), &mut |request| {
        requests.push((request.time, String::from_utf8_lossy(request.key).into_owned()));
        Ok(())
    })?;
    assert_eq!(summary.lines, summary.requests + summary.skipped + summary.filtered, "I1");
    assert_eq!(summary.requests, requests.len() as u64);
    Ok((requests, summary))
}

fn run(options: &Options) -> (Requests, Summary) {
    try_run(options).unwrap()
}

/// Lines of the common format, by client and date.
fn common(lines: &[(&str, &str)]) -> String {
    lines.iter().map(|(client, date)| format!("{client} - - [{date}] \"GET / HTTP/1.1\" 200 5\n")).collect()
}

// === field cases ===

#[test]
fn f103_the_zone_offset_is_ignored() {
    let dates = [
        "08/Aug/2016:16:49:16 +0800",
        "08/Aug/2016:08:49:16 +0000",
        "08/Aug/2016:05:19:16 -0330",
        "08/Aug/2016:22:34:16 +1345",
    ];
    let log = file(common(&dates.map(|date| ("192.0.2.1", date))));
    let (requests, summary) = run(&options(&[&log]));
    assert_eq!(requests, vec![(1_470_646_156 * SECOND, "192.0.2.1".into()); 4]);
    assert_eq!((summary.out_of_order, summary.zone_assumed), (0, 0));
}

#[test]
fn f104_the_clock_was_corrected_while_the_log_was_written() {
    let dates = ["12:48:50", "12:39:12", "12:39:24", "12:39:24"].map(|t| format!("02/Jan/2020:{t} +0000"));
    let lines: Vec<_> = ["a", "a", "a", "b"].into_iter().zip(dates.iter().map(String::as_str)).collect();
    let log = file(common(&lines));
    let clock = |time: u64| time / SECOND % 86_400;
    let at = |h: u64, m: u64, s: u64| h * 3_600 + m * 60 + s;
    let order = |order| {
        let (requests, summary) = run(&Options { order, ..options(&[&log]) });
        assert_eq!((summary.requests, summary.out_of_order), (4, 3));
        requests.into_iter().map(|(time, key)| (clock(time), key)).collect::<Vec<_>>()
    };
    let [late, early, middle] = [at(12, 48, 50), at(12, 39, 12), at(12, 39, 24)];
    let pairs = |list: [(u64, &str); 4]| list.map(|(time, key)| (time, key.to_owned())).to_vec();
    assert_eq!(order(Order::Time), pairs([(early, "a"), (middle, "a"), (middle, "b"), (late, "a")]));
    assert_eq!(order(Order::File), pairs([(late, "a"), (early, "a"), (middle, "a"), (middle, "b")]));
}

#[test]
fn f104_half_of_the_lines_are_out_of_order() {
    let dates: Vec<_> = (0..60).map(|i| format!("02/Jan/2020:12:00:{:02} +0000", i * 7 % 60)).collect();
    let lines: Vec<_> = dates.iter().map(|date| ("a", date.as_str())).collect();
    let (requests, summary) = run(&options(&[&file(common(&lines))]));
    assert_eq!(summary.requests, 60);
    assert!(summary.out_of_order >= 30, "{}", summary.out_of_order);
    assert!(requests.is_sorted());
}

#[test]
fn f105_request_fields_that_are_not_http() {
    let requests = [
        "GET / HTTP/1.1",
        r"\x16\x03\x01",
        "",
        "-",
        r"x00Cookie: mstshash=Administr",
        r"\x05\x01\x00",
        "GET /a HTTP/1.1",
    ];
    let mut text: String = requests
        .map(|request| format!("192.0.2.1 - - [08/Aug/2016:16:49:16 +0800] \"{request}\" 400 0\n"))
        .concat();
    text.push_str("\0\0\0\n192.0.2.1 - - [cut\n");
    let log = file(text);
    let (used, summary) = run(&options(&[&log]));
    assert_eq!((used.len(), summary.lines, summary.skipped), (7, 9, 2));
    let bad: Vec<_> = summary.bad.iter().map(|bad| (bad.line, bad.why, bad.text.as_str())).collect();
    assert_eq!(
        bad,
        [(8, "it has no [date]", "\\u{0}\\u{0}\\u{0}"), (9, "it has no [date]", "192.0.2.1 - - [cut")]
    );
}

#[test]
fn f106_quotes_inside_quotes() {
    let agents = [
        r#"Dalvik/2.1.0 (Linux; U; Android 6.0; Alba 10\" Build/LMY47I)"#,
        r#"\"quoted\""#,
        r"trailing\",
        r"C:\\x\\",
    ];
    let text = agents.map(|agent| {
        let request = "192.0.2.1 - - [08/Aug/2016:16:49:16 +0800] \"GET / HTTP/1.1\" 200 5";
        format!("{request} \"r\\\"r\" \"{agent}\" extra\n")
    });
    let log = file(text.concat());
    let (requests, summary) = run(&options(&[&log]));
    assert_eq!(requests, vec![(1_470_646_156 * SECOND, "192.0.2.1".into()); 4]);
    assert_eq!(summary.skipped, 0);
    let (requests, _) = run(&Options { key: "header:user-agent".parse().unwrap(), ..options(&[&log]) });
    assert_eq!(requests.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), agents);
}

#[test]
fn f107_odd_user_and_host_columns_and_a_missing_offset() {
    let log = file(concat!(
        "192.0.2.1 - \"\" [21/Jun/2012:23:49:36 +0000] \"GET / HTTP/1.1\" 200 5\n",
        "192.0.2.2 - John Doe [21/Jun/2012:23:49:36 +0000] \"GET / HTTP/1.1\" 200 5\n",
        "www.example.com:80 ::1 - - [21/Jun/2012:23:49:36 +0000] \"GET / HTTP/1.1\" 200 5\n",
        "192.0.2.4 - - [21/Jun/2012:23:49:36] \"GET / HTTP/1.1\" 200 5\n",
    ));
    let (requests, summary) = run(&options(&[&log]));
    let clients = ["192.0.2.1", "192.0.2.2", "::1", "192.0.2.4"];
    assert_eq!(requests, clients.map(|client| (1_340_322_576 * SECOND, client.to_owned())));
    assert_eq!((summary.zone_assumed, summary.skipped), (1, 0));
    let (requests, summary) = run(&Options { key: KeySpec::User, ..options(&[&log]) });
    assert_eq!(requests, [(1_340_322_576 * SECOND, "John Doe".into())]);
    assert_eq!((summary.skipped, summary.bad[0].why), (3, "it has no user"));
}

#[test]
fn f108_ipv6_and_host_names_as_clients() {
    let clients = ["::1", "2001:41d0:8:f69::1", "node3.example.net", "192.0.2.1"];
    let lines: Vec<_> =
        clients.iter().flat_map(|client| [(*client, "08/Aug/2016:16:49:16 +0800"); 3]).collect();
    let (requests, _) = run(&options(&[&file(common(&lines))]));
    let keys: Vec<_> = requests.iter().map(|(_, key)| key.as_str()).collect();
    assert_eq!(keys, clients.map(|client| [client; 3]).concat());
}

#[test]
fn f109_replay_by_log_time_not_by_the_wall_clock() {
    let mut text = common(&[("a", "08/Aug/2016:07:00:00 +0000"), ("a", "08/Aug/2016:08:00:00 +0000")]);
    text.push_str(&common(&[("a", "08/Aug/2016:09:00:00 +0000"); 60]));
    let log = file(text);
    let (requests, _) = run(&options(&[&log]));
    assert_eq!(requests[1].0 - requests[0].0, 3_600 * SECOND);
    assert!(requests[2..].iter().all(|request| *request == requests[2]));
    assert_eq!(run(&options(&[&log])), run(&options(&[&log])));
}

// === files ===

#[test]
fn compressed_files_read_like_plain_ones() {
    let text = common(&[("a", "08/Aug/2016:07:00:00 +0000"), ("b", "08/Aug/2016:08:00:00 +0000")]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let two = [gzip.clone(), gzip.clone()].concat();
    let plain = run(&options(&[&file(&text)])).0;
    assert_eq!(run(&options(&[&file(&gzip)])).0, plain);
    assert_eq!(run(&options(&[&file(zstd::encode_all(text.as_bytes(), 1).unwrap())])).0, plain);
    assert_eq!(run(&options(&[&file(two)])).0.len(), 4);
}

#[test]
fn several_files_are_told_apart_and_merged_by_time() {
    let first = file(common(&[("a", "08/Aug/2016:07:00:00 +0000"), ("b", "08/Aug/2016:09:00:00 +0000")]));
    let second = file("1470643200 c\n1470646800 d\n");
    let empty = file("");
    let (requests, summary) = run(&options(&[&first, &empty, &second]));
    let keys: Vec<_> = requests.iter().map(|(_, key)| key.as_str()).collect();
    assert_eq!(keys, ["a", "c", "b", "d"]);
    assert_eq!((summary.files.len(), summary.lines, summary.out_of_order), (3, 4, 1));
    assert_eq!(summary.first, Some(1_470_639_600 * SECOND));
    assert_eq!(summary.last, Some(1_470_646_800 * SECOND));
}

#[test]
fn nothing_read_is_nothing_reported() {
    let (requests, summary) = run(&options(&[&file("")]));
    assert_eq!((requests.len(), summary.first, summary.last, summary.lines), (0, None, None, 0));
}

#[test]
fn marks_crlf_and_a_missing_last_newline() {
    let text = common(&[("a", "08/Aug/2016:07:00:00 +0000"), ("b", "08/Aug/2016:08:00:00 +0000")]);
    let windows = format!("\u{feff}{}", text.trim_end().replace('\n', "\r\n"));
    assert_eq!(run(&options(&[&file(windows)])).0, run(&options(&[&file(text)])).0);
}

#[test]
fn keys_need_not_be_text() {
    let log = file(b"1700000000 \xff\xfe\n1700000000 \xff\xfd\n");
    let mut keys = Vec::new();
    let summary = read::<Error>(&options(&[&log]), &(), &mut |request| {
        keys.push(request.key.to_vec());
        Ok(())
    });
    assert_eq!(summary.unwrap().requests, 2);
    assert_eq!(keys, [b"\xff\xfe", b"\xff\xfd"]);
}

// === options ===

#[test]
fn sorting_goes_by_the_start_of_a_request_and_file_order_by_its_line() {
    let tail = |msec: &str| {
        format!("a - - [14/Nov/2023:22:13:20 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" {msec}\n")
    };
    let log =
        file(tail("1700000020.000 0.000") + &tail("1700000000.500 0.400") + &tail("1700000000.900 0.850"));
    let half = 1_700_000_000 * SECOND;
    let milliseconds = |order| {
        let (requests, summary) = run(&Options { order, ..options(&[&log]) });
        (requests.iter().map(|(time, _)| (time - half) / 1_000_000).collect::<Vec<_>>(), summary.out_of_order)
    };
    // The first line's last columns are no time of that line, 20 s away.
    assert_eq!(milliseconds(Order::Time), (vec![0, 50, 100], 1));
    assert_eq!(milliseconds(Order::File), (vec![0, 500, 900], 0));
}

#[test]
fn from_is_the_first_moment_and_to_the_first_one_after() {
    let log = file("100 a\n200 b\n300 c\nx\n");
    let limits = |from, to| {
        let (requests, summary) = run(&Options { from, to, ..options(&[&log]) });
        (requests.into_iter().map(|(_, key)| key).collect::<String>(), summary.filtered, summary.skipped)
    };
    assert_eq!(limits(None, None), ("abc".into(), 0, 1));
    assert_eq!(limits(Some(200 * SECOND), None), ("bc".into(), 1, 1));
    assert_eq!(limits(None, Some(200 * SECOND)), ("a".into(), 2, 1));
    assert_eq!(limits(Some(200 * SECOND), Some(300 * SECOND)), ("b".into(), 2, 1));
}

#[test]
fn only_the_first_bad_lines_are_kept_and_all_are_counted() {
    let log = file("1 a\n".to_owned() + &"bad\n".repeat(100));
    let (_, summary) = run(&options(&[&log]));
    assert_eq!((summary.skipped, summary.bad.len()), (100, BAD_MAX));
    assert_eq!(summary.bad[0].line, 2);
}

#[test]
fn strict_ends_at_the_first_bad_line() {
    let log = file("1 a\n2 b\nbad\n3 c\n");
    let error = try_run(&Options { strict: true, ..options(&[&log]) }).unwrap_err();
    let name = log.path().display();
    assert_eq!(error.to_string(), format!("{name}:3: its time can not be read: bad"));
}

#[test]
fn csv_lines_may_hold_line_breaks() {
    let log = file("when,agent\n1700000000,\"a\nb\"\n1700000001,c\n");
    let options =
        Options { format: "csv:1".parse().unwrap(), key: "csv:2".parse().unwrap(), ..options(&[&log]) };
    let (requests, summary) = run(&options);
    assert_eq!(requests.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(), ["a\nb", "c"]);
    assert_eq!((summary.lines, summary.skipped, summary.bad[0].line), (3, 1, 1));
}

// === errors ===

#[test]
fn every_error_names_the_file_and_what_is_wrong() {
    let folder = TempDir::new().unwrap();
    let message = |options: &Options| try_run(options).unwrap_err().to_string();
    let missing = folder.path().join("missing.log");
    let at = |path: PathBuf| Options { files: vec![path], ..options(&[]) };
    assert!(message(&at(missing.clone())).starts_with(&format!("{}: can not be read: ", missing.display())));
    assert!(
        message(&at(folder.path().into()))
            .starts_with(&format!("{}: can not be read: ", folder.path().display()))
    );

    let odd = file("hello\n");
    let expected = format!("{}: no known format reads its first lines", odd.path().display());
    assert!(message(&options(&[&odd])).starts_with(&expected));

    let log = file("1700000000 a\n");
    let expected = format!("{}: there is no key path: ", log.path().display());
    assert!(message(&Options { key: KeySpec::Path, ..options(&[&log]) }).starts_with(&expected));
    let given = Options { key: KeySpec::Path, format: Format::Epoch, ..options(&[]) };
    assert!(message(&given).starts_with("there is no key path: "));

    let text: String = (0..50_000_u64).map(|i| format!("{} a{}\n", 1_700_000_000 + i, i * i)).collect();
    let torn = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let torn = file(&torn[..torn.len() * 3 / 4]);
    let message = message(&options(&[&torn]));
    assert!(message.contains("can not be read after line "), "{message}");
    let error = io::ErrorKind::StorageFull.into();
    let spill = Error::Spill { folder: "/full".into(), error }.to_string();
    assert!(spill.starts_with("/full: no temporary file") && spill.contains("TMPDIR"), "{spill}");
}

#[test]
fn what_the_sink_says_ends_the_reading() {
    #[derive(Debug, PartialEq)]
    struct Enough;
    impl From<Error> for Enough {
        fn from(error: Error) -> Self {
            unreachable!("{error}")
        }
    }
    let log = file("1 a\n2 b\n3 c\n");
    for order in [Order::Time, Order::File] {
        let mut calls = 0;
        let result = read(&Options { order, ..options(&[&log]) }, &(), &mut |_| {
            calls += 1;
            if calls == 2 { Err(Enough) } else { Ok(()) }
        });
        assert_eq!((result, calls), (Err(Enough), 2));
    }
}

#[test]
fn what_is_shown_of_a_line_is_short_and_safe() {
    assert_eq!(shown(b"a\x1b[31m\xffb\t\xc2\x9b"), "a\\u{1b}[31m\u{fffd}b\\t\\u{9b}");
    assert_eq!(shown(&[b'x'; 200]), "x".repeat(120) + "...");
}

#[test]
fn progress_hears_every_byte_and_phase() {
    #[derive(Default)]
    struct Heard(RefCell<(u64, Vec<String>)>);
    impl Progress for Heard {
        fn bytes(&self, n: u64) {
            self.0.borrow_mut().0 += n;
        }
        fn phase(&self, name: &str) {
            self.0.borrow_mut().1.push(name.into());
        }
    }
    let heard = Heard::default();
    let (one, two) = (file("1 a\n"), file("2 b\n"));
    read::<Error>(&options(&[&one, &two]), &heard, &mut |_| Ok(())).unwrap();
    assert_eq!(heard.0.take(), (8, ["reading", "reading", "sorting"].map(String::from).to_vec()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the bytes: no panic, and every line is used, skipped or filtered, as I1 says.
    #[test]
    fn totals_add_up(
        lines in proptest::collection::vec(prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..60),
            (0..100_u32, "[a-c]").prop_map(|(time, key)| format!("{time}.5 {key}").into_bytes()),
            (0..60_u32, "[ -~]{0,9}").prop_map(|(second, user)| {
                format!("::1 - {user} [08/Aug/2016:16:49:{second:02} +0800] \"GET /\"").into_bytes()
            }),
        ], 0..30),
        format in proptest::sample::select(
            &["combined", "json:t", "csv:1", "epoch", "nginx:$msec $remote_addr"][..]
        ),
    ) {
        let text = lines.join(&b'\n');
        let format: Format = format.parse().unwrap();
        let from = Some(20 * SECOND);
        let (requests, _) = run(&Options { format, key: KeySpec::None, from, ..options(&[&file(text)]) });
        prop_assert!(requests.is_sorted());
    }

    /// Sorting with little memory gives what sorting with much gives.
    #[test]
    fn the_budget_does_not_show(
        times in proptest::collection::vec(0..50_u64, 0..200),
        budget in 1..2_000_usize,
    ) {
        let text: String = times.iter().enumerate().map(|(i, time)| format!("{time} {i}\n")).collect();
        let log = file(text);
        let options = Options { format: Format::Epoch, ..options(&[&log]) };
        let mut requests = Vec::new();
        sorted::<Error>(&options, &(), budget, &mut |request| {
            requests.push((request.time, String::from_utf8(request.key.to_vec()).unwrap()));
            Ok(())
        }).unwrap();
        prop_assert_eq!(requests, run(&options).0);
    }
}
