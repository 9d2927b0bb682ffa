//! The weighted two-window counter: the count of this window, and the last one's by the share still in view.
//!
//! # What
//! Admits while `ceil(prev * share) + cur` stays within the limit. An estimate that takes the previous
//! window's admissions to have been spread evenly; its error is bounded on both sides.
//!
//! # State
//! | bits           | field   | meaning                                                    |
//! |----------------|---------|------------------------------------------------------------|
//! | upper          | `index` | windows since the clock's zero; as wide as it can ever get |
//! | half the rest  | `prev`  | permits admitted in window `index - 1`                     |
//! | half the rest  | `cur`   | permits admitted in window `index`                         |
//!
//! # Invariants
//! | id | always                       | kept by              | checked by                              |
//! |----|------------------------------|----------------------|-----------------------------------------|
//! | I1 | `cur, prev <= limit <= half_max` | `TwoWindow::admit`   | properties, threads_take_exactly_the_limit |
//! | I2 | `index` never decreases      | `Split::newest`      | property with times that step back      |
//! | I3 | a refusal stores nothing     | early return         | properties                              |
//!
//! # Bounds
//! With limit `L`, window `W` in nanoseconds, and `e` the time since the window's edge, admission keeps
//! `ceil(P * (W - e) / W) + cur <= L`. A true window spans at most two counted ones: `a` permits after some
//! moment `s` of the first (`a <= P <= L`), `b` up to the same moment of the second.
//! - *Over.* At the last of the `b`, made at `e <= s`, `b <= L - ceil(P * (W - s) / W)`, so that
//!   `a + b <= L + floor(P * s / W)`. With `a > 0` there is a tick after `s`, hence `s <= W - 2`: at most
//!   `L + floor(L * (W - 2) / W)`, which is `2 L - 1` once `W >= 2 L`. Reached by `L` in the last tick of a
//!   window and all that passes `W - 1` later.
//! - *False refusal.* `P + cur` are admissions of the last `2 W`, and the estimate never exceeds them: a refusal
//!   means that those left no room. Reached by `L` at a window's edge: gone from the true window after `W`, and
//!   a cost of `L` is refused until `2 W`.
//!
//! # Linearization points, memory order, progress
//! Those of `one_word.rs`.

use core::{
    num::{NonZeroU64, NonZeroU128},
    slice,
    time::Duration,
};

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

/// A weighted two-window counter: this window's count, plus the previous one's by the share still in view.
///
/// With `e` the time since the window's edge, `ceil(previous * (window - e) / window) + current` permits are
/// charged. Edges are multiples of the window from the clock's zero, shifted by a phase if one is given.
///
/// **Accuracy.** An estimate, right to within one permit when the previous window's admissions were spread
/// evenly. At worst, with limit `L` and window `W`:
/// - *over*: less than `2 L` in any true window, at most `L + floor(L (W - 2 ns) / W)` (`L` for a window of 1 ns). Reached by `L` permits
///   in the last nanosecond of a window and a burst just before the end of the next.
/// - *late*: a permit comes back at most one window late. A refusal means that the admissions of the last `2 W`
///   left no room, not that those of the last `W` did. Reached by `L` permits at a window's edge: one window
///   later all have left, and none is free again yet.
///
/// **Time.** Knows the newest time only to its window: a call from before the newest window is judged at that
/// window's start. A wait is at most `2 W`. An older time within the newest window is judged as it stands, with
/// all that was charged since.
///
/// **State.** One word, `window index | previous | current`. The index is wide enough for every moment up to
/// [`Nanos::MAX`]; what it leaves bounds the limit:
///
/// | window | largest limit |
/// |--------|---------------|
/// | 1 us   | 31            |
/// | 1 ms   | 1,023         |
/// | 100 ms | 16,383        |
/// | 1 s    | 32,767        |
/// | 1 min  | 262,143       |
/// | 1 h    | 2,097,151     |
/// | 1 day  | 16,777,215    |
///
/// # Cost
/// One load; one CAS when admitted alone. No division, but until the first admission in a new window.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Nanos, TwoWindow};
///
/// let counter = TwoWindow::builder(100, Duration::from_secs(1)).build()?;
/// assert!(counter.try_acquire_at(80, Nanos::from_millis(500)));
/// // A quarter into the next window three quarters of the 80 are still charged.
/// assert_eq!(counter.usage_at(0, Nanos::from_millis(1_250)), Some(60));
/// assert!(counter.try_acquire_at(40, Nanos::from_millis(1_250)));
/// assert!(!counter.try_acquire_at(1, Nanos::from_millis(1_250)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct TwoWindow {
    block: Inline<Word<State>>,
    config: TwoWindowConfig,
}

