//! What a check costs the server and what the tiers save. Each table asserts the path that it claims to measure.
//!
//!     cargo bench -p tollgate-redis                 every table
//!     cargo bench -p tollgate-redis -- stall tiers  those whose name is given
//!
//! Run as a test (without `--bench`) everything happens once, in small. Servers are started on sockets in temporary folders.

mod asker;
mod counts;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redis::aio::ConnectionManager;
use tokio::task::JoinSet;
use tollgate::{Nanos, Rule};
use tollgate_redis::{Builder, By, Call, Instances, Limiter, Mode, OnFailure, Report, Scripted, Store};
use tollgate_redis_server::Server;

use asker::{Asker, KEPT, Kept};

const HOUR: Duration = Duration::from_secs(3_600);
/// CPU seconds of the server's main thread so far.
async fn cpu(server: &Server) -> f64 {
    let info: String = server.ask(&["INFO", "cpu"]).await;
    let main = info.lines().filter(|line| line.starts_with("used_cpu_") && line.contains("_main_thread:"));
    main.map(|line| line.split(':').nth(1).unwrap().trim().parse::<f64>().unwrap()).sum()
}

/// How to ask: units a call, callers, whether they share a connection, calls in all, and what the answer must be.
#[derive(Clone, Copy)]
struct Drive {
    units: u64,
    lanes: usize,
    pipelined: bool,
    checks: usize,
    admit: bool,
}

/// Callers who have asked once, of a limit that is used up if they are to be refused.
async fn askers(server: &Server, kept: Kept, rule: Rule, drive: Drive) -> Vec<Asker> {
    let shared = server.connection().await;
    if !drive.admit {
        let mut filler = Asker::new(shared.clone(), kept, rule, "fill".into());
        let mut left = rule.limit;
        while left > 0 {
            assert!(filler.admitted(left.min(1_000)).await);
            left -= left.min(1_000);
        }
    }
    let mut askers = Vec::new();
    for lane in 0..drive.lanes {
        let connection = if drive.pipelined { shared.clone() } else { server.connection().await };
        let mut asker = Asker::new(connection, kept, rule, lane.to_string());
        assert_eq!(asker.admitted(drive.units).await, drive.admit);
        askers.push(asker);
    }
    askers
}

/// All callers at once. Returns them, and how many calls they made.
async fn ask(askers: Vec<Asker>, drive: Drive) -> (Vec<Asker>, f64) {
    let Drive { units, lanes, checks, admit, .. } = drive;
    let mut running = JoinSet::new();
    for mut asker in askers {
        running.spawn(async move {
            for _ in 0..checks / lanes {
                assert_eq!(asker.admitted(units).await, admit, "not the path it names");
            }
            asker
        });
    }
    (running.join_all().await, (checks / lanes * lanes) as f64)
}

/// Checks a second, and the server's CPU time for each.
async fn drive(kept: Kept, rule: Rule, drive: Drive) -> (f64, f64) {
    let server = Server::start().await;
    let askers = askers(&server, kept, rule, drive).await;
    let (cpu_before, start) = (cpu(&server).await, Instant::now());
    let (_, done) = ask(askers, drive).await;
    let (took, cpu) = (start.elapsed().as_secs_f64(), cpu(&server).await - cpu_before);
    (done / took, 1e6 * cpu / done)
}

/// Checks a second and CPU a check, by store, units, connections and pipelining.
async fn checks(full: bool) {
    println!("checks: checks a second / server CPU us a check; admissions, window 100 ms, limit 1,000,000");
    println!(
        "{:14} {:>5} {:>16} {:>16} {:>16} {:>16} {:>16}",
        "", "units", "1 conn", "16 conns", "64 conns", "16 on one", "64 on one"
    );
    let count = if full { 20_000 } else { 64 };
    for units in [1, 50] {
        for (name, kept) in KEPT {
            print!("{name:14} {units:5}");
            for (lanes, pipelined) in [(1, false), (16, false), (64, false), (16, true), (64, true)] {
                let rule = Rule::new(1_000_000, Duration::from_millis(100));
                // GCRA gives back at its rate: a longer burst keeps it on the path of admissions.
                let count = if units > 1 { (count / 10).max(lanes) } else { count };
                let (rate, cpu) =
                    drive(kept, rule, Drive { units, lanes, pipelined, checks: count, admit: true }).await;
                print!(" {:>16}", format!("{rate:.0} / {cpu:.1}"));
            }
            println!();
        }
    }
}

