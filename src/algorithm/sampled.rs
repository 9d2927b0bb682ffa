//! A sliding-window log that records a sample of the permits: small, and wrong by a stated amount.
//!
//! # What
//! One entry stands for `m` permits. *Every m-th* records the time of every `m`-th permit and counts those
//! since: at most `limit` permits in any window of recorded times, and a refusal is false by fewer than `m`.
//! *Bernoulli* records each permit with probability `1 / m` from a seed: it counts `m` times the entries in the
//! window, which is right in the mean and off by a binomial error in both directions.
//!
//! # State
//! | field     | meaning                                                                      |
//! |-----------|------------------------------------------------------------------------------|
//! | `newest`  | the newest recorded time, which is that of the newest permit, in nanoseconds |
//! | `pending` | every m-th: permits since the last one recorded                              |
//! | `draws`   | Bernoulli: calls admitted, the place in the random sequence                  |
//! | `ring`    | times of the recorded permits, `ceil(limit / m)` at most                     |
//!
//! # Invariants
//! | id | always                                                                         | kept by          |
//! |----|--------------------------------------------------------------------------------|------------------|
//! | I1 | times in the ring never decrease                                               | time judged: the later of now and newest |
//! | I2 | every m-th: entries in the window times `m`, plus `pending`, are at most `limit` | the two reads in `take` |
//! | I3 | pending permits are charged until the newest permit leaves, then not            | `State::pending` |
//! | I4 | a refusal changes nothing, the random sequence included                         | early return     |
//!
//! *Why below m.* All permits after the oldest entry in the window are in it; of the `m` that this entry stands
//! for only itself need be. Without an entry, the fewer than `m` pending ones may all have left (I3). So the
//! charge is never below the truth, and above it by at most `m - 1`. Both properties are checked in
//! `tests/locked/sampled.rs`, as is the binomial error.
//!
//! # Linearization points
//! L1: every call takes effect while it holds the lock.
//!
//! # Memory order
//! None of its own: see `sync/lock.rs`.
//!
//! # Progress
//! Blocking: under a lock, since an admission is a count and, at times, an entry, which no one word holds.

use core::time::Duration;

use super::{algorithm, ring::Ring};
use crate::{
    ConfigError, Nanos, Rule,
    decision::{History, Limits, Look},
    sync::{Guard, Lock},
};

/// A sliding-window log that records one permit in `m`. Takes a lock.
///
/// Every `m`-th ([`every`](SampledBuilder::every)): never more than `limit` permits in any window of recorded
/// times; and a refusal of cost `n` means that at least `limit - n - (m - 1) + 1` of them are in the window,
/// where the exact log would ask for `limit - n + 1`. With `m` at 1 % of the limit that is an error below 1 %,
/// in about 800 bytes for any limit.
///
/// By chance ([`bernoulli`](SampledBuilder::bernoulli)): the charge is `m` times the number of entries in the
/// window. Of `u` permits it is `u` in the mean with a standard deviation of at most `sqrt(u * (m - 1))`, so
/// that `limit` is passed about as often as it is missed: with `m` at 1 % of the limit by 10 % of it (one
/// standard deviation), ten times what every `m`-th can be wrong by. A limit that is no multiple of `m` is
/// counted as the next one that is.
///
/// All answers speak of the charge. A time older than the newest recorded one is judged at the newest one.
///
/// Its limit does not change while it runs: [`Live`](crate::Live) lists those that do.
///
/// # Cost
/// One lock. A call of cost `n` looks at one entry and writes at most `n / m + 1`; `check` and `peek` search in
/// O(log(limit / m)). Memory: `8 * ceil(limit / m)` bytes and a few words.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Nanos, Sampled};
///
/// // The default: every 100th permit, 1 % of the limit.
/// let sampled = Sampled::builder(10_000, Duration::from_secs(1)).build()?;
/// assert!((0..10_000).all(|_| sampled.try_acquire_at(1, Nanos::ZERO)));
/// assert!(!sampled.try_acquire_at(1, Nanos::from_millis(999)));
/// assert!(sampled.state_bytes() < 1_000);
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Sampled {
    rule: Rule,
    /// Permits that one entry stands for.
    m: u64,
    pick: Pick,
    max_cost: u64,
    ceiling: u64,
    state: Lock<State>,
}

/// Configures a [`Sampled`] log.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct SampledBuilder {
    rule: Rule,
    m: u64,
    pick: Pick,
    max_cost: u64,
}

/// Which permits are recorded.
#[derive(Clone, Copy, Debug)]
enum Pick {
    Every,
    Bernoulli { seed: u64 },
}

struct State {
    newest: u64,
    pending: u64,
    draws: u64,
    ring: Ring<u64>,
}

pub(crate) struct SampledLook<'a> {
    log: &'a Sampled,
    state: Guard<'a, State>,
    at: u64,
}

algorithm!(Sampled);

// === impl Sampled ===

impl Sampled {
    /// Configures a log that admits `limit` permits, more or less, in any `window`.
    ///
    /// By default it records every `m`-th permit, `m` being 1 % of the limit (at least 1).
    pub fn builder(limit: u64, window: Duration) -> SampledBuilder {
        SampledBuilder {
            rule: Rule::new(limit, window),
            m: (limit / 100).max(1),
            pick: Pick::Every,
            max_cost: u64::MAX,
        }
    }

    /// When what was recorded at `time` is free again.
    fn leaves(&self, time: u64) -> u64 {
        time + self.rule.window.as_nanos()
    }

    /// Permits charged that no entry stands for yet (I3).
    fn pending(&self, state: &State, at: u64) -> u64 {
        if self.leaves(state.newest) > at { state.pending } else { 0 }
    }

