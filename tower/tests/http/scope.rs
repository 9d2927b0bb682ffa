//! Which requests are asked about, whom they are charged to, what they cost; counts and changes.

use axum::{Router, routing::get as to};
use http::{Method, StatusCode};
use tollgate::{Counted, Keyed, Live, Log, LogConfig, Manual, Rule};
use tollgate_tower::{
    All, BuildError, Builder, By, Extension, Header, Local, NoKey, RateLimitLayer, Reject, Tiers,
};

use crate::support::{MINUTE, admitted, ask, body, field, get, status, with};

fn log(limit: u64) -> Log {
    Log::builder(limit, MINUTE).build().unwrap()
}

fn config(limit: u64) -> LogConfig {
    Log::builder(limit, MINUTE).config().unwrap()
}

fn app<T: Tiers + 'static, R: Reject<axum::body::Body> + 'static>(builder: Builder<Local<T>, R>) -> Router {
    Router::new()
        .fallback(to(|| async {}).post(|| async {}))
        .layer(builder.clock(Manual::new()).build().unwrap())
}

fn none() -> Builder<Local<All<Log>>> {
    RateLimitLayer::builder(All::new(log(0)))
}

#[tokio::test]
async fn paths_and_methods_are_told_in_and_out() {
    let refused = async |app: &Router, method: Method, path| {
        let mut request = get(path);
        *request.method_mut() = method;
        status(app, request).await == 429
    };
    let only =
        app(none().only_paths(["/api"]).except_paths(["/api/health"]).except_methods([Method::OPTIONS]));
    for (path, expected) in [
        ("/api", true),
        ("/api/login", true),
        ("//API/%6Cogin/", true),
        ("/api/health", false),
        ("/api/health/live", false),
        ("/api//health", true),
        // Dots that one router resolves and another does not: whichever it is, the request is limited.
        ("/api/../login", true),
        ("/api/%2E%2e/login", true),
        ("/x/../api/login", true),
        ("/api/health/../login", true),
        ("/api/health/%2e%2e%2flogin", true),
        ("/api/health/..\\login", true),
        ("/api/health/./live", false),
        ("/", false),
        ("/apis", false),
    ] {
        assert_eq!(refused(&only, Method::GET, path).await, expected, "{path}");
    }
    assert!(!refused(&only, Method::OPTIONS, "/api").await);

    let post =
        app(none().only_methods([Method::POST]).except(|head| head.headers.contains_key("x-internal")));
    assert!(refused(&post, Method::POST, "/").await && !refused(&post, Method::GET, "/").await);
    let mut internal = with(get("/"), "x-internal", "");
    *internal.method_mut() = Method::POST;
    assert_eq!(status(&post, internal).await, 200);
}

#[test]
fn what_does_not_hold_is_named() {
    let path = none().only_paths(["api"]).build().unwrap_err();
    assert_eq!(path, BuildError::Path { got: "api".into() });
    let status = none().never_status(StatusCode::OK).build().unwrap_err();
    assert_eq!(status.to_string(), "status 200 is not between 400 and 599");
    let tiers = (All::new(log(1)), All::new(log(1)));
    let twice = RateLimitLayer::builder(tiers).build().unwrap_err();
    assert_eq!(twice, BuildError::Twice { got: "default".into() });
    let name = RateLimitLayer::builder(All::new(log(1)).named("a\"")).build().unwrap_err();
    assert_eq!(name, BuildError::Name { got: "a\"".into() });
}

#[tokio::test]
async fn keys_by_header_extension_and_closure() {
    let keyed = || Keyed::builder(config(2), 100).build().unwrap();
    let header = app(RateLimitLayer::builder(By::new(Header::new("x-user").longest(8), keyed())));
    assert_eq!(admitted(&header, 3, || with(get("/"), "x-user", "alice")).await, 2);
    assert_eq!(admitted(&header, 3, || with(get("/"), "x-user", "bob")).await, 2);
    let twice = with(with(get("/"), "x-user", "carol"), "x-user", "dave");
    for request in [get("/"), with(get("/"), "x-user", ""), with(get("/"), "x-user", "123456789"), twice] {
        let refused = ask(&header, request).await;
        assert_eq!((refused.status().as_u16(), field(&refused, "cache-control")), (400, "no-store".into()));
        assert_eq!(
            body(refused).await,
            r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"The request does not tell whom it is to be charged to."}"#
        );
    }

    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Account(u32);
    let keyed = Keyed::builder(config(2), 100).build().unwrap();
    let by = By::new(Extension::<Account>::new(), keyed).no_key(NoKey::Admit);
    let extension = app(RateLimitLayer::builder(by));
    let of = |account| {
        let mut request = get("/");
        request.extensions_mut().insert(Account(account));
        request
    };
    assert_eq!(admitted(&extension, 3, || of(1)).await, 2);
    assert_eq!(admitted(&extension, 3, || of(2)).await, 2);
    let free = ask(&extension, get("/")).await;
    assert_eq!(
        (free.status().as_u16(), field(&free, "ratelimit"), field(&free, "ratelimit-policy")),
        (200, String::new(), String::new())
    );

    let keyed = Keyed::builder(config(2), 100).build().unwrap();
    let by_length = |head: &tollgate_tower::Head<'_>| Some(head.uri.path().len());
    let closure = app(RateLimitLayer::builder(By::new(by_length, keyed)));
    assert_eq!(admitted(&closure, 3, || get("/a")).await, 2);
    assert_eq!(admitted(&closure, 3, || get("/bb")).await, 2);
    assert_eq!(status(&closure, get("/c")).await, 429);
}

