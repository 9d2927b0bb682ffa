//! Many limiters by key, in bounded memory.
//!
//! # What
//! All keys of a class share one configuration; each has a state of its own, in memory taken once at construction. A
//! key gets a state with its first admission. It leaves when a later call, of whatever key, finds its history empty,
//! so that a new state would decide the same: no thread, no sweep, and no key comes back with a fresh quota before its
//! time.
//!
//! Keys are spread over shards by a keyed hash, which a stranger can not foresee. Each shard has a lock, which is held
//! while a call finds its key and asks its state. So a state can not be taken from a key while a caller holds it; a
//! caller that comes to the lock later looks the key up again.
//!
//! A shard is a hash table of a fixed size whose keys never move (`places.rs`). A state of one word lies beside its key,
//! so that a call finds both in one or two cache lines; others lie side by side, heads with heads and rings with rings
//! (`block.rs`).
//!
//! # Invariants
//! Those of the shards stand in `shard.rs`.
//!
//! | id | always                                                          | kept by               | checked by                   |
//! |----|------------------------------------------------------------------|-----------------------|------------------------------|
//! | I1 | a state is reached only under the lock of its shard              | `shards` is private    | models *keyed*               |
//! | I2 | a key has one state at most                                      | `find` and `insert` under one lock | models *keyed*    |
//! | I3 | a refusal makes no key, and takes none but an idle one's place    | the costs that a new state refuses are never given one | property `keyed_agrees` |
//! | I4 | memory is that of construction, the keys' own heap apart          | `Shard::new`           | tests `bytes_per_key`, `hostile_keys` |
//!
//! # Linearization points
//! L1: the algorithm's own, under the lock; between keys there is no order to be had.
//!
//! # Memory order
//! Those of the lock and of the algorithm: no ordering here.
//!
//! # Progress
//! Blocking, by shard: a thread that is stopped inside a call holds up the keys of one shard, a few thousandths of all
//! where there are many. Work under the lock is bounded: one look-up, one call of the algorithm, and the hand's steps (a row
//! of seven now and then, or 16 where the shard is full). The limiter that keys without room share is lock-free if its algorithm is.

mod address;
mod places;
mod shard;
mod states;

use alloc::{borrow::ToOwned, boxed::Box, sync::Arc, vec::Vec};
use core::{
    borrow::Borrow,
    fmt,
    hash::{BuildHasher, Hash},
};

use crossbeam_utils::CachePadded;

use crate::{
    ConfigError, Decision, Denied, Layer, Nanos, Quota, Reason, Rules,
    algorithm::{On, Parts, reserve},
    decision::History,
    sync::{Guard, Lock},
};
pub use address::network_of;
use places::Spot;
use shard::{Room, Shard};
use states::{Plan, States};

/// Keys to a shard, where there are many: so many that the shards differ little, so few that threads seldom meet.
const SHARD_KEYS: u64 = 16_000;
/// Shards, where there are few keys, so that threads seldom meet.
const SHARDS: u64 = 16;
/// Keys to a shard at least, before there are more shards than one.
const SHARD_KEYS_MIN: u64 = 64;

/// The state that is never written.
const BLANK: Spot<'_> = Spot { index: 0, word: None };
/// The state that keys without room share.
const SHARED: Spot<'_> = Spot { index: 1, word: None };

#[cfg(feature = "std")]
type RandomState = std::hash::RandomState;
/// Without std there is no source of randomness: the caller brings a hasher.
#[cfg(not(feature = "std"))]
type RandomState = core::convert::Infallible;

