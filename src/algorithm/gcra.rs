//! The generic cell rate algorithm: a token bucket, or a leaky bucket as a meter, in one word.
//!
//! # What
//! A bucket of `burst` permits drains one permit per interval. Instead of a level and the time it was true at,
//! the word keeps the one moment at which the bucket would be empty: the *theoretical arrival time*, TAT. The
//! level follows from it at any time, so nothing has to be refilled, and an idle bucket needs no care. [`live`] has
//! the clock by which the rate may change.
//!
//! # State
//! | bits  | field | meaning                                                            |
//! |-------|-------|--------------------------------------------------------------------|
//! | 63..0 | `tat` | when all permits will have drained, in ticks of the rate; 0: never used |
//!
//! # Invariants
//! | id | always                                                            | kept by            | checked by                    |
//! |----|-------------------------------------------------------------------|--------------------|-------------------------------|
//! | I1 | `tat <= n + span`, `n` the newest time admitted, `span` the time to drain the burst | `Tat::charged` | debug assert, properties |
//! | I2 | `n + span` fits the word, so no sum here overflows                | `GcraBuilder::build` | last_moments                |
//! | I3 | `tat` grows with every admission; only `undo` of the last, and `give_back`, which no queue offers, take it back | `Tat::charged`, `OnGcra::undo` | properties     |
//! | I5 | what is given back never takes `tat` further down than its charge, nor below now | `Tat::given_back` | property `given_back_within_the_bound` |
//! | I4 | a refusal stores nothing                                          | early return       | properties                    |
//!
//! # Linearization points
//! L1 admission, undo, permits given back: the CAS that succeeds. L2 refusal, look: the read of the word judged.
//!
//! # Memory order
//! | id | site              | order   | pairs with | because                                                               |
//! |----|-------------------|---------|------------|-----------------------------------------------------------------------|
//! | O1 | loads that judge  | Acquire | O3         | what another key has left here comes with the news that it is its now (`shared`) |
//! | O2 | other loads       | Relaxed | none       | the word is the whole state; nothing else hangs off it                 |
//! | O3 | admission, CAS    | Release | O1         | as O1                                                                 |
//! | O4 | other CASes       | Relaxed | none       | updates of one word are in one total order; they hand on what O3 released |
//!
//! Not promised: an admission orders none of the caller's own data.
//!
//! # Progress
//! Lock-free: a CAS beaten by another thread means that thread was admitted. Weak failures only retry.

mod live;

use core::{slice, time::Duration};

use super::{
    algorithm,
    config::{On, Parts},
    rate::Rate,
};
use crate::{
    ConfigError, Denied, Lapsed, Nanos, Permit, Rule,
    block::Inline,
    decision::{History, Limits, Look},
    live::Settings,
    sync::{Acquire, Relaxed, Release, Retries, Word, word},
};
pub use live::LiveGcraConfig;

