//! The exact sliding-window log.
//!
//! # What
//! Admits at most `limit` permits in any window `(t - window, t]`, exact to the nanosecond, for one or several
//! rules at once. The textbook log deletes what has left the window; this one keeps the time of each of the last
//! `cap` admissions (the largest limit) in a ring and looks back: the rule holds if the `limit`-th most recent
//! admission is at least a window old. No clean-up, no scan, whatever expired in between.
//!
//! # State
//! One block: a line of head words, then `cap` slots of `1 | time | parity of the lap`. Admission `k` lies in slot
//! `k mod cap`. All zeros is a log that has admitted nothing.
//!
//! Two forms of admission work on that ring, chosen at construction by the largest cost: [`unit`] (the slot
//! decides) and [`costs`] (the head decides). Their invariants stand there; the memory order is one for both.
//!
//! # Memory order
//! | id | site                        | order            | pairs with | because                                                       |
//! |----|-----------------------------|------------------|------------|---------------------------------------------------------------|
//! | O1 | head, first load            | Acquire          | O4         | every slot up to the head read is then seen as written         |
//! | O2 | slots                       | Acquire          | O5         | a slot of a later lap shows, at O3, the head that led to it     |
//! | O3 | head, read again            | Relaxed          | none       | it only has to come after O2, and O2 acquires                  |
//! | O4 | head CAS                    | Release          | O1         | publishes the slots below it; the head was acquired before      |
//! | O5 | slot CAS                    | Release          | O2         | whoever sees the slot sees the head that its writer saw         |
//! | O6 | base, load                  | Acquire          | O7         | a base of a later bank shows, at O3, the head that led to it    |
//! | O7 | base CAS                    | Release          | O6         | as O5                                                          |
//!
//! A CAS that fails loads Relaxed: its caller starts over and reads nothing through the value.

mod costs;
mod ring;
mod unit;

use core::{mem::offset_of, time::Duration};

use crate::{
    ConfigError, Nanos, Parted, RULES_MAX, Rule, Sharded,
    algorithm::{
        algorithm,
        config::{On, Parts, WithRules},
    },
    block::Owned,
    decision::{History, Limits},
    live::{Settings, fetch_before, fetch_rules_and},
    rule::Rules,
    sync::SPAN_BITS_MAX,
};
use ring::{Geometry, Head, Heads, LogLook, LookBack, Pos, Slot, Stamp};

/// The largest limit of a log: 2^30, which takes 8 GiB.
const LIMIT_MAX: u64 = 1 << 30;

/// An exact sliding-window log: at most `limit` permits in any window, to the nanosecond.
///
/// Memory is 8 bytes for each permit of the largest limit, taken once and touched as it is first used (where the
/// system gives zeroed memory untouched). Several rules share it and are taken together or not at all. Any number
/// of threads may call it at once; a refusal stores nothing, unless it had found room first and lost it to a rival.
///
/// # Guarantees
/// Never over: no window of the recorded times holds more than the limit, under any interleaving (with costs above 1,
/// under the assumption below). Never falsely refused: at one instant inside a refused call no permit was free.
/// Lock-free; a thread that dies inside a call loses at most its own permits.
///
/// With costs above 1 the newest time is kept in `span` bits of a word (52 for a limit of 1,000, 42 for a
/// million; [`LogBuilder::max_cost`] of 1 has no such bound). A call whose passed time lies more than half of
/// `2^span` nanoseconds (26 days, 36 minutes) behind that of an earlier call which died, or lost a race, on its
/// way to that time can be judged at a time up to that one; no window holds more than the limit all the same.
/// That last needs one assumption: no caller sleeps inside a call until its head word has come round to the
/// bit, after `2^span` nanoseconds or more, in a multiple of half of that, and at once a multiple of twice the
/// capacity in permits.
///
/// # Cost
/// Admission: two CASes, one of them on the head's line. Refusal: loads. O(number of rules), whatever the limit,
/// the window, and how much expired. Only an admission of `n` permits leaves `n` slots to the next one, a CAS each.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Log, Nanos};
///
/// let log = Log::builder(2, Duration::from_secs(1)).build()?;
/// assert!(log.try_acquire_at(1, Nanos::from_millis(0)));
/// assert!(log.try_acquire_at(1, Nanos::from_millis(400)));
///
/// let denied = log.check_at(1, Nanos::from_millis(900)).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Nanos::from_millis(100)));
/// assert!(log.try_acquire_at(1, Nanos::from_millis(1_000)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[repr(C)]
pub struct Log {
    config: LogConfig,
    block: Owned<Heads, Slot>,
}

/// The configuration of a [`Log`], without its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LogConfig {
    /// The largest cost that a glance looks at: the capacity; in the form of single permits, less than 0. One word, so
    /// that one compare tells the form.
    glanced: i64,
    /// The times before which a glance admits: all in range if the one rule's limit is the capacity, else none.
    glance_until: u64,
    /// Bits of the position and of the newest time in the head, in the form with costs.
    pos_bits: u32,
    /// Whether single permits are all that can be taken: the slot decides.
    is_unit: u32,
    span_mask: u64,
    ring: Geometry,
    ceiling: u64,
    max_cost: u64,
    /// Of a rule whose limit is the capacity, so that its look-back is the slot a whole lap back; else one that refuses
    /// nothing.
    full: LookBack,
    look_backs: [LookBack; RULES_MAX],
    rules: Rules,
}

