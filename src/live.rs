//! Other limits while callers call.
//!
//! # What
//! A limiter whose rules may be replaced. The state is not touched: what was admitted so far counts under the new
//! rules as under the old. A call copies what it needs of the configuration and asks the state by that; so limiters that
//! never change pay nothing.
//!
//! # State
//! | word         | meaning                                                                            |
//! |--------------|------------------------------------------------------------------------------------|
//! | `generation` | changes so far; its lowest bit names the copy that holds the present configuration   |
//! | two copies   | the configuration as words: the present one, and the one before it or the next one   |
//!
//! # Invariants
//! | id | always                                                                        | kept by                | checked by   |
//! |----|-------------------------------------------------------------------------------|------------------------|--------------|
//! | I1 | the copy that `generation` names holds a whole configuration                    | `publish`: written, then named | model, threads |
//! | I2 | a copy is written only while `generation` names the other                       | `publish`, under the lock | model     |
//! | I3 | a copy read between two equal readings of `generation` is whole                 | I1, I2, O2, O3         | model, threads |
//! | I4 | a configuration is a whole number of words, aligned like one                     | `WORDS`, at compile time | compiler   |
//! | I5 | every word that may not be zero, and every one that is looked at, is in use        | `Settings::in_use`     | properties `live` |
//!
//! # Linearization points
//! L1 change: the store of `generation`. A call that overlaps it may have read either configuration, and uses that one,
//! whole; a call that begins later reads the new one. The calls' own points are those of their algorithm.
//!
//! # Memory order
//! | id | site                    | order   | pairs with | because                                                     |
//! |----|-------------------------|---------|------------|-------------------------------------------------------------|
//! | O1 | `generation`, first load | Acquire | O5        | the copy it names is then seen as written                     |
//! | O2 | a word of a copy, load  | Acquire | O4         | a word of a later generation shows, at O3, a `generation` past the one read |
//! | O3 | `generation`, read again | Relaxed | none      | it only has to come after O2, and O2 acquires                |
//! | O4 | a word of a copy, store | Release | O2         | whoever sees it sees the `generation` that left this copy free |
//! | O5 | `generation`, store     | Release | O1         | publishes the copy                                           |
//! | O6 | a word, load before a store | Relaxed | none    | only holders of the lock store it                            |
//!
//! # Progress
//! A call starts over only when two changes were published while it read. Changes take turns by a lock, which no call
//! takes.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::{mem::MaybeUninit, slice};

use bytemuck::NoUninit;
use crossbeam_utils::CachePadded;

use crate::{
    Algorithm, ConfigError, Decision, Nanos, RULES_MAX, Rule, Rules,
    algorithm::{InParts, WithRules},
    decision::{self, History, Limits},
    sync::{Acquire, Lock, Relaxed, Release, Word},
};

/// A limiter whose rules may be replaced while any number of threads call it.
///
/// Use so far is kept: permits admitted under the old rules count under the new. A call that overlaps a change is
/// judged by the old rules or by the new, whole; a later call by the new. After a lowering nothing is admitted until the
/// use has fallen below the new limit; a limit of 0 refuses every cost above 0, as *never*, until it is raised again.
///
/// | kind | what may change |
/// |---|---|
/// | [`Log`](crate::Log) | any rules, with limits up to [`capacity`](crate::LogBuilder::capacity) (default: the largest limit at first) |
/// | [`Window`](crate::Window) | limits, and windows that are multiples of the bucket's width, up to [`window_max`](crate::WindowBuilder::window_max) (default: the longest window at first) |
/// | [`Sharded`](crate::Sharded) | as the above, one rule; a log needs a `capacity`. Use may exceed a lowered limit by what shards hold above their new parts, for one window |
/// | [`Fixed`](crate::Fixed), [`TwoWindow`](crate::TwoWindow) | the limit, up to the largest of the type for that window |
/// | [`Compact`](crate::Compact) | the limit, up to [`capacity`](crate::CompactBuilder::capacity) (default: the limit at first) |
/// | [`Gcra`](crate::Gcra) | rate and burst together, from a moment on ([`Live::set_rate_at`]): rates up to [`rate_max`](crate::GcraBuilder::rate_max) (default: that at first) |
///
/// Anything else is an error and changes nothing: another width or number of buckets is another limiter. The other
/// kinds do not change while they run.
///
/// A log remembers as many permits as its capacity: where a longer window reaches back to more, the use shown is the capacity.
/// No answer to a call depends on those before.
///
/// A counter needs half of its range for changes: its largest limit is half of that in the table at
/// [`Window`](crate::Window), or less for windows that are shorter than the longest.
///
/// # Cost
/// A call copies what it needs of the configuration first: 6 to 20 loads of words that are seldom written, with one rule,
/// and 5 or less for each further one; 50 or less for shards.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Live, Log, Nanos, Rule};
///
/// let minute = Duration::from_secs(60);
/// let log = Live::new(Log::builder(30, minute).capacity(150).build()?)?;
/// let t = Nanos::from_secs;
/// assert!(log.try_acquire_at(30, t(0)) && !log.try_acquire_at(1, t(0)));
///
/// log.set_rules(&[Rule::new(150, minute)])?;
/// assert_eq!(log.peek_at(1, t(10)).map(|quota| quota.remaining), Ok(120));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct Live<A: Changing> {
    algorithm: A,
    rules: LiveRules<A>,
}

