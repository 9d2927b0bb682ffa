//! A bucket whose rate may change while callers call.
//!
//! # What
//! A plain bucket counts in time: a permit is an interval, and at another rate it would be another one, so that what is
//! left to drain had to be converted while others add to it. Here a permit is the same number of ticks at every
//! rate, and the *clock* of the bucket runs faster or slower: it shows what has drained so far. The word says, as
//! ever, what it will show when the bucket is empty. So a change of the rate is a change of the clock, in the configuration
//! alone, from one moment on; what is left to drain stays as it is, in permits, to the tick, and nobody touches the
//! state. A caller with the old clock and one with the new may take from one word at the same time.
//!
//! # Ticks
//! At the fastest rate that it may ever get, the ticks are those of a plain bucket of that rate, and so is every answer. At a
//! rate `k` times slower a tick takes `k` times as long, and the clock shows whole ticks: a permit may come a tick
//! early. That does not add up: in any span the permits are at most `burst` and what drains in the span and one tick, or
//! two in a span of 146 years, in which a speed rounded up comes to as much.
//!
//! # Invariants
//! | id | always                                                                    | kept by                | checked by |
//! |----|---------------------------------------------------------------------------|------------------------|------------|
//! | I1 | the clock never runs back, and does not jump when its speed changes         | `with_rate`: `drained` is what the old one shows | properties, models |
//! | I2 | the clock is never ahead of that of a plain bucket of the fastest rate      | `speed` is capped, I1 | properties |
//! | I3 | that clock at the last moment, and `span` after it, fit the word            | `with_rate`: the burst is checked | properties |

use core::{num::NonZeroU64, slice};

use super::{Bucket, Gcra, GcraBuilder, GcraConfig, On, Parts, Rate, Tat};
use crate::{
    ConfigError, Live, LiveRules, Nanos, Rule,
    algorithm::InParts,
    decision::{History, Limits},
    live::{Changes, Settings},
    sync::Word,
};

/// Bits of a speed below the tick. So many that what they round up is less than a tick in all of time, and so few that
/// three ticks a nanosecond fit a word.
const SPEED_BITS: u32 = 62;

const _: () =
    assert!(Nanos::MAX.as_nanos() >> SPEED_BITS == 0 && 3_u64.checked_mul(1 << SPEED_BITS).is_some());

/// The configuration of a [`Gcra`] whose rate may change, without its state: what [`Live`] replaces, for whoever keeps
/// states elsewhere.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Gcra, Nanos, Rule};
///
/// let second = Duration::from_secs(1);
/// let slow = Gcra::builder(1, second).rate_max(100, second).live_config()?;
/// let fast = slow.with_rate(Rule::new(100, second), 20, Nanos::from_secs(7))?; // For the same states.
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LiveGcraConfig {
    /// The moment of the last change, and what had drained by then.
    since: Nanos,
    drained: u64,
    /// What drains in a nanosecond, in parts of `2^SPEED_BITS` of a tick.
    speed: NonZeroU64,
    span: u64,
    ceiling: u64,
    /// The fastest rate: its ticks and its interval, which is that of every permit.
    fastest: Rate,
    burst: u64,
    max_cost: u64,
    rule: Rule,
    rate_max: Rule,
}

// SAFETY: contract of `NoUninit`: words alone, in C's order, so no padding.
unsafe impl bytemuck::NoUninit for LiveGcraConfig {}

/// The speed of a clock that shows the ticks of this rate.
fn full_speed(rate: Rate) -> NonZeroU64 {
    // Up to three (I2 of `rate.rs`), which leaves room for the bits.
    NonZeroU64::MIN.saturating_add((rate.ticks() << SPEED_BITS) - 1)
}

// === impl LiveGcraConfig ===

impl LiveGcraConfig {
    /// That of a new bucket.
    fn new(plain: &GcraConfig) -> Result<Self, ConfigError> {
        let &GcraConfig { burst, max_cost, rule, rate_max, .. } = plain;
        let fastest = Rate::new(rate_max)?;
        let blank = Self {
            since: Nanos::ZERO,
            drained: 0,
            speed: full_speed(fastest),
            span: 0,
            ceiling: 0,
            fastest,
            burst: 0,
            max_cost,
            rule,
            rate_max,
        };
        blank.with_rate(rule, burst, Nanos::ZERO)
    }

    /// The same with another rate and burst from `now` on, for any state that this one or one before it has left:
    /// [`LiveRules::set_rate_at`].
    ///
    /// # Errors
    /// Those of [`LiveRules::set_rate_at`].
    pub fn with_rate(&self, rule: Rule, burst: u64, now: Nanos) -> Result<Self, ConfigError> {
        rule.validate()?;
        rule.expect_at_most(self.rate_max)?;
        if !now.in_range() {
            return Err(ConfigError::Moment { got: now, max: Nanos::MAX });
        }
        let burst = if rule.limit == 0 { 0 } else { burst };
        let max = self.fastest.permits_max();
        if rule.limit > 0 && !(1..=max).contains(&burst) {
            return Err(ConfigError::Burst { got: burst, min: 1, max }); // I3
        }
        let since = now.max(self.since);
        let span = self.charge(burst);
        Ok(Self {
            since,
            drained: self.clock(since), // I1
            speed: if rule.limit == 0 { self.speed } else { self.speed_of(rule) },
            span,
            ceiling: burst.min(self.max_cost),
            burst,
            rule,
            ..*self
        })
    }