/// A limiter for each key.
///
/// `K` is the form in which keys are asked for: `Keyed<str>`, `Keyed<[u8]>`, `Keyed<u64>`, `Keyed<(Rule, IpAddr)>`. A key
/// is compared whole. Whatever tells two quotas apart belongs into it: the rule's name, whether it is a user or an
/// address; and nothing that does not, like a port. For clients by address, [`network_of`] gives the key.
///
/// # Classes
/// Keys may be of several classes: no limit, an exact log, a counter. A function tells a key's class, by its number in
/// the order given; it is asked in every call, and a number that is not there means class 0. Each class has room for
/// keys of its own. A key that changes its class has a new history there. The limits of a class do not change while it runs.
///
/// # Room
/// Memory is taken at construction and does not grow, but for what the keys themselves hold on the heap. There is room
/// for at least the number of keys asked for, spread over shards of which each has a little room to spare; a key may find its
/// shard full when nearly as many keys are in use. A key is in use until nothing is charged to it. Idle keys leave
/// during ordinary calls, one at most in each; only an idle key ever leaves. What becomes of a new key while there is no room,
/// [`WhenFull`] tells.
///
/// A million keys (`u64`, one call each) take 105 bytes each for a log of 5 permits, 19 for a token bucket.
///
/// # Guarantees
/// Each key is limited as its algorithm says, for one call after the other and for calls at once, whichever keys come
/// and go. No admission is forgotten before it has left the window. A call with an older time than that at which
/// a key of its shard left, and with a new key, is judged at that time. A step of the clock far ahead therefore lets keys leave
/// early, as it frees permits early.
///
/// # Cost
/// A hash, an uncontended lock, a look-up, and the algorithm: of a limiter of one word (token bucket, fixed window,
/// two-window) key and state lie in two cache lines side by side. A look at seven other keys in every 14th call, or until
/// one of them is idle; never at more than 16. The hash is that of `std`'s maps, SipHash with a secret of the process: half the
/// time of a call whose key is in the cache. Where no key comes from a stranger, a faster hasher is safe, too.
///
/// # Examples
/// ```
/// # #[cfg(feature = "std")] {
/// use std::time::Duration;
/// use tollgate::{Keyed, Log, Nanos};
///
/// let log = Log::builder(5, Duration::from_secs(10)).config()?;
/// let users = Keyed::<str>::builder(log, 100_000).build()?;
///
/// let now = Nanos::from_secs(7);
/// assert!((0..5).all(|_| users.try_acquire_at("alice", 1, now)));
/// assert!(!users.try_acquire_at("alice", 1, now));
/// assert!(users.try_acquire_at("bob", 1, now));
/// assert_eq!((users.len(), users.usage_at("alice", 0, now)), (2, Some(5)));
/// # }
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
/// A class for each key:
/// ```
/// # #[cfg(feature = "std")] {
/// use std::time::Duration;
/// use tollgate::{Class, Keyed, Log, Nanos, Window};
///
/// let minute = Duration::from_secs(60);
/// let everybody = Window::builder(60, minute).buckets(6).config()?;
/// let vip = Log::builder(600, minute).config()?;
/// let limiter = Keyed::<str>::builder(everybody, 1_000_000)
///     .class(vip, 1_000)
///     .class(Class::unlimited(), 0)
///     .choose(|key: &str| match key.split(':').next() {
///         Some("vip") => 1,
///         Some("probe") => 2,
///         _ => 0,
///     })
///     .build()?;
///
/// let now = Nanos::from_secs(7);
/// assert!(!limiter.try_acquire_at("alice", 61, now));
/// assert!(limiter.try_acquire_at("vip:bob", 61, now));
/// assert!(limiter.try_acquire_at("probe:health", 1_000_000, now));
/// # }
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
pub struct Keyed<K: ?Sized + ToOwned, S = RandomState> {
    classes: Vec<Option<Table<K::Owned>>>,
    choose: Option<Choose<K>>,
    hasher: S,
}

/// The limiter of one key of a [`Keyed`], as a [`Layer`].
pub struct Of<'a, K: ?Sized + ToOwned, S = RandomState> {
    keyed: &'a Keyed<K, S>,
    key: &'a K,
}

/// What the keys of one class are allowed: made from a configuration (`LogBuilder::config` and its like).
#[derive(Clone)]
pub struct Class(Option<Arc<dyn Plan>>);

/// What becomes of a key for which there is no room, because as many keys as there is room for are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenFull {
    /// It shares one more limiter of its class with all others in its place: strangers in a flood keep each other
    /// out and nobody else. A key that gets a place of its own later has its whole quota there, so it may have been
    /// admitted twice its quota in one window.
    #[default]
    Share,
    /// It is refused, with [`Reason::Full`].
    Refuse,
}

/// Builds a [`Keyed`].
#[must_use = "a builder does nothing until it builds"]
pub struct KeyedBuilder<K: ?Sized, S = RandomState> {
    classes: Vec<(Class, u64)>,
    choose: Option<Choose<K>>,
    when_full: WhenFull,
    hasher: S,
}

