//! Limiters that must fail: if one passes, the checker does not see what it should, and a run says nothing.

use std::sync::{Mutex, PoisonError, atomic::AtomicU64 as RealU64};

use crate::{
    Call, Limiter, Oracle, Outcome, Property, Question, Scenario, Spec, Verdict, acquire, check,
    sync::{AtomicU64, Ordering},
};

/// Runs the canaries with this bound on preemptions.
///
/// A check-then-act log, a bucket array whose reset races, and a message-passing litmus with relaxed orders must
/// fail; the same litmus with release and acquire must pass; a limiter on atomics that the model can not see must
/// be inconclusive. Every [`run`](crate::Check::run) does this first, once per process and bound.
///
/// # Errors
/// Why a run would say nothing: which canary lived, or that the model is not compiled in.
pub fn canaries(bound: u8) -> Result<(), String> {
    static DONE: Mutex<Vec<(u8, Result<(), String>)>> = Mutex::new(Vec::new());
    if cfg!(not(tollgate_loom)) {
        return Err("void: built without --cfg tollgate_loom, nothing is modelled".into());
    }
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, verdict)) = done.iter().find(|(of, _)| *of == bound) {
        return verdict.clone();
    }
    let verdict = all(bound);
    done.push((bound, verdict.clone()));
    verdict
}

fn all(bound: u8) -> Result<(), String> {
    let race = || Scenario::new("race").thread([acquire(1, 5)]).thread([acquire(1, 5)]);
    let exact = || Spec::exact(&[(1, 10)]);
    let log = check(CheckThenAct::default, exact()).scenario(race());
    died("a check-then-act log", &log, bound, Property::OverLimit)?;

    let late = Scenario::new("roll").setup([acquire(1, 5)]).thread([acquire(1, 15)]).thread([acquire(1, 15)]);
    let buckets = check(RacingReset::default, exact()).scenario(late);
    died("a bucket array whose reset races", &buckets, bound, Property::OverLimit)?;

    if cfg!(tollgate_shuttle) {
        return unseen(bound); // The others are about memory orders, and what loom would miss.
    }
    let litmus = |publish, observe| {
        let make = move || Message { data: AtomicU64::new(0), flag: AtomicU64::new(0), publish, observe };
        check(make, Spec::oracle(Anything))
            .scenario(Scenario::new("message").thread([acquire(WRITE, 0)]).thread([acquire(READ, 0)]))
    };
    let relaxed = litmus(Ordering::Relaxed, Ordering::Relaxed);
    died("message passing with relaxed orders", &relaxed, bound, Property::NoPanic)?;
    let ordered = litmus(Ordering::Release, Ordering::Acquire).trusted().bound(bound).run();
    if !matches!(ordered.outcome, Outcome::Pass { .. }) {
        return Err("void: message passing with release and acquire does not pass".into());
    }

    let hidden = check(Hidden::default, Spec::oracle(Anything))
        .scenario(Scenario::new("hidden").thread([acquire(READ, 0)]).thread([acquire(WRITE, 0)]));
    died("a load before a rival that loads and swaps", &hidden, bound.min(1), Property::NoPanic)?;

    unseen(bound)
}

fn unseen(bound: u8) -> Result<(), String> {
    let race = Scenario::new("race").thread([acquire(1, 5)]).thread([acquire(1, 5)]);
    let unseen = check(Unseen::default, Spec::exact(&[(1, 10)])).scenario(race).trusted().bound(bound).run();
    match unseen.outcome {
        Outcome::Inconclusive { why } if why.contains("no atomic access") => Ok(()),
        _ => Err("void: a limiter on unmodelled atomics got a verdict".into()),
    }
}

fn died(name: &str, check: &crate::Check, bound: u8, property: Property) -> Result<(), String> {
    let report = check.clone().trusted().shrink(false).frozen(None).bound(bound).run();
    match report.failures.first() {
        Some(failure) if failure.property == property => Ok(()),
        _ => Err(format!("void: the canary \"{name}\" lived with bound {bound}")),
    }
}

/// A log of one slot. Reads by an RMW, which never sees an old value: the race needs one preemption.
#[derive(Default)]
struct CheckThenAct(AtomicU64);

impl Limiter for CheckThenAct {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        let free_at = self.0.fetch_or(0, Ordering::AcqRel);
        if now < free_at {
            return Verdict::yes_or_no(false);
        }
        self.0.store(now + 10, Ordering::Release);
        Verdict::Admitted
    }
}

/// One bucket of 10 ticks. Who finds an old one clears it, also when another has cleared and used it meanwhile.
#[derive(Default)]
struct RacingReset {
    bucket: AtomicU64,
    count: AtomicU64,
}

impl Limiter for RacingReset {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        let bucket = self.bucket.fetch_or(0, Ordering::AcqRel);
        if bucket != now / 10 {
            self.count.store(0, Ordering::Release);
            self.bucket.store(now / 10, Ordering::Release);
        }
        Verdict::yes_or_no(self.count.fetch_add(1, Ordering::AcqRel) == 0)
    }
}

const WRITE: u64 = 1;
const READ: u64 = 2;

/// Message passing: whoever sees the flag must see the data.
struct Message {
    data: AtomicU64,
    flag: AtomicU64,
    publish: Ordering,
    observe: Ordering,
}

impl Limiter for Message {
    fn try_acquire(&self, role: u64, _: u64) -> Verdict {
        if role == WRITE {
            self.data.store(1, Ordering::Relaxed);
            self.flag.store(1, self.publish);
        } else if self.flag.load(self.observe) == 1 {
            assert_eq!(self.data.load(Ordering::Relaxed), 1, "the flag was seen, the data was not");
        }
        Verdict::Admitted
    }
}

/// The reader, which runs first unless it is interrupted, must never see what the writer stores after a load of its
/// own: loom by itself never lets it.
#[derive(Default)]
struct Hidden(AtomicU64);

impl Limiter for Hidden {
    fn try_acquire(&self, role: u64, _: u64) -> Verdict {
        if role == READ {
            assert_eq!(self.0.load(Ordering::Acquire), 0, "the write was seen");
        } else {
            let seen = self.0.load(Ordering::Acquire);
            let _ = self.0.compare_exchange(seen, 1, Ordering::AcqRel, Ordering::Relaxed);
        }
        Verdict::Admitted
    }
}

/// A log of one slot on atomics of the standard library.
#[derive(Default)]
struct Unseen(RealU64);

impl Limiter for Unseen {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        Verdict::yes_or_no(self.0.fetch_max(now + 10, Ordering::AcqRel) <= now)
    }
}

/// Every answer is right.
struct Anything;

impl Oracle for Anything {
    type State = ();

    fn name(&self) -> String {
        "anything goes".into()
    }

    fn start(&self) {}

    fn outcomes(&self, (): &(), question: &Question<'_>) -> Option<Vec<(Verdict, ())>> {
        matches!(question.call, Call::Acquire { .. }).then(|| vec![(Verdict::Admitted, ())])
    }
}