    /// What drains in a nanosecond at this rate. Rounded up, so that what drains in whole ticks is shown in time; at the
    /// fastest rate, whose interval may be rounded up, it is a plain bucket's all the same.
    fn speed_of(&self, rule: Rule) -> NonZeroU64 {
        let ticks = u128::from(self.fastest.charge(1)) * u128::from(rule.limit);
        let speed = u64::try_from((ticks << SPEED_BITS).div_ceil(rule.window.as_nanos().into()));
        let most = full_speed(self.fastest);
        speed.ok().and_then(NonZeroU64::new).map_or(most, |speed| speed.min(most)) // I2
    }
}

impl Settings for LiveGcraConfig {}

impl Limits for LiveGcraConfig {
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

impl Parts for LiveGcraConfig {
    const NAME: [u8; 8] = *b"livegcra";

    type Heads = Word<Tat>;
    type Slot = Tat;

    /// Any word is a time by which it will have drained.
    fn accepts(_gcra: On<'_, Self>) -> bool {
        true
    }
}

impl Bucket for LiveGcraConfig {
    /// A moment before the last change shows what that one did.
    #[inline]
    fn clock(&self, now: Nanos) -> u64 {
        let since = u128::from((now - self.since).as_nanos());
        self.drained + ((since * u128::from(self.speed.get())) >> SPEED_BITS) as u64
    }

    fn when(&self, clock: u64) -> Nanos {
        let more = u128::from(clock.saturating_sub(self.drained)) << SPEED_BITS;
        let span = more.div_ceil(u128::from(self.speed.get()));
        self.since + Nanos::from_nanos(u64::try_from(span).unwrap_or(u64::MAX))
    }

    #[inline]
    fn charge(&self, permits: u64) -> u64 {
        self.fastest.charge(permits)
    }

    fn permits(&self, ticks: u64) -> u64 {
        self.fastest.permits(ticks)
    }

    #[inline]
    fn span(&self) -> u64 {
        self.span
    }

    fn earliest(&self, _tat: u64) -> Nanos {
        self.since
    }
}

// === impl GcraBuilder ===

impl GcraBuilder {
    /// Checks the configuration, for a state that lies elsewhere and a rate that may change.
    ///
    /// # Errors
    /// Those of [`build`](GcraBuilder::build); [`ConfigError::Burst`] for one that takes more than 48 years to drain at the
    /// fastest rate.
    pub fn live_config(self) -> Result<LiveGcraConfig, ConfigError> {
        LiveGcraConfig::new(&self.config()?)
    }
}

// === impl Gcra ===

impl Changes for Gcra {
    type Settings = LiveGcraConfig;

    fn first(&self) -> Result<LiveGcraConfig, ConfigError> {
        LiveGcraConfig::new(self.config())
    }

    #[inline(always)]
    fn under<'a>(&'a self, settings: &'a LiveGcraConfig) -> impl History<Limits = LiveGcraConfig> {
        On { config: settings, state: self.state() }
    }
}

// === impl Live ===

impl Live<Gcra> {
    /// Replaces rate and burst: [`LiveRules::set_rate_at`].
    ///
    /// # Errors
    /// Those of [`LiveRules::set_rate_at`].
    pub fn set_rate_at(&self, rate: Rule, burst: u64, now: Nanos) -> Result<(), ConfigError> {
        self.handle().set_rate_at(rate, burst, now)
    }
}

// === impl LiveRules ===

impl LiveRules<Gcra> {
    /// Replaces rate and burst of the buckets that follow, from `now` on. Whatever call begins after that is judged by
    /// them.
    ///
    /// The permits owed, which were taken and have not drained, are kept in full; they drain at the new rate. After a
    /// lowering of the burst below them nothing is admitted until they have drained so far. A limit of 0 refuses every cost
    /// above 0, as *never*; what is owed drains on as before.
    ///
    /// A call that carries an older time than the change did is judged at the time of the change, and one with an older time
    /// than the newest as it stands: it is never given more. A change with an older time than the one before it takes place at
    /// that one's.
    ///
    /// At a rate `k` times slower than [`rate_max`](crate::GcraBuilder::rate_max), moments less than `k` nanoseconds apart
    /// are not told apart: a permit may come so much early, however many came before it.
    ///
    /// # Errors
    /// [`ConfigError::Limit`] for a rate above [`rate_max`](crate::GcraBuilder::rate_max); [`ConfigError::Burst`] and
    /// [`ConfigError::Window`] as when it was built; [`ConfigError::Moment`] for a time out of range. Nothing has changed.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Algorithm, Gcra, Live, Nanos, Rule};
    ///
    /// let second = Duration::from_secs(1);
    /// let bucket = Live::new(Gcra::builder(1, second).burst(10).rate_max(100, second).build()?)?;
    /// let t = Nanos::from_secs;
    /// assert!(bucket.try_acquire_at(10, t(7)));
    /// bucket.set_rate_at(Rule::new(2, second), 20, t(7))?; // Owes 10 of 20, and drains 2 a second.
    /// assert_eq!(bucket.peek_at(1, t(8)).map(|quota| quota.remaining), Ok(12));
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn set_rate_at(&self, rate: Rule, burst: u64, now: Nanos) -> Result<(), ConfigError> {
        self.replace(|present| present.with_rate(rate, burst, now))
    }
}