/// CPU an admission and a refusal, against the textbook's, in turns. (A refusal in so long a window that GCRA gives nothing
/// back meanwhile.)
async fn cost(full: bool) {
    let (count, rounds) = if full { (20_000, 5) } else { (32, 1) };
    println!(
        "cost: server CPU us a check, one connection, 16 in flight, limit 10,000; the median of {rounds} runs in turns"
    );
    for (what, window, admit) in
        [("admission", Duration::from_millis(50), true), ("refusal", 720 * HOUR, false)]
    {
        let mut runs = vec![Vec::new(); KEPT.len()];
        for _ in 0..rounds {
            for (run, (_, kept)) in runs.iter_mut().zip(KEPT) {
                let how = Drive { units: 1, lanes: 16, pipelined: true, checks: count, admit };
                run.push(drive(kept, Rule::new(10_000, window), how).await.1);
            }
        }
        let medians: Vec<f64> = runs
            .iter_mut()
            .map(|run| {
                run.sort_by(f64::total_cmp);
                run[run.len() / 2]
            })
            .collect();
        for ((name, _), median) in KEPT.iter().zip(&medians) {
            println!("{what:10} {name:14} {median:6.2} us  {:.2} x the textbook's", median / medians[0]);
        }
    }
}

/// Bytes an entry of a full limit.
async fn bytes(full: bool) {
    println!("bytes: an entry, by MEMORY USAGE, of a full limit");
    let server = Server::start().await;
    for limit in if full { vec![100, 1_000, 10_000, 100_000] } else { vec![100] } {
        for (name, kept) in KEPT.into_iter().take(4) {
            let key = format!("{name}{limit}");
            let rule = Rule::new(limit, HOUR);
            let mut asker = Asker::on(server.connection().await, kept, rule, "fill".into(), &key);
            for _ in 0..limit / 10 {
                assert!(asker.admitted(10).await);
            }
            let bytes: u64 = server.ask(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).await;
            println!("{name:14} limit {limit:7}: {:8.2}", bytes as f64 / limit as f64);
        }
    }
}

/// An entry of the slow log: number, time, microseconds, command, client, its name.
type Slow = (u64, u64, u64, Vec<Vec<u8>>, Vec<u8>, Vec<u8>);

