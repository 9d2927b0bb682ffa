//! Real servers under load: how many are let through is exact, by window and by key.

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::get};
use tollgate::{Algorithm, Keyed, Log, Manual, Window};
use tollgate_tower::{All, By, Header, Local, PeerIp, RateLimitLayer};

use crate::support::{Connection, Count, HOUR, Served, h2load, serve, status_of, until, wrk};

const LIMIT: u64 = 1_000;

fn counting(count: &Count) -> Router {
    let count = count.clone();
    Router::new().route(
        "/",
        get(move || async move {
            count.add();
            "hello"
        }),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrk_gets_exactly_the_limit_in_each_window() {
    let (clock, handled) = (Arc::new(Manual::new()), Count::default());
    let log = Log::builder(LIMIT, HOUR).build().unwrap();
    let layer = RateLimitLayer::builder(All::new(log)).clock(clock.clone()).build().unwrap();
    let served = serve(counting(&handled).layer(layer.clone())).await;
    for window in 1..=2 {
        let seen = wrk(&served, "", 3 * LIMIT).await;
        assert_eq!(handled.get(), window * LIMIT);
        assert!(seen.saw(LIMIT), "{seen:?}");
        clock.advance(HOUR);
    }
    let stats = layer.stats();
    assert_eq!((stats.admitted, handled.get()), (2 * LIMIT, 2 * LIMIT));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrk_gets_exactly_the_limit_of_each_key_and_no_more_than_that_of_all() {
    const USER: u64 = 50;
    let script = |users: u64| {
        format!(
            "local n = 0\nrequest = function() n = n + 1\n\
             return wrk.format('GET', '/', {{['x-user'] = 'user-' .. n % {users}}}) end"
        )
    };
    let handled = Count::default();
    let users = Keyed::builder(Log::builder(USER, HOUR).config().unwrap(), 1_000).build().unwrap();
    let global = Window::builder(LIMIT, HOUR).build().unwrap();
    let tiers = (All::new(global).named("global"), By::new(Header::new("x-user"), users).named("user"));
    let layer = RateLimitLayer::builder(tiers).clock(Manual::new()).build().unwrap();
    let served = serve(counting(&handled).layer(layer.clone())).await;

    // Ten users can not use up the global limit, and what they are refused does not count there.
    let seen = wrk(&served, &script(10), 3 * LIMIT).await;
    assert_eq!(handled.get(), 10 * USER);
    assert!(seen.saw(10 * USER), "{seen:?}");
    let (global, users) = layer.tiers();
    assert_eq!(global.algorithm().usage_at(0, tollgate::Nanos::ZERO), Some(10 * USER));
    for (user, used) in users.keyed().busiest_at(20, tollgate::Nanos::ZERO) {
        assert_eq!(used, USER, "{user}");
    }
    // A hundred could take five times as much as there is.
    let seen = wrk(&served, &script(100), 3 * LIMIT).await;
    assert_eq!(handled.get(), LIMIT);
    assert!(seen.saw(LIMIT - 10 * USER), "{seen:?}");
    assert_eq!(layer.stats().admitted, LIMIT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h2load_gets_exactly_the_limit() {
    let handled = Count::default();
    let log = Log::builder(LIMIT, HOUR).config().unwrap();
    let clients = Keyed::builder(log, 100).build().unwrap();
    let layer = RateLimitLayer::builder(By::new(PeerIp::new(), clients)).build().unwrap();
    let served = serve(counting(&handled).layer(layer.clone())).await;
    let seen = h2load(&served, 5_000).await;
    assert_eq!((seen.answers, seen.good, handled.get()), (5_000, LIMIT, LIMIT));
    let stats = layer.stats();
    assert_eq!((stats.admitted, stats.refused_by_limits()), (LIMIT, 5_000 - LIMIT));
}

/// A server that lets ten through, to a handler that takes its time.
async fn ten(handled: &Count, delay: Duration) -> (Served, RateLimitLayer<Local<All<Log>>>) {
    let log = Log::builder(10, HOUR).build().unwrap();
    let layer = RateLimitLayer::builder(All::new(log)).build().unwrap();
    let handled = handled.clone();
    let handler = async move |body: String| {
        tokio::time::sleep(delay).await;
        handled.add();
        body
    };
    let app = Router::new().route("/", get(handler.clone()).post(handler));
    (serve(app.layer(layer.clone())).await, layer)
}

#[tokio::test]
async fn a_connection_is_kept_through_refusals() {
    let handled = Count::default();
    let (served, _) = ten(&handled, Duration::ZERO).await;
    let mut connection = Connection::to(&served).await;
    for call in 0..30 {
        assert_eq!(connection.get("/").await, if call < 10 { 200 } else { 429 });
    }
    // Refused with a body that nobody reads: the connection answers once more, and is then free to close.
    connection.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello").await;
    assert_eq!(status_of(&connection.answer().await), 429);
    // Pipelined: each is asked about.
    let mut connection = Connection::to(&served).await;
    connection.send(&"GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3)).await;
    for _ in 0..3 {
        assert_eq!(status_of(&connection.answer().await), 429);
    }
    assert_eq!(handled.get(), 10);
}

#[tokio::test]
async fn slow_clients_are_charged_once_and_hold_up_nobody() {
    let handled = Count::default();
    let (served, layer) = ten(&handled, Duration::ZERO).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut connection = Connection::to(&served).await;
        connection.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-le").await;
        slow.push(connection);
    }
    assert_eq!(layer.stats().admitted, 0, "half a head is no request");
    let mut quick = Connection::to(&served).await;
    for _ in 0..4 {
        assert_eq!(quick.get("/").await, 200);
    }
    let mut under_way = Vec::new();
    for (asked, mut connection) in (5..).zip(slow) {
        connection.send("ngth: 3\r\n\r\na").await;
        let stats = || layer.stats();
        until("it is asked about", || stats().admitted + stats().refused_by_limits() == asked).await;
        if stats().refused_by_limits() == 0 {
            under_way.push(connection);
        } else {
            assert_eq!(status_of(&connection.answer().await), 429, "before the body is there");
        }
    }
    assert_eq!((under_way.len(), handled.get()), (6, 4), "bodies are still on their way");
    assert_eq!(quick.get("/").await, 429);
    for connection in &mut under_way {
        connection.send("b").await;
        connection.send("c").await;
        assert_eq!(status_of(&connection.answer().await), 200);
    }
    assert_eq!(handled.get(), 10);
}

#[tokio::test]
async fn who_hangs_up_is_charged_and_blocks_nobody() {
    let handled = Count::default();
    let (served, layer) = ten(&handled, HOUR).await;
    for call in 1..=10 {
        let mut connection = Connection::to(&served).await;
        connection.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        until("it is asked about", || layer.stats().admitted == call).await;
    }
    // They are gone, and what they took is not given back: they could come again at once.
    let mut connection = Connection::to(&served).await;
    assert_eq!(connection.get("/").await, 429);
    assert_eq!((handled.get(), layer.stats().admitted), (0, 10));
}
