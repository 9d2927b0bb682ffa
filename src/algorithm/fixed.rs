//! The fixed window: one count that starts again at every window's edge.
//!
//! # What
//! Admits up to `limit` permits between two window edges. The baseline of the family: cheapest, never refuses
//! falsely, and lets up to twice the limit through around an edge.
//!
//! # State
//! | bits      | field   | meaning                                                   |
//! |-----------|---------|-----------------------------------------------------------|
//! | the rest  | `count` | permits admitted in window `index`                         |
//! | lower     | `index` | windows since the clock's zero; as wide as it can ever get |
//!
//! # Invariants
//! | id | always                          | kept by          | checked by                              |
//! |----|---------------------------------|------------------|-----------------------------------------|
//! | I1 | `count <= limit <= rest_max`, the largest limit so far |  `Fixed::admit`   | properties, threads_take_exactly_the_limit |
//! | I2 | `index` never decreases         | `Split::newest`  | property with times that step back      |
//! | I3 | a refusal stores nothing        | early return     | properties                              |
//!
//! # Linearization points, memory order, progress
//! Those of `one_word.rs`.

use core::{slice, time::Duration};

use super::{
    algorithm,
    config::{On, Parts, WithRules},
    epoch::Split,
    one_word::OneWord,
};
use crate::{
    ConfigError, Nanos, Rule, Rules,
    block::Inline,
    decision::{History, Limits, Look},
    live::Settings,
    sync::{Word, word},
};

/// A fixed window counter: at most `limit` permits between two window edges.
///
/// Edges are multiples of the window from the clock's zero, shifted by a phase if one is given.
///
/// **Accuracy.** Never refuses falsely: a refusal means that the permits admitted in the last window's length
/// left no room. But admits up to **twice the limit** in a window's length around an edge: `limit` just before
/// it and `limit` just after. Where that matters take a sliding algorithm.
///
/// **Time.** Knows the newest time only to its window: a call from before the newest window is judged at that
/// window's start, hence waits at most one window.
///
/// **State.** One word, `count | window index`. The index is wide enough for every moment up to
/// [`Nanos::MAX`]; what it leaves bounds the limit:
///
/// | window | largest limit     |
/// |--------|-------------------|
/// | 1 us   | 2,047             |
/// | 1 ms   | 2,097,151         |
/// | 100 ms | 268,435,455       |
/// | 1 s    | 2,147,483,647     |
/// | 1 min  | 137,438,953,471   |
/// | 1 h    | 8,796,093,022,207 |
/// | 1 day  | 281,474,976,710,655 |
///
/// # Cost
/// One load; one CAS when admitted alone. No division, but for the first call of a new window.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Fixed, Nanos};
///
/// let fixed = Fixed::builder(2, Duration::from_secs(1)).build()?;
/// let t = Nanos::from_millis(900);
/// assert!(fixed.try_acquire_at(2, t));
/// let denied = fixed.check_at(1, t).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Nanos::from_millis(100)));
/// assert!(fixed.try_acquire_at(2, Nanos::from_millis(1_000)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct Fixed {
    block: Inline<Word<State>>,
    config: FixedConfig,
}

/// The configuration of a [`Fixed`], without its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FixedConfig {
    split: Split,
    rule: Rule,
    max_cost: u64,
    /// The largest cost that can be taken.
    ceiling: u64,
}

// SAFETY: contract of `NoUninit`: words alone, in C's order, so no padding.
unsafe impl bytemuck::NoUninit for FixedConfig {}

/// A configuration on a state.
type OnFixed<'a> = On<'a, FixedConfig>;

/// Builds a [`Fixed`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct FixedBuilder {
    rule: Rule,
    phase: Nanos,
    max_cost: u64,
}

/// What one call sees: the word's count as of the window that the call is judged in.
#[derive(Debug)]
pub(crate) struct FixedLook {
    at: Nanos,
    count: u64,
    /// From the time judged to the window's end; never 0.
    left: u64,
}

word!(
    /// `count | index`, split by the window's width.
    State
);

// === impl Fixed ===

impl Fixed {
    /// Starts a limiter of `limit` permits per `window`.
    pub fn builder(limit: u64, window: Duration) -> FixedBuilder {
        FixedBuilder { rule: Rule::new(limit, window), phase: Nanos::ZERO, max_cost: u64::MAX }
    }

    #[inline(always)]
    fn on(&self) -> OnFixed<'_> {
        On { config: &self.config, state: self.block.at() }
    }

    fn bytes(&self) -> usize {
        self.config.bytes()
    }

    fn clear(&mut self) {
        self.block.clear();
    }
}

algorithm!(Fixed in parts of FixedConfig);

// === impl FixedConfig ===

