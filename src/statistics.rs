//! Counts of what a limiter answered.
//!
//! # What
//! A wrapper that counts calls: each thread adds on a cache line of its own as long as there are no more threads than
//! lines. A limiter without the wrapper pays nothing.
//!
//! # Memory order
//! | id | site            | order   | pairs with | because                                              |
//! |----|-----------------|---------|------------|------------------------------------------------------|
//! | O1 | every count     | Relaxed | none       | an addition is whole; counts order nothing            |
//! | O2 | the newest time | Relaxed | none       | a hint: threads that share a line may overtake each other |

#[cfg(feature = "metrics")]
mod export;

use alloc::{boxed::Box, vec::Vec};
#[cfg(feature = "keyed")]
use core::{
    borrow::Borrow,
    hash::{BuildHasher, Hash},
};

use crossbeam_utils::CachePadded;

#[cfg(feature = "keyed")]
use crate::Keyed;
use crate::{
    Algorithm, Decision, Denied, Layers, Nanos, Quota, RULES_MAX, Reason, Rules,
    shard::ByThread,
    sync::{Relaxed, Word, contention_retries},
};

/// Lines of counts when not told otherwise.
const LINES: usize = 16;

/// A limiter that counts its answers: an [`Algorithm`], a [`Keyed`](crate::Keyed) one, whose keys are counted together, or
/// [`AnyLayers`].
///
/// What is used of a limit now, [`usage_at`](Algorithm::usage_at) tells, and how many keys there are and have left
/// [`Keyed::len`](crate::Keyed::len) and [`Keyed::evicted`](crate::Keyed::evicted), with or without this wrapper.
///
/// Looks are not counted. In [`Layers`](crate::Layers), which look first, a layer counts what was taken from it, and of what
/// it refused only what it was asked for after all had room; [`AnyLayers`] count what all of them answer together.
///
/// # Cost
/// An addition to a word on a line of the thread's own, and two or three accesses more. A refusal of
/// [`try_acquire_at`](Algorithm::try_acquire_at) under several rules, or of a cost above 1, also peeks, to name the rule.
/// Memory: 128 B a line. Tries that were lost are counted by the thread itself, where it loses one.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Counted, Log, Nanos};
///
/// let log = Counted::new(Log::builder(2, Duration::from_secs(1)).build()?);
/// for _ in 0..5 {
///     log.try_acquire_at(1, Nanos::ZERO);
/// }
/// let seen = log.statistics();
/// assert_eq!((seen.admitted, seen.permits, seen.refused()), (2, 2, 3));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct Counted<A> {
    algorithm: A,
    lines: Box<[CachePadded<Line>]>,
}

/// In a [`Counted`] in the place of an algorithm: layers that come with each call, as they are put together anew for each
/// tenant and user. What was refused is counted by layer: that with the longest wait, as
/// [`Layers::check_at`](crate::Layers::check_at) tells.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{AnyLayers, Counted, Layers, Log, Nanos, Window};
///
/// let second = Duration::from_secs(1);
/// let global = Window::builder(3, second).build()?;
/// let users = [Log::builder(2, second).build()?, Log::builder(2, second).build()?];
/// let counted = Counted::new(AnyLayers);
/// for _ in 0..3 {
///     for user in &users {
///         counted.try_acquire_at(&Layers::new([&global, user]), 1, Nanos::ZERO);
///     }
/// }
/// let seen = counted.statistics();
/// assert_eq!((seen.admitted, &seen.refused_by[..2]), (3, &[3, 0][..]));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyLayers;

/// What a [`Counted`] limiter has answered so far. Counts of calls, but for the permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Calls that were admitted, those of cost 0 among them.
    pub admitted: u64,
    /// Permits that these took.
    pub permits: u64,
    /// Calls that each rule refused, by its place in the configuration, or each of [`AnyLayers`], by its place from the outside;
    /// a cost above its limit counts, too. The last place also stands for all beyond it: of layers, or of an algorithm of your
    /// own, which may have more.
    pub refused_by: [u64; RULES_MAX],
    /// Calls refused because of a cost above the largest declared.
    pub max_cost: u64,
    /// Calls refused because of a time out of range.
    pub out_of_range: u64,
    /// Calls refused because there was no room for their key.
    pub full: u64,
    /// Tries that were lost to another caller, and made again: what contention costs. Zero without `std`.
    pub contention_retries: u64,
    /// Calls with an older time than the call before on the same line: the clock ran back, or a thread that shares the
    /// line had read it later.
    pub clock_regressions: u64,
}

