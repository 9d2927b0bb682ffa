//! Model-checks a concurrent rate limiter of your own and shows the interleaving that breaks it.
//!
//! You write one trait impl; the checker runs your limiter's real code in every interleaving of a few threads (up to a
//! bound on preemptions, or all of them), with every value that the memory model lets a load see, and holds each
//! answer to a sequential oracle in which **time is an argument**. What comes out is one of three:
//!
//! * **Pass**, with the number of executions and whether they were all there are. A bounded run is never called a proof.
//! * **Fail**: the broken promise in words, the calls and their answers, the interleaving with one line for each atomic
//!   access, the fewest preemptions that show it, and how to see it again.
//! * **Inconclusive**, and why.
//!
//! The exploration is [loom]'s. This crate adds the oracles, scenarios in which time moves, the search for an order
//! of the calls, frozen threads, the trace, and weakened memory orders.
//!
//! [loom]: https://docs.rs/loom
//!
//! # From "I have a limiter" to "this is its bug"
//! ## 1. Build it on a door
//! The model must see every atomic access and every lock, so your limiter takes them from [`sync`]. To begin with, depend on
//! this crate and use them directly: without the cfg it has no dependencies, and its atomics are those of `std`.
//! ```toml
//! [dependencies]
//! tollgate-check = "0.1"
//! ```
//! Once the limiter ships, that door becomes a module of a few lines, and only builds with the cfg depend on this
//! crate. The `impl Limiter` and the tests then stand under `#[cfg(all(test, tollgate_loom))]`, since without the cfg
//! there is no `tollgate_check` to name:
//! ```toml
//! [target.'cfg(tollgate_loom)'.dependencies]
//! tollgate-check = "0.1"
//!
//! [lints.rust]
//! unexpected_cfgs = { level = "warn", check-cfg = ['cfg(tollgate_loom)'] }
//! ```
//! ```text
//! // sync.rs
//! #[cfg(tollgate_loom)]
//! pub(crate) use tollgate_check::sync::{AtomicU64, Ordering, spin_loop};
//! #[cfg(not(tollgate_loom))]
//! pub(crate) use std::{hint::spin_loop, sync::atomic::{AtomicU64, Ordering}};
//! ```
//! Under the model `AtomicU64::new` is not `const`, words exist only inside a check, and a few methods are missing;
//! [`sync`] lists what there is. Time must be an argument: a limiter that reads a clock inside cannot be replayed.
//!
//! ## 2. Implement the trait
//! ```
//! use tollgate_check::{Limiter, Verdict, sync::{AtomicExt, AtomicU64, Ordering}};
//!
//! /// One permit in any 10 ticks.
//! struct OnePerTen {
//!     free_at: AtomicU64,
//! }
//!
//! impl OnePerTen {
//!     fn new() -> Self {
//!         Self { free_at: AtomicU64::new(0).named("free_at") }
//!     }
//! }
//!
//! impl Limiter for OnePerTen {
//!     fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
//!         if cost > 1 {
//!             return Verdict::Never;
//!         }
//!         let free_at = self.free_at.load(Ordering::SeqCst);
//!         if now < free_at {
//!             return Verdict::Refused { retry_after: None };
//!         }
//!         self.free_at.store(now + 10, Ordering::SeqCst);
//!         Verdict::Admitted
//!     }
//! }
//! ```
//! [`AtomicExt::named`](sync::AtomicExt::named) is only for reading the trace. A refusal may tell how long to wait; if
//! it does, that is checked as well. Times start anywhere, 0 among them, and may go back from one call to the next:
//! the standard scenarios try both.
//!
//! ## 3. Say what it promises, and run
//! | your limiter | spec for `limit` in `window` |
//! |---|---|
//! | sliding log | `Spec::exact(&[(limit, window)])` |
//! | fixed window | `Spec::counter(&[(limit, window)], 1, Coverage::Textbook)` |
//! | sliding window of `n` buckets | `Spec::counter(&[(limit, window)], n, Coverage::Full)` |
//! | GCRA | `Spec::gcra(limit, window, burst)` |
//! | token bucket that stores its last refill | as GCRA if time never goes back, else see [`Spec::gcra`] |
//! | anything else | [`Spec::oracle`] |
//!
//! ```
//! # use tollgate_check::{Limiter, Verdict, sync::{AtomicU64, Ordering}};
//! # struct OnePerTen(AtomicU64);
//! # impl OnePerTen { fn new() -> Self { Self(AtomicU64::new(0)) } }
//! # impl Limiter for OnePerTen {
//! #     fn try_acquire(&self, _: u64, now: u64) -> Verdict {
//! #         Verdict::yes_or_no(self.0.fetch_max(now + 10, Ordering::SeqCst) <= now)
//! #     }
//! # }
//! use tollgate_check::{Scenario, Spec, Suite, acquire, check};
//!
//! let report = check(OnePerTen::new, Spec::exact(&[(1, 10)]))
//!     .name("one per ten")
//!     .scenarios(Suite::standard(1, 10))
//!     .scenario(Scenario::new("mine").thread([acquire(1, 5)]).thread([acquire(1, 5)]))
//!     .bound(2)
//!     .run();
//! println!("{report}"); // In a test: report.expect_pass();
//! ```
//! ```sh
//! RUSTFLAGS="--cfg tollgate_loom" CARGO_TARGET_DIR=target/loom cargo test --release -- --nocapture
//! ```
//! The target folder is one of its own, since other flags rebuild everything. Cargo hides what a test prints unless it
//! fails: a test that only prints is `ok` whatever the verdict, so end it with
//! [`expect_pass`](Report::expect_pass), and pass `--nocapture` to see the report of a pass.
//!
//! Without the cfg the same test runs real threads for a moment and is *inconclusive* at best: it proves nothing. Cargo
//! calls it `ok` all the same, since `expect_pass` then panics only if a promise was broken.
//!
//! ## 4. Read the report
//! ```text
//! BROKEN: never over the limit, in "last permit"
//!   2 permits were admitted; no order of the calls allows that under "exact: at most 1 in any window of 10"
//!   needs 1 preemption
//!
//!   calls, in the order in which they began
//!     T1 acquire(1, t=100)         admitted
//!     T2 acquire(1, t=100)         admitted
//!
//!   interleaving
//!     T1  acquire(1, t=100) {
//!     T1    limiter.rs:20          free_at.load(SeqCst)  saw 0
//!
//!     T2  acquire(1, t=100) {
//!     T2    limiter.rs:20          free_at.load(SeqCst)  saw 0
//!     T2    limiter.rs:24          free_at.store(110, SeqCst)
//!     T2  } admitted
//!
//!     T1    limiter.rs:24          free_at.store(110, SeqCst)
//!     T1  } admitted
//! ```
//! Read the interleaving from the top; a blank line is a switch of threads. Here T1 looked, T2 looked and took, and T1
//! took what it had seen: the load and the store must become one compare-and-swap. `--` is the thread that runs the
//! setup and what comes after; `STALE` marks a load that saw a value which had been replaced, which only a missing
//! release or acquire allows. Where a word packs several values, [`Check::describe`] gives them names.
//!
//! The table above it has a row for each scenario, and one more for each thread that was frozen in it (threads that
//! make the same calls count as one; a scenario that already failed with all threads running is not run frozen).
//! `steps` and `alone` are the most atomic steps of a call among others and alone. The same bug tends to break many
//! rows, so each broken promise is printed once; [`Report::failures`] has them all.
//!
//! To see a failure again, paste the line under `replay` and put your own constructor and [`Spec`] for the two dots,
//! with the settings of the run (weakenings, `max_steps`). The number holds as long as the code does: a change to the
//! limiter's accesses numbers the executions anew.
//!
//! # What is checked
//! | promise | how |
//! |---|---|
//! | never over the limit | the admitted calls alone must have an order that the oracle allows |
//! | never falsely refused | so must all calls: at one instant inside a refused call there was no room |
//! | retry-after is right | the oracle names the wait at that same instant |
//! | lock-free | each thread is frozen for good after each of its atomic steps in turn; every other call must end within a fixed number of its own steps |
//! | a dead thread loses at most its own permit | the frozen call counts as made once or not at all, and what is called afterwards must fit |
//! | bounded when alone | steps of the calls in setup and after |
//! | no data race | [`sync::UnsafeCell`] |
//! | no panic | a call that panics |
//!
//! The order of the calls is by default that of *happens-before*; see [`Order`]. Specs are [`Spec::exact`],
//! [`Spec::counter`], [`Spec::gcra`], and [`Spec::oracle`] for a sequential limiter of your own, which is one trait,
//! [`Oracle`], with a state and a list of right answers.
//!
//! A limiter that waits for others (a lock, a flag) is by this not lock-free, and fails. To check its answers alone,
//! leave the frozen threads out with [`Check::frozen`]`(None)`. A lock is [`sync::Mutex`], of which the checker knows who
//! waits for it. Any other wait calls [`sync::spin_loop`], without which it is taken for a call that does not end; it
//! multiplies executions: take two threads rather than three, or less than the two minutes that [`Check::max_time`] gives
//! each scenario and bound.
//!
//! # How far to go
//! Two or three threads with one or two calls each. Executions grow exponentially with both, so add scenarios rather
//! than calls. Bound 2 finds nearly everything in seconds; 3 takes minutes. [`Check::exhaustive`] tries all
//! interleavings after that, which ends for small scenarios. What can wrap or collide in your limiter (a lap, a tag, a
//! counter) should be made small under the cfg, so that it does.
//!
//! # Memory orders
//! [`Check::run_weakened`] runs everything once for each memory order that could be weaker. An order that nobody
//! misses is stronger than needed, or a scenario is missing. A wrapper around the atomics marks its methods
//! `#[track_caller]`, so that each site is a line of the algorithm.
//!
//! # What it can not see
//! * Loom explores no *load buffering* (a load that sees a store which comes later), and sees at most the last seven
//!   stores of a word. Orders that only matter there must be argued.
//! * Loom takes `SeqCst` accesses for `AcqRel`. Executions in which a SeqCst load misses a SeqCst store are dropped
//!   here, which removes most false alarms (and might hide an execution that mixes weaker accesses to the same word in);
//!   a proof that rests on SeqCst is still better rewritten.
//! * Loom remembers of each word the last access alone when it looks for races to turn round, so that a load hides the load
//!   of another thread before it, and by itself it never tries `T2 cas` first after `T1 load, T2 load, T2 cas`. Words
//!   from [`sync`] have shadows that show it those races; a canary that loom alone lets live says so in every run.
//! * Loom can tear a read-modify-write: after `T2 cas(1 => 0)`, `T1 store(2)`, it may let T1's own `swap` see the 0,
//!   as if its store had come between the two halves of T2's cas. No machine does that, at any order, and such
//!   executions are dropped here.
//! * `compare_exchange_weak` never fails spuriously.
//! * Stores become visible in finite time. Executions in which a call sees old values without end, or waits by
//!   [`sync::spin_loop`] without end though nobody is frozen, are given up; the report counts them, and such a row is
//!   never exhaustive.
//! * What does not come from [`sync`]. A limiter of which the checker sees no access at all is inconclusive; one that keeps
//!   part of its state in atomics, locks or `static`s of `std` is judged as if nobody could come between two accesses
//!   of that part, and a lock of `std` hands nothing on. One that is held across an access hangs: after ten seconds the
//!   run is inconclusive.
//!   All threads of a model are one thread of the system's, so thread-locals and the ids of threads are the same for
//!   all of them: who picks a shard by those makes the pick a part of the scenario, by the cost or the time. Clocks and
//!   random numbers make executions that can not be repeated, which is inconclusive at best.
//! * Each [`run`](Check::run) first runs [`canaries`], limiters that must fail. If one lives, the run is void.
//!
//! # Examples
//! In `examples/`, each with its report in `tests/golden/`: a check-then-act log, a bucket array whose reset races, a
//! load/store token bucket; a ring with head and count in one word and the slot stored after it; a sharded counter; and
//! a ring that passes.

pub mod sync;

mod canary;
mod check;
mod engine;
mod history;
mod limiter;
mod report;
#[cfg(tollgate_loom)]
mod rt;
mod scenario;
mod search;
mod spec;
mod trace;

pub use canary::canaries;
pub use check::{Check, check};
pub use history::{History, Order, Record};
pub use limiter::{Call, Limiter, Verdict, When, acquire, acquire_by_clock, peek, reconfigure, refund};
pub use report::{Failure, Outcome, Report, Row};
pub use scenario::{Scenario, Suite, THREADS_MAX};
pub use search::{Oracle, Property, Question};
pub use spec::{Coverage, Spec};
pub use trace::{Access, Effect, Event, Op, Site, SiteOrder, Weakening};
