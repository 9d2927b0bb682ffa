//! The system's clocks that all processes share.

use rustix::time::{ClockId, clock_gettime};

use crate::{Clock, Nanos};

/// A clock of the system, the same in every process since the machine was started.
///
/// Never scaled or calibrated by a process, so the times of two processes compare. Never steps back. A container in a
/// time namespace of its own sees another time; a region tells them apart.
///
/// # Cost
/// A call of the vDSO: no system call on the usual machines.
///
/// # Examples
/// ```
/// use tollgate::{Clock, shared::System};
///
/// let clock = System::monotonic();
/// assert!(clock.now() <= clock.now());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct System(ClockId);

// === impl System ===

impl System {
    /// `CLOCK_MONOTONIC`: stands still while the machine sleeps.
    pub const fn monotonic() -> Self {
        Self(ClockId::Monotonic)
    }

    /// `CLOCK_BOOTTIME`: goes on while the machine sleeps.
    pub const fn boot() -> Self {
        Self(ClockId::Boottime)
    }
}

impl Clock for System {
    #[inline]
    fn now(&self) -> Nanos {
        let time = clock_gettime(self.0);
        let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
        Nanos::from_secs(seconds) + Nanos::from_nanos(nanos)
    }
}
