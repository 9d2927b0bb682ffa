//! The ring of a log: packed slots, positions that carry their lap, and one look at the history.

use core::{
    cmp::Ordering,
    hint::{assert_unchecked, cold_path},
};

use crate::{
    Nanos,
    block::At,
    decision::Look,
    sync::{Acquire, Relaxed, Word, word},
};

/// Set in every slot that was ever written, so that a zeroed one is past every window.
const WRITTEN: u64 = 1 << 63;

word! {
    /// One admission: `1 | time | parity of the lap`. Zero: not yet written.
    Slot
}

word! {
    /// The first word of a block: a [`Pos`] in the unit form, `bank | time | position` in the form with costs.
    Head
}

word! {
    /// What the times in [`Head`] leave out: their upper bits.
    Base
}

/// The words before the ring, in C's order: processes of different builds may share them.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Heads {
    pub(super) head: Word<Head>,
    pub(super) bases: [Word<Base>; 2],
}

// SAFETY: contract of `Zeroed`: words alone.
unsafe impl crate::block::Zeroed for Heads {}

pub(super) type LogBlock<'a> = At<'a, Heads, Slot>;

/// A time in the scale of slots: `1 | time | 1`. One of a time out of range means nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Stamp(u64);

/// How long before a stamp a slot was written, in the scale of slots.
#[derive(Clone, Copy)]
pub(super) struct Age(u64);

/// A place in the endless sequence of admissions: `lap | index | parity`. A slot written at this place ends in the
/// other parity, so zeroed slots are not yet written in lap 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pos(pub(super) u64);

/// A place in the ring: the index bits of a [`Pos`], where they lie there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Index(u64);

/// The arithmetic of positions, without a division.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Geometry {
    /// Slots in the ring.
    pub(super) cap: u64,
    /// The capacity as the index bits of a position count it.
    end: u64,
    /// Where the index lies in a position.
    index_mask: u64,
    /// What a position skips at the end of a lap, so that the carry counts the lap.
    gap: u64,
    /// The bits of a position; laps beyond them wrap.
    pub(super) mask: u64,
}

/// One rule, as the ring asks it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct LookBack {
    pub(super) limit: u64,
    /// The least `stamp - slot` of an admission that has left the window: twice the window. A slot never written
    /// lacks the [`WRITTEN`] of the stamp and is always past.
    past: u64,
    /// The same for a stamp without its [`WRITTEN`], in signed numbers: one constant less in a glance.
    past_plain: i64,
}

/// One look: the end of the history and its newest time, good while `seen` still stands in the head word.
pub(crate) struct LogLook<'a> {
    pub(super) block: LogBlock<'a>,
    pub(super) ring: &'a Geometry,
    pub(super) rules: &'a [LookBack],
    pub(super) seen: Head,
    pub(super) end: Pos,
    pub(super) at: Stamp,
    /// The time of admissions whose slots are not filled yet; `None` where every admission fills its slot.
    pub(super) unfilled: Option<Stamp>,
}

// === impl Slot ===

impl Slot {
    /// Whether it was written at this very place, in this lap.
    #[inline]
    pub(super) fn is_of(self, pos: Pos) -> bool {
        (self.0 ^ pos.0) & 1 != 0
    }

    /// Whether it is one of a history whose newest time this is.
    pub(super) fn is_by(self, newest: Stamp) -> bool {
        self.0 == 0 || self.0 & WRITTEN != 0 && self.stamp() <= newest
    }

    /// Whether this admission was later; for a slot that was written.
    #[inline]
    pub(super) fn is_after(self, at: Nanos) -> bool {
        self.lacks_to(at).cast_signed() >= 0
    }

    /// What it lacks to a stamp without its [`WRITTEN`], which puts the sign of the difference the other way round.
    #[inline]
    fn lacks_to(self, at: Nanos) -> u64 {
        (at.as_nanos() << 1 | 1).wrapping_sub(self.0)
    }

    /// The time of this admission; before every time if there was none.
    #[inline]
    pub(super) fn stamp(self) -> Stamp {
        Stamp(self.0 | 1)
    }
}

// === impl Stamp ===

impl Stamp {
    #[inline]
    pub(super) fn new(time: Nanos) -> Self {
        Self((time.as_nanos() << 1).wrapping_add(WRITTEN | 1))
    }

    #[inline]
    pub(super) fn time(self) -> Nanos {
        Nanos::from_nanos((self.0 & !WRITTEN) >> 1)
    }

    /// How long ago an admission was, which was not later.
    #[inline]
    pub(super) fn since(self, slot: Slot) -> Age {
        Age(self.0.wrapping_sub(slot.0))
    }

    /// An admission at this time, for a place.
    #[inline]
    pub(super) fn slot(self, pos: Pos) -> Slot {
        Slot(self.0 ^ (pos.0 & 1))
    }
}

