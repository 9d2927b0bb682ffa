//! Many histories, one limit: shards.
//!
//! # What
//! `S` histories, each with memory of its own and a part of the limit; the parts add up to the limit. A caller takes
//! from the shard that its thread calls home, so that threads do not meet, and is refused only after every shard has
//! refused. No shard exceeds its part, so the sum never exceeds the limit.
//!
//! # State
//! | word            | bits  | field      | meaning                                                              |
//! |-----------------|-------|------------|----------------------------------------------------------------------|
//! | `refused_until` | upper | until      | before this time every shard refuses every cost, rounded down to 4,096 ns |
//! |                 | lower | generation | of the limits by which that was found; others take no notice           |
//! | shards          |       |            | as their algorithm says                                              |
//!
//! # Invariants
//! | id | always                                                                      | kept by                    | checked by |
//! |----|-----------------------------------------------------------------------------|----------------------------|------------|
//! | I1 | the parts add up to the limit, and differ by at most 1                       | `Parted::with_parts`       | properties |
//! | I2 | `until` was the earliest time at which a shard frees a permit, at one instant of a scan by the limits of this generation | `publish`, `covers`: each asks for its own generation | models |
//! | I3 | a scan refuses only when every shard refused at one judged time               | `scan`                     | model `counter-example` |
//! | I4 | the rings of a shard's two possible parts are alike, if its part may change     | `Parted::with_rules`       | properties |
//!
//! # Linearization points
//! L1 admission: that of the shard that admits. L2 refusal by a scan at time `t`: any instant between the last shard's
//! refusal and the first look after it. Each shard was full at `t` when it refused, and still has no newer time than `t`
//! when looked at after all have refused; at a fixed time a full shard stays as it is, so all were full together in
//! between. If a look finds a later time, all are asked again at that one: somebody was admitted meanwhile.
//! L3 refusal by `refused_until`: the instant L2 of the scan that stored it, or the call's own beginning if that is
//! later. No call that began before it carried a time at or past `until` (unless times step back), so all shards are
//! as they were: full.
//!
//! # What is exact
//! For single permits, limits that do not change and times that do not step back (whoever begins later carries
//! no earlier time), every answer is that of one history with the whole limit. Otherwise:
//! - *costs*: a refusal of cost `n` means that at one instant no shard had `n` free: at most `S (n - 1)` were free in all;
//! - *a time that steps back* is judged by each shard at the newest that this shard knows; a call with a time before
//!   `until` may be refused although one with a later time has been admitted. Never over, all the same;
//! - *after* 2^14 *changes* of the limits the generation recurs: a time that was stored so many changes ago, has not come
//!   yet and was neither taken back nor replaced would count again;
//! - *after a lowering* use may exceed the new limit by what shards hold above their new parts, for one window.
//!
//! # Memory order
//! | id | site                      | order   | pairs with | because                                                          |
//! |----|---------------------------|---------|------------|------------------------------------------------------------------|
//! | O1 | `refused_until`, load     | Acquire | O2         | who sees `until` comes after the scan that found it              |
//! | O2 | `refused_until`, CAS of a scan | Release | O1    | the scan comes before every refusal that rests on it             |
//! | O3 | `refused_until`, CAS of an admission | Relaxed | none | it takes a value back that others need not see           |
//! | O4 | numbers of threads        | Relaxed | none       | each is given once, in whatever order                            |
//! | O5 | `refused_until`, load before a scan | Relaxed | none | only compared, by the CAS that may follow                |
//!
//! The shards' own orders are their algorithm's; that a later look sees what led to an earlier refusal is O1 to O5 of
//! the log, O1 to O4 of the counter.
//!
//! # Progress
//! Lock-free: a scan starts over only when somebody was admitted at a later time.

mod home;
mod look;
#[cfg(not(tollgate_loom))]
mod placed;

use alloc::{boxed::Box, vec::Vec};
use core::{mem::offset_of, slice};

use crossbeam_utils::CachePadded;

