//! A server that is slow, silent, gone, forgetful or full, in the middle of traffic.

use std::time::{Duration, Instant};

use tollgate::Reason;
use tollgate_redis::{Builder, By, Failure, Instances, Limiter, OnFailure, Store};
use tollgate_redis_server::Server;

use crate::{
    proxy::Proxy,
    support::{HOUR, MINUTE, Random, SECOND, admitted, manager, name, patient},
};

const DEADLINE: Duration = Duration::from_millis(50);
/// What a busy machine may add to a deadline.
const SLACK: Duration = Duration::from_millis(450);

fn three_limits() -> Builder {
    Limiter::builder("a", 1_000_000, HOUR)
        .rule("b", 1_000_000, HOUR)
        .rule("c", 1_000_000, HOUR)
        .deadline(DEADLINE)
}

/// A hundred calls to a server that does not answer: each ends by the policy, in time, and almost all at once.
async fn a_hundred_calls_fail_open(url: &str, failure: Failure) -> Limiter<redis::aio::ConnectionManager> {
    let limiter = three_limits().on_failure(OnFailure::Open).build(manager(url)).unwrap();
    let start = Instant::now();
    for _ in 0..100 {
        let call = Instant::now();
        let verdict = limiter.try_acquire("u", 1).await.unwrap();
        assert_eq!((verdict.admitted, verdict.by), (true, By::Open));
        assert!(call.elapsed() < DEADLINE + SLACK, "{:?}", call.elapsed());
    }
    assert!(start.elapsed() < DEADLINE * 6 + SLACK, "the breaker answers at once: {:?}", start.elapsed());
    let stats = limiter.stats();
    assert!(stats.failed(failure) >= 3, "{stats:?}");
    assert_eq!((stats.admitted(By::Open), stats.degraded()), (100, 100), "each is marked and counted");
    assert!(stats.failed(Failure::Breaker) >= 90 && !limiter.health().asking);
    limiter
}

