//! Many limiters by key, shrunk to room for one or two keys: new keys, admissions and keys that leave, at once.

use std::{
    hash::{BuildHasherDefault, DefaultHasher},
    time::Duration,
};

use tollgate::{Class, Gcra, Keyed, KeyedBuilder, Log, Nanos, WhenFull};
use tollgate_check::{Call, Limiter, Scenario, Spec, Verdict, When, acquire};

use super::{Model, Subject};
use crate::{
    deep::{Asks, Noise},
    oracles::Keys,
};

const WINDOW: u64 = 10;

/// The same hashes in every execution.
type Hasher = BuildHasherDefault<DefaultHasher>;

/// A keyed limiter whose calls name a key, or what to do, in place of a cost.
struct ByKey {
    keyed: Keyed<u64, Hasher>,
    limit: u64,
}

impl ByKey {
    fn new(class: Class, limit: u64, keys: u64, when_full: WhenFull) -> Self {
        let builder: KeyedBuilder<u64, Hasher> = Keyed::builder_with_hasher(class, keys, Hasher::default());
        Self { keyed: builder.when_full(when_full).build().expect("valid"), limit }
    }
}

impl Limiter for ByKey {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        let at = Nanos::from_nanos(now);
        let answer = match what {
            Keys::REMOVE => self.keyed.remove(&now),
            Keys::RETAIN => {
                self.keyed.retain_at(at, |_, used| used < self.limit);
                true
            }
            key => self.keyed.try_acquire_at(&key, 1, at),
        };
        Verdict::yes_or_no(answer)
    }

    fn peek(&self, key: u64, now: u64) -> Option<Verdict> {
        Some(Verdict::yes_or_no(self.keyed.peek_at(&key, 1, Nanos::from_nanos(now)).is_ok()))
    }
}

/// States apart from their keys.
fn log(limit: u64) -> Class {
    Log::builder(limit, Duration::from_nanos(WINDOW)).max_cost(1).config().expect("valid").into()
}

/// States of one word, beside their keys; for a limit of 1 it decides as the log.
fn bucket(limit: u64) -> Class {
    Gcra::builder(limit, Duration::from_nanos(WINDOW)).config().expect("valid").into()
}

fn subject(name: &str, class: fn(u64) -> Class, limit: u64, keys: u64, when_full: WhenFull) -> Subject {
    let each = if limit > 1 { format!(" {limit} each") } else { String::new() };
    let name = format!("{name} {keys}{each} {when_full:?}").to_lowercase();
    let share = when_full == WhenFull::Share;
    let oracle = Keys { limit: limit as usize, window: WINDOW, places: keys as usize, share };
    Subject::new(name, move || ByKey::new(class(limit), limit, keys, when_full), Spec::oracle(oracle))
}

/// For generated scenarios: mostly admissions of one key more than there is room for.
pub(super) fn subjects() -> Vec<(Subject, Asks)> {
    let call = |noise: &mut Noise, asks: Asks, now: When| match noise.below(10) {
        0 => acquire(Keys::REMOVE, 1 + noise.below(asks.cost_max)),
        1 => Call::Acquire { cost: Keys::RETAIN, now },
        _ => Asks::permit_or_look(noise, asks, now),
    };
    let all = [WhenFull::Refuse, WhenFull::Share].into_iter().flat_map(|when_full| {
        [(1, 1), (1, 2), (2, 2), (2, 3)].map(|(limit, keys)| {
            let asks = Asks { call, cost_max: keys + 1, ..Asks::permits(WINDOW, WINDOW) };
            (subject("keyed", log, limit, keys, when_full), asks)
        })
    });
    all.collect()
}

pub(super) fn add(models: &mut Vec<Model>) {
    let key = |key, now| acquire(key, now);
    let remove = |key| acquire(Keys::REMOVE, key);
    let [one, two, share] = [(1, WhenFull::Refuse), (2, WhenFull::Refuse), (1, WhenFull::Share)]
        .map(|(keys, when)| subject("keyed", log, 1, keys, when));
    let words = |keys| subject("keyed words", bucket, 1, keys, WhenFull::Refuse);
    models.extend([
        // Key 2 finds the place of key 1 as if nobody had had it.
        one.model(
            Scenario::new("a place is handed on clean")
                .setup([key(1, 5), remove(1)])
                .thread([key(2, 6)])
                .thread([remove(1)]),
        ),
        two.model(Scenario::new("a new key, twice at once").thread([key(1, 5)]).thread([key(1, 6)]))
            .exhaustive(),
        // Whoever comes first takes the only place, for a window.
        one.model(
            Scenario::new("an idle key leaves, or admits")
                .setup([key(1, 5)])
                .thread([key(2, 15)])
                .thread([key(1, 15)])
                .after([key(1, 16), key(2, 16)]),
        )
        .exhaustive(),
        one.model(
            Scenario::new("a key in use stays")
                .setup([key(1, 5)])
                .thread([key(2, 14)])
                .thread([key(1, 14), key(1, 15)]),
        ),
        // In the last order of them all, key 1 is new again when its late caller comes, and admitted as of 15.
        one.model(
            Scenario::new("a late caller of a key that left")
                .setup([key(1, 5)])
                .thread([key(2, 15), remove(2)])
                .thread([key(1, 14)])
                .after([key(1, 24)]),
        ),
        share.model(
            Scenario::new("no room, so shared")
                .setup([key(1, 5)])
                .thread([key(2, 6)])
                .thread([key(3, 7)])
                .after([key(1, 14)]),
        ),
        words(1).model(
            Scenario::new("a word is handed on clean")
                .setup([key(1, 5)])
                .thread([key(2, 15)])
                .thread([key(1, 15)])
                .after([key(1, 16), key(2, 16)]),
        ),
        // The hashes of keys 2 and 3 name the same row.
        words(2).model(
            Scenario::new("a key is found behind another that left")
                .setup([key(2, 5), key(3, 6)])
                .thread([remove(2), key(1, 7)])
                .thread([key(3, 8)])
                .after([key(3, 15)]),
        ),
        two.model(
            Scenario::new("places change hands")
                .setup([key(1, 5), key(2, 6)])
                .thread([key(3, 16), key(1, 16)])
                .thread([key(2, 16), key(1, 16)]),
        ),
        // Who has used up what there is, is forgiven; whoever comes later finds a new key.
        one.model(
            Scenario::new("forgiven, against an admission")
                .setup([key(1, 5)])
                .thread([acquire(Keys::RETAIN, 6)])
                .thread([key(1, 7)])
                .after([key(1, 8)]),
        )
        .exhaustive(),
    ]);
}
