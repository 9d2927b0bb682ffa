//! Faults that other limiters on a Redis had in the field, one test each, named after its id.

use std::{sync::Arc, time::Duration};

use redis::aio::MultiplexedConnection;
use tokio::sync::Barrier;
use tollgate::{Nanos, Reason, Rule};
use tollgate_redis::{By, Call, Failure, Limiter, Mode, OnFailure, Reply, Report, Scripted, Store};
use tollgate_redis_server::Server;

use crate::support::{HOUR, MINUTE, Random, SECOND, admitted, manager, name, patient};

const STORES: [Store; 5] =
    [Store::Ring, Store::Zset, Store::Counter { buckets: 16 }, Store::TwoWindow, Store::Gcra { burst: None }];

/// A limit on one key, asked at times of the test's choosing.
struct At {
    connection: MultiplexedConnection,
    scripted: Scripted,
    key: Vec<u8>,
    rule: Rule,
}

impl At {
    async fn new(server: &Server, store: Store, key: &str, limit: u64, window: Duration) -> Self {
        let (connection, key) = (server.connection().await, key.as_bytes().to_vec());
        Self { connection, scripted: Scripted::new(store), key, rule: Rule::new(limit, window) }
    }

    async fn ask(&mut self, mode: Mode, cost: u64, now_us: u64) -> Reply {
        let now = Some(Nanos::from_micros(now_us));
        let call = Call { mode, cost, report: Report::Figures, hold: Nanos::ZERO, now };
        let keys = std::slice::from_ref(&self.key);
        self.scripted.call(&mut self.connection, keys, &[self.rule], call).await.unwrap()
    }

    async fn admits(&mut self, now_us: u64) -> bool {
        self.ask(Mode::Take, 1, now_us).await.granted == 1
    }

    async fn admitted(&mut self, calls: usize, now_us: u64) -> usize {
        let mut admitted = 0;
        for _ in 0..calls {
            admitted += usize::from(self.admits(now_us).await);
        }
        admitted
    }
}

