//! Limiters one inside the other: a global limit, a tenant's under it, a user's under that.
//!
//! # What
//! A call must pass every layer. It first looks at all of them, and only if each has room takes its permits, from the
//! innermost layer outwards. So a user who is refused charges nothing to the tenant or to all the others.
//!
//! # Invariants
//! | id | always                                                                   | kept by                  | checked by                  |
//! |----|--------------------------------------------------------------------------|--------------------------|-----------------------------|
//! | I1 | no layer is ever over its own limit                                       | each layer's own taking  | models *layers*             |
//! | I2 | one call after the other: all layers are charged, or none                 | the looks before the taking | property `layers_agree`  |
//! | I3 | a layer is charged only after every layer inside it                       | the order of the taking  | models *layers*             |
//! | I4 | a call that is refused after its looks found room has lost a race to a call that was admitted in between | the looks | models *layers* |
//!
//! # Linearization points
//! None for all layers together. L1: each layer is charged at a moment of its own, all of them inside the call. L2: a
//! refusal is that of one layer, at the moment of its own L2.
//!
//! # Progress
//! That of the layers: no loop here but over them.

use crate::{Algorithm, Decision, Nanos};

/// What can be a layer: every [`Algorithm`], and [`Layers`] themselves.
///
/// The calls are those of [`Algorithm`] and keep its promises; their names differ, so that both traits can be in
/// scope.
pub trait Layer: Sync {
    /// Takes `cost` permits at `now`, all or nothing: [`Algorithm::try_acquire_at`].
    fn take_at(&self, cost: u64, now: Nanos) -> bool;

    /// Takes `cost` permits at `now`, and tells what is left or how long to wait: [`Algorithm::check_at`].
    ///
    /// # Errors
    /// [`Denied`](crate::Denied).
    fn decide_at(&self, cost: u64, now: Nanos) -> Decision;

    /// Tells whether `take_at` would admit, and changes nothing: [`Algorithm::has_room_at`].
    fn fits_at(&self, cost: u64, now: Nanos) -> bool {
        self.look_at(cost, now).is_ok()
    }

    /// Tells whether `decide_at` would admit, and changes nothing: [`Algorithm::peek_at`].
    ///
    /// # Errors
    /// [`Denied`](crate::Denied).
    fn look_at(&self, cost: u64, now: Nanos) -> Decision;
}

/// Limiters of any kind, one inside the other, the outermost first: a call takes from all of them or from none.
///
/// They are borrowed, so layers are put together where they are asked, for the tenant and the user of that call. The
/// order tells the outer from the inner; it makes no difference to what is admitted.
///
/// # Guarantees
/// Whatever runs at once, no layer is over its limit, and a layer is charged only after all layers inside it. Calls made
/// one after the other take from all layers or from none. Of calls at once, one that found room in every layer may lose
/// the last of it in an outer layer to another call. It is then refused, and its `cost` stays charged to the layers
/// inside that one, for nothing, as if the user had spent it: at most once for each such call, and never for a call
/// that a layer refused at the first look. Nothing is given back, because the limiters that could are few.
///
/// Each layer is looked at by itself: a limiter that stands in two layers, or two keys of one
/// [`Keyed`](crate::Keyed) that share a limiter for want of room, or would both take the last place there, can have room for
/// the call once and not twice. Then the call is refused as after a lost race.
///
/// # Cost
/// A look at each outer layer, then what each layer costs.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Layers, Log, Nanos, Window};
///
/// let second = Duration::from_secs(1);
/// let global = Window::builder(1_000, second).buckets(20).build()?;
/// let user = Log::builder(2, 10 * second).build()?;
/// let layers = Layers::new([&global, &user]);
///
/// let now = Nanos::from_secs(7);
/// assert!(layers.try_acquire_at(2, now));
/// let (layer, decision) = layers.check_at(1, now);
/// assert_eq!((layer, decision.unwrap_err().retry_after()), (1, Some(Nanos::from_secs(10))));
/// // The user's refusal charged nothing to the others.
/// assert_eq!(global.usage_at(0, now), Some(2));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
/// A token bucket outside, a log inside: the service takes 10 a second, and 20 at once; a user gets 5 in any 10 s, exactly.
/// ```
/// use std::time::Duration;
/// use tollgate::{Layers, Log, Nanos, TokenBucket};
///
/// let second = Duration::from_secs(1);
/// let service = TokenBucket::builder(10, second).burst(20).build()?;
/// let users: Vec<_> = (0..7).map(|_| Log::builder(5, 10 * second).build()).collect::<Result<_, _>>()?;
///
/// // Each tries eight times. What its own log refuses costs the service nothing.
/// let admitted_at = |now| {
///     let tries = |user| (0..8).filter(|_| Layers::new([&service, user]).try_acquire_at(1, now)).count();
///     users.iter().map(|user: &Log| tries(user)).collect::<Vec<_>>()
/// };
/// assert_eq!(admitted_at(Nanos::from_secs(7)), [5, 5, 5, 5, 0, 0, 0]);
/// assert_eq!(admitted_at(Nanos::from_secs(8)), [0, 0, 0, 0, 5, 5, 0]);
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Layers<'a, const N: usize>([&'a dyn Layer; N]);

