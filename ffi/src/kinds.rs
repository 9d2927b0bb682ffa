//! What a limiter may hold: a configuration of the core with a state of it, or what keeps its own memory.

use tollgate::{
    Algorithm, ByRules, ConfigError, Fixed, FixedConfig, GcraConfig, Live, Log, LogConfig, Pacing, Parted,
    Rule, Sharded, TwoWindow, TwoWindowConfig, Window, WindowConfig,
};
#[cfg(feature = "std")]
use tollgate::{Compact, Sampled, Wheel};

use crate::config::{
    LIVE, SHARDED, TOLLGATE_FIXED, TOLLGATE_GCRA, TOLLGATE_LOG, TOLLGATE_PACING, TOLLGATE_TWO_WINDOW,
    TOLLGATE_WINDOW,
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
    fn set_rules(&self, rules: &[Rule]) -> Result<(), ConfigError>;
}

impl<A: ByRules> Rewritable for Live<A> {
    fn set_rules(&self, rules: &[Rule]) -> Result<(), ConfigError> {
        Live::set_rules(self, rules)
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
    Parted<LogConfig>, TOLLGATE_LOG | SHARDED;
    Parted<WindowConfig>, TOLLGATE_WINDOW | SHARDED;
    Pacing, TOLLGATE_PACING;
    Live<Log>, TOLLGATE_LOG | LIVE;
    Live<Window>, TOLLGATE_WINDOW | LIVE;
    Live<Sharded<Log>>, TOLLGATE_LOG | SHARDED | LIVE;
    Live<Sharded<Window>>, TOLLGATE_WINDOW | SHARDED | LIVE;
    Live<Fixed>, TOLLGATE_FIXED | LIVE;
    Live<TwoWindow>, TOLLGATE_TWO_WINDOW | LIVE;
}

#[cfg(feature = "std")]
named! {
    Compact, TOLLGATE_COMPACT;
    Sampled, TOLLGATE_SAMPLED;
    Wheel, TOLLGATE_WHEEL;
}