impl FixedConfig {
    /// The window that a call at `now` is judged in, never before the newest (I2), and its count.
    #[inline]
    fn judged(&self, state: State, now: Nanos) -> (u64, u64) {
        let seen = self.split.index(state.0);
        let index = self.split.newest(seen, now);
        (index, if index == seen { self.split.rest(state.0) } else { 0 })
    }
}

impl OneWord for FixedConfig {
    // I1
    #[inline]
    fn admit(&self, state: State, cost: u64, now: Nanos) -> Option<State> {
        let (index, count) = self.judged(state, now);
        let room = self.rule.limit.saturating_sub(count); // The limit may have been lowered.
        (cost <= room).then(|| State(self.split.pack(index, count + cost)))
    }
}

impl WithRules for FixedConfig {
    fn with_rules(&self, rules: Rules) -> Result<Self, ConfigError> {
        let rule = rules.one_within(self.rule.window, self.split.rest_max())?;
        Ok(Self { rule, ceiling: rule.limit.min(self.max_cost), ..*self })
    }

    fn widest(&self) -> Self {
        Self { rule: Rule { limit: self.split.rest_max(), ..self.rule }, ..*self }
    }
}

impl Settings for FixedConfig {}

impl Limits for FixedConfig {
    fn rules(&self) -> &[Rule] {
        slice::from_ref(&self.rule)
    }

    fn max_cost(&self) -> u64 {
        self.max_cost
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

impl Parts for FixedConfig {
    const NAME: [u8; 8] = *b"fixed\0\0\0";
    type Heads = Word<State>;
    type Slot = State;

    fn accepts(fixed: OnFixed<'_>) -> bool {
        let state = fixed.seen().0;
        let last = fixed.split.index_of(Nanos::MAX);
        fixed.split.index(state) <= last && fixed.split.rest(state) <= fixed.rule.limit // I1
    }
}

// === impl OnFixed ===

impl History for OnFixed<'_> {
    type Limits = FixedConfig;
    type Look<'a>
        = FixedLook
    where
        Self: 'a;

    fn limits(&self) -> &FixedConfig {
        self.config
    }

    #[inline]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        self.swap(cost, now)
    }

    fn look(&self, now: Nanos) -> FixedLook {
        let (index, count) = self.judged(self.seen(), now);
        let left = self.split.width().get() - self.split.elapsed(index, now);
        FixedLook { at: now.max(self.split.start_of(index)), count, left }
    }
}

// === impl FixedBuilder ===

impl FixedBuilder {
    /// Shifts the window edges by `phase`, which must be below the window (default: none).
    pub fn phase(mut self, phase: Duration) -> Self {
        self.phase = phase.into();
        self
    }

    /// Refuses every cost above `max_cost` (default: any cost up to the limit passes).
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// Checks the configuration and makes the limiter.
    ///
    /// # Errors
    /// [`ConfigError::Window`], [`ConfigError::Phase`], [`ConfigError::Limit`] (the table at [`Fixed`]), or
    /// [`ConfigError::MaxCost`] for a largest cost of 0.
    pub fn build(self) -> Result<Fixed, ConfigError> {
        Ok(Fixed { block: Inline::default(), config: self.config()? })
    }

    /// Checks the configuration, for a state that lies elsewhere.
    ///
    /// # Errors
    /// Those of [`build`](FixedBuilder::build).
    pub fn config(self) -> Result<FixedConfig, ConfigError> {
        let Self { rule, phase, max_cost } = self;
        let split = Split::new(rule.window, phase)?;
        if max_cost == 0 {
            return Err(ConfigError::MaxCost { got: max_cost, min: 1 });
        }
        FixedConfig { split, rule, max_cost, ceiling: 0 }.with_rules(Rules::one(rule))
    }
}

// === impl FixedLook ===

impl Look for FixedLook {
    fn at(&self) -> Nanos {
        self.at
    }

    fn used(&self, _rule: usize) -> Option<u64> {
        Some(self.count)
    }

    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        Some(if self.count <= keep { Nanos::ZERO } else { Nanos::from_nanos(self.left) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_largest_limits_is_right() {
        for (window, max) in [
            (Duration::from_micros(1), 2_047),
            (Duration::from_millis(1), 2_097_151),
            (Duration::from_millis(100), 268_435_455),
            (Duration::from_secs(1), 2_147_483_647),
            (Duration::from_secs(60), 137_438_953_471),
            (Duration::from_secs(3_600), 8_796_093_022_207),
            (Duration::from_secs(86_400), 281_474_976_710_655),
        ] {
            assert!(Fixed::builder(max, window).build().is_ok(), "{window:?}");
            let error = Fixed::builder(max + 1, window).build().err();
            assert_eq!(error, Some(ConfigError::Limit { got: max + 1, max }), "{window:?}");
        }
    }

    #[test]
    fn the_word_has_a_cache_line_of_its_own() {
        assert_eq!(size_of::<Inline<Word<State>>>(), align_of::<Fixed>());
    }
}
