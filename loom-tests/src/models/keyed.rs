//! Many limiters by key, shrunk to room for one or two keys: new keys, admissions and keys that leave, at once.

use std::{
    hash::{BuildHasherDefault, DefaultHasher},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tollgate::{Class, Gcra, Keyed, KeyedBuilder, Log, Nanos, WhenFull};
use tollgate_check::{Call, Limiter, Scenario, Spec, Verdict, acquire};

use super::{Model, Subject};
use crate::oracles::Asserts;

const WINDOW: u64 = 10;
const LIMIT: u64 = 1;

/// The same hashes in every execution.
type Hasher = BuildHasherDefault<DefaultHasher>;

/// A keyed limiter whose calls name a key in place of a cost.
struct Keys {
    keyed: Keyed<u64, Hasher>,
    /// `(key, time)` of each admission. Not seen by the model.
    admitted: Mutex<Vec<(u64, u64)>>,
}

impl Keys {
    /// Forgets the key that the call's time names.
    const REMOVE: u64 = 100;
    /// When all is done: as many were admitted as the call's time says.
    const AUDIT: u64 = 101;
    /// As `AUDIT`, however many were admitted.
    const AUDIT_ANY: u64 = 102;

    fn new(class: Class, keys: u64, when_full: WhenFull) -> Self {
        let builder: KeyedBuilder<u64, Hasher> = Keyed::builder_with_hasher(class, keys, Hasher::default());
        Self { keyed: builder.when_full(when_full).build().expect("valid"), admitted: Mutex::default() }
    }
}

impl Limiter for Keys {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        let admitted = || self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        match what {
            Self::REMOVE => drop(self.keyed.remove(&now)),
            Self::AUDIT | Self::AUDIT_ANY => {
                let admitted = admitted();
                let expected = if what == Self::AUDIT { now } else { admitted.len() as u64 };
                assert_eq!(admitted.len() as u64, expected, "admitted: {admitted:?}");
                for (n, &(key, at)) in admitted.iter().enumerate() {
                    let again =
                        admitted[..n].iter().find(|(other, t)| *other == key && t.abs_diff(at) < WINDOW);
                    assert_eq!(again, None, "key {key} was admitted at {at} as well");
                }
                assert!(self.keyed.len() as u64 <= self.keyed.capacity());
            }
            key => {
                if let Ok(quota) = self.keyed.check_at(&key, 1, Nanos::from_nanos(now)) {
                    admitted().push((key, quota.at.as_nanos()));
                }
            }
        }
        Verdict::Admitted
    }
}

/// States apart from their keys.
fn log() -> Class {
    Log::builder(LIMIT, Duration::from_nanos(WINDOW)).max_cost(1).config().expect("valid").into()
}

/// States of one word, beside their keys; decides as the log.
fn bucket() -> Class {
    Gcra::builder(LIMIT, Duration::from_nanos(WINDOW)).config().expect("valid").into()
}

pub(super) fn add(models: &mut Vec<Model>) {
    let subject = |keys, when_full| {
        let name = format!("keyed {keys} {when_full:?}").to_lowercase();
        Subject::new(name, move || Keys::new(log(), keys, when_full), Spec::oracle(Asserts))
    };
    let words = |keys| {
        let new = move || Keys::new(bucket(), keys, WhenFull::Refuse);
        Subject::new(format!("keyed words {keys}"), new, Spec::oracle(Asserts))
    };
    let key = |key, now| acquire(key, now);
    let remove = |key| acquire(Keys::REMOVE, key);
    let audit = |admitted| acquire(Keys::AUDIT, admitted);
    let [one, two, share] = [(1, WhenFull::Refuse), (2, WhenFull::Refuse), (1, WhenFull::Share)]
        .map(|(keys, when)| subject(keys, when));
    models.extend([
        // Key 2 finds the place of key 1 as if nobody had had it.
        one.model(
            Scenario::new("a place is handed on clean")
                .setup([key(1, 5), remove(1)])
                .thread([key(2, 6)])
                .thread([remove(1)])
                .after([audit(2)]),
        ),
        two.model(
            Scenario::new("a new key, twice at once")
                .thread([key(1, 5)])
                .thread([key(1, 6)])
                .after([audit(1)]),
        )
        .exhaustive(),
        // Whoever comes first takes the only place, for a window.
        one.model(
            Scenario::new("an idle key leaves, or admits")
                .setup([key(1, 5)])
                .thread([key(2, 15)])
                .thread([key(1, 15)])
                .after([key(1, 16), key(2, 16), audit(2)]),
        )
        .exhaustive(),
        one.model(
            Scenario::new("a key in use stays")
                .setup([key(1, 5)])
                .thread([key(2, 14)])
                .thread([key(1, 14), key(1, 15)])
                .after([audit(2)]),
        ),
        // In the last order of them all, key 1 is new again when its late caller comes.
        one.model(
            Scenario::new("a late caller of a key that left")
                .setup([key(1, 5)])
                .thread([key(2, 15), remove(2)])
                .thread([key(1, 14)])
                .after([audit_any()]),
        ),
        share.model(
            Scenario::new("no room, so shared")
                .setup([key(1, 5)])
                .thread([key(2, 6)])
                .thread([key(3, 7)])
                .after([key(1, 14), audit(2)]),
        ),
        words(1).model(
            Scenario::new("a word is handed on clean")
                .setup([key(1, 5)])
                .thread([key(2, 15)])
                .thread([key(1, 15)])
                .after([key(1, 16), key(2, 16), audit(2)]),
        ),
        // The hashes of keys 2 and 3 name the same row.
        words(2).model(
            Scenario::new("a key is found behind another that left")
                .setup([key(2, 5), key(3, 6)])
                .thread([remove(2), key(1, 7)])
                .thread([key(3, 8)])
                .after([key(3, 15), audit(3)]),
        ),
        two.model(
            Scenario::new("places change hands")
                .setup([key(1, 5), key(2, 6)])
                .thread([key(3, 16), key(1, 16)])
                .thread([key(2, 16), key(1, 16)])
                .after([audit_any()]),
        ),
    ]);
}

/// The windows alone.
fn audit_any() -> Call {
    acquire(Keys::AUDIT_ANY, 0)
}
