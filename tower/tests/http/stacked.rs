//! Limits of routes within a limit of all: in one layer, and in two.

use axum::{Router, routing::get as to};
use tollgate::{Class, Keyed, Log, LogConfig, Manual, Nanos};
use tollgate_tower::{All, By, Legacy, NoKey, RateLimitLayer, Route};

use crate::support::{MINUTE, admitted, ask, field, get, status};

fn log(limit: u64) -> LogConfig {
    Log::builder(limit, MINUTE).config().unwrap()
}

fn all(limit: u64) -> All<Log> {
    All::new(Log::builder(limit, MINUTE).build().unwrap())
}

fn routes() -> Router {
    Router::new()
        .route("/search/{word}", to(|| async {}))
        .route("/login", to(|| async {}))
        .route("/", to(|| async {}))
}

#[tokio::test]
async fn in_one_layer_a_refusal_by_a_route_charges_nothing() {
    let class = |route: &str| match route {
        "/search/{word}" => 1,
        "/login" => 2,
        _ => 0,
    };
    let by_route = Keyed::<str>::builder(Class::unlimited(), 0)
        .class(log(5), 1)
        .class(log(2), 1)
        .choose(class)
        .build()
        .unwrap();
    let tiers = (all(10).named("global"), By::new(Route, by_route).named("route").no_key(NoKey::Admit));
    let layer =
        RateLimitLayer::builder(tiers).clock(Manual::new()).legacy_fields(Legacy::Span).build().unwrap();
    let app = routes().layer(layer.clone());

    let passed = ask(&app, get("/login")).await;
    assert_eq!(field(&passed, "ratelimit-policy"), r#""global";q=10;w=60, "route";q=2;w=60"#);
    assert_eq!(field(&passed, "ratelimit"), r#""route";r=1;t=60"#, "the one with the least left");
    assert_eq!(admitted(&app, 9, || get("/login")).await, 1);
    let refused = ask(&app, get("/login")).await;
    assert_eq!(
        (refused.status().as_u16(), field(&refused, "ratelimit")),
        (429, r#""route";r=0;t=60"#.into())
    );
    assert_eq!(field(&refused, "x-ratelimit-limit"), "2", "the one that refuses");
    // Whatever is searched for is one route.
    let mut searched = 0;
    for n in 0..9 {
        searched += usize::from(status(&app, get(&format!("/search/{n}"))).await == 200);
    }
    assert_eq!(searched, 5);
    // Fifteen were refused by their routes, and cost the others nothing.
    let global = layer.tiers().0.algorithm();
    assert_eq!(tollgate::Algorithm::usage_at(global, 0, Nanos::ZERO), Some(7));
    let passed = ask(&app, get("/")).await;
    assert_eq!(field(&passed, "ratelimit-policy"), r#""global";q=10;w=60"#);
    assert_eq!(field(&passed, "ratelimit"), r#""global";r=2;t=60"#);
    assert_eq!(admitted(&app, 9, || get("/")).await, 2);
    let refused = ask(&app, get("/search/x")).await;
    assert_eq!(field(&refused, "ratelimit"), r#""global";r=0;t=60"#, "refused by both: the outer of equals");
}

#[tokio::test]
async fn in_two_layers_the_outer_is_charged_first_and_stays_charged() {
    let outer =
        RateLimitLayer::builder(all(10).named("global")).clock(Manual::new()).legacy_fields(Legacy::Span);
    let inner =
        RateLimitLayer::builder(all(2).named("login")).clock(Manual::new()).legacy_fields(Legacy::Span);
    let (outer, inner) = (outer.build().unwrap(), inner.build().unwrap());
    let login = Router::new().route("/login", to(|| async {})).route_layer(inner.clone());
    let app = Router::new().route("/", to(|| async {})).merge(login).layer(outer.clone());

    // Both tell; the nearer one to the handler first, and where only one can, it does.
    let passed = ask(&app, get("/login")).await;
    assert_eq!(field(&passed, "ratelimit"), r#""login";r=1;t=60 | "global";r=9;t=60"#);
    assert_eq!(field(&passed, "ratelimit-policy"), r#""login";q=2;w=60 | "global";q=10;w=60"#);
    assert_eq!(field(&passed, "x-ratelimit-limit"), "2");
    assert_eq!(admitted(&app, 4, || get("/login")).await, 1);
    let refused = ask(&app, get("/login")).await;
    assert_eq!((refused.status().as_u16(), field(&refused, "retry-after")), (429, "60".into()));
    assert_eq!(field(&refused, "ratelimit"), r#""login";r=0;t=60 | "global";r=4;t=60"#);
    assert_eq!(outer.stats().admitted, 6, "the four that were refused within are charged outside");
    // What the outer refuses never reaches the inner.
    assert_eq!(admitted(&app, 9, || get("/")).await, 4);
    let refused = ask(&app, get("/login")).await;
    assert_eq!(field(&refused, "ratelimit"), r#""global";r=0;t=60"#);
    assert_eq!((inner.stats().admitted, inner.stats().refused_by_limits()), (2, 4));
}
