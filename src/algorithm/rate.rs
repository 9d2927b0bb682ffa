//! A rate as a whole number of ticks per permit, so that a bucket counts in integers.
//!
//! # What
//! `limit` permits per window leave one every `window / limit` nanoseconds: the interval. It is seldom a whole
//! number of nanoseconds, so time is counted in *ticks* of a nanosecond, a half or a third, whichever makes the
//! interval whole: with `g = gcd(limit, window)`, ticks of `1 / (limit / g)` ns. If only a finer tick would do,
//! ticks are thirds and the interval is rounded up, by less than one tick: towards refusal.
//!
//! # Why no finer
//! A bucket filled at any nanosecond and then charged permit by permit stands at every fraction of its tick, and
//! each of these levels has another future. Moments below 2^62 with `d` ticks each, and a bucket's drain time
//! after the last of them, are more than 2^64 levels from `d = 4` on: one word can not tell them apart.
//!
//! # Invariants
//! | id | always                                                              | kept by                          |
//! |----|---------------------------------------------------------------------|----------------------------------|
//! | I1 | `ticks` is 1, 2 or 3, so that every moment in range fits 64 bits      | `Rate::new`                      |
//! | I2 | `interval >= ticks`: a permit takes a nanosecond or more             | `Rate::new`, limit at most window |
//! | I3 | the last moment and the drain time of [`Rate::permits_max`] fit a word | `Rate::permits_max`, at build    |

use core::num::NonZeroU64;

use crate::{ConfigError, Nanos, Rule};

/// The finest tick: a third of a nanosecond.
const TICKS_MAX: u64 = 3;

const _: () = assert!(Nanos::MAX.as_nanos().checked_mul(TICKS_MAX).is_some(), "I1");

/// How time turns into permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Rate {
    /// Ticks in a nanosecond.
    ticks: NonZeroU64,
    /// Ticks between two permits.
    interval: NonZeroU64,
}

// === impl Rate ===

impl Rate {
    /// The rate of `rule`; that of limit 0 serves nobody, and its interval means nothing.
    ///
    /// # Errors
    /// [`ConfigError::Window`]; [`ConfigError::Limit`] above one permit per nanosecond.
    pub(crate) fn new(rule: Rule) -> Result<Self, ConfigError> {
        rule.validate()?;
        let window = rule.window.as_nanos();
        if rule.limit > window {
            return Err(ConfigError::Limit { got: rule.limit, max: window }); // I2
        }
        let (mut ticks, mut interval) = (NonZeroU64::MIN, NonZeroU64::MIN);
        if let Some(limit) = NonZeroU64::new(rule.limit) {
            let finest = limit.get() / gcd(limit, window);
            ticks = ticks.saturating_add(finest.min(TICKS_MAX) - 1);
            // Exact if `ticks` is `finest`, since the limit then divides the product.
            interval = interval.saturating_add(div_ceil(window * ticks.get(), limit) - 1);
        }
        Ok(Self { ticks, interval })
    }

    /// The most permits whose drain time can follow the last moment in range (I3); at least 1.
    pub(crate) fn permits_max(self) -> u64 {
        (u64::MAX - self.clock(Nanos::MAX)) / self.interval
    }

    /// Ticks in a nanosecond: up to 3 (I1).
    pub(crate) fn ticks(self) -> u64 {
        self.ticks.get()
    }

    /// A moment in range, in ticks.
    #[inline]
    pub(crate) fn clock(self, now: Nanos) -> u64 {
        now.as_nanos() * self.ticks.get()
    }

    /// The ticks that up to [`Rate::permits_max`] permits take.
    #[inline]
    pub(crate) fn charge(self, permits: u64) -> u64 {
        permits * self.interval.get()
    }

    /// Permits not yet drained while `ticks` are left; one begun counts whole.
    pub(crate) fn permits(self, ticks: u64) -> u64 {
        div_ceil(ticks, self.interval)
    }

