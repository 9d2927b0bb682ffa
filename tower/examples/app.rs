//! An axum application with a limit for all and one for each user, both read again whenever their file changes.
//!
//! ```sh
//! echo 1000 5 > limits.txt   # a second for all, a minute for each user
//! cargo run -p tollgate-tower --features axum --example app limits.txt
//! curl -i -H 'x-user: alice' localhost:3000/         # /status: what alice has left; /metrics: what was decided
//! ```

use std::{error::Error, fs, net::IpAddr, net::SocketAddr, path::PathBuf, time::Duration};

use axum::{Router, extract::Request, extract::State, http::StatusCode, routing::get};
use tokio::net::TcpListener;
use tollgate::{ConfigError, Keyed, Live, Log, Rule, Window};
use tollgate_tower::{All, By, Either, Head, Header, Key, Local, Or, PeerIp, RateLimitLayer};

const SECOND: Duration = Duration::from_secs(1);
/// All together; and by user, whom a gateway has checked, or else by address.
type Limits = RateLimitLayer<Local<(All<Live<Window>>, By<Or<Header, PeerIp>>)>>;

fn read(path: &PathBuf) -> Result<(u64, u64), Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let (global, user) = text.trim().split_once(' ').ok_or("not two numbers")?;
    Ok((global.parse()?, user.parse()?))
}

fn users(limit: u64) -> Result<Keyed<Either<String, IpAddr>>, ConfigError> {
    Keyed::builder(Log::builder(limit, 60 * SECOND).config()?, 100_000).build()
}

fn limits((global, user): (u64, u64)) -> Result<Limits, Box<dyn Error>> {
    let global = All::new(Live::new(Window::builder(global, SECOND).build()?)?);
    let user = By::new(Header::new("x-user").or(PeerIp::new()), users(user)?);
    let tiers = (global.named("global"), user.named("user"));
    Ok(RateLimitLayer::builder(tiers).except_paths(["/status", "/metrics"]).build()?)
}

/// Follows the file. What cannot be used changes nothing, and is named.
async fn watch(path: PathBuf, limits: Limits, mut seen: (u64, u64)) {
    let follow = |seen: (u64, u64)| -> Result<(u64, u64), Box<dyn Error>> {
        let (global, user) = read(&path)?;
        let (all, by) = limits.tiers();
        let other = (user != seen.1).then(|| users(user)).transpose()?;
        all.algorithm().set_rules(&[Rule::new(global, SECOND)])?; // Keeps its use.
        other.into_iter().for_each(|users| by.replace(users)); // Users begin anew.
        Ok((global, user))
    };
    loop {
        match follow(seen) {
            Ok(now) => seen = now,
            Err(error) => eprintln!("{}: {error}; the limits stay at {seen:?}", path.display()),
        }
        tokio::time::sleep(SECOND / 4).await;
    }
}

async fn status(State(limits): State<Limits>, request: Request) -> Result<String, StatusCode> {
    let standing = limits.standing(&Head::of(&request)).map_err(|keyless| keyless.status)?;
    Ok(standing.iter().map(|(of, quota)| format!("{of}: {} of {}\n", quota.remaining, quota.limit)).collect())
}

fn app(limits: Limits) -> Router {
    let metrics = async |State(limits): State<Limits>| limits.stats().to_string();
    let routes = Router::new().route("/", get(|| async { "hello\n" }));
    let routes = routes.route("/status", get(status)).route("/metrics", get(metrics));
    routes.layer(limits.clone()).with_state(limits)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let argument = |n, default: &str| std::env::args().nth(n).unwrap_or(default.into());
    let path = PathBuf::from(argument(1, "limits.txt"));
    let (numbers, listener) = (read(&path)?, TcpListener::bind(argument(2, "127.0.0.1:3000")).await?);
    println!("{}", listener.local_addr()?);
    let limits = limits(numbers)?;
    tokio::spawn(watch(path, limits.clone(), numbers));
    Ok(axum::serve(listener, app(limits).into_make_service_with_connect_info::<SocketAddr>()).await?)
}
