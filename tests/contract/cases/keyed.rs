//! F056 to F066: many limiters by key. F067 (several processes) is documented: a limiter counts within its process.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tollgate::{Keyed, Log, LogConfig, Nanos, WhenFull, network_of};

use crate::threads::{from_a_barrier, sum};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn at(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}

fn log(limit: u64, window: Duration) -> LogConfig {
    Log::builder(limit, window).config().unwrap()
}

/// The sweeper is a caller with another key, which makes an idle key leave; there is no other.
#[test]
fn f056_the_sweeper_removes_an_entry_that_a_caller_is_about_to_use() {
    let rounds = 1_000;
    let keyed = Keyed::<u64>::builder(log(1, secs(1)), 2).when_full(WhenFull::Refuse).build().unwrap();
    let admitted = from_a_barrier(5, rounds, |thread, round| {
        let key = if thread == 4 { 1 + round as u64 } else { 0 };
        let admitted = keyed.try_acquire_at(&key, 1, at(round as u64));
        u64::from(thread < 4 && admitted)
    });
    assert!(sum(&admitted).all(|admitted| admitted == 1));
    assert_eq!(keyed.len(), 2);
}

#[test]
fn f057_eviction_that_dead_locks_on_its_own_map() {
    let keyed = Arc::new(Keyed::<u64>::builder(log(1, secs(1)), 1_000).build().unwrap());
    let calls = Arc::new(AtomicU64::new(0));
    let mut threads: Vec<_> = (0..8)
        .map(|thread| {
            let (keyed, calls) = (keyed.clone(), calls.clone());
            thread::spawn(move || {
                for n in 0..20_000 {
                    keyed.try_acquire_at(&(thread << 32 | n), 1, Nanos::from_micros(n * 100));
                    if n % 1_000 == 0 {
                        assert!(keyed.len() as u64 <= keyed.capacity());
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let (mine, its_calls) = (keyed.clone(), calls.clone());
    threads.push(thread::spawn(move || {
        for n in 0..50 {
            mine.retain_at(at(n), |key, _| key % 2 == 0);
            its_calls.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    }));
    // However slow the machine is, some call returns.
    let mut seen = (0, Instant::now());
    while !threads.iter().all(JoinHandle::is_finished) {
        let returned = calls.load(Ordering::Relaxed);
        if returned > seen.0 {
            seen = (returned, Instant::now());
        }
        assert!(seen.1.elapsed() < secs(60), "after {returned} calls none returned for a minute");
        thread::sleep(Duration::from_millis(5));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(!keyed.is_empty());
}

#[test]
fn f058_one_keys_expiry_clears_every_key() {
    let keyed = Keyed::<str>::builder(log(5, secs(180)), 10).build().unwrap();
    assert!(keyed.try_acquire_at("A", 1, at(0)));
    assert!((0..5).all(|_| keyed.try_acquire_at("B", 1, at(170))));
    for t in [181, 349] {
        assert!(!keyed.try_acquire_at("B", 1, at(t)), "{t}");
        assert!(keyed.try_acquire_at("A", 1, at(t)));
    }
    assert!(keyed.try_acquire_at("B", 1, at(350)));
}

#[test]
fn f059_windows_longer_than_25_days() {
    let day = 86_400;
    let keyed = Keyed::<u64>::builder(log(5, secs(365 * day)), 100).build().unwrap();
    assert!((0..5).all(|_| keyed.try_acquire_at(&0, 1, at(0))));
    for (t, expected) in [(30 * day, false), (365 * day - 864, false), (365 * day, true)] {
        // Others come, and with each the hand moves on.
        assert!((1..50).all(|key| keyed.try_acquire_at(&key, 1, at(t))));
        assert_eq!(keyed.try_acquire_at(&0, 1, at(t)), expected, "{t}");
    }
}

#[test]
fn f060_a_sweep_that_uses_another_rules_window() {
    let (day, minute) = (secs(86_400), secs(60));
    let keyed = Keyed::<(char, u64)>::builder(log(3, day), 10)
        .class(log(10, minute), 10)
        .choose(|key| usize::from(key.0 == 'B'))
        .build()
        .unwrap();
    assert!(keyed.try_acquire_at(&('A', 0), 3, at(0)));
    assert!((0..100).all(|n| keyed.try_acquire_at(&('B', n % 10), 1, at(120 + n / 50))));
    assert!((1..10).all(|n| keyed.try_acquire_at(&('A', n), 1, at(121))));
    assert!(!keyed.try_acquire_at(&('A', 0), 1, at(121)) && !keyed.try_acquire_at(&('A', 0), 1, at(86_399)));
    assert!(keyed.try_acquire_at(&('A', 0), 1, at(86_400)));
}

/// By ordinary calls, in which the hand of each shard comes round. `keyed_agrees` compares all decisions with those of
/// histories that never leave.
#[test]
fn f061_idle_keys_are_never_dropped() {
    let keys = 100_000;
    let keyed = Keyed::<u64>::builder(log(1, secs(60)), keys).build().unwrap();
    for key in 0..keys {
        keyed.try_acquire_at(&key, 1, at(0));
    }
    assert!(keyed.len() as u64 > keys * 99 / 100, "{} of {keys}", keyed.len());
    let few = 1_000;
    for call in 0..2 * keys {
        keyed.try_acquire_at(&(keys + call % few), 1, at(61));
    }
    assert_eq!(keyed.len() as u64, few);
}

#[test]
fn f062_a_full_table_refuses_everybody() {
    for when_full in [WhenFull::Share, WhenFull::Refuse] {
        let keyed = Keyed::<u64>::builder(log(2, secs(60)), 10_000).when_full(when_full).build().unwrap();
        let flood = keyed.capacity() * 2;
        let known = 1 << 40;
        assert!(keyed.try_acquire_at(&known, 1, at(0)));
        for key in 0..flood {
            keyed.try_acquire_at(&key, 1, at(0));
        }
        assert_eq!(keyed.len() as u64, keyed.capacity());
        assert!(keyed.try_acquire_at(&known, 1, at(1)));
        let newcomer = keyed.check_at(&(flood + 1), 1, at(1));
        // The flood has had what is shared as well; of the two, that comes back first.
        assert_eq!(newcomer.unwrap_err().retry_after(), Some(at(59)));
        assert!(
            keyed.try_acquire_at(&(flood + 1), 2, at(61))
                && keyed.usage_at(&(flood + 1), 0, at(61)) == Some(2)
        );
        assert!(!keyed.try_acquire_at(&(flood + 1), 1, at(61)));
    }
}

#[test]
fn f063_the_port_is_part_of_the_key() {
    let keyed = Keyed::<IpAddr>::builder(log(10, secs(900)), 100).build().unwrap();
    for host in ["192.0.2.7", "[2001:db8::7]"] {
        let admitted = (50_001..=50_012).filter(|port| {
            let peer: SocketAddr = format!("{host}:{port}").parse().unwrap();
            keyed.try_acquire_at(&network_of(peer.ip(), 64), 1, at(0))
        });
        assert_eq!(admitted.count(), 10);
    }
    assert_eq!(keyed.len(), 2);
}

#[test]
fn f064_ipv4_addresses_written_as_ipv6() {
    let key = |text: &str| network_of(text.parse().unwrap(), 64);
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let texts = [
        "::ffff:1.2.3.4",
        "::ffff:102:304",
        "1.2.3.4",
        "::ffff:5.6.7.8",
        "2001:db8:1234:5678::1.2.3.4",
        "2001:db8:1234:5678::102:304",
    ];
    let network = ip("2001:db8:1234:5678::");
    let [one, other] = [ip("1.2.3.4"), ip("5.6.7.8")];
    assert_eq!(texts.map(key), [one, one, one, other, network, network]);
    let whole = ip("2001:db8::7");
    let ends = [0, 128, 129, u32::MAX].map(|prefix| network_of(whole, prefix));
    assert_eq!(ends, [ip("::"), whole, whole, whole]);
}

#[test]
fn f065_two_rules_or_two_kinds_of_identity_share_one_counter() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    enum Who {
        User(String),
        Address(IpAddr),
        ApiKey(String),
    }
    let keyed = Keyed::<(&str, Who)>::builder(log(10, secs(60)), 100).build().unwrap();
    let (user, address) = (Who::User("192.0.2.1".into()), Who::Address("192.0.2.1".parse().unwrap()));
    let api_key = |n| Who::ApiKey(format!("live_aaaaaaaaaa{n}"));
    let pairs = [
        [("R1", user.clone()), ("R2", user.clone())],
        [("R3", user), ("R3", address)],
        [("R4", api_key(1)), ("R4", api_key(2))],
    ];
    for [one, other] in pairs {
        assert!(keyed.try_acquire_at(&one, 10, at(0)) && !keyed.try_acquire_at(&one, 1, at(0)));
        assert!(keyed.try_acquire_at(&other, 1, at(0)));
    }
}

#[test]
fn f066_approximate_counters_that_merge_keys() {
    let keyed = Keyed::<u64>::builder(log(5, secs(1)), 120_000).build().unwrap();
    assert!((0..100_000).all(|key| keyed.try_acquire_at(&key, 1, at(0))));
    assert!((0..4).all(|_| keyed.try_acquire_at(&77, 1, at(0))) && !keyed.try_acquire_at(&77, 1, at(0)));
}