    /// The first whole nanosecond at or after `ticks`.
    pub(crate) fn nanos(self, ticks: u64) -> Nanos {
        Nanos::from_nanos(div_ceil(ticks, self.ticks))
    }
}

/// Rounded up. (With a divisor that can not be 0 there is nothing to panic about.)
fn div_ceil(a: u64, b: NonZeroU64) -> u64 {
    a / b + u64::from(a % b != 0)
}

fn gcd(mut a: NonZeroU64, b: u64) -> NonZeroU64 {
    let mut rest = b;
    // Bounded: the remainder at least halves every second round.
    while let Some(b) = NonZeroU64::new(rest) {
        (a, rest) = (b, a.get() % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn rate(limit: u64, window: Duration) -> Rate {
        Rate::new(Rule::new(limit, window)).unwrap()
    }

    fn parts(rate: Rate) -> (u64, u64) {
        (rate.ticks.get(), rate.interval.get())
    }

    #[test]
    fn the_usual_rates_are_exact() {
        let second = Duration::from_secs(1);
        for (limit, window, ticks, interval) in [
            (1, Duration::from_secs(86_400), 1, 86_400_000_000_000),
            (10, 13 * second, 1, 1_300_000_000),
            (3, second, 3, 1_000_000_000),
            (60, second, 3, 50_000_000),
            (30, second, 3, 100_000_000),
            (1_000, second, 1, 1_000_000),
            (1_024, second, 2, 1_953_125),
            (600_000_000, second, 3, 5),
            (1_000_000_000, second, 1, 1),
        ] {
            assert_eq!(parts(rate(limit, window)), (ticks, interval), "{limit} per {window:?}");
        }
    }

    #[test]
    fn a_rate_that_thirds_can_not_hold_is_rounded_up_by_less_than_a_third() {
        // 3 s / 7 is 1,285,714,285.71 thirds of a nanosecond.
        assert_eq!(parts(rate(7, Duration::from_secs(3))), (3, 1_285_714_286));
        // The worst relative error: an interval just above a nanosecond counts as 4 thirds.
        assert_eq!(parts(rate(999_999_999, Duration::from_secs(1))), (3, 4));
    }

    #[test]
    fn limits_of_the_rate() {
        let second = Duration::from_secs(1);
        let error = |limit, window| Rate::new(Rule::new(limit, window)).err();
        let max = 1_000_000_000;
        assert_eq!(error(max + 1, second), Some(ConfigError::Limit { got: max + 1, max }));
        assert!(matches!(error(1, Duration::ZERO), Some(ConfigError::Window { .. })));
        assert!(matches!(error(0, Duration::MAX), Some(ConfigError::Window { .. })));
        assert_eq!(rate(1, Nanos::MAX.into()).permits_max(), 3);
    }

    proptest! {
        #[test]
        fn the_interval_is_the_least_that_is_not_too_short(limit in 1_u64.., window in 1..=Nanos::MAX.as_nanos()) {
            let limit = 1 + (limit - 1) % window;
            let (ticks, interval) = parts(rate(limit, Duration::from_nanos(window)));
            let (true_ticks, limit) = (u128::from(window) * u128::from(ticks), u128::from(limit));
            let over = u128::from(interval) * limit - true_ticks;
            prop_assert!(over < limit, "rounded up by {over} / {limit} of a tick");
            // The tick is exact where one of the three is.
            let exact = (1..=3).any(|ticks| (u128::from(window) * ticks) % limit == 0);
            prop_assert_eq!(over == 0, exact);
            prop_assert!(interval >= ticks);
        }

        #[test]
        fn one_permit_always_fits(limit in 1..1_000_u64, window in 1..=Nanos::MAX.as_nanos()) {
            prop_assert!(rate(limit.min(window), Duration::from_nanos(window)).permits_max() >= 1);
        }
    }
}