use crate::{
    ConfigError, Log, Nanos, Rule, Rules, Window,
    algorithm::{InParts, Parts, StateOf, WithRules, algorithm},
    block::Owned,
    decision::{self, History, Limits, Look},
    live::{Changes, ChangesRules, Settings, fetch_before},
    sync::{Acquire, GENERATION_BITS, Relaxed, Release, Word, word},
};
pub(crate) use home::ByThread;
use home::{Chosen, Home};
use look::ShardedLook;

/// Bits below the time in [`Until`]: its top two bits are never set.
const LOW: u64 = (1 << (GENERATION_BITS + 2)) - 1;

/// One limit over many shards: an admission touches a shard that other threads leave alone.
///
/// Built by [`LogBuilder::build_sharded`](crate::LogBuilder::build_sharded) and
/// [`WindowBuilder::build_sharded`](crate::WindowBuilder::build_sharded), for one rule. The limit is cut into one
/// part a shard: 10 over 4 shards are 3, 3, 2, 2; shards beyond the limit have nothing. Take as many shards as threads
/// call at once.
///
/// # Guarantees
/// Never over, under any interleaving: no shard exceeds its part. For single permits and times that do not step back
/// never falsely refused either: a refusal means that at one instant no shard had a permit (as exactly as the
/// algorithm knows). A refusal of cost `n` means that at one instant no shard had `n`: so up to
/// `shards * (n - 1)` permits may be free, scattered. A time older than the newest is judged by each shard at the
/// newest that it knows itself, and may be refused while a call with a later time is admitted.
///
/// The largest cost is the smallest part above 0; a larger one is refused with
/// [`Reason::Never`](crate::Reason::Never) or [`Reason::MaxCost`](crate::Reason::MaxCost).
///
/// # Cost
/// Admission: that of the algorithm, a load of a word that is seldom written, and a look at what the thread remembers.
/// Refusal: one load and one compare while all is known to be full, else a scan of all shards. `check` and `peek` look
/// at every shard at least twice.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Nanos, Window};
///
/// let limiter = Window::builder(10, Duration::from_secs(1)).max_cost(2).build_sharded(4)?;
/// let now = Nanos::from_secs(5);
/// let admitted = (0..100).filter(|_| limiter.try_acquire_at(1, now)).count();
/// assert_eq!(admitted, 10);
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct Sharded<A: Shard> {
    config: Parted<A::Config>,
    state: State<A>,
}

/// The state of all shards.
struct State<A: Shard> {
    refused_until: CachePadded<Word<Until>>,
    shards: Box<[Memory<A>]>,
}

/// An algorithm that can be sharded: [`Log`] and [`Window`].
#[expect(private_bounds, reason = "sealed")]
pub trait Shard: InParts + 'static {}

/// Where the shards of a limiter lie.
pub(crate) trait Shards<'s, A: Shard>: Copy {
    fn refused_until(self) -> &'s Word<Until>;
    fn len(self) -> usize;
    /// The state of a shard; `None`: there is no such shard.
    fn get(self, shard: usize) -> Option<StateOf<'s, A>>;
    /// What names the limiter.
    fn address(self) -> usize;
}

impl Shard for Log {}
impl Shard for Window {}

/// The sharded counter on the coarse clock: the cheapest limiter for many threads.
///
/// A permit comes back up to a bucket late, and the coarse clock may lag by what
/// [`Coarse::staleness`](crate::Coarse::staleness) shows: in real time the promise is the limit in any window less that lag.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Coarse, Limiter, ShardedCounter, Window};
///
/// let counter = Window::builder(1_000, Duration::from_secs(1)).build_sharded(2)?;
/// let _fresh = Coarse::start(Duration::from_millis(1)); // As long as it lives; without it each call reads the clock.
/// let limiter: ShardedCounter = Limiter::new(counter, Coarse::new());
/// assert!(limiter.try_acquire());
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[cfg(feature = "std")]
pub type ShardedCounter = crate::Limiter<Sharded<Window>, crate::Coarse>;

/// The memory of a shard.
type Memory<A> = Owned<<<A as InParts>::Config as Parts>::Heads, <<A as InParts>::Config as Parts>::Slot>;