/// Tells a key's class.
type Choose<K> = Box<dyn Fn(&K) -> usize + Send + Sync>;

/// The keys of one class.
struct Table<O> {
    shards: Box<[CachePadded<Lock<Shard<O>>>]>,
    /// Two states: [`BLANK`] and [`SHARED`].
    spare: Box<dyn States>,
    when_full: WhenFull,
}

// === impl Keyed ===

#[cfg(feature = "std")]
impl<K: ?Sized + Hash + Eq + ToOwned> Keyed<K> {
    /// Starts a limiter with room for so many keys of the first class, hashed with a secret of the process.
    pub fn builder(class: impl Into<Class>, keys: u64) -> KeyedBuilder<K> {
        Self::builder_with_hasher(class, keys, RandomState::new())
    }
}

impl<K: ?Sized + Hash + Eq + ToOwned, S: BuildHasher> Keyed<K, S> {
    /// As `builder`, with a hasher of the caller's. If keys come from strangers it must be keyed with a secret: who
    /// can choose hashes can fill a shard, or make each look-up slow.
    pub fn builder_with_hasher(class: impl Into<Class>, keys: u64, hasher: S) -> KeyedBuilder<K, S> {
        let classes = alloc::vec![(class.into(), keys)];
        KeyedBuilder { classes, choose: None, when_full: WhenFull::default(), hasher }
    }

    /// Takes `cost` permits of `key` at `now`, all or nothing. The cheapest call: yes or no.
    pub fn try_acquire_at(&self, key: &K, cost: u64, now: Nanos) -> bool {
        let Some(table) = self.table(key) else { return now.in_range() };
        self.take(table, key, cost, now, |states, spot, now| states.try_acquire_at(spot, cost, now))
            .unwrap_or(false)
    }

    /// Takes `cost` permits of `key` at `now`, all or nothing, and tells what is left or how long to wait.
    ///
    /// # Errors
    /// [`Denied`], which changed nothing.
    pub fn check_at(&self, key: &K, cost: u64, now: Nanos) -> Decision {
        let Some(table) = self.table(key) else { return unlimited(now) };
        self.take(table, key, cost, now, |states, spot, now| states.check_at(spot, cost, now))
            .unwrap_or_else(|retry_after| table.full(now, retry_after))
    }