/// The server's longest stop: the first call after a full window has expired at once, a raised limit, the first fill.
async fn stall(full: bool) {
    println!("stall: the server's longest stop, by its own slow log, us");
    for limit in if full { vec![10_000, 100_000, 1_000_000] } else { vec![2_000] } {
        for (name, store) in
            [("zset", Store::Zset), ("ring", Store::Ring), ("counter", Store::Counter { buckets: 16 })]
        {
            let server = Server::start().await;
            let mut connection = server.connection().await;
            let (scripted, keys) = (Scripted::new(store), [b"key".to_vec()]);
            let start = 1_793_600_000_000_000;
            let mut ask = async |cost: u64, limit: u64, now: u64| {
                let now = Some(Nanos::from_micros(now));
                let call = Call { mode: Mode::Take, cost, report: Report::Nothing, hold: Nanos::ZERO, now };
                let rules = [Rule::new(limit, Duration::from_secs(1))];
                let reply = scripted.call(&mut connection, &keys, &rules, call).await.unwrap();
                assert_eq!(reply.granted, cost);
            };
            let slowest = async |server: &Server| {
                let log: Vec<Slow> = server.ask(&["SLOWLOG", "GET", "-1"]).await;
                let _: () = server.ask(&["SLOWLOG", "RESET"]).await;
                log.iter()
                    .filter(|entry| entry.3[0].starts_with(b"EVAL"))
                    .map(|entry| entry.2)
                    .max()
                    .unwrap_or(0)
            };
            let _: () = server
                .ask(&["CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "4096"])
                .await;
            for _ in 0..limit / 1_000 {
                ask(1_000, limit, start).await;
            }
            let fill = slowest(&server).await;
            // The counter gives back a bucket later.
            ask(1, limit, start + 1_100_000).await;
            let expiry = slowest(&server).await;
            ask(1, 2 * limit, start + 1_100_001).await;
            let raise = slowest(&server).await;
            println!(
                "{name:8} limit {limit:9}: expiry {expiry:7}   first fill, 1,000 a call {fill:7}   raised limit {raise:7}"
            );
        }
    }
}

async fn limiter(
    server: &Server,
    limit: u64,
    window: Duration,
    build: impl Fn(Builder) -> Builder,
) -> Limiter<ConnectionManager> {
    let connection = server.client().get_connection_manager().await.unwrap();
    let builder = Limiter::builder("api", limit, window)
        .on_failure(OnFailure::Closed)
        .deadline(Duration::from_secs(20));
    build(builder).build(connection).unwrap()
}

/// Round trips under ten times the limit, evenly spread, by each tier.
async fn tiers(full: bool) {
    println!("tiers: ten times the limit of 100 in 1 s, evenly spread, one instance");
    let windows = if full { 10 } else { 1 };
    let minute = Duration::from_secs(60);
    let lease = Duration::from_millis(50);
    type Build = Box<dyn Fn(Builder) -> Builder>;
    let kinds: [(&str, Build); 4] = [
        ("none", Box::new(|builder| builder)),
        ("cached refusals", Box::new(move |builder| builder.cache_refusals(minute))),
        ("and shared calls", Box::new(move |builder| builder.cache_refusals(minute).share_calls())),
        ("and leases of 50", Box::new(move |builder| builder.cache_refusals(minute).lease(lease, 50))),
    ];
    for (name, build) in kinds {
        let server = Server::start().await;
        let limiter = Arc::new(limiter(&server, 100, Duration::from_secs(1), build).await);
        let (mut admitted, start) = (0u64, Instant::now());
        let checks = 1_000 * windows;
        for check in 0..checks {
            let due = start + Duration::from_millis(check);
            tokio::time::sleep_until(due.into()).await;
            admitted += u64::from(limiter.try_acquire("a", 1).await.unwrap().admitted);
        }
        let calls = limiter.stats().calls;
        println!(
            "{name:17} {:6.2} round trips for 100 checks, {admitted} of {checks} admitted",
            100.0 * calls as f64 / checks as f64
        );
        assert!(admitted >= 100 && calls <= checks);
    }
}

/// What the coarse limiter refuses falsely when one of two instances gets more than its share of just the limit.
async fn skew(_full: bool) {
    println!("skew: two instances, coarse limiter at 120 %, as many calls as the limit");
    for first in [50, 60, 70, 80, 100] {
        let server = Server::start().await;
        let mut refused = 0;
        for (index, share) in [first, 100 - first].into_iter().enumerate() {
            let instances = Instances::new(index as u32, 2).unwrap();
            let limiter =
                limiter(&server, 1_000, HOUR, |builder| builder.instances(&instances).coarse(120)).await;
            for _ in 0..share * 10 {
                limiter.try_acquire("a", 1).await.unwrap();
            }
            refused += limiter.stats().refused(By::Coarse);
            assert_eq!(limiter.stats().refused(By::Redis), 0);
        }
        println!("{first:3} % to one instance: {:.1} % refused falsely", refused as f64 / 10.0);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|argument| argument == "--bench");
    let chosen = |name: &str| {
        let mut names = arguments.iter().filter(|argument| !argument.starts_with('-')).peekable();
        names.peek().is_none() || names.any(|chosen| chosen == name)
    };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        if chosen("counts") {
            counts::counts(full).await;
        }
        if chosen("cost") {
            cost(full).await;
        }
        if chosen("checks") {
            checks(full).await;
        }
        if chosen("bytes") {
            bytes(full).await;
        }
        if chosen("stall") {
            stall(full).await;
        }
        if chosen("tiers") {
            tiers(full).await;
        }
        if chosen("skew") {
            skew(full).await;
        }
    });
}