/// A limit in parts: the configuration of a sharded log or counter, without its state
/// ([`LogBuilder::config_sharded`](crate::LogBuilder::config_sharded),
/// [`WindowBuilder::config_sharded`](crate::WindowBuilder::config_sharded)).
///
/// What is promised is what [`Sharded`] promises. A state lies in one piece: a line, and the shards' states.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Parted<C> {
    rule: Rule,
    shards: u64,
    /// Changes of the rule so far, as [`Until`] counts them.
    generation: u64,
    /// How many shards have the larger part: the first ones.
    larger: u64,
    /// The smaller part.
    smallest: u64,
    /// The largest part.
    passable: u64,
    /// The largest cost asked for; all ones if none was.
    declared: u64,
    max_cost: u64,
    ceiling: u64,
    /// The configurations of the larger part and of the smaller one.
    parts: [C; 2],
}

// SAFETY: contract of `NoUninit`: words and configurations of words, in C's order, so no padding.
unsafe impl<C: bytemuck::NoUninit> bytemuck::NoUninit for Parted<C> {}

/// A configuration on the shards, and where a call begins.
pub(crate) struct OnSharded<'s, A: Shard, S, H> {
    config: &'s Parted<A::Config>,
    shards: S,
    home: H,
}

word!(
    /// `until | generation`.
    Until
);

// === impl Sharded ===

impl<A: Shard> Sharded<A> {
    /// Takes the memory.
    pub(crate) fn new(config: Parted<A::Config>) -> Result<Self, ConfigError> {
        let memory = |shard| Owned::zeroed(config.part(shard).0.slots());
        let shards: Result<Vec<_>, _> = (0..config.shards as usize).map(memory).collect();
        let state = State { refused_until: CachePadded::default(), shards: shards?.into_boxed_slice() };
        Ok(Self { config, state })
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.state.shards.len()
    }

    /// Takes `cost` permits at `now` as [`try_acquire_at`](crate::Algorithm::try_acquire_at) does, beginning at a shard that the caller
    /// chooses, `home` modulo the number of shards: for callers who know their processor, or without `std`, where
    /// other calls know a thread by its stack alone.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Log, Nanos};
    ///
    /// let log = Log::builder(2, Duration::from_secs(1)).build_sharded(2)?;
    /// assert!(log.try_acquire_from(1, 1, Nanos::ZERO) && log.try_acquire_from(1, 1, Nanos::ZERO));
    /// assert!(!log.try_acquire_from(0, 1, Nanos::ZERO));
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    #[inline]
    pub fn try_acquire_from(&self, home: usize, cost: u64, now: Nanos) -> bool {
        decision::try_acquire(&self.on_config(&self.config, Chosen(home)), cost, now)
    }

    #[inline(always)]
    fn on(&self) -> OnSharded<'_, A, &State<A>, ByThread> {
        self.on_config(&self.config, ByThread)
    }

    #[inline(always)]
    fn on_config<'s, H>(
        &'s self,
        config: &'s Parted<A::Config>,
        home: H,
    ) -> OnSharded<'s, A, &'s State<A>, H> {
        OnSharded { config, shards: &self.state, home }
    }

    fn bytes(&self) -> usize {
        let shards: usize = (0..self.shards()).map(|shard| self.config.part(shard).0.bytes()).sum();
        size_of::<CachePadded<Word<Until>>>() + shards
    }

    fn clear(&mut self) {
        self.state.refused_until = CachePadded::default();
        self.state.shards.iter_mut().for_each(Owned::clear);
    }
}

algorithm!({A: Shard} Sharded<A>, it, &it.config, &it.on());

impl<A: Shard> Changes for Sharded<A>
where
    A::Config: WithRules + Settings,
{
    type Settings = Parted<A::Config>;

    fn first(&self) -> Result<Self::Settings, ConfigError> {
        self.config.with_rules(Rules::one(self.config.rule))
    }

    #[inline(always)]
    fn under<'a>(&'a self, settings: &'a Self::Settings) -> impl History<Limits = Self::Settings> {
        self.on_config(settings, ByThread)
    }
}

