//! Waiting for permits: without blocking, on any executor, or by blocking the thread.
//!
//! # What
//! A waiter asks its limiter, and if it is refused sleeps until the time that the refusal names and asks again. It holds
//! nothing meanwhile: no permit, no place in a queue. So a waiter that gives up has nothing to give back, at whatever
//! moment it does, and those behind it lose nothing.
//!
//! # Invariants
//! | id | always                                                              | kept by         | checked by       |
//! |----|---------------------------------------------------------------------|-----------------|------------------|
//! | I1 | `seats` is the number of `Seat`s that live, at most `waiters_max`    | `Seat`          | models *waiting* |
//! | I2 | permits are taken in the call that tells so, by nothing else          | `Waiting::ask`  | models *waiting*, `f050` |
//!
//! # Memory order
//! | id | site                  | order   | pairs with | because                                     |
//! |----|-----------------------|---------|------------|---------------------------------------------|
//! | O1 | `seats`, load         | Relaxed | none       | only the number changed by O2               |
//! | O2 | `seats`, CAS          | Relaxed | none       | nothing is published: a count, and no more  |
//! | O3 | `draws`, addition     | Relaxed | none       | each number is drawn once, in whatever order |
//!
//! # Progress
//! Waiters wait. Each asks again at most as often as its limiter refuses it; none is sure to be admitted before another.

use core::{fmt, future::Future, time::Duration};

use crate::{
    Clock, Denied, Layer, Nanos, Quota,
    sync::{Relaxed, Word},
};
use jitter::Jitter;

/// How much longer waiters sleep than they must.
#[cfg(feature = "std")]
mod jitter {
    use std::hash::{BuildHasher, RandomState};

    use super::{Nanos, Relaxed, Word};

    pub(super) struct Jitter {
        below: Nanos,
        seed: RandomState,
        draws: Word<u64>,
    }

    impl Jitter {
        pub(super) fn new(below: Nanos) -> Self {
            Self { below, seed: RandomState::new(), draws: Word::new(0) }
        }

        /// A random span below the jitter.
        pub(super) fn draw(&self) -> Nanos {
            if self.below == Nanos::ZERO {
                return Nanos::ZERO;
            }
            let drawn = self.draws.fetch_add(1, Relaxed); // O3
            Nanos::from_nanos(self.seed.hash_one(drawn) % self.below.as_nanos())
        }
    }
}

/// Without std there is no source of randomness.
#[cfg(not(feature = "std"))]
mod jitter {
    use super::Nanos;

    pub(super) struct Jitter;

    impl Jitter {
        pub(super) fn new(_below: Nanos) -> Self {
            Self
        }

        pub(super) fn draw(&self) -> Nanos {
            Nanos::ZERO
        }
    }
}

/// How to sleep without blocking the thread: what an executor offers.
///
/// # Examples
/// An executor's sleep is a timer in one line:
/// ```
/// use std::{future::Future, time::Duration};
/// use tollgate::Timer;
///
/// struct MyTimer;
///
/// impl Timer for MyTimer {
///     fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send {
///         async move { /* my_executor::sleep(span).await */ let _ = span; }
///     }
/// }
/// ```
pub trait Timer {
    /// Ends after `span`. If it ends early its waiter asks in vain, and sleeps again.
    fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send;
}

/// How to sleep by blocking.
pub trait Block {
    /// Returns after `span`. If it returns early its waiter asks in vain, and sleeps again.
    fn block(&self, span: Duration);
}

/// Blocks the thread: `std::thread::sleep`.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread;

/// The timer of tokio, inside a runtime with time enabled.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

/// Where callers wait for permits: a clock, a way to sleep, and how many may wait at once.
///
/// It waits for anything that is a [`Layer`]: a limiter, the key of a [`Keyed`](crate::Keyed), several
/// [`Layers`](crate::Layers). The clock must be the one that the limiter's other callers use, the timer should run as fast.
///
/// # Fairness
/// None. A waiter holds no place: when a permit comes free, whoever asks first gets it, be it one that never waited. All who
/// wait for the same permit wake at the same time, and all but one sleep again; with [`jitter`](Waiting::jitter) they wake
/// apart. Where turns matter, [`Pacing`](crate::Pacing) gives each caller its own start.
///
/// # Examples
/// ```
/// # #[cfg(feature = "std")] {
/// use std::time::Duration;
/// use tollgate::{Gcra, Precise, Waiting};
///
/// let bucket = Gcra::builder(1_000, Duration::from_secs(1)).burst(1).build()?;
/// let waiting = Waiting::blocking(Precise::new()).waiters_max(100);
/// for _ in 0..3 {
///     waiting.acquire_timeout(&bucket, 1, Duration::from_secs(60))?;
/// }
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Waiting<C, T> {
    clock: C,
    timer: T,
    waiters_max: u64,
    seats: Word<u64>,
    jitter: Jitter,
}

