//! The exact log at four bytes an entry.
//!
//! # What
//! Keeps the time of each of the last `limit` permits, rounded up to its tick, in 32 bits. At most `limit`
//! permits in any window of recorded times, and a permit comes back less than one tick after it left the
//! window: rounding is towards refusal. Stamps that are whole ticks are judged exactly.
//!
//! # State
//! | field    | meaning                                                              |
//! |----------|----------------------------------------------------------------------|
//! | `newest` | the newest recorded time in nanoseconds, in full                     |
//! | `tick`   | the tick that it was rounded up to, in full                          |
//! | `ring`   | the low 32 bits of the tick of each permit since, and not all, forgotten |
//!
//! A 32-bit slot never decides: its values recur after 2^32 ticks. It only says how far below the full `tick`
//! its entry lies, which I2 makes unambiguous. An entry needs no clean-up to leave: the look-back asks the one
//! entry that matters. Only entries whose age comes near the ambiguous are forgotten, all at once: the ring
//! then remembers no more than the window holds.
//!
//! # Invariants
//! | id | always                                                      | kept by                | checked by                   |
//! |----|-------------------------------------------------------------|------------------------|------------------------------|
//! | I1 | entries in the ring, newest first, never get younger         | time judged: the later of now and newest | property as_the_naive_log |
//! | I2 | every entry remembered is less than 2^31 ticks below `tick`  | `State::record`, window < 2^30 ticks | tests gaps_of_*  |
//! | I3 | a refusal changes nothing                                    | early return           | property as_the_naive_log    |
//!
//! # Linearization points
//! L1: every call takes effect while it holds the lock.
//!
//! # Memory order
//! None of its own: see `sync/lock.rs`.
//!
//! # Progress
//! Blocking: under a lock. Without one, the full time and a count would have to fit the one word that decides,
//! and the finer the tick the fewer bits are left to count in.

use core::time::Duration;

use super::{algorithm, ring::Ring};
use crate::{
    ConfigError, Nanos, Rule, Rules,
    decision::{History, Limits, Look},
    live::{Changes, ChangesRules, Settings},
    sync::{Guard, Lock},
    time::decimal_step,
};

/// Windows are shorter than 2^30 ticks, so that ages up to 2^31 ticks and a step of one window fit 32 bits.
const HORIZON: u64 = 1 << 30;

/// An exact sliding-window log to its tick, at four bytes a permit. Takes a lock.
///
/// Never admits more than `limit` permits in any window of recorded times; a permit comes back less than one
/// tick after it left the window. [`retry_after`](crate::Denied::retry_after) counts to that, so it stays
/// below the window plus one tick. A time older than the newest recorded one is judged at the newest one.
///
/// # Cost
/// One lock. A call of cost `n` looks at one entry and writes `n`; `check` and `peek` search in O(log limit).
/// Once in 2^30 ticks or more, an admission searches too. Memory: `4 * limit` (or capacity) bytes and a few words.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Compact, Nanos};
///
/// let log = Compact::builder(2, Duration::from_secs(60)).build()?;
/// assert!(log.try_acquire_at(2, Nanos::ZERO));
/// let denied = log.check_at(1, Nanos::from_secs(59)).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Nanos::from_secs(1)));
/// assert!(log.try_acquire_at(1, Nanos::from_secs(60)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Compact {
    config: CompactConfig,
    state: Lock<State>,
}

/// All but the state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CompactConfig {
    rule: Rule,
    /// Width of a tick in nanoseconds.
    width: u64,
    max_cost: u64,
    ceiling: u64,
    /// Entries that the ring has room for.
    capacity: u64,
}

// SAFETY: contract of `NoUninit`: words alone, in C's order, so no padding.
unsafe impl bytemuck::NoUninit for CompactConfig {}

/// A configuration on the state.
struct OnCompact<'a> {
    config: &'a CompactConfig,
    state: &'a Lock<State>,
}

/// Configures a [`Compact`] log.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CompactBuilder {
    rule: Rule,
    tick: Option<Nanos>,
    max_cost: u64,
    capacity: Option<u64>,
}

struct State {
    newest: u64,
    tick: u64,
    ring: Ring<u32>,
}

struct CompactLook<'a> {
    config: &'a CompactConfig,
    state: Guard<'a, State>,
    at: u64,
}

algorithm!(Compact, it, &it.config, &it.on(&it.config));

// The latest end of the latest tick (which is at most as long as the window), plus the longest window.
const _: () = assert!(Nanos::MAX.as_nanos().checked_mul(3).is_some());

// === impl Compact ===

impl Compact {
    /// Configures a log that admits `limit` permits in any `window`.
    pub fn builder(limit: u64, window: Duration) -> CompactBuilder {
        CompactBuilder { rule: Rule::new(limit, window), tick: None, max_cost: u64::MAX, capacity: None }
    }

    /// The width of a tick: how late a permit may come back.
    pub fn tick(&self) -> Nanos {
        Nanos::from_nanos(self.config.width)
    }

    fn on<'a>(&'a self, config: &'a CompactConfig) -> OnCompact<'a> {
        OnCompact { config, state: &self.state }
    }

    fn bytes(&self) -> usize {
        size_of::<Lock<State>>() + self.state.lock().ring.bytes()
    }

    fn clear(&mut self) {
        let state = self.state.get_mut();
        (state.newest, state.tick) = (0, 0);
        state.ring.clear();
    }
}

impl Changes for Compact {
    type Settings = CompactConfig;

    fn first(&self) -> Result<CompactConfig, ConfigError> {
        Ok(self.config)
    }

    fn under<'a>(&'a self, settings: &'a CompactConfig) -> impl History<Limits = CompactConfig> {
        self.on(settings)
    }
}

