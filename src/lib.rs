//! A lock-free rate limiter for hot paths: an exact sliding-window log, a sliding-window counter and their family.
//!
//! An [`Algorithm`] holds a history and answers at a time that the caller passes; a [`Limiter`] joins it to a
//! [`Clock`]. Every algorithm gives the same answer: a [`Quota`], or a [`Denied`] that changed nothing.
//!
//! | type | at most `limit` permits ... | memory |
//! |---|---|---|
//! | [`Log`] | in any window, exact to the nanosecond; one or several rules | 8 B x limit |
//! | [`Window`] | in any window, a permit coming back up to one bucket late; one or several rules | 8 B x buckets |
//! | [`Compact`] | in any window, a permit coming back up to one tick late | 4 B x limit |
//! | [`Gcra`] | at a rate, plus a burst: [`TokenBucket`] and [`LeakyBucket`] | one word |
//! | [`Pacing`] | at a rate, by telling callers how long to wait | one word |
//! | [`TwoWindow`] | in an estimate from two windows | one word |
//! | [`Fixed`] | in each window of the clock, up to twice as many around an edge | one word |
//! | [`Sampled`] | but for an error below `m`, from every `m`-th permit | 8 B x limit / m |
//! | [`Wheel`] | in any window, a permit coming back up to one slot late | slots and timers |
//!
//! [`Sharded`] spreads one limit over many logs or counters, so that threads do not meet.
//! Around them: [`Keyed`], a limiter for each key; [`Layers`], limiters one inside the other; [`Permit`], to be given back;
//! [`Waiting`].
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use tollgate::{Algorithm, Log, Nanos};
//!
//! // 1,000 per second and 200 per 100 ms, together or not at all.
//! let log = Log::builder(1_000, Duration::from_secs(1)).rule(200, Duration::from_millis(100)).build()?;
//!
//! let now = Nanos::from_secs(7);
//! assert!(log.check_at(200, now).is_ok());
//! let denied = log.check_at(1, now).unwrap_err();
//! assert_eq!((denied.quota.rule, denied.retry_after()), (1, Some(Nanos::from_millis(100))));
//! # Ok::<(), tollgate::ConfigError>(())
//! ```
//!
//! # Features
//! `std` (default): the clocks that read real time, [`Precise`] and [`Coarse`], and the jitter of [`Waiting`]. Without it the
//! crate is `no_std` and needs `alloc`. `keyed` (default): [`Keyed`], a limiter for each key. `shared`: one limiter for many processes (Linux).
//! `tokio`: its timer, for [`Waiting`]. `metrics`: the counts of a [`Counted`] limiter for the recorder of the `metrics`
//! crate.
#![no_std]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(all(feature = "shared", not(target_os = "linux")))]
compile_error!("feature `shared` is for Linux");

mod algorithm;
mod block;
mod clock;
mod decision;
#[cfg(feature = "keyed")]
mod keyed;
mod layers;
mod limiter;
mod live;
mod rule;
mod shard;
#[cfg(any(feature = "shared", tollgate_loom))]
pub mod shared;
mod statistics;
mod sync;
mod time;
mod waiting;

pub use algorithm::{
    Algorithm, Compact, CompactBuilder, Coverage, Fixed, FixedBuilder, FixedConfig, Gcra, GcraBuilder,
    GcraConfig, Lapsed, LeakyBucket, LiveGcraConfig, Log, LogBuilder, LogConfig, Pacing, PacingBuilder,
    Permit, Reservation, Sampled, SampledBuilder, TokenBucket, TwoWindow, TwoWindowBuilder, TwoWindowConfig,
    Wheel, WheelBuilder, Window, WindowBuilder, WindowConfig,
};
#[cfg(not(tollgate_loom))]
pub use algorithm::{Config, PlaceError, Placed, STATE_ALIGN};
pub use clock::{Clock, Manual, Rebased};
#[cfg(feature = "std")]
pub use clock::{Coarse, CoarseError, CoarseGuard, Precise};
pub use decision::{Decision, Denied, Quota, Reason};
#[cfg(feature = "keyed")]
pub use keyed::{Class, Keyed, KeyedBuilder, Of, WhenFull, network_of};
pub use layers::{Layer, Layers};
pub use limiter::Limiter;
pub use live::{ByRules, Changing, Live, LiveRules};
pub use rule::{ConfigError, RULES_MAX, Rule, Rules};
#[cfg(feature = "std")]
pub use shard::ShardedCounter;
pub use shard::{Parted, Shard, Sharded};
pub use statistics::{AnyLayers, Counted, Statistics};
pub use sync::contention_retries;
pub use time::Nanos;
#[cfg(feature = "std")]
pub use waiting::Thread;
#[cfg(feature = "tokio")]
pub use waiting::Tokio;
pub use waiting::{Block, Timer, WaitError, Waiting};

/// The examples of the README, of which one needs `shared`.
#[cfg(all(doctest, feature = "shared"))]
#[doc = include_str!("../README.md")]
struct Readme;
