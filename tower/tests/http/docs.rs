//! Every answer in the README is one that the layer gave, field by field; its program is that of the top README; the example runs.

use std::{env, process::Stdio};

use axum::response::Response;
use http::{HeaderName, header::CONTENT_LENGTH};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    process::Command,
};
use tollgate_tower::{BusinessCode, FIELDS, Fields, Legacy};

use crate::{
    answers::{both, example},
    support::{Connection, body},
};

const README: &str = include_str!("../../README.md");
const TOP: &str = include_str!("../../../README.md");

/// The blocks of the README in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    README.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// An answer's lines, in no certain order, and its body.
async fn rendered(answer: Response) -> (Vec<String>, String) {
    let mut lines = vec![format!("http/1.1 {}", answer.status())];
    // Of an answer that was let through, what the layer adds; of its own, all but what the router adds.
    let refused = answer.status() == 429;
    let shown = |name: &HeaderName| if refused { name != CONTENT_LENGTH } else { FIELDS.contains(name) };
    for (name, value) in answer.headers().iter().filter(|(name, _)| shown(name)) {
        lines.push(format!("{name}: {}", value.to_str().unwrap()));
    }
    lines.sort_unstable();
    (lines, if refused { body(answer).await } else { String::new() })
}

/// A block likewise.
fn written(block: &str) -> (Vec<String>, String) {
    let (head, body) = block.split_once("\n\n").unwrap_or((block, ""));
    let lower = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
        None => line.replace("HTTP", "http"),
    };
    let mut lines: Vec<String> = head.trim_end().lines().map(lower).collect();
    lines.sort_unstable();
    (lines, body.trim_end().to_owned())
}

#[tokio::test]
async fn every_answer_in_the_readme_was_given() {
    let (passed, refused) = both(example()).await;
    let moment = || std::time::Duration::from_secs(1_795_981_239);
    let older = example().fields(Fields::Draft7).legacy_fields(Legacy::Moment).unix_time(moment);
    let (older, _) = both(older).await;
    let (_, business) = both(example().reject(BusinessCode::new(42901, "too many requests"))).await;
    let given = [passed, refused, older, business];
    let blocks = blocks("http");
    assert_eq!(blocks.len(), given.len());
    for (block, answer) in blocks.into_iter().zip(given) {
        assert_eq!(written(block), rendered(answer).await);
    }
}

#[test]
fn the_top_readme_shows_the_same_program() {
    let [program] = blocks("rust,no_run")[..] else { panic!("more than one program") };
    assert!(TOP.contains(program), "{program}");
}

#[test]
fn the_example_is_short() {
    assert!(include_str!("../../examples/app.rs").lines().count() < 80);
}

/// `GET`, by this user; the status and the text of the answer.
async fn get(address: &str, path: &str, user: &str) -> (u16, String) {
    let mut connection = Connection::over(TcpStream::connect(address).await.unwrap());
    connection.send(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-user: {user}\r\n\r\n")).await;
    connection.whole_answer().await
}

#[tokio::test]
async fn the_example_limits_and_follows_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.txt");
    std::fs::write(&file, "1000 2\n").unwrap();
    // Beside this program, in the folder of examples, which the test command builds as well.
    let program = env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/app");
    let mut child = Command::new(program)
        .args([file.to_str().unwrap(), "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let address = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();

    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(get(&address, "/", "alice").await.0);
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(get(&address, "/", "bob").await, (200, "hello\n".into()));
    assert!(get(&address, "/status", "alice").await.1.ends_with("user: 0 of 2\n"));
    let (_, metrics) = get(&address, "/metrics", "").await;
    for line in ["tollgate_admitted_total 3", "tollgate_refused_total{policy=\"user\"} 1"] {
        assert!(metrics.lines().any(|it| it == line), "{line} in {metrics}");
    }

    std::fs::write(&file, "1000 7\n").unwrap();
    let start = std::time::Instant::now();
    while !get(&address, "/status", "alice").await.1.ends_with("user: 7 of 7\n") {
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "the file is not followed");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(get(&address, "/", "alice").await.0, 200);
}