    /// The shortest time at which at most `keep` permits are charged; 0 if they are already.
    fn falls_to(&self, state: &State, keep: u64, at: u64) -> u64 {
        match keep.checked_sub(self.pending(state, at)) {
            Some(keep) => state.ring.newest(keep / self.m + 1).map_or(0, |time| self.leaves(time)),
            None => self.leaves(state.newest),
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Lock<State>>() + self.state.lock().ring.bytes()
    }

    fn clear(&mut self) {
        let state = self.state.get_mut();
        (state.newest, state.pending, state.draws) = (0, 0, 0);
        state.ring.clear();
    }
}

impl Limits for Sampled {
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

impl History for Sampled {
    type Limits = Self;
    type Look<'a> = SampledLook<'a>;

    fn limits(&self) -> &Self {
        self
    }

    fn take(&self, cost: u64, now: Nanos) -> bool {
        let mut state = self.state.lock(); // L1
        let at = state.newest.max(now.as_nanos());
        if self.falls_to(&state, self.rule.limit - cost, at) > at {
            return false; // I4
        }
        let entries = match self.pick {
            Pick::Every => {
                // At most the limit, by I2.
                let sum = self.pending(&state, at) + cost;
                state.pending = sum % self.m;
                sum / self.m
            }
            Pick::Bernoulli { seed } => {
                let entries = sample(cost, self.m, random(seed, state.draws));
                state.draws = state.draws.wrapping_add(1);
                entries
            }
        };
        state.newest = at;
        state.ring.push(at, entries);
        true
    }

    fn look(&self, now: Nanos) -> SampledLook<'_> {
        let state = self.state.lock(); // L1
        let at = state.newest.max(now.as_nanos());
        SampledLook { log: self, state, at }
    }
}

/// How many of `cost` permits are recorded: each with probability `1 / m`, by one draw.
///
/// The permits of one call are sampled at an even distance from a random start, which is a Bernoulli draw for
/// a cost of 1 and deviates less than one draw each for a larger one, in one step for any cost.
fn sample(cost: u64, m: u64, random: u64) -> u64 {
    // Scaled to 0 .. m; off evenness by at most m / 2^64.
    let start = (u128::from(random) * u128::from(m)) >> 64;
    // At most `cost`, as `start` is below `m`.
    ((u128::from(cost) + start) / u128::from(m)) as u64
}

/// The `n`-th number of the sequence `seed` (splitmix64).
fn random(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

// === impl SampledBuilder ===

impl SampledBuilder {
    /// Records every `m`-th permit, from 1 (all) to the limit: never over, falsely refused by fewer than `m`.
    pub fn every(mut self, m: u64) -> Self {
        (self.m, self.pick) = (m, Pick::Every);
        self
    }

    /// Records each permit with probability `1 / m`, `m` from 1 (all) to the limit: binomial error both ways.
    ///
    /// The same `seed` gives the same answers to the same calls. It is no secret against callers who try to
    /// guess which of their calls are recorded.
    pub fn bernoulli(mut self, m: u64, seed: u64) -> Self {
        (self.m, self.pick) = (m, Pick::Bernoulli { seed });
        self
    }

    /// Sets the largest cost of one call. By default the limit.
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// Builds the log.
    ///
    /// # Errors
    /// [`ConfigError::Window`], [`ConfigError::Sampling`], [`ConfigError::MaxCost`], [`ConfigError::Memory`].
    pub fn build(self) -> Result<Sampled, ConfigError> {
        self.rule.validate()?;
        let (limit, m) = (self.rule.limit, self.m);
        // Limit 0 records nothing: a limit lowered to it keeps the interval it had.
        if m == 0 || (limit > 0 && m > limit) {
            return Err(ConfigError::Sampling { got: m, min: 1, max: limit.max(1) });
        }
        if self.max_cost == 0 {
            return Err(ConfigError::MaxCost { got: 0, min: 1 });
        }
        let ring = Ring::new(limit.div_ceil(m))?;
        Ok(Sampled {
            rule: self.rule,
            m,
            pick: self.pick,
            max_cost: self.max_cost,
            ceiling: limit.min(self.max_cost),
            state: Lock::new(State { newest: 0, pending: 0, draws: 0, ring }),
        })
    }
}

// === impl SampledLook ===

impl Look for SampledLook<'_> {
    fn at(&self) -> Nanos {
        Nanos::from_nanos(self.at)
    }

    fn used(&self, _rule: usize) -> Option<u64> {
        let entries = self.state.ring.count(|time| self.log.leaves(time) > self.at);
        let pending = self.log.pending(&self.state, self.at);
        // By chance, entries may stand for more than the limit.
        Some(entries.saturating_mul(self.log.m).saturating_add(pending).min(self.log.rule.limit))
    }

    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        if keep >= self.log.rule.limit {
            return Some(Nanos::ZERO);
        }
        let falls = self.log.falls_to(&self.state, keep, self.at);
        Some(Nanos::from_nanos(falls.saturating_sub(self.at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_its_reference_sequence() {
        let first: [u64; 3] = core::array::from_fn(|n| random(1_234_567, n as u64));
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn each_permit_of_a_call_is_recorded_with_the_same_chance() {
        for (cost, m) in [(1, 1), (1, 4), (3, 4), (4, 4), (9, 4), (7, 3), (u64::MAX, 5)] {
            // The starts 0 .. m, each from the middle of the numbers that scale to it.
            let step = ((1_u128 << 64) / u128::from(m)) as u64;
            let sum: u128 = (0..m).map(|start| u128::from(sample(cost, m, start * step + step / 2))).sum();
            assert_eq!(sum, u128::from(cost), "cost {cost}, m {m}"); // m draws record `cost` in all
        }
    }
}
