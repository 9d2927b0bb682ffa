//! The states of many keys under one configuration, whatever algorithm that is of.

use alloc::{boxed::Box, sync::Arc};

use crate::{
    ConfigError, Decision, Nanos, Rules,
    algorithm::{On, Parts},
    block::Packed,
    decision::{self, History, Limits},
};

/// What an algorithm answers for the state at a place.
pub(super) trait States: Send + Sync {
    fn try_acquire_at(&self, place: u32, cost: u64, now: Nanos) -> bool;
    fn check_at(&self, place: u32, cost: u64, now: Nanos) -> Decision;
    fn peek_at(&self, place: u32, cost: u64, now: Nanos) -> Decision;
    fn usage_at(&self, place: u32, rule: usize, now: Nanos) -> Option<u64>;
    /// How long until the state at `place` decides like a new one if nobody else comes.
    fn idle_after(&self, place: u32, now: Nanos) -> Nanos;
    /// Makes the state at `place` a new one.
    fn clear(&mut self, place: u32);
    /// The largest cost that can be taken.
    fn ceiling(&self) -> u64;
    fn rules(&self) -> Rules;
    fn bytes(&self) -> usize;
}

/// What makes states.
pub(super) trait Plan: Send + Sync {
    /// So many new states.
    fn states(self: Arc<Self>, count: u64) -> Result<Box<dyn States>, ConfigError>;
}

/// States of one configuration.
struct Packs<C: Parts> {
    config: Arc<C>,
    states: Packed<C::Heads, C::Slot>,
}

// === impl Plan ===

impl<C: Parts + 'static> Plan for C
where
    for<'a> On<'a, C>: History,
    C::Heads: Send + Sync,
    C::Slot: Send,
{
    fn states(self: Arc<Self>, count: u64) -> Result<Box<dyn States>, ConfigError> {
        let states = Packed::zeroed(count, self.slots())?;
        Ok(Box::new(Packs { config: self, states }))
    }
}

// === impl Packs ===

impl<C: Parts> Packs<C> {
    fn on(&self, place: u32) -> On<'_, C> {
        On { config: &self.config, state: self.states.at(place.into()) }
    }
}

impl<C: Parts> States for Packs<C>
where
    for<'a> On<'a, C>: History,
    C::Heads: Send + Sync,
    C::Slot: Send,
{
    fn try_acquire_at(&self, place: u32, cost: u64, now: Nanos) -> bool {
        decision::try_acquire(&self.on(place), cost, now)
    }

    fn check_at(&self, place: u32, cost: u64, now: Nanos) -> Decision {
        decision::check(&self.on(place), cost, now)
    }

    fn peek_at(&self, place: u32, cost: u64, now: Nanos) -> Decision {
        decision::peek(&self.on(place), cost, now)
    }

    fn usage_at(&self, place: u32, rule: usize, now: Nanos) -> Option<u64> {
        decision::usage(&self.on(place), rule, now)
    }

    fn idle_after(&self, place: u32, now: Nanos) -> Nanos {
        decision::idle_after(&self.on(place), now)
    }

    fn clear(&mut self, place: u32) {
        self.states.clear(place.into());
    }

    fn ceiling(&self) -> u64 {
        Limits::ceiling(&*self.config)
    }

    fn rules(&self) -> Rules {
        Rules::of(Limits::rules(&*self.config))
    }

    fn bytes(&self) -> usize {
        self.states.bytes()
    }
}
