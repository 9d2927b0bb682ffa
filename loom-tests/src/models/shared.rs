//! One bucket of a shared table, shrunk to two places: new keys, admissions and places that change hands, at once.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tollgate::{Algorithm, Fixed, Gcra, Log, Nanos, TwoWindow, shared::OneBucket};
use tollgate_check::{Call, Limiter, Scenario, Spec, Verdict, acquire, peek};

use super::{Model, Subject};
use crate::oracles::Asserts;

const WINDOW: u64 = 10;
const LIMIT: u64 = 1;

/// A bucket whose calls name a key in place of a cost.
struct Places<A> {
    bucket: OneBucket<A>,
    notes: Mutex<Notes>,
}

/// What the calls were told. Not seen by the model.
#[derive(Default)]
struct Notes {
    /// How often a history was asked and did not refuse, for calls that may have lost their place meanwhile.
    asked: usize,
    /// `(key, from, to)` of each admission: the time of the call, and the one that it was told.
    admitted: Vec<(u64, u64, u64)>,
}

/// The call when all is done: no key was over, and as many calls were admitted as its time says, at least.
const AUDIT: u64 = 100;

/// Above this a call names a key that has a place, or there is room for it.
const FOUND: u64 = 20;

/// Above this a call names a key that has permits at its time, and is admitted unless another has lost its place to it.
const SURE: u64 = 50;

impl<A: Algorithm> Places<A> {
    fn new(limiter: impl Fn() -> A) -> Self {
        Self { bucket: OneBucket::new(limiter), notes: Mutex::default() }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of asking a key's history, and the time judged if it is known.
    fn admit(&self, key: u64, now: u64, ask: impl Fn(&A, Nanos) -> (Nanos, bool)) -> Option<bool> {
        let answer = self.bucket.admit(key, Nanos::from_nanos(now), |history, at| {
            self.notes().asked += 1; // Before: whoever stops inside may have been admitted.
            let (judged, is_admitted) = ask(history, at);
            self.notes().asked -= usize::from(!is_admitted);
            ((judged, is_admitted), is_admitted)
        });
        let (judged, is_admitted) = answer?;
        if is_admitted {
            self.notes().admitted.push((key, now, judged.as_nanos()));
        }
        Some(is_admitted)
    }

    fn audit(&self, least: u64) {
        let Notes { admitted, .. } = &*self.notes();
        assert!(admitted.len() as u64 >= least, "admitted: {admitted:?}, expected {least} at least");
        for (n, &(key, from, to)) in admitted.iter().enumerate() {
            // Both for sure within one window, whenever in between they were recorded.
            let again = admitted[..n]
                .iter()
                .find(|&&(other, since, until)| other == key && to.max(until) - from.min(since) < WINDOW);
            assert_eq!(again, None, "key {key} was admitted from {from} to {to} as well");
        }
        let keys: BTreeSet<u64> = admitted.iter().map(|&(key, ..)| key).collect();
        assert_eq!(self.bucket.taken(), keys.len().min(2), "places, after {admitted:?}");
    }
}

impl<A: Algorithm + 'static> Limiter for Places<A> {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        match what {
            AUDIT => self.audit(now),
            SURE.. => {
                // The time judged is not told.
                let answer = self.admit(what - SURE, now, |history, at| (at, history.try_acquire_at(1, at)));
                let Notes { asked, admitted } = &*self.notes();
                assert!(answer == Some(true) || *asked > admitted.len(), "{answer:?} after {admitted:?}");
            }
            _ => {
                let answer = self.admit(what % FOUND, now, |history, at| {
                    let decision = history.check_at(1, at);
                    (decision.map_or(at, |quota| quota.at), decision.is_ok())
                });
                assert!(answer.is_some() || what < FOUND, "no room");
            }
        }
        Verdict::Admitted
    }

    /// A look at a key that was admitted once. It finds that admission, or that it is gone, and not those of the key that has
    /// the place now.
    fn peek(&self, key: u64, now: u64) -> Option<Verdict> {
        let &(_, from, to) = self.notes().admitted.iter().find(|(of, ..)| *of == key)?;
        match self.bucket.peek_at(key, 1, Nanos::from_nanos(now)) {
            Ok(Ok(quota)) => assert!(quota.at.as_nanos() >= from + WINDOW, "free too early: {quota:?}"),
            Ok(Err(denied)) => {
                assert!(denied.quota.at.as_nanos() < to + WINDOW, "refused for another: {denied:?}");
            }
            Err(has_room) => assert!(has_room, "the other place is idle"),
        }
        Some(Verdict::Admitted)
    }
}

