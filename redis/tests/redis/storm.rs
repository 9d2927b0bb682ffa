//! Everything that can befall a server and its network, in the middle of traffic.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tollgate_redis::{Builder, By, Limiter, OnFailure};
use tollgate_redis_server::Server;

use crate::{
    proxy::Proxy,
    support::{HOUR, SECOND, manager},
};

const LIMIT: u64 = 300;
const DEADLINE: Duration = Duration::from_millis(50);
/// What a busy machine may add to a deadline.
const SLACK: Duration = Duration::from_millis(450);
const DECIDERS: [By; 8] =
    [By::Redis, By::Cache, By::Lease, By::Rule, By::Capacity, By::Coarse, By::Local, By::Open];

/// One instance with each choice of tiers.
const TIERS: [fn(Builder) -> Builder; 4] = [
    |plain| plain,
    |cached| cached.cache_refusals(SECOND),
    |shared| shared.share_calls(),
    |leased| leased.cache_refusals(SECOND).lease(Duration::from_millis(50), 20),
];

/// Forty callers of four instances, while the server forgets its scripts, stands still and is started again, and connections
/// end: nobody waits past the deadline, every call is counted once among the answers, and no life of the server, which begins
/// with nothing in memory, gives more than the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_than_the_limit_and_nobody_waits() {
    let mut server = Server::start().await;
    let proxy = Proxy::before(server.socket()).await;
    let limiters = TIERS.map(|tier| {
        let builder =
            Limiter::builder("a", LIMIT, HOUR).rule("b", LIMIT + 1, HOUR).on_failure(OnFailure::Closed);
        let builder = builder.deadline(DEADLINE).breaker(5, Duration::from_millis(20));
        tier(builder).build(manager(&proxy.url())).unwrap()
    });
    let taken = || -> u64 {
        let stats = limiters.iter().map(Limiter::stats);
        stats.map(|stats| stats.admitted(By::Redis) + stats.admitted(By::Lease)).sum()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..40 {
        let (limiter, stop) = (limiters[caller % TIERS.len()].clone(), stop.clone());
        callers.spawn(async move {
            let (mut calls, mut unavailable, mut slowest) = (0u64, 0u64, Duration::ZERO);
            while !stop.load(Relaxed) {
                let call = Instant::now();
                unavailable += u64::from(limiter.try_acquire("u", 1).await.is_err());
                slowest = slowest.max(call.elapsed());
                calls += 1;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            (calls, unavailable, slowest)
        });
    }

    // Longer than the deadline and the hold: what was had in one life is not spent in the next.
    let pause = || tokio::time::sleep(Duration::from_millis(120));
    let mut before = 0;
    for life in 0..4 {
        for _ in 0..2 {
            pause().await;
            let _: () = server.ask(&["SCRIPT", "FLUSH"]).await;
            pause().await;
            proxy.cut();
            server.pause();
            pause().await;
            server.resume();
        }
        pause().await;
        assert!(server.immortal().await.is_empty());
        server.kill();
        pause().await;
        let now = taken();
        assert!((1..=LIMIT).contains(&(now - before)), "life {life}: {} of {LIMIT}", now - before);
        before = now;
        server.restart().await;
    }

    stop.store(true, Relaxed);
    let (mut calls, mut unavailable, mut slowest) = (0, 0, Duration::ZERO);
    while let Some(done) = callers.join_next().await {
        let (of, without, longest) = done.unwrap();
        (calls, unavailable, slowest) = (calls + of, unavailable + without, slowest.max(longest));
    }
    println!("{calls} calls, {before} taken, {unavailable} without a server, the slowest {slowest:?}");
    assert!(slowest < DEADLINE + SLACK, "{slowest:?}");
    let (mut answers, mut failures) = (0, 0);
    for stats in limiters.iter().map(Limiter::stats) {
        answers += DECIDERS.iter().map(|by| stats.admitted(*by) + stats.refused(*by)).sum::<u64>();
        failures += stats.unavailable;
    }
    assert_eq!((answers + failures, failures), (calls, unavailable));
    assert!(unavailable > 0);
}
