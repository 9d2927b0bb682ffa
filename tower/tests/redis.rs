//! The layer with a limit on a server: what clients see while it is well, and while it is not.

use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::{Request, Response};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tollgate_redis::{Limiter, OnFailure};
use tollgate_redis_server::Server;
use tollgate_tower::{Header, Key, Named, NoKey, RateLimitLayer, Redis};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tracing_subscriber::fmt::MakeWriter;

const MINUTE: Duration = Duration::from_secs(60);

fn manager(server: &Server) -> ConnectionManager {
    ConnectionManager::new_lazy_with_config(server.client(), ConnectionManagerConfig::new()).unwrap()
}

/// Patient, so that a busy machine is no failure.
fn builder(limit: u64) -> tollgate_redis::Builder {
    Limiter::builder("api", limit, MINUTE).deadline(Duration::from_secs(10))
}

fn request(user: Option<&str>) -> Request<()> {
    let mut request = Request::new(());
    if let Some(user) = user {
        request.headers_mut().insert("x-user", user.parse().unwrap());
    }
    request
}

fn handler() -> impl Service<Request<()>, Response = Response<String>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    service_fn(|_: Request<()>| async { Ok(Response::new(String::new())) })
}

/// Status, `Retry-After`, `RateLimit`, `RateLimit-Policy`.
fn told(answer: &Response<String>) -> (u16, String, String, String) {
    let field = |name: &str| {
        answer.headers().get(name).map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    };
    (answer.status().as_u16(), field("retry-after"), field("ratelimit"), field("ratelimit-policy"))
}

fn of(status: u16, retry_after: &str) -> (u16, String, String, String) {
    (status, retry_after.into(), String::new(), String::new())
}

#[tokio::test]
async fn two_instances_share_one_limit() {
    let server = Server::start().await;
    let layer = || {
        let limiter = builder(5).build(manager(&server)).unwrap();
        RateLimitLayer::redis(Redis::new(Header::new("x-user"), limiter).named("user")).build().unwrap()
    };
    let (one, other) = (layer(), layer());
    let mut good = Vec::new();
    for turn in 0..8 {
        let layer = if turn % 2 == 0 { &one } else { &other };
        let answer = layer.layer(handler()).oneshot(request(Some("alice"))).await.unwrap();
        let (status, retry_after, limit, policy) = told(&answer);
        assert_eq!(policy, r#""user";q=5;w=60"#);
        let left = 4_u32.saturating_sub(turn);
        assert!(limit.starts_with(&format!("\"user\";r={left};t=")), "{limit}");
        assert_eq!(retry_after.is_empty(), status == 200);
        good.push(status == 200);
    }
    assert_eq!(good, [true, true, true, true, true, false, false, false]);
    assert_eq!((one.stats().admitted, other.stats().admitted), (3, 2));
    assert_eq!(one.stats().refused, [("user".to_owned(), 1)]);
    let bob = one.layer(handler()).oneshot(request(Some("bob"))).await.unwrap();
    assert_eq!(bob.status(), 200);
}

#[tokio::test]
async fn requests_without_a_key_and_costs() {
    let server = Server::start().await;
    let keyless = |no_key: Option<NoKey>| {
        let mut limits = Redis::new(Header::new("x-user"), builder(5).build(manager(&server)).unwrap());
        if let Some(no_key) = no_key {
            limits = limits.no_key(no_key);
        }
        RateLimitLayer::redis(limits).build().unwrap()
    };
    let refused = keyless(None).layer(handler()).oneshot(request(None)).await.unwrap();
    assert_eq!(told(&refused), of(400, ""));
    let free = keyless(Some(NoKey::Admit)).layer(handler()).oneshot(request(None)).await.unwrap();
    assert_eq!(told(&free), of(200, ""));

    let by = Header::new("x-user").or(Named("nobody"));
    let limits = Redis::new(by, builder(5).build(manager(&server)).unwrap());
    let layer = RateLimitLayer::redis(limits).cost(|_| 3).build().unwrap();
    for (user, expected) in [(None, 200), (None, 429), (Some("nobody"), 200)] {
        assert_eq!(layer.layer(handler()).oneshot(request(user)).await.unwrap().status(), expected);
    }
    let never = RateLimitLayer::redis(Redis::new(Named("all"), builder(5).build(manager(&server)).unwrap()));
    let never = never.cost(|_| 6).build().unwrap();
    let answer = never.layer(handler()).oneshot(request(None)).await.unwrap();
    assert_eq!(told(&answer), (429, "".into(), r#""default";r=0"#.into(), r#""default";q=5;w=60"#.into()));
}

/// What was logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Logged {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn f097_the_middleware_when_its_parts_fail() {
    let logged = Logged::default();
    tracing_subscriber::fmt().with_ansi(false).with_writer(logged.clone()).init();
    let mut server = Server::start().await;
    server.kill();
    let layer = |on_failure| {
        let limiter = builder(2).deadline(Duration::from_millis(20)).on_failure(on_failure);
        let limiter = limiter.build(manager(&server)).unwrap();
        RateLimitLayer::redis(Redis::new(Named("all"), limiter)).build().unwrap()
    };
    let (open, closed, local) = (layer(OnFailure::Open), layer(OnFailure::Closed), layer(OnFailure::Local));
    let ask =
        async |layer: &RateLimitLayer<_>| told(&layer.layer(handler()).oneshot(request(None)).await.unwrap());
    for _ in 0..5 {
        assert_eq!(ask(&open).await, of(200, ""));
        assert_eq!(ask(&closed).await, of(503, "1"));
    }
    assert_eq!((open.stats().degraded, open.stats().admitted), (5, 5));
    assert_eq!((closed.stats().degraded, closed.stats().unavailable), (5, 5));
    for expected in [200, 200, 429, 429] {
        let (status, retry_after, limit, policy) = ask(&local).await;
        assert_eq!((status, limit, policy), (expected, String::new(), String::new()));
        assert_eq!(retry_after.is_empty(), status == 200);
    }
    assert_eq!((local.stats().degraded, local.stats().refused_by_limits()), (4, 2));
    let problem = closed.layer(handler()).oneshot(request(None)).await.unwrap();
    assert_eq!(problem.headers()["cache-control"], "no-store");
    assert_eq!(
        problem.body(),
        r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"detail":"The limit can not be checked at the moment; retry in 1 s."}"#
    );
    let degraded = || {
        let text = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
        let of =
            |what: &str| text.lines().filter(|line| line.contains("WARN") && line.contains(what)).count();
        (of("without their server"), of("by their server again"))
    };
    assert_eq!(degraded(), (3, 0), "one line for each layer, and not one for each request");

    server.restart().await;
    let start = Instant::now();
    while ask(&open).await.2.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "not back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(degraded(), (3, 1));
}

#[tokio::test]
async fn the_service_that_was_made_ready_is_the_one_called() {
    let server = Server::start().await;
    let limits = Redis::new(Named("all"), builder(50).build(manager(&server)).unwrap());
    let layer = RateLimitLayer::redis(limits).build().unwrap();
    // A place is had by `poll_ready`, and a clone has none: to call one that was not made ready panics there.
    let mut service = ServiceBuilder::new().layer(layer).concurrency_limit(1).service(handler());
    for _ in 0..3 {
        assert_eq!(service.ready().await.unwrap().call(request(None)).await.unwrap().status(), 200);
    }
}
