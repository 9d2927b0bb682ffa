//! What stands before the server: what it saves, and that it never gives more.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tollgate::{Nanos, Reason};
use tollgate_redis::{By, Heartbeat, Instances, Limiter};
use tollgate_redis_server::Server;

use crate::support::{HOUR, MINUTE, admitted, manager, patient};

#[tokio::test]
async fn a_cached_refusal_is_repeated_for_costs_not_below_it() {
    let server = Server::start().await;
    let limiter = patient(Limiter::builder("api", 5, HOUR))
        .cache_refusals(MINUTE)
        .build(manager(&server.url()))
        .unwrap();
    assert_eq!(admitted(&limiter, "a", 3).await, 3);
    let first = limiter.check("a", 4).await.unwrap();
    let again = limiter.check("a", 4).await.unwrap();
    assert_eq!((first.by, again.by), (By::Redis, By::Cache));
    let (first, again) = (first.decision.unwrap_err(), again.decision.unwrap_err());
    assert!(again.retry_after() <= first.retry_after() && again.quota.remaining == 2, "{first:?} {again:?}");
    assert_eq!(admitted(&limiter, "a", 2).await, 2, "a smaller cost is another question");
    let calls = limiter.stats().calls;
    assert_eq!(admitted(&limiter, "a", 10).await, 0);
    assert_eq!(limiter.acquire_up_to("a", 3).await.unwrap().by, By::Cache);
    assert_eq!(limiter.stats().calls, calls, "the last admission told that the limit was used up");
    limiter.reset("a").await.unwrap();
    assert_eq!(admitted(&limiter, "a", 9).await, 5, "an own reset is seen at once");
}

/// A caller who wants to know what is left is not told what nobody knows.
#[tokio::test]
async fn a_check_has_its_figures_whatever_was_asked_before() {
    let server = Server::start().await;
    let cached = patient(Limiter::builder("cached", 5, HOUR)).cache_refusals(MINUTE);
    let cached = cached.build(manager(&server.url())).unwrap();
    assert_eq!(admitted(&cached, "a", 3).await, 3);
    assert!(!cached.try_acquire("a", 4).await.unwrap().admitted);
    for by in [By::Redis, By::Cache] {
        let answer = cached.check("a", 4).await.unwrap();
        let quota = answer.decision.unwrap_err().quota;
        assert_eq!((answer.by, quota.remaining), (by, 2));
        assert!(quota.next_after > Nanos::ZERO && quota.reset_after > Nanos::ZERO, "{quota:?}");
    }

    let leased = patient(Limiter::builder("leased", 100, HOUR)).lease(MINUTE, 10);
    let leased = leased.build(manager(&server.url())).unwrap();
    // The second order takes two and leaves one here, without figures.
    assert_eq!(admitted(&leased, "a", 2).await, 2);
    let mut by_lease = 0;
    for used in 3..=20 {
        let answer = leased.check("a", 1).await.unwrap();
        let quota = answer.decision.unwrap();
        by_lease += u64::from(answer.by == By::Lease);
        // Exact, but for the unit that lay here.
        assert!((100 - used - 1..=100 - used).contains(&quota.remaining), "{used}: {answer:?}");
        assert!(quota.reset_after > Nanos::ZERO, "{used}: {answer:?}");
    }
    assert!(by_lease > 10, "{by_lease}");
    let (calls, left) =
        (leased.stats().calls, leased.peek("a", 1).await.unwrap().decision.unwrap().remaining);
    assert!(calls <= 8 && left >= 70, "{calls} calls, {left} left");
}