/// Why a wait ended without a permit. Nothing was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WaitError {
    /// Waiting can not help: the refusal that says so.
    Never(Denied),
    /// The permit comes too late: the refusal that says when.
    Timeout(Denied),
    /// As many callers wait as may.
    Crowded {
        /// How many.
        max: u64,
    },
}

/// One of those who may wait.
struct Seat<'a>(&'a Word<u64>);

// === impl Timer, Block ===

#[cfg(feature = "std")]
impl Block for Thread {
    fn block(&self, span: Duration) {
        std::thread::sleep(span);
    }
}

#[cfg(feature = "tokio")]
impl Timer for Tokio {
    fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(span)
    }
}

// === impl Waiting ===

#[cfg(feature = "std")]
impl<C: Clock> Waiting<C, Thread> {
    /// For callers that block their thread.
    pub fn blocking(clock: C) -> Self {
        Self::new(clock, Thread)
    }
}

impl<C: Clock, T> Waiting<C, T> {
    /// For callers that sleep by `timer`, any number of them.
    pub fn new(clock: C, timer: T) -> Self {
        Self { clock, timer, waiters_max: u64::MAX, seats: Word::new(0), jitter: Jitter::new(Nanos::ZERO) }
    }

    /// Lets at most so many callers wait at once; one more is told [`WaitError::Crowded`]. Those who need not wait pass.
    #[must_use]
    pub fn waiters_max(mut self, waiters: u64) -> Self {
        self.waiters_max = waiters;
        self
    }

    /// Makes each sleep longer by a random span below `jitter`. Needs `std`, for the randomness.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = Jitter::new(jitter.into());
        self
    }

    /// How many callers wait now.
    pub fn waiters(&self) -> u64 {
        self.seats.load(Relaxed) // O1
    }

    /// Asks once: the permits, or how long to sleep before it is worth asking again (I2). Who is to sleep has a seat from then
    /// on, one for all its sleeps.
    fn ask<'a>(
        &'a self,
        limiter: &(impl Layer + ?Sized),
        cost: u64,
        deadline: Nanos,
        seat: &mut Option<Seat<'a>>,
    ) -> Result<Asked, WaitError> {
        let now = self.clock.now();
        let denied = match limiter.decide_at(cost, now) {
            Ok(quota) => return Ok(Asked::Admitted(quota)),
            Err(denied) => denied,
        };
        let Some(wait) = denied.retry_after() else { return Err(WaitError::Never(denied)) };
        let due = denied.quota.at + wait;
        if due > deadline {
            return Err(WaitError::Timeout(denied));
        }
        if seat.is_none() {
            *seat = Some(self.sit()?);
        }
        // Not beyond the deadline, at which it is worth a last question.
        let until = (due + self.jitter.draw()).min(deadline);
        Ok(Asked::Sleep((until - now).into()))
    }

    fn sit(&self) -> Result<Seat<'_>, WaitError> {
        let mut taken = self.seats.load(Relaxed); // O1
        // Lock-free: a round is lost only to another who sits down or stands up.
        loop {
            if taken >= self.waiters_max {
                return Err(WaitError::Crowded { max: self.waiters_max });
            }
            match self.seats.compare_exchange(taken, taken + 1, Relaxed, Relaxed) {
                Ok(_) => return Ok(Seat(&self.seats)), // O2
                Err(other) => taken = other,
            }
        }
    }
}

/// What one question came to.
enum Asked {
    Admitted(Quota),
    Sleep(Duration),
}