#[tokio::test]
async fn costs_by_closure() {
    let app = app(RateLimitLayer::builder(All::new(log(10))).cost(|head| head.uri.path().len() as u64));
    let answer = ask(&app, get("/123456")).await;
    assert_eq!(field(&answer, "ratelimit"), r#""default";r=3;t=60"#);
    assert_eq!(status(&app, get("/123")).await, 429);
    assert_eq!(status(&app, get("/12")).await, 200);
}

#[tokio::test]
async fn a_request_without_a_key_still_falls_under_the_other_limits() {
    let users = Keyed::builder(config(1), 100).build().unwrap();
    let user = By::new(Header::new("x-user"), users).named("user").no_key(NoKey::Admit);
    let app = app(RateLimitLayer::builder((All::new(log(3)).named("global"), user)));
    let answer = ask(&app, get("/")).await;
    assert_eq!(field(&answer, "ratelimit"), r#""global";r=2;t=60"#);
    assert_eq!(field(&answer, "ratelimit-policy"), r#""global";q=3;w=60"#);
    let user = ask(&app, with(get("/"), "x-user", "alice")).await;
    assert_eq!(field(&user, "ratelimit"), r#""user";r=0;t=60"#);
    assert_eq!(field(&user, "ratelimit-policy"), r#""global";q=3;w=60, "user";q=1;w=60"#);
    assert_eq!(admitted(&app, 3, || get("/")).await, 1);
}

#[tokio::test]
async fn counts_are_told_by_limit() {
    let users = Keyed::builder(config(2), 100).build().unwrap();
    let tiers = (All::new(log(3)).named("global"), By::new(Header::new("x-user"), users).named("user"));
    let layer =
        RateLimitLayer::builder(tiers).clock(Manual::new()).except_paths(["/health"]).build().unwrap();
    let app = Router::new().fallback(|| async {}).layer(layer.clone());
    for (user, calls) in [("alice", 4), ("bob", 3)] {
        admitted(&app, calls, || with(get("/"), "x-user", user)).await;
    }
    status(&app, get("/health")).await;
    status(&app, get("/")).await;
    let stats = layer.stats();
    assert_eq!((stats.admitted, stats.skipped, stats.keyless), (3, 1, 1));
    assert_eq!(stats.refused, [("global".to_owned(), 2), ("user".to_owned(), 2)]);
    let text = stats.to_string();
    for line in [
        "tollgate_admitted_total 3",
        "tollgate_skipped_total 1",
        "tollgate_refused_total{policy=\"global\"} 2",
        "tollgate_refused_total{policy=\"user\"} 2",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn limits_change_while_requests_come() {
    let live = Live::new(Log::builder(2, MINUTE).capacity(100).build().unwrap()).unwrap();
    let users = Keyed::builder(config(50), 100).build().unwrap();
    let tiers =
        (All::new(Counted::new(live)).named("global"), By::new(Header::new("x-user"), users).named("user"));
    let layer = RateLimitLayer::builder(tiers).clock(Manual::new()).build().unwrap();
    let app = Router::new().fallback(|| async {}).layer(layer.clone());
    let alice = || with(get("/"), "x-user", "alice");
    assert_eq!(admitted(&app, 4, alice).await, 2);

    let (global, user) = layer.tiers();
    global.algorithm().algorithm().set_rules(&[Rule::new(5, MINUTE)]).unwrap();
    let answer = ask(&app, alice()).await;
    assert_eq!(field(&answer, "ratelimit-policy"), r#""global";q=5;w=60, "user";q=50;w=60"#);
    assert_eq!(admitted(&app, 4, alice).await, 2, "what was used counts under the new rules");
    assert_eq!(global.algorithm().statistics().admitted, 5);

    global.algorithm().algorithm().set_rules(&[Rule::new(100, MINUTE)]).unwrap();
    user.replace(Keyed::builder(config(3), 100).build().unwrap());
    assert_eq!(admitted(&app, 9, alice).await, 3, "other limiters by key begin anew");
    let standing = layer.standing(&(&alice().into_parts().0).into()).unwrap();
    let left: Vec<_> = standing.iter().map(|(name, quota)| (*name, quota.remaining)).collect();
    assert_eq!(left, [("global", 92), ("user", 0)]);
}
