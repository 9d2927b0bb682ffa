//! A cached time that a thread keeps fresh, trusted only while it is known to be kept fresh.
//!
//! # What
//! quanta keeps one cached time per process. Its `recent()` tells nobody whether the upkeep thread lives, how often
//! that thread writes, or who started it; a forked child inherits the cached time and not the thread. So the word
//! `MODE` says from which time on the cached one may be used, and every reading compares the two: two loads and a
//! branch. Whenever nothing may be trusted `MODE` lies above all times, and the precise clock is read.
//!
//! # State
//! | `MODE`          | a reading                                                                   |
//! |-----------------|-----------------------------------------------------------------------------|
//! | `from`          | the cached time if it is at least `from`, else the precise one, at most `from` |
//! | `HELD + from`   | held: the precise time, at most `from`                                      |
//! | `PRECISE`       | the precise time                                                            |
//! | `FORKED`        | the precise time, for the rest of this process                              |
//!
//! `RUNNING` holds the upkeep and the number of guards; whoever changes `MODE` holds its lock, but for the atfork
//! handler of a child, where nobody else runs.
//!
//! # Invariants
//! | id | always                                                                   | kept by            | checked by |
//! |----|--------------------------------------------------------------------------|--------------------|------------|
//! | I1 | no time shown is older than one shown before                             | below              | time_never_runs_back_while_guards_come_and_go |
//! | I2 | a cached time is shown only if an upkeep of ours wrote it                | `MODE`, O1 with O2 | a_foreign_upkeep_is_reported_and_not_trusted |
//! | I3 | a forked child never touches a lock or a thread that only its parent has | `after_fork`       | tests/fork.rs |
//!
//! I1, from precise to cached: a late reader may still show a precise time, which is newer than the cached one. So
//! `start` first picks `from` in the near future and holds (`HELD + from`): nothing shown passes it. A reader that
//! found `PRECISE` looks again after its reading; found unchanged, that reading is from before the hold, and `start`
//! makes sure that the hold came well before `from` (else it picks a later one). Only then may the cached time be
//! used, and only once it has reached `from` itself. From cached to precise there is nothing to do: a cached time
//! is an older reading of the precise clock. This stands on the precise clock being one for all processors.
//!
//! # Memory order
//! | id | site                     | order   | pairs with | because                                                        |
//! |----|--------------------------|---------|------------|----------------------------------------------------------------|
//! | O1 | cached time, load        | Acquire (quanta) | O2, by quanta's store | whoever sees a time written by the next upkeep sees at O3 that this one has ended |
//! | O2 | `MODE`, store            | Release | O3, O4     | the end of an upkeep is seen before anything of the next one    |
//! | O3 | `MODE`, reader           | Relaxed | O2         | O1, before it, acquires                                        |
//! | O4 | `MODE`, others           | Acquire | O2         | as O2                                                          |
//! | O5 | `MODE`, the hold         | SeqCst  | O6         | a full barrier before the clock is read: half the margin covers what remains |
//! | O6 | `MODE`, after a reading  | Acquire | O5         | a reading is kept only if no hold was seen after it             |
//! | O7 | `ATFORK`                 | Release / Acquire | itself | the handler is registered before a lock is taken               |
//!
//! # Progress
//! Reading is lock-free: a round is lost only to a guard that is being started. Starting and dropping guards takes
//! a lock, and waits for the upkeep thread to end.

