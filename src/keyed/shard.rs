//! A share of the keys: which place each has, and which places are free. Under a lock, or alone.
//!
//! # State
//! A fixed number of places, each free or a key's. The index finds the place of a key by its hash; free places are a
//! list. A hand goes round the places, a step or a few in each call, and takes from a key whose history is empty its
//! place.
//!
//! # Invariants
//! | id | always                                                              | kept by                            |
//! |----|---------------------------------------------------------------------|------------------------------------|
//! | I1 | the index holds each place that is a key's, once, and no other       | `insert`, `free`: nobody else writes |
//! | I2 | the state at a free place is all zeros                               | `free`                             |
//! | I3 | the hand takes from a key only if its history is empty, so that it decides like a new one | `step` |
//! | I4 | no key is new before `floor`, the latest time at which the hand took from one | `Shard::admission_time` |
//!
//! I4 because a caller that comes late, with an older time, would find a new key in place of the old one's last
//! admissions: with it, both are judged at times that the hand has passed.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::borrow::Borrow;

use hashbrown::HashTable;

use super::states::{Plan, States};
use crate::{ConfigError, Nanos, algorithm::reserve};

/// Places that one call looks at, where none is free.
const LOOKS: u32 = 16;

/// A share of the keys.
pub(super) struct Shard<K> {
    index: HashTable<u32>,
    places: Vec<Place<K>>,
    /// The first free place among those used before.
    free: Option<u32>,
    slots: u32,
    hand: u32,
    floor: Nanos,
    /// Keys that the hand took a place from.
    evicted: u64,
    pub(super) states: Box<dyn States>,
}

/// A place.
enum Place<K> {
    Taken(K),
    /// With the next free one.
    Free(Option<u32>),
}

/// What making room came to.
pub(super) enum Room<K> {
    /// A free place, and the key that had to leave it.
    At(u32, Option<K>),
    /// Every place looked at is in use; the first will not be, if nobody comes, after this.
    Full(Nanos),
}

// === impl Place ===

impl<K> Place<K> {
    /// The hash of its key.
    fn hash(&self, hash: impl Fn(&K) -> u64) -> u64 {
        match self {
            Self::Taken(key) => hash(key),
            Self::Free(_) => 0,
        }
    }
}

// === impl Shard ===

impl<K> Shard<K> {
    /// A share with so many places.
    pub(super) fn new(plan: &Arc<dyn Plan>, slots: u32) -> Result<Self, ConfigError> {
        let mut index = HashTable::new();
        let bytes = || ConfigError::Memory { bytes: (slots as usize).saturating_mul(size_of::<u32>()) };
        index.try_reserve(slots as usize, |_| 0).map_err(|_| bytes())?;
        let states = Arc::clone(plan).states(slots.into())?;
        let places = reserve(slots.into())?;
        Ok(Self { index, places, free: None, slots, hand: 0, floor: Nanos::ZERO, evicted: 0, states })
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of memory taken.
    pub(super) fn bytes(&self) -> usize {
        self.states.bytes() + self.places.capacity() * size_of::<Place<K>>() + self.index.allocation_size()
    }

    /// The place of a key.
    pub(super) fn find<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.index.find(hash, |&place| self.key(place).is_some_and(|it| it.borrow() == key)).copied()
    }

    /// The key at a place.
    pub(super) fn key(&self, place: u32) -> Option<&K> {
        match self.places.get(place as usize) {
            Some(Place::Taken(key)) => Some(key),
            _ => None,
        }
    }

    /// All keys, with their places.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u32, &K)> {
        (0..).zip(&self.places).filter_map(|(place, at)| match at {
            Place::Taken(key) => Some((place, key)),
            Place::Free(_) => None,
        })
    }

    /// The time at which a new key's first permits are recorded (I4).
    pub(super) fn admission_time(&self, now: Nanos) -> Nanos {
        now.max(self.floor)
    }

    /// Whether a new key would get a place, or after how long.
    pub(super) fn has_room(&self, now: Nanos) -> Result<(), Nanos> {
        if self.vacant().is_some() {
            return Ok(());
        }
        let at = |step| (u64::from(self.hand) + u64::from(step)) % u64::from(self.slots);
        let waits = (0..LOOKS.min(self.slots)).map(|step| self.states.idle_after(at(step) as u32, now));
        match waits.min() {
            Some(Nanos::ZERO) | None => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// Finds a place for a new key; the hand moves on.
    pub(super) fn room(&mut self, now: Nanos, hash: impl Fn(&K) -> u64) -> Room<K> {
        let mut soonest = Nanos::from_nanos(u64::MAX);
        for _ in 0..LOOKS.min(self.slots) {
            let step = self.step(now, &hash);
            if let Some(place) = self.vacant() {
                return Room::At(place, step.ok());
            }
            soonest = soonest.min(step.err().unwrap_or(soonest));
        }
        Room::Full(soonest)
    }

    /// Moves the hand on by one place, and takes it from its key if that is idle (I3); else tells how long it is in use.
    pub(super) fn step(&mut self, now: Nanos, hash: impl Fn(&K) -> u64) -> Result<K, Nanos> {
        let (place, never) = (self.hand, Nanos::from_nanos(u64::MAX));
        self.hand = if (place as usize) + 1 < self.places.len() { place + 1 } else { 0 };
        let Some(key) = self.key(place) else { return Err(never) };
        let wait = self.states.idle_after(place, now);
        if wait > Nanos::ZERO {
            return Err(wait);
        }
        let hash = hash(key);
        self.floor = self.floor.max(now); // I4
        let key = self.free(place, hash).ok_or(never)?;
        self.evicted += 1;
        Ok(key)
    }

    /// Puts a key at the place that [`room`](Shard::room) found for it.
    pub(super) fn insert(&mut self, place: u32, key: K, of: u64, hash: impl Fn(&K) -> u64) {
        if self.index.len() == self.index.capacity() {
            self.tidy(&hash);
        }
        match self.places.get_mut(place as usize) {
            Some(at) => {
                if let Place::Free(next) = *at {
                    self.free = next;
                }
                *at = Place::Taken(key);
            }
            None => self.places.push(Place::Taken(key)),
        }
        let Self { index, places, .. } = self;
        index.insert_unique(of, place, |&place| places[place as usize].hash(&hash));
    }

    /// Fills the index anew: what has left leaves marks in it, for want of which it would take more memory. So it has room
    /// for every place again, and never grows.
    #[cold]
    fn tidy(&mut self, hash: &impl Fn(&K) -> u64) {
        let Self { index, places, .. } = self;
        index.clear();
        for (place, at) in (0..).zip(&*places) {
            if let Place::Taken(key) = at {
                index.insert_unique(hash(key), place, |&place: &u32| places[place as usize].hash(hash));
            }
        }
    }

    /// Takes its place from a key.
    pub(super) fn free(&mut self, place: u32, hash: u64) -> Option<K> {
        let entry = self.index.find_entry(hash, |&at| at == place).ok()?;
        entry.remove();
        self.states.clear(place); // I2
        let next = self.free.replace(place);
        match core::mem::replace(&mut self.places[place as usize], Place::Free(next)) {
            Place::Taken(key) => Some(key),
            Place::Free(_) => None,
        }
    }

    /// A free place.
    fn vacant(&self) -> Option<u32> {
        let unused = u32::try_from(self.places.len()).ok().filter(|&unused| unused < self.slots);
        self.free.or(unused)
    }
}
