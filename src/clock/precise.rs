//! The processor's counter, scaled to nanoseconds.

use std::sync::OnceLock;

use crate::{Clock, Nanos};

/// How long before its first use the clock's zero lies: no reading is zero, even where the counters of two
/// processors differ.
const HEAD_START: core::time::Duration = core::time::Duration::from_millis(1);

/// Monotonic time of full resolution: the processor's counter where it runs at a constant rate, else the system's
/// monotonic clock.
///
/// Its zero lies just before its first use in the process; all instances share it, so their times compare and none
/// is 0. Between processes times do not compare, except that a forked child goes on with its parent's.
///
/// Never steps back, nor does it follow corrections of the wall clock; the rate is measured once. Two processors may
/// show times that differ as their counters do: not at all, where the system itself keeps time by them. Whether time
/// in which the machine sleeps is counted is up to the platform.
///
/// # Cost
/// The first [`Precise::new`] of a process measures the counter's rate, for at most 200 ms; a child forked by another
/// thread meanwhile would wait for ever for the result. [`Clock::now`] is one counter read, a multiplication and a
/// shift.
///
/// # Examples
/// ```
/// use tollgate::{Clock, Nanos, Precise};
///
/// let clock = Precise::new();
/// let before = clock.now();
/// assert!(before > Nanos::ZERO);
/// assert!(Precise::new().now() >= before);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Precise(&'static Anchor);

/// What all instances share.
#[derive(Debug)]
struct Anchor {
    clock: quanta::Clock,
    zero: quanta::Instant,
}

static ANCHOR: OnceLock<Anchor> = OnceLock::new();

// === impl Precise ===

impl Precise {
    /// The clock of this process.
    pub fn new() -> Self {
        Self(ANCHOR.get_or_init(|| {
            let clock = quanta::Clock::new();
            let now = clock.now();
            Anchor { zero: now.checked_sub(HEAD_START).unwrap_or(now), clock }
        }))
    }

    /// The clock that this one reads.
    pub(crate) fn quanta(self) -> &'static quanta::Clock {
        &self.0.clock
    }

    /// A reading of that clock, from our zero.
    #[inline]
    pub(crate) fn since_zero(self, instant: quanta::Instant) -> Nanos {
        let span = instant.duration_since(self.0.zero);
        // In 64 bits, and in the shape that the optimizer knows to be the number that `Duration` was made from.
        Nanos::from_nanos(span.as_secs() * 1_000_000_000 + u64::from(span.subsec_nanos()))
    }
}

impl Clock for Precise {
    #[inline]
    fn now(&self) -> Nanos {
        self.since_zero(self.0.clock.now())
    }
}

impl Default for Precise {
    fn default() -> Self {
        Self::new()
    }
}
