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
    let audit = |least| acquire(Places::AUDIT, least);
    models.extend([
        places
            .model(
                Scenario::new("a new key, twice at once")
                    .thread([key(1, 5)])
                    .thread([key(1, 6)])
                    .after([audit(1)]),
            )
            .frozen(2),
        places
            .model(Scenario::new("two new keys at once").thread([key(1, 5)]).thread([key(2, 5)]).after([
                key(1, 6),
                key(2, 6),
                audit(2),
            ]))
            .frozen(2),
        // Both places are idle at 15. Whoever holds one notices, or keeps it.
        places
            .model(
                Scenario::new("an idle key leaves, or admits")
                    .setup([key(1, 5), key(2, 5)])
                    .thread([key(3, 15)])
                    .thread([key(1, 15), key(1, 16)])
                    .after([key(1, 17), key(3, 17), audit(4)]),
            )
            .frozen(2),
        places
            .model(
                Scenario::new("two keys for one idle place")
                    .setup([key(1, 5), key(2, 14)])
                    .thread([key(3, 15)])
                    .thread([key(4, 15)])
                    .after([key(2, 16), key(3, 16), key(4, 16), audit(3)]),
            )
            .frozen(2),
        places
            .model(
                Scenario::new("one key, twice, for an idle place")
                    .setup([key(1, 5), key(2, 5)])
                    .thread([key(3, 15)])
                    .thread([key(3, 16)])
                    .after([key(3, 17), audit(3)]),
            )
            .frozen(2),
        // Its place was taken over at 15, so it is judged then, and not beside its admission at 5.
        places
            .model(
                Scenario::new("a late caller of a key that left")
                    .setup([key(1, 5), key(2, 5)])
                    .thread([key(3, 15), key(4, 15)])
                    .thread([key(1, 14)])
                    .after([key(1, 14), audit(3)]),
            )
            .frozen(2),
    ]);
}
