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

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::sync::Word;
    use crate::{Fixed, Gcra, Log, TwoWindow, Window};

    /// The short way to tell that a state is idle is the long one, before, at and after each end of its use.
    #[test]
    fn idle_is_when_nothing_is_left_to_wait_for() {
        let ns = Duration::from_nanos;
        let plans: [Arc<dyn Plan>; 6] = [
            Arc::new(Gcra::builder(3, ns(10)).config().unwrap()),
            Arc::new(Gcra::builder(7, ns(100)).burst(2).config().unwrap()),
            Arc::new(Fixed::builder(3, ns(10)).config().unwrap()),
            Arc::new(TwoWindow::builder(3, ns(10)).config().unwrap()),
            Arc::new(Log::builder(3, ns(10)).config().unwrap()),
            Arc::new(Window::builder(3, ns(10)).buckets(5).config().unwrap()),
        ];
        for plan in plans {
            let word = Word::default();
            let states = Arc::clone(&plan).states(1).unwrap();
            let spot = Spot { index: 0, word: plan.is_one_word().then_some(&word) };
            assert!(states.is_idle(spot, Nanos::ZERO));
            let mut seen = [false; 2];
            for (start, cost) in
                [(40, 1), (41, 1), (70, 2), (200, 1)].map(|(t, cost)| (t, cost.min(states.ceiling())))
            {
                states.try_acquire_at(spot, cost, Nanos::from_nanos(start));
                for now in (start - 30..start + 60).map(Nanos::from_nanos) {
                    let idle = states.is_idle(spot, now);
                    assert_eq!(
                        idle,
                        states.idle_after(spot, now) == Nanos::ZERO,
                        "{:?} at {now:?}",
                        states.rules()
                    );
                    seen[usize::from(idle)] = true;
                }
            }
            assert_eq!(seen, [true; 2]);
        }
    }
}
