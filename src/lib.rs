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

pub use algorithm::{Algorithm, Coverage, Log, LogBuilder, Window, WindowBuilder};
pub use algorithm::{Algorithm, Fixed, FixedBuilder, TwoWindow, TwoWindowBuilder};
pub use algorithm::{Gcra, GcraBuilder, LeakyBucket, TokenBucket};
pub use algorithm::{Lapsed, Pacing, PacingBuilder, Reservation};
pub use clock::{Clock, Manual, Rebased};
#[cfg(feature = "std")]
pub use clock::{Coarse, CoarseError, CoarseGuard, Precise};
pub use decision::{Decision, Denied, Quota, Reason};
pub use limiter::Limiter;
pub use rule::{ConfigError, RULES_MAX, Rule};
pub use time::Nanos;
