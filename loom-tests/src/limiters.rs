//! The core's limiters, as the harness asks them.

use std::sync::{Mutex, PoisonError};

use tollgate::{Algorithm, Clock, Decision, Lapsed, Manual, Nanos, Pacing, Reason, Rebased, Reservation};
use tollgate_check::{
    Limiter, Verdict,
    sync::{AtomicU64, Ordering::Relaxed},
};

/// The hot path, yes or no, and the look that stores nothing.
pub(crate) struct Hot<A>(pub(crate) A);

/// The call that tells the wait, and the look.
pub(crate) struct Told<A>(pub(crate) A);

/// A queue. A reservation that has to wait is told as a refusal with its wait, a full queue as *never*; so that the
/// harness compares the waits.
pub(crate) struct Queue {
    pub(crate) pacing: Pacing,
    /// `(cost, now)` and the place got for it. A lock of the standard library, which the model does not see: it is
    /// never held across an access.
    pub(crate) places: Mutex<Vec<((u64, u64), Reservation)>>,
}

/// A clock whose source the calls move: see [`Stepping::SHOW`] and its like.
pub(crate) struct Stepping(pub(crate) Rebased<Manual>);

/// A clock that publishes: whoever sees its new time sees what was done before. The calls are those of [`Published`].
#[derive(Default)]
pub(crate) struct Published {
    clock: Manual,
    data: AtomicU64,
}

// === impl Hot ===

impl<A: Algorithm + 'static> Limiter for Hot<A> {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        Verdict::yes_or_no(self.0.try_acquire_at(cost, Nanos::from_nanos(now)))
    }

    fn peek(&self, cost: u64, now: u64) -> Option<Verdict> {
        Some(verdict(self.0.peek_at(cost, Nanos::from_nanos(now))))
    }
}

// === impl Told ===

fn verdict(decision: Decision) -> Verdict {
    match decision {
        Ok(_) => Verdict::Admitted,
        Err(denied) => match denied.reason {
            Reason::Limit { retry_after } => Verdict::Refused { retry_after: Some(retry_after.as_nanos()) },
            _ => Verdict::Never,
        },
    }
}

impl<A: Algorithm + 'static> Limiter for Told<A> {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        verdict(self.0.check_at(cost, Nanos::from_nanos(now)))
    }

    fn peek(&self, cost: u64, now: u64) -> Option<Verdict> {
        Some(verdict(self.0.peek_at(cost, Nanos::from_nanos(now))))
    }
}

// === impl Queue ===

impl Limiter for Queue {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        let Ok(place) = self.pacing.reserve_at(cost, Nanos::from_nanos(now)) else { return Verdict::Never };
        let wait = place.wait().as_nanos();
        self.places.lock().unwrap_or_else(PoisonError::into_inner).push(((cost, now), place));
        if wait == 0 { Verdict::Admitted } else { Verdict::Refused { retry_after: Some(wait) } }
    }

    /// Gives back the place got by the call with this cost and time.
    fn refund(&self, cost: u64, now: u64) -> Option<Verdict> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.iter().position(|(of, _)| *of == (cost, now));
        let Some((_, place)) = place.map(|place| places.remove(place)) else { return Some(Verdict::Never) };
        drop(places);
        Some(match self.pacing.give_back(place, Nanos::from_nanos(now)) {
            Ok(()) => Verdict::Admitted,
            Err(Lapsed::Started) => unreachable!("it is given back at the time it was got"),
            Err(_) => Verdict::Never,
        })
    }
}

// === impl Stepping ===

impl Stepping {
    /// Reads the clock twice: it must not run back, nor show more than the call's time.
    pub(crate) const SHOW: u64 = 1;
    /// Sets the source to the call's time.
    pub(crate) const SET: u64 = 2;
    /// Sets the source to the call's time between two readings: the second must not be before the first.
    pub(crate) const STEP: u64 = 4;
    /// The gaps closed so far must add up to the call's time.
    pub(crate) const OFFSET: u64 = 3;
}

impl Limiter for Stepping {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        let now = Nanos::from_nanos(now);
        match what {
            Self::SHOW => {
                let (first, second) = (self.0.now(), self.0.now());
                assert!(first <= second, "the clock ran back from {first:?} to {second:?}");
                assert!(second <= now, "the clock showed {second:?}, its source never more than {now:?}");
            }
            Self::SET => self.0.source().set(now),
            Self::STEP => {
                let first = self.0.now();
                self.0.source().set(now);
                let second = self.0.now();
                assert!(first <= second, "the clock ran back from {first:?} to {second:?}");
            }
            _ => assert_eq!(self.0.offset(), now, "the gaps closed"),
        }
        Verdict::Admitted
    }
}

// === impl Published ===

impl Published {
    /// Writes the data, then sets the clock to the call's time.
    pub(crate) const SET: u64 = 1;
    /// Writes the data, then moves the clock on by the call's time.
    pub(crate) const ADVANCE: u64 = 2;
    /// Reads the clock, and if it shows the call's time, the data.
    pub(crate) const READ: u64 = 3;
}

impl Limiter for Published {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        let now = Nanos::from_nanos(now);
        if what == Self::READ {
            if self.clock.now() == now {
                assert_eq!(self.data.load(Relaxed), 1, "the time was seen, the data was not");
            }
            return Verdict::Admitted;
        }
        self.data.store(1, Relaxed);
        if what == Self::SET {
            self.clock.set(now)
        } else {
            self.clock.advance(now)
        }
        Verdict::Admitted
    }
}