/// A bucket that drains at a steady rate: the generic cell rate algorithm (GCRA) in one 64-bit word.
///
/// Permits come back one by one, every `per / limit`, up to `burst` of them; a new limiter has the whole burst.
/// The token bucket (a level of tokens that is refilled) and the leaky bucket as a meter (a level of water that
/// drains) take the same decisions and are other names of this type: [`TokenBucket`], [`LeakyBucket`]. The
/// leaky bucket as a queue, which makes callers wait, is [`Pacing`](crate::Pacing).
///
/// **Accuracy.** In any span of length `t` at most `burst + t / interval` permits: 10 per second with a burst of
/// 10 lets 20 through in its first second. Where a window must never hold more than its limit, take
/// [`Log`](crate::Log). A refusal is exact: the bucket had no room.
///
/// **Rate.** From one permit per 146 years to one per nanosecond, in integers. With `d` the denominator of
/// `per / limit` in nanoseconds, in lowest terms, the interval is
///
/// | `d`    | examples                                        | interval                               |
/// |--------|-------------------------------------------------|----------------------------------------|
/// | 1      | 1/s, 10 per 13 s, 1,000/s, 1/day, 10^9/s         | exact                                  |
/// | 2 or 3 | 3/s, 30/s, 60/s, 1,024/s, 600,000,000/s           | exact                                  |
/// | more   | 7/s, 7 per 3 s, 65,535/s                         | rounded up by less than a third of 1 ns |
///
/// so that a rate of the last row is never exceeded, and missed by less than 1 / 3,000 at 1,000,000/s, by less
/// than a third of a millionth at 1,000/s. Close to 10^9/s it is a quarter: prefer a rate of the first two rows there.
///
/// **Time.** Keeps no newest time. A call older than the newest one is judged as it stands and finds the bucket
/// no emptier than the newer ones left it: it is never given more. Where the bucket could not have been as full
/// as it is at the time passed, the decision speaks of the first moment at which it could, so that no wait
/// exceeds the time to drain the burst. After a step back of the clock by more than that, nobody is admitted until
/// the clock returns.
///
/// # Cost
/// One load; one CAS when admitted alone. Two multiplications, no division. Never blocks or allocates.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Gcra, Nanos};
///
/// let gcra = Gcra::builder(10, Duration::from_secs(1)).burst(3).build()?;
/// let t = Nanos::from_secs(5);
/// assert!(gcra.try_acquire_at(3, t));
/// let denied = gcra.check_at(2, t).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Nanos::from_millis(200)));
/// assert!(gcra.try_acquire_at(2, t + Nanos::from_millis(200)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct Gcra {
    block: Inline<Word<Tat>>,
    config: GcraConfig,
    /// Resets so far: no permit outlives one.
    resets: u64,
}

/// The configuration of a [`Gcra`], without its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GcraConfig {
    rate: Rate,
    /// Ticks in which a full bucket drains.
    span: u64,
    /// The largest cost that can be taken.
    ceiling: u64,
    burst: u64,
    max_cost: u64,
    rule: Rule,
    /// The fastest rate that it may be given while it runs.
    rate_max: Rule,
}

// SAFETY: contract of `NoUninit`: words alone, in C's order, so no padding.
unsafe impl bytemuck::NoUninit for GcraConfig {}

/// A configuration on a state.
pub(super) type OnGcra<'a> = On<'a, GcraConfig>;

/// What drains, and out of what. In ticks, of which each permit has as many.
pub(crate) trait Bucket: Parts<Heads = Word<Tat>, Slot = Tat> {
    /// The ticks that have drained by a moment in range.
    fn clock(&self, now: Nanos) -> u64;

    /// The first moment by which so many have drained.
    fn when(&self, clock: u64) -> Nanos;

    /// The ticks of so many permits, at most a burst of them.
    fn charge(&self, permits: u64) -> u64;

    /// The permits of so many ticks; one begun counts whole.
    fn permits(&self, ticks: u64) -> u64;

    /// The ticks of the burst.
    fn span(&self) -> u64;

    /// A moment before which nobody need be judged who finds this word.
    fn earliest(&self, tat: u64) -> Nanos;
}

/// The token bucket: `burst` is its capacity, `limit` per window its refill. Another name of [`Gcra`]: a bucket
/// with `n` tokens left is one with `burst - n` permits to drain.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Nanos, TokenBucket};
///
/// let bucket = TokenBucket::builder(1, Duration::from_secs(60)).burst(5).build()?;
/// assert_eq!(bucket.check_at(1, Nanos::ZERO).map(|quota| quota.remaining), Ok(4));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub type TokenBucket = Gcra;

/// The leaky bucket as a meter: `burst` is its size, `limit` per window its leak. Another name of [`Gcra`]. The
/// leaky bucket as a queue is [`Pacing`](crate::Pacing).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, LeakyBucket, Nanos};
///
/// let bucket = LeakyBucket::builder(3, Duration::from_secs(1)).build()?;
/// assert!(bucket.try_acquire_at(3, Nanos::ZERO));
/// assert_eq!(bucket.usage_at(0, Nanos::from_millis(500)), Some(2));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub type LeakyBucket = Gcra;

