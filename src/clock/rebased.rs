//! A caller's clock, made fit for a limiter: a step back becomes a standstill of one instant.
//!
//! # What
//! Shows the source's time plus an offset, and never less than it has shown before. A reading that falls behind
//! the newest time shown by more than the tolerance is a step: the offset grows by the whole gap, so that time
//! goes on from where it stood, at the source's pace. A smaller gap is no step: the newest time holds until the
//! source has caught up. A step forward is trusted.
//!
//! # State
//! | word     | meaning                                                                     |
//! |----------|-----------------------------------------------------------------------------|
//! | `offset` | added to the source's readings; the sum of the gaps closed so far            |
//! | `newest` | the newest time shown                                                       |
//!
//! # Invariants
//! | id | always                                                             | kept by                        | checked by |
//! |----|--------------------------------------------------------------------|--------------------------------|------------|
//! | I1 | `newest` never decreases, and is at most [`Nanos::MAX`]             | `Rebased::reached`             | threads_never_see_time_run_back |
//! | I2 | `offset` strictly grows, and is at most [`Nanos::MAX`]              | the CAS in `now`: offset + gap = newest - reading | each_gap_is_closed_once |
//! | I3 | a reading is taken after the newest time that it is compared with   | the order of reads in `now`, O2 | a_caller_that_sleeps_on_its_reading_is_no_step |
//! | I4 | a gap is closed once, however many callers notice it                | CAS from the offset read first | each_gap_is_closed_once |
//!
//! I3 is what tells a step from a caller that slept between reading the source and using the reading: the sleeper
//! compares with a newest time from before its sleep.
//!
//! # Linearization points
//! L1 a time not shown before: the CAS on `newest`. L2 a time that holds: the read of `newest`.
//!
//! # Memory order
//! | id | site                | order   | pairs with | because                                                          |
//! |----|---------------------|---------|------------|------------------------------------------------------------------|
//! | O1 | offset, load        | Acquire | O3         | a reading taken under an offset is from after the step it closed  |
//! | O2 | newest, first load  | Acquire | O4         | I3: the source is read after the reading behind the newest time   |
//! | O3 | offset CAS          | Release | O1         | as O1                                                            |
//! | O4 | newest CAS          | Release | O2         | as O2                                                            |
//! | O5 | newest, failed CAS  | Relaxed | none       | only compared and shown                                          |
//!
//! # Progress
//! Lock-free: a CAS lost on `offset` means that another caller closed a gap, one lost on `newest` that another
//! showed a later time.

use core::{fmt, time::Duration};

use crate::{
    Clock, Nanos,
    sync::{Acquire, Relaxed, Release, Word},
};

/// A clock of the caller's that never runs back and does not stay behind after a step back.
///
/// A limiter judges a time older than its newest recorded one at the newest, so after a step back nothing frees
/// until the clock has caught up: an hour, if a wall clock was an hour ahead. This clock closes a gap that is
/// larger than `tolerance`: the time shown stands at the newest for that one reading and then runs on at the
/// source's pace. A smaller gap is ridden out by holding the newest time.
///
/// Whatever the source does, then: time shown never decreases; a stretch in which the source runs on by `x` without
/// stepping shows at most `x`, and at least `x` less the tolerance. So a step back mints no permit and locks a
/// caller out for at most one window and the tolerance, on the source's pace. A step forward can not be told from a
/// long silence: it is trusted, and frees permits early by its size.
///
/// Choose a tolerance above what readings of two threads may differ by, and for a source that ticks, at least one
/// tick: a difference beyond it is taken for a step. A tolerance of [`Duration::MAX`] only ever holds.
///
/// A reading that comes out above [`Nanos::MAX`] is shown as it is, for a limiter to refuse, and not remembered.
///
/// # Cost
/// The source's reading, two loads, and a CAS if the time is new. Lock-free.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, Manual, Nanos, Rebased};
///
/// let clock = Rebased::new(Manual::at(Nanos::from_secs(100)), Duration::from_millis(5));
/// assert_eq!(clock.now(), Nanos::from_secs(100));
///
/// clock.source().set(Nanos::from_secs(89)); // someone set the machine's clock
/// assert_eq!(clock.now(), Nanos::from_secs(100));
/// clock.source().advance(Duration::from_secs(1));
/// assert_eq!(clock.now(), Nanos::from_secs(101));
/// assert_eq!(clock.offset(), Nanos::from_secs(11));
/// ```
pub struct Rebased<C> {
    source: C,
    tolerance: Nanos,
    offset: Word<u64>,
    newest: Word<u64>,
}

// === impl Rebased ===

impl<C: Clock> Rebased<C> {
    /// Shows `source`, and closes any gap larger than `tolerance`.
    pub fn new(source: C, tolerance: Duration) -> Self {
        Self { source, tolerance: tolerance.into(), offset: Word::new(0), newest: Word::new(0) }
    }

    /// How far the time shown is ahead of the source: the sum of the gaps closed so far.
    pub fn offset(&self) -> Nanos {
        Nanos::from_nanos(self.offset.load(Acquire)) // O1
    }

    /// The clock behind this one.
    pub fn source(&self) -> &C {
        &self.source
    }

    /// Gives the clock behind this one back.
    pub fn into_source(self) -> C {
        self.source
    }

    /// Shows `time`, or the newest time if that is later; `newest` is the last value known of it.
    #[inline]
    fn reached(&self, time: Nanos, mut newest: Nanos) -> Nanos {
        while newest < time {
            let (from, to) = (newest.as_nanos(), time.as_nanos());
            match self.newest.compare_exchange_weak(from, to, Release, Relaxed) {
                // O4, O5
                Ok(_) => return time,                              // L1
                Err(actual) => newest = Nanos::from_nanos(actual), // L2
            }
        }
        newest
    }
}

impl<C: Clock> Clock for Rebased<C> {
    #[inline]
    fn now(&self) -> Nanos {
        loop {
            let offset = self.offset(); // O1
            let newest = Nanos::from_nanos(self.newest.load(Acquire)); // O2, L2
            let time = self.source.now() + offset;
            if !time.in_range() {
                return time;
            }
            let gap = newest - time;
            if gap <= self.tolerance {
                return self.reached(time, newest);
            }
            let (from, to) = (offset.as_nanos(), (offset + gap).as_nanos());
            if self.offset.compare_exchange(from, to, Release, Relaxed).is_ok() {
                // O3
                return newest;
            }
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for Rebased<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, tolerance, .. } = self;
        f.debug_struct("Rebased")
            .field("source", source)
            .field("tolerance", tolerance)
            .finish_non_exhaustive()
    }
}
