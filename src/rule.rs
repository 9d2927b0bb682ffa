//! What may be asked of a limiter: a limit per window, and every reason to refuse a configuration.

use core::{fmt, ops::Deref, time::Duration};

use crate::Nanos;

/// The most rules that one limiter takes.
pub const RULES_MAX: usize = if cfg!(tollgate_loom) { 2 } else { 8 };

/// At most `limit` permits in any window of length `window`.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::Rule;
///
/// let rule = Rule::new(100, Duration::from_secs(1));
/// assert_eq!(rule.limit, 100);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(C)]
pub struct Rule {
    /// Permits per window; 0 refuses every cost above 0.
    pub limit: u64,
    /// Length of the window.
    pub window: Nanos,
}

/// Why a configuration was refused. Each variant carries the value and the bound it broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The limit was too large.
    Limit {
        /// The limit asked for.
        got: u64,
        /// The largest one.
        max: u64,
    },
    /// The window was too short or too long.
    Window {
        /// The window asked for.
        got: Duration,
        /// The shortest one.
        min: Duration,
        /// The longest one.
        max: Duration,
    },
    /// There were too many rules, or none.
    Rules {
        /// How many were given.
        got: usize,
        /// The most that this algorithm takes.
        max: usize,
    },
    /// The number of buckets was too small or too large.
    Buckets {
        /// The number asked for.
        got: u64,
        /// The smallest one.
        min: u64,
        /// The largest one.
        max: u64,
    },
    /// A window is not a whole number of buckets.
    Ragged {
        /// The window.
        window: Duration,
        /// The part that it should be a multiple of.
        width: Duration,
    },
    /// The phase was not below the width of a bucket or window.
    Phase {
        /// The phase asked for.
        got: Duration,
        /// The width it must stay below.
        width: Duration,
    },
    /// The burst was too small or too large.
    Burst {
        /// The burst asked for.
        got: u64,
        /// The smallest one.
        min: u64,
        /// The largest one.
        max: u64,
    },
    /// The time of a change was out of range.
    Moment {
        /// The time passed.
        got: Nanos,
        /// The latest one.
        max: Nanos,
    },
    /// The largest cost was too small.
    MaxCost {
        /// The largest cost asked for.
        got: u64,
        /// The smallest one.
        min: u64,
    },
    /// The tick was too short or too long.
    Tick {
        /// The tick asked for.
        got: Duration,
        /// The shortest one.
        min: Duration,
        /// The longest one.
        max: Duration,
    },
    /// The sampling interval (every `m`-th) was too small or too large.
    Sampling {
        /// The interval asked for.
        got: u64,
        /// The smallest one.
        min: u64,
        /// The largest one.
        max: u64,
    },
    /// The number of shards was too small or too large.
    Shards {
        /// The number asked for.
        got: u64,
        /// The smallest one.
        min: u64,
        /// The largest one.
        max: u64,
    },
    /// The largest cost does not fit into a shard's part of the limit.
    Part {
        /// The largest cost asked for.
        max_cost: u64,
        /// The smallest part above 0.
        part: u64,
    },
    /// The shards' rings differ, so that a shard's part of the limit can not change: the capacity must be given.
    Uneven {
        /// The limit at construction.
        limit: u64,
        /// The number of shards.
        shards: u64,
    },
    /// A limiter that was to follow the rules of others was built otherwise than they.
    Unlike,
    /// There was no room for a key.
    Keys {
        /// The number of keys asked for.
        got: u64,
        /// The smallest one.
        min: u64,
    },
    /// There is not that much memory.
    Memory {
        /// Bytes that the state needs.
        bytes: usize,
    },
}

/// One to [`RULES_MAX`] rules, in the order given: a list that is copied.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Log, Rule};
///
/// let second = Duration::from_secs(1);
/// let log = Log::builder(100, second).rule(1_000, 60 * second).build()?;
/// assert_eq!(log.rules()[1], Rule::new(1_000, 60 * second));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Rules {
    len: u64,
    list: [Rule; RULES_MAX],
}

// === impl Rule ===

impl Rule {
    /// At most `limit` permits in any `window`. Checked when the limiter is built.
    pub fn new(limit: u64, window: Duration) -> Self {
        Self { limit, window: window.into() }
    }

    /// Checks that it is no faster than `rate_max`, which has a window.
    pub(crate) fn expect_at_most(self, rate_max: Self) -> Result<(), ConfigError> {
        let permits = u128::from(rate_max.limit) * u128::from(self.window.as_nanos());
        let max = permits / u128::from(rate_max.window.as_nanos());
        if u128::from(self.limit) > max {
            return Err(ConfigError::Limit { got: self.limit, max: max as u64 });
        }
        Ok(())
    }

    /// Checks the window: 1 ns to [`Nanos::MAX`].
    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        if self.window == Nanos::ZERO || !self.window.in_range() {
            return Err(ConfigError::Window {
                got: self.window.into(),
                min: Duration::from_nanos(1),
                max: Nanos::MAX.into(),
            });
        }
        Ok(())
    }
}

