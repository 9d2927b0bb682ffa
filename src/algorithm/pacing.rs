//! The leaky bucket as a queue: it lets permits start one interval apart, and says how long each has to wait.
//!
//! # What
//! One permit is in service for an interval, up to `queue` more wait behind it. A queue with a place in service
//! is a [`Gcra`] with a burst of `queue + 1`: what that bucket has yet to drain is the wait of whoever comes
//! next. So the word, its invariants, linearization points, memory orders and progress are those of
//! [`gcra`](super::gcra); this file reads the same word as a queue.
//!
//! # Invariants
//! | id | always                                                        | kept by                    | checked by            |
//! |----|---------------------------------------------------------------|----------------------------|-----------------------|
//! | I1 | starts are an interval times the cost apart                   | the meter's charge         | properties            |
//! | I2 | only the newest reservation is given back, and only once      | `Gcra::undo`; no `Copy`    | f070, f071            |
//! | I3 | a reservation from before a reset is never given back         | `resets`                   | a_reset_lets_reservations_lapse |

use core::time::Duration;

use super::{
    Gcra, GcraConfig, Lapsed, algorithm,
    gcra::{GcraLook, Step},
};
use crate::{
    ConfigError, Denied, Nanos, Rule,
    decision::{self, History, Limits, Look},
};

/// A leaky bucket as a queue: permits start at a steady rate, and a caller that comes early is told to wait.
///
/// [`reserve_at`](Pacing::reserve_at) takes a place in the queue and answers the wait until its start; it refuses
/// only once the queue is full. Of the permits that come at one moment to an idle limiter the first starts at
/// once, `queue` more wait, the rest are refused. A cost of `n` is one job that is in service for `n` intervals.
///
/// Through [`Algorithm`](crate::Algorithm) it admits what can start without a wait, and nothing else: it either
/// has room for any cost up to `queue + 1`, or none until everything has been served. For a burst that passes
/// without any delay take a [`Gcra`].
///
/// **Accuracy.** Starts are at least the interval times the cost apart, each rounded up to the nanosecond: with
/// cost 1 no window of `per` holds more than `limit` of them. The precision of the rate, and how a time older than
/// the newest one is judged, are those of [`Gcra`].
///
/// Its limit does not change while it runs: [`Live`](crate::Live) lists those that do.
///
/// # Cost
/// One load; one CAS when admitted alone. Never blocks, sleeps or allocates: waiting is the caller's part.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Nanos, Pacing};
///
/// let pacing = Pacing::builder(1, Duration::from_secs(1)).queue(2).build()?;
/// let t = Nanos::from_secs(7);
/// let waits: Vec<_> = (0..3).map(|_| pacing.reserve_at(1, t).unwrap().wait()).collect();
/// assert_eq!(waits, [0, 1, 2].map(Nanos::from_secs));
/// let denied = pacing.reserve_at(1, t).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Nanos::from_secs(1)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct Pacing {
    meter: Gcra,
    /// How often the queue was reset.
    resets: u64,
}

/// Builds a [`Pacing`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct PacingBuilder {
    rule: Rule,
    queue: Option<u64>,
    max_cost: u64,
}

/// A place in the queue of a [`Pacing`]. Dropping it keeps the place; [`Pacing::give_back`] frees it.
#[derive(Debug)]
#[must_use = "it tells how long to wait"]
pub struct Reservation {
    start: Nanos,
    wait: Nanos,
    resets: u64,
    /// What it did to the queue; nothing for a cost of 0.
    step: Option<Step>,
}

/// What one call sees: a queue that is idle, or not.
#[derive(Debug)]
pub(crate) struct PacingLook<'a> {
    meter: GcraLook<'a, GcraConfig>,
    capacity: u64,
}

// === impl Pacing ===

impl Pacing {
    /// Starts a queue that serves `limit` permits per window `per`, one by one.
    pub fn builder(limit: u64, per: Duration) -> PacingBuilder {
        PacingBuilder { rule: Rule::new(limit, per), queue: None, max_cost: u64::MAX }
    }

    /// Takes a place in the queue for `cost` permits, and tells how long to wait for its start.
    ///
    /// # Errors
    /// [`Denied`], which changed nothing: the queue is full (then the wait is the one until the same call would
    /// get a place), or the cost is above `queue + 1`. What remains is the room in the queue.
    ///
    /// # Cost
    /// One load and one CAS when alone, and a division by the ticks of a nanosecond.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Nanos, Pacing};
    ///
    /// let pacing = Pacing::builder(10, Duration::from_secs(1)).build()?;
    /// let t = Nanos::from_secs(3);
    /// let first = pacing.reserve_at(2, t).unwrap();
    /// assert_eq!((first.wait(), first.start()), (Nanos::ZERO, t));
    /// let second = pacing.reserve_at(1, t).unwrap();
    /// assert_eq!(second.wait(), Nanos::from_millis(200));
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn reserve_at(&self, cost: u64, now: Nanos) -> Result<Reservation, Denied> {
        // Lock-free: a round is lost only to another caller that got a place, or gave one back, meanwhile.
        loop {
            if now.in_range()
                && (1..=self.ceiling()).contains(&cost)
                && let Some(step) = self.meter.on().step(cost, now)
            {
                return Ok(self.reservation(now, Some(step)));
            }
            decision::peek(&self.meter.on(), cost, now)?;
            if cost == 0 {
                return Ok(self.reservation(now, None));
            }
        }
    }

