//! Faults that other layers had in the field, one test each, named after the case. (F090: `src/client.rs`. F091 by paths:
//! `src/filter.rs`. F097: `tests/redis.rs`.)

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, routing::get as to};
use tollgate::{Algorithm, Keyed, Log, LogConfig, Manual, Nanos};
use tollgate_tower::{
    All, By, ClientIp, Fields, Header, Key, Legacy, Named, Peer, PeerIp, RateLimitLayer, Route, Tiers,
};

use crate::support::{Connection, Count, MINUTE, SECOND, admitted, ask, field, get, status, with};

fn log(limit: u64) -> LogConfig {
    Log::builder(limit, MINUTE).config().unwrap()
}

fn behind(tiers: impl Tiers + 'static) -> Router {
    let layer = RateLimitLayer::builder(tiers).clock(Manual::new()).build().unwrap();
    Router::new().route("/", to(|| async {})).layer(layer)
}

fn from(peer: &str, forwarded: &str) -> axum::extract::Request {
    let mut request = with(get("/"), "x-forwarded-for", forwarded);
    request.extensions_mut().insert(Peer(SocketAddr::new(peer.parse().unwrap(), 4711)));
    request
}

#[tokio::test]
async fn f089_the_left_end_of_x_forwarded_for_is_written_by_the_client() {
    let keyed = || Keyed::builder(log(100), 1_000).build().unwrap();
    let app = behind(By::new(ClientIp::x_forwarded_for(["10.0.0.1"]).unwrap(), keyed()));
    let mut good = 0;
    for n in 1..=200 {
        good += usize::from(status(&app, from("10.0.0.1", &format!("9.9.9.{n}, 203.0.113.7"))).await == 200);
    }
    assert_eq!(good, 100);
    // Not from the proxy: what the field says is ignored, and the other's budget is not touched.
    assert_eq!(admitted(&app, 150, || from("198.51.100.9", "203.0.113.7")).await, 100);

    let app = behind(By::new(ClientIp::x_forwarded_for([]).unwrap(), keyed()));
    let mut good = 0;
    for n in 1..=200 {
        good += usize::from(status(&app, from("10.0.0.1", &format!("203.0.113.{n}"))).await == 200);
    }
    assert_eq!(good, 100, "no proxy is listed, so the field is never read");
}

#[tokio::test]
async fn f091_other_spellings_of_the_same_route() {
    let handled = Count::default();
    let count = handled.clone();
    let keyed = Keyed::builder(log(10), 100).build().unwrap();
    let by = By::new(Route.or(Named("no route")), keyed);
    let layer = RateLimitLayer::builder(by).clock(Manual::new()).build().unwrap();
    let handler = move || {
        count.add();
        async {}
    };
    let app = Router::new().route("/api/{name}", to(handler)).layer(layer);
    assert_eq!(admitted(&app, 10, || get("/api/login")).await, 10);
    let spellings = [
        "//api/login",
        "/api//login",
        "/api/login/",
        "/api/./login",
        "/api/%6Cogin",
        "/API/login",
        "/api/LOGIN",
        "/api/login?x=1",
    ];
    for spelling in spellings {
        let status = status(&app, get(spelling)).await;
        assert!(status == 429 || status == 404, "{spelling}: {status}");
    }
    assert_eq!(handled.get(), 10, "whatever the router sends to the handler is refused");
    assert_eq!(status(&app, get("/api/%6Cogin")).await, 429, "one that it does send there");
}

#[tokio::test]
async fn f092_no_peer_address_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let by = PeerIp::new().or(Named("unix socket"));
    let app = behind(By::new(by, Keyed::builder(log(5), 100).build().unwrap()));
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let mut connection = Connection::over(tokio::net::UnixStream::connect(&path).await.unwrap());
    for call in 1..=6 {
        assert_eq!(connection.get("/").await, if call <= 5 { 200 } else { 429 });
    }
    server.abort();

    // By user, and by address where there is none: two addresses are two keys.
    let by = Header::new("x-user").or(PeerIp::new());
    let app = behind(By::new(by, Keyed::builder(log(5), 100).build().unwrap()));
    assert_eq!(admitted(&app, 6, || from("192.0.2.1", "")).await, 5);
    assert_eq!(admitted(&app, 6, || from("192.0.2.2", "")).await, 5);
    // A user by the name of an address is not that address.
    assert_eq!(admitted(&app, 6, || with(from("192.0.2.1", ""), "x-user", "192.0.2.1")).await, 5);

    // Nothing to go by, and nothing said about it: refused, and no limit is touched.
    let app = behind(By::new(PeerIp::new(), Keyed::builder(log(5), 100).build().unwrap()));
    let refused = ask(&app, get("/")).await;
    assert_eq!((refused.status().as_u16(), field(&refused, "retry-after")), (400, String::new()));
}

