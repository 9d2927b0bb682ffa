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

pub use algorithm::{Algorithm, Compact, CompactBuilder, Sampled, SampledBuilder, Wheel, WheelBuilder};
pub use decision::{Decision, Denied, Quota, Reason};
pub use rule::{ConfigError, RULES_MAX, Rule};
pub use time::Nanos;