/// The configuration of a [`TwoWindow`], without its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TwoWindowConfig {
    split: Split,
    /// Bits of each count.
    half: u64,
    /// The largest count.
    half_max: u64,
    rule: Rule,
    max_cost: u64,
    /// The largest cost that can be taken.
    ceiling: u64,
}

// SAFETY: contract of `NoUninit`: words alone, in C's order, so no padding.
unsafe impl bytemuck::NoUninit for TwoWindowConfig {}

/// A configuration on a state.
type OnTwoWindow<'a> = On<'a, TwoWindowConfig>;

/// Builds a [`TwoWindow`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct TwoWindowBuilder {
    rule: Rule,
    phase: Nanos,
    max_cost: u64,
}

/// What one call sees: the word rolled on to the window that the call is judged in, at its moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoWindowLook {
    at: Nanos,
    index: u64,
    prev: u64,
    cur: u64,
    width: NonZeroU64,
    /// From the time judged to the window's end, which is also how much of the previous window is in view:
    /// 1 to `width`.
    left: u64,
}

word!(
    /// `index | prev | cur`: split by the window's width, then in halves.
    State
);

// === impl TwoWindow ===

impl TwoWindow {
    /// Starts a limiter of `limit` permits per `window`.
    pub fn builder(limit: u64, window: Duration) -> TwoWindowBuilder {
        TwoWindowBuilder { rule: Rule::new(limit, window), phase: Nanos::ZERO, max_cost: u64::MAX }
    }

    #[inline(always)]
    fn on(&self) -> OnTwoWindow<'_> {
        On { config: &self.config, state: self.block.at() }
    }

    fn bytes(&self) -> usize {
        self.config.bytes()
    }

    fn clear(&mut self) {
        self.block.clear();
    }
}

algorithm!(TwoWindow in parts of TwoWindowConfig);

// === impl TwoWindowConfig ===

impl TwoWindowConfig {
    /// The state as a call at `now` judges it, never before the newest window (I2).
    #[inline]
    fn judged(&self, state: State, now: Nanos) -> TwoWindowLook {
        let split = &self.split;
        let (seen, rest) = (split.index(state.0), split.rest(state.0));
        let index = split.newest(seen, now);
        let (prev, cur) = match index - seen {
            0 => (rest >> self.half as u32, rest & self.half_max),
            1 => (rest & self.half_max, 0),
            _ => (0, 0),
        };
        let (width, at) = (split.width(), now.max(split.start_of(index)));
        TwoWindowLook { at, index, prev, cur, width, left: width.get() - split.elapsed(index, now) }
    }
}

#[inline]
fn wide(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

impl OneWord for TwoWindowConfig {
    // I1
    #[inline]
    fn admit(&self, state: State, cost: u64, now: Nanos) -> Option<State> {
        let seen = self.judged(state, now);
        let room = self.rule.limit.wrapping_sub(seen.cur).wrapping_sub(cost);
        if room > self.half_max {
            return None; // Below 0, also when the limit was lowered below the count.
        }
        // `ceil(prev * left / width) <= room` without the division.
        let fits = wide(seen.prev, seen.left) <= wide(room, seen.width.get());
        let rest = seen.prev << self.half as u32 | (seen.cur + cost);
        fits.then(|| State(self.split.pack(seen.index, rest)))
    }
}

impl WithRules for TwoWindowConfig {
    fn with_rules(&self, rules: Rules) -> Result<Self, ConfigError> {
        let rule = rules.one_within(self.rule.window, self.half_max)?;
        Ok(Self { rule, ceiling: rule.limit.min(self.max_cost), ..*self })
    }

    fn widest(&self) -> Self {
        Self { rule: Rule { limit: self.half_max, ..self.rule }, ..*self }
    }
}

impl Settings for TwoWindowConfig {}

impl Limits for TwoWindowConfig {
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

impl Parts for TwoWindowConfig {
    const NAME: [u8; 8] = *b"twowin\0\0";
    type Heads = Word<State>;
    type Slot = State;

    fn accepts(two: OnTwoWindow<'_>) -> bool {
        let state = two.seen().0;
        let (last, rest) = (two.split.index_of(Nanos::MAX), two.split.rest(state));
        let counts = [rest >> two.half as u32, rest & two.half_max];
        two.split.index(state) <= last && counts.iter().all(|&count| count <= two.rule.limit) // I1
    }
}

// === impl OnTwoWindow ===

impl History for OnTwoWindow<'_> {
    type Limits = TwoWindowConfig;
    type Look<'a>
        = TwoWindowLook
    where
        Self: 'a;

    fn limits(&self) -> &TwoWindowConfig {
        self.config
    }

    #[inline]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        self.swap(cost, now)
    }

    fn look(&self, now: Nanos) -> TwoWindowLook {
        self.judged(self.seen(), now) // O1, L2
    }
}

