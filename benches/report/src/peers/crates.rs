//! Crates that limit rates. Where one takes a clock, it is given one that tells the time that was passed; the others
//! read their own.

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    num::NonZeroU32,
    time::Duration,
};

use governor::{RateLimiter, clock, middleware::NoOpMiddleware, nanos, state};
use tollgate::Nanos;

use super::Limits;

thread_local! {
    static TOLD: Cell<u64> = const { Cell::new(0) };
}

type NoOp = NoOpMiddleware<nanos::Nanos>;

/// A clock that tells what this thread was told last.
#[derive(Clone)]
pub(crate) struct Told;

/// A token bucket: `governor`, not keyed.
pub(crate) struct Governor(RateLimiter<state::NotKeyed, state::InMemoryState, Told, NoOp>);

/// `governor`, keyed, with its default map, and its default hasher unless it is given one.
pub(crate) struct GovernorKeyed<S: BuildHasher + Clone = RandomState>(
    RateLimiter<u64, state::keyed::DashMapStateStore<u64, S>, Told, NoOp>,
);

/// A token bucket: `ratelimit`.
pub(crate) struct Ratelimit(ratelimit::Ratelimiter<Told>);

/// A token bucket: `better-bucket`.
pub(crate) struct BetterBucket(better_bucket::BucketCore);

/// A token bucket that is refilled at intervals, by a clock of its own: `leaky-bucket`.
pub(crate) struct LeakyBucket(leaky_bucket::RateLimiter);

/// An estimate by hashes, which counts what it refuses too, by a clock of its own: `pingora-limits`.
pub(crate) struct Pingora {
    limit: isize,
    rate: pingora_limits::rate::Rate,
}

// === impl Told ===

impl Told {
    fn tell(now: Nanos) {
        TOLD.set(now.as_nanos());
    }
}

impl clock::Clock for Told {
    type Instant = nanos::Nanos;

    #[inline]
    fn now(&self) -> nanos::Nanos {
        nanos::Nanos::new(TOLD.get())
    }
}

impl ratelimit::Clock for Told {
    #[inline]
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(TOLD.get())
    }
}

// === impl Governor, GovernorKeyed ===

fn quota(burst: u32, interval: Duration) -> governor::Quota {
    let burst = NonZeroU32::new(burst).expect("a burst");
    governor::Quota::with_period(interval).expect("an interval").allow_burst(burst)
}

impl Governor {
    /// A permit every interval, and a burst.
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self(RateLimiter::direct_with_clock(quota(burst, interval), Told))
    }
}

impl Limits for Governor {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        Told::tell(now);
        self.0.check().is_ok()
    }
}

impl<S: BuildHasher + Clone + Default> GovernorKeyed<S> {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self(RateLimiter::dashmap_with_clock_and_hasher(quota(burst, interval), Told, S::default()))
    }

    #[inline(always)]
    pub(crate) fn try_acquire(&self, key: u64, now: Nanos) -> bool {
        Told::tell(now);
        self.0.check_key(&key).is_ok()
    }
}

// === impl Ratelimit ===

impl Ratelimit {
    /// So many permits a period, and as many at once.
    pub(crate) fn new(rate: u64, period: Duration) -> Self {
        // Refilled up to the time at which it starts.
        Told::tell(Nanos::ZERO);
        let limiter = ratelimit::Builder::with_clock(rate, Told).period(period).initial_available(rate);
        Self(limiter.build().expect("a rate"))
    }
}

impl Limits for Ratelimit {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        Told::tell(now);
        self.0.try_wait().is_ok()
    }
}

// === impl BetterBucket ===

impl BetterBucket {
    /// So many permits a period, and as many at once.
    pub(crate) fn new(rate: u32, period: Duration) -> Self {
        let config = better_bucket::BucketConfig::new(rate, rate, period, rate).expect("a rate");
        Self(better_bucket::BucketCore::new(config, Duration::ZERO))
    }
}

impl Limits for BetterBucket {
    #[inline(always)]
    fn try_acquire(&self, now: Nanos) -> bool {
        self.0.try_acquire_at(1, Duration::from_nanos(now.as_nanos()))
    }
}

// === impl LeakyBucket ===

impl LeakyBucket {
    /// So many permits a period, and as many at once.
    pub(crate) fn new(rate: usize, period: Duration) -> Self {
        let mut builder = leaky_bucket::RateLimiter::builder();
        Self(builder.max(rate).initial(rate).refill(rate).interval(period).build())
    }
}

impl Limits for LeakyBucket {
    const OWN_CLOCK: bool = true;

    #[inline(always)]
    fn try_acquire(&self, _: Nanos) -> bool {
        self.0.try_acquire(1)
    }
}

// === impl Pingora ===

impl Pingora {
    /// So many events in each interval.
    pub(crate) fn new(limit: isize, interval: Duration) -> Self {
        Self { limit, rate: pingora_limits::rate::Rate::new(interval) }
    }
}

impl Limits for Pingora {
    const OWN_CLOCK: bool = true;

    #[inline(always)]
    fn try_acquire(&self, _: Nanos) -> bool {
        self.rate.observe(&0, 1) <= self.limit
    }
}