impl<A: Shard> ChangesRules for Sharded<A>
where
    A::Config: WithRules + Settings,
{
    fn with_rules(settings: &Self::Settings, rules: Rules) -> Result<Self::Settings, ConfigError> {
        settings.with_rules(rules)
    }
}

// === impl State ===

impl<'s, A: Shard> Shards<'s, A> for &'s State<A> {
    #[inline(always)]
    fn refused_until(self) -> &'s Word<Until> {
        &self.refused_until
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.shards.len()
    }

    #[inline(always)]
    fn get(self, shard: usize) -> Option<StateOf<'s, A>> {
        Some(self.shards.get(shard)?.at())
    }

    #[inline(always)]
    fn address(self) -> usize {
        self.shards.as_ptr().addr()
    }
}

// === impl Parted ===

impl<C: Copy> Parted<C> {
    /// The most shards.
    const SHARDS_MAX: u64 = 1 << 16;

    /// Cuts the rule into parts for so many shards (I1); `part` configures one, for a limit and a largest cost.
    pub(crate) fn new(
        rules: Rules,
        max_cost: u64,
        shards: usize,
        part: impl Fn(u64, u64) -> Result<C, ConfigError>,
    ) -> Result<Self, ConfigError> {
        rules.validate()?;
        let shards = shards as u64;
        rules.expect_at_most(1)?;
        let rule = rules.first();
        if !(1..=Self::SHARDS_MAX).contains(&shards) {
            return Err(ConfigError::Shards { got: shards, min: 1, max: Self::SHARDS_MAX });
        }
        let (smallest, passable) = (rule.limit / shards, rule.limit.div_ceil(shards));
        let least = if smallest > 0 { smallest } else { passable };
        if max_cost != u64::MAX && max_cost > least && rule.limit > 0 {
            return Err(ConfigError::Part { max_cost, part: least });
        }
        let part = |limit| part(limit, max_cost).map_err(|error| of_all(error, rule.limit, shards));
        let parts = [part(passable)?, part(smallest)?];
        let blank = Self {
            rule,
            shards,
            generation: 0,
            larger: 0,
            smallest,
            passable,
            declared: max_cost,
            max_cost,
            ceiling: 0,
            parts,
        };
        Ok(blank.with_parts(rule, parts))
    }

    /// The same with another rule, for the same shards.
    fn with_rules(&self, rules: Rules) -> Result<Self, ConfigError>
    where
        C: WithRules,
    {
        rules.expect_at_most(1)?;
        let rule = rules.first();
        if self.parts[0].slots() != self.parts[1].slots() {
            return Err(ConfigError::Uneven { limit: self.rule.limit, shards: self.shards }); // I4
        }
        let part = |limit| {
            let part = self.parts[0].with_rules(Rules::one(Rule { limit, ..rule }));
            part.map_err(|error| of_all(error, rule.limit, self.shards))
        };
        let smallest = rule.limit / self.shards;
        let parts = [part(rule.limit.div_ceil(self.shards))?, part(smallest)?];
        let generation = (self.generation + 1) & LOW;
        Ok(Self { generation, ..self.with_parts(rule, parts) })
    }

    /// The same with a rule in these parts.
    fn with_parts(&self, rule: Rule, parts: [C; 2]) -> Self {
        let (smallest, larger) = (rule.limit / self.shards, rule.limit % self.shards);
        let passable = smallest + u64::from(larger > 0);
        let least = if smallest > 0 { smallest } else { passable };
        let max_cost = if self.declared == u64::MAX { least.max(1) } else { self.declared };
        let ceiling = passable.min(max_cost);
        Self { rule, larger, smallest, passable, max_cost, ceiling, parts, ..*self }
    }

    /// The configuration of a shard, and its part.
    #[inline(always)]
    fn part(&self, shard: usize) -> (&C, u64) {
        let [larger, smaller] = &self.parts;
        if (shard as u64) < self.larger { (larger, self.smallest + 1) } else { (smaller, self.smallest) }
    }
}