// === impl LookBack ===

impl LookBack {
    /// Of no rule: every admission has left its window.
    pub(super) const ALWAYS_PAST: Self = Self { limit: 0, past: 0, past_plain: i64::MIN };

    pub(super) fn new(rule: crate::Rule) -> Self {
        let past = rule.window.as_nanos() << 1;
        Self { limit: rule.limit, past, past_plain: past.wrapping_sub(WRITTEN).cast_signed() }
    }

    /// Whether an admission of this age has left the window.
    #[inline]
    pub(super) fn is_over(self, age: Age) -> bool {
        age.0 >= self.past
    }

    /// Whether an admission has left the window at `at`, which is not before it.
    #[inline]
    pub(super) fn is_past(self, slot: Slot, at: Stamp) -> bool {
        self.is_over(at.since(slot))
    }

    /// [`is_past`](Self::is_past) at `Stamp::new(at)`.
    #[inline]
    pub(super) fn is_past_at(self, slot: Slot, at: Nanos) -> bool {
        slot.lacks_to(at).cast_signed() >= self.past_plain
    }

    /// How long an admission stays in the window after `at`: zero if it has left.
    fn stay(self, slot: Slot, at: Stamp) -> Nanos {
        if self.is_past(slot, at) {
            return Nanos::ZERO;
        }
        // Twice the stay, less 1 if the slot ends in 0.
        Nanos::from_nanos((self.past - (at.0 - slot.0)).div_ceil(2))
    }
}

// === impl Geometry ===

impl Geometry {
    /// For `cap` slots (at least 1), with `lap_bits` bits that count laps.
    pub(super) fn new(cap: u64, lap_bits: u32) -> Self {
        let index_bits = (cap - 1).checked_ilog2().map_or(0, |top| top + 1);
        let indices = 1 << index_bits;
        let mask = 1u64.checked_shl(index_bits + 1 + lap_bits).map_or(u64::MAX, |bit| bit - 1);
        Self { cap, end: cap << 1, index_mask: (indices - 1) << 1, gap: (indices - cap) << 1, mask }
    }

    /// `n` places on, for `n` up to the capacity.
    #[inline]
    pub(super) fn ahead(&self, pos: Pos, n: u64) -> Pos {
        Pos(pos.0.wrapping_add(self.step(pos, n)))
    }

    /// What a position grows by, and a word that has it in its lower bits, when it goes on by `n` places, up to the capacity.
    #[inline]
    pub(super) fn step(&self, pos: Pos, n: u64) -> u64 {
        if (pos.0 & self.index_mask) + (n << 1) >= self.end {
            cold_path();
            let from = pos.0 & self.mask;
            let next = (from.wrapping_add(n << 1).wrapping_add(self.gap) ^ 1) & self.mask;
            return next.wrapping_sub(from);
        }
        n << 1
    }

    /// `n` places back, for `n` up to the capacity.
    #[inline]
    pub(super) fn back(&self, pos: Pos, n: u64) -> Pos {
        let before = pos.0.wrapping_sub(n << 1);
        if pos.0 & self.index_mask < n << 1 {
            cold_path();
            return Pos((before.wrapping_sub(self.gap) ^ 1) & self.mask);
        }
        Pos(before)
    }

    /// Whether a place lies in the ring, as every place does that was reached from another.
    pub(super) fn holds(&self, pos: Pos) -> bool {
        pos.0 & !self.mask == 0 && self.index(pos).0 < self.end
    }

    /// Indices that a position of any bits can have.
    #[cfg_attr(any(tollgate_loom, not(feature = "shared")), allow(dead_code))]
    pub(super) fn indices_max(&self) -> u64 {
        (self.index_mask >> 1) + 1
    }

    /// Where the slots lie.
    pub(super) fn indices(&self) -> impl Iterator<Item = Index> + use<> {
        (0..self.cap).map(|slot| Index(slot << 1))
    }

    /// The place in the last lap, seen from the one before `end`, that lies at `index`; its parity is all that is asked of it.
    /// `None` for that of `end`.
    pub(super) fn lap_before(&self, end: Pos, index: Index) -> Option<Pos> {
        match index.0.cmp(&self.index(end).0) {
            Ordering::Less => Some(end),
            Ordering::Equal => None,
            Ordering::Greater => Some(Pos(end.0 ^ 1)),
        }
    }

    /// Where a place lies in the ring.
    #[inline(always)]
    pub(super) fn index(&self, pos: Pos) -> Index {
        Index(pos.0 & self.index_mask)
    }

