//! One look at all shards: figures of one moment, although the shards are read one after the other.
//!
//! At a fixed time judged, the use of a shard only grows, and its newest time does. So two sums that are equal were
//! made of equal shards, and everything read between the two belongs to that moment.

use super::{Parted, Shard, Shards};
use crate::{
    Nanos,
    decision::{History, Look},
};

/// All shards at one time judged.
pub(crate) struct ShardedLook<'s, A: Shard, S> {
    config: &'s Parted<A::Config>,
    shards: S,
    figures: Figures,
}

/// What all shards say together.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Figures {
    at: Nanos,
    used: u64,
    left: u64,
    /// Until one of them has a permit more.
    next_after: Nanos,
    /// Until all of them are empty.
    reset_after: Nanos,
}

impl<'s, A: Shard, S: Shards<'s, A>> ShardedLook<'s, A, S> {
    /// Looks until two readings at the same time agree.
    pub(super) fn new(config: &'s Parted<A::Config>, shards: S, now: Nanos) -> Self {
        let mut look = Self { config, shards, figures: Figures::none(now) };
        // Lock-free: a round is lost only to another caller that was admitted meanwhile.
        loop {
            let asked = look.figures.at;
            look.figures = look.read(asked);
            if look.is_still(asked) {
                return look;
            }
        }
    }

    /// Whether the figures are those of this time, and another reading gives the same.
    fn is_still(&self, asked: Nanos) -> bool {
        self.figures.at == asked && self.read(asked) == self.figures
    }

    /// Once, not in each place: the C library has a budget.
    #[inline(never)]
    fn read(&self, at: Nanos) -> Figures {
        (0..self.shards.len()).map(|shard| self.read_one(shard, at)).fold(Figures::none(at), Figures::and)
    }

    fn read_one(&self, shard: usize, at: Nanos) -> Figures {
        let (config, part) = self.config.part(shard);
        let Some(state) = self.shards.get(shard) else { return Figures::none(at) };
        let history = A::on_state(config, state);
        loop {
            if let Some(figures) = Figures::of(&history.look(at), part) {
                return figures;
            }
        }
    }

    /// The shortest wait until a shard has `cost` permits. `None`: the shards have moved on.
    fn wait_for(&self, cost: u64) -> Option<Nanos> {
        let mut least = Nanos::from_nanos(u64::MAX);
        for shard in 0..self.shards.len() {
            let (config, part) = self.config.part(shard);
            if let (Some(keep), Some(state)) = (part.checked_sub(cost), self.shards.get(shard)) {
                least = least.min(A::on_state(config, state).look(self.figures.at).wait(0, keep)?);
            }
        }
        self.is_still(self.figures.at).then_some(least)
    }
}

impl<'s, A: Shard, S: Shards<'s, A>> Look for ShardedLook<'s, A, S> {
    fn at(&self) -> Nanos {
        self.figures.at
    }

    fn used(&self, _rule: usize) -> Option<u64> {
        Some(self.figures.used)
    }

    /// Asked for `keep` of 0 alone: how it is spread over the shards decides the rest.
    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        debug_assert_eq!(keep, 0);
        Some(self.figures.reset_after)
    }

    fn left(&self, _rule: usize, _capacity: u64) -> Option<u64> {
        Some(self.figures.left)
    }

    /// Asked for one more than are left.
    fn wait_to_free(&self, _rule: usize, _capacity: u64, free: u64) -> Option<Nanos> {
        debug_assert_eq!(free, self.figures.left + 1);
        Some(self.figures.next_after)
    }

    fn wait_to_pass(&self, _rule: usize, _capacity: u64, cost: u64) -> Option<Nanos> {
        self.wait_for(cost)
    }
}

// === impl Figures ===

impl Figures {
    /// Those of no shard.
    fn none(at: Nanos) -> Self {
        let never = Nanos::from_nanos(u64::MAX);
        Self { at, used: 0, left: 0, next_after: never, reset_after: Nanos::ZERO }
    }

    /// Those of one shard. `None`: it has moved on.
    fn of(look: &impl Look, part: u64) -> Option<Self> {
        let left = look.left(0, part)?;
        let next_after = match part.checked_sub(left + 1) {
            Some(keep) => look.wait(0, keep)?,
            None => Nanos::from_nanos(u64::MAX),
        };
        Some(Self { at: look.at(), used: look.used(0)?, left, next_after, reset_after: look.wait(0, 0)? })
    }

    fn and(self, other: Self) -> Self {
        Self {
            at: self.at.max(other.at),
            used: self.used + other.used,
            left: self.left + other.left,
            next_after: self.next_after.min(other.next_after),
            reset_after: self.reset_after.max(other.reset_after),
        }
    }
}
