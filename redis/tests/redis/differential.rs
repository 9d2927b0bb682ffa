//! Every store against the oracle through the real client: waits and figures to the microsecond, over random limits,
//! costs, holds, clock steps in both directions, and limits and windows changed inside a window.

use redis::aio::MultiplexedConnection;
use tollgate::{Nanos, Rule};
use tollgate_redis::{Call, Mode, Report, Scripted, Store};
use tollgate_redis_server::Server;

use crate::{
    oracle::{Limit, Oracle},
    support::Random,
};

/// Calls in one history; histories run side by side on one connection.
const CALLS: usize = 200;
const SIDE_BY_SIDE: u64 = 16;

/// Rings of a block or less, and of several blocks.
const SMALL: [u64; 3] = [12, 12, 70];

struct Traffic {
    store: Store,
    /// The largest limits, one of which is each history's.
    most: [u64; 3],
    holds: bool,
    changes: bool,
}

async fn one_history(mut connection: MultiplexedConnection, traffic: &Traffic, seed: u64) {
    let mut random = Random(seed);
    let scripted = Scripted::new(traffic.store);
    let rules = 1 + random.below(3) as usize;
    let keys: Vec<Vec<u8>> = (0..rules).map(|i| format!("{{{seed}}}:{i}").into_bytes()).collect();
    let unit = random.pick(&[1, 7, 1_000, 250_000, 60_000_000]);
    let most = random.pick(&traffic.most);
    let mut limits: Vec<Limit> = (0..rules)
        .map(|_| Limit { limit: 1 + random.below(most), window: unit * (1 + random.below(20)) })
        .collect();
    let longest = limits.iter().map(|limit| limit.window).max().unwrap();
    let mut oracle = Oracle::new(traffic.store, rules);
    let mut now = 1_793_600_000_123_456 + random.below(1_000_000);

    let mut times = vec![now];

    for step in 0..CALLS {
        now = match random.below(40) {
            0 => now + longest * 3,
            1..=8 => now,
            // The moment before, at, or after the end of a window that began with an earlier call.
            9..=12 => random.pick(&times) + random.pick(&limits).window + random.below(3) - 1,
            _ => now + random.below(longest * 4 / most.min(70) + 2),
        };
        times.push(now);
        if random.once_in(25) {
            now -= random.below(longest + 1);
        }
        if traffic.changes && random.once_in(15) {
            let changed = random.below(rules as u64) as usize;
            // A bucket of nothing, whose clock ran back, has figures of no meaning; f037 asks it.
            let low = u64::from(matches!(traffic.store, Store::Gcra { .. }));
            limits[changed].limit = low + random.below(most + 2 - low);
        }
        if traffic.changes && random.once_in(15) {
            let changed = random.below(rules as u64) as usize;
            limits[changed].window = unit * (1 + random.below(20));
        }
        let least = limits.iter().map(|limit| limit.limit).min().unwrap();
        let cost = if random.once_in(2) { least.min(1) } else { random.below(least + 1) };
        let mode = random.pick(&[Mode::Take, Mode::Take, Mode::Part, Mode::Peek]);
        let hold = if traffic.holds { random.pick(&[0, 0, 1, longest / 10, longest]) } else { 0 };
        let report = random.pick(&[Report::Nothing, Report::Ahead, Report::Figures, Report::Figures]);

        let us = Nanos::from_micros;
        let asked: Vec<Rule> =
            limits.iter().map(|limit| Rule { limit: limit.limit, window: us(limit.window) }).collect();
        let call = Call { mode, cost, report, hold: us(hold), now: Some(us(now)) };
        let reply = scripted.call(&mut connection, &keys, &asked, call).await.unwrap();
        let expected = oracle.call(&limits, mode, cost, hold, now);

        let context = format!("seed {seed} step {step} {call:?} {limits:?}\n{reply:?}\n{expected:?}");
        let told = report != Report::Nothing || mode == Mode::Part;
        assert_eq!(
            (reply.granted, reply.retry_after, reply.at),
            (expected.granted, us(expected.retry), if told { us(expected.at) } else { Nanos::ZERO }),
            "{context}"
        );
        if report == Report::Figures || told && reply.retry_after > Nanos::ZERO {
            assert_eq!(reply.rule, expected.rule, "{context}");
        }
        if report == Report::Figures {
            assert_eq!(
                reply.figures,
                Some((expected.left, us(expected.next), us(expected.reset))),
                "{context}"
            );
        }
        if report == Report::Ahead && least > 0 {
            assert_eq!(reply.ahead, Some(us(expected.ahead)), "{context}");
        }
    }
}

async fn differential(traffic: Traffic, histories: u64) {
    let server = Server::start().await;
    let connection = server.connection().await;
    let traffic = std::sync::Arc::new(traffic);
    let mut running = tokio::task::JoinSet::new();
    for lane in 0..SIDE_BY_SIDE {
        let (connection, traffic) = (connection.clone(), traffic.clone());
        running.spawn(async move {
            for history in (lane..histories).step_by(SIDE_BY_SIDE as usize) {
                one_history(connection.clone(), &traffic, history).await;
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    let immortal = server.immortal().await;
    assert!(immortal.is_empty(), "keys without expiry: {immortal:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ring_answers_as_the_definitions_do() {
    differential(Traffic { store: Store::Ring, most: SMALL, holds: true, changes: true }, 500).await;
}

/// So many records that the search for the first one in the window guesses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ring_of_thousands_answers_as_the_definitions_do() {
    let most = [400, 2_000, 9_000];
    differential(Traffic { store: Store::Ring, most, holds: true, changes: true }, 80).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zset_answers_as_the_definitions_do() {
    differential(Traffic { store: Store::Zset, most: SMALL, holds: false, changes: true }, 140).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counter_answers_as_the_definitions_do() {
    for buckets in [1, 3, 16] {
        differential(
            Traffic { store: Store::Counter { buckets }, most: SMALL, holds: false, changes: true },
            50,
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_window_answers_as_the_definitions_do() {
    differential(Traffic { store: Store::TwoWindow, most: SMALL, holds: false, changes: true }, 140).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gcra_answers_as_the_definitions_do() {
    differential(
        Traffic { store: Store::Gcra { burst: None }, most: SMALL, holds: false, changes: true },
        140,
    )
    .await;
}
