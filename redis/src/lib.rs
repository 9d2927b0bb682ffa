//! One rate limit for all instances of a service, on a Redis: exact, one script a check, with what it takes when the
//! server is slow, silent or gone.
//!
//! [`Limiter`] puts a limit, or several together, on a server that you run already, through your own connection. Every check
//! is judged at one instant of the server's clock by one script on one key for each limit. The answer is the core's:
//! a [`Quota`](tollgate::Quota) or a [`Denied`](tollgate::Denied), and [`By`] says who gave it.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use tollgate_redis::Limiter;
//!
//! let connection = redis::Client::open("redis://127.0.0.1/")?.get_connection_manager().await?;
//! let limiter = Limiter::builder("api", 1_000, Duration::from_secs(1))
//!     .rule("daily", 100_000, Duration::from_secs(86_400))
//!     .cache_refusals(Duration::from_secs(1))
//!     .build(connection)?;
//! limiter.verify().await?;
//!
//! if !limiter.try_acquire("user-42", 1).await?.admitted {
//!     println!("429");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Choose
//! - How a limit is kept: [`Store`]. The default, a ring, is exact and takes 8 bytes a unit of the limit.
//! - What stands before the server: [`cache_refusals`](Builder::cache_refusals), [`share_calls`](Builder::share_calls),
//!   [`lease`](Builder::lease), [`coarse`](Builder::coarse). Each is off until you switch it on.
//! - What stands in for it: [`OnFailure`].
//! - No server on the way at all: [`Share`], a portion of the limit for each instance.
//!
//! # Guarantees
//! In terms of `T`, the server's clock, held back so that it never runs back for one key; windows are half-open, `(t - W, t]`.
//!
//! | id | promise | of |
//! |----|---------|----|
//! | G1 | for every `x`, the units admitted with `T` in `(x - W, x]` are at most `L` | ring, zset, counter |
//! | G2 | a refusal of cost `c` means that at its instant fewer than `c` units were free; `retry_after` is the exact least wait if nobody else comes | ring and zset; counter: up to a bucket, and 1 us for each, too strict |
//! | G3 | two-window: at most `2 L - 1` in a window, and falsely refused at most while the window before was full at its start; GCRA: at most burst + rate x `t` in any `t` | those |
//! | G4 | all limits of a call are charged or none; a refusal and a peek change nothing on the server | all |
//! | G5 | the run of the script is the instant of the decision. A call that ended in a failure was run at most once: never over, perhaps counted in vain | all |
//! | G6 | with leases: for every `x`, the units spent with `T` in `(x - W, x]` are at most `L`, by clocks whose rates differ by less than 1/1,000 (one that stands while its machine is suspended is none); a caller who waited for the call is counted at its run, others when served | ring |
//! | G7 | a cached refusal is one that the server would give too, while nobody resets the key or raises the limit from another instance, and the server's clock does not step forward | all |
//! | G8 | every check ends within the deadline, whatever the server and the network do, and the runtime's own delays | all |
//! | G9 | a key dies within `2 W + hold + 1 s` after its last admission, `W` the longest window it has known (GCRA: once the bucket has drained) | all |
//! | G10 | while every instance is on its own ([`OnFailure::Local`], [`Share`]): at most the sum of the portions, which is `L`; while their number changes, [`change_bound`] | counted by the core's window counter |
//!
//! The proofs stand where the code is: the scripts' headers and the desk of one key (`desk.rs`, with the model that
//! visits every state of small worlds). G1 to G4 are checked against lists that count from the definitions.
//!
//! # Not promised
//! - After a failover that lost `d` grants: up to `d` more in one window. Redis replicates after it has answered, and `WAIT`
//!   inside a script does not wait.
//! - After a restart without persistence, a flush, or an eviction: up to `L` more. Use `maxmemory-policy noeviction`, or a
//!   server of its own: an evicting policy deletes limits, which admits.
//! - After the server's clock stepped forward by `s`, records leave `s` early. After a step back nobody's record is forgotten, and
//!   nothing comes free until the clock is back (GCRA: nor is anything given that was not there).
//! - Going over to [`OnFailure::Local`] and back: up to `2 L` in a window, `L` by the server and `L` by the instances.
//!   What an instance had from the server counts against its portion; what it gave alone is not told to the server afterwards.
//! - Order between callers of different instances; with shared calls, first come first served within one.
//! - After a change of the window ([`Limiter::set_rules`], or a deployment under the old name): a shorter one holds at once; a
//!   longer one holds for what is taken from then on, and looks back as far as units are kept: an old window, or the newest
//!   `limit` units of a ring that is still there. While both windows are asked for, a ring keeps every unit for
//!   both; the other stores keep what the last call's window needs.
//!
//! # Servers
//! All tests pass on Redis 7.0; those of the limiter also on Redis 6.2.5 and 8.2.3 and Valkey 9.1.2, the cluster's on the last two
//! (the test's way of making one is newer than 6.2). What decides is what the scripts use: `TIME` before a write needs
//! effect replication, the default since 5.0 and the only way since 7.0; the commands are of 3.0.2 or older (`ZADD NX`), and
//! Lua's `struct` library of 2.6. So Redis 5, 6.0 and 7.2 and older Valkeys should work too, and KeyDB, a fork of 6; Dragonfly
//! has all of these, and runs scripts on declared keys only, as these are. None of these was run.
//! [`Limiter::verify`] finds out at the start. A connection needs the rights to `EVAL`, `EVALSHA`, `DEL` and, inside scripts,
//! to `TIME`, `GET`, `GETRANGE`, `SETRANGE`, `PEXPIRE` and the sorted set's commands. A proxy that does not allow scripts will not do.
//!
//! # Connections
//! Any asynchronous connection of the `redis` crate that can be cloned: its own settings are TLS, user, password, database. A
//! `ConnectionManager` connects again by itself; made with `new_lazy_with_config` it needs no server at the start. Connections are
//! shared and pipelined. Feature `cluster`: `cluster_client` makes a client that never sends a call twice. A process that forks
//! must make its limiters afterwards: connections do not survive.
//!
//! # Time
//! Microseconds. A window, a hold and a wait are whole microseconds.

mod answer;
mod breaker;
mod builder;
mod call;
#[cfg(feature = "cluster")]
mod cluster;
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
#[cfg(feature = "cluster")]
pub use cluster::cluster_client;
pub use error::{BuildError, Failure, Unavailable};
pub use instances::{Heartbeat, Instances, change_bound, portion};
pub use limiter::Limiter;
pub use share::Share;
pub use stats::{Health, Stats};
pub use store::Store;