/// Builds a [`Gcra`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct GcraBuilder {
    rule: Rule,
    burst: Option<u64>,
    max_cost: u64,
    rate_max: Option<Rule>,
}

/// What one call sees: the word, and the time judged.
#[derive(Debug)]
pub(crate) struct GcraLook<'a, B> {
    bucket: &'a B,
    at: Nanos,
    tat: u64,
}

/// One admission: the word before and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    before: Tat,
    after: Tat,
    /// When the first of its permits begins to drain.
    pub(super) start: Nanos,
}

word!(
    /// When all permits will have drained, in ticks.
    Tat
);

// === impl Gcra ===

impl Gcra {
    /// Starts a bucket that drains `limit` permits per window `per`, one by one.
    pub fn builder(limit: u64, per: Duration) -> GcraBuilder {
        GcraBuilder { rule: Rule::new(limit, per), burst: None, max_cost: u64::MAX, rate_max: None }
    }

    /// Takes `cost` permits at `now`, all or nothing, which [`give_back`](Gcra::give_back) can give back.
    ///
    /// # Errors
    /// [`Denied`], which changed nothing.
    pub fn acquire_at(&self, cost: u64, now: Nanos) -> Result<Permit, Denied> {
        let on = self.on();
        Permit::take(&on, self.resets, cost, now, || on.step(cost, now).map(|step| step.after.0))
    }

    /// Gives permits back at `now`: the bucket drains by their cost, to nothing at most.
    ///
    /// The bucket does not remember when they were taken, and part of them may have drained since. So in any span of length
    /// `t` the permits admitted, less those given back in it, are at most `burst + t / interval`: giving back late can
    /// let through up to the cost given back beyond what would have passed if it had never been taken.
    ///
    /// # Errors
    /// [`Lapsed::Passed`], which changed nothing: by `now` they have drained, or would have if nobody had come after
    /// them; or `now` is out of range, or the bucket was reset since.
    ///
    /// # Cost
    /// One CAS.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Algorithm, Gcra, Lapsed, Nanos};
    ///
    /// let bucket = Gcra::builder(10, Duration::from_secs(1)).burst(3).build()?;
    /// let now = Nanos::from_secs(5);
    /// let permit = bucket.acquire_at(3, now).unwrap();
    /// assert_eq!(bucket.give_back(permit, now), Ok(()));
    /// let permit = bucket.acquire_at(3, now).unwrap();
    /// assert_eq!(bucket.give_back(permit, now + Nanos::from_millis(300)), Err(Lapsed::Passed));
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn give_back(&self, permit: Permit, now: Nanos) -> Result<(), Lapsed> {
        match permit.cost {
            0 => Ok(()),
            _ if permit.resets != self.resets => Err(Lapsed::Passed),
            _ => self.on().give_back(permit, now),
        }
    }

    #[inline(always)]
    pub(super) fn on(&self) -> OnGcra<'_> {
        On { config: &self.config, state: self.block.at() }
    }

    pub(super) fn config(&self) -> &GcraConfig {
        &self.config
    }

    pub(super) fn bytes(&self) -> usize {
        self.config.bytes()
    }

    pub(super) fn clear(&mut self) {
        self.block.clear();
        self.resets = self.resets.wrapping_add(1);
    }
}

algorithm!(Gcra in parts of GcraConfig);

// === impl GcraConfig ===

impl Limits for GcraConfig {
    fn rules(&self) -> &[Rule] {
        slice::from_ref(&self.rule)
    }

    fn capacity(&self, _rule: usize) -> u64 {
        self.burst
    }

