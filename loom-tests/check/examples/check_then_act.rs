//! The textbook's sliding-window log, with atomics where the lock was: it looks whether there is room, then takes it.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo run --example check_then_act`

use tollgate_check::{
    Limiter, Report, Spec, Suite, Verdict, check,
    sync::{AtomicExt, AtomicU64, Ordering},
};

const LIMIT: usize = 2;
const WINDOW: u64 = 10;

/// The times of the last `LIMIT` admissions, plus one: 0 is an empty slot.
struct Log {
    slots: [AtomicU64; LIMIT],
    head: AtomicU64,
}

impl Log {
    fn new() -> Log {
        let slot = || AtomicU64::new(0).named("slot");
        Log { slots: [slot(), slot()], head: AtomicU64::new(0).named("head") }
    }
}

impl Limiter for Log {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        if cost > LIMIT as u64 {
            return Verdict::Never;
        }
        let head = self.head.load(Ordering::SeqCst);
        let slot = |n: u64| &self.slots[((head + n) % LIMIT as u64) as usize];
        // The oldest entry is overwritten first: there is room if all that must go have left the window.
        let left = |time_plus_1: u64| time_plus_1 == 0 || time_plus_1 - 1 + WINDOW <= now;
        if !(0..cost).all(|n| left(slot(n).load(Ordering::SeqCst))) {
            return Verdict::yes_or_no(false);
        }
        for n in 0..cost {
            slot(n).store(now + 1, Ordering::SeqCst);
        }
        self.head.store(head + cost, Ordering::SeqCst);
        Verdict::Admitted
    }
}

/// Runs the check.
pub(crate) fn report() -> Report {
    check(Log::new, Spec::exact(&[(LIMIT as u64, WINDOW)]))
        .name("check-then-act log")
        .scenarios(Suite::standard(LIMIT as u64, WINDOW))
        .run()
}

#[allow(dead_code)]
fn main() {
    println!("{}", report());
}
