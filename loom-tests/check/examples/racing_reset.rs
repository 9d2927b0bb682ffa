//! A sliding-window counter as a ring of buckets: whoever comes to a bucket that still holds an old window clears it
//! first. Two who come at once both clear it, the second after the first has counted.
//!
//! `RUSTFLAGS="--cfg tollgate_loom" cargo run --example racing_reset`

use tollgate_check::{
    Coverage, Limiter, Report, Spec, Suite, Verdict, check,
    sync::{AtomicExt, AtomicU64, Ordering},
};

const LIMIT: u64 = 2;
const WINDOW: u64 = 10;
const BUCKETS: u64 = 2;
const WIDTH: u64 = WINDOW / BUCKETS;

/// One bucket: which one it is, and how much was admitted in it.
struct Bucket {
    index: AtomicU64,
    count: AtomicU64,
}

/// One more bucket than the window has, so that no window ever holds more than the limit.
struct Buckets([Bucket; BUCKETS as usize + 1]);

impl Buckets {
    fn new() -> Buckets {
        let bucket =
            |_| Bucket { index: AtomicU64::new(0).named("index"), count: AtomicU64::new(0).named("count") };
        Buckets([0, 1, 2].map(bucket))
    }
}

impl Limiter for Buckets {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        if cost > LIMIT {
            return Verdict::Never;
        }
        let newest = self.0.iter().map(|b| b.index.load(Ordering::SeqCst)).max().unwrap_or(0);
        let index = newest.max(now / WIDTH);
        let bucket = &self.0[(index % (BUCKETS + 1)) as usize];
        if bucket.index.load(Ordering::SeqCst) != index {
            bucket.count.store(0, Ordering::SeqCst);
            bucket.index.store(index, Ordering::SeqCst);
        }
        loop {
            let inside = |b: &&Bucket| b.index.load(Ordering::SeqCst) + BUCKETS >= index;
            let here = bucket.count.load(Ordering::SeqCst);
            let others = self.0.iter().filter(|b| !std::ptr::eq(*b, bucket)).filter(inside);
            let used = here + others.map(|b| b.count.load(Ordering::SeqCst)).sum::<u64>();
            if used + cost > LIMIT {
                return Verdict::yes_or_no(false);
            }
            let (ok, failed) = (Ordering::SeqCst, Ordering::SeqCst);
            if bucket.count.compare_exchange(here, here + cost, ok, failed).is_ok() {
                return Verdict::Admitted;
            }
        }
    }
}

/// Runs the check.
pub(crate) fn report() -> Report {
    check(Buckets::new, Spec::counter(&[(LIMIT, WINDOW)], BUCKETS, Coverage::Full))
        .name("bucket array whose reset races")
        .scenarios(Suite::standard(LIMIT, WINDOW))
        .run()
}

#[allow(dead_code)]
fn main() {
    println!("{}", report());
}