    fn max_cost(&self) -> u64 {
        self.max_cost
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

impl Settings for GcraConfig {}

impl Parts for GcraConfig {
    const NAME: [u8; 8] = *b"gcra\0\0\0\0";
    type Heads = Word<Tat>;
    type Slot = Tat;

    fn accepts(gcra: OnGcra<'_>) -> bool {
        gcra.state.head().load(Relaxed).0 <= gcra.rate.clock(Nanos::MAX) + gcra.span // O2, I1
    }
}

impl Bucket for GcraConfig {
    #[inline]
    fn clock(&self, now: Nanos) -> u64 {
        self.rate.clock(now)
    }

    fn when(&self, clock: u64) -> Nanos {
        self.rate.nanos(clock)
    }

    #[inline]
    fn charge(&self, permits: u64) -> u64 {
        self.rate.charge(permits)
    }

    fn permits(&self, ticks: u64) -> u64 {
        self.rate.permits(ticks)
    }

    #[inline]
    fn span(&self) -> u64 {
        self.span
    }

    /// Some admission was at this time or later (I1). Before it no cost fits, and at it none does either.
    fn earliest(&self, tat: u64) -> Nanos {
        self.when(tat.saturating_sub(self.span))
    }
}

// === impl OnGcra ===

impl<B: Bucket> On<'_, B> {
    /// Charges `charge` ticks at `clock` while at most `room` are left to drain; tells the word before and after.
    #[inline]
    fn admit(self, charge: u64, clock: u64, room: u64) -> Option<(Tat, Tat)> {
        debug_assert!(charge + room <= self.span() && clock.checked_add(self.span()).is_some(), "I2");
        let retries = Retries::new();
        let mut seen = self.state.head().load(Acquire); // O1, L2
        while let Some(next) = seen.charged(charge, clock, room) {
            match self.state.head().compare_exchange_weak(seen, next, Release, Relaxed) {
                // O3, L1
                Ok(_) => return Some((seen, next)),
                Err(_) => {
                    retries.again();
                    seen = self.state.head().load(Acquire); // O1, L2
                }
            }
        }
        None
    }
}

impl OnGcra<'_> {
    /// Takes as [`History::take`] does, and tells what `undo` needs.
    pub(super) fn step(self, cost: u64, now: Nanos) -> Option<Step> {
        let charge = self.rate.charge(cost);
        let (before, after) = self.admit(charge, self.rate.clock(now), self.span - charge)?;
        Some(Step { before, after, start: now.max(self.rate.nanos(before.0)) })
    }

    /// Takes `cost` (1 to the ceiling) if nothing is left to drain.
    #[inline]
    pub(super) fn take_idle(self, cost: u64, now: Nanos) -> bool {
        self.admit(self.rate.charge(cost), self.rate.clock(now), 0).is_some()
    }

    /// Takes permits back.
    fn give_back(self, permit: Permit, now: Nanos) -> Result<(), Lapsed> {
        if !now.in_range() || permit.cost > self.burst || self.rate.clock(now) >= permit.until {
            return Err(Lapsed::Passed);
        }
        let (charge, clock) = (self.rate.charge(permit.cost), self.rate.clock(now));
        let retries = Retries::new();
        let mut seen = self.state.head().load(Relaxed); // O2
        while let Some(next) = seen.given_back(charge, clock) {
            if self.state.head().compare_exchange_weak(seen, next, Relaxed, Relaxed).is_ok() {
                return Ok(()); // O4, L1
            }
            retries.again();
            seen = self.state.head().load(Relaxed); // O2
        }
        Err(Lapsed::Passed)
    }

    /// Takes back the newest admission; `false`, and nothing changed, if another came after it.
    ///
    /// A word that stands at `after` was put there by this very step: every admission grows the word, and only
    /// undoing this one takes it below `after` again (I3).
    pub(super) fn undo(self, step: Step) -> bool {
        self.state.head().compare_exchange(step.after, step.before, Relaxed, Relaxed).is_ok() // O4, L1
    }
}

impl<'b, B: Bucket> History for On<'b, B> {
    type Limits = B;
    type Look<'a>
        = GcraLook<'b, B>
    where
        Self: 'a;

    fn limits(&self) -> &B {
        self.config
    }

    #[inline]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        let charge = self.charge(cost);
        self.admit(charge, self.clock(now), self.span() - charge).is_some()
    }

    fn look(&self, now: Nanos) -> GcraLook<'b, B> {
        let (bucket, tat) = (self.config, self.state.head().load(Acquire).0); // O1, L2
        GcraLook { bucket, at: now.max(bucket.earliest(tat)), tat }
    }

    /// Nothing is left to drain: then some admission was no later than now (I1).
    #[cfg(feature = "keyed")]
    #[inline]
    fn is_idle(&self, now: Nanos) -> bool {
        self.state.head().load(Relaxed).0 <= self.clock(now) // O1, L2
    }
}

