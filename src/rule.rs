//! What may be asked of a limiter: a limit per window, and every reason to refuse a configuration.

use core::{fmt, ops::Deref, time::Duration};

use crate::Nanos;

/// The most rules that one limiter takes.
pub const RULES_MAX: usize = 8;

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
    /// There were too many rules.
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

/// One to [`RULES_MAX`] valid rules, in the order given.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Rules {
    len: u64,
    list: [Rule; RULES_MAX],
}

// === impl Rule ===

impl Rule {
    /// At most `limit` permits in any `window`. Checked when the limiter is built.
    pub fn new(limit: u64, window: Duration) -> Self {
        Self { limit, window: window.into() }
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
            Self::Rules { got, max } => write!(f, "{got} rules are more than {max}"),
            Self::Buckets { got, min, max } => {
                write!(f, "{got} buckets are not between {min} and {max}")
            }
            Self::Ragged { window, width } => {
                write!(f, "window {window:?} is not a multiple of {width:?}")
            }
            Self::Phase { got, width } => write!(f, "phase {got:?} is not below {width:?}"),
            Self::Burst { got, min, max } => write!(f, "burst {got} is not between {min} and {max}"),
            Self::MaxCost { got, min } => write!(f, "largest cost {got} is below {min}"),
            Self::Tick { got, min, max } => write!(f, "tick {got:?} is not between {min:?} and {max:?}"),
            Self::Sampling { got, min, max } => {
                write!(f, "sampling every {got}th is not between {min} and {max}")
            }
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

    /// Adds a rule; one too many is counted and reported by [`Rules::validate`].
    pub(crate) fn push(&mut self, rule: Rule) {
        if let Some(place) = self.list.get_mut(self.len as usize) {
            *place = rule;
        }
        self.len += 1;
    }

    /// Checks the number of rules and each rule.
    pub(crate) fn validate(self) -> Result<Self, ConfigError> {
        if self.len as usize > RULES_MAX {
            return Err(ConfigError::Rules { got: self.len as usize, max: RULES_MAX });
        }
        self.iter().try_for_each(|rule| rule.validate())?;
        Ok(self)
    }

    /// The smallest limit: no cost above it can ever pass.
    pub(crate) fn least_limit(&self) -> u64 {
        self.iter().map(|rule| rule.limit).min().unwrap_or(0)
    }

    /// The largest limit: how far back a history must reach.
    pub(crate) fn largest_limit(&self) -> u64 {
        self.iter().map(|rule| rule.limit).max().unwrap_or(0)
    }
}

impl Deref for Rules {
    type Target = [Rule];
    #[inline]
    fn deref(&self) -> &[Rule] {
        &self.list[..(self.len as usize).min(RULES_MAX)]
    }
}