/// The rules that one limiter or many follow: whoever holds it may replace them. Cloning it makes another handle.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Live, Nanos, Rule, Window};
///
/// let second = Duration::from_secs(1);
/// let build = || Window::builder(2, second).build();
/// let first = Live::new(build()?)?;
/// let second_one = Live::follow(build()?, first.handle())?;
///
/// first.handle().set(&[Rule::new(3, second)])?;
/// assert!(second_one.try_acquire_at(3, Nanos::ZERO));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct LiveRules<A: Changing>(Arc<Published<A::Settings>>);

/// One configuration and its copies.
pub(crate) struct Published<S> {
    generation: CachePadded<Word<u64>>,
    copies: [Box<[Word<u64>]>; 2],
    /// What all began with.
    first: S,
    /// The present configuration. Held by whoever changes it.
    present: Lock<S>,
}

/// An algorithm whose rules may change while it runs.
#[expect(private_bounds, reason = "sealed")]
pub trait Changing: Changes + 'static {}

impl<A: Changes + 'static> Changing for A {}

/// An algorithm that counts by rules alone, which may be replaced while it runs: every one that [`Live`] lists but
/// [`Gcra`](crate::Gcra).
#[expect(private_bounds, reason = "sealed")]
pub trait ByRules: Changing + ChangesRules {}

impl<A: Changing + ChangesRules> ByRules for A {}

/// What [`Live`] asks of an algorithm.
pub(crate) trait Changes: Algorithm {
    /// All that may change.
    type Settings: Settings + Limits;

    /// Those to begin with: what it was built with, if that is among those that it may be given.
    fn first(&self) -> Result<Self::Settings, ConfigError>;

    /// Its history under other settings.
    fn under<'a>(&'a self, settings: &'a Self::Settings) -> impl History<Limits = Self::Settings>;
}

/// A configuration that may be replaced: words alone.
pub(crate) trait Settings: NoUninit + Send + Sync {
    /// Asks for every word in use, by its place, and is told what it is. The others are entries of lists beyond their
    /// number of rules, which nobody looks at: in a copy they are zero.
    #[inline(always)]
    fn in_use(mut fetch: impl FnMut(usize) -> u64) {
        for place in 0..size_of::<Self>() / 8 {
            fetch(place);
        }
    }
}

/// Asks for the words before `offset` (in bytes).
#[inline(always)]
pub(crate) fn fetch_before(offset: usize, fetch: &mut impl FnMut(usize) -> u64) {
    for place in 0..offset / 8 {
        fetch(place);
    }
}

/// Asks for the rules at one offset (in bytes), and for as many entries of a list of `T` at another.
#[inline(always)]
pub(crate) fn fetch_rules_and<T>(rules: usize, list: usize, fetch: &mut impl FnMut(usize) -> u64) {
    // While the copy is replaced, it may be any number; no more are asked for than there are.
    let entries = (fetch(rules / 8) as usize).min(RULES_MAX);
    for entry in 0..entries {
        for (list, size) in [(rules + 8, size_of::<Rule>()), (list, size_of::<T>())] {
            for place in 0..size / 8 {
                fetch((list + entry * size) / 8 + place);
            }
        }
    }
}

/// What a change of the rules asks of an algorithm.
pub(crate) trait ChangesRules: Changes {
    /// The same with other rules, for the state that these or others such have left.
    fn with_rules(settings: &Self::Settings, rules: Rules) -> Result<Self::Settings, ConfigError>;
}

impl<A: InParts> Changes for A
where
    A::Config: WithRules + Settings,
{
    type Settings = A::Config;

    fn first(&self) -> Result<A::Config, ConfigError> {
        let config = self.config();
        config.with_rules(Rules::of(config.rules()))
    }

    #[inline(always)]
    fn under<'a>(&'a self, settings: &'a A::Config) -> impl History<Limits = A::Config> {
        A::on_state(settings, self.state())
    }
}