/// Units that the key holds, by its size.
async fn entries(server: &Server, store: Store, key: &str) -> u64 {
    match store {
        Store::Ring => (server.ask::<u64>(&["STRLEN", key]).await - 48) / 8,
        _ => server.ask(&["ZCARD", key]).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f001_ten_callers_at_once_and_room_for_five() {
    let server = Server::start().await;
    for store in [Store::Ring, Store::Zset] {
        let limiters: Vec<_> = (0..10)
            .map(|_| {
                patient(Limiter::builder("api", 5, MINUTE).store(store))
                    .build(manager(&server.url()))
                    .unwrap()
            })
            .collect();
        let gate = Arc::new(Barrier::new(10));
        let mut callers = tokio::task::JoinSet::new();
        for limiter in limiters {
            let gate = gate.clone();
            callers.spawn(async move {
                let mut rounds = Vec::with_capacity(1_000);
                for round in 0..1_000 {
                    gate.wait().await;
                    rounds.push(limiter.try_acquire(format!("{store:?}{round}"), 1).await.unwrap().admitted);
                }
                rounds
            });
        }
        let mut totals = vec![0; 1_000];
        while let Some(done) = callers.join_next().await {
            for (total, admitted) in totals.iter_mut().zip(done.unwrap()) {
                *total += u32::from(admitted);
            }
        }
        assert!(totals.iter().all(|&total| total == 5), "{totals:?}");
        for round in (0..1_000).step_by(97) {
            assert_eq!(entries(&server, store, &format!("tollgate:{{{store:?}{round}}}:api")).await, 5);
        }
    }
}

#[tokio::test]
async fn f037_a_limit_or_rate_of_zero() {
    let server = Server::start().await;
    for store in [&STORES[..], &[Store::Gcra { burst: Some(1) }]].concat() {
        let limiter =
            patient(Limiter::builder("api", 0, SECOND).store(store)).build(manager(&server.url())).unwrap();
        for _ in 0..3 {
            let denied = limiter.check("a", 1).await.unwrap().decision.unwrap_err();
            assert_eq!((denied.reason, denied.retry_after()), (Reason::Never, None), "{store:?}");
            let verdict = limiter.try_acquire("a", 1).await.unwrap();
            assert_eq!((verdict.admitted, verdict.retry_after), (false, None));
            assert_eq!(limiter.acquire_up_to("a", 3).await.unwrap().granted, 0);
        }
        assert!(limiter.try_acquire("a", 0).await.unwrap().admitted);
        assert_eq!(limiter.check("a", 0).await.unwrap().decision.unwrap().remaining, 0);
    }
}

#[tokio::test]
async fn f038_the_advised_wait_is_enough_and_not_a_lie() {
    let server = Server::start().await;
    let mut random = Random(38);
    for store in STORES {
        for key in 0..40 {
            let window = Duration::from_micros(1 + random.below(50_000));
            let limit = 1 + random.below(30);
            let mut at = At::new(&server, store, &format!("{store:?}{key}"), limit, window).await;
            let mut now = 1_793_600_000_000_000;
            for _ in 0..60 {
                now += random.below(window.as_micros() as u64 / 8 + 2);
                let cost = 1 + random.below(limit);
                let reply = at.ask(Mode::Take, cost, now).await;
                if reply.granted == 0 {
                    let wait = reply.retry_after.as_nanos() / 1_000;
                    let from = reply.at.as_nanos() / 1_000;
                    assert!(wait > 0);
                    assert_eq!(
                        at.ask(Mode::Peek, cost, from + wait - 1).await.granted,
                        0,
                        "{store:?} {reply:?}"
                    );
                    assert_eq!(
                        at.ask(Mode::Peek, cost, from + wait).await.granted,
                        cost,
                        "{store:?} {reply:?}"
                    );
                }
            }
        }
    }
    // A bucket's wait after its window was shortened: what it holds drains as it did.
    let mut at = At::new(&server, Store::Gcra { burst: None }, "shortened", 10, MINUTE).await;
    let t = 1_793_600_000_000_000;
    assert_eq!(at.ask(Mode::Take, 10, t).await.granted, 10);
    at.rule = Rule::new(10, SECOND);
    let reply = at.ask(Mode::Take, 1, t).await;
    assert_eq!((reply.at, reply.retry_after), (Nanos::from_micros(t), Nanos::from_millis(59_100)));
    assert_eq!(at.ask(Mode::Peek, 1, t + 59_099_999).await.granted, 0);
    assert_eq!(at.ask(Mode::Peek, 1, t + 59_100_000).await.granted, 1);
    // 0.5 a second, 42 into 50 with 8 left: 68 s. A million a second, one short: 1 us.
    let bucket = Store::Gcra { burst: Some(50) };
    let mut at = At::new(&server, bucket, "half", 1, 2 * SECOND).await;
    assert_eq!(at.ask(Mode::Take, 42, t).await.granted, 42);
    assert_eq!(at.ask(Mode::Take, 42, t).await.retry_after, Nanos::from_secs(68));
    let mut at = At::new(&server, Store::Gcra { burst: Some(10) }, "million", 1_000_000, SECOND).await;
    assert_eq!(at.ask(Mode::Take, 10, t).await.granted, 10);
    assert_eq!(at.ask(Mode::Take, 1, t).await.retry_after, Nanos::from_micros(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f074_fifty_clients_and_fifty_tokens() {
    let server = Server::start().await;
    for store in STORES {
        let mut clients = tokio::task::JoinSet::new();
        let gate = Arc::new(Barrier::new(50));
        for _ in 0..50 {
            let builder = patient(Limiter::builder(name(store), 50, HOUR).store(store));
            let (limiter, gate) = (builder.build(manager(&server.url())).unwrap(), gate.clone());
            clients.spawn(async move {
                gate.wait().await;
                (limiter.try_acquire("a", 1).await.unwrap().admitted, limiter.stats().calls)
            });
        }
        while let Some(done) = clients.join_next().await {
            assert_eq!(done.unwrap(), (true, 1), "{store:?}: one step each, none refused");
        }
    }
}

#[tokio::test]
async fn f075_twenty_hits_in_one_microsecond() {
    let server = Server::start().await;
    for store in [Store::Ring, Store::Zset] {
        let key = format!("{store:?}");
        let mut at = At::new(&server, store, &key, 5, MINUTE).await;
        assert_eq!(at.admitted(20, 1_793_600_000_123_000).await, 5);
        assert_eq!(entries(&server, store, &key).await, 5, "{store:?}");
    }
}

#[tokio::test]
async fn f076_a_value_without_expiry_is_healed() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let key = format!("tollgate:{{a}}:{name}");
        let _: () = server.ask(&["SET", &key, "6"]).await;
        let limiter =
            patient(Limiter::builder(name, 5, MINUTE).store(store)).build(manager(&server.url())).unwrap();
        let answer = limiter.try_acquire("a", 1).await;
        if store == Store::Zset {
            // A string where a sorted set should be: an error that names the key's type, by the policy; never silent.
            assert_eq!(answer.unwrap_err().failure, Failure::Key);
            limiter.reset("a").await.unwrap();
            assert_eq!(admitted(&limiter, "a", 9).await, 5);
        } else {
            assert!(answer.unwrap().admitted, "{store:?}");
            assert_eq!(admitted(&limiter, "a", 9).await, 4, "{store:?}");
        }
        assert!(server.ask::<i64>(&["PTTL", &key]).await > 0);
    }
}

#[tokio::test]
async fn f079_two_clients_with_different_clocks() {
    let server = Server::start().await;
    for store in STORES {
        let mut at = At::new(&server, store, &format!("{store:?}"), 4, 2 * SECOND).await;
        let (a, b) = (1_000_000_000, 990_000_000);
        let total = at.admitted(5, a).await + at.admitted(1, b).await + at.admitted(5, a).await;
        assert_eq!(total, 4, "{store:?}");
    }
}

#[tokio::test]
async fn f080_negative_elapsed_time() {
    let server = Server::start().await;
    for store in [Store::Ring, Store::Zset, Store::Gcra { burst: None }] {
        let mut at = At::new(&server, store, &format!("{store:?}"), 10, SECOND).await;
        let start = 1_793_600_000_000_000;
        // Drained evenly, so that the logs too give one back each 100 ms.
        for step in 0..10 {
            at.admits(start - 900_000 + step * 100_000).await;
        }
        while at.admits(start).await {}
        assert!(!at.admits(start - 5_000_000).await);
        for step in 1..=20 {
            let now = start + step * 100_000;
            assert_eq!(at.admitted(3, now).await, 1, "{store:?} step {step}");
        }
    }
}

#[tokio::test]
async fn f082_lives_are_in_the_unit_that_is_meant() {
    let server = Server::start().await;
    for store in STORES {
        for window in [Duration::from_millis(100), SECOND, MINUTE, HOUR] {
            let name = format!("{}{window:?}", name(store));
            let limiter = patient(Limiter::builder(&name, 5, window).store(store))
                .build(manager(&server.url()))
                .unwrap();
            limiter.try_acquire("a", 1).await.unwrap();
            let life: i64 = server.ask(&["PTTL", &format!("tollgate:{{a}}:{name}")]).await;
            assert!(
                life > 0 && life as u128 <= 2 * window.as_millis() + 1_000,
                "{store:?} {window:?} {life} ms"
            );
        }
    }
    let hold = Duration::from_secs(10);
    let limiter =
        patient(Limiter::builder("lease", 5, MINUTE)).lease(hold, 5).build(manager(&server.url())).unwrap();
    limiter.try_acquire("a", 1).await.unwrap();
    let life: i64 = server.ask(&["PTTL", "tollgate:{a}:lease"]).await;
    assert!(life > 60_000 && life <= 131_000, "two windows, the hold and a second: {life}");
}

/// However many admissions come, each in time before the key would die, its newest record is there for a window.
#[tokio::test]
async fn f088_a_key_lives_as_long_as_its_newest_record() {
    let server = Server::start().await;
    let window = Duration::from_millis(400);
    for store in STORES {
        let name = name(store);
        let limiter = patient(Limiter::builder(&name, 1_000, window).store(store));
        let limiter = limiter.build(manager(&server.url())).unwrap();
        let (mut connection, key) = (server.connection().await, format!("tollgate:{{a}}:{name}"));
        for call in 0..24 {
            let start = std::time::Instant::now();
            assert!(limiter.try_acquire("a", 1).await.unwrap().admitted);
            let life: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
            let passed = start.elapsed().as_millis() as i64;
            // A bucket of GCRA's drains in no time.
            let least = if matches!(store, Store::Gcra { .. }) { -2 } else { 399 - passed };
            assert!(life >= least, "{store:?} call {call}: {life} ms, {passed} ms after it");
            tokio::time::sleep(window / 12).await;
        }
    }
}

#[tokio::test]
async fn f083_a_hit_does_not_push_the_end_of_the_window_away() {
    let server = Server::start().await;
    for store in STORES {
        let mut at = At::new(&server, store, &format!("{store:?}"), 10, MINUTE).await;
        for call in 0..121 {
            assert!(at.admits(1_793_600_000_000_000 + call * 10_000_000).await, "{store:?} call {call}");
        }
    }
}

#[tokio::test]
async fn f084_a_life_that_rounds_down_to_zero() {
    let server = Server::start().await;
    for store in STORES {
        for (limit, window) in [(1_000, SECOND), (1_000_000, SECOND), (1_000, Duration::from_millis(5))] {
            if store == Store::Zset && limit > 1_000 {
                continue; // a million members in one call are seconds of the server's work
            }
            let name = format!("{}{limit}{window:?}", name(store));
            let limiter = patient(Limiter::builder(&name, limit, window).store(store))
                .build(manager(&server.url()))
                .unwrap();
            let key = format!("tollgate:{{a}}:{name}");
            // In the shortest window the key may be gone before it is looked at.
            let mut connection = server.connection().await;
            assert!(limiter.try_acquire("a", limit).await.unwrap().admitted);
            if window == SECOND {
                let life: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
                assert!(life >= 1, "{name}: {life}");
            }
            let mut at = At::new(&server, store, &format!("{name}.at"), limit, window).await;
            let now = 1_793_600_000_000_001;
            assert_eq!(at.ask(Mode::Take, limit, now).await.granted, limit);
            assert!(!at.admits(now).await, "{name}: the call above the limit");
        }
    }
}

#[tokio::test]
async fn f085_a_server_that_refuses_the_time_command() {
    let server = Server::start().await;
    let _: () = server.ask(&["ACL", "SETUSER", "old", "on", ">p", "~*", "+@all", "-time"]).await;
    let url = format!("{}?user=old&pass=p", server.url());
    let limiter = Limiter::builder("api", 5, MINUTE).on_failure(OnFailure::Closed);
    let limiter = limiter.deadline(20 * SECOND).build(manager(&url)).unwrap();
    let said = limiter.verify().await.unwrap_err().to_string();
    assert!(said.contains("can't run this command") || said.contains("permission"), "at start: {said}");
    assert!(limiter.try_acquire("a", 1).await.is_err(), "and never a silent yes");
    let open = Limiter::builder("api", 5, MINUTE).on_failure(OnFailure::Open).deadline(20 * SECOND);
    let open = open.build(manager(&url)).unwrap();
    assert_eq!(open.try_acquire("a", 1).await.unwrap().by, By::Open);
    assert_eq!(open.stats().degraded(), 1);
}

#[tokio::test]
async fn f086_sixteen_digits() {
    let server = Server::start().await;
    let first = 1_700_000_000_123_456;
    for store in [Store::Ring, Store::Zset] {
        let key = format!("two{store:?}");
        let mut at = At::new(&server, store, &key, 2, SECOND).await;
        assert!(at.admits(first).await && at.admits(first + 1).await);
        if store == Store::Zset {
            let scores: Vec<Vec<u8>> = server.ask(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]).await;
            let scores: Vec<String> = scores
                .into_iter()
                .skip(1)
                .step_by(2)
                .map(|score| String::from_utf8(score).unwrap())
                .collect();
            assert_eq!(scores, ["1700000000123456", "1700000000123457"]);
        } else {
            let ring: Vec<u8> = server.ask(&["GETRANGE", &key, "48", "-1"]).await;
            let stamps: Vec<u64> =
                ring.chunks(8).map(|stamp| u64::from_be_bytes(stamp.try_into().unwrap())).collect();
            assert_eq!(stamps, [first, first + 1]);
        }
    }
    for store in STORES {
        let mut at = At::new(&server, store, &format!("one{store:?}"), 1, SECOND).await;
        assert!(at.admits(first).await && !at.admits(first + 1).await);
        if matches!(store, Store::Ring | Store::Zset | Store::Gcra { .. }) {
            assert!(!at.admits(first + 999_999).await && at.admits(first + 1_000_000).await, "{store:?}");
        }
    }
}

#[tokio::test]
async fn f088_the_life_covers_the_window_and_ends() {
    let server = Server::start().await;
    let store = Store::Counter { buckets: 60 };
    let mut at = At::new(&server, store, "hour", 10, HOUR).await;
    let minute = |m: u64| 1_793_600_000_000_000 / 3_600_000_000 * 3_600_000_000 + m * 60_000_000;
    assert!(at.admits(minute(0)).await);
    assert_eq!(at.admitted(8, minute(59)).await, 8);
    assert_eq!(at.admitted(3, minute(61)).await, 2, "8 are in use");

    // The same in a window of 300 ms of real time, for every store: used within it, gone after it.
    let window = Duration::from_millis(300);
    for store in STORES {
        let name = name(store);
        let limiter =
            patient(Limiter::builder(name, 10, window).store(store)).build(manager(&server.url())).unwrap();
        limiter.try_acquire("silent", 10).await.unwrap();
    }
    tokio::time::sleep(2 * window + Duration::from_millis(300)).await;
    let left: Vec<String> = server.ask(&["KEYS", "*silent*"]).await;
    assert!(left.is_empty(), "{left:?}");
}

/// Clients' clocks in the textbook's hands: both harms, and neither here, where no client's time is ever sent.
mod client_clocks {
    use super::*;

    /// The usual script: the client's time as score and member, and the window cut by it.
    const TEXTBOOK: &str = "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2] - ARGV[3])
        if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
        redis.call('ZADD', KEYS[1], ARGV[2], ARGV[4])
        redis.call('PEXPIRE', KEYS[1], ARGV[3]) return 1";

    async fn textbook(connection: &mut MultiplexedConnection, now_ms: u64, call: u64) -> bool {
        let script = redis::Script::new(TEXTBOOK);
        let mut invocation = script.key("textbook");
        let call = invocation.arg(5).arg(now_ms).arg(60_000).arg(call);
        call.invoke_async::<u64>(connection).await.unwrap() == 1
    }

    async fn ours(server: &Server) -> usize {
        // Two clients, whose clocks do not matter: the limiter takes no time from them.
        let build = || patient(Limiter::builder("api", 5, MINUTE)).build(manager(&server.url())).unwrap();
        let (fast, right) = (build(), build());
        let mut total = 0;
        for _ in 0..5 {
            total += admitted(&fast, "a", 1).await + admitted(&right, "a", 1).await;
        }
        total
    }

    #[tokio::test]
    async fn too_lax_a_fast_clock_forgets_what_is_still_in_the_window() {
        let server = Server::start().await;
        let mut connection = server.connection().await;
        let (right, fast) = (1_793_600_000_000, 1_793_600_061_000);
        let mut total = 0;
        for call in 0..5 {
            total += usize::from(textbook(&mut connection, right, call).await);
        }
        for call in 5..10 {
            total += usize::from(textbook(&mut connection, fast, call).await);
        }
        assert_eq!(total, 10, "twice the limit in one moment");
        assert_eq!(ours(&server).await, 5);
    }

    #[tokio::test]
    async fn too_strict_a_fast_clock_s_entries_outlive_the_window_for_everybody_else() {
        let server = Server::start().await;
        let mut connection = server.connection().await;
        let (right, fast) = (1_793_600_000_000, 1_793_600_050_000);
        for call in 0..5 {
            assert!(textbook(&mut connection, fast, call).await);
        }
        assert!(!textbook(&mut connection, right + 60_001, 5).await, "a window later, and still full");
        assert_eq!(ours(&server).await, 5);
        // A window later by the server's clock there is room again, whatever clocks say.
        let mut at = At::new(&server, Store::Ring, "later", 5, MINUTE).await;
        let start = 1_793_600_000_000_000;
        assert_eq!(at.admitted(9, start).await, 5);
        assert_eq!(at.admitted(9, start + 60_000_000).await, 5);
    }
}