impl<C: Clock, T: Timer> Waiting<C, T> {
    /// Takes `cost` permits, all or nothing, as soon as they can be had. Dropping the future ends the wait, and takes
    /// nothing.
    ///
    /// # Errors
    /// [`WaitError::Never`], [`WaitError::Crowded`].
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "tokio")] {
    /// use std::time::Duration;
    /// use tollgate::{Gcra, Precise, Tokio, Waiting};
    ///
    /// let bucket = Gcra::builder(1_000, Duration::from_secs(1)).burst(1).build()?;
    /// let waiting = Waiting::new(Precise::new(), Tokio).jitter(Duration::from_micros(100));
    /// let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// runtime.block_on(async {
    ///     for page in ["a", "b", "c"] {
    ///         waiting.until_ready(&bucket).await?;
    ///         println!("fetching {page}");
    ///     }
    ///     Ok::<(), tollgate::WaitError>(())
    /// })?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn acquire(&self, limiter: &(impl Layer + ?Sized), cost: u64) -> Result<Quota, WaitError> {
        self.acquire_until(limiter, cost, Nanos::from_nanos(u64::MAX)).await
    }

    /// As [`acquire`](Waiting::acquire), but not if it would take longer than `timeout`: then it ends at once, as soon as
    /// that is known.
    ///
    /// # Errors
    /// [`WaitError`].
    pub async fn acquire_within(
        &self,
        limiter: &(impl Layer + ?Sized),
        cost: u64,
        timeout: Duration,
    ) -> Result<Quota, WaitError> {
        self.acquire_until(limiter, cost, self.clock.now() + timeout.into()).await
    }

    /// Takes one permit as soon as it can be had: before each item of a stream.
    ///
    /// # Errors
    /// [`WaitError::Never`], [`WaitError::Crowded`].
    pub async fn until_ready(&self, limiter: &(impl Layer + ?Sized)) -> Result<(), WaitError> {
        self.acquire(limiter, 1).await.map(drop)
    }

    async fn acquire_until(
        &self,
        limiter: &(impl Layer + ?Sized),
        cost: u64,
        deadline: Nanos,
    ) -> Result<Quota, WaitError> {
        let mut seat = None;
        loop {
            match self.ask(limiter, cost, deadline, &mut seat)? {
                Asked::Admitted(quota) => return Ok(quota),
                Asked::Sleep(span) => self.timer.sleep(span).await,
            }
        }
    }
}

impl<C: Clock, T: Block> Waiting<C, T> {
    /// Takes `cost` permits, all or nothing, as soon as they can be had, and blocks the thread till then; but not if it
    /// would take longer than `timeout`: then it returns at once, as soon as that is known. The longest time-out there is means
    /// to wait for as long as it takes.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn acquire_timeout(
        &self,
        limiter: &(impl Layer + ?Sized),
        cost: u64,
        timeout: Duration,
    ) -> Result<Quota, WaitError> {
        let deadline = self.clock.now() + timeout.into();
        let mut seat = None;
        loop {
            match self.ask(limiter, cost, deadline, &mut seat)? {
                Asked::Admitted(quota) => return Ok(quota),
                Asked::Sleep(span) => self.timer.block(span),
            }
        }
    }

    /// Takes one permit as soon as it can be had, and blocks the thread till then: before each item of an iterator.
    ///
    /// # Errors
    /// [`WaitError::Never`], [`WaitError::Crowded`].
    pub fn block_until_ready(&self, limiter: &(impl Layer + ?Sized)) -> Result<(), WaitError> {
        self.acquire_timeout(limiter, 1, Duration::MAX).map(drop)
    }
}

impl<C: fmt::Debug, T: fmt::Debug> fmt::Debug for Waiting<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clock, timer, waiters_max, .. } = self;
        let mut debug = f.debug_struct("Waiting");
        debug.field("clock", clock).field("timer", timer).field("waiters_max", waiters_max);
        debug.finish_non_exhaustive()
    }
}

// === impl WaitError ===

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never(denied) => write!(f, "waiting can not help: {denied}"),
            Self::Timeout(denied) => write!(f, "the permit comes after the time-out: {denied}"),
            Self::Crowded { max } => write!(f, "{max} callers wait already"),
        }
    }
}

impl core::error::Error for WaitError {}

// === impl Seat ===

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut taken = self.0.load(Relaxed); // O1
        while let Err(other) = self.0.compare_exchange(taken, taken - 1, Relaxed, Relaxed) {
            taken = other; // O2
        }
    }
}
