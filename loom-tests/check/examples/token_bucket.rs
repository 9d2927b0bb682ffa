//! A token bucket that loads its level, refills it by the time passed, and stores what is left.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo run --example token_bucket`

use tollgate_check::{
    Limiter, Report, Spec, Suite, Verdict, check,
    sync::{AtomicExt, AtomicU64, Ordering},
};

const BURST: u64 = 2;
/// One token comes back every so many ticks.
const INTERVAL: u64 = 5;

struct TokenBucket {
    /// Tokens left, in ticks worth of refill.
    level: AtomicU64,
    /// When `level` was true.
    at: AtomicU64,
}

impl TokenBucket {
    fn new() -> TokenBucket {
        TokenBucket {
            level: AtomicU64::new(BURST * INTERVAL).named("level"),
            at: AtomicU64::new(0).named("at"),
        }
    }
}

impl Limiter for TokenBucket {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        if cost > BURST {
            return Verdict::Never;
        }
        let passed = now.saturating_sub(self.at.load(Ordering::SeqCst));
        let level = (self.level.load(Ordering::SeqCst) + passed).min(BURST * INTERVAL);
        if level < cost * INTERVAL {
            return Verdict::yes_or_no(false);
        }
        self.level.store(level - cost * INTERVAL, Ordering::SeqCst);
        self.at.store(now, Ordering::SeqCst);
        Verdict::Admitted
    }
}

/// Runs the check.
pub(crate) fn report() -> Report {
    check(TokenBucket::new, Spec::gcra(1, INTERVAL, BURST))
        .name("load/store token bucket")
        .scenarios(Suite::standard(BURST, BURST * INTERVAL))
        .run()
}

#[allow(dead_code)]
fn main() {
    println!("{}", report());
}
