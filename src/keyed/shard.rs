//! A share of the keys: how many there is room for, and which have to leave. Under a lock, or alone.
//!
//! # State
//! A fixed number of keys, each at its place (`places.rs`). A hand goes round the places, a step or a few in each call, and
//! takes from a key whose history is empty its place.
//!
//! # Invariants
//! | id | always                                                              | kept by                            |
//! |----|---------------------------------------------------------------------|------------------------------------|
//! | I1 | there are no more keys than `slots`, fewer than places                | `room` before `insert`             |
//! | I2 | a key that comes finds a state of zeros                               | `free`, `Places::insert`           |
//! | I3 | the hand takes from a key only if its history is empty, so that it decides like a new one | `step` |
//! | I4 | no key is new before `floor`, the latest time at which the hand took from one | `Shard::admission_time` |
//!
//! I4 because a caller that comes late, with an older time, would find a new key in place of the old one's last
//! admissions: with it, both are judged at times that the hand has passed.

use alloc::{boxed::Box, sync::Arc};

use super::{
    places::{COLUMNS, Place, Places},
    states::{Plan, States},
};
use crate::{ConfigError, Nanos};

/// Places that one call looks at, where there is no room.
const LOOKS: u32 = 16;
/// Calls for which the hand rests after a row of keys in use: two for each of its places, but the one that looked at them.
const REST: u32 = 2 * COLUMNS as u32 - 1;
/// When to ask again, where all of those are free.
const SOON: Nanos = Nanos::from_nanos(1);

/// A share of the keys. What every call reads and writes comes first, so that it shares a cache line with the lock.
#[repr(C)]
pub(super) struct Shard<K> {
    pub(super) places: Places<K>,
    pub(super) states: Box<dyn States>,
    /// Calls in which the hand stays where it is.
    rest: u32,
    slots: u32,
    hand: Place,
    floor: Nanos,
    /// Keys that the hand took a place from.
    evicted: u64,
}

/// What making room came to.
pub(super) enum Room<K> {
    /// There is room, and this key had to leave.
    Made(Option<K>),
    /// Every place looked at is in use; the first will not be, if nobody comes, after this.
    Full(Nanos),
}

// === impl Shard ===

impl<K> Shard<K> {
    /// A share of so many keys.
    pub(super) fn new(plan: &Arc<dyn Plan>, slots: u32) -> Result<Self, ConfigError> {
        let beside = plan.is_one_word();
        let places = Places::new(slots, beside)?;
        let states = Arc::clone(plan).states(if beside { 0 } else { places.count().into() })?;
        Ok(Self { places, states, slots, hand: Place::FIRST, rest: 0, floor: Nanos::ZERO, evicted: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() as usize
    }

    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of memory taken.
    pub(super) fn bytes(&self) -> usize {
        self.states.bytes() + self.places.bytes()
    }

    /// The time at which a new key's first permits are recorded (I4).
    pub(super) fn admission_time(&self, now: Nanos) -> Nanos {
        now.max(self.floor)
    }

    /// Whether a new key would get a place, or after how long.
    pub(super) fn has_room(&self, now: Nanos) -> Result<(), Nanos> {
        if self.is_roomy() {
            return Ok(());
        }
        let looked_at = self.places.from(self.hand).take(self.looks());
        let spots = looked_at.filter_map(|place| self.places.at(place)).map(|(_, spot)| spot);
        match spots.map(|spot| self.states.idle_after(spot, now)).min().unwrap_or(SOON) {
            Nanos::ZERO => Ok(()),
            wait => Err(wait),
        }
    }

    /// Makes room for a new key; the hand moves on.
    pub(super) fn room(&mut self, now: Nanos, hash: impl Fn(&K) -> u64) -> Room<K> {
        let mut soonest = None;
        for _ in 0..self.looks() {
            if self.is_roomy() {
                break;
            }
            let place = self.hand;
            self.hand = self.places.after(place);
            if let Some((key, spot)) = self.places.at(place) {
                let wait = self.states.idle_after(spot, now);
                if wait == Nanos::ZERO {
                    let hash = hash(key);
                    return Room::Made(self.evict(place, hash, now));
                }
                soonest = soonest.into_iter().chain([wait]).min();
            }
        }
        if self.is_roomy() { Room::Made(None) } else { Room::Full(soonest.unwrap_or(SOON)) }
    }

    /// What a call does for the keys that are idle: the hand goes on in its row up to the first, which leaves. After a whole
    /// row in use it rests.
    #[inline(always)]
    pub(super) fn sweep(&mut self, now: Nanos, hash: impl Fn(&K) -> u64) -> Option<K> {
        match self.rest.checked_sub(1) {
            Some(rest) => {
                self.rest = rest;
                None
            }
            None => self.sweep_row(now, hash),
        }
    }

    #[inline(never)]
    fn sweep_row(&mut self, now: Nanos, hash: impl Fn(&K) -> u64) -> Option<K> {
        let from = self.hand;
        let idle = self.places.first_in_row(from, |spot| self.states.is_idle(spot, now));
        let Some((place, hash)) = idle.map(|(place, key)| (place, hash(key))) else {
            self.hand = self.places.after(from.last_in_row());
            self.rest = if from.is_first_in_row() { REST } else { 0 };
            self.places.ask_for_row(self.hand);
            return None;
        };
        self.hand = self.places.after(place);
        self.evict(place, hash, now)
    }

    /// Takes its place from a key whose history is empty (I3).
    fn evict(&mut self, place: Place, hash: u64, now: Nanos) -> Option<K> {
        self.floor = self.floor.max(now); // I4
        self.evicted += 1;
        self.free(place, hash)
    }

    /// Takes its place from a key.
    pub(super) fn free(&mut self, place: Place, hash: u64) -> Option<K> {
        self.states.clear(self.places.at(place)?.1); // I2
        self.places.remove(place, hash)
    }

    fn is_roomy(&self) -> bool {
        self.places.len() < self.slots // I1
    }

    fn looks(&self) -> usize {
        LOOKS.min(self.places.count()) as usize
    }
}