use std::{
    fmt, io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crossbeam_utils::CachePadded;

use crate::{
    Clock, Nanos, Precise,
    sync::{Acquire, Ordering::SeqCst, Relaxed, Release, Word, word},
};

/// The finest resolution. A sleeping thread is not woken much more often than every 50 microseconds.
const RESOLUTION_MIN: Duration = Duration::from_micros(1);
/// The coarsest resolution: dropping the last guard waits as long.
const RESOLUTION_MAX: Duration = Duration::from_secs(1);

/// A clock that reads a cached time while somebody pays for keeping it fresh.
///
/// [`Coarse::start`] starts a thread that writes the time down once per resolution; while a guard that it returned
/// lives, a reading is two loads. Without one, every reading is that of [`Precise`]; both have the same zero. The
/// time shown never runs back, also across such a change. Without a guard no thread runs.
///
/// # What is not promised
/// A bound on how stale the time is: the thread sleeps for the resolution *at least*, and a loaded machine may not
/// run it for long. [`Coarse::staleness`] measures it. A staleness `s` means that a limit of `L` per window `W` holds
/// as `L` per `W - s` in real time; keep it below the width of a bucket.
///
/// The cached time is quanta's, one per process:
/// - If other code has started quanta's upkeep, at whatever interval, [`Coarse::start`] reports
///   [`CoarseError::Foreign`], and this clock stays precise.
/// - Code that calls `quanta::set_recent` while a guard lives sets the time of this clock too.
/// - In a forked child the thread does not exist. The child is noticed (`pthread_atfork`), its clock is precise from
///   then on, and its copies of the guards do nothing. `_Fork`, or a raw `clone` system call, is not noticed: the
///   time would stand still.
///
/// # Cost
/// Two loads and a compare; without a guard, two more loads and the precise clock.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, Coarse, Limiter, Log};
///
/// let guard = Coarse::start(Duration::from_millis(1))?;
/// let limiter = Limiter::new(Log::builder(1, Duration::from_secs(60)).build()?, guard.clock());
/// assert!(limiter.try_acquire());
/// assert!(!limiter.try_acquire());
///
/// let before = limiter.clock().now();
/// drop(guard); // from here on the clock is precise
/// assert!(limiter.clock().now() >= before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Coarse {
    precise: Precise,
}

/// Keeps the cached time of [`Coarse`] fresh while it lives.
///
/// The thread ends with the last guard, whose drop waits for it: about one resolution. In a forked child a guard
/// does nothing.
#[derive(Debug)]
#[must_use = "the cached time is used only while a guard lives"]
pub struct CoarseGuard {
    clock: Coarse,
}

/// Why no cached time is kept. [`Coarse`] reads the precise clock instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoarseError {
    /// The resolution was too fine or too coarse.
    Resolution {
        /// The resolution asked for.
        got: Duration,
        /// The finest one.
        min: Duration,
        /// The coarsest one.
        max: Duration,
    },
    /// A guard with a coarser resolution lives.
    Running {
        /// The resolution asked for.
        got: Duration,
        /// The resolution in use.
        running: Duration,
    },
    /// Other code in this process has started quanta's upkeep, at an interval of its own.
    Foreign,
    /// This process was forked while a guard lived: quanta believes for ever that its upkeep runs.
    Forked,
    /// The system gave no thread, or did not register the handler that notices a fork.
    System(io::ErrorKind),
}

word! {
    /// How time is read; the table is in the module's header.
    Mode
}

/// Read by every call and hardly ever written: on a line that no neighbour's writes take away.
static MODE: CachePadded<Word<Mode>> = CachePadded::new(Word::new(Mode::PRECISE));
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// The upkeep that the living guards share.
struct Running {
    guards: usize,
    resolution: Duration,
    /// Dropped last of all: stops the thread and waits for it.
    _upkeep: quanta::Handle,
}

// === impl Coarse ===

impl Coarse {
    /// The clock, with no claim on a cached time: it is used while somebody holds a guard.
    pub fn new() -> Self {
        Self { precise: Precise::new() }
    }