/// Round trips for each hundred checks when ten times the limit is asked for, without pause, over several windows.
async fn calls_under_overload(
    build: impl Fn(tollgate_redis::Builder) -> tollgate_redis::Builder,
) -> (f64, f64) {
    let server = Server::start().await;
    let (limit, window) = (100, Duration::from_millis(200));
    let limiter = Arc::new(
        build(patient(Limiter::builder("api", limit, window))).build(manager(&server.url())).unwrap(),
    );
    let (windows, gap) = (6, Duration::from_micros(200));
    let (mut checks, mut admitted, start) = (0u64, 0u64, Instant::now());
    let mut tick = tokio::time::interval(gap);
    let mut running = tokio::task::JoinSet::new();
    while start.elapsed() < window * windows {
        tick.tick().await;
        checks += 1;
        let limiter = limiter.clone();
        running.spawn(async move { limiter.try_acquire("a", 1).await.unwrap().admitted });
        while let Some(done) = running.try_join_next() {
            admitted += u64::from(done.unwrap());
        }
    }
    while let Some(done) = running.join_next().await {
        admitted += u64::from(done.unwrap());
    }
    assert!(admitted <= limit * u64::from(windows + 1), "{admitted}");
    assert!(checks > 5 * admitted, "an overload: {checks} checks, {admitted} admitted");
    (
        100.0 * limiter.stats().calls as f64 / checks as f64,
        admitted as f64 / (limit * u64::from(windows)) as f64,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_overload_the_tiers_save_what_they_promise() {
    let (none, _) = calls_under_overload(|builder| builder).await;
    assert!(none > 99.0, "{none}");
    let (cached, used) = calls_under_overload(|builder| builder.cache_refusals(MINUTE)).await;
    println!("cached refusals: {cached:.1} calls per 100 checks, {used:.2} of the limit used");
    // 10 of 100 checks are admitted here at most, each by a call.
    assert!(cached < 25.0 && used > 0.5, "{cached} {used}");
    let lease = |builder: tollgate_redis::Builder| {
        builder.cache_refusals(MINUTE).lease(Duration::from_millis(20), 50)
    };
    let (leased, used) = calls_under_overload(lease).await;
    println!("leases: {leased:.1} calls per 100 checks, {used:.2} of the limit used");
    assert!(leased < 5.0 && used > 0.5, "{leased} {used}");
}

/// Three instances spend leases as fast as they can. Each admission lies between its call's start and its end, so no span of a
/// window may hold more than the limit of whole calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_window_of_spends_holds_more_than_the_limit() {
    let server = Server::start().await;
    let (limit, window, hold) = (60, Duration::from_millis(150), Duration::from_millis(40));
    let start = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for instance in 0..3 {
        let builder = patient(Limiter::builder("api", limit, window)).lease(hold, 10);
        // One without the other tier: units are spent to the end of their hold.
        let builder = if instance > 0 { builder.cache_refusals(MINUTE) } else { builder };
        let limiter = builder.build(manager(&server.url())).unwrap();
        for caller in 0..3 {
            let limiter = limiter.clone();
            callers.spawn(async move {
                let mut spent = Vec::new();
                while start.elapsed() < window * 12 {
                    let began = start.elapsed();
                    let verdict = limiter.try_acquire("a", 1).await.unwrap();
                    if verdict.admitted {
                        spent.push((began, start.elapsed(), verdict.by));
                    }
                    tokio::time::sleep(Duration::from_micros(500 + 700 * caller)).await;
                }
                spent
            });
        }
    }
    let spent: Vec<_> = callers.join_all().await.concat();
    let by_lease = spent.iter().filter(|(.., by)| *by == By::Lease).count();
    assert!(by_lease > 100, "{by_lease} of {}", spent.len());
    for (from, ..) in &spent {
        let inside = spent.iter().filter(|(began, ended, _)| began >= from && *ended < *from + window);
        let inside = inside.count() as u64;
        assert!(inside <= limit, "{inside} from {from:?}");
    }
}

#[tokio::test]
async fn f087_the_local_tier_and_the_shared_count_agree() {
    let (server, other) = (Server::start().await, Server::start().await);
    let limiter = patient(Limiter::builder("api", 100, MINUTE))
        .cache_refusals(MINUTE)
        .share_calls()
        .build(manager(&server.url()))
        .unwrap();
    let elsewhere = patient(Limiter::builder("api", 7, HOUR)).build(manager(&other.url())).unwrap();
    for _ in 0..10 {
        assert!(limiter.try_acquire("a", 1).await.unwrap().admitted);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let left = limiter.peek("a", 1).await.unwrap().decision.unwrap();
    assert_eq!((left.limit, left.remaining), (100, 90));
    let left = elsewhere.peek("a", 1).await.unwrap().decision.unwrap();
    assert_eq!((left.limit, left.remaining), (7, 7), "each limiter has its own store and settings");
}

#[tokio::test]
async fn the_coarse_limiter_refuses_an_instance_s_excess_and_charges_nothing_for_a_refusal() {
    let server = Server::start().await;
    let instances = Instances::new(0, 3).unwrap();
    let build = |limit| {
        let builder = patient(Limiter::builder("api", limit, HOUR)).instances(&instances).coarse(120);
        builder.build(manager(&server.url())).unwrap()
    };
    let limiter = build(10);
    // 10 x 1.2 / 3 = 4.
    assert_eq!(admitted(&limiter, "a", 9).await, 4);
    let denied = limiter.check("a", 1).await.unwrap();
    assert_eq!((denied.by, denied.decision.unwrap_err().quota.limit), (By::Coarse, 4));
    assert_eq!(limiter.stats().calls, 4);
    instances.set(0, 1).unwrap();
    assert_eq!(admitted(&limiter, "a", 9).await, 6, "the others are gone, and the use so far counts");
}

#[tokio::test]
async fn instances_count_one_another() {
    let server = Server::start().await;
    let mut connection = server.connection().await;
    let period = Duration::from_millis(400);
    let counts: Vec<Instances> = (0..3).map(|_| Instances::alone()).collect();
    let beats: Vec<Heartbeat> = counts
        .iter()
        .enumerate()
        .map(|(i, instances)| {
            Heartbeat::new(instances, "tollgate:instances", format!("i{i}"), period).unwrap()
        })
        .collect();
    for _ in 0..2 {
        for beat in &beats {
            beat.beat(&mut connection).await.unwrap();
        }
    }
    assert_eq!(counts.iter().map(Instances::get).collect::<Vec<_>>(), [(0, 3), (1, 3), (2, 3)]);
    assert!(server.immortal().await.is_empty());

    beats[0].leave(&mut connection).await.unwrap();
    beats[1].beat(&mut connection).await.unwrap();
    assert_eq!(counts[1].get(), (0, 2));
    // A silent instance is given up after three periods.
    let until = Instant::now() + period * 5;
    while Instant::now() < until {
        beats[1].beat(&mut connection).await.unwrap();
        tokio::time::sleep(period / 2).await;
    }
    assert_eq!(counts[1].get(), (0, 1));

    let running = tokio::spawn({
        let (beat, connection) = (
            Heartbeat::new(&counts[2], "tollgate:instances", "i2", period).unwrap(),
            server.connection().await,
        );
        async move { beat.run(connection, |error| panic!("{error}")).await }
    });
    tokio::time::sleep(period * 2).await;
    assert_eq!(counts[2].get(), (1, 2));
    running.abort();
}

#[test]
fn a_share_deals_out_the_remainder_and_says_when_it_has_none() {
    let limiter = |index, count, headroom| {
        let instances = Instances::new(index, count).unwrap();
        Limiter::builder("api", 10, HOUR).instances(&instances).headroom(headroom).build_share().unwrap()
    };
    let portions = |count, headroom| -> Vec<u64> {
        (0..count).map(|index| limiter(index, count, headroom).portions()[0]).collect()
    };
    assert_eq!(portions(3, 0), [4, 3, 3]);
    assert_eq!(portions(3, 20), [3, 3, 2]);
    assert_eq!(portions(12, 0), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);

    let share = limiter(11, 12, 0);
    let denied = share.check("a", 1);
    assert_eq!((denied.by, denied.decision.unwrap_err().reason), (By::Local, Reason::Never));
    assert_eq!(denied.decision.unwrap_err().quota.limit, 0);

    let share = limiter(0, 3, 0);
    let hour = Nanos::from(HOUR);
    let at = |n: u64| hour + Nanos::from_secs(n);
    assert_eq!((0..9).filter(|&n| share.check_at("a", 1, at(n)).decision.is_ok()).count(), 4);
    let retry = share.check_at("a", 1, at(10)).decision.unwrap_err().retry_after().unwrap();
    assert!(share.check_at("a", 1, at(10) + retry).decision.is_ok());
    // The bound of the core's counter: a permit comes back up to a tenth of the window late.
    assert!(retry <= hour + Nanos::from(HOUR / 10));
}