/// The counts of some threads.
#[derive(Default)]
struct Line {
    admitted: Word<u64>,
    permits: Word<u64>,
    refused_by: [Word<u64>; RULES_MAX],
    max_cost: Word<u64>,
    out_of_range: Word<u64>,
    full: Word<u64>,
    contention_retries: Word<u64>,
    clock_regressions: Word<u64>,
    /// The newest time passed.
    newest: Word<u64>,
}

// === impl Counted ===

impl<A> Counted<A> {
    /// Counts on 16 lines: threads beyond that share them.
    pub fn new(algorithm: A) -> Self {
        Self::with_lines(algorithm, LINES)
    }

    /// Counts on so many lines, one at least.
    pub fn with_lines(algorithm: A, lines: usize) -> Self {
        let lines: Vec<_> = (0..lines.max(1)).map(|_| CachePadded::default()).collect();
        Self { algorithm, lines: lines.into_boxed_slice() }
    }

    /// The counts so far, over all lines. While calls are made they are of no one moment, but none ever falls.
    pub fn statistics(&self) -> Statistics {
        self.lines.iter().fold(Statistics::default(), |sum, line| sum.and(line))
    }

    /// The algorithm. What is asked of it directly is not counted.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    #[inline]
    fn line(&self) -> &Line {
        &self.lines[ByThread::home(self.lines.len())]
    }

    /// Counts what `take` answers. A refusal is counted as that of the one rule, if `is_one_rule` says that nothing else can
    /// have refused, else as what `peek` tells.
    #[inline]
    fn count_taken(
        &self,
        cost: u64,
        now: Nanos,
        take: impl FnOnce() -> bool,
        is_one_rule: impl FnOnce() -> bool,
        peek: impl FnOnce() -> Decision,
    ) -> bool {
        let lost = contention_retries();
        let admitted = take();
        let line = self.line();
        line.came(now, lost);
        if admitted {
            line.admitted(cost);
        } else if is_one_rule() {
            count(line.refused_by(0), 1);
        } else {
            match peek() {
                // A permit came free meanwhile: the rule with the least left is as good a guess as any.
                Ok(quota) => count(line.refused_by(quota.rule), 1),
                Err(denied) => line.refused(&denied),
            }
        }
        admitted
    }

    /// Counts what `check` answers, which is a decision as `read` reads it.
    fn count_checked<R>(
        &self,
        cost: u64,
        now: Nanos,
        check: impl FnOnce() -> R,
        read: impl FnOnce(&R) -> Decision,
    ) -> R {
        let lost = contention_retries();
        let answer = check();
        let line = self.line();
        line.came(now, lost);
        match read(&answer) {
            Ok(_) => line.admitted(cost),
            Err(denied) => line.refused(&denied),
        }
        answer
    }
}

impl Counted<AnyLayers> {
    /// Takes `cost` permits from every layer, all or nothing: [`Layers::try_acquire_at`].
    pub fn try_acquire_at<const N: usize>(&self, layers: &Layers<'_, N>, cost: u64, now: Nanos) -> bool {
        let take = || layers.try_acquire_at(cost, now);
        self.count_taken(cost, now, take, || false, || by_layer(&layers.peek_at(cost, now)))
    }

    /// Takes `cost` permits from every layer, all or nothing, and tells of one layer what it has left or why it refused:
    /// [`Layers::check_at`].
    pub fn check_at<const N: usize>(
        &self,
        layers: &Layers<'_, N>,
        cost: u64,
        now: Nanos,
    ) -> (usize, Decision) {
        self.count_checked(cost, now, || layers.check_at(cost, now), by_layer)
    }
}

/// The answer of layers, with the layer in the place of its rule.
fn by_layer(&(layer, decision): &(usize, Decision)) -> Decision {
    let of = |quota| Quota { rule: layer, ..quota };
    decision.map(of).map_err(|denied| Denied { quota: of(denied.quota), ..denied })
}

