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
/// When to ask again, where all of those are free.
const SOON: Nanos = Nanos::from_nanos(1);

/// A share of the keys.
pub(super) struct Shard<K> {
    pub(super) places: Places<K>,
    pub(super) states: Box<dyn States>,
    slots: u32,
    hand: Place,
    /// Places that the hand has to go to keep up with the calls.
    owed: u32,
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
        Ok(Self { places, states, slots, hand: Place::FIRST, owed: 0, floor: Nanos::ZERO, evicted: 0 })
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

    /// What each call adds to the hand's way: a place. The hand goes a row at a time, and stops where a key is idle, which
    /// then leaves.
    #[inline(always)]
    pub(super) fn sweep(&mut self, now: Nanos, hash: impl Fn(&K) -> u64) -> Option<K> {
        self.owed += 1;
        if self.owed < COLUMNS as u32 { None } else { self.sweep_row(now, hash) }
    }

    /// The hand's way to the next idle key, which leaves, or to the end of its row.
    #[inline(never)]
    fn sweep_row(&mut self, now: Nanos, hash: impl Fn(&K) -> u64) -> Option<K> {
        let from = self.hand;
        let idle = self.places.first_in_row(from, |spot| self.states.is_idle(spot, now));
        let idle = idle.map(|(place, key)| (place, hash(key)));
        let last = idle.map_or(from.last_in_row(), |(place, _)| place);
        self.hand = self.places.after(last);
        self.owed -= 1 + last.column - from.column;
        idle.and_then(|(place, hash)| self.evict(place, hash, now))
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
