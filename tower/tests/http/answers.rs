//! What answers say: status, fields and bodies.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::{Router, body::Body, response::Response, routing::get as to};
use http::StatusCode;
use tollgate::{Algorithm, Gcra, Log, Manual, Nanos};
use tollgate_tower::{
    All, Builder, BusinessCode, Cause, Fields, Legacy, Local, Problem, RateLimitLayer, Refusal, Reject,
};

use crate::support::{HOUR, MINUTE, SECOND, ask, body, field, get, with};

pub(crate) type OfLog = Local<All<Log>, Arc<Manual>>;

/// 100 a minute, of which 58 were taken: at a time from which the oldest leaves in 6.2 s.
pub(crate) fn example() -> Builder<OfLog> {
    let log = Log::builder(100, MINUTE).build().unwrap();
    assert!(log.try_acquire_at(1, Nanos::ZERO) && log.try_acquire_at(56, Nanos::from_secs(9)));
    let clock = Manual::at(Nanos::from_millis(53_800));
    RateLimitLayer::builder(All::new(log)).clock(Arc::new(clock))
}

fn app<R: Reject<Body> + 'static>(builder: Builder<OfLog, R>) -> Router {
    Router::new().route("/", to(|| async { "hello" })).layer(builder.build().unwrap())
}

/// By this builder: one that is let through, then one that is refused when the oldest leaves in 7.3 s.
pub(crate) async fn both<R: Reject<Body> + 'static>(builder: Builder<OfLog, R>) -> (Response, Response) {
    let layer = builder.build().unwrap();
    let app = Router::new().route("/", to(|| async { "hello" })).layer(layer.clone());
    let passed = ask(&app, get("/")).await;
    assert_eq!(passed.status(), 200);
    let log = layer.tiers().algorithm();
    assert!(log.try_acquire_at(42, Nanos::from_millis(53_800)));
    let refused = ask(&app, get("/")).await;
    assert_eq!(refused.status(), 429);
    (passed, refused)
}