    /// The place before `pos`, which lies at `index`, and where it lies.
    #[inline(always)]
    pub(super) fn before(&self, pos: Pos, index: Index) -> (Pos, Index) {
        if index.0 == 0 {
            cold_path();
            return (self.back(pos, 1), Index(self.end - 2));
        }
        (Pos(pos.0.wrapping_sub(2)), Index(index.0 - 2))
    }

    /// The place `n` after `pos`, which lies at `index`, and where it lies; for `n` below the capacity.
    #[inline(always)]
    pub(super) fn after(&self, pos: Pos, index: Index, n: u64) -> (Pos, Index) {
        if n == 0 {
            return (pos, index);
        }
        let after = index.0 + (n << 1);
        if after >= self.end {
            cold_path();
            let pos = self.ahead(pos, n);
            return (pos, self.index(pos));
        }
        (Pos(pos.0.wrapping_add(n << 1)), Index(after))
    }

    /// Where the place after the one at `index` lies; `None` where a lap ends.
    #[inline(always)]
    pub(super) fn next(&self, index: Index) -> Option<Index> {
        let next = index.0 + 2;
        if next >= self.end {
            cold_path();
            return None;
        }
        Some(Index(next))
    }

    /// The slot of a place.
    #[inline(always)]
    pub(super) fn slot<'a>(&self, block: LogBlock<'a>, pos: Pos) -> &'a Word<Slot> {
        self.slot_at(block, self.index(pos))
    }

    #[inline(always)]
    pub(super) fn slot_at<'a>(&self, block: LogBlock<'a>, index: Index) -> &'a Word<Slot> {
        debug_assert!(index.0 >> 1 < self.cap);
        // SAFETY: I2: an index is even.
        unsafe { assert_unchecked(index.0 & 1 == 0) };
        // SAFETY: I2: positions and indices stay below the capacity, which is the length of the ring.
        unsafe { block.slot(index.0 >> 1) }
    }
}

// === impl LogLook ===

impl LogLook<'_> {
    /// How long the admission `back` places before the end (1 to the capacity) stays in the window of `rule`. `None`:
    /// a later admission lies there, which the head may not yet show.
    fn stay(&self, back: u64, rule: usize) -> Option<Nanos> {
        let pos = self.ring.back(self.end, back);
        let slot = self.ring.slot(self.block, pos).load(Acquire); // O2
        let slot = if slot.is_of(pos) { slot } else { self.unfilled?.slot(pos) };
        Some(self.rules.get(rule).map_or(Nanos::ZERO, |rule| rule.stay(slot, self.at)))
    }

    /// The answer, if the history has not moved on since the look began.
    fn still<T>(&self, answer: T) -> Option<T> {
        (self.block.head().head.load(Relaxed) == self.seen).then_some(answer) // O3
    }
}

impl Look for LogLook<'_> {
    fn at(&self) -> Nanos {
        self.at.time()
    }

    /// A binary search: times never grow from the end backwards. At most log2(capacity) + 1 steps.
    fn used(&self, rule: usize) -> Option<u64> {
        let (mut used, mut left) = (0, self.ring.cap + 1);
        while left - used > 1 {
            let middle = used + (left - used) / 2;
            if self.stay(middle, rule)? > Nanos::ZERO {
                used = middle;
            } else {
                left = middle;
            }
        }
        self.still(used)
    }

    fn wait(&self, rule: usize, keep: u64) -> Option<Nanos> {
        if keep >= self.ring.cap {
            return Some(Nanos::ZERO);
        }
        self.still(self.stay(keep + 1, rule)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;
    use proptest::prelude::*;

    proptest! {
        /// Both forms of the question agree, to the ends of the range, for slots never written too.
        #[test]
        fn past_is_past_in_either_form(
            window in prop_oneof![1..9u64, 1..=Nanos::MAX.as_nanos(), Just(Nanos::MAX.as_nanos())],
            time in prop_oneof![0..9u64, 0..=Nanos::MAX.as_nanos(), Just(Nanos::MAX.as_nanos())],
            since in prop_oneof![0..9u64, 0..=Nanos::MAX.as_nanos()],
            near in 0..3u64,
            parity in 0..2u64,
        ) {
            let rule = LookBack::new(Rule { limit: 1, window: Nanos::from_nanos(window) });
            for at in [time + since, time + window - 1 + near, Nanos::MAX.as_nanos()] {
                let at = Nanos::from_nanos(at.clamp(time, Nanos::MAX.as_nanos()));
                let slot = Stamp::new(Nanos::from_nanos(time)).slot(Pos(parity));
                let past = at.as_nanos() - time >= window;
                prop_assert_eq!(rule.is_past(slot, Stamp::new(at)), past);
                prop_assert_eq!(rule.is_past_at(slot, at), past);
                prop_assert!(rule.is_past(Slot(0), Stamp::new(at)) && rule.is_past_at(Slot(0), at));
            }
        }
    }
}
