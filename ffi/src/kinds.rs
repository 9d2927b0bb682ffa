//! What a limiter may hold: a configuration of the core with a state of it, or what keeps its own memory.

use tollgate::{
    Algorithm, ConfigError, Fixed, FixedConfig, Gcra, GcraConfig, Live, Log, LogConfig, Nanos, Pacing, Rule,
    TwoWindow, TwoWindowConfig, Window, WindowConfig,
};
#[cfg(feature = "std")]
use tollgate::{Compact, Sampled, Wheel};
#[cfg(feature = "shards")]
use tollgate::{Parted, Sharded};

#[cfg(feature = "shards")]
use crate::config::SHARDED;
use crate::config::{
    LIVE, TOLLGATE_FIXED, TOLLGATE_GCRA, TOLLGATE_LOG, TOLLGATE_PACING, TOLLGATE_TWO_WINDOW, TOLLGATE_WINDOW,
};
#[cfg(feature = "std")]
use crate::config::{TOLLGATE_COMPACT, TOLLGATE_SAMPLED, TOLLGATE_WHEEL};

/// What a limiter may hold.
pub(crate) trait Named {
    /// The algorithm, and how it is held: `tollgate_config_t::form`.
    const ALGORITHM: u32;
}

/// A limiter whose rules may change.
pub(crate) trait Rewritable: Algorithm {
    /// Replaces the rules; `None`: it has a rate.
    fn set_rules(&self, _rules: &[Rule]) -> Option<Result<(), ConfigError>> {
        None
    }

    /// Replaces rate and burst; `None`: it has rules.
    fn set_rate(&self, _rate: Rule, _burst: u64, _now: Nanos) -> Option<Result<(), ConfigError>> {
        None
    }
}

/// What counts by rules has them replaced.
macro_rules! by_rules {
    ($($name:ty),+) => {
        $(impl Rewritable for Live<$name> {
            fn set_rules(&self, rules: &[Rule]) -> Option<Result<(), ConfigError>> {
                Some(Live::set_rules(self, rules))
            }
        })+
    };
}

by_rules!(Log, Window, Fixed, TwoWindow);
#[cfg(feature = "shards")]
by_rules!(Sharded<Log>, Sharded<Window>);
#[cfg(feature = "std")]
by_rules!(Compact);

impl Rewritable for Live<Gcra> {
    fn set_rate(&self, rate: Rule, burst: u64, now: Nanos) -> Option<Result<(), ConfigError>> {
        Some(self.set_rate_at(rate, burst, now))
    }
}

// === impl Named ===

/// Gives types the numbers by which a limiter says that it holds one.
macro_rules! named {
    ($($name:ty, $number:expr;)+) => {
        $(impl Named for $name {
            const ALGORITHM: u32 = $number;
        })+
    };
}

named! {
    LogConfig, TOLLGATE_LOG;
    WindowConfig, TOLLGATE_WINDOW;
    FixedConfig, TOLLGATE_FIXED;
    TwoWindowConfig, TOLLGATE_TWO_WINDOW;
    GcraConfig, TOLLGATE_GCRA;
    Pacing, TOLLGATE_PACING;
    Live<Log>, TOLLGATE_LOG | LIVE;
    Live<Window>, TOLLGATE_WINDOW | LIVE;
    Live<Fixed>, TOLLGATE_FIXED | LIVE;
    Live<TwoWindow>, TOLLGATE_TWO_WINDOW | LIVE;
    Live<Gcra>, TOLLGATE_GCRA | LIVE;
}

#[cfg(feature = "shards")]
named! {
    Parted<LogConfig>, TOLLGATE_LOG | SHARDED;
    Parted<WindowConfig>, TOLLGATE_WINDOW | SHARDED;
    Live<Sharded<Log>>, TOLLGATE_LOG | SHARDED | LIVE;
    Live<Sharded<Window>>, TOLLGATE_WINDOW | SHARDED | LIVE;
}

#[cfg(feature = "shm")]
impl<C: tollgate::Config + Named> Named for tollgate::shared::Member<'static, C> {
    const ALGORITHM: u32 = C::ALGORITHM | crate::config::FAR;
}

#[cfg(feature = "std")]
named! {
    Compact, TOLLGATE_COMPACT;
    Live<Compact>, TOLLGATE_COMPACT | LIVE;
    Sampled, TOLLGATE_SAMPLED;
    Wheel, TOLLGATE_WHEEL;
}
