//! Random schedules find what is wrong, show it again, and prove nothing.
#![cfg(tollgate_shuttle)]

use tollgate_check::{
    Check, Limiter, Outcome, Property, Scenario, Spec, Verdict, acquire, check, reconfigure,
    sync::{AtomicU64, Ordering::Relaxed},
};

/// One permit in any 10 ticks. `claims`: by a compare-and-swap.
struct OnePerTen {
    free_at: AtomicU64,
    claims: bool,
}

impl Limiter for OnePerTen {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        let mut free_at = self.free_at.load(Relaxed);
        while now >= free_at {
            if !self.claims {
                self.free_at.store(now + 10, Relaxed);
                return Verdict::Admitted;
            }
            match self.free_at.compare_exchange(free_at, now + 10, Relaxed, Relaxed) {
                Ok(_) => return Verdict::Admitted,
                Err(found) => free_at = found,
            }
        }
        Verdict::yes_or_no(false)
    }
}

fn long(claims: bool) -> Check {
    let calls = || [5, 5, 15, 15, 25, 25].map(|now| acquire(1, now));
    let make = move || OnePerTen { free_at: AtomicU64::new(0), claims };
    check(make, Spec::exact(&[(1, 10)]))
        .scenario(Scenario::new("long").thread(calls()).thread(calls()).thread(calls()))
        .max_executions(2_000)
}

#[test]
fn a_rare_race_is_found_and_shown_again() {
    let report = long(false).seed(7).shrink(false).run();
    let found = &report.failures[0];
    assert_eq!(found.property, Property::OverLimit);
    let again = long(false).seed(7).replay(None, found.execution).run();
    assert_eq!(again.failures[0].interleaving(), found.interleaving());
    let other = long(false).seed(8).shrink(false).run();
    assert_ne!(other.failures[0].interleaving(), found.interleaving());
}

#[test]
fn what_is_right_is_inconclusive() {
    let report = long(true).seed(7).run();
    let Outcome::Inconclusive { why } = &report.outcome else { panic!("{report}") };
    assert!(why.contains("2000 executions"), "{why}");
}

/// Refuses the second permit without a look at the limit, which may have been raised: as long as nothing is handed on
/// between the threads the refusal may count as the first of the two calls, but not once the raise has returned.
#[test]
fn answers_are_in_the_order_of_real_time() {
    #[derive(Default)]
    struct Deaf {
        raised: AtomicU64,
        taken: AtomicU64,
    }

    impl Limiter for Deaf {
        fn try_acquire(&self, _: u64, _: u64) -> Verdict {
            let free = self.taken.load(Relaxed) == 0;
            if free {
                self.taken.store(1, Relaxed);
            }
            Verdict::yes_or_no(free)
        }

        fn reconfigure(&self, _: &[(u64, u64)]) -> Option<Verdict> {
            self.raised.store(1, Relaxed);
            Some(Verdict::Admitted)
        }
    }

    let report = check(Deaf::default, Spec::exact(&[(1, 10)]))
        .scenario(
            Scenario::new("raised")
                .setup([acquire(1, 5)])
                .thread([reconfigure(&[(2, 10)])])
                .thread([acquire(1, 5)]),
        )
        .max_executions(100)
        .run();
    assert_eq!(report.failures[0].property, Property::FalseRefusal);
}
