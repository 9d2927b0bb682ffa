//! How a limit is kept on the server: the stores, what they can hold, and the script of each.

use std::time::Duration;

use tollgate::{Nanos, Rule};

use crate::{BuildError, script::Script};

/// How a limit is kept on the server. Each is one key and one script call, whatever it does.
///
/// | store | at most `limit` ... | bytes | a call takes |
/// |---|---|---|---|
/// | [`Ring`](Store::Ring) | in any window, exact to the microsecond | 8 x limit | O(1), and 8 bytes written a unit |
/// | [`Zset`](Store::Zset) | in any window, exact to the microsecond | about 130 x limit | O(log limit) a unit, and what expires |
/// | [`Counter`](Store::Counter) | in any window; a unit comes back up to a bucket, and 1 us for each, late | 48 + 4 x buckets | O(buckets) |
/// | [`TwoWindow`](Store::TwoWindow) | in an estimate: up to `2 x limit - 1` in a true window | 52 | O(1) |
/// | [`Gcra`](Store::Gcra) | at a rate: burst + rate x window in a window | 28 | O(1) |
///
/// Windows are half-open: a unit admitted at `t` has left at `t + window`. Windows, waits and times are whole microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Store {
    /// The exact log as one string.
    #[default]
    Ring,
    /// The exact log as the textbooks have it, a sorted set with a member for each unit.
    ///
    /// Members are sequence numbers and times are scores. The textbook's members are times, which collide: of `n` calls in
    /// one microsecond only one is counted. A random suffix below `m` makes that rare and not impossible: two of `n` calls
    /// with one stamp collide with a chance of about `n (n - 1) / (2 m)`, that is for `timestamp:random(10^6)` in
    /// milliseconds 0.5 % in a millisecond that has 100 calls (`1 - exp(-100 x 99 / 2,000,000) = 0.49 %`), five
    /// times a second if every millisecond has 100; and each collision is a call that is admitted and not counted.
    Zset,
    /// Counts in so many parts of the window, the oldest counted whole.
    Counter {
        /// 1 to [`Store::BUCKETS_MAX`], and at most one a microsecond of the window; 16 is a good choice. A bucket is a whole
        /// number of microseconds, rounded up.
        buckets: u32,
    },
    /// The count of this window and a share of the one before.
    TwoWindow,
    /// The generic cell rate algorithm: a token bucket.
    Gcra {
        /// The size of the bucket; `None`: the limit.
        burst: Option<u64>,
    },
}

/// The text of a script: what all begin with, the parts of its store, what all end with.
macro_rules! lua {
    ($($part:literal),+) => {
        concat!(
            include_str!("lua/open.lua"),
            $(include_str!(concat!("lua/", $part, ".lua")),)+
            include_str!("lua/decide.lua")
        )
    };
}

/// Parts of a microsecond in which GCRA's interval is counted.
const PARTS: u128 = 1 << 20;

// === impl Store ===

impl Store {
    /// The largest limit of [`Ring`](Store::Ring) and [`Zset`](Store::Zset): a ring of 128 MB.
    pub const LOG_LIMIT_MAX: u64 = 1 << 24;
    /// The largest limit, or burst, of the other stores.
    pub const COUNT_LIMIT_MAX: u64 = u32::MAX as u64;
    /// The most buckets of [`Counter`](Store::Counter).
    pub const BUCKETS_MAX: u32 = 1_000;
    /// The shortest window, and the step of all windows: 1 us.
    pub const WINDOW_STEP: Duration = Duration::from_micros(1);
    /// The longest window, and the longest time in which a bucket may drain: 2^50 us, 35 years.
    pub const WINDOW_MAX: Duration = Duration::from_micros(1 << 50);

    /// Refuses what this store can not hold.
    pub(crate) fn validate(self, rule: Rule) -> Result<(), BuildError> {
        let window = Duration::from(rule.window);
        let steps = rule.window.as_nanos().is_multiple_of(1_000);
        if window < Self::WINDOW_STEP || window > Self::WINDOW_MAX || !steps {
            return Err(BuildError::Window { got: window });
        }
        let max = match self {
            Self::Ring | Self::Zset => Self::LOG_LIMIT_MAX,
            _ => Self::COUNT_LIMIT_MAX,
        };
        let got = rule.limit.max(self.capacity(rule));
        if got > max {
            return Err(BuildError::Limit { got, max });
        }
        match self {
            Self::Counter { buckets } => {
                let max = u64::from(Self::BUCKETS_MAX).min(micros(rule.window)) as u32;
                if (1..=max).contains(&buckets) {
                    Ok(())
                } else {
                    Err(BuildError::Buckets { got: buckets, max })
                }
            }
            Self::Gcra { burst: Some(0) } if rule.limit > 0 => Err(BuildError::Burst { got: 0, min: 1 }),
            Self::Gcra { .. } => {
                let drain = drain(rule, self.capacity(rule));
                let max = Self::WINDOW_MAX;
                if drain > max.as_micros() { Err(BuildError::Drain { got: drain, max }) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// The most that a rule can ever hold: its limit, or its burst.
    pub(crate) fn capacity(self, rule: Rule) -> u64 {
        match self {
            // A rate of nothing fills no bucket: the first burst would be the last.
            Self::Gcra { .. } if rule.limit == 0 => 0,
            Self::Gcra { burst } => burst.unwrap_or(rule.limit),
            _ => rule.limit,
        }
    }

    /// The three figures of a rule that the script takes.
    pub(crate) fn figures(self, rule: Rule) -> [u64; 3] {
        let window = micros(rule.window);
        match self {
            Self::Ring | Self::Zset | Self::TwoWindow => [rule.limit, window, 0],
            Self::Counter { buckets } => [rule.limit, window, buckets.into()],
            Self::Gcra { .. } => {
                let interval = interval(rule);
                let part = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
                [self.capacity(rule), part(interval / PARTS), part(interval % PARTS)]
            }
        }
    }

    pub(crate) fn script(self) -> Script {
        Script::new(match self {
            Self::Ring => lua!("ring_one", "expire", "ring"),
            Self::Zset => lua!("expire", "zset"),
            Self::Counter { .. } => lua!("expire", "buckets", "counter"),
            Self::TwoWindow => lua!("expire", "buckets", "two_window"),
            Self::Gcra { .. } => lua!("expire", "gcra"),
        })
    }
}

/// Whole microseconds of a window that was checked to have no others.
pub(crate) fn micros(span: Nanos) -> u64 {
    span.as_nanos() / 1_000
}

/// The time that one unit takes to drain, in parts of a microsecond, rounded up: the rate is never exceeded.
fn interval(rule: Rule) -> u128 {
    if rule.limit == 0 { 0 } else { (u128::from(micros(rule.window)) * PARTS).div_ceil(rule.limit.into()) }
}

/// How long a full bucket takes to drain, in microseconds.
fn drain(rule: Rule, burst: u64) -> u128 {
    (interval(rule) * u128::from(burst)).div_ceil(PARTS)
}
