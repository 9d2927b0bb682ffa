//! The literal ring: `head` and `count` packed in one word that is moved by compare-and-swap, and the slot stored after
//! it. Does the one CAS make it right?
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo run --example packed_ring`

use tollgate_check::{
    Limiter, Report, Spec, Suite, Verdict, check,
    sync::{AtomicExt, AtomicU64, Ordering},
};

const LIMIT: u64 = 2;
const WINDOW: u64 = 10;

/// `head << 32 | count`: the oldest entry and how many there are.
struct Ring {
    state: AtomicU64,
    slots: [AtomicU64; LIMIT as usize],
}

impl Ring {
    fn new() -> Ring {
        let slot = || AtomicU64::new(0).named("slot");
        Ring { state: AtomicU64::new(0).named("state"), slots: [slot(), slot()] }
    }

    fn slot(&self, index: u64) -> &AtomicU64 {
        &self.slots[(index % LIMIT) as usize]
    }
}

impl Limiter for Ring {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        if cost > LIMIT {
            return Verdict::Never;
        }
        loop {
            let state = self.state.load(Ordering::Acquire);
            let (mut head, mut count) = (state >> 32, state & 0xffff_ffff);
            // Drop what has left the window.
            while count > 0 && self.slot(head).load(Ordering::Acquire) + WINDOW <= now {
                (head, count) = (head + 1, count - 1);
            }
            if count + cost > LIMIT {
                return Verdict::yes_or_no(false);
            }
            let next = head << 32 | (count + cost);
            if self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // The entries are ours; now say when they were made.
                for n in 0..cost {
                    self.slot(head + count + n).store(now, Ordering::Release);
                }
                return Verdict::Admitted;
            }
        }
    }
}

/// Runs the check.
pub(crate) fn report() -> Report {
    check(Ring::new, Spec::exact(&[(LIMIT, WINDOW)]))
        .name("head and count in one CASed word, the slot stored after it")
        .describe(|word, value| {
            (word == "state").then(|| format!("head {} count {}", value >> 32, value & 0xffff_ffff))
        })
        .scenarios(Suite::standard(LIMIT, WINDOW))
        .run()
}

#[allow(dead_code)]
fn main() {
    println!("{}", report());
}
