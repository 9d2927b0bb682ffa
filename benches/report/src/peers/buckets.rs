//! The textbook counter: a count for each bucket under a lock. Its sum is made anew in every call, or kept.

use std::sync::RwLock;

use parking_lot::Mutex;
use tollgate::Nanos;

use super::Limits;

/// The counts of the last buckets, each where its number, modulo their count, says.
struct Buckets {
    limit: u64,
    width: Nanos,
    /// The bucket counted there, and its count.
    counts: Vec<(u64, u64)>,
}

/// Summed in every call, under a mutex.
pub(crate) struct Summed(Mutex<Buckets>);

/// Summed under a lock that readers share; who finds room takes it alone and sums again.
pub(crate) struct Shared(RwLock<Buckets>);

/// A total is kept beside the counts, and what expires taken off it; under a mutex.
pub(crate) struct Total(Mutex<Kept>);

struct Kept {
    buckets: Buckets,
    newest: u64,
    total: u64,
}

// === impl Buckets ===

impl Buckets {
    fn new(limit: u64, window: Nanos, buckets: u64) -> Self {
        let width = Nanos::from_nanos(window.as_nanos() / buckets);
        Self { limit, width, counts: vec![(0, 0); buckets as usize] }
    }

    fn bucket(&self, now: Nanos) -> u64 {
        now.as_nanos() / self.width.as_nanos()
    }

    /// Admissions in the last buckets up to this one.
    fn sum(&self, bucket: u64) -> u64 {
        let oldest = bucket + 1 - self.counts.len() as u64;
        self.counts.iter().filter(|(at, _)| (oldest..=bucket).contains(at)).map(|(_, count)| count).sum()
    }

    fn add(&mut self, bucket: u64) {
        let place = (bucket % self.counts.len() as u64) as usize;
        let (at, count) = &mut self.counts[place];
        if *at != bucket {
            (*at, *count) = (bucket, 0);
        }
        *count += 1;
    }
}

// === impl Summed, Shared, Total ===

impl Summed {
    pub(crate) fn new(limit: u64, window: Nanos, buckets: u64) -> Self {
        Self(Mutex::new(Buckets::new(limit, window, buckets)))
    }
}

impl Limits for Summed {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        let mut buckets = self.0.lock();
        let bucket = buckets.bucket(now);
        let admits = buckets.sum(bucket) < buckets.limit;
        if admits {
            buckets.add(bucket);
        }
        admits
    }
}

impl Shared {
    pub(crate) fn new(limit: u64, window: Nanos, buckets: u64) -> Self {
        Self(RwLock::new(Buckets::new(limit, window, buckets)))
    }
}

impl Limits for Shared {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        let buckets = self.0.read().expect("no holder panics");
        let bucket = buckets.bucket(now);
        if buckets.sum(bucket) >= buckets.limit {
            return false;
        }
        drop(buckets);
        let mut buckets = self.0.write().expect("no holder panics");
        let admits = buckets.sum(bucket) < buckets.limit;
        if admits {
            buckets.add(bucket);
        }
        admits
    }
}

impl Total {
    pub(crate) fn new(limit: u64, window: Nanos, buckets: u64) -> Self {
        let buckets = Buckets::new(limit, window, buckets);
        Self(Mutex::new(Kept { buckets, newest: 0, total: 0 }))
    }
}

impl Limits for Total {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        let kept = &mut *self.0.lock();
        let bucket = kept.buckets.bucket(now).max(kept.newest);
        let len = kept.buckets.counts.len() as u64;
        for entered in (kept.newest + 1..=bucket).rev().take(len as usize) {
            let expired = &mut kept.buckets.counts[(entered % len) as usize];
            kept.total -= expired.1;
            *expired = (entered, 0);
        }
        kept.newest = bucket;
        let admits = kept.total < kept.buckets.limit;
        if admits {
            kept.total += 1;
            kept.buckets.add(bucket);
        }
        admits
    }
}
