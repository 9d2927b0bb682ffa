//! What does a request pay for the layer: beside no layer, and beside tower_governor? All in one run, by turns.
//!
//! In process, one thread, no network: a request of one of 1,000 peers is made, asked about, handed to a handler that answers at
//! once, and dropped. Every answer's status is asserted. Printed are the fastest and the median round of each row, and what
//! they are above the row without a layer.
//!
//! An argument is the number of rounds, 101 by default.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    extract::ConnectInfo,
    http::{Request, Response, StatusCode},
};
use tollgate::{Gcra, GcraBuilder, Keyed, Log};
use tollgate_tower::{All, By, Fields, PeerIp, RateLimitLayer, Tiers};
use tower::{Layer, Service, service_fn};
use tower_governor::{
    GovernorLayer,
    governor::GovernorConfigBuilder,
    key_extractor::{GlobalKeyExtractor, KeyExtractor, PeerIpKeyExtractor},
};

const PEERS: u32 = 1_000;
const CALLS: u32 = 2_000;
const HOUR: Duration = Duration::from_secs(3_600);

/// Nanoseconds a request, in one round.
type Row = (&'static str, Box<dyn FnMut() -> f64>);

fn handler() -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone {
    service_fn(|_: Request<Body>| std::future::ready(Ok(Response::new(Body::empty()))))
}

fn request(call: u32) -> Request<Body> {
    let [.., high, low] = (call % PEERS).to_be_bytes();
    let mut request = Request::new(Body::empty());
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, high, low], 4711))));
    request
}

/// A future that is ready at once, as all of these are.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready at once"),
    }
}

fn ask<S>(service: &mut S, call: u32) -> StatusCode
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    now(std::future::poll_fn(|context| service.poll_ready(context))).unwrap();
    now(service.call(request(call))).unwrap().status()
}

fn row<S>(name: &'static str, expected: StatusCode, mut service: S) -> Row
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + 'static,
{
    // What there is to be had is taken before the first round.
    for peer in 0..PEERS {
        ask(&mut service, peer);
    }
    let round = move || {
        let start = Instant::now();
        for call in 0..CALLS {
            assert_eq!(ask(&mut service, call), expected, "{name}: not the path it names");
        }
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (name, Box::new(round))
}

/// More than anybody asks for, or one an hour.
fn bucket(expected: StatusCode) -> GcraBuilder {
    match expected {
        StatusCode::OK => Gcra::builder(1_000_000_000, Duration::from_secs(1)).burst(1_000_000),
        _ => Gcra::builder(1, HOUR),
    }
}

fn ours(name: &'static str, expected: StatusCode, tiers: impl Tiers + 'static, fields: Fields) -> Row {
    let layer = RateLimitLayer::builder(tiers).fields(fields).build().unwrap();
    row(name, expected, layer.layer(handler()))
}

fn by_peer(expected: StatusCode) -> impl Tiers + 'static {
    let keyed = Keyed::builder(bucket(expected).config().unwrap(), 10_000).build().unwrap();
    By::new(PeerIp::new(), keyed)
}

fn all_and_log_by_peer(expected: StatusCode) -> impl Tiers + 'static {
    let limit = if expected == StatusCode::OK { 100 } else { 1 };
    let window = if expected == StatusCode::OK { Duration::from_nanos(1) } else { HOUR };
    let keyed = Keyed::builder(Log::builder(limit, window).config().unwrap(), 2_000).build().unwrap();
    let global = All::new(bucket(StatusCode::OK).build().unwrap());
    (global.named("global"), By::new(PeerIp::new(), keyed))
}

fn theirs<K>(name: &'static str, expected: StatusCode, key: K, fields: bool) -> Row
where
    K: KeyExtractor + Clone + Send + Sync + 'static,
    K::Key: Send + Sync + 'static,
{
    let (period, burst) =
        if expected == StatusCode::OK { (Duration::from_nanos(1), 1_000_000) } else { (HOUR, 1) };
    let mut builder = GovernorConfigBuilder::default();
    let mut builder = builder.period(period).burst_size(burst).key_extractor(key);
    if fields {
        let config = builder.use_headers().finish().unwrap();
        return row(name, expected, GovernorLayer::new(config).layer(handler()));
    }
    row(name, expected, GovernorLayer::new(builder.finish().unwrap()).layer(handler()))
}

fn rows(expected: StatusCode) -> Vec<Row> {
    let all = || All::new(bucket(expected).build().unwrap());
    vec![
        ours("tollgate, one for all", expected, all(), Fields::None),
        ours("tollgate, one for all, fields", expected, all(), Fields::Draft10),
        ours("tollgate, by peer", expected, by_peer(expected), Fields::None),
        ours("tollgate, by peer, fields", expected, by_peer(expected), Fields::Draft10),
        ours(
            "tollgate, one for all and a log by peer, fields",
            expected,
            all_and_log_by_peer(expected),
            Fields::Draft10,
        ),
        theirs("tower_governor, one for all", expected, GlobalKeyExtractor, false),
        theirs("tower_governor, by peer", expected, PeerIpKeyExtractor, false),
        theirs("tower_governor, by peer, fields", expected, PeerIpKeyExtractor, true),
    ]
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(101, |rounds| rounds.parse().expect("a number"));
    for (what, expected) in [("let through", StatusCode::OK), ("refused", StatusCode::TOO_MANY_REQUESTS)] {
        let mut rows = rows(expected);
        rows.insert(0, row("no layer", StatusCode::OK, handler()));
        let mut times = vec![Vec::new(); rows.len()];
        for _ in 0..rounds {
            for ((_, round), times) in rows.iter_mut().zip(&mut times) {
                times.push(round());
            }
        }
        println!("| {what} | fastest, ns | above none | median, ns | above none |\n|---|--:|--:|--:|--:|");
        times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        let middle = rounds / 2;
        let (fastest, median) = (times[0][0], times[0][middle]);
        for ((name, _), times) in rows.iter().zip(&times) {
            let (fast, mid) = (times[0], times[middle]);
            println!("| {name} | {fast:.0} | {:.0} | {mid:.0} | {:.0} |", fast - fastest, mid - median);
        }
        println!();
    }
}