    /// Gives a place in the queue back: as if it had never been reserved.
    ///
    /// Places are given back in reverse order. Behind any other than the last wait callers who were told their
    /// start, which does not change; such a place lapses. A reservation belongs to the queue that made it.
    ///
    /// # Errors
    /// [`Lapsed`], which changed nothing: others came after it, or `now` is past its start.
    ///
    /// # Cost
    /// One CAS.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Lapsed, Nanos, Pacing};
    ///
    /// let pacing = Pacing::builder(1, Duration::from_secs(1)).build()?;
    /// let t = Nanos::from_secs(3);
    /// let first = pacing.reserve_at(1, t).unwrap();
    /// let second = pacing.reserve_at(1, t).unwrap();
    /// assert_eq!(pacing.give_back(first, t), Err(Lapsed::NotLast));
    /// assert_eq!(pacing.give_back(second, t), Ok(()));
    /// assert_eq!(pacing.reserve_at(1, t).unwrap().wait(), Nanos::from_secs(1));
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn give_back(&self, reservation: Reservation, now: Nanos) -> Result<(), Lapsed> {
        let Some(step) = reservation.step else { return Ok(()) };
        if now > reservation.start {
            return Err(Lapsed::Started);
        }
        // I2, I3
        if reservation.resets != self.resets || !self.meter.on().undo(step) {
            return Err(Lapsed::NotLast);
        }
        Ok(())
    }

    fn reservation(&self, now: Nanos, step: Option<Step>) -> Reservation {
        let start = step.map_or(now, |step| step.start);
        Reservation { start, wait: start - now, resets: self.resets, step }
    }

    fn bytes(&self) -> usize {
        self.meter.bytes()
    }

    fn clear(&mut self) {
        self.meter.clear();
        self.resets = self.resets.wrapping_add(1);
    }
}

impl Limits for Pacing {
    fn rules(&self) -> &[Rule] {
        self.meter.config().rules()
    }

    fn capacity(&self, rule: usize) -> u64 {
        self.meter.config().capacity(rule)
    }

    fn max_cost(&self) -> u64 {
        self.meter.config().max_cost()
    }

    fn ceiling(&self) -> u64 {
        self.meter.config().ceiling()
    }
}

impl History for Pacing {
    type Limits = Self;
    type Look<'a> = PacingLook<'a>;

    fn limits(&self) -> &Self {
        self
    }

    #[inline]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        self.meter.on().take_idle(cost, now)
    }

    fn look(&self, now: Nanos) -> PacingLook<'_> {
        PacingLook { meter: self.meter.on().look(now), capacity: self.capacity(0) }
    }
}

algorithm!(Pacing);

// === impl PacingBuilder ===

impl PacingBuilder {
    /// Lets up to `queue` permits wait, beside the one in service (default: the limit). With 0 nobody waits.
    ///
    /// Where a configuration names a burst that counts all who come at once, as in "rate 1/s, burst 5" of
    /// servers that serve one and queue five, it is this number.
    pub fn queue(mut self, queue: u64) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Refuses every cost above `max_cost` (default: any cost up to `queue + 1` passes).
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// Checks the configuration and makes the limiter. With limit 0 it refuses every cost above 0.
    ///
    /// # Errors
    /// As [`GcraBuilder::build`](crate::GcraBuilder::build); [`ConfigError::Burst`] speaks of the queue.
    pub fn build(self) -> Result<Pacing, ConfigError> {
        let Self { rule, queue, max_cost } = self;
        let queue = queue.unwrap_or(rule.limit);
        let builder = Gcra::builder(rule.limit, rule.window.into()).max_cost(max_cost);
        let meter = builder.burst(queue.saturating_add(1)).build().map_err(|error| match error {
            ConfigError::Burst { max, .. } => ConfigError::Burst { got: queue, min: 0, max: max - 1 },
            other => other,
        })?;
        Ok(Pacing { meter, resets: 0 })
    }
}

// === impl Reservation ===

impl Reservation {
    /// How long to wait from the time of the call; zero if it can start at once.
    pub fn wait(&self) -> Nanos {
        self.wait
    }

    /// When it may start.
    pub fn start(&self) -> Nanos {
        self.start
    }
}

// === impl PacingLook ===

impl Look for PacingLook<'_> {
    fn at(&self) -> Nanos {
        self.meter.at()
    }

    fn used(&self, rule: usize) -> Option<u64> {
        Some(if self.wait(rule, 0)? == Nanos::ZERO { 0 } else { self.capacity })
    }

    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        Some(if keep < self.capacity { self.meter.drained_after() } else { Nanos::ZERO })
    }
}
