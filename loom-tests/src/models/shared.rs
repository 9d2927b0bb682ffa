//! One bucket of a shared table, shrunk to two places: new keys, admissions and places that change hands, at once.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tollgate::{Log, Nanos, shared::OneBucket};
use tollgate_check::{Limiter, Scenario, Spec, Verdict, acquire};

use super::{Model, Subject};
use crate::oracles::Asserts;

const WINDOW: u64 = 10;
const LIMIT: u64 = 1;

/// A bucket whose calls name a key in place of a cost.
struct Places {
    bucket: OneBucket<Log>,
    /// `(key, from, to)` of each admission: the time of the call, and the one that it was told. Not seen by the model.
    admitted: Mutex<Vec<(u64, u64, u64)>>,
}

impl Places {
    /// When all is done: no key was over, and as many calls were admitted as the call's time says, at least.
    const AUDIT: u64 = 100;

    fn new() -> Self {
        let log = Log::builder(LIMIT, Duration::from_nanos(WINDOW)).max_cost(1);
        Self { bucket: OneBucket::new(|| log.build().expect("valid")), admitted: Mutex::default() }
    }
}

impl Limiter for Places {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        let admitted = || self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if what == Self::AUDIT {
            let admitted = admitted();
            assert!(admitted.len() as u64 >= now, "admitted: {admitted:?}, expected {now} at least");
            for (n, &(key, from, to)) in admitted.iter().enumerate() {
                // Both for sure within one window, whenever in between they were recorded.
                let again = admitted[..n]
                    .iter()
                    .find(|&&(other, since, until)| other == key && to.max(until) - from.min(since) < WINDOW);
                assert_eq!(again, None, "key {key} was admitted from {from} to {to} as well");
            }
        } else if let Some(Ok(quota)) = self.bucket.check_at(what, 1, Nanos::from_nanos(now)) {
            admitted().push((what, now, quota.at.as_nanos()));
        }
        Verdict::Admitted
    }
}

pub(super) fn add(models: &mut Vec<Model>) {
    let places = Subject::new("shared places", Places::new, Spec::oracle(Asserts));
    let key = acquire;
    // The calls, and how many of them are admitted at least: one that lost its place while it was admitted may have spent the
    // permit of the key that has it now.
    let scenarios = [
        (Scenario::new("a new key, twice at once").thread([key(1, 5)]).thread([key(1, 6)]), vec![], 1),
        (
            Scenario::new("two new keys at once").thread([key(1, 5)]).thread([key(2, 5)]),
            vec![key(1, 6), key(2, 6)],
            2,
        ),
        // Both places are idle at 15. Whoever holds one notices, or keeps it.
        (
            Scenario::new("an idle key leaves, or admits")
                .setup([key(1, 5), key(2, 5)])
                .thread([key(3, 15)])
                .thread([key(1, 15), key(1, 16)]),
            vec![key(1, 17), key(3, 17)],
            3,
        ),
        (
            Scenario::new("two keys for one idle place")
                .setup([key(1, 5), key(2, 14)])
                .thread([key(3, 15)])
                .thread([key(4, 15)]),
            vec![key(2, 16), key(3, 16), key(4, 16)],
            2,
        ),
        (
            Scenario::new("one key, twice, for an idle place")
                .setup([key(1, 5), key(2, 5)])
                .thread([key(3, 15)])
                .thread([key(3, 16)]),
            vec![key(3, 17)],
            3,
        ),
        // Its place was taken over at 15, so it is judged then, and not beside its admission at 5.
        (
            Scenario::new("a late caller of a key that left")
                .setup([key(1, 5), key(2, 5)])
                .thread([key(3, 15), key(4, 15)])
                .thread([key(1, 14)]),
            vec![key(1, 14)],
            3,
        ),
    ];
    models.extend(scenarios.into_iter().map(|(scenario, mut after, least)| {
        after.push(acquire(Places::AUDIT, least));
        places.model(scenario.after(after)).long()
    }));
    // A thread that never goes on has lost its own permit at most.
    models.extend([
        places
            .model(
                Scenario::new("a new key, twice; one stops")
                    .thread([key(1, 5)])
                    .thread([key(1, 6)])
                    .after([key(1, 17), acquire(Places::AUDIT, 1)]),
            )
            .frozen(1)
            .long(),
        places
            .model(
                Scenario::new("one key, twice, for an idle place; one stops")
                    .setup([key(1, 5), key(2, 5)])
                    .thread([key(3, 15)])
                    .thread([key(3, 16)])
                    .after([key(3, 30), acquire(Places::AUDIT, 3)]),
            )
            .frozen(1)
            .long(),
    ]);
}