    /// Keeps the cached time fresh, every `resolution` (1 microsecond to 1 second), until the guard is dropped.
    ///
    /// Further guards share the thread of the first and its resolution; theirs may be the same or coarser.
    ///
    /// # Errors
    /// [`CoarseError`], each kind with its reason. The clock works all the same, and is precise.
    ///
    /// # Cost
    /// A thread, for the first guard. Up to about a millisecond passes until the cached time is used.
    pub fn start(resolution: Duration) -> Result<CoarseGuard, CoarseError> {
        let (min, max) = (RESOLUTION_MIN, RESOLUTION_MAX);
        if !(min..=max).contains(&resolution) {
            return Err(CoarseError::Resolution { got: resolution, min, max });
        }
        let clock = Self::new();
        notice_forks()?;
        if forked() {
            return Err(CoarseError::Forked); // I3
        }
        let mut slot = running();
        match &mut *slot {
            Some(running) if resolution < running.resolution => {
                return Err(CoarseError::Running { got: resolution, running: running.resolution });
            }
            Some(running) => running.guards += 1,
            None => {
                let upkeep = quanta::Upkeep::new_with_clock(resolution, clock.precise.quanta().clone());
                let upkeep = upkeep.start().map_err(|error| match error {
                    quanta::Error::UpkeepRunning => CoarseError::Foreign,
                    quanta::Error::FailedToSpawnUpkeepThread(error) => CoarseError::System(error.kind()),
                })?;
                *slot = Some(Running { guards: 1, resolution, _upkeep: upkeep });
                trust_cached(clock.precise);
            }
        }
        Ok(CoarseGuard { clock })
    }

    /// Whether the time shown is the cached one at this moment.
    pub fn is_cached(&self) -> bool {
        MODE.load(Acquire).trusts(self.cached()) // O4
    }

    /// How far the time shown is behind the precise time at this moment.
    ///
    /// # Cost
    /// A reading of each clock.
    pub fn staleness(&self) -> Nanos {
        let shown = self.now();
        self.precise.now() - shown
    }

    /// quanta's cached time; zero if there never was one.
    #[inline]
    fn cached(&self) -> Nanos {
        self.precise.since_zero(self.precise.quanta().recent()) // O1
    }

    /// The precise time, held at the time from which on the cached one is used.
    #[inline(never)]
    fn uncached(&self) -> Nanos {
        loop {
            let mode = MODE.load(Acquire); // O4
            let precise = self.precise.now();
            if let Some(from) = mode.from() {
                return precise.min(from);
            }
            if MODE.load(Acquire) == mode {
                // O6
                return precise;
            }
        }
    }
}

impl Clock for Coarse {
    #[inline]
    fn now(&self) -> Nanos {
        let cached = self.cached(); // O1
        if MODE.load(Relaxed).trusts(cached) { cached } else { self.uncached() } // O3
    }
}

impl Default for Coarse {
    fn default() -> Self {
        Self::new()
    }
}

// === impl CoarseGuard ===

impl CoarseGuard {
    /// The clock that this guard keeps fresh.
    pub fn clock(&self) -> Coarse {
        self.clock
    }
}

impl Drop for CoarseGuard {
    fn drop(&mut self) {
        if forked() {
            return; // I3
        }
        let mut slot = running();
        if let Some(running) = &mut *slot {
            running.guards -= 1;
            if running.guards == 0 {
                MODE.store(Mode::PRECISE, Release); // O2
                *slot = None;
            }
        }
    }
}

// === impl CoarseError ===

impl fmt::Display for CoarseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Resolution { got, min, max } => {
                write!(f, "resolution {got:?} is not between {min:?} and {max:?}")
            }
            Self::Running { got, running } => {
                write!(f, "resolution {got:?} is finer than {running:?}, which is in use")
            }
            Self::Foreign => {
                write!(f, "other code runs quanta's upkeep in this process, at an interval of its own")
            }
            Self::Forked => write!(f, "this process was forked from one that kept a coarse time"),
            Self::System(kind) => write!(f, "no thread or fork handler: {kind}"),
        }
    }
}

impl std::error::Error for CoarseError {}

// === impl Mode ===

impl Mode {
    const PRECISE: Self = Self(u64::MAX);
    const FORKED: Self = Self(u64::MAX - 1);
    /// Above every time, so that one compare tells whether a cached time may be used.
    const HELD: u64 = 1 << 63;