/// What was wrong with a part, in the caller's terms.
#[cold]
fn of_all(error: ConfigError, got: u64, shards: u64) -> ConfigError {
    match error {
        ConfigError::Limit { max, .. } => ConfigError::Limit { got, max: max.saturating_mul(shards) },
        other => other,
    }
}

impl<C: Settings> Settings for Parted<C> {
    #[inline(always)]
    fn in_use(mut fetch: impl FnMut(usize) -> u64) {
        let parts = offset_of!(Self, parts);
        fetch_before(parts, &mut fetch);
        for part in [parts, parts + size_of::<C>()] {
            C::in_use(|place| fetch(part / 8 + place));
        }
    }
}

impl<C> Limits for Parted<C> {
    fn rules(&self) -> &[Rule] {
        slice::from_ref(&self.rule)
    }

    fn passable(&self, _rule: usize) -> u64 {
        self.passable
    }

    fn max_cost(&self) -> u64 {
        self.max_cost
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

// === impl OnSharded ===

impl<'s, A: Shard, S: Shards<'s, A>, H: Home> OnSharded<'s, A, S, H> {
    /// Asks all shards, until they agree.
    #[inline(never)]
    fn take_slow(self, cost: u64, now: Nanos) -> bool {
        let mut at = now;
        loop {
            let seen = self.shards.refused_until().load(Relaxed); // O5
            match self.scan(cost, at) {
                Ok(None) => {
                    if seen != Until(0) {
                        self.withdraw(seen);
                    }
                    return true;
                }
                Ok(Some(free)) if free > at => {
                    if cost == 1 {
                        self.publish(seen, free, at);
                    }
                    return false; // L2
                }
                Ok(Some(_)) => {}
                Err(later) => at = later,
            }
        }
    }

    /// Takes from one shard.
    #[inline(always)]
    fn take_from(&self, shard: usize, cost: u64, now: Nanos) -> bool {
        let Some(state) = self.shards.get(shard) else { return false };
        decision::try_acquire(&A::on_state(self.config.part(shard).0, state), cost, now) // L1
    }

    /// Takes from any shard, or tells from when on one frees a permit; `Err` tells a later time to be judged at.
    fn scan(&self, cost: u64, at: Nanos) -> Result<Option<Nanos>, Nanos> {
        let (len, address) = (self.shards.len(), self.shards.address());
        let home = self.home.of(address, len);
        for shard in (home..len).chain(0..home.min(len)) {
            if self.take_from(shard, cost, at) {
                self.home.remember(address, shard);
                return Ok(None);
            }
        }
        let mut free = Nanos::from_nanos(u64::MAX);
        for shard in 0..len {
            let (seen_at, passes) = self.ask(shard, cost, at);
            if seen_at > at {
                return Err(seen_at); // I3
            }
            free = free.min(passes);
        }
        Ok(Some(free))
    }

    /// The time at which a call at `at` is judged by a shard, and when it passes there.
    fn ask(&self, shard: usize, cost: u64, at: Nanos) -> (Nanos, Nanos) {
        let (config, part) = self.config.part(shard);
        let Some(state) = self.shards.get(shard) else { return (at, Nanos::from_nanos(u64::MAX)) };
        let history = A::on_state(config, state);
        // Lock-free: a round is lost only to another caller that was admitted meanwhile.
        loop {
            let look = history.look(at);
            match part.checked_sub(cost) {
                None => return (look.at(), Nanos::from_nanos(u64::MAX)),
                Some(keep) => {
                    if let Some(wait) = look.wait(0, keep) {
                        return (look.at(), look.at() + wait);
                    }
                }
            }
        }
    }

    /// After a scan that found single permits to be free from `until` on.
    fn publish(&self, seen: Until, until: Nanos, now: Nanos) {
        let next = Until::new(until, self.config.generation);
        if next.covers(now, self.config.generation) {
            // Beaten: another scan's time stands there, as good as this one.
            let _ = self.shards.refused_until().compare_exchange(seen, next, Release, Relaxed); // O2
        }
    }

    /// After an admission: a time that has passed must not refuse whoever comes with an older one.
    #[cold]
    #[inline(never)]
    fn withdraw(&self, seen: Until) {
        // Beaten: another took it back, or there is a newer one.
        let _ = self.shards.refused_until().compare_exchange(seen, Until(0), Relaxed, Relaxed); // O3
    }
}

impl<'s, A: Shard, S: Shards<'s, A>, H: Home> History for OnSharded<'s, A, S, H> {
    type Limits = Parted<A::Config>;
    type Look<'a>
        = ShardedLook<'s, A, S>
    where
        Self: 'a;