pub(super) fn add(models: &mut Vec<Model>) {
    let per = Duration::from_nanos(WINDOW);
    let log = move || Log::builder(LIMIT, per).max_cost(1).build().expect("valid");
    let gcra = move || Gcra::builder(LIMIT, per).build().expect("valid");
    let fixed = move || Fixed::builder(LIMIT, per).build().expect("valid");
    let two = move || TwoWindow::builder(LIMIT, per).build().expect("valid");
    let kinds = [
        // One word, so that the steps are those of the bucket.
        Subject::new("shared places of gcra", move || Places::new(gcra), Spec::oracle(Asserts)),
        Subject::new("shared places of logs", move || Places::new(log), Spec::oracle(Asserts)),
        Subject::new("shared places of fixed windows", move || Places::new(fixed), Spec::oracle(Asserts)),
        Subject::new("shared places of two windows", move || Places::new(two), Spec::oracle(Asserts)),
    ];
    let key = acquire;
    // With how many are admitted at least: one that lost its place while it was admitted may have spent the permit of
    // the key that has it now.
    let of = |kind: &Subject, scenario: Scenario, after: &[Call], least| {
        kind.model(scenario.after(after.iter().cloned().chain([acquire(AUDIT, least)])))
    };
    let places = |scenario, after: &[Call], least| of(&kinds[0], scenario, after, least);
    models.extend([
        places(
            Scenario::new("a new key, twice at once").thread([key(1, 5)]).thread([key(1, 6)]),
            &[key(1, 17)],
            1,
        )
        .frozen(1),
        places(
            Scenario::new("two new keys at once").thread([key(1, 5)]).thread([key(2, 5)]),
            &[key(1, 6), key(2, 6)],
            2,
        ),
        // The last turn is not about key 1; whoever sees it sees what was written before it began.
        places(
            Scenario::new("a key that has a place finds it")
                .thread([key(1, 5), key(2, 5)])
                .thread([key(FOUND + 1, 6)]),
            &[],
            2,
        ),
        // Both places are idle at 15. Whoever holds one notices, or keeps it.
        places(
            Scenario::new("an idle key leaves, or admits")
                .setup([key(1, 5), key(2, 5)])
                .thread([key(3, 15)])
                .thread([key(1, 15), key(1, 16)]),
            &[key(1, 17), key(3, 17)],
            3,
        ),
        places(
            Scenario::new("two keys for one idle place")
                .setup([key(1, 5), key(2, 14)])
                .thread([key(3, 15)])
                .thread([key(4, 15)]),
            &[key(2, 16), key(3, 16), key(4, 16)],
            2,
        ),
        places(
            Scenario::new("one key, twice, for an idle place")
                .setup([key(1, 5), key(2, 5)])
                .thread([key(3, 15)])
                .thread([key(3, 16)]),
            &[key(3, 30)],
            3,
        )
        .frozen(1),
        // Once its place was taken over at 15 it is judged then, and not beside its admission at 5.
        places(
            Scenario::new("a late caller of a key that left")
                .setup([key(1, 5), key(2, 4)])
                .thread([key(3, 15)])
                .thread([key(1, 14)]),
            &[key(1, 14)],
            3,
        ),
        places(
            Scenario::new("a late look at a key that left")
                .setup([key(1, 5), key(2, 4)])
                .thread([key(3, 15)])
                .thread([peek(1, 14)]),
            &[],
            3,
        ),
    ]);
    // Whatever a history is made of must bring the news of whose it is. At 25 key 1 is idle under every kind.
    for (kind, is_long) in kinds.iter().zip([false, true, false, false]) {
        let setup = [key(1, 5), key(2, 4)];
        let look = Scenario::new("a look").setup(setup.clone()).thread([key(3, 20)]).thread([peek(1, 25)]);
        let call = Scenario::new("a call").setup(setup).thread([key(3, 20)]).thread([key(SURE + 1, 25)]);
        let call = of(kind, call, &[], 3);
        models.extend([of(kind, look, &[], 3), if is_long { call.long() } else { call }]);
    }
}
