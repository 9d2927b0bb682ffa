//! One limiter for many processes, in memory that they share.
//!
//! # What
//! A *region* holds limiters by index and a table of limiters by key, all of one configuration. It is a file (say in
//! `/dev/shm`), anonymous memory behind a descriptor, or any mapping of the caller's. There are no pointers, locks, owners or
//! process ids in it, and zeros are fresh limiters. So there is nothing to recover: a process may be killed at any
//! instruction, and the others go on as if its last call had happened, or had not.
//!
//! # Guarantees
//! Each limiter is as its algorithm says, for all processes together. A process that dies inside a call loses at most
//! that call's permits and blocks nobody. One that is stopped inside a call and goes on later does no harm.
//!
//! The configuration of a region does not change. Of one that was made [`live`](RegionBuilder::live) the rules do, while it is in
//! use: see below. Anything else is another region, of another name.
//!
//! A region whose bytes come from somebody hostile can decide wrongly. No call reads or writes outside of it, whatever
//! the bytes are, also those that others change meanwhile; the geometry is that of the configuration given, nothing of
//! it is taken from the region. Bytes that calls would not come back from are refused when the region is attached to; who
//! can write to it afterwards can make calls wait.
//!
//! A file that somebody cuts short kills whoever touches what is missing (SIGBUS): the folder of a named file must be
//! trusted. A region behind a descriptor is sealed against that.
//!
//! # Rules that change
//! [`Region::set_rules`] replaces the rules of a live region, for its limiters and keys, in all processes. A call that overlaps a change
//! is judged by the old rules or by the new, whole; one that begins later, in whatever process, by the new. A change is
//! published by compare-and-swaps that any process may take over from any other: one that dies inside of it leaves the old rules or the
//! new.
//!
//! Use so far is kept, as far as the rules before it still charged it: when a window is lengthened, what had left it already may be
//! forgotten, and is for a key whose place was taken over. Who took it over is then charged for that, for up to the longer window: the
//! place was free under the rules before, and what lies in it stays. That is never over a limit, and a key may be refused for what
//! another took. A region made from the start with the longer window, its limit as high as the capacity, keeps places for as
//! long as that, and has no such case. Otherwise it is as [`Live`](crate::Live) says, which rules may come among it.
//!
//! The region holds rules, and nothing derived from them: a process checks what it reads like rules from a caller, by its own configuration.
//! Those that it does not take, which only somebody hostile publishes, leave it with the ones it had; at an attachment they are an error.
//!
//! # Time
//! [`Time::Monotonic`], [`Time::Boot`], or the caller's own: then all processes must pass times of one clock. A clock that a
//! process calibrates for itself, like [`Precise`](crate::Precise), is none. A region of another boot or, by container, of
//! another time is refused.
//!
//! # Layout
//! | bytes                | what                                                                    |
//! |----------------------|-------------------------------------------------------------------------|
//! | 0x400                | header (`header.rs`)                                                     |
//! | 0x280, if live       | the rules in force (`publication.rs`, `rules.rs`)                          |
//! | stride each          | limiters by index                                                       |
//! | stride each, if keys | a state that is never written; the one that keys without room share        |
//! | 0x80 + 14 x stride each | buckets: a line of words (`table.rs`), then the states of its ways    |
//!
//! A stride is a state's bytes, in a log as if its limit were the next power of two: an index that a position of any
//! bits can have lies inside.
//!
//! # Invariants
//! | id | always                                                                        | kept by                     |
//! |----|-------------------------------------------------------------------------------|-----------------------------|
//! | I1 | the memory of a region is as long as its sizes say, aligned, for its life         | `made`, `attach_fd`; callers of `place` |
//! | I2 | what lies in it is read and written as atomic words alone                         | `Config`, `Bucket`, `header`, `Publication` |
//! | I3 | at each state, zeros once, calls of configurations write alone that are equal but for rules; or it was looked at | `header.rs`, `accepts`, `WithRules` |
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use tollgate::{Algorithm, Clock, Log, shared::Region};
//!
//! let config = Log::builder(5, Duration::from_secs(60)).config()?;
//! let region = Region::builder(config).limiters(2).keys(1_000);
//!
//! // One process makes it; others, given the descriptor, find the same limiters.
//! let (first, file) = region.memfd("limits")?;
//! let other = region.attach_fd(&file)?;
//!
//! let now = first.now().expect("the clock is the system's");
//! assert!(first.limiter(1).expect("there are two").try_acquire_at(5, now));
//! assert!(!other.limiter(1).expect("there are two").try_acquire_at(1, now));
//!
//! let [ours, theirs] = [&first, &other].map(|region| region.keys().expect("there is room for some"));
//! assert!(ours.try_acquire_at(b"alice", 5, now));
//! assert!(!theirs.try_acquire_at(b"alice", 1, now));
//! assert!(theirs.try_acquire_at(b"bob", 1, now));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Another limit while they run:
//! ```
//! use std::time::Duration;
//! use tollgate::{Algorithm, Log, Rule, shared::Region};
//!
//! let minute = Duration::from_secs(60);
//! let region = Region::builder(Log::builder(5, minute).capacity(100).config()?).limiters(1).live();
//! let (first, file) = region.memfd("limits")?;
//! let other = region.attach_fd(&file)?;
//!
//! let now = first.now().expect("the clock is the system's");
//! let [ours, theirs] = [&first, &other].map(|region| region.limiter(0).expect("there is one"));
//! assert!(ours.try_acquire_at(5, now) && !theirs.try_acquire_at(1, now));
//! other.set_rules(&[Rule::new(100, minute)])?;
//! assert_eq!(ours.peek_at(1, now).map(|quota| quota.remaining), Ok(95));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "shared")]
mod error;
#[cfg(feature = "shared")]
mod header;
#[cfg(feature = "shared")]
mod keys;
#[cfg(feature = "shared")]
mod mapping;
#[cfg(tollgate_loom)]
mod modelled;
mod publication;
#[cfg(feature = "shared")]
mod region;
mod rules;
mod table;

#[cfg(feature = "shared")]
pub use crate::{algorithm::ChangingConfig, clock::System};
#[cfg(feature = "shared")]
pub use error::{Field, SharedError};
#[cfg(feature = "shared")]
pub use keys::Keys;
#[cfg(tollgate_loom)]
pub use modelled::{OneBucket, OneRuled, OneValue};
#[cfg(feature = "shared")]
pub use region::{Info, Member, Region, RegionBuilder, Shared, Time, inspect, inspect_fd, unlink};