impl<A: InParts> ChangesRules for A
where
    A::Config: WithRules + Settings,
{
    fn with_rules(settings: &A::Config, rules: Rules) -> Result<A::Config, ConfigError> {
        settings.with_rules(rules)
    }
}

// === impl Live ===

impl<A: Changing> Live<A> {
    /// Lets the rules of a new limiter change from now on.
    ///
    /// # Errors
    /// Its own rules are not among those that it could be given: a counter's limit above half of its range, or a
    /// sharded log of uneven parts without a capacity.
    pub fn new(algorithm: A) -> Result<Self, ConfigError> {
        let published = Published::new(algorithm.first()?);
        Ok(Self { algorithm, rules: LiveRules(Arc::new(published)) })
    }

    /// Lets a new limiter follow the rules of others, now and from now on. It must have been built like the first of
    /// them, with the same rules.
    ///
    /// # Errors
    /// [`ConfigError::Unlike`] if it was built otherwise.
    pub fn follow(algorithm: A, rules: &LiveRules<A>) -> Result<Self, ConfigError> {
        let first = algorithm.first()?;
        if words(&first) != words(&rules.0.first) {
            return Err(ConfigError::Unlike);
        }
        Ok(Self { algorithm, rules: rules.clone() })
    }

    /// Replaces the rules: [`LiveRules::set`].
    ///
    /// # Errors
    /// Those of [`LiveRules::set`].
    pub fn set_rules(&self, rules: &[Rule]) -> Result<(), ConfigError>
    where
        A: ByRules,
    {
        self.rules.set(rules)
    }

    /// What its rules are replaced by.
    pub fn handle(&self) -> &LiveRules<A> {
        &self.rules
    }
}

impl<A: Changing> Algorithm for Live<A> {
    #[inline]
    fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool {
        self.rules.0.read(|settings| decision::try_acquire(&self.algorithm.under(settings), cost, now))
    }

    fn check_at(&self, cost: u64, now: Nanos) -> Decision {
        self.rules.0.read(|settings| decision::check(&self.algorithm.under(settings), cost, now))
    }

    fn peek_at(&self, cost: u64, now: Nanos) -> Decision {
        self.rules.0.read(|settings| decision::peek(&self.algorithm.under(settings), cost, now))
    }

    fn has_room_at(&self, cost: u64, now: Nanos) -> bool {
        self.rules.0.read(|settings| decision::has_room(&self.algorithm.under(settings), cost, now))
    }

    fn usage_at(&self, rule: usize, now: Nanos) -> Option<u64> {
        self.rules.0.read(|settings| decision::usage(&self.algorithm.under(settings), rule, now))
    }

    fn rules(&self) -> Rules {
        self.rules.get()
    }

    fn state_bytes(&self) -> usize {
        self.algorithm.state_bytes()
    }

    /// Forgets every admission. The rules stay as they are.
    fn reset(&mut self) {
        self.algorithm.reset();
    }
}

// === impl LiveRules ===

impl<A: Changing> LiveRules<A> {
    /// Replaces the rules: all of them, by these. Whatever call begins after that is judged by them.
    ///
    /// One change at a time: another waits.
    ///
    /// # Errors
    /// Rules that these limiters can not be given (the table at [`Live`]). Nothing has changed.
    pub fn set(&self, rules: &[Rule]) -> Result<(), ConfigError>
    where
        A: ByRules,
    {
        self.replace(|present| A::with_rules(present, Rules::of(rules)))
    }

    /// Replaces the settings by what `next` makes of the present ones.
    pub(crate) fn replace(
        &self,
        next: impl FnOnce(&A::Settings) -> Result<A::Settings, ConfigError>,
    ) -> Result<(), ConfigError> {
        let published = &*self.0;
        let mut present = published.present.lock();
        let next = next(&present)?;
        published.publish(&next);
        *present = next;
        Ok(())
    }

    /// The present rules.
    pub fn get(&self) -> Rules {
        self.0.read(|settings| Rules::of(settings.rules()))
    }
}

impl<A: Changing> Clone for LiveRules<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

// === impl Published ===

/// A configuration as words.
fn words<S: NoUninit>(settings: &S) -> &[u64] {
    bytemuck::cast_slice(core::slice::from_ref(settings))
}

impl<S: Settings> Published<S> {
    /// Words of a configuration.
    const WORDS: usize = {
        assert!(align_of::<S>() == 8 && size_of::<S>().is_multiple_of(8), "I4");
        size_of::<S>() / 8
    };