// === impl GcraBuilder ===

impl GcraBuilder {
    /// Lets up to `burst` permits through at once (default: the limit).
    pub fn burst(mut self, burst: u64) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Refuses every cost above `max_cost` (default: any cost up to the burst passes).
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// The fastest rate that it may get while it runs ([`Live`](crate::Live)): up to `limit` permits per window `per`. The
    /// default is its own. It sets how finely time is told apart at slower rates.
    pub fn rate_max(mut self, limit: u64, per: Duration) -> Self {
        self.rate_max = Some(Rule::new(limit, per));
        self
    }

    /// Checks the configuration and makes the limiter. With limit 0 it refuses every cost above 0, whatever the
    /// burst.
    ///
    /// # Errors
    /// [`ConfigError::Window`]; [`ConfigError::Limit`] for more than one permit per nanosecond, or more than the fastest
    /// rate given;
    /// [`ConfigError::Burst`] for a burst of 0, or one that takes more than 48 years to drain (146 years with `d`
    /// of 2, 438 with `d` of 1 in the table at [`Gcra`]); [`ConfigError::MaxCost`] for a largest cost of 0.
    pub fn build(self) -> Result<Gcra, ConfigError> {
        Ok(Gcra { block: Inline::default(), config: self.config()?, resets: 0 })
    }

    /// Checks the configuration, for a state that lies elsewhere.
    ///
    /// # Errors
    /// Those of [`build`](GcraBuilder::build).
    pub fn config(self) -> Result<GcraConfig, ConfigError> {
        let Self { rule, burst, max_cost, rate_max } = self;
        let rate = Rate::new(rule)?;
        let rate_max = rate_max.unwrap_or(rule);
        rate_max.validate()?;
        rule.expect_at_most(rate_max)?;
        let burst = if rule.limit == 0 { 0 } else { burst.unwrap_or(rule.limit) };
        let max = rate.permits_max();
        if rule.limit > 0 && !(1..=max).contains(&burst) {
            return Err(ConfigError::Burst { got: burst, min: 1, max }); // I2
        }
        if max_cost == 0 {
            return Err(ConfigError::MaxCost { got: max_cost, min: 1 });
        }
        let (span, ceiling) = (rate.charge(burst), burst.min(max_cost));
        Ok(GcraConfig { rate, span, ceiling, burst, max_cost, rule, rate_max })
    }
}

// === impl GcraLook ===

impl<B: Bucket> GcraLook<'_, B> {
    /// How long until nothing is left to drain.
    pub(super) fn drained_after(&self) -> Nanos {
        self.drained_to(0)
    }

    /// How long until so many ticks are left to drain.
    fn drained_to(&self, left: u64) -> Nanos {
        self.bucket.when(self.tat.saturating_sub(left)) - self.at
    }
}

impl<B: Bucket> Look for GcraLook<'_, B> {
    fn at(&self) -> Nanos {
        self.at
    }

    fn used(&self, _rule: usize) -> Option<u64> {
        Some(self.bucket.permits(self.tat.saturating_sub(self.bucket.clock(self.at))))
    }

    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        Some(self.drained_to(self.bucket.charge(keep)))
    }
}

// === impl Tat ===

impl Tat {
    /// The word after a charge at `clock`, if at most `room` is left to drain then. The bucket drains within
    /// `charge + room` (I1), and grows (I3).
    #[inline]
    fn charged(self, charge: u64, clock: u64, room: u64) -> Option<Self> {
        (self.0 <= clock + room).then(|| Self(self.0.max(clock) + charge))
    }

    /// The word after a charge is given back at `clock`, if anything is left to drain then (I5).
    fn given_back(self, charge: u64, clock: u64) -> Option<Self> {
        (self.0 > clock).then(|| Self(self.0.saturating_sub(charge).max(clock)))
    }
}