    /// Tells whether [`check_at`](Keyed::check_at) would admit, with the figures of now, and changes nothing: the key is
    /// not made.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn peek_at(&self, key: &K, cost: u64, now: Nanos) -> Decision {
        let Some(table) = self.table(key) else { return unlimited(now) };
        let hash = self.hasher.hash_one(key);
        let shard = table.shard(hash);
        if let Some((_, spot)) = shard.places.find(hash, key) {
            return shard.states.peek_at(spot, cost, now);
        }
        if !table.is_ordinary(cost, now) {
            return table.spare.peek_at(BLANK, cost, now);
        }
        match shard.has_room(now) {
            Ok(()) => table.spare.peek_at(BLANK, cost, shard.admission_time(now)),
            Err(_) if table.when_full == WhenFull::Share => table.spare.peek_at(SHARED, cost, now),
            Err(retry_after) => table.full(now, retry_after),
        }
    }

    /// Permits charged to `rule` of `key` at `now`; `None` without such a rule, for a class without limits, or with a time out of
    /// range. The key is not made; what it took of a shared limiter is not told apart.
    pub fn usage_at(&self, key: &K, rule: usize, now: Nanos) -> Option<u64> {
        let table = self.table(key)?;
        let hash = self.hasher.hash_one(key);
        let shard = table.shard(hash);
        match shard.places.find(hash, key) {
            Some((_, spot)) => shard.states.usage_at(spot, rule, now),
            None => table.spare.usage_at(BLANK, rule, now),
        }
    }

    /// The rules of a key's class; `None` for one without limits. The key is not made.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use std::time::Duration;
    /// use tollgate::{Keyed, Log, Rule};
    ///
    /// let minute = Duration::from_secs(60);
    /// let users = Keyed::<str>::builder(Log::builder(5, minute).config()?, 100).build()?;
    /// assert_eq!(users.rules_of("alice").as_deref(), Some(&[Rule::new(5, minute)][..]));
    /// # }
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn rules_of(&self, key: &K) -> Option<Rules> {
        self.table(key).map(|table| table.spare.rules())
    }

    /// The limiter of one key, to be asked as a [`Layer`].
    pub fn of<'a>(&'a self, key: &'a K) -> Of<'a, K, S> {
        Of { keyed: self, key }
    }

    /// Forgives a key: forgets its history. Whether it had one.
    pub fn remove(&self, key: &K) -> bool {
        let Some(table) = self.table(key) else { return false };
        let hash = self.hasher.hash_one(key);
        let mut shard = table.shard(hash);
        let gone =
            shard.places.find(hash, key).map(|(place, _)| place).and_then(|place| shard.free(place, hash));
        drop(shard);
        gone.is_some()
    }

    /// Forgives every key for which `keep` is false; it is told the permits charged to the key's first rule at `now`.
    ///
    /// One shard after the other is locked meanwhile: `keep` must not call this limiter.
    pub fn retain_at(&self, now: Nanos, mut keep: impl FnMut(&K, u64) -> bool) {
        for shard in self.shards() {
            let mut shard = shard.lock();
            let used = |spot| shard.states.usage_at(spot, 0, now).unwrap_or(0);
            let forgiven: Vec<_> = shard
                .places
                .keys()
                .filter(|(_, key, spot)| !keep((*key).borrow(), used(*spot)))
                .map(|(place, key, _)| (place, self.hash(key)))
                .collect();
            let gone: Vec<_> = forgiven.into_iter().map(|(place, hash)| shard.free(place, hash)).collect();
            drop(shard);
            drop(gone);
        }
    }

    /// The `n` keys with the most permits charged to their first rule at `now`, the busiest first, with their use. Of
    /// calls at once each key is as at some moment of its own.
    ///
    /// # Cost
    /// A look at every key: for dashboards, not for hot paths.
    pub fn busiest_at(&self, n: usize, now: Nanos) -> Vec<(K::Owned, u64)> {
        let mut busiest: Vec<(K::Owned, u64)> = Vec::new();
        for shard in self.shards() {
            let shard = shard.lock();
            for (_, key, spot) in shard.places.keys() {
                let used = shard.states.usage_at(spot, 0, now).unwrap_or(0);
                let least = busiest.last().map_or(0, |&(_, least)| least);
                if used > 0 && (busiest.len() < n || used > least) {
                    let at = busiest.partition_point(|&(_, other)| other >= used);
                    busiest.insert(at, (key.borrow().to_owned(), used));
                    busiest.truncate(n);
                }
            }
        }
        busiest
    }

    /// Keys that have a history, those that are idle but have not yet left among them.
    pub fn len(&self) -> usize {
        self.shards().map(|shard| shard.lock().len()).sum()
    }

    /// Keys that have left so far because nothing was charged to them any more. Those removed are not counted.
    pub fn evicted(&self) -> u64 {
        self.shards().map(|shard| shard.lock().evicted()).sum()
    }

    /// Whether no key has a history.
    pub fn is_empty(&self) -> bool {
        self.shards().all(|shard| shard.lock().len() == 0)
    }

    /// The most keys that [`len`](Keyed::len) can ever be: at least as many as were asked for.
    pub fn capacity(&self) -> u64 {
        self.shards().map(|shard| u64::from(shard.lock().slots())).sum()
    }

    /// Bytes taken at construction for keys, histories and the index, whatever keys hold on the heap apart.
    pub fn state_bytes(&self) -> usize {
        let spare: usize = self.classes.iter().flatten().map(|table| table.spare.bytes()).sum();
        let padded = size_of::<CachePadded<Lock<Shard<K::Owned>>>>();
        spare + self.shards().map(|shard| padded + shard.lock().bytes()).sum::<usize>()
    }

    fn table(&self, key: &K) -> Option<&Table<K::Owned>> {
        let class = self.choose.as_ref().map_or(0, |choose| choose(key));
        self.classes.get(class).unwrap_or(&self.classes[0]).as_ref()
    }

    fn shards(&self) -> impl Iterator<Item = &Lock<Shard<K::Owned>>> {
        self.classes.iter().flatten().flat_map(|table| &table.shards).map(|shard| &**shard)
    }

    fn hash(&self, key: &K::Owned) -> u64 {
        self.hasher.hash_one(key.borrow())
    }

    /// Asks the state of `key`, a new one if it has none. `Err`: there is no room, or after how long.
    fn take<R>(
        &self,
        table: &Table<K::Owned>,
        key: &K,
        cost: u64,
        now: Nanos,
        ask: impl Fn(&dyn States, Spot<'_>, Nanos) -> R,
    ) -> Result<R, Nanos> {
        if !now.in_range() {
            return Ok(ask(&*table.spare, BLANK, now));
        }
        let hash = self.hasher.hash_one(key);
        let mut shard = table.shard(hash);
        let Some((_, spot)) = shard.places.find(hash, key) else {
            if !table.is_ordinary(cost, now) {
                return Ok(ask(&*table.spare, BLANK, now)); // I3
            }
            return self.take_new(table, shard, hash, key, now, ask);
        };
        let answer = ask(&*shard.states, spot, now); // L1
        let gone = shard.sweep(now, |key| self.hash(key));
        // Dropped after the lock: to drop a key may take time.
        drop(shard);
        drop(gone);
        Ok(answer)
    }

    /// The same of a key that has no state, for a cost that a new one would admit.
    #[inline(never)]
    fn take_new<R>(
        &self,
        table: &Table<K::Owned>,
        mut shard: Guard<'_, Shard<K::Owned>>,
        hash: u64,
        key: &K,
        now: Nanos,
        ask: impl Fn(&dyn States, Spot<'_>, Nanos) -> R,
    ) -> Result<R, Nanos> {
        let gone = match shard.room(now, |key| self.hash(key)) {
            Room::Made(gone) => gone,
            Room::Full(_) if table.when_full == WhenFull::Share => {
                drop(shard);
                return Ok(ask(&*table.spare, SHARED, now));
            }
            Room::Full(wait) => return Err(wait),
        };
        let (now, share) = (shard.admission_time(now), &mut *shard);
        let spot = share.places.insert(hash, key.to_owned()); // I2
        let answer = ask(&*share.states, spot, now); // L1
        drop(shard);
        drop(gone);
        Ok(answer)
    }
}

impl<K: ?Sized + ToOwned, S> fmt::Debug for Keyed<K, S> {
    /// Not the keys: to print is no reason to wait.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").field("classes", &self.classes.len()).finish_non_exhaustive()
    }
}

