//! A counter in two shards, each a correct fixed window of half the limit: a caller that finds the first full tries the
//! second. Each shard keeps its part, so the sum is never above the limit. And a refusal?
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo run --example sharded_counter`

use tollgate_check::{
    Coverage, Limiter, Report, Scenario, Spec, Verdict, acquire, check,
    sync::{AtomicExt, AtomicU64, Ordering},
};

const LIMIT: u64 = 4;
const SHARDS: u64 = 2;
const WINDOW: u64 = 10;

/// `window << 32 | count` for each shard.
struct Sharded([AtomicU64; SHARDS as usize]);

impl Sharded {
    fn new() -> Sharded {
        let shard = || AtomicU64::new(0).named("shard");
        Sharded([shard(), shard()])
    }
}

/// Takes one permit of this shard's part.
fn take(shard: &AtomicU64, now: u64) -> bool {
    let next = |word: u64| {
        let window = (word >> 32).max(now / WINDOW);
        let count = if window == word >> 32 { word & 0xffff_ffff } else { 0 };
        (count < LIMIT / SHARDS).then_some(window << 32 | (count + 1))
    };
    shard.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
}

impl Limiter for Sharded {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        if cost > LIMIT / SHARDS {
            return Verdict::Never;
        }
        Verdict::yes_or_no(self.0.iter().any(|shard| take(shard, now)))
    }
}

/// Runs the check.
pub(crate) fn report() -> Report {
    check(Sharded::new, Spec::counter(&[(LIMIT, WINDOW)], 1, Coverage::Textbook))
        .name("sharded counter")
        .describe(|_, value| Some(format!("window {} count {}", value >> 32, value & 0xffff_ffff)))
        .scenario(
            Scenario::new("last permit")
                .setup([acquire(1, 0), acquire(1, 0), acquire(1, 0)])
                .thread([acquire(1, 0)])
                .thread([acquire(1, 0)]),
        )
        .scenario(
            Scenario::new("the first shard's time moves on")
                .setup([acquire(1, 0), acquire(1, 0), acquire(1, 0)])
                .thread([acquire(1, 9)])
                .thread([acquire(1, 10), acquire(1, 10), acquire(1, 9)]),
        )
        .run()
}

#[allow(dead_code)]
fn main() {
    println!("{}", report());
}