async fn recovers(limiter: &Limiter<redis::aio::ConnectionManager>) {
    let start = Instant::now();
    while limiter.try_acquire("u", 1).await.unwrap().by != By::Redis {
        assert!(start.elapsed() < Duration::from_secs(5), "not back after {:?}", start.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(start.elapsed() < Duration::from_millis(1_000) + SLACK, "back after {:?}", start.elapsed());
    assert!(limiter.health().asking);
}

#[tokio::test]
async fn f081_fail_open_against_a_server_that_is_silent() {
    let server = Server::start().await;
    let limiter = three_limits().on_failure(OnFailure::Open).build(manager(&server.url())).unwrap();
    recovers(&limiter).await;
    server.pause();
    let stopped = a_hundred_calls_fail_open(&server.url(), Failure::Deadline).await;
    server.resume();
    recovers(&stopped).await;
}

#[tokio::test]
async fn f081_fail_open_against_a_server_that_is_down() {
    let mut server = Server::start().await;
    server.kill();
    let limiter = a_hundred_calls_fail_open(&server.url(), Failure::Deadline).await;
    server.restart().await;
    recovers(&limiter).await;
}

#[tokio::test]
async fn f081_fail_open_against_a_server_that_answers_after_ten_seconds() {
    let server = Server::start().await;
    let proxy = Proxy::before(server.socket()).await;
    proxy.delay(Duration::from_secs(10));
    a_hundred_calls_fail_open(&proxy.url(), Failure::Deadline).await;
}

#[tokio::test]
async fn f077_the_script_is_gone_after_a_flush_or_a_restart() {
    let mut server = Server::start().await;
    let limiter = patient(Limiter::builder("api", 5, MINUTE)).build(manager(&server.url())).unwrap();
    assert_eq!(admitted(&limiter, "a", 2).await, 2);
    let _: () = server.ask(&["SCRIPT", "FLUSH"]).await;
    // Eight at once on one connection: the client sends them in one pipeline.
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let limiter = limiter.clone();
        callers.spawn(async move { limiter.try_acquire("a", 1).await.unwrap().admitted });
    }
    let mut total = 0;
    while let Some(done) = callers.join_next().await {
        total += usize::from(done.unwrap());
    }
    assert_eq!(total, 3, "each call is counted once");
    let evals = || async {
        let info: String = server.ask(&["INFO", "commandstats"]).await;
        let line = info.lines().find(|line| line.starts_with("cmdstat_eval:")).unwrap_or("=0,").to_owned();
        line.split(['=', ',']).nth(1).unwrap().parse::<u64>().unwrap()
    };
    let loads = evals().await;
    assert!((2..=9).contains(&loads), "{loads}");
    admitted(&limiter, "b", 20).await;
    assert_eq!(evals().await, loads, "nobody loads it again");

    server.kill();
    server.restart().await;
    let limiter = patient(Limiter::builder("api", 5, MINUTE)).build(manager(&server.url())).unwrap();
    assert_eq!(admitted(&limiter, "c", 9).await, 5);
}

/// The reply is lost after the script ran: nobody knows, so nothing is repeated and nothing given back.
#[tokio::test]
async fn a_lost_reply_is_neither_replayed_nor_refunded() {
    let server = Server::start().await;
    let proxy = Proxy::before(server.socket()).await;
    let limiter = Limiter::builder("api", 100, HOUR)
        .breaker(1_000, SECOND)
        .deadline(Duration::from_millis(300))
        .on_failure(OnFailure::Closed)
        .build(manager(&proxy.url()))
        .unwrap();
    let watcher = patient(Limiter::builder("api", 100, HOUR)).build(manager(&server.url())).unwrap();
    assert!(limiter.try_acquire("a", 1).await.unwrap().admitted);
    let mut lost = 0;
    for round in 0..20 {
        if round % 2 == 0 {
            proxy.cut_replies(true)
        } else {
            proxy.silence(true)
        }
        let error = limiter.try_acquire("a", 1).await.unwrap_err();
        assert!(matches!(error.failure, Failure::Connection | Failure::Deadline), "{error}");
        proxy.cut_replies(false);
        proxy.silence(false);
        // A silent connection stays silent to what it swallowed; start anew.
        proxy.cut();
        lost += 1;
        let left = watcher.peek("a", 1).await.unwrap().decision.unwrap().remaining;
        assert!(left >= 100 - 1 - lost, "at most once: {left} left after {lost} lost");
        // Until the connection is there again.
        while limiter.peek("b", 1).await.is_err() {}
    }
    let left = watcher.peek("a", 1).await.unwrap().decision.unwrap().remaining;
    assert!(left <= 100 - 1 - lost / 2, "most of them ran, and stay counted: {left} left");
}

#[tokio::test]
async fn f076_a_cut_in_the_first_call_leaves_no_key_or_one_that_dies() {
    let server = Server::start().await;
    for after_ms in 0..25u64 {
        let proxy = Proxy::before(server.socket()).await;
        let limiter = Limiter::builder("api", 5, MINUTE).build(manager(&proxy.url())).unwrap();
        let call = tokio::spawn(async move { limiter.try_acquire("a", 1).await });
        tokio::time::sleep(Duration::from_micros(after_ms * 200)).await;
        proxy.cut();
        assert!(call.await.unwrap().is_ok(), "the policy answers");
        assert!(server.immortal().await.is_empty());
        let _: () = server.ask(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn without_a_server_each_instance_keeps_to_its_portion() {
    let mut server = Server::start().await;
    let limiters: Vec<_> = (0..3)
        .map(|index| {
            let instances = Instances::new(index, 3).unwrap();
            let builder = Limiter::builder("api", 10, HOUR).instances(&instances);
            builder
                .deadline(Duration::from_millis(500))
                .breaker(1, MINUTE)
                .build(manager(&server.url()))
                .unwrap()
        })
        .collect();
    assert_eq!(admitted(&limiters[0], "a", 2).await, 2);
    assert_eq!(limiters[0].stats().admitted(By::Redis), 2);
    server.kill();
    let mut portions = Vec::new();
    for limiter in &limiters {
        portions.push(admitted(limiter, "a", 10).await);
    }
    assert_eq!(portions, [2, 3, 3], "what was had from the server counts");
    let denied = limiters[1].check("a", 1).await.unwrap();
    assert_eq!((denied.by, denied.decision.unwrap_err().quota.limit), (By::Local, 3));
    let never = limiters[1].check("a", 5).await.unwrap().decision.unwrap_err();
    assert_eq!(never.reason, Reason::Never, "more than its portion");
}

#[tokio::test]
async fn closed_means_an_error_and_a_wait() {
    let mut server = Server::start().await;
    server.kill();
    let limiter = three_limits().on_failure(OnFailure::Closed).build(manager(&server.url())).unwrap();
    for _ in 0..5 {
        let error = limiter.check("a", 1).await.unwrap_err();
        assert!(error.retry_after.as_nanos() >= 1_000_000, "{error}");
    }
    assert_eq!(limiter.stats().unavailable, 5);
    assert!(limiter.verify().await.is_err());
    limiter.set_limits(&[0, 0, 0]).unwrap();
    let never = limiter.check("a", 1).await.unwrap();
    assert_eq!(never.decision.unwrap_err().reason, Reason::Never, "the kill switch needs no server");
}

#[tokio::test]
async fn a_kill_switch_holds_while_failing_open() {
    let mut server = Server::start().await;
    let limiter = three_limits().on_failure(OnFailure::Open).build(manager(&server.url())).unwrap();
    server.kill();
    assert!(limiter.try_acquire("a", 1).await.unwrap().admitted);
    limiter.set_limits(&[1_000, 0, 1_000]).unwrap();
    assert!(!limiter.try_acquire("a", 1).await.unwrap().admitted);
    assert_eq!(limiter.acquire_up_to("a", 5).await.unwrap().granted, 0);
}

/// The wrong type under a key: an error for that key by the policy, which does not open the breaker for all others.
#[tokio::test]
async fn a_key_of_the_wrong_type_concerns_that_key_alone() {
    let server = Server::start().await;
    let _: () = server.ask(&["RPUSH", "tollgate:{bad}:api", "x"]).await;
    let limiter = patient(Limiter::builder("api", 5, HOUR)).build(manager(&server.url())).unwrap();
    for _ in 0..10 {
        assert_eq!(limiter.try_acquire("bad", 1).await.unwrap_err().failure, Failure::Key);
    }
    assert!(limiter.health().asking);
    assert_eq!(admitted(&limiter, "good", 9).await, 5);
    limiter.reset("bad").await.unwrap();
    assert_eq!(admitted(&limiter, "bad", 9).await, 5);
}

#[tokio::test]
async fn a_server_that_refuses_to_write_is_a_failure_and_not_a_refusal() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]).await;
    let limiter =
        patient(Limiter::builder("api", 5, HOUR)).breaker(2, MINUTE).build(manager(&server.url())).unwrap();
    assert_eq!(admitted(&limiter, "a", 1).await, 1);
    let _: () = server.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let failures = [
        limiter.try_acquire("a", 1).await,
        limiter.try_acquire("a", 1).await,
        limiter.try_acquire("a", 1).await,
    ];
    let failures = failures.map(|answer| answer.unwrap_err().failure);
    assert_eq!(failures, [Failure::Server, Failure::Server, Failure::Breaker]);
}

/// A reset that is given up may have reached the server: what is known here is forgotten all the same.
#[tokio::test]
async fn a_dropped_reset_forgets_too() {
    let server = Server::start().await;
    let proxy = Proxy::before(server.socket()).await;
    let limiter = patient(Limiter::builder("api", 5, HOUR)).cache_refusals(MINUTE);
    let limiter = limiter.build(manager(&proxy.url())).unwrap();
    assert_eq!(admitted(&limiter, "a", 9).await, 5);
    proxy.delay(Duration::from_millis(300));
    assert!(tokio::time::timeout(Duration::from_millis(150), limiter.reset("a")).await.is_err());
    proxy.delay(Duration::ZERO);
    assert!(server.ask::<Vec<String>>(&["KEYS", "*"]).await.is_empty(), "it had reached the server");
    assert_eq!(admitted(&limiter, "a", 9).await, 5);
}

/// A string too long for the server is an error, and the admissions that are there are not lost over it.
#[tokio::test]
async fn a_ring_that_may_not_grow_forgets_nothing() {
    let server = Server::with(&["--proto-max-bulk-len", "1mb"]).await;
    let limiter = patient(Limiter::builder("api", 200_000, HOUR)).build(manager(&server.url())).unwrap();
    let (mut taken, mut failed) = (0, 0);
    for _ in 0..300 {
        match limiter.try_acquire("a", 1_000).await {
            Ok(verdict) => taken += if verdict.admitted { 1_000 } else { 0 },
            Err(unavailable) => {
                assert_eq!(unavailable.failure, Failure::Key);
                failed += 1;
            }
        }
    }
    assert!(taken > 60_000 && failed > 0, "{taken} taken, {failed} failed");
    let left = limiter.peek("a", 1).await.unwrap().decision.unwrap().remaining;
    assert_eq!(left, 200_000 - taken);
    assert!(server.immortal().await.is_empty());
}

/// Whatever bytes are found under a key: an answer or an error, at once, and nobody else is held up.
#[tokio::test]
async fn bytes_of_others_end_in_an_answer_or_an_error() {
    let server = Server::start().await;
    let mut connection = server.connection().await;
    let mut random = Random(88);
    let start = Instant::now();
    for store in [Store::Ring, Store::Counter { buckets: 16 }, Store::TwoWindow, Store::Gcra { burst: None }]
    {
        let name = name(store);
        let key = format!("tollgate:{{a}}:{name}");
        let limiter = patient(Limiter::builder(&name, 40, HOUR).store(store)).build(manager(&server.url()));
        let limiter = limiter.unwrap();
        admitted(&limiter, "a", 35).await;
        let whole: Vec<u8> = server.ask(&["GET", &key]).await;
        let (mut answers, mut errors) = (0, 0);
        for _ in 0..400 {
            let mut bytes = whole.clone();
            match random.below(4) {
                0 => bytes.truncate(1 + random.below(whole.len() as u64) as usize),
                1 => bytes.extend_from_slice(&[0xff; 9]),
                // What stands before the figures stays, as does their order of magnitude.
                2 => bytes[8..].iter_mut().skip(random.below(8) as usize).step_by(8).for_each(|b| *b ^= 0x55),
                _ => bytes[8..].fill_with(|| random.next() as u8),
            }
            let mut set = redis::cmd("SET");
            set.arg(&key).arg(bytes).arg("EX").arg(60);
            set.query_async::<()>(&mut connection).await.unwrap();
            for _ in 0..2 {
                match limiter.check("a", 1 + random.below(40)).await {
                    Ok(_) => answers += 1,
                    Err(unavailable) => {
                        assert!(
                            matches!(unavailable.failure, Failure::Key | Failure::Server),
                            "{unavailable}"
                        );
                        errors += 1;
                    }
                }
            }
        }
        println!("{name}: {answers} answers, {errors} errors");
        assert_eq!(answers + errors, 800);
        assert!(server.immortal().await.is_empty(), "{name}");
        limiter.reset("a").await.unwrap();
        assert_eq!(admitted(&limiter, "a", 50).await, 40, "{name}");
    }
    let info: String = server.ask(&["INFO", "memory"]).await;
    let peak = info.lines().find_map(|line| line.strip_prefix("used_memory_peak:")).unwrap();
    assert!(peak.trim().parse::<u64>().unwrap() < 1 << 30, "{peak}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// A caller who gives up must not leave those waiting who share its call.
#[tokio::test]
async fn a_dropped_caller_holds_up_nobody_and_its_unit_is_spent_or_handed_on() {
    let server = Server::start().await;
    let proxy = Proxy::before(server.socket()).await;
    let limiter =
        patient(Limiter::builder("api", 10, HOUR)).share_calls().build(manager(&proxy.url())).unwrap();
    assert_eq!(admitted(&limiter, "a", 1).await, 1);
    proxy.delay(Duration::from_millis(100));
    let leader = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.try_acquire("a", 1).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut followers = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let limiter = limiter.clone();
        followers.spawn(async move { limiter.try_acquire("a", 1).await.unwrap().admitted });
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    leader.abort();
    let mut total = 0;
    while let Some(done) = followers.join_next().await {
        total += usize::from(done.unwrap());
    }
    proxy.delay(Duration::ZERO);
    // The leader's unit was granted when it had gone; with nobody aboard to take it, it is spent.
    assert_eq!(total, 8);
    let calls = limiter.stats().calls;
    assert!(calls <= 4, "{calls} calls for 14 callers");
}

/// The task that saw a shared call through ends with its runtime: whoever comes next asks anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_ends_under_a_shared_call_holds_up_nobody() {
    let server = Server::start().await;
    let limiter = patient(Limiter::builder("api", 10, HOUR)).share_calls();
    let limiter = limiter.deadline(Duration::from_secs(2)).build(manager(&server.url())).unwrap();
    assert_eq!(admitted(&limiter, "a", 1).await, 1);
    server.pause();
    let short = tokio::runtime::Runtime::new().unwrap();
    short.spawn({
        let limiter = limiter.clone();
        async move { limiter.try_acquire("a", 1).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let follower = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.try_acquire("a", 1).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    short.shutdown_background();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.resume();
    // One who was waiting is told, or served; nobody who comes later is held up.
    let _told = follower.await.unwrap();
    assert_eq!(limiter.try_acquire("a", 1).await.map(|verdict| verdict.by), Ok(By::Redis));
}