// SAFETY: contract of `NoUninit`: words alone, in C's order, so no padding.
unsafe impl bytemuck::NoUninit for LogConfig {}

/// A configuration on a state.
type OnLog<'a> = On<'a, LogConfig>;

/// Builds a [`Log`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct LogBuilder {
    rules: Rules,
    max_cost: u64,
    /// The largest limit that the rules may ever have; 0 if not given.
    capacity: u64,
}

// === impl Log ===

impl Log {
    /// A log of at most `limit` permits in any `window`.
    pub fn builder(limit: u64, window: Duration) -> LogBuilder {
        LogBuilder { rules: Rules::one(Rule::new(limit, window)), max_cost: u64::MAX, capacity: 0 }
    }

    #[inline(always)]
    fn on(&self) -> OnLog<'_> {
        On { config: &self.config, state: self.block.at() }
    }

    fn bytes(&self) -> usize {
        self.config.bytes()
    }

    fn clear(&mut self) {
        self.block.clear();
    }
}

algorithm!(Log in parts of LogConfig);

// === impl LogConfig ===

impl LogConfig {
    #[inline]
    fn look_backs(&self) -> &[LookBack] {
        &self.look_backs[..self.rules.len()]
    }
}

impl WithRules for LogConfig {
    fn with_rules(&self, rules: Rules) -> Result<Self, ConfigError> {
        rules.validate()?;
        let cap = self.ring.cap;
        if rules.largest_limit() > cap {
            return Err(ConfigError::Limit { got: rules.largest_limit(), max: cap });
        }
        let ceiling = rules.least_limit().min(self.max_cost);
        let full = rules.iter().find(|rule| rule.limit == cap);
        let is_alone = rules.len() == 1 && full.is_some() && ceiling > 0;
        let mut look_backs = [LookBack::default(); RULES_MAX];
        for (look_back, &rule) in look_backs.iter_mut().zip(rules.iter()) {
            *look_back = LookBack::new(rule);
        }
        let glance_until = if is_alone { Nanos::END } else { 0 };
        let full = full.map_or(LookBack::ALWAYS_PAST, |&rule| LookBack::new(rule));
        Ok(Self { glance_until, ceiling, full, look_backs, rules, ..*self })
    }
}

impl Settings for LogConfig {
    #[inline(always)]
    fn in_use(mut fetch: impl FnMut(usize) -> u64) {
        fetch_before(offset_of!(Self, look_backs), &mut fetch);
        fetch_rules_and::<LookBack>(offset_of!(Self, rules), offset_of!(Self, look_backs), &mut fetch);
    }
}

impl Limits for LogConfig {
    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn max_cost(&self) -> u64 {
        self.max_cost
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

impl Parts for LogConfig {
    const NAME: [u8; 8] = *b"log\0\0\0\0\0";
    type Heads = Heads;
    type Slot = Slot;

    fn slots(&self) -> u64 {
        self.ring.cap
    }

    fn reach(&self) -> u64 {
        self.ring.indices_max()
    }

    fn accepts(log: OnLog<'_>) -> bool {
        if log.is_unit != 0 { unit::accepts(log) } else { costs::accepts(log) }
    }
}

// === impl OnLog ===

impl<'a> OnLog<'a> {
    fn look_from(self, seen: Head, end: Pos, at: Stamp, unfilled: Option<Stamp>) -> LogLook<'a> {
        let Self { config, state } = self;
        LogLook { block: state, ring: &config.ring, rules: config.look_backs(), seen, end, at, unfilled }
    }
}

impl<'l> History for OnLog<'l> {
    type Limits = LogConfig;
    type Look<'a>
        = LogLook<'l>
    where
        Self: 'a;

    fn limits(&self) -> &LogConfig {
        self.config
    }

    #[inline(always)]
    fn glance(&self, cost: u64, now: Nanos) -> Option<bool> {
        if self.glanced > 0 {
            // One compare for both ends: 0 wraps to the top.
            let looks = cost.wrapping_sub(1) < self.glanced.cast_unsigned();
            return if looks { costs::glance(*self, cost, now) } else { None };
        }
        if cost == 1 { unit::glance(*self, now) } else { None }
    }

    #[inline]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        if self.is_unit != 0 { unit::take(*self, now) } else { costs::take(*self, now, cost) }
    }

    fn look(&self, now: Nanos) -> LogLook<'l> {
        if self.is_unit != 0 { unit::look(*self, now) } else { costs::look(*self, now) }
    }
}

// === impl LogBuilder ===

impl LogBuilder {
    /// Adds a rule: every rule must have room, or nothing is taken from any.
    pub fn rule(mut self, limit: u64, window: Duration) -> Self {
        self.rules.push(Rule::new(limit, window));
        self
    }

