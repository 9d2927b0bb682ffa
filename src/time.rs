//! Time as whole nanoseconds that saturate: [`Nanos`] is both a moment and a span.

use core::{fmt, time::Duration};

/// Nanoseconds: a moment since a clock's zero, or a span between two moments.
///
/// A limiter accepts moments up to [`Nanos::MAX`] (146 years after the clock's zero). Arithmetic saturates,
/// and no operation panics.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::Nanos;
///
/// let t = Nanos::from_millis(1_500);
/// assert_eq!(t.as_nanos(), 1_500_000_000);
/// assert_eq!(Nanos::from(Duration::from_secs(2)) - t, Nanos::from_millis(500));
/// assert_eq!(t - Nanos::from_secs(9), Nanos::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Nanos(u64);

// === impl Nanos ===

impl Nanos {
    /// The clock's zero, and the empty span.
    pub const ZERO: Self = Self(0);
    /// The latest moment, and the longest window, that a limiter accepts: 2^62 - 1 ns.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// The first number of nanoseconds that is out of range.
    pub(crate) const END: u64 = Self::MAX.0 + 1;

    /// That many nanoseconds.
    #[inline]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// That many microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// That many milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// That many seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// The number of nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether a limiter accepts this as a moment: at most [`Nanos::MAX`].
    #[inline]
    pub const fn in_range(self) -> bool {
        self.0 <= Self::MAX.0
    }
}

/// The smallest power of ten that is at least `n`: steps of that many nanoseconds keep decimal stamps exact.
pub(crate) fn decimal_step(n: u64) -> u64 {
    let mut step: u64 = 1;
    while step < n {
        step = step.saturating_mul(10);
    }
    step
}

impl core::ops::Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl core::ops::Sub for Nanos {
    type Output = Self;
    #[inline]
    fn sub(self, span: Self) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}