#[tokio::test]
async fn f093_retry_after_of_zero() {
    for (wait, expected) in [
        (1, "1"),
        (200_000_000, "1"),
        (999_999_999, "1"),
        (1_000_000_000, "1"),
        (1_000_000_001, "2"),
        (59_200_000_000, "60"),
    ] {
        let log = Log::builder(1, MINUTE).build().unwrap();
        let clock = Arc::new(Manual::new());
        let layer = RateLimitLayer::builder(All::new(log)).clock(clock.clone()).build().unwrap();
        let app = Router::new().route("/", to(|| async {})).layer(layer);
        assert_eq!(status(&app, get("/")).await, 200);
        clock.set(Nanos::from(MINUTE) - Nanos::from_nanos(wait));
        let refused = ask(&app, get("/")).await;
        assert_eq!(
            (refused.status().as_u16(), field(&refused, "retry-after")),
            (429, expected.into()),
            "{wait} ns"
        );
        // Who waits that long gets in.
        clock.advance(SECOND * expected.parse().unwrap());
        assert_eq!(status(&app, get("/")).await, 200);
    }
}

#[tokio::test]
async fn f094_is_reset_a_moment_or_a_span() {
    let refused = async |fields, legacy| {
        let log = Log::builder(1, MINUTE).build().unwrap();
        assert!(log.try_acquire_at(1, Nanos::ZERO));
        let layer = RateLimitLayer::builder(All::new(log))
            .clock(Manual::at(Nanos::from_millis(800)))
            .unix_time(|| Duration::from_millis(1_700_000_000_400))
            .fields(fields)
            .legacy_fields(legacy);
        let app = Router::new().route("/", to(|| async {})).layer(layer.build().unwrap());
        ask(&app, get("/")).await
    };
    let answer = refused(Fields::Draft6, Legacy::Moment).await;
    assert_eq!(field(&answer, "ratelimit-reset"), "60");
    assert_eq!(field(&answer, "x-ratelimit-reset"), "1700000060");
    let answer = refused(Fields::Draft10, Legacy::Span).await;
    assert_eq!(field(&answer, "ratelimit"), r#""default";r=0;t=60"#);
    assert_eq!(field(&answer, "x-ratelimit-reset"), "60");
}

#[tokio::test]
async fn f095_remaining_below_zero() {
    let layer = RateLimitLayer::builder(All::new(Log::builder(1, MINUTE).build().unwrap()))
        .clock(Manual::new())
        .fields(Fields::Draft6)
        .legacy_fields(Legacy::Span);
    let app = Router::new().route("/", to(|| async {})).layer(layer.build().unwrap());
    for _ in 0..4 {
        let answer = ask(&app, get("/")).await;
        assert_eq!(
            (field(&answer, "ratelimit-remaining"), field(&answer, "x-ratelimit-remaining")),
            ("0".into(), "0".into())
        );
    }
}

#[tokio::test]
async fn f096_a_429_that_a_cache_keeps() {
    let handled = Count::default();
    let count = handled.clone();
    let handler = move || async move {
        count.add();
        [("cache-control", "public, max-age=300")]
    };
    let layer = RateLimitLayer::builder(All::new(Log::builder(1, MINUTE).build().unwrap())).build().unwrap();
    let app = Router::new().route("/", to(handler)).layer(layer);
    assert_eq!(field(&ask(&app, get("/")).await, "cache-control"), "public, max-age=300");
    let refused = ask(&app, get("/")).await;
    assert_eq!((refused.status().as_u16(), field(&refused, "cache-control")), (429, "no-store".into()));
    assert_eq!((field(&refused, "retry-after"), handled.get()), ("60".into(), 1));
}