/// The answer where there is no limit.
fn unlimited(now: Nanos) -> Decision {
    let most = if now.in_range() { u64::MAX } else { 0 };
    let quota = Quota {
        rule: 0,
        limit: u64::MAX,
        remaining: most,
        next_after: Nanos::ZERO,
        reset_after: Nanos::ZERO,
        at: now,
    };
    if now.in_range() { Ok(quota) } else { Err(Denied { reason: Reason::TimeOutOfRange, quota }) }
}

// === impl Of ===

impl<K, S> Layer for Of<'_, K, S>
where
    K: ?Sized + Hash + Eq + ToOwned + Sync,
    K::Owned: Send,
    S: BuildHasher + Sync,
{
    fn take_at(&self, cost: u64, now: Nanos) -> bool {
        self.keyed.try_acquire_at(self.key, cost, now)
    }

    fn decide_at(&self, cost: u64, now: Nanos) -> Decision {
        self.keyed.check_at(self.key, cost, now)
    }

    fn look_at(&self, cost: u64, now: Nanos) -> Decision {
        self.keyed.peek_at(self.key, cost, now)
    }
}

// === impl Class ===

impl Class {
    /// No limit: every call is admitted and nothing is kept.
    pub const fn unlimited() -> Self {
        Self(None)
    }
}

impl<C: Parts + 'static> From<C> for Class
where
    for<'a> On<'a, C>: History,
    C::Heads: Send + Sync,
    C::Slot: Send,
{
    fn from(config: C) -> Self {
        Self(Some(Arc::new(config)))
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Class(limited)" } else { "Class(unlimited)" })
    }
}

// === impl KeyedBuilder ===