// === impl TwoWindowBuilder ===

impl TwoWindowBuilder {
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
    /// [`ConfigError::Window`], [`ConfigError::Phase`], [`ConfigError::Limit`] (the table at [`TwoWindow`]), or
    /// [`ConfigError::MaxCost`] for a largest cost of 0.
    pub fn build(self) -> Result<TwoWindow, ConfigError> {
        Ok(TwoWindow { block: Inline::default(), config: self.config()? })
    }

    /// Checks the configuration, for a state that lies elsewhere.
    ///
    /// # Errors
    /// Those of [`build`](TwoWindowBuilder::build).
    pub fn config(self) -> Result<TwoWindowConfig, ConfigError> {
        let Self { rule, phase, max_cost } = self;
        let split = Split::new(rule.window, phase)?;
        let half = u64::from(split.rest_bits() / 2);
        let half_max = (1 << half) - 1;
        if max_cost == 0 {
            return Err(ConfigError::MaxCost { got: max_cost, min: 1 });
        }
        TwoWindowConfig { split, half, half_max, rule, max_cost, ceiling: 0 }.with_rules(Rules::one(rule))
    }
}

// === impl TwoWindowLook ===

impl TwoWindowLook {
    fn charged(&self) -> u64 {
        // At most `prev`, since `left <= width`.
        let (part, width) = (wide(self.prev, self.left), NonZeroU128::from(self.width));
        (part / width) as u64 + u64::from(part % width != 0) + self.cur
    }

    /// How much of a window of `count` permits may be in view while at most `keep` (below `count`) are charged:
    /// the largest `v` with `ceil(count * v / width) <= keep`. Below `width`.
    fn view(&self, count: u64, keep: u64) -> u64 {
        NonZeroU64::new(count)
            .map_or(0, |count| (wide(keep, self.width.get()) / NonZeroU128::from(count)) as u64)
    }
}

impl Look for TwoWindowLook {
    fn at(&self) -> Nanos {
        self.at
    }

    fn used(&self, _rule: usize) -> Option<u64> {
        Some(self.charged())
    }

    /// Left alone, the charge falls from now to the window's end, where `cur` becomes `prev` and falls in turn.
    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        Some(Nanos::from_nanos(if self.charged() <= keep {
            0
        } else if self.cur <= keep {
            self.left - self.view(self.prev, keep - self.cur)
        } else {
            self.left + self.width.get() - self.view(self.cur, keep)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_largest_limits_is_right() {
        for (window, max) in [
            (Duration::from_micros(1), 31),
            (Duration::from_millis(1), 1_023),
            (Duration::from_millis(100), 16_383),
            (Duration::from_secs(1), 32_767),
            (Duration::from_secs(60), 262_143),
            (Duration::from_secs(3_600), 2_097_151),
            (Duration::from_secs(86_400), 16_777_215),
        ] {
            assert!(TwoWindow::builder(max, window).build().is_ok(), "{window:?}");
            let error = TwoWindow::builder(max + 1, window).build().err();
            assert_eq!(error, Some(ConfigError::Limit { got: max + 1, max }), "{window:?}");
        }
    }

    #[test]
    fn the_word_has_a_cache_line_of_its_own() {
        assert_eq!(size_of::<Inline<Word<State>>>(), align_of::<TwoWindow>());
    }
}
