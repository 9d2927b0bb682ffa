//! Permits that can be given back.
//!
//! A [`Permit`] is not `Copy` and is given back by value: once. What a history can take back depends on its kind.

use core::fmt;

use crate::{Denied, Nanos, decision};

/// Permits taken, which the limiter that gave them takes back as long as it can. Dropping it keeps them taken.
///
/// The counter ([`Window::acquire_at`](crate::Window::acquire_at)) and the bucket ([`Gcra::acquire_at`](crate::Gcra::acquire_at))
/// give them. The others take nothing back: to delete an admission in the midst of a log's ring, all later ones would have to
/// move; what a counter holds at the start of each past bucket is final, since others were admitted by it; and of shards, all
/// may be known to be full until a time that a permit given back would bring forward. Nor does a limiter whose rules change
/// ([`Live`](crate::Live)): no model shows that what was taken under one rule can be given back under another.
/// [`Pacing`](crate::Pacing) has [`Reservation`](crate::Reservation)s.
///
/// A reset voids it. It belongs to the limiter that gave it: another one might take it for one of its own.
#[derive(Debug)]
#[must_use = "a permit not given back is used"]
pub struct Permit {
    pub(super) cost: u64,
    /// Up to when it can be given back, in the limiter's own terms.
    pub(super) until: u64,
    /// Resets of the limiter before it.
    pub(super) resets: u64,
}

/// Why something could not be given back: its permits stay charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lapsed {
    /// Others are queued behind the reservation (or the queue was reset since), so that its place can not be closed.
    NotLast,
    /// The start of the reservation has passed.
    Started,
    /// Too late: the counter has gone on to another bucket, the bucket is full again all the same, or the limiter was reset
    /// since.
    Passed,
}

// === impl Permit ===

impl Permit {
    /// How many permits it stands for.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Takes `cost` permits by `take`, which tells up to when they can be given back to a limiter with so many resets.
    pub(super) fn take<H: decision::History>(
        history: &H,
        resets: u64,
        cost: u64,
        now: Nanos,
        take: impl Fn() -> Option<u64>,
    ) -> Result<Self, Denied> {
        use decision::Limits;
        // Lock-free: a round is lost only to another caller that was admitted, or gave permits back, meanwhile.
        loop {
            if now.in_range()
                && (1..=history.limits().ceiling()).contains(&cost)
                && let Some(until) = take()
            {
                return Ok(Self { cost, until, resets });
            }
            decision::peek(history, cost, now)?;
            if cost == 0 {
                return Ok(Self { cost, until: 0, resets });
            }
        }
    }
}

// === impl Lapsed ===

impl fmt::Display for Lapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotLast => "the reservation is not the last of its queue",
            Self::Started => "the start of the reservation has passed",
            Self::Passed => "the time for giving the permit back has passed",
        })
    }
}

impl core::error::Error for Lapsed {}