#[tokio::test]
async fn by_default_as_the_tenth_draft_has_it() {
    let (passed, refused) = both(example()).await;
    assert_eq!(field(&passed, "ratelimit-policy"), r#""default";q=100;w=60"#);
    assert_eq!(field(&passed, "ratelimit"), r#""default";r=42;t=7"#);
    assert_eq!(field(&passed, "retry-after"), "");
    assert_eq!(field(&passed, "x-ratelimit-limit"), "");

    assert_eq!(field(&refused, "ratelimit-policy"), r#""default";q=100;w=60"#);
    assert_eq!(field(&refused, "ratelimit"), r#""default";r=0;t=7"#);
    assert_eq!(field(&refused, "retry-after"), "7");
    assert_eq!(field(&refused, "cache-control"), "no-store");
    assert_eq!(field(&refused, "content-type"), "application/problem+json");
    assert_eq!(
        body(refused).await,
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"Limit of 100 requests per 60 s reached; retry in 7 s.","violated-policies":["default"]}"#
    );
}

#[tokio::test]
async fn older_drafts_and_none() {
    let (passed, refused) = both(example().fields(Fields::Draft7)).await;
    assert_eq!(field(&passed, "ratelimit-policy"), "100;w=60");
    assert_eq!(field(&passed, "ratelimit"), "limit=100, remaining=42, reset=7");
    assert_eq!(field(&refused, "ratelimit"), "limit=100, remaining=0, reset=7");

    let (passed, refused) = both(example().fields(Fields::Draft6)).await;
    let of = |answer: &Response| {
        ["limit", "remaining", "reset"].map(|of| field(answer, &format!("ratelimit-{of}")))
    };
    assert_eq!(field(&passed, "ratelimit-policy"), "100;w=60");
    assert_eq!(field(&passed, "ratelimit"), "");
    assert_eq!(
        (of(&passed), of(&refused)),
        (["100", "42", "7"].map(String::from), ["100", "0", "7"].map(String::from))
    );

    let (passed, refused) = both(example().fields(Fields::None)).await;
    for answer in [&passed, &refused] {
        assert_eq!((field(answer, "ratelimit"), field(answer, "ratelimit-policy")), Default::default());
    }
    assert_eq!(field(&refused, "retry-after"), "7");
}

#[tokio::test]
async fn legacy_fields_are_added_on_request() {
    let of = |answer: &Response| {
        ["limit", "remaining", "used", "reset"]
            .map(|of| field(answer, &format!("x-ratelimit-{of}")))
            .join(" ")
    };
    let moment = || Duration::from_secs(1_795_981_239);
    let (passed, refused) = both(example().legacy_fields(Legacy::Moment).unix_time(moment)).await;
    assert_eq!((of(&passed), of(&refused)), ("100 42 58 1795981246".into(), "100 0 100 1795981246".into()));
    let (passed, _) = both(example().legacy_fields(Legacy::Span)).await;
    assert_eq!(of(&passed), "100 42 58 7");
    assert_eq!(field(&passed, "ratelimit"), r#""default";r=42;t=7"#, "beside the others");
}

#[tokio::test]
async fn answers_to_those_who_pass_may_keep_silent() {
    let (passed, refused) = both(example().fields_on_success(false)).await;
    assert_eq!((field(&passed, "ratelimit"), field(&passed, "ratelimit-policy")), Default::default());
    assert_eq!(field(&refused, "ratelimit"), r#""default";r=0;t=7"#);
}

#[tokio::test]
async fn several_rules_are_several_policies() {
    let log = Log::builder(10, SECOND).rule(1_000, 24 * HOUR).rule(100_000, SECOND / 2).build().unwrap();
    let tier = All::new(log).rules_named(&["burst", "daily"]);
    let app = Router::new()
        .route("/", to(|| async {}))
        .layer(RateLimitLayer::builder(tier).clock(Manual::new()).cost(|_| 7).build().unwrap());
    let passed = ask(&app, get("/")).await;
    let policies = r#""burst";q=10;w=1, "daily";q=1000;w=86400, "burst-3";q=100000"#;
    assert_eq!(field(&passed, "ratelimit-policy"), policies);
    assert_eq!(field(&passed, "ratelimit"), r#""burst";r=3;t=1"#);
    let refused = ask(&app, get("/")).await;
    assert_eq!((refused.status().as_u16(), field(&refused, "ratelimit")), (429, r#""burst";r=3;t=1"#.into()));
    assert_eq!(field(&refused, "retry-after"), "1");
}

#[tokio::test]
async fn nothing_to_wait_for_is_not_told() {
    // A bucket that is full again at once; and a limit of none.
    let app = |limit, cost: u64| {
        let bucket = Gcra::builder(limit, SECOND).burst(limit.max(1)).build().unwrap();
        let layer = RateLimitLayer::builder(All::new(bucket)).clock(Manual::new()).cost(move |_| cost);
        Router::new().route("/", to(|| async {})).layer(layer.build().unwrap())
    };
    let free = ask(&app(5, 0), get("/")).await;
    assert_eq!((free.status().as_u16(), field(&free, "ratelimit")), (200, r#""default";r=5"#.into()));
}

#[tokio::test]
async fn a_cost_that_no_waiting_fits_gets_no_time() {
    let with_cost = |request, cost: &str| with(request, "cost", cost);
    let cost = |head: &tollgate_tower::Head<'_>| -> u64 {
        head.headers.get("cost").map_or(1, |cost| cost.to_str().unwrap().parse().unwrap())
    };
    let app = app(example().cost(cost));
    let refused = ask(&app, with_cost(get("/"), "101")).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(field(&refused, "retry-after"), "");
    assert_eq!(field(&refused, "ratelimit"), r#""default";r=43"#);
    assert!(
        body(refused)
            .await
            .contains("The request costs 101, which the limit of 100 can not give at any time.")
    );

    let app = self::app(example().cost(cost).never_status(StatusCode::PAYLOAD_TOO_LARGE));
    let refused = ask(&app, with_cost(get("/"), "101")).await;
    assert_eq!((refused.status().as_u16(), field(&refused, "retry-after")), (413, String::new()));
    assert_eq!(field(&refused, "cache-control"), "no-store");
}

#[tokio::test]
async fn bodies_of_ones_own() {
    let (_, refused) = both(example().reject(BusinessCode::new(42901, "Zu viele \"Anfragen\""))).await;
    assert_eq!(
        (field(&refused, "content-type"), field(&refused, "retry-after")),
        ("application/json".into(), "7".into())
    );
    assert_eq!(body(refused).await, r#"{"code":42901,"message":"Zu viele \"Anfragen\""}"#);

    let own = |refusal: &Refusal<'_>| {
        assert_eq!((refusal.cause, refusal.cost, refusal.quota.unwrap().remaining), (Cause::Limit, 1, 0));
        let policy = refusal.policy.unwrap();
        let text = format!("{} {} {:?}", policy.name, policy.rule.limit, refusal.retry_after);
        Response::builder().status(refusal.status).body(Body::from(text)).unwrap()
    };
    let (_, refused) = both(example().reject(own)).await;
    assert_eq!(
        (field(&refused, "cache-control"), field(&refused, "retry-after")),
        ("no-store".into(), "7".into())
    );
    assert_eq!(body(refused).await, "default 100 Some(7)");
}

#[tokio::test]
async fn jitter_delays_and_never_hastens() {
    let log = Log::builder(1, MINUTE).build().unwrap();
    let layer =
        RateLimitLayer::builder(All::new(log)).clock(Manual::new()).jitter(4 * SECOND).build().unwrap();
    let app = Router::new().route("/", to(|| async {})).layer(layer);
    assert_eq!(ask(&app, get("/")).await.status(), 200);
    let mut seen = BTreeSet::new();
    for _ in 0..200 {
        let refused = ask(&app, get("/")).await;
        assert_eq!(field(&refused, "ratelimit"), r#""default";r=0;t=60"#);
        let retry_after = field(&refused, "retry-after");
        assert!(body(refused).await.contains(&format!("retry in {retry_after} s")), "both say the same");
        seen.insert(retry_after.parse::<u64>().unwrap());
    }
    assert_eq!(seen, BTreeSet::from([60, 61, 62, 63, 64]));
}

#[tokio::test]
async fn jitter_of_any_length_is_added_without_overflow() {
    let (_, refused) = both(example().jitter(Duration::MAX)).await;
    assert!(field(&refused, "retry-after").parse::<u64>().unwrap() >= 7);
}

#[tokio::test]
async fn head_requests_and_unknown_windows_are_answered() {
    let log = Log::builder(1, Duration::from_millis(1_500)).build().unwrap();
    let layer = RateLimitLayer::builder(All::new(log)).clock(Manual::new()).reject(Problem).build().unwrap();
    let app = Router::new().route("/", to(|| async {})).layer(layer);
    ask(&app, get("/")).await;
    let refused = ask(&app, get("/")).await;
    assert_eq!(
        (field(&refused, "ratelimit-policy"), field(&refused, "retry-after")),
        (r#""default";q=1"#.into(), "2".into())
    );
    assert!(body(refused).await.contains("Limit of 1 requests per 1.5s reached; retry in 2 s."));
}