    pub(crate) fn new(first: S) -> Self {
        let copy =
            || words(&first).iter().map(|&word| Word::new(word)).collect::<Vec<_>>().into_boxed_slice();
        let (copies, present) = ([copy(), copy()], Lock::new(first));
        Self { generation: CachePadded::default(), copies, first, present }
    }

    /// What all began with.
    #[cfg(any(feature = "shared", tollgate_loom))]
    pub(crate) fn first(&self) -> &S {
        &self.first
    }

    /// Replaces the present configuration, unless somebody else is just doing so: nobody waits.
    #[cfg(any(feature = "shared", tollgate_loom))]
    pub(crate) fn try_replace(&self, next: &S) {
        if let Some(mut present) = self.present.try_lock() {
            self.publish(next);
            *present = *next;
        }
    }

    /// Holds up who would replace it.
    #[cfg(all(test, feature = "shared"))]
    pub(crate) fn hold<R>(&self, during: impl FnOnce() -> R) -> R {
        let _held = self.present.lock();
        during()
    }

    /// The copy that a generation names.
    #[inline(always)]
    fn copy(&self, generation: u64) -> &[Word<u64>] {
        &self.copies[(generation & 1) as usize]
    }

    /// Replaces the present configuration. For whoever holds the lock.
    fn publish(&self, next: &S) {
        let generation = self.generation.load(Relaxed).wrapping_add(1); // O3
        for (word, &value) in self.copy(generation).iter().zip(words(next)) {
            if word.load(Relaxed) != value {
                // O6
                word.store(value, Release); // O4, I2
            }
        }
        self.generation.store(generation, Release); // O5, L1
    }

    /// Asks by the present configuration, in a copy that is not moved.
    #[inline(always)]
    pub(crate) fn read<R>(&self, ask: impl FnOnce(&S) -> R) -> R {
        let mut settings = MaybeUninit::<S>::zeroed();
        // SAFETY: I4: there are so many words in it, aligned, and nobody else's.
        let words = unsafe { slice::from_raw_parts_mut(settings.as_mut_ptr().cast::<u64>(), Self::WORDS) };
        loop {
            let generation = self.generation.load(Acquire); // O1
            // SAFETY: I1: a copy has as many words. So the compiler knows that, and checks no place.
            let copy = unsafe { self.copy(generation).get_unchecked(..Self::WORDS) };
            S::in_use(|place| {
                let word = copy.get(place).map_or(0, |word| word.load(Acquire)); // O2
                if let Some(place) = words.get_mut(place) {
                    *place = word;
                }
                word
            });
            let unmoved = self.generation.load(Relaxed) == generation; // O3
            if unmoved {
                break;
            }
        }
        // SAFETY: I3: all words in use of a whole configuration; the others are zero, as they may be (I5).
        ask(unsafe { settings.assume_init_ref() })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::{Compact, Fixed, Gcra, Log, TwoWindow, Window};

    const SECOND: Duration = Duration::from_secs(1);

    /// How many words a call copies.
    fn copied<A: Changes>(algorithm: Result<A, ConfigError>) -> usize {
        let settings = algorithm.and_then(|algorithm| algorithm.first()).unwrap();
        let (words, mut copied) = (words(&settings), 0);
        A::Settings::in_use(|place| {
            copied += 1;
            words[place]
        });
        copied
    }

    #[test]
    fn a_call_copies_as_much_as_is_said() {
        let (log, window) = (Log::builder(8, SECOND), Window::builder(8, SECOND));
        let of_one_rule = [
            copied(log.build()),
            copied(window.build()),
            copied(Fixed::builder(8, SECOND).build()),
            copied(TwoWindow::builder(8, SECOND).build()),
            copied(Gcra::builder(8, SECOND).build()),
            copied(Compact::builder(8, SECOND).build()),
        ];
        assert_eq!((of_one_rule.iter().min(), of_one_rule.iter().max()), (Some(&6), Some(&20)));
        let further = |build: fn(u64) -> usize| (build(8) - build(1)) / 7;
        let logs = |rules| {
            copied(
                (2..=rules)
                    .fold(Log::builder(8, SECOND), |log, n| log.rule(8 * n, SECOND * n as u32))
                    .build(),
            )
        };
        let counters = |rules| {
            let counter = Window::builder(8, SECOND);
            copied((2..=rules).fold(counter, |it, n| it.rule(8 * n, SECOND * n as u32)).build())
        };
        assert_eq!((further(logs), further(counters)), (5, 3));
        let sharded = [copied(log.capacity(8).build_sharded(2)), copied(window.build_sharded(2))];
        assert_eq!(sharded.iter().max(), Some(&50));
    }
}