    /// Cached times from `from` on.
    const fn cached(from: Nanos) -> Self {
        Self(from.as_nanos())
    }

    /// No cached time yet, and no precise one later than `from`.
    const fn held(from: Nanos) -> Self {
        Self(Self::HELD | from.as_nanos())
    }

    /// Whether this cached time may be shown.
    #[inline]
    const fn trusts(self, cached: Nanos) -> bool {
        cached.as_nanos() >= self.0
    }

    /// The latest precise time that may be shown, if there is one.
    fn from(self) -> Option<Nanos> {
        (self != Self::PRECISE && self != Self::FORKED).then_some(Nanos::from_nanos(self.0 & !Self::HELD))
    }
}

// === starting, and forks ===

fn running() -> MutexGuard<'static, Option<Running>> {
    // Nothing panics under this lock; if something did, the state would still be whole.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forked() -> bool {
    MODE.load(Acquire) == Mode::FORKED // O4
}

/// Lets the cached time, which is fresh now, be shown from some near time on (I1).
fn trust_cached(clock: Precise) {
    let mut margin = Nanos::from_millis(1);
    loop {
        let now = clock.now();
        // No overflow into the flag: a round that fails has taken half its margin.
        let from = now + margin + margin;
        MODE.store(Mode::held(from), SeqCst); // O5
        if clock.now() <= now + margin {
            MODE.store(Mode::cached(from), Release); // O2
            return;
        }
        margin = margin + margin;
    }
}

/// Has every child that is forked from here on call [`after_fork`].
#[cfg(unix)]
fn notice_forks() -> Result<(), CoarseError> {
    /// 1 once the handler is registered. Racing first callers may each register it, which does no harm; waiting for
    /// one another could, in a child of one of them.
    static ATFORK: Word<u64> = Word::new(0);

    if ATFORK.load(Acquire) == 1 {
        // O7
        return Ok(());
    }
    // SAFETY: contract of pthread_atfork: `after_fork` may run in a child of any thread, and neither waits,
    // allocates nor unwinds.
    let status = unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
    if status != 0 {
        return Err(CoarseError::System(io::Error::from_raw_os_error(status).kind()));
    }
    ATFORK.store(1, Release); // O7
    Ok(())
}

#[cfg(not(unix))]
fn notice_forks() -> Result<(), CoarseError> {
    Ok(())
}

/// In a child: if a guard lived, or somebody was about to start or drop one, that thread and its lock are the
/// parent's. Nobody here may touch either again.
#[cfg(unix)]
unsafe extern "C" fn after_fork() {
    let idle = RUNNING.try_lock().is_ok_and(|running| running.is_none());
    if !idle {
        MODE.store(Mode::FORKED, Release); // O2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_time_from_the_stated_one_on_is_trusted() {
        let (from, one) = (Nanos::from_secs(9), Nanos::from_nanos(1));
        for mode in [Mode::PRECISE, Mode::FORKED, Mode::held(from), Mode::held(Nanos::ZERO)] {
            assert!(!mode.trusts(Nanos::ZERO) && !mode.trusts(from) && !mode.trusts(Nanos::MAX), "{mode:?}");
        }
        let mode = Mode::cached(from);
        assert!(!mode.trusts(Nanos::ZERO) && !mode.trusts(from - one));
        assert!(mode.trusts(from) && mode.trusts(Nanos::MAX));
    }

    #[test]
    fn a_precise_time_is_held_only_where_a_cached_one_may_follow() {
        for from in [Nanos::ZERO, Nanos::from_secs(9), Nanos::MAX] {
            assert_eq!(Mode::held(from).from(), Some(from));
            assert_eq!(Mode::cached(from).from(), Some(from));
        }
        assert_eq!(Mode::PRECISE.from(), None);
        assert_eq!(Mode::FORKED.from(), None);
    }
}
