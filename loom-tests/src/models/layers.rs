//! Layers: one limit outside, two users' limits inside.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tollgate::{Algorithm, Layers, Log, Nanos};
use tollgate_check::{Limiter, Scenario, Spec, Verdict, acquire};

use super::{Model, Subject};
use crate::oracles::Asserts;

const WINDOW: Duration = Duration::from_nanos(10);

/// Layers whose calls say, in place of a cost, who asks and what for.
struct Stacked {
    outer: Log,
    users: [Log; 2],
    /// What each user was answered: admissions and refusals. Not seen by the model.
    told: Mutex<[[u64; 2]; 2]>,
}

impl Stacked {
    /// User 0 asks at the call's time.
    const A: u64 = 1;
    /// User 1 asks at the call's time.
    const B: u64 = 2;
    /// The outer limit is never ahead of those inside it.
    const WATCH: u64 = 3;
    /// When all is done: as many were admitted as the call's time says; what lost races cost is within its bound.
    const AUDIT: u64 = 4;
    /// As `AUDIT`, and no race was lost.
    const AUDIT_WHOLE: u64 = 5;

    fn new(outer: u64, user: u64) -> Self {
        let log = |limit| Log::builder(limit, WINDOW).max_cost(1).build().expect("valid");
        Self { outer: log(outer), users: [log(user), log(user)], told: Mutex::default() }
    }

    fn ask(&self, user: usize, now: u64) {
        let layers = Layers::new([&self.outer, &self.users[user]]);
        let admitted = layers.try_acquire_at(1, Nanos::from_nanos(now));
        let told = &mut self.told.lock().unwrap_or_else(PoisonError::into_inner)[user];
        told[usize::from(!admitted)] += 1;
    }

    /// Charged to the outer limit, and to the users.
    fn charged(&self) -> (u64, [u64; 2]) {
        // All calls are at times within one window.
        let used = |log: &Log| log.usage_at(0, Nanos::ZERO).expect("a rule");
        (used(&self.outer), [used(&self.users[0]), used(&self.users[1])])
    }

    fn audit(&self, expected: u64, whole: bool) {
        let told = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let (outer, users) = self.charged();
        assert_eq!((told[0][0] + told[1][0], outer), (expected, expected), "admitted, and charged outside");
        for (charged, [admitted, refused]) in users.into_iter().zip(told) {
            let lost = if whole { 0 } else { refused };
            assert!(
                (admitted..=admitted + lost).contains(&charged),
                "{charged} charged, {admitted} admitted"
            );
        }
    }
}

impl Limiter for Stacked {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        match what {
            Self::A => self.ask(0, now),
            Self::B => self.ask(1, now),
            Self::WATCH => {
                let (outer, users) = self.charged();
                assert!(outer <= users.iter().sum(), "{outer} charged outside, {users:?} inside");
            }
            _ => self.audit(now, what == Self::AUDIT_WHOLE),
        }
        Verdict::Admitted
    }
}

pub(super) fn add(models: &mut Vec<Model>) {
    let subject = |outer, user| {
        let name = format!("layers {outer} over {user}");
        Subject::new(name, move || Stacked::new(outer, user), Spec::oracle(Asserts))
    };
    let (a, b) = (|now| acquire(Stacked::A, now), |now| acquire(Stacked::B, now));
    let (audit, whole) = (|n| acquire(Stacked::AUDIT, n), |n| acquire(Stacked::AUDIT_WHOLE, n));
    let last = Scenario::new("last outer permit").thread([a(5)]).thread([b(5)]);
    models.extend([
        subject(1, 1).model(last.clone().after([audit(1)])),
        // What the documentation says a lost race costs does happen.
        subject(1, 1).model(last.after([whole(1)])).documented(),
        subject(2, 1)
            .model(Scenario::new("last inner permit").thread([a(5)]).thread([a(6)]).after([whole(1)])),
        subject(1, 2)
            .model(Scenario::new("outer full").setup([a(5)]).thread([a(6)]).thread([b(6)]).after([whole(1)])),
        subject(2, 2).model(
            Scenario::new("inside out")
                .thread([a(5)])
                .thread([b(5)])
                .thread([acquire(Stacked::WATCH, 0)])
                .after([whole(2)]),
        ),
    ]);
}
