//! The forms that take a lock: the compact log, the sampling log and the timing wheel, from outside.

mod cases;
mod compact;
mod naive;
mod sampled;
mod threads;
mod wheel;

use std::time::Duration;

use tollgate::{Algorithm, Compact, ConfigError, Nanos, Sampled, Wheel};

/// Builds a limiter of some kind with the given limit and window.
type Build = fn(u64, Duration) -> Result<Box<dyn Algorithm>, ConfigError>;

const SECOND: Duration = Duration::from_secs(1);

fn boxed<A: Algorithm + 'static>(built: Result<A, ConfigError>) -> Result<Box<dyn Algorithm>, ConfigError> {
    built.map(|limiter| Box::new(limiter) as Box<dyn Algorithm>)
}

fn a_compact_log(limit: u64, window: Duration) -> Result<Box<dyn Algorithm>, ConfigError> {
    boxed(Compact::builder(limit, window).build())
}

fn a_sampled_log(limit: u64, window: Duration) -> Result<Box<dyn Algorithm>, ConfigError> {
    boxed(Sampled::builder(limit, window).build())
}

/// With every permit sure to be recorded, chance has no say: this one is exact.
fn a_bernoulli_log(limit: u64, window: Duration) -> Result<Box<dyn Algorithm>, ConfigError> {
    boxed(Sampled::builder(limit, window).bernoulli(1, 7).build())
}

fn a_wheel(limit: u64, window: Duration) -> Result<Box<dyn Algorithm>, ConfigError> {
    boxed(Wheel::builder(limit, window).build())
}

fn ns(n: u64) -> Nanos {
    Nanos::from_nanos(n)
}

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn secs(n: u64) -> Nanos {
    Nanos::from_secs(n)
}
