//! What a recorder of the `metrics` crate is told.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::AtomicU64, atomic::Ordering::Relaxed},
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tollgate::{Algorithm, Counted, Keyed, Log, Nanos, WhenFull};

const SECOND: Duration = Duration::from_secs(1);

/// Keeps every metric under its name and labels.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Kept {
    fn word(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        self.0.lock().unwrap().entry(format!("{} {}", key.name(), labels.join(" "))).or_default().clone()
    }

    /// Names, labels and figures, without those that are 0.
    fn told(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap();
        let figures = kept.iter().map(|(name, word)| (name, word.load(Relaxed)));
        figures.filter(|(_, figure)| *figure > 0).map(|(name, figure)| format!("{name}: {figure}")).collect()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.word(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.word(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn counts_are_exported_under_the_name_of_their_limiter() {
    let kept = Kept::default();
    let log = Counted::new(Log::builder(5, SECOND).rule(7, 2 * SECOND).max_cost(3).build().unwrap());
    let at = Nanos::from_secs;
    assert!(log.try_acquire_at(3, at(10)) && log.try_acquire_at(2, at(10)) && !log.try_acquire_at(1, at(10)));
    assert!(
        log.try_acquire_at(2, at(11)) && !log.try_acquire_at(1, at(11)) && !log.try_acquire_at(4, at(11))
    );
    metrics::with_local_recorder(&kept, || log.export("api"));
    let told = [
        "tollgate_admitted_total api: 3",
        "tollgate_permits_total api: 7",
        "tollgate_refused_total api limit 0: 1",
        "tollgate_refused_total api limit 1: 1",
        "tollgate_refused_total api max_cost: 1",
    ];
    assert_eq!(kept.told(), told);
    assert!(!log.try_acquire_at(1, at(9)) && !log.try_acquire_at(1, Nanos::from_nanos(u64::MAX)));
    metrics::with_local_recorder(&kept, || log.export("api"));
    assert!(kept.told().contains(&"tollgate_clock_regressions_total api: 1".into()), "{:?}", kept.told());
    assert!(kept.told().contains(&"tollgate_refused_total api time: 1".into()), "{:?}", kept.told());
}

#[test]
fn keys_are_exported_and_those_that_left() {
    let kept = Kept::default();
    let log = Log::builder(1, SECOND).config().unwrap();
    let users = Keyed::<u64>::builder(log, 1).when_full(WhenFull::Refuse).build().unwrap();
    let room = users.capacity();
    let users = Counted::new(users);
    let taken = (0..100).filter(|key| users.try_acquire_at(key, 1, Nanos::ZERO)).count() as u64;
    assert_eq!((taken, users.statistics().full), (room, 100 - room));
    // One leaves in each call that comes when all are idle.
    assert!(users.try_acquire_at(&1_000, 1, Nanos::from_secs(5)));
    metrics::with_local_recorder(&kept, || {
        users.algorithm().export("users");
        users.export("users");
    });
    let bits = (users.algorithm().len() as f64).to_bits();
    assert_eq!(
        kept.told()[1..3],
        ["tollgate_evictions_total users: 1".into(), format!("tollgate_keys users: {bits}")]
    );
}