#[cfg(feature = "keyed")]
impl<K, S> Counted<Keyed<K, S>>
where
    K: ?Sized + Hash + Eq + alloc::borrow::ToOwned<Owned: Borrow<K>>,
    S: BuildHasher,
{
    /// Takes `cost` permits of `key` at `now`, all or nothing: [`Keyed::try_acquire_at`].
    pub fn try_acquire_at(&self, key: &K, cost: u64, now: Nanos) -> bool {
        let keyed = &self.algorithm;
        let take = || keyed.try_acquire_at(key, cost, now);
        self.count_taken(cost, now, take, || false, || keyed.peek_at(key, cost, now))
    }

    /// Takes `cost` permits of `key` at `now`, all or nothing, and tells what is left or how long to wait:
    /// [`Keyed::check_at`].
    ///
    /// # Errors
    /// [`Denied`], which changed nothing.
    pub fn check_at(&self, key: &K, cost: u64, now: Nanos) -> Decision {
        self.count_checked(cost, now, || self.algorithm.check_at(key, cost, now), Decision::clone)
    }

    /// Not counted: [`Keyed::peek_at`].
    ///
    /// # Errors
    /// [`Denied`].
    pub fn peek_at(&self, key: &K, cost: u64, now: Nanos) -> Decision {
        self.algorithm.peek_at(key, cost, now)
    }

    /// Permits charged to `rule` of `key`: [`Keyed::usage_at`].
    pub fn usage_at(&self, key: &K, rule: usize, now: Nanos) -> Option<u64> {
        self.algorithm.usage_at(key, rule, now)
    }
}

impl<A: Algorithm> Algorithm for Counted<A> {
    #[inline]
    fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool {
        let algorithm = &self.algorithm;
        let take = || algorithm.try_acquire_at(cost, now);
        // No largest cost is below 1.
        let is_one_rule = || cost == 1 && now.in_range() && algorithm.rules().len() == 1;
        self.count_taken(cost, now, take, is_one_rule, || algorithm.peek_at(cost, now))
    }

    fn check_at(&self, cost: u64, now: Nanos) -> Decision {
        self.count_checked(cost, now, || self.algorithm.check_at(cost, now), Decision::clone)
    }

    /// Not counted.
    fn peek_at(&self, cost: u64, now: Nanos) -> Decision {
        self.algorithm.peek_at(cost, now)
    }

    fn has_room_at(&self, cost: u64, now: Nanos) -> bool {
        self.algorithm.has_room_at(cost, now)
    }

    fn usage_at(&self, rule: usize, now: Nanos) -> Option<u64> {
        self.algorithm.usage_at(rule, now)
    }

    fn rules(&self) -> Rules {
        self.algorithm.rules()
    }

    fn state_bytes(&self) -> usize {
        self.algorithm.state_bytes() + size_of_val::<[_]>(&self.lines)
    }

    /// Forgets every admission; the counts stay.
    fn reset(&mut self) {
        self.algorithm.reset();
    }
}

// === impl Line ===

/// Adds to a count.
#[inline]
fn count(word: &Word<u64>, more: u64) {
    word.fetch_add(more, Relaxed); // O1
}

impl Line {
    #[inline]
    fn admitted(&self, cost: u64) {
        count(&self.admitted, 1);
        count(&self.permits, cost);
    }

    /// The last stands for all beyond it, which an algorithm of the caller's may name.
    #[inline]
    fn refused_by(&self, rule: usize) -> &Word<u64> {
        &self.refused_by[rule.min(RULES_MAX - 1)]
    }

    fn refused(&self, denied: &Denied) {
        let word = match denied.reason {
            Reason::Limit { .. } | Reason::Never => self.refused_by(denied.quota.rule),
            Reason::Full { .. } => &self.full,
            Reason::MaxCost { .. } => &self.max_cost,
            Reason::TimeOutOfRange => &self.out_of_range,
        };
        count(word, 1);
    }

    /// Notes the time of a call, and what its thread has lost since.
    #[inline]
    fn came(&self, now: Nanos, lost: u64) {
        let lost = contention_retries().wrapping_sub(lost);
        if lost > 0 {
            count(&self.contention_retries, lost);
        }
        let newest = self.newest.load(Relaxed); // O2
        if now.as_nanos() < newest {
            count(&self.clock_regressions, 1);
        } else if now.as_nanos() > newest && now.in_range() {
            self.newest.store(now.as_nanos(), Relaxed); // O2
        }
    }
}

// === impl Statistics ===

impl Statistics {
    /// Calls that were refused, for whatever reason.
    pub fn refused(&self) -> u64 {
        self.refused_by.iter().sum::<u64>() + self.max_cost + self.out_of_range + self.full
    }

    /// With the counts of a line.
    fn and(mut self, line: &Line) -> Self {
        let of = |word: &Word<u64>| word.load(Relaxed); // O1
        self.admitted += of(&line.admitted);
        self.permits = self.permits.wrapping_add(of(&line.permits));
        for (sum, word) in self.refused_by.iter_mut().zip(&line.refused_by) {
            *sum += of(word);
        }
        self.max_cost += of(&line.max_cost);
        self.out_of_range += of(&line.out_of_range);
        self.full += of(&line.full);
        self.contention_retries += of(&line.contention_retries);
        self.clock_regressions += of(&line.clock_regressions);
        self
    }
}
