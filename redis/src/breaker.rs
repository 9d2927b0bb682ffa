//! Stops asking a server that does not answer.
//!
//! # State
//! `failures`, in a row; `shut_until`: 0 while closed, else the time at which one call may try again. Whoever moves that
//! time on by a pause is that one call, so a trial that is never finished blocks nobody for longer than a pause.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tollgate::Nanos;

/// Opens after so many failures in a row, then lets one call through every pause until one succeeds.
#[derive(Debug)]
pub(crate) struct Breaker {
    threshold: u32,
    pause: Nanos,
    failures: AtomicU32,
    shut_until: AtomicU64,
}

// === impl Breaker ===

impl Breaker {
    pub(crate) fn new(threshold: u32, pause: Nanos) -> Self {
        Self { threshold, pause, failures: AtomicU32::new(0), shut_until: AtomicU64::new(0) }
    }

    /// Whether a call may be made at `now`; if not, when one may.
    pub(crate) fn admit(&self, now: Nanos) -> Result<(), Nanos> {
        let until = self.shut_until.load(Relaxed);
        if until == 0 {
            return Ok(());
        }
        if now.as_nanos() < until {
            return Err(Nanos::from_nanos(until) - now);
        }
        let next = (now + self.pause).as_nanos();
        self.shut_until.compare_exchange(until, next, Relaxed, Relaxed).map(|_| ()).map_err(|_| self.pause)
    }

    /// A call was answered.
    pub(crate) fn succeeded(&self) {
        // Read first: a healthy server's callers share the lines and write nothing. Open with no failures counted is what a
        // success leaves that came between another call's count and its shutting.
        if self.failures.load(Relaxed) > 0 || self.is_open() {
            self.failures.store(0, Relaxed);
            self.shut_until.store(0, Relaxed);
        }
    }

    /// A call was not answered.
    pub(crate) fn failed(&self, now: Nanos) {
        let before =
            self.failures.fetch_update(Relaxed, Relaxed, |n| Some(n.saturating_add(1))).unwrap_or(u32::MAX);
        if before.saturating_add(1) >= self.threshold {
            self.shut_until.fetch_max((now + self.pause).as_nanos(), Relaxed);
        }
    }

    /// How long calls are not let through, from `now`; zero while closed, or when a trial is due.
    pub(crate) fn shut_for(&self, now: Nanos) -> Nanos {
        Nanos::from_nanos(self.shut_until.load(Relaxed)) - now
    }

    /// Whether it is open.
    pub(crate) fn is_open(&self) -> bool {
        self.shut_until.load(Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_lets_one_try_a_pause_and_closes() {
        let ms = Nanos::from_millis;
        let breaker = Breaker::new(3, ms(500));
        for at in 1..=2 {
            breaker.failed(ms(at));
            assert_eq!(breaker.admit(ms(at)), Ok(()), "below the threshold");
        }
        breaker.failed(ms(3));
        assert!(breaker.is_open());
        assert_eq!(breaker.admit(ms(4)), Err(ms(499)));
        assert_eq!(breaker.admit(ms(503)), Ok(()), "the trial");
        assert_eq!(breaker.admit(ms(503)), Err(ms(500)), "only one");
        breaker.failed(ms(553));
        assert_eq!(breaker.admit(ms(1_052)), Err(ms(1)));
        assert_eq!(breaker.admit(ms(1_053)), Ok(()), "a trial that never ends ...");
        assert_eq!(breaker.admit(ms(1_553)), Ok(()), "... is followed by another");
        breaker.succeeded();
        assert!(!breaker.is_open());
        assert_eq!((breaker.admit(ms(1_554)), breaker.admit(ms(1_554))), (Ok(()), Ok(())));
        breaker.failed(ms(1_555));
        assert_eq!(breaker.admit(ms(1_555)), Ok(()), "failures are counted anew");
    }

    /// A call fails and counts it, another succeeds and counts anew, and only then the first shuts the breaker.
    #[test]
    fn closes_although_a_success_came_between_the_count_and_the_shutting() {
        let ms = Nanos::from_millis;
        let breaker = Breaker::new(1, ms(500));
        breaker.failed(ms(1));
        breaker.failures.store(0, Relaxed);
        assert_eq!(breaker.admit(ms(501)), Ok(()), "the trial");
        breaker.succeeded();
        assert!(!breaker.is_open());
        assert_eq!((breaker.admit(ms(502)), breaker.admit(ms(502))), (Ok(()), Ok(())));
    }
}
