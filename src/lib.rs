//! A lock-free rate limiter.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod algorithm;
mod block;
mod decision;
mod rule;
mod sync;
mod time;

pub use algorithm::{Algorithm, Coverage, Log, LogBuilder, Window, WindowBuilder};
pub use algorithm::{Gcra, GcraBuilder, LeakyBucket, TokenBucket};
pub use algorithm::{Lapsed, Pacing, PacingBuilder, Reservation};
pub use decision::{Decision, Denied, Quota, Reason};
pub use rule::{ConfigError, RULES_MAX, Rule};
pub use time::Nanos;
