//! An algorithm and a clock, joined once.

use crate::{Algorithm, Clock, Decision};

/// A limiter that reads its own clock.
///
/// All calls but [`reset`](Limiter::reset) take `&self` and may be made by any number of threads at once, if the
/// clock allows it: share a limiter as it is, in a `static`, an `Arc` or a scope. Each reads the clock once, before
/// it asks the algorithm; a caller delayed in between is judged like any caller that comes with an older time.
///
/// # Examples
/// One call, one answer:
/// ```
/// # #[cfg(feature = "std")] {
/// use std::time::Duration;
/// use tollgate::{Limiter, Log, Precise};
///
/// let limiter = Limiter::new(Log::builder(2, Duration::from_secs(60)).build()?, Precise::new());
/// assert!(limiter.try_acquire());
/// assert!(limiter.try_acquire());
/// assert!(!limiter.try_acquire());
/// # }
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
/// The algorithm chosen while the program runs:
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Limiter, Log, Manual};
///
/// let chosen: Box<dyn Algorithm> = Box::new(Log::builder(1, Duration::from_secs(1)).build()?);
/// let limiter = Limiter::new(chosen, Manual::new());
/// assert!(limiter.try_acquire());
///
/// let denied = limiter.check().unwrap_err();
/// limiter.clock().advance(denied.retry_after().unwrap());
/// assert!(limiter.check().is_ok());
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Limiter<A, C> {
    algorithm: A,
    clock: C,
}

// === impl Limiter ===

#[cfg(feature = "std")]
impl<A> Limiter<A, crate::Precise> {
    /// Joins an algorithm, or a [`Keyed`](crate::Keyed), counted or not, with the precise clock.
    ///
    /// # Cost
    /// The first precise clock of a process measures the processor's counter: at most 200 ms.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Log};
    ///
    /// let limiter = Limiter::precise(Log::builder(1, Duration::from_secs(60)).build()?);
    /// assert!(limiter.try_acquire());
    /// assert!(!limiter.try_acquire());
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn precise(algorithm: A) -> Self {
        Self::new(algorithm, crate::Precise::new())
    }
}

impl<A, C> Limiter<A, C> {
    /// Joins an algorithm, or a [`Keyed`](crate::Keyed), counted or not, with a clock.
    pub const fn new(algorithm: A, clock: C) -> Self {
        Self { algorithm, clock }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Takes the two apart again.
    pub fn into_parts(self) -> (A, C) {
        (self.algorithm, self.clock)
    }
}

impl<A: Algorithm, C: Clock> Limiter<A, C> {
    /// Takes one permit. The cheapest call: yes or no.
    ///
    /// # Cost
    /// One reading of the clock, and what [`Algorithm::try_acquire_at`] costs.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits, all or nothing; 0 are always had.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> bool {
        self.algorithm.try_acquire_at(n, self.clock.now())
    }

    /// Takes one permit and tells what is left, or how long to wait.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied), which changed nothing.
    pub fn check(&self) -> Decision {
        self.check_n(1)
    }

    /// Takes `n` permits, all or nothing, and tells what is left, or how long to wait.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied), which changed nothing.
    pub fn check_n(&self, n: u64) -> Decision {
        self.algorithm.check_at(n, self.clock.now())
    }

    /// Tells what [`check_n`](Limiter::check_n) would answer, and changes nothing.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied).
    pub fn peek(&self, n: u64) -> Decision {
        self.algorithm.peek_at(n, self.clock.now())
    }

    /// Permits charged to `rule`, by its place in the configuration; `None` without such a rule.
    pub fn usage(&self, rule: usize) -> Option<u64> {
        self.algorithm.usage_at(rule, self.clock.now())
    }

    /// Forgets every admission. The clock goes on.
    pub fn reset(&mut self) {
        self.algorithm.reset();
    }
}

/// Gives a limiter by key, `$name` of `K` and `S`, the calls that read the clock.
#[cfg(feature = "keyed")]
macro_rules! by_key {
    ($K:ident, $S:ident, $name:ty) => {
        impl<$K, $S, C> Limiter<$name, C>
        where
            $K: ?Sized + core::hash::Hash + Eq + alloc::borrow::ToOwned,
            $S: core::hash::BuildHasher,
            C: Clock,
        {
            /// Takes one permit of `key`. The cheapest call: yes or no.
            ///
            /// # Examples
            /// ```
            /// # #[cfg(feature = "std")] {
            /// use std::time::Duration;
            /// use tollgate::{Gcra, Keyed, Limiter};
            ///
            /// let bucket = Gcra::builder(1, Duration::from_secs(60)).burst(2).config()?;
            /// let limiter = Limiter::precise(Keyed::<str>::builder(bucket, 10_000).build()?);
            /// assert!(limiter.try_acquire("alice") && limiter.try_acquire("alice"));
            /// assert!(!limiter.try_acquire("alice"));
            /// assert!(limiter.try_acquire("bob"));
            /// # }
            /// # Ok::<(), tollgate::ConfigError>(())
            /// ```
            pub fn try_acquire(&self, key: &$K) -> bool {
                self.try_acquire_n(key, 1)
            }

            /// Takes `n` permits of `key`, all or nothing; 0 are always had.
            pub fn try_acquire_n(&self, key: &$K, n: u64) -> bool {
                self.algorithm.try_acquire_at(key, n, self.clock.now())
            }

            /// Takes one permit of `key` and tells what is left, or how long to wait.
            ///
            /// # Errors
            /// [`Denied`](crate::Denied), which changed nothing.
            pub fn check(&self, key: &$K) -> Decision {
                self.check_n(key, 1)
            }

            /// Takes `n` permits of `key`, all or nothing, and tells what is left, or how long to wait.
            ///
            /// # Errors
            /// [`Denied`](crate::Denied), which changed nothing.
            pub fn check_n(&self, key: &$K, n: u64) -> Decision {
                self.algorithm.check_at(key, n, self.clock.now())
            }

            /// Tells what [`check_n`](Limiter::check_n) would answer, and changes nothing.
            ///
            /// # Errors
            /// [`Denied`](crate::Denied).
            pub fn peek(&self, key: &$K, n: u64) -> Decision {
                self.algorithm.peek_at(key, n, self.clock.now())
            }

            /// Permits charged to `rule` of `key`: [`Keyed::usage_at`](crate::Keyed::usage_at).
            pub fn usage(&self, key: &$K, rule: usize) -> Option<u64> {
                self.algorithm.usage_at(key, rule, self.clock.now())
            }
        }
    };
}

#[cfg(feature = "keyed")]
by_key!(K, S, crate::Keyed<K, S>);
#[cfg(feature = "keyed")]
by_key!(K, S, crate::Counted<crate::Keyed<K, S>>);
