//! The limits of one layer: each by itself ([`All`], [`By`]), and several together, all or nothing ([`Tiers`]).

use std::{
    borrow::Cow,
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hash},
    ops::Deref,
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

use http::StatusCode;
use tollgate::{Algorithm, Decision, Keyed, Layer, Layers, Nanos, Quota, Rules};

use crate::{Head, Key, Names, Policy};

/// One limit for all requests.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::Window;
/// use tollgate_tower::{All, RateLimitLayer};
///
/// let window = Window::builder(10_000, Duration::from_secs(1)).build()?;
/// let layer = RateLimitLayer::builder(All::new(window).named("global")).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct All<A> {
    algorithm: A,
    names: Names,
}

/// One limit for each key.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Gcra, Keyed};
/// use tollgate_tower::{By, Header, Key, PeerIp, RateLimitLayer};
///
/// // By user where there is one, else by address: a user and an address are never the same key.
/// let bucket = Gcra::builder(60, Duration::from_secs(60)).burst(10).config()?;
/// let users = Keyed::builder(bucket, 100_000).build()?;
/// let by = By::new(Header::new("x-user").or(PeerIp::new()), users);
/// let layer = RateLimitLayer::builder(by.named("user")).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct By<K: Key, S = RandomState> {
    key: K,
    keyed: RwLock<Keyed<K::Key, S>>,
    names: Names,
    no_key: NoKey,
}

/// What becomes of a request that has no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoKey {
    /// This limit does not ask about it; others of the layer do.
    Admit,
    /// It is refused with this status.
    Refuse(StatusCode),
}

/// A request without a key where one is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keyless {
    /// The status that it is refused with.
    pub status: StatusCode,
}

/// One limit of a layer: [`All`] or [`By`].
pub trait Tier: Send + Sync {
    /// The limiter that one request meets.
    type Limiter<'a>: Limiter
    where
        Self: 'a;

    /// The limiter that this request meets.
    ///
    /// # Errors
    /// [`Keyless`].
    fn limiter<'a>(&'a self, head: &Head<'a>) -> Result<Self::Limiter<'a>, Keyless>;

    /// The names of its rules.
    fn names(&self) -> &Names;
}

/// A limiter as one request meets it.
pub trait Limiter: Layer {
    /// Its rules; `None` if this request has no limit here.
    fn rules(&self) -> Option<Rules>;
}

/// The limits of one layer, the outermost first: one [`Tier`], or a tuple of up to four. A request takes from all of them or
/// from none, as [`Layers`] do.
pub trait Tiers: Send + Sync {
    /// Decides on a request of this cost at `now`. `None`: it is let through, and nobody asked for `figures`, which cost more
    /// than the decision.
    ///
    /// # Errors
    /// [`Keyless`], and nothing was taken.
    fn rule(
        &self,
        head: &Head<'_>,
        cost: u64,
        now: Nanos,
        figures: bool,
    ) -> Result<Option<Ruling<'_>>, Keyless>;

    /// What a request has left of each limit, the outermost first; nothing is taken. Limits that it does not fall under are
    /// left out.
    ///
    /// # Errors
    /// [`Keyless`].
    fn standing(&self, head: &Head<'_>, now: Nanos) -> Result<Vec<(&Names, Quota)>, Keyless>;

    /// The names of each limit's rules.
    fn names(&self) -> Vec<&Names>;
}

/// A decision, and the limits that it was made by.
#[derive(Debug)]
pub struct Ruling<'a> {
    /// Which limit the decision speaks of, by its place.
    pub(crate) tier: usize,
    pub(crate) decision: Decision,
    /// Each limit's names and rules.
    pub(crate) limits: Vec<(&'a Names, Option<Rules>)>,
}

/// The limit of all, as a request meets it.
pub struct Whole<'a, A>(&'a A);

/// The limit of one key, as a request meets it.
pub struct Of<'a, K: ?Sized + ToOwned, S> {
    keyed: RwLockReadGuard<'a, Keyed<K, S>>,
    key: Option<Cow<'a, K>>,
}

// === impl All ===

impl<A: Algorithm> All<A> {
    /// By this algorithm of the core.
    pub fn new(algorithm: A) -> Self {
        Self { algorithm, names: Names::default() }
    }

    /// Under this name; `default` by default.
    pub fn named(self, name: &str) -> Self {
        self.rules_named(&[name])
    }

    /// Under these names, one for each rule in its order.
    pub fn rules_named(mut self, names: &[&str]) -> Self {
        self.names = Names::new(names);
        self
    }