// === impl Layer ===

impl<A: Algorithm + ?Sized> Layer for A {
    #[inline]
    fn take_at(&self, cost: u64, now: Nanos) -> bool {
        self.try_acquire_at(cost, now)
    }

    fn decide_at(&self, cost: u64, now: Nanos) -> Decision {
        self.check_at(cost, now)
    }

    fn fits_at(&self, cost: u64, now: Nanos) -> bool {
        self.has_room_at(cost, now)
    }

    fn look_at(&self, cost: u64, now: Nanos) -> Decision {
        self.peek_at(cost, now)
    }
}

// === impl Layers ===

impl<'a, const N: usize> Layers<'a, N> {
    /// Puts layers together, the outermost first; one at least.
    pub const fn new(outermost_first: [&'a dyn Layer; N]) -> Self {
        const { assert!(N > 0, "there must be a layer to ask") };
        Self(outermost_first)
    }

    /// Takes `cost` permits from every layer, all or nothing. The cheapest call: yes or no.
    pub fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool {
        // The innermost is taken from first, which is a look as well.
        self.0[..N - 1].iter().all(|layer| layer.fits_at(cost, now))
            && self.0.iter().rev().all(|layer| layer.take_at(cost, now)) // L1, I3
    }

    /// Takes `cost` permits from every layer, all or nothing, and tells of one layer, by its place, what it has left or
    /// why it refused: of the layer with the longest wait where some refuse, else of the one with the least left (the
    /// first listed of equals).
    ///
    /// A refusal that comes of a lost race is that of the layer where the race was lost.
    pub fn check_at(&self, cost: u64, now: Nanos) -> (usize, Decision) {
        let seen = self.peek_at(cost, now);
        if seen.1.is_err() {
            return seen;
        }
        let take = |layer: usize| (layer, self.0[layer].decide_at(cost, now)); // L1
        let mut told = take(N - 1);
        for layer in (0..N - 1).rev() {
            if told.1.is_err() {
                break; // I4
            }
            let outer = take(layer); // I3
            told = if outer.1.is_err() { outer } else { more_telling(outer, told) };
        }
        told
    }

    /// Tells what [`check_at`](Layers::check_at) would answer, with the figures of now, and changes nothing.
    pub fn peek_at(&self, cost: u64, now: Nanos) -> (usize, Decision) {
        let mut told = (0, self.0[0].look_at(cost, now));
        for (layer, it) in self.0.iter().enumerate().skip(1) {
            told = more_telling(told, (layer, it.look_at(cost, now)));
        }
        told
    }
}

impl<const N: usize> Layer for Layers<'_, N> {
    fn take_at(&self, cost: u64, now: Nanos) -> bool {
        self.try_acquire_at(cost, now)
    }

    fn decide_at(&self, cost: u64, now: Nanos) -> Decision {
        self.check_at(cost, now).1
    }

    fn fits_at(&self, cost: u64, now: Nanos) -> bool {
        self.0.iter().all(|layer| layer.fits_at(cost, now))
    }

    fn look_at(&self, cost: u64, now: Nanos) -> Decision {
        self.peek_at(cost, now).1
    }
}

/// The answer of two layers that the caller is told; of equals the outer one's, which is passed first.
fn more_telling(outer: (usize, Decision), inner: (usize, Decision)) -> (usize, Decision) {
    if weight(&inner.1) > weight(&outer.1) { inner } else { outer }
}

/// How much an answer binds: a refusal by when it ends, before an admission by how little is left.
fn weight(decision: &Decision) -> (bool, Nanos, u64) {
    match decision {
        Ok(quota) => (false, Nanos::ZERO, u64::MAX - quota.remaining),
        Err(denied) => {
            let end = denied.retry_after().map_or(Nanos::from_nanos(u64::MAX), |wait| denied.quota.at + wait);
            (true, end, 0)
        }
    }
}
