//! The algorithms, one file each, and the contract that they share.

mod compact;
mod config;
mod epoch;
mod fixed;
mod gcra;
mod log;
mod one_word;
mod pacing;
mod permit;
#[cfg(not(tollgate_loom))]
mod placed;
mod rate;
mod ring;
mod sampled;
mod two_window;
mod wheel;
mod window;

use alloc::boxed::Box;

pub use compact::{Compact, CompactBuilder};
#[cfg(feature = "shared")]
pub use config::ChangingConfig;
#[cfg(not(tollgate_loom))]
pub use config::{Config, STATE_ALIGN};
pub(crate) use config::{InParts, On, Parts, StateOf, WithRules};
pub use fixed::{Fixed, FixedBuilder, FixedConfig};
pub use gcra::{Gcra, GcraBuilder, GcraConfig, LeakyBucket, LiveGcraConfig, TokenBucket};
pub use log::{Log, LogBuilder, LogConfig};
pub use pacing::{Pacing, PacingBuilder, Reservation};
pub use permit::{Lapsed, Permit};
#[cfg(not(tollgate_loom))]
pub use placed::{PlaceError, Placed};
#[cfg(feature = "keyed")]
pub(crate) use ring::reserve;
pub use sampled::{Sampled, SampledBuilder};
pub use two_window::{TwoWindow, TwoWindowBuilder, TwoWindowConfig};
pub use wheel::{Wheel, WheelBuilder};
pub use window::{Coverage, Window, WindowBuilder, WindowConfig};

use crate::{Decision, Nanos, Rules};

/// What every algorithm answers, at a time that the caller passes.
///
/// All methods but [`reset`](Algorithm::reset) may be called by any number of threads at once. A time is
/// nanoseconds since any zero, at most [`Nanos::MAX`]; a later one is refused. A time older than the newest
/// recorded one is judged at the newest recorded one (each algorithm says how exactly it knows that).
/// A refusal changes nothing. A cost of 0 is admitted and changes nothing; a cost above the limit is refused
/// with [`Reason::Never`](crate::Reason::Never).
pub trait Algorithm: Send + Sync {
    /// Takes `cost` permits at `now`, all or nothing. The cheapest call: yes or no.
    fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool;

    /// Takes `cost` permits at `now`, all or nothing, and tells what is left or how long to wait.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied), which changed nothing.
    fn check_at(&self, cost: u64, now: Nanos) -> Decision;

    /// Tells whether [`check_at`](Algorithm::check_at) would admit, and stores nothing. The figures are those before
    /// it would: what is left now.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied).
    fn peek_at(&self, cost: u64, now: Nanos) -> Decision;

    /// Tells whether [`try_acquire_at`](Algorithm::try_acquire_at) would admit, and stores nothing. Cheaper than
    /// [`peek_at`](Algorithm::peek_at), which works out the figures.
    fn has_room_at(&self, cost: u64, now: Nanos) -> bool {
        self.peek_at(cost, now).is_ok()
    }

    /// Permits charged to `rule` (by its place in the configuration) at `now`; `None` without such a rule or
    /// with a time out of range.
    fn usage_at(&self, rule: usize, now: Nanos) -> Option<u64>;

    /// The rules, in the order given.
    fn rules(&self) -> Rules;

    /// Bytes of state, the configuration apart.
    fn state_bytes(&self) -> usize;

    /// Forgets every admission: the state is that of a new limiter.
    fn reset(&mut self);
}

// A box owns what it holds, so it can hand on every call, `reset` among them. A shared reference and an `Arc` can
// not: whoever shares an algorithm shares the `Limiter` around it, whose calls take `&self`.
impl<A: Algorithm + ?Sized> Algorithm for Box<A> {
    #[inline]
    fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool {
        (**self).try_acquire_at(cost, now)
    }

    fn check_at(&self, cost: u64, now: Nanos) -> Decision {
        (**self).check_at(cost, now)
    }

    fn peek_at(&self, cost: u64, now: Nanos) -> Decision {
        (**self).peek_at(cost, now)
    }

    fn has_room_at(&self, cost: u64, now: Nanos) -> bool {
        (**self).has_room_at(cost, now)
    }

    fn usage_at(&self, rule: usize, now: Nanos) -> Option<u64> {
        (**self).usage_at(rule, now)
    }

    fn rules(&self) -> Rules {
        (**self).rules()
    }

    fn state_bytes(&self) -> usize {
        (**self).state_bytes()
    }

    fn reset(&mut self) {
        (**self).reset();
    }
}

/// Gives a type the public contract: one that is its own [`History`](crate::decision::History), or one that owns the
/// two parts of one.
macro_rules! algorithm {
    ($name:ident) => {
        algorithm!($name, it, it, it);
    };
    ($name:ident in parts of $config:ident) => {
        algorithm!($name, it, &it.config, &it.on());

        impl $crate::algorithm::InParts for $name {
            type Config = $config;

            fn config(&self) -> &$config {
                &self.config
            }

            #[inline(always)]
            fn state(&self) -> $crate::algorithm::StateOf<'_, Self> {
                self.on().state
            }

            #[inline(always)]
            fn on_state<'a>(
                config: &'a $config,
                state: $crate::algorithm::StateOf<'a, Self>,
            ) -> impl $crate::decision::History<Limits = $config> + Copy {
                $crate::algorithm::On { config, state }
            }
        }
    };
    ($({$($generics:tt)*})? $name:ty, $it:ident, $limits:expr, $history:expr) => {
        impl $(<$($generics)*>)? $crate::Algorithm for $name {
            #[inline(always)]
            fn try_acquire_at(&self, cost: u64, now: $crate::Nanos) -> bool {
                let $it = self;
                $crate::decision::try_acquire($history, cost, now)
            }

            fn check_at(&self, cost: u64, now: $crate::Nanos) -> $crate::Decision {
                let $it = self;
                $crate::decision::check($history, cost, now)
            }

            fn peek_at(&self, cost: u64, now: $crate::Nanos) -> $crate::Decision {
                let $it = self;
                $crate::decision::peek($history, cost, now)
            }

            fn has_room_at(&self, cost: u64, now: $crate::Nanos) -> bool {
                let $it = self;
                $crate::decision::has_room($history, cost, now)
            }

            fn usage_at(&self, rule: usize, now: $crate::Nanos) -> Option<u64> {
                let $it = self;
                $crate::decision::usage($history, rule, now)
            }

            fn rules(&self) -> $crate::Rules {
                let $it = self;
                $crate::Rules::of($crate::decision::Limits::rules($limits))
            }

            fn state_bytes(&self) -> usize {
                self.bytes()
            }

            fn reset(&mut self) {
                self.clear();
            }
        }
    };
}
pub(crate) use algorithm;