    /// The algorithm, to change its rules, read its statistics, or ask it outside of requests.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }
}

impl<A: Algorithm> Tier for All<A> {
    type Limiter<'a>
        = Whole<'a, A>
    where
        A: 'a;

    fn limiter<'a>(&'a self, _: &Head<'a>) -> Result<Whole<'a, A>, Keyless> {
        Ok(Whole(&self.algorithm))
    }

    fn names(&self) -> &Names {
        &self.names
    }
}

impl<A> fmt::Debug for All<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("All").field("names", &self.names).finish_non_exhaustive()
    }
}

impl<A: Algorithm> Layer for Whole<'_, A> {
    fn take_at(&self, cost: u64, now: Nanos) -> bool {
        self.0.try_acquire_at(cost, now)
    }

    fn decide_at(&self, cost: u64, now: Nanos) -> Decision {
        self.0.check_at(cost, now)
    }

    fn look_at(&self, cost: u64, now: Nanos) -> Decision {
        self.0.peek_at(cost, now)
    }
}

impl<A: Algorithm> Limiter for Whole<'_, A> {
    fn rules(&self) -> Option<Rules> {
        Some(self.0.rules())
    }
}

impl<A> fmt::Debug for Whole<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Whole").finish_non_exhaustive()
    }
}

// === impl By ===

impl<K: Key, S: BuildHasher + Send + Sync> By<K, S> {
    /// By this key. A request without one is refused with 400, unless [`no_key`](By::no_key) tells otherwise.
    pub fn new(key: K, keyed: Keyed<K::Key, S>) -> Self {
        let no_key = NoKey::Refuse(StatusCode::BAD_REQUEST);
        Self { key, keyed: RwLock::new(keyed), names: Names::default(), no_key }
    }

    /// Under this name; `default` by default.
    pub fn named(self, name: &str) -> Self {
        self.rules_named(&[name])
    }

    /// Under these names, one for each rule in its order.
    pub fn rules_named(mut self, names: &[&str]) -> Self {
        self.names = Names::new(names);
        self
    }

    /// What becomes of a request that has no key. To have all of them share one, use [`Key::or`] with a
    /// [`Named`](crate::Named).
    pub fn no_key(mut self, then: NoKey) -> Self {
        self.no_key = then;
        self
    }

    /// The limiters, to ask them outside of requests. [`replace`](By::replace) waits while they are held.
    pub fn keyed(&self) -> impl Deref<Target = Keyed<K::Key, S>> {
        self.read()
    }

    /// Puts other limiters in place of these: other rules for all keys, and whatever was charged is forgotten. Requests
    /// that are being decided end by the old ones.
    pub fn replace(&self, keyed: Keyed<K::Key, S>) {
        let old = {
            let mut place = self.keyed.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, keyed)
        };
        drop(old); // It may take a while, and not under the lock.
    }

    fn read(&self) -> RwLockReadGuard<'_, Keyed<K::Key, S>> {
        self.keyed.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key, S: BuildHasher + Send + Sync> Tier for By<K, S> {
    type Limiter<'a>
        = Of<'a, K::Key, S>
    where
        K: 'a,
        S: 'a;

    fn limiter<'a>(&'a self, head: &Head<'a>) -> Result<Of<'a, K::Key, S>, Keyless> {
        let key = self.key.key(head);
        match (&key, self.no_key) {
            (None, NoKey::Refuse(status)) => Err(Keyless { status }),
            _ => Ok(Of { keyed: self.read(), key }),
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }
}

impl<K: Key, S> fmt::Debug for By<K, S> {
    /// Not the keys: to print is no reason to wait.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("By").field("names", &self.names).finish_non_exhaustive()
    }
}

// === impl Of ===

impl<K, S> Of<'_, K, S>
where
    K: ?Sized + ToOwned + Hash + Eq,
    S: BuildHasher,
{
    fn ask(&self, now: Nanos, ask: impl Fn(&Keyed<K, S>, &K) -> Decision) -> Decision {
        match &self.key {
            Some(key) => ask(&self.keyed, key),
            None => Ok(Quota::new(u64::MAX, now)),
        }
    }
}