// === impl ConfigError ===

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Limit { got, max } => write!(f, "limit {got} is above {max}"),
            Self::Window { got, min, max } => {
                write!(f, "window {got:?} is not between {min:?} and {max:?}")
            }
            Self::Rules { got, max } => write!(f, "{got} rules are not between 1 and {max}"),
            Self::Buckets { got, min, max } => {
                write!(f, "{got} buckets are not between {min} and {max}")
            }
            Self::Ragged { window, width } => {
                write!(f, "window {window:?} is not a multiple of {width:?}")
            }
            Self::Phase { got, width } => write!(f, "phase {got:?} is not below {width:?}"),
            Self::Burst { got, min, max } => write!(f, "burst {got} is not between {min} and {max}"),
            Self::Moment { got, max } => write!(f, "time {got:?} is above {max:?}"),
            Self::MaxCost { got, min } => write!(f, "largest cost {got} is below {min}"),
            Self::Tick { got, min, max } => write!(f, "tick {got:?} is not between {min:?} and {max:?}"),
            Self::Sampling { got, min, max } => {
                write!(f, "sampling every {got}th is not between {min} and {max}")
            }
            Self::Shards { got, min, max } => write!(f, "{got} shards are not between {min} and {max}"),
            Self::Part { max_cost, part } => {
                write!(f, "largest cost {max_cost} is above {part}, a shard's part of the limit")
            }
            Self::Uneven { limit, shards } => {
                write!(f, "limit {limit} over {shards} shards can not change without a capacity")
            }
            Self::Unlike => f.write_str("the limiter was built otherwise than those it is to follow"),
            Self::Keys { got, min } => write!(f, "room for {got} keys is below {min}"),
            Self::Memory { bytes } => write!(f, "no memory for {bytes} bytes of state"),
        }
    }
}

impl core::error::Error for ConfigError {}

// === impl Rules ===

impl Rules {
    /// A list of one rule, not yet checked.
    pub(crate) fn one(rule: Rule) -> Self {
        Self { len: 1, list: [rule; RULES_MAX] }
    }

    /// A list of these, for an [`Algorithm`](crate::Algorithm) of your own; more than [`RULES_MAX`] are left out.
    pub fn of(rules: &[Rule]) -> Self {
        let mut list = [Rule { limit: 0, window: Nanos::ZERO }; RULES_MAX];
        let kept = rules.len().min(RULES_MAX);
        list[..kept].copy_from_slice(&rules[..kept]);
        Self { len: rules.len() as u64, list } // All are counted: as `push`.
    }

    /// Adds a rule; one too many is counted and reported by [`Rules::validate`].
    pub(crate) fn push(&mut self, rule: Rule) {
        if let Some(place) = self.list.get_mut(self.len as usize) {
            *place = rule;
        }
        self.len += 1;
    }

    /// The rule given first.
    pub(crate) fn first(&self) -> Rule {
        self.list[0]
    }

    /// Checks the number of rules and each rule. Once, not in each place: the C library has a budget. So are the two
    /// below.
    #[inline(never)]
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.expect_at_most(RULES_MAX)?;
        self.iter().try_for_each(|rule| rule.validate())
    }

    /// Checks that there is a rule, and no more than `max`.
    pub(crate) fn expect_at_most(&self, max: usize) -> Result<(), ConfigError> {
        if !(1..=max as u64).contains(&self.len) {
            return Err(ConfigError::Rules { got: self.len as usize, max });
        }
        Ok(())
    }

    /// The one rule, with this window and a limit of at most `max`.
    pub(crate) fn one_within(&self, window: Nanos, max: u64) -> Result<Rule, ConfigError> {
        self.expect_at_most(1)?;
        let rule = self[0];
        if rule.window != window {
            let (got, window) = (rule.window.into(), window.into());
            return Err(ConfigError::Window { got, min: window, max: window });
        }
        if rule.limit > max {
            return Err(ConfigError::Limit { got: rule.limit, max });
        }
        Ok(rule)
    }

    /// The smallest limit: no cost above it can ever pass.
    #[inline(never)]
    pub(crate) fn least_limit(&self) -> u64 {
        self.iter().map(|rule| rule.limit).min().unwrap_or(0)
    }

    /// The largest limit: how far back a history must reach.
    #[inline(never)]
    pub(crate) fn largest_limit(&self) -> u64 {
        self.iter().map(|rule| rule.limit).max().unwrap_or(0)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Rules {}

impl Deref for Rules {
    type Target = [Rule];
    #[inline]
    fn deref(&self) -> &[Rule] {
        &self.list[..(self.len as usize).min(RULES_MAX)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_that_there_are_are_shown() {
        let rule = Rule::new(5, Duration::from_secs(1));
        assert_eq!(alloc::format!("{:?}", Rules::of(&[rule; 2])), alloc::format!("{:?}", [rule; 2]));
    }
}
