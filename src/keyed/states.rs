//! The states of many keys under one configuration, whatever algorithm that is of.

use alloc::{boxed::Box, sync::Arc};

use super::places::Spot;
use crate::{
    ConfigError, Decision, Nanos, Rules,
    algorithm::{On, Parts},
    block::{At, Packed},
    decision::{self, History, Limits},
};

/// What an algorithm answers for the state at a spot.
pub(super) trait States: Send + Sync {
    fn try_acquire_at(&self, spot: Spot<'_>, cost: u64, now: Nanos) -> bool;
    fn check_at(&self, spot: Spot<'_>, cost: u64, now: Nanos) -> Decision;
    fn peek_at(&self, spot: Spot<'_>, cost: u64, now: Nanos) -> Decision;
    fn usage_at(&self, spot: Spot<'_>, rule: usize, now: Nanos) -> Option<u64>;
    /// Whether the state decides like a new one.
    fn is_idle(&self, spot: Spot<'_>, now: Nanos) -> bool;
    /// How long until the state decides like a new one if nobody else comes.
    fn idle_after(&self, spot: Spot<'_>, now: Nanos) -> Nanos;
    /// Makes a state at an index a new one; one in a word goes with that.
    fn clear(&mut self, spot: Spot<'_>);
    /// The largest cost that can be taken.
    fn ceiling(&self) -> u64;
    fn rules(&self) -> Rules;
    fn bytes(&self) -> usize;
}

/// What makes states.
pub(super) trait Plan: Send + Sync {
    /// Whether a state is one word, which may lie anywhere.
    fn is_one_word(&self) -> bool;
    /// So many new states at indices.
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
    fn is_one_word(&self) -> bool {
        self.slots() == 0 && At::<C::Heads, C::Slot>::IS_WORD
    }

    fn states(self: Arc<Self>, count: u64) -> Result<Box<dyn States>, ConfigError> {
        let states = Packed::zeroed(count, self.slots())?;
        Ok(Box::new(Packs { config: self, states }))
    }
}

// === impl Packs ===

impl<C: Parts> Packs<C> {
    #[inline]
    fn on<'a>(&'a self, spot: Spot<'a>) -> On<'a, C> {
        let state = match spot.word.and_then(At::of_word) {
            Some(state) => state,
            None => self.states.at(spot.index.into()),
        };
        On { config: &self.config, state }
    }
}

impl<C: Parts> States for Packs<C>
where
    for<'a> On<'a, C>: History,
    C::Heads: Send + Sync,
    C::Slot: Send,
{
    fn try_acquire_at(&self, spot: Spot<'_>, cost: u64, now: Nanos) -> bool {
        decision::try_acquire(&self.on(spot), cost, now)
    }

    fn check_at(&self, spot: Spot<'_>, cost: u64, now: Nanos) -> Decision {
        decision::check(&self.on(spot), cost, now)
    }

    fn peek_at(&self, spot: Spot<'_>, cost: u64, now: Nanos) -> Decision {
        decision::peek(&self.on(spot), cost, now)
    }

    fn usage_at(&self, spot: Spot<'_>, rule: usize, now: Nanos) -> Option<u64> {
        decision::usage(&self.on(spot), rule, now)
    }

    fn is_idle(&self, spot: Spot<'_>, now: Nanos) -> bool {
        self.on(spot).is_idle(now)
    }

    fn idle_after(&self, spot: Spot<'_>, now: Nanos) -> Nanos {
        decision::idle_after(&self.on(spot), now)
    }

    fn clear(&mut self, spot: Spot<'_>) {
        if spot.word.is_none() {
            self.states.clear(spot.index.into());
        }
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