    fn limits(&self) -> &Parted<A::Config> {
        self.config
    }

    /// What is known to be full; if nothing is, the shard at home.
    #[inline(always)]
    fn glance(&self, cost: u64, now: Nanos) -> Option<bool> {
        if cost.wrapping_sub(1) >= self.config.ceiling {
            return None; // One compare for both ends: 0 wraps to the top.
        }
        let seen = self.shards.refused_until().load(Acquire); // O1, L3
        if seen != Until(0) {
            // A time out of range, whatever was compared, is refused as well.
            return seen.covers(now, self.config.generation).then_some(false);
        }
        let shard = self.home.of(self.shards.address(), self.shards.len());
        let state = self.shards.get(shard)?;
        A::on_state(self.config.part(shard).0, state).glance(cost, now).filter(|admitted| *admitted) // L1
    }

    #[inline(always)]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        self.take_slow(cost, now)
    }

    fn look(&self, now: Nanos) -> ShardedLook<'s, A, S> {
        ShardedLook::new(self.config, self.shards, now)
    }
}

impl<A: Shard, S: Copy, H: Copy> Clone for OnSharded<'_, A, S, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Shard, S: Copy, H: Copy> Copy for OnSharded<'_, A, S, H> {}

// === impl Until ===

impl Until {
    /// Before `until`, rounded down, by the limits of this generation; a time out of range is as late as can be.
    fn new(until: Nanos, generation: u64) -> Self {
        Self(until.min(Nanos::MAX).as_nanos() << 2 & !LOW | generation)
    }

    /// Whether a call at `now` by the limits of this generation is refused by it.
    #[inline(always)]
    fn covers(self, now: Nanos, generation: u64) -> bool {
        // In units of the word; below the time lies the generation, which the ones make up for.
        ((now.as_nanos() << 2) | LOW) < self.0 && self.0 & LOW == generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 1 << GENERATION_BITS;

    /// Refused before the time, never at it or after; a word of zeros and one of other limits refuse nobody.
    #[test]
    fn until_refuses_before_it_and_never_after() {
        let at = Nanos::from_nanos;
        for until in [STEP, 10 * STEP, 10 * STEP + 1, Nanos::MAX.as_nanos(), u64::MAX] {
            for generation in [0, 1, LOW] {
                let word = Until::new(at(until), generation);
                let due = until.min(Nanos::MAX.as_nanos()) / STEP * STEP;
                assert!(word.covers(at(due - 1), generation) && word.covers(at(0), generation), "{until}");
                assert!(!word.covers(at(due), generation) && !word.covers(Nanos::MAX, generation), "{until}");
                assert!(!word.covers(at(0), (generation + 1) & LOW), "{until}");
            }
        }
        assert!(!Until(0).covers(at(0), 0) && !Until::new(at(STEP - 1), 5).covers(at(0), 5));
    }

    #[test]
    fn shards_of_one_cache_line_or_more_do_not_meet() {
        let counter = Window::builder(4, core::time::Duration::from_secs(1)).build_sharded(3).unwrap();
        let places: Vec<_> =
            counter.state.shards.iter().map(|memory| (&raw const *memory.at().head()).addr()).collect();
        for (n, place) in places.iter().enumerate() {
            assert!(place.is_multiple_of(crate::block::LINE));
            assert!(
                places[..n].iter().all(|other| place.abs_diff(*other) >= counter.config.parts[0].bytes())
            );
        }
    }
}