impl ChangesRules for Compact {
    fn with_rules(settings: &CompactConfig, rules: Rules) -> Result<CompactConfig, ConfigError> {
        let rule = rules.one_within(settings.rule.window, settings.capacity)?;
        Ok(CompactConfig { rule, ceiling: rule.limit.min(settings.max_cost), ..*settings })
    }
}

// === impl CompactConfig ===

impl CompactConfig {
    /// When the permit in `slot` is free again, by the `state` that remembers it.
    fn leaves(&self, state: &State, slot: u32) -> u64 {
        state.full(slot) * self.width + self.rule.window.as_nanos()
    }
}

impl Settings for CompactConfig {}

impl Limits for CompactConfig {
    fn rules(&self) -> &[Rule] {
        core::slice::from_ref(&self.rule)
    }

    fn max_cost(&self) -> u64 {
        self.max_cost
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

// === impl OnCompact ===

impl<'a> History for OnCompact<'a> {
    type Limits = CompactConfig;
    type Look<'l>
        = CompactLook<'a>
    where
        Self: 'l;

    fn limits(&self) -> &CompactConfig {
        self.config
    }

    fn take(&self, cost: u64, now: Nanos) -> bool {
        let (config, mut state) = (self.config, self.state.lock()); // L1
        let at = state.newest.max(now.as_nanos());
        // With `cost` more, the permit that many places back is the one too many, unless it has left.
        let last = state.ring.newest(config.rule.limit - cost + 1);
        if last.is_some_and(|slot| config.leaves(&state, slot) > at) {
            return false; // I3
        }
        let live = |state: &State| state.ring.count(|slot| config.leaves(state, slot) > at);
        state.record(cost, at, at.div_ceil(config.width), live);
        true
    }

    fn look(&self, now: Nanos) -> CompactLook<'a> {
        let state = self.state.lock(); // L1
        let at = state.newest.max(now.as_nanos());
        CompactLook { config: self.config, state, at }
    }
}

// === impl CompactBuilder ===

impl CompactBuilder {
    /// Sets the tick: how late a permit may come back. The window must be shorter than 2^30 ticks.
    ///
    /// By default the finest decimal one (1 ns, 10 ns, 100 ns, 1 us, ...), so that stamps in whole microseconds
    /// or milliseconds are recorded exactly: 1 ns for windows up to a second, 100 ns for a minute, 10 us for an
    /// hour.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick.into());
        self
    }

    /// Sets the largest cost of one call, which bounds the work under the lock. By default the limit.
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// The largest limit that it may get while it runs ([`Live`](crate::Live)): it sets the memory. The default is the limit.
    pub fn capacity(mut self, limit: u64) -> Self {
        self.capacity = Some(limit);
        self
    }

    /// Builds the log.
    ///
    /// # Errors
    /// [`ConfigError::Window`], [`ConfigError::Tick`], [`ConfigError::MaxCost`], [`ConfigError::Limit`] for a limit above the
    /// capacity given, [`ConfigError::Memory`].
    pub fn build(self) -> Result<Compact, ConfigError> {
        self.rule.validate()?;
        let window = self.rule.window;
        let finest = window.as_nanos().div_ceil(HORIZON - 1);
        let tick = self.tick.unwrap_or(Nanos::from_nanos(decimal_step(finest)));
        if tick < Nanos::from_nanos(finest) || tick > window {
            return Err(ConfigError::Tick {
                got: tick.into(),
                min: Duration::from_nanos(finest),
                max: window.into(),
            });
        }
        if self.max_cost == 0 {
            return Err(ConfigError::MaxCost { got: 0, min: 1 });
        }
        let limit = self.rule.limit;
        let capacity = self.capacity.unwrap_or(limit);
        if limit > capacity {
            return Err(ConfigError::Limit { got: limit, max: capacity });
        }
        let config = CompactConfig {
            rule: self.rule,
            width: tick.as_nanos(),
            max_cost: self.max_cost,
            ceiling: limit.min(self.max_cost),
            capacity,
        };
        let state = State { newest: 0, tick: 0, ring: Ring::new(capacity)? };
        Ok(Compact { config, state: Lock::new(state) })
    }
}

// === impl State ===

impl State {
    /// The tick in `slot`, in full.
    fn full(&self, slot: u32) -> u64 {
        let age = (self.tick as u32).wrapping_sub(slot); // I2
        self.tick - u64::from(age)
    }

    /// Records `cost` permits at time `at`, in `tick`; `live` counts the entries still in the window.
    fn record(&mut self, cost: u64, at: u64, tick: u64, live: impl Fn(&Self) -> u64) {
        // I2: seen from the new tick, an entry that old has left; what has not is less than 2^30 ticks old. The
        // age is taken between full ticks, so that it holds after a gap of any length.
        if self.ring.oldest().is_some_and(|slot| tick - self.full(slot) >= 2 * HORIZON) {
            self.ring.truncate(live(self));
        }
        (self.newest, self.tick) = (at, tick);
        self.ring.push(tick as u32, cost);
    }
}

// === impl CompactLook ===

impl Look for CompactLook<'_> {
    fn at(&self) -> Nanos {
        Nanos::from_nanos(self.at)
    }

    fn used(&self, _rule: usize) -> Option<u64> {
        Some(self.state.ring.count(|slot| self.config.leaves(&self.state, slot) > self.at))
    }

    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        let last = self.state.ring.newest(keep.saturating_add(1));
        let leaves = last.map_or(0, |slot| self.config.leaves(&self.state, slot));
        Some(Nanos::from_nanos(leaves.saturating_sub(self.at)))
    }
}
