//! A lock-free rate limiter.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod algorithm;
mod block;
mod clock;
mod decision;
mod limiter;
mod rule;
mod sync;
mod time;

pub use algorithm::{
    Algorithm, Compact, CompactBuilder, Coverage, Fixed, FixedBuilder, Gcra, GcraBuilder, Lapsed,
    LeakyBucket, Log, LogBuilder, Pacing, PacingBuilder, Reservation, Sampled, SampledBuilder, TokenBucket,
    TwoWindow, TwoWindowBuilder, Wheel, WheelBuilder, Window, WindowBuilder,
};
pub use clock::{Clock, Manual, Rebased};
#[cfg(feature = "std")]
pub use clock::{Coarse, CoarseError, CoarseGuard, Precise};
pub use decision::{Decision, Denied, Quota, Reason};
pub use limiter::Limiter;
pub use rule::{ConfigError, RULES_MAX, Rule};
pub use time::Nanos;
