//! Servers on loopback, and clients of them.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::{Router, body::Body, extract::Request, response::Response};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinHandle,
};
use tower::ServiceExt;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A server that ends with the test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) fn by(address: SocketAddr, task: JoinHandle<()>) -> Self {
        Self { address, task }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves on a free port; HTTP/1.1 and HTTP/2.
pub(crate) async fn serve(app: Router) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    let task = tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    Served::by(address, task)
}

/// How often something happened.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicU64>);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}: not in 30 s");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn get(path: &str) -> Request {
    Request::builder().uri(path).body(Body::empty()).unwrap()
}

pub(crate) fn with(mut request: Request, name: &'static str, value: &str) -> Request {
    request.headers_mut().append(name, value.parse().unwrap());
    request
}

/// One request, with no server between.
pub(crate) async fn ask(app: &Router, request: Request) -> Response {
    app.clone().oneshot(request).await.unwrap()
}

pub(crate) async fn status(app: &Router, request: Request) -> u16 {
    ask(app, request).await.status().as_u16()
}

/// How many of so many equal requests are let through.
pub(crate) async fn admitted(app: &Router, calls: usize, request: impl Fn() -> Request) -> usize {
    let mut admitted = 0;
    for _ in 0..calls {
        match status(app, request()).await {
            200 => admitted += 1,
            429 => {}
            other => panic!("{other}"),
        }
    }
    admitted
}

/// A field, or nothing; its lines joined if there are several.
pub(crate) fn field(response: &Response, name: &str) -> String {
    let lines: Vec<&str> =
        response.headers().get_all(name).iter().map(|line| line.to_str().unwrap()).collect();
    lines.join(" | ")
}

pub(crate) async fn body(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// A connection that sends text and reads answers one after the other.
pub(crate) struct Connection<S>(S);

impl Connection<TcpStream> {
    pub(crate) async fn to(served: &Served) -> Self {
        Self(TcpStream::connect(served.address).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self(stream)
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// The status and the body of the next answer.
    pub(crate) async fn whole_answer(&mut self) -> (u16, String) {
        let (head, body) = self.read().await;
        (status_of(&head), body)
    }

    /// The head of the next answer; its body is read and dropped.
    pub(crate) async fn answer(&mut self) -> String {
        self.read().await.0
    }

    async fn read(&mut self) -> (String, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    /// One request on this connection; its status.
    pub(crate) async fn get(&mut self, path: &str) -> u16 {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        status_of(&self.answer().await)
    }
}

pub(crate) fn status_of(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// What a load generator saw: answers in all, and those of 2xx.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) answers: u64,
    pub(crate) good: u64,
    /// Answers that it may have had and not counted.
    pub(crate) uncounted_max: u64,
}

impl Seen {
    /// Whether it saw so many answers of 2xx, as far as it counts.
    pub(crate) fn saw(&self, good: u64) -> bool {
        (self.good..=self.good + self.uncounted_max).contains(&good)
    }
}

async fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).kill_on_drop(true).output().await;
    let output = output.unwrap_or_else(|error| panic!("{program} (see ci/test.sh): {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The number before some word.
fn number_before(text: &str, word: &str) -> Option<u64> {
    let before = text.split(word).next().filter(|before| before.len() < text.len())?;
    before.split([' ', '\n']).next_back()?.parse().ok()
}

/// HTTP/1.1 by wrk, second after second until it saw so many answers; `script` is Lua. What is under way when a second is over,
/// on 16 connections, it does not count.
pub(crate) async fn wrk(served: &Served, script: &str, answers: u64) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.lua");
    std::fs::write(&path, script).unwrap();
    let url = format!("http://{}/", served.address);
    let mut seen = Seen { answers: 0, good: 0, uncounted_max: 0 };
    while seen.answers < answers {
        let text = output("wrk", &["-t2", "-c16", "-d1s", "-s", path.to_str().unwrap(), &url]).await;
        let more = number_before(&text, " requests in").unwrap_or_else(|| panic!("{text}"));
        assert!(more > 0, "{text}");
        let bad = text.split("Non-2xx or 3xx responses: ").nth(1);
        let bad: u64 = bad.map_or(0, |rest| rest.lines().next().unwrap().trim().parse().unwrap());
        seen.answers += more;
        seen.good += more - bad;
        seen.uncounted_max += 16;
    }
    seen
}

/// HTTP/2 by h2load: so many requests on 4 connections, 10 at once on each.
pub(crate) async fn h2load(served: &Served, requests: u64) -> Seen {
    let (url, requests) = (format!("http://{}/", served.address), requests.to_string());
    let text = output("h2load", &["-n", &requests, "-c4", "-m10", &url]).await;
    let done = number_before(&text, " done,").unwrap_or_else(|| panic!("{text}"));
    let good = number_before(&text, " 2xx,").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(number_before(&text, " 5xx"), Some(0), "{text}");
    Seen { answers: done, good, uncounted_max: 0 }
}
