//! x
mod answer;
mod breaker;
mod builder;
mod call;
mod desk;
mod error;
mod instances;
mod key;
mod keyed;
mod limiter;
mod local;
mod script;
mod share;
mod stats;
mod store;

pub use answer::{Answer, By, Grant, OnFailure, Verdict};
pub use builder::Builder;
pub use call::{Call, Mode, Reply, Report, Scripted};
pub use error::{BuildError, Failure, Unavailable};
pub use instances::{Heartbeat, Instances, change_bound, portion};
pub use limiter::Limiter;
pub use share::Share;
pub use stats::{Health, Stats};
pub use store::Store;
