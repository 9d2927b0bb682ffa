//! The layer among others of tower: time limits, buffers, shedding of load.

use std::{
    convert::Infallible,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use tollgate::{Algorithm, Log, Nanos};
use tollgate_tower::{All, Local, RateLimitLayer};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::support::{Count, HOUR, MINUTE, until};

fn layer(limit: u64) -> RateLimitLayer<Local<All<Log>>> {
    RateLimitLayer::builder(All::new(Log::builder(limit, HOUR).build().unwrap())).build().unwrap()
}

fn request() -> Request<()> {
    Request::new(())
}

fn status(answer: Result<Response<String>, BoxError>) -> u16 {
    answer.unwrap().status().as_u16()
}

/// A handler that counts those who come in, and takes its time. Its bodies are not those of any framework.
fn handler(
    came: &Count,
    delay: Duration,
) -> impl Service<Request<()>, Response = Response<String>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let came = came.clone();
    service_fn(move |_: Request<()>| {
        let came = came.clone();
        async move {
            came.add();
            tokio::time::sleep(delay).await;
            Ok(Response::new(String::new()))
        }
    })
}

#[tokio::test]
async fn outside_of_a_buffer_and_a_time_limit() {
    let (came, layer) = (Count::default(), layer(3));
    let mut service = ServiceBuilder::new()
        .layer(layer)
        .buffer(4)
        .timeout(MINUTE)
        .service(handler(&came, Duration::ZERO))
        .boxed_clone();
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(status(service.ready().await.unwrap().call(request()).await));
    }
    assert_eq!((statuses, came.get()), (vec![200, 200, 200, 429, 429, 429], 3));
}

#[tokio::test]
async fn inside_of_a_buffer_and_load_shedding() {
    let (came, layer) = (Count::default(), layer(3));
    let service = ServiceBuilder::new()
        .load_shed()
        .buffer(64)
        .layer(layer.clone())
        .service(handler(&came, Duration::ZERO));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let service = service.clone();
        callers.spawn(async move { status(service.oneshot(request()).await) });
    }
    let statuses = callers.join_all().await;
    assert_eq!(statuses.iter().filter(|&&status| status == 200).count(), 3);
    assert_eq!((came.get(), layer.stats().refused_by_limits()), (3, 17));
}

#[tokio::test]
async fn a_time_limit_that_strikes_gives_nothing_back() {
    let (came, layer) = (Count::default(), layer(2));
    let mut service = ServiceBuilder::new()
        .timeout(Duration::from_millis(5))
        .layer(layer)
        .service(handler(&came, HOUR))
        .boxed_clone();
    for _ in 0..2 {
        let error = service.ready().await.unwrap().call(request()).await.unwrap_err();
        assert!(error.is::<tower::timeout::error::Elapsed>());
    }
    assert_eq!((status(service.ready().await.unwrap().call(request()).await), came.get()), (429, 2));
}

#[tokio::test]
async fn what_is_shed_is_not_charged_and_what_is_refused_holds_no_place() {
    let (came, layer) = (Count::default(), layer(2));
    let service = ServiceBuilder::new()
        .load_shed()
        .layer(layer.clone())
        .concurrency_limit(1)
        .service(handler(&came, Duration::from_millis(20)));
    let first = tokio::spawn(service.clone().oneshot(request()));
    until("the first is under way", || came.get() == 1).await;
    // The one place is taken: shed before the limit is asked.
    let error = service.clone().oneshot(request()).await.unwrap_err();
    assert!(error.is::<tower::load_shed::error::Overloaded>());
    assert_eq!(layer.stats().admitted, 1);
    assert_eq!(status(first.await.unwrap()), 200);
    assert_eq!(status(service.clone().oneshot(request()).await), 200);
    // Refused again and again on one service: it gives its place back each time it is not used.
    for _ in 0..3 {
        assert_eq!(status(service.clone().oneshot(request()).await), 429);
    }
    assert_eq!((came.get(), layer.stats().refused_by_limits()), (2, 3));
}

/// Never ready, and not clonable.
struct Busy;

impl Service<Request<()>> for Busy {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = std::future::Pending<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Pending
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        panic!("called while it is busy")
    }
}

#[tokio::test]
async fn readiness_is_that_of_the_service_within() {
    let layer = layer(1);
    let mut service = layer.layer(Busy);
    let ready = tokio::time::timeout(Duration::from_millis(5), service.ready()).await;
    assert!(ready.is_err(), "ready before the service within");
    assert_eq!(layer.stats().admitted, 0);
}

/// Not clonable; to be called once each time that it said it is ready, and falls over every second time.
#[derive(Default)]
struct Strict {
    ready: bool,
    calls: u32,
}

impl Service<Request<()>> for Strict {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without being asked whether it is ready");
        self.calls += 1;
        assert!(self.calls % 2 == 1, "falls over");
        std::future::ready(Ok(Response::new(String::new())))
    }
}

#[tokio::test]
async fn the_service_within_is_the_one_that_was_ready_and_may_panic() {
    let layer = layer(3);
    let mut service = layer.layer(Strict::default());
    for falls_over in [false, true, false] {
        let service = service.ready().await.unwrap();
        let call = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| service.call(request())));
        assert_eq!(call.is_err(), falls_over);
        // A future that is dropped before it is polled was charged, too.
    }
    assert_eq!(service.ready().await.unwrap().call(request()).await.unwrap().status(), 429);
    assert_eq!((layer.stats().admitted, layer.stats().refused_by_limits()), (3, 1));
}

#[tokio::test]
async fn errors_of_the_service_within_are_handed_on() {
    let layer = layer(1);
    let fails = service_fn(async |_: Request<()>| Err::<Response<String>, _>("out of order"));
    let mut service = layer.layer(fails);
    assert_eq!(service.ready().await.unwrap().call(request()).await.unwrap_err(), "out of order");
    assert_eq!(service.ready().await.unwrap().call(request()).await.unwrap().status(), 429);
}

#[tokio::test]
async fn a_layer_built_for_each_request_has_no_memory() {
    let came = Count::default();
    for _ in 0..5 {
        let service = layer(1).layer(handler(&came, Duration::ZERO));
        assert_eq!(service.oneshot(request()).await.unwrap().status(), 200);
    }
    let shared = layer(1);
    let mut good = 0;
    for _ in 0..5 {
        let answer = shared.layer(handler(&came, Duration::ZERO)).oneshot(request()).await.unwrap();
        good += u32::from(answer.status() == 200);
    }
    assert_eq!((good, came.get()), (1, 6));
}

#[test]
fn a_clock_out_of_range_is_a_fault_and_no_limit() {
    let log = Log::builder(1, HOUR).build().unwrap();
    assert!(log.check_at(1, Nanos::from_nanos(u64::MAX)).is_err());
    let clock = tollgate::Manual::at(Nanos::from_nanos(u64::MAX));
    let layer = RateLimitLayer::builder(All::new(log)).clock(clock).build().unwrap();
    let service =
        layer.layer(service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(String::new()))));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answer = runtime.block_on(service.oneshot(request())).unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers().get("retry-after")), (503, None));
    assert_eq!(layer.stats().unavailable, 1);
}
