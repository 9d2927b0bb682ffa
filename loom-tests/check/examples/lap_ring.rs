//! A log that keeps its promises: each slot carries the parity of its lap, and the compare-and-swap of the slot is the
//! admission. Single permits only.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo run --release --example lap_ring`

use tollgate_check::{
    Call, Check, Limiter, Scenario, Spec, Suite, Verdict, check,
    sync::{
        AtomicExt, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

const LIMIT: u64 = 2;
const WINDOW: u64 = 10;

struct Ring {
    /// Where to begin to look for the end: at most one behind it.
    hint: AtomicU64,
    /// `time << 1 | parity of the lap`; lap 0 writes parity 1, so 0 is not yet written.
    slots: [AtomicU64; LIMIT as usize],
}

impl Ring {
    fn new() -> Ring {
        let slot = || AtomicU64::new(0).named("slot");
        Ring { hint: AtomicU64::new(0).named("hint"), slots: [slot(), slot()] }
    }

    fn slot(&self, index: u64) -> &AtomicU64 {
        &self.slots[(index % LIMIT) as usize]
    }

    /// One attempt; `None` if somebody came in between.
    fn attempt(&self, now: u64) -> Option<Verdict> {
        let parity = |index: u64| (index / LIMIT + 1) & 1;
        let hint = self.hint.load(Acquire);
        let mut end = hint;
        let mut oldest = self.slot(end).load(Acquire);
        while oldest & 1 == parity(end) {
            end += 1;
            if end - hint > LIMIT {
                return None;
            }
            oldest = self.slot(end).load(Acquire);
        }
        let mut at = now;
        if end > 0 {
            let newest = self.slot(end - 1).load(Acquire);
            if newest & 1 != parity(end - 1) {
                return None;
            }
            at = at.max(newest >> 1);
        }
        if self.hint.load(Relaxed) != hint {
            return None;
        }
        let free_at = (oldest >> 1) + WINDOW;
        if end >= LIMIT && at < free_at {
            return Some(Verdict::Refused { retry_after: Some(free_at - at) });
        }
        if end > hint {
            self.hint.compare_exchange(hint, end, AcqRel, Relaxed).ok()?;
        }
        self.slot(end).compare_exchange(oldest, at << 1 | parity(end), AcqRel, Relaxed).ok()?;
        Some(Verdict::Admitted)
    }
}

impl Limiter for Ring {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        loop {
            if let Some(verdict) = self.attempt(now) {
                return verdict;
            }
        }
    }
}

/// The check.
pub(crate) fn checked() -> Check {
    let single = |call: &Call| matches!(call, Call::Acquire { cost: 1, .. });
    let units = |scenario: &Scenario| scenario.calls().all(single);
    check(Ring::new, Spec::exact(&[(LIMIT, WINDOW)]))
        .name("ring with lap parity")
        .describe(|word, value| (word != "hint").then(|| format!("(t {}, parity {})", value >> 1, value & 1)))
        .scenarios(Suite::standard(LIMIT, WINDOW).into_iter().filter(units))
}

#[allow(dead_code)]
fn main() {
    println!("{}", checked().run());
    for (weakening, report) in checked().run_weakened() {
        println!("{weakening}: {}", if report.failed() { "killed" } else { "SURVIVES" });
    }
}
