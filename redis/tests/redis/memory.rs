//! Bytes an entry and calls a check, against the textbook's sorted set.

use std::time::Duration;

use tollgate::Rule;
use tollgate_redis::{Call, Limiter, Mode, Report, Scripted, Store};
use tollgate_redis_server::Server;

use crate::support::{HOUR, manager, name, patient};

async fn bytes_per_entry(server: &Server, store: Store, limit: u64, cost: u64) -> f64 {
    let name = format!("{}{limit}", name(store));
    let limiter =
        patient(Limiter::builder(&name, limit, HOUR).store(store)).build(manager(&server.url())).unwrap();
    for _ in 0..limit / cost {
        assert!(limiter.try_acquire("a", cost).await.unwrap().admitted);
    }
    let bytes: u64 =
        server.ask(&["MEMORY", "USAGE", &format!("tollgate:{{a}}:{name}"), "SAMPLES", "0"]).await;
    bytes as f64 / limit as f64
}

#[tokio::test]
async fn a_full_ring_of_ten_thousand_takes_less_than_nine_bytes_an_entry() {
    let server = Server::start().await;
    let ring = bytes_per_entry(&server, Store::Ring, 10_000, 1).await;
    let zset = bytes_per_entry(&server, Store::Zset, 10_000, 1).await;
    println!("bytes per entry at 10,000: ring {ring:.2}, sorted set {zset:.1}");
    assert!(ring < 9.0, "{ring}");
    assert!(zset > 8.0 * ring, "{zset}");
    let counter = bytes_per_entry(&server, Store::Counter { buckets: 16 }, 10_000, 100).await;
    let gcra = bytes_per_entry(&server, Store::Gcra { burst: None }, 10_000, 100).await;
    assert!(counter < 0.05 && gcra < 0.05, "{counter} {gcra}");
}

/// A raised limit lays the ring out again once, and keeps every record.
#[tokio::test]
async fn a_raised_limit_costs_one_copy_and_no_record() {
    let server = Server::start().await;
    let limiter = patient(Limiter::builder("api", 1_000, HOUR)).build(manager(&server.url())).unwrap();
    assert!(limiter.try_acquire("a", 1_000).await.unwrap().admitted);
    limiter.set_limits(&[3_000]).unwrap();
    assert!(limiter.try_acquire("a", 1_500).await.unwrap().admitted);
    assert_eq!(limiter.peek("a", 1).await.unwrap().decision.unwrap().remaining, 500);
    limiter.set_limits(&[1_200]).unwrap();
    assert!(limiter.peek("a", 1).await.unwrap().decision.is_err());
    limiter.set_limits(&[3_000]).unwrap();
    assert_eq!(
        limiter.peek("a", 1).await.unwrap().decision.unwrap().remaining,
        500,
        "the ring did not shrink"
    );
}

/// Commands that the server runs inside one check.
#[tokio::test]
async fn a_ring_s_check_runs_as_few_commands_as_the_set_s() {
    let server = Server::start().await;
    let inner = async |store: Store, cost: u64, limit: u64| {
        let mut connection = server.connection().await;
        let (scripted, keys) = (Scripted::new(store), [format!("{store:?}{limit}").into_bytes()]);
        let call =
            Call { mode: Mode::Take, cost, report: Report::Nothing, hold: Default::default(), now: None };
        let rules = [Rule::new(limit, Duration::from_secs(3_600))];
        // The first call loads the script and sets the expiry; the one after it is the usual one.
        scripted.call(&mut connection, &keys, &rules, call).await.unwrap();
        let _: () = server.ask(&["CONFIG", "RESETSTAT"]).await;
        scripted.call(&mut connection, &keys, &rules, call).await.unwrap();
        let info: String = server.ask(&["INFO", "commandstats"]).await;
        let calls = |line: &str| line.split(['=', ',']).nth(1).and_then(|n| n.parse::<u64>().ok());
        info.lines()
            .filter(|line| {
                let command = line.trim_start_matches("cmdstat_").split(':').next().unwrap_or_default();
                ["time", "getrange", "setrange"].contains(&command)
                    || command.starts_with('z')
                    || command.starts_with("pexpire")
            })
            .filter_map(calls)
            .sum::<u64>()
    };
    // time, read header and block, write them
    assert_eq!(inner(Store::Ring, 1, 1).await, 2, "a refusal");
    assert_eq!(inner(Store::Ring, 1, 10).await, 3, "an admission");
    assert_eq!(inner(Store::Zset, 1, 1).await, 3);
    assert_eq!(inner(Store::Zset, 1, 10).await, 6);
}