impl<K, S> Layer for Of<'_, K, S>
where
    K: ?Sized + ToOwned<Owned: Send + Sync> + Hash + Eq + Send + Sync,
    S: BuildHasher + Send + Sync,
{
    fn take_at(&self, cost: u64, now: Nanos) -> bool {
        self.key.as_ref().is_none_or(|key| self.keyed.try_acquire_at(key, cost, now))
    }

    fn decide_at(&self, cost: u64, now: Nanos) -> Decision {
        self.ask(now, |keyed, key| keyed.check_at(key, cost, now))
    }

    fn look_at(&self, cost: u64, now: Nanos) -> Decision {
        self.ask(now, |keyed, key| keyed.peek_at(key, cost, now))
    }
}

impl<K, S> Limiter for Of<'_, K, S>
where
    K: ?Sized + ToOwned<Owned: Send + Sync> + Hash + Eq + Send + Sync,
    S: BuildHasher + Send + Sync,
{
    fn rules(&self) -> Option<Rules> {
        self.keyed.rules_of(self.key.as_ref()?)
    }
}

impl<K: ?Sized + ToOwned, S> fmt::Debug for Of<'_, K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Of").finish_non_exhaustive()
    }
}

// === impl Tiers ===

impl<T: Tier> Tiers for T {
    fn rule(
        &self,
        head: &Head<'_>,
        cost: u64,
        now: Nanos,
        figures: bool,
    ) -> Result<Option<Ruling<'_>>, Keyless> {
        let limiter = self.limiter(head)?;
        if !figures && limiter.take_at(cost, now) {
            return Ok(None);
        }
        // Refused, or perhaps not any more: a permit may have come free since.
        let decision = limiter.decide_at(cost, now);
        Ok(Some(Ruling { tier: 0, decision, limits: vec![(Tier::names(self), limiter.rules())] }))
    }

    fn standing(&self, head: &Head<'_>, now: Nanos) -> Result<Vec<(&Names, Quota)>, Keyless> {
        Ok(quota_of(&self.limiter(head)?, now).map(|quota| (Tier::names(self), quota)).into_iter().collect())
    }

    fn names(&self) -> Vec<&Names> {
        vec![Tier::names(self)]
    }
}

macro_rules! tiers {
    ($($tier:ident $at:tt),+) => {
        impl<$($tier: Tier),+> Tiers for ($($tier,)+) {
            fn rule(
                &self,
                head: &Head<'_>,
                cost: u64,
                now: Nanos,
                figures: bool,
            ) -> Result<Option<Ruling<'_>>, Keyless> {
                let limiters = ($(self.$at.limiter(head)?,)+);
                let layers = Layers::new([$(&limiters.$at as &dyn Layer),+]);
                if !figures && layers.try_acquire_at(cost, now) {
                    return Ok(None);
                }
                let (tier, decision) = layers.check_at(cost, now);
                let limits = vec![$((Tier::names(&self.$at), limiters.$at.rules())),+];
                Ok(Some(Ruling { tier, decision, limits }))
            }

            fn standing(&self, head: &Head<'_>, now: Nanos) -> Result<Vec<(&Names, Quota)>, Keyless> {
                let each = [$((Tier::names(&self.$at), quota_of(&self.$at.limiter(head)?, now))),+];
                Ok(each.into_iter().filter_map(|(names, quota)| Some((names, quota?))).collect())
            }

            fn names(&self) -> Vec<&Names> {
                vec![$(Tier::names(&self.$at)),+]
            }
        }
    };
}

tiers!(A 0);
tiers!(A 0, B 1);
tiers!(A 0, B 1, C 2);
tiers!(A 0, B 1, C 2, D 3);

/// What is left; `None` where there is no limit.
fn quota_of(limiter: &impl Limiter, now: Nanos) -> Option<Quota> {
    limiter.rules()?;
    Some(limiter.look_at(1, now).unwrap_or_else(|denied| denied.quota))
}

// === impl Ruling ===

impl<'a> Ruling<'a> {
    /// Every limit that the request falls under.
    pub(crate) fn policies(&self) -> impl Iterator<Item = Policy<'a>> {
        self.limits.iter().flat_map(|(names, rules)| {
            let rules = rules.iter().flat_map(|rules| rules.iter());
            rules.enumerate().map(|(at, &rule)| Policy { name: names.of(at), rule })
        })
    }

    /// The limit that the decision speaks of; `None` if the request falls under none.
    pub(crate) fn policy(&self) -> Option<Policy<'a>> {
        let (names, rules) = self.limits.get(self.tier)?;
        let rule = self.quota().rule;
        Some(Policy { name: names.of(rule), rule: *rules.as_ref()?.get(rule)? })
    }

    /// The figures of the decision.
    pub(crate) fn quota(&self) -> Quota {
        self.decision.unwrap_or_else(|denied| denied.quota)
    }
}
