//! What is logged. (In a process of its own: a subscriber is for all threads.)

use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response};
use tollgate::{Log, Manual};
use tollgate_tower::{All, RateLimitLayer};
use tower::{Layer, ServiceExt, service_fn};
use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};

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

impl Logged {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn a_dry_run_counts_and_logs_and_refuses_nobody() {
    let logged = Logged::default();
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::DEBUG)
        .with_ansi(false)
        .with_writer(logged.clone())
        .init();

    let log = Log::builder(2, Duration::from_secs(60)).build().unwrap();
    let builder = RateLimitLayer::builder(All::new(log).named("api")).clock(Manual::new()).dry_run();
    let layer = builder.build().unwrap();
    let service =
        layer.layer(service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(String::new()))));
    let ask = async || service.clone().oneshot(Request::new(())).await.unwrap();
    for _ in 0..5 {
        let answer = ask().await;
        assert_eq!((answer.status().as_u16(), answer.headers().len()), (200, 0));
    }
    let stats = layer.stats();
    assert_eq!((stats.admitted, &stats.refused[..], stats.dry), (2, &[("api".to_owned(), 3)][..], 3));
    let lines = logged.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let expected = r#"tollgate: refused cause=Limit policy="api" cost=1 retry_after_s=60 dry_run=true"#;
    assert!(lines[0].ends_with(expected), "{lines:?}");

    layer.set_dry_run(false);
    assert_eq!(ask().await.status(), 429);
    assert_eq!((layer.stats().refused_by_limits(), layer.stats().dry), (4, 3));
    assert!(logged.lines()[3].ends_with("dry_run=false"), "{:?}", logged.lines());
}
