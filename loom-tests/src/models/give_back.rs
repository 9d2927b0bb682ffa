//! Permits given back to the counter and to the meter.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tollgate::{Algorithm, Gcra, Nanos, Permit, Window};
use tollgate_check::{Limiter, Scenario, Spec, Verdict, acquire};

use super::{Model, Subject};
use crate::oracles::Asserts;

/// A limiter whose permits can be given back.
trait GivesBack: Algorithm + 'static {
    fn acquire(&self, cost: u64, now: Nanos) -> Option<Permit>;
    fn give_back(&self, permit: Permit, now: Nanos) -> bool;
}

/// Calls say what to do in place of a cost. Not seen by the model: the permits got, with their cost.
struct Giving<A> {
    algorithm: A,
    got: Mutex<Vec<Permit>>,
    kept: Mutex<u64>,
}

impl<A> Giving<A> {
    /// Gives back the permit got first, if one was.
    const GIVE: u64 = 10;
    /// What is charged is what was got and not given back.
    const AUDIT: u64 = 11;
    /// One permit is charged.
    const ONE: u64 = 12;

    fn new(algorithm: A) -> Self {
        Self { algorithm, got: Mutex::default(), kept: Mutex::default() }
    }
}

impl<A: GivesBack> Limiter for Giving<A> {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        let now = Nanos::from_nanos(now);
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let got = || self.got.lock().unwrap_or_else(PoisonError::into_inner);
        match what {
            _ if what == Self::GIVE => {
                let mut got = got();
                if got.is_empty() {
                    return Verdict::Admitted;
                }
                let permit = got.remove(0);
                drop(got);
                let cost = permit.cost();
                if self.algorithm.give_back(permit, now) {
                    *kept() -= cost;
                }
            }
            _ if what == Self::ONE => assert_eq!(self.algorithm.usage_at(0, now), Some(1), "charged"),
            _ if what == Self::AUDIT => {
                assert_eq!(self.algorithm.usage_at(0, now), Some(*kept()), "charged, and kept");
            }
            cost => {
                if let Some(permit) = self.algorithm.acquire(cost, now) {
                    *kept() += cost;
                    got().push(permit);
                }
            }
        }
        Verdict::Admitted
    }
}

impl GivesBack for Window {
    fn acquire(&self, cost: u64, now: Nanos) -> Option<Permit> {
        self.acquire_at(cost, now).ok()
    }

    fn give_back(&self, permit: Permit, _now: Nanos) -> bool {
        Window::give_back(self, permit).is_ok()
    }
}

impl GivesBack for Gcra {
    fn acquire(&self, cost: u64, now: Nanos) -> Option<Permit> {
        self.acquire_at(cost, now).ok()
    }

    fn give_back(&self, permit: Permit, now: Nanos) -> bool {
        Gcra::give_back(self, permit, now).is_ok()
    }
}

pub(super) fn add(models: &mut Vec<Model>) {
    let ns = Duration::from_nanos;
    // Buckets of 2 ns; all calls lie within one window, so what is charged is what was kept.
    let counter = Subject::new(
        "counter 3/8 in 4 given back",
        move || Giving::new(Window::builder(3, ns(8)).buckets(4).build().expect("valid")),
        Spec::oracle(Asserts),
    );
    let meter = Subject::new(
        "gcra 3/30 given back",
        move || Giving::new(Gcra::builder(3, ns(30)).build().expect("valid")),
        Spec::oracle(Asserts),
    );
    let give = |now| acquire(Giving::<Window>::GIVE, now);
    let audit = |now| acquire(Giving::<Window>::AUDIT, now);
    let a = acquire;
    models.extend([
        counter
            .model(
                Scenario::new("against an admission")
                    .setup([a(2, 20)])
                    .thread([give(20)])
                    .thread([a(2, 20)])
                    .after([audit(20), a(3, 20), audit(20)]),
            )
            .exhaustive(),
        counter.model(
            Scenario::new("against a turn")
                .setup([a(1, 20), a(1, 20)])
                .thread([give(20)])
                .thread([a(1, 22)])
                // The bucket of 22 alone is in the window that ends at 30.
                .after([audit(22), acquire(Giving::<Window>::ONE, 30)]),
        ),
        counter.model(
            Scenario::new("of both at once")
                .thread([a(1, 20), give(20)])
                .thread([a(2, 20), give(20)])
                .after([audit(20), a(3, 20), audit(20)]),
        ),
        meter
            .model(
                Scenario::new("against an admission")
                    .setup([a(2, 20)])
                    .thread([give(20)])
                    .thread([a(1, 20)])
                    .after([audit(20), a(2, 20), audit(20)]),
            )
            .exhaustive(),
    ]);
}
