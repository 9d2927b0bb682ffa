//! The ring of a log: packed slots, positions that carry their lap, and one look at the history.

use crate::{
    Nanos, Rule,
    block::Block,
    decision::Look,
    sync::{Acquire, Relaxed, Word, word},
};

word! {
    /// One admission: `time << 1 | parity of its lap`. Lap 0 writes parity 1, and a later lap a later time, so
    /// zero only ever means "never written".
    Slot
}

word! {
    /// The first word of a block: a position in the unit form, `bank | time | position` in the form with costs.
    Head
}

word! {
    /// A time that the times in [`Head`] count from.
    Base
}

/// The words before the ring.
pub(super) struct Heads {
    pub(super) head: Word<Head>,
    pub(super) bases: [Word<Base>; 2],
    /// What an index beyond the ring reads and writes. Only a damaged head has one; it must not reach further.
    spare: Word<Slot>,
}

// SAFETY: contract of `Zeroed`: words alone.
unsafe impl crate::block::Zeroed for Heads {}

pub(super) type LogBlock = Block<Heads, Slot>;

/// A place in the endless sequence of admissions: `lap << index bits | index`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pos(pub(super) u64);

/// The arithmetic of positions, without a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Slots in the ring.
    pub(super) cap: u64,
    /// Bits of a position that hold the index.
    index_bits: u32,
    /// Indices that the bits could hold and the ring has not.
    gap: u64,
    /// The bits of a position; laps beyond them wrap.
    mask: u64,
}

/// What a look finds at a place.
enum Entry {
    Never,
    At(Nanos),
}

/// One look: the end of the history and its newest time, good while `seen` still stands in the head word.
pub(crate) struct LogLook<'a> {
    pub(super) block: &'a LogBlock,
    pub(super) ring: &'a Geometry,
    pub(super) rules: &'a [Rule],
    pub(super) seen: Head,
    pub(super) end: Pos,
    pub(super) at: Nanos,
    /// The time of admissions whose slots are not filled yet; `None` where every admission fills its slot.
    pub(super) unfilled: Option<Nanos>,
}

// === impl Slot ===

impl Slot {
    pub(super) const NEVER: Self = Self(0);

    #[inline]
    pub(super) fn new(time: Nanos, parity: u64) -> Self {
        Self(time.as_nanos() << 1 | parity)
    }

    #[inline]
    pub(super) fn time(self) -> Nanos {
        Nanos::from_nanos(self.0 >> 1)
    }

    /// Whether it was written in a lap of this parity (for parity 0: or never).
    #[inline]
    pub(super) fn is_of(self, parity: u64) -> bool {
        self.0 & 1 == parity
    }

    /// Whether this admission, if there was one, has left the window at `at`.
    #[inline]
    pub(super) fn has_left(self, window: Nanos, at: Nanos) -> bool {
        // Both below 2^63: the sum holds.
        self == Self::NEVER || (self.0 >> 1) + window.as_nanos() <= at.as_nanos()
    }
}

// === impl Geometry ===

impl Geometry {
    /// For `cap` slots (at least 1), with as many lap bits as `lap_bits` or a word allow.
    pub(super) fn new(cap: u64, lap_bits: u32) -> Self {
        let index_bits = (cap - 1).checked_ilog2().map_or(0, |top| top + 1);
        let mask = 1u64.checked_shl(index_bits + lap_bits).map_or(u64::MAX, |bit| bit - 1);
        Self { cap, index_bits, gap: (1 << index_bits) - cap, mask }
    }

    /// Bits of a position.
    pub(super) fn bits(&self) -> u32 {
        self.mask.count_ones()
    }

    #[inline]
    pub(super) fn mask(&self, raw: u64) -> Pos {
        Pos(raw & self.mask)
    }

    #[inline]
    fn index(&self, pos: Pos) -> u64 {
        pos.0 & ((1 << self.index_bits) - 1)
    }

    /// The parity that this lap writes.
    #[inline]
    pub(super) fn parity(&self, pos: Pos) -> u64 {
        !(pos.0 >> self.index_bits) & 1
    }

    /// `n` places on, for `n` up to the capacity.
    #[inline]
    pub(super) fn ahead(&self, pos: Pos, n: u64) -> Pos {
        let skip = if self.index(pos) + n < self.cap { 0 } else { self.gap };
        self.mask(pos.0.wrapping_add(n).wrapping_add(skip))
    }

    /// `n` places back, for `n` up to the capacity.
    #[inline]
    pub(super) fn back(&self, pos: Pos, n: u64) -> Pos {
        let skip = if self.index(pos) >= n { 0 } else { self.gap };
        self.mask(pos.0.wrapping_sub(n).wrapping_sub(skip))
    }

    /// The slot of a place.
    #[inline]
    pub(super) fn slot<'a>(&self, block: &'a LogBlock, pos: Pos) -> &'a Word<Slot> {
        block.slots.get(self.index(pos) as usize).unwrap_or(&block.head.spare)
    }
}

// === impl Heads ===

impl Heads {
    pub(super) fn clear(&mut self) {
        *self.head.get_mut() = Head(0);
        for base in &mut self.bases {
            *base.get_mut() = Base(0);
        }
    }
}

// === impl LogLook ===

impl LogLook<'_> {
    /// The admission `back` places before the end, for 1 to the capacity.
    fn entry(&self, back: u64) -> Option<Entry> {
        let pos = self.ring.back(self.end, back);
        let slot = self.ring.slot(self.block, pos).load(Acquire); // O2
        match slot.is_of(self.ring.parity(pos)) {
            true if slot == Slot::NEVER => Some(Entry::Never),
            true => Some(Entry::At(slot.time())),
            false => self.unfilled.map(Entry::At),
        }
    }

    /// How long the admission `back` places before the end stays in `window`: zero if it has left.
    fn stay(&self, back: u64, window: Nanos) -> Option<Nanos> {
        Some(match self.entry(back)? {
            Entry::Never => Nanos::ZERO,
            Entry::At(time) => time + window - self.at,
        })
    }

    /// The answer, if the history has not moved on since the look began.
    fn still<T>(&self, answer: T) -> Option<T> {
        (self.block.head.head.load(Relaxed) == self.seen).then_some(answer) // O3
    }
}

impl Look for LogLook<'_> {
    fn at(&self) -> Nanos {
        self.at
    }

    /// A binary search: times never grow from the end backwards. At most log2(capacity) + 1 steps.
    fn used(&self, rule: usize) -> Option<u64> {
        let window = self.rules[rule].window;
        let (mut used, mut left) = (0, self.ring.cap + 1);
        while left - used > 1 {
            let middle = used + (left - used) / 2;
            if self.stay(middle, window)? > Nanos::ZERO {
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
        let wait = self.stay(keep + 1, self.rules[rule].window)?;
        self.still(wait)
    }
}