    /// The largest cost of a call; a call above it is refused with [`Reason::MaxCost`](crate::Reason::MaxCost).
    /// The default is any cost up to the limit. With 1 a simpler protocol serves, which is faster.
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// The largest limit that the rules may get while the log runs ([`Live`](crate::Live)): it sets the memory. The
    /// default is the largest limit of the rules, 1 at least. Each shard has room for its part, rounded up.
    ///
    /// A limit below the capacity, in a log that does not change, only costs: memory, and a nanosecond a call.
    pub fn capacity(mut self, limit: u64) -> Self {
        self.capacity = limit;
        self
    }

    /// Checks everything and takes the memory.
    ///
    /// # Errors
    /// Those of [`config`](LogBuilder::config), or too little memory.
    pub fn build(self) -> Result<Log, ConfigError> {
        let config = self.config()?;
        Ok(Log { block: Owned::zeroed(config.slots())?, config })
    }

    /// Checks everything and takes the memory of a log in so many shards, whose parts of the limit add up to it.
    ///
    /// # Errors
    /// Those of [`build`](LogBuilder::build), more than one rule, no shard or more than 65,536, or a largest
    /// cost above the smallest part.
    pub fn build_sharded(self, shards: usize) -> Result<Sharded<Log>, ConfigError> {
        Sharded::new(self.config_sharded(shards)?)
    }

    /// Checks everything, for a state in so many shards that lies elsewhere.
    ///
    /// # Errors
    /// Those of [`build_sharded`](LogBuilder::build_sharded) but for too little memory.
    pub fn config_sharded(self, shards: usize) -> Result<Parted<LogConfig>, ConfigError> {
        let rule = self.rules.first();
        Parted::new(self.rules, self.max_cost, shards, |limit, max_cost| {
            let capacity = self.capacity.div_ceil(shards as u64);
            Self { rules: Rules::one(Rule { limit, ..rule }), max_cost, capacity }.config()
        })
    }

    /// Checks everything, for a state that lies elsewhere.
    ///
    /// # Errors
    /// A limit above 2^30 or above the capacity given, a window outside 1 ns to [`Nanos::MAX`], more than [`RULES_MAX`](crate::RULES_MAX)
    /// rules, or a largest cost of 0.
    pub fn config(self) -> Result<LogConfig, ConfigError> {
        let rules = self.rules;
        rules.validate()?;
        if rules.largest_limit() > LIMIT_MAX {
            return Err(ConfigError::Limit { got: rules.largest_limit(), max: LIMIT_MAX });
        }
        if self.max_cost == 0 {
            return Err(ConfigError::MaxCost { got: 0, min: 1 });
        }
        if self.capacity > LIMIT_MAX {
            return Err(ConfigError::Limit { got: self.capacity, max: LIMIT_MAX });
        }
        let cap = if self.capacity == 0 { rules.largest_limit().max(1) } else { self.capacity };
        // The form with costs needs two slots at least: filling asks for the one before the last. It is taken for a rule of
        // one permit, too, which a change may raise.
        let unit = cap.min(self.max_cost) <= 1;
        let ring = Geometry::new(cap, if unit { u64::BITS } else { 0 });
        let span_bits = (u64::BITS - 1).saturating_sub(ring.mask.count_ones()).min(SPAN_BITS_MAX);
        let pos_bits = u64::BITS - 1 - span_bits;
        let blank = LogConfig {
            glanced: if unit { -1 } else { cap.cast_signed() },
            glance_until: 0,
            pos_bits,
            is_unit: unit.into(),
            span_mask: (1 << span_bits) - 1,
            ring,
            ceiling: 0,
            max_cost: if unit { 1 } else { self.max_cost },
            full: LookBack::ALWAYS_PAST,
            look_backs: [LookBack::default(); RULES_MAX],
            rules,
        };
        blank.with_rules(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    /// A glance reads the history before it checks the time: nothing may come of it.
    #[test]
    fn a_time_out_of_range_is_refused_and_not_recorded() {
        let (limit, second) = (5, Duration::from_secs(1));
        for max_cost in [1, 4] {
            for builder in [Log::builder(limit, second), Log::builder(limit, second).rule(9, 2 * second)] {
                let log = builder.max_cost(max_cost).build().unwrap();
                for (room, base) in [(5, 0), (3, 5), (1, 9), (0, 9)] {
                    let now = Nanos::from_secs(base);
                    while log.usage_at(0, now) < Some(limit - room) {
                        assert!(log.try_acquire_at(1, now));
                    }
                    for bits in [62, 63] {
                        let late = [Nanos::from_nanos(1 << bits), Nanos::from_nanos((1 << bits) + base + 1)];
                        let wild = late.map(|now| [0, 1, 2].map(|cost| log.try_acquire_at(cost, now)));
                        assert_eq!(wild, [[false; 3]; 2]);
                    }
                    assert!(!log.try_acquire_at(1, Nanos::from_nanos(u64::MAX)));
                    assert_eq!(log.usage_at(0, now), Some(limit - room));
                }
            }
        }
    }
}