impl<K: ?Sized + Hash + Eq + ToOwned, S: BuildHasher> KeyedBuilder<K, S> {
    /// Adds a class with room for so many keys; one without limits needs none.
    pub fn class(mut self, class: impl Into<Class>, keys: u64) -> Self {
        self.classes.push((class.into(), keys));
        self
    }

    /// Tells a key's class, by its number in the order given, from 0. It is asked in every call, without a lock. The
    /// default is class 0 for all keys.
    pub fn choose(mut self, class: impl Fn(&K) -> usize + Send + Sync + 'static) -> Self {
        self.choose = Some(Box::new(class));
        self
    }

    /// What becomes of a key for which there is no room; the default is to share one more limiter.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Takes the memory.
    ///
    /// # Errors
    /// [`ConfigError::Keys`] for a class with a limit and room for no key, or too little memory.
    pub fn build(self) -> Result<Keyed<K, S>, ConfigError> {
        let Self { classes, choose, when_full, hasher } = self;
        let tables = classes.into_iter().map(|(class, keys)| {
            let Some(plan) = class.0 else { return Ok(None) };
            Table::new(&plan, keys, when_full).map(Some)
        });
        Ok(Keyed { classes: tables.collect::<Result<_, _>>()?, choose, hasher })
    }
}

impl<K: ?Sized, S> fmt::Debug for KeyedBuilder<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { classes, when_full, .. } = self;
        let mut debug = f.debug_struct("KeyedBuilder");
        debug.field("classes", classes).field("when_full", when_full).finish_non_exhaustive()
    }
}

// === impl Table ===

impl<O> Table<O> {
    fn new(plan: &Arc<dyn Plan>, keys: u64, when_full: WhenFull) -> Result<Self, ConfigError> {
        let (count, slots) = shape(keys)?;
        let mut shards = reserve(count)?;
        for _ in 0..count {
            shards.push(CachePadded::new(Lock::new(Shard::new(plan, slots)?)));
        }
        let spare = Arc::clone(plan).states(2)?;
        Ok(Self { shards: shards.into_boxed_slice(), spare, when_full })
    }

    /// The shard of a hash, locked. By bits that the index uses least.
    fn shard(&self, hash: u64) -> Guard<'_, Shard<O>> {
        let spread = u64::from((hash >> 20) as u32);
        let shard = (spread * self.shards.len() as u64) >> u32::BITS;
        self.shards[shard as usize].lock() // I1
    }

    /// Whether a new state would admit it, and be changed by it.
    fn is_ordinary(&self, cost: u64, now: Nanos) -> bool {
        (1..=self.spare.ceiling()).contains(&cost) && now.in_range()
    }

    /// The answer to a new key without room.
    fn full(&self, now: Nanos, retry_after: Nanos) -> Decision {
        let quota = match self.spare.peek_at(BLANK, 0, now) {
            Ok(quota) | Err(Denied { quota, .. }) => Quota { remaining: 0, next_after: retry_after, ..quota },
        };
        Err(Denied { reason: Reason::Full { retry_after }, quota })
    }
}

/// How many shards, and places in each, so many keys need: the fullest of shards is seldom fuller than four standard
/// deviations above the mean.
fn shape(keys: u64) -> Result<(u64, u32), ConfigError> {
    if keys == 0 {
        return Err(ConfigError::Keys { got: keys, min: 1 });
    }
    let shards = keys.div_ceil(SHARD_KEYS).max(SHARDS.min(keys / SHARD_KEYS_MIN)).max(1);
    let mean = keys.div_ceil(shards);
    let spare = if shards == 1 { 0 } else { 4 * mean.isqrt() };
    Ok((shards, u32::try_from(mean + spare).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_filled_well() {
        assert_eq!(shape(1), Ok((1, 1)));
        assert_eq!(shape(100), Ok((1, 100)));
        assert_eq!(shape(0), Err(ConfigError::Keys { got: 0, min: 1 }));
        for keys in [1, 63, 128, 1_000, 10_000, 108_799, 108_801, 1_000_000, 100_000_000, 1 << 40] {
            let (shards, slots) = shape(keys).unwrap();
            let room = shards * u64::from(slots);
            assert!(keys <= room && slots <= 16_508, "{keys}: {shards} of {slots}");
            assert!(keys < 100_000 || room < keys + keys / 16, "{keys}: {shards} of {slots}");
        }
    }
}
