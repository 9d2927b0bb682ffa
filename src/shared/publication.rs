//! A value in shared memory that is replaced as a whole, by writers who may die anywhere.
//!
//! # What
//! Whoever replaces it waits for nobody and owns nothing: a change that is begun takes over from every other that is under way,
//! whether its caller lives or not. Zeros: no value was published yet.
//!
//! # State
//! | word       | bits   | field   | meaning                                                            |
//! |------------|--------|---------|--------------------------------------------------------------------|
//! | state      | 63..32 | present | tag of the change that is in force; 0: none                          |
//! |            | 31..0  | newest  | tag of the change that was begun last                                |
//! | two slots of words | 63..32 | tag | the change that wrote the word                                  |
//! |            | 31..0  | half    | half of a word of the value                                         |
//!
//! The first half of a value tells how many of the others are in use; only those are written and read.
//!
//! The lowest bit of a tag names its slot. A change takes the next tag that is not 0 and whose slot is not that of the present
//! one: it makes it the newest, writes its halves, and makes it the present.
//!
//! # Invariants
//! | id | always                                                                         | kept by                   |
//! |----|--------------------------------------------------------------------------------|---------------------------|
//! | I1 | one change has a tag, and writes a word of its slot once                         | `attempt`: the CASes of state and words |
//! | I2 | a change that is not the newest is never in force, unless it was before           | the CAS that publishes compares the newest |
//! | I3 | every word in use of the slot of the present carries its tag                      | I4; published when all are written |
//! | I4 | a word that a later change has written is not written by an earlier one            | the newest is looked at between load and CAS |
//! | I5 | no change writes the slot of the present                                          | `State::next`, I2, I4 |
//!
//! I5: a change is of the other slot when it begins. When another comes into force before it is done, its own is no longer the newest,
//! so it never will be; if its slot is then the one in force, every word in use there has a later tag, and I4 keeps it off.
//!
//! Of `2^32` tags 0 is left out: a tag comes again after `2^31` changes. I1 and I4 assume that no writer sleeps inside a change for
//! exactly so many, and readers that no reader is away for exactly so many (it would take what it read then for the present).
//!
//! # Linearization points
//! L1 change: the CAS that makes it the present. L2 reading: the load of the state that names the present. A writer that dies
//! leaves the old value or the new one.
//!
//! # Memory order
//! | id | site                      | order   | pairs with | because                                                          |
//! |----|---------------------------|---------|------------|------------------------------------------------------------------|
//! | O1 | state, load of a reader   | Acquire | O5         | the words of the present are then seen as written, or later ones    |
//! | O2 | a word, load              | Acquire | O4         | who sees the word of a later change sees, at its next look at the state, that it was begun |
//! | O3 | state, where a change begins and looks again | Relaxed | none | to begin is a CAS, and to look again only has to come after O2 |
//! | O4 | a word, CAS               | Release | O2         | as O2                                                             |
//! | O5 | state, CAS that publishes | Release | O1         | publishes the words                                                |
//!
//! # Progress
//! Reading is lock-free: it starts over when another change has come into force meanwhile. Changing is obstruction-free: writers that begin
//! again and again can hold one another up. They wait between attempts, longer each time, up to 64 pauses of the processor: no more, so
//! many at once may take many attempts. One that stops or dies holds up nobody. No bits make a
//! reader or a writer go round for ever, if they stay as they are.

use crate::sync::{Acquire, Relaxed, Release, Retries, Word, word};

/// The bits of a tag that count: few under the model, so that they wrap at once.
const TAGS: u32 = if cfg!(tollgate_loom) { 7 } else { u32::MAX };

word! {
    /// Which change is in force, and which was begun last.
    State
}

word! {
    /// Half of a word of a value, and which change wrote it.
    Half
}

/// A value of `N` halves, in C's order: processes of different builds share it.
#[repr(C)]
pub(super) struct Publication<const N: usize> {
    state: Word<State>,
    slots: [[Word<Half>; N]; 2],
}

/// A value, and the tag by which it is known; 0 and zeros before the first change. Halves not in use are zeros.
pub(super) type Tagged<const N: usize> = (u32, [u32; N]);

/// The slot of the present is not whole, as no writer leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotWhole;

// === impl State ===

impl State {
    fn new(present: u32, newest: u32) -> Self {
        Self(u64::from(present) << 32 | u64::from(newest))
    }

    fn present(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn newest(self) -> u32 {
        self.0 as u32
    }

    /// A change begun: the next tag whose slot is not that of the present. Found by the fourth.
    fn next(self) -> Self {
        let mut tag = self.newest();
        loop {
            tag = tag.wrapping_add(1) & TAGS;
            if tag != 0 && slot_of(tag) != slot_of(self.present()) {
                return Self::new(self.present(), tag);
            }
        }
    }

    /// The newest in force.
    fn published(self) -> Self {
        Self::new(self.newest(), self.newest())
    }
}

/// The slot of a tag.
fn slot_of(tag: u32) -> usize {
    (tag & 1) as usize
}

// === impl Half ===

impl Half {
    fn new(tag: u32, half: u32) -> Self {
        Self(u64::from(tag) << 32 | u64::from(half))
    }

    fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn half(self) -> u32 {
        self.0 as u32
    }
}

// === impl Publication ===

impl<const N: usize> Publication<N> {
    /// The tag of what is in force.
    #[inline]
    pub(super) fn present(&self) -> u32 {
        self.state.load(Acquire).present() // O1, L2
    }

    /// What is in force.
    pub(super) fn read(&self) -> Result<Tagged<N>, NotWhole> {
        let mut present = self.present();
        loop {
            let mut halves = [0; N];
            if present == 0 || self.read_slot(present, &mut halves) {
                return Ok((present, halves));
            }
            // By O2, unless somebody else has written it, another came into force before the slot was written.
            let later = self.present();
            if later == present {
                return Err(NotWhole);
            }
            present = later;
        }
    }

    /// The halves of a change; whether they are all its own (I3).
    fn read_slot(&self, tag: u32, halves: &mut [u32; N]) -> bool {
        let mut others = 0;
        for (at, (half, word)) in halves.iter_mut().zip(&self.slots[slot_of(tag)]).enumerate() {
            if at > others {
                break;
            }
            let seen = word.load(Acquire); // O2
            if seen.tag() != tag {
                return false;
            }
            *half = seen.half();
            if at == 0 {
                others = seen.half() as usize;
            }
        }
        true
    }

    /// Replaces the value.
    pub(super) fn set(&self, halves: &[u32; N]) {
        let retries = Retries::new();
        while !self.attempt(halves) {
            retries.again();
        }
    }

    /// Replaces it, unless another change is begun meanwhile.
    fn attempt(&self, halves: &[u32; N]) -> bool {
        let seen = self.state.load(Relaxed); // O3
        let own = seen.next();
        if self.state.compare_exchange(seen, own, Relaxed, Relaxed).is_err() {
            return false; // O3
        }
        let slot = self.slots[slot_of(own.newest())].iter().zip(halves);
        let is_written = slot.take(1 + halves[0] as usize).all(|(word, &half)| self.write(word, own, half));
        is_written && self.state.compare_exchange(own, own.published(), Release, Relaxed).is_ok() // O5, L1
    }

    /// Writes a word of a change, as long as it is the newest (I4).
    fn write(&self, word: &Word<Half>, own: State, half: u32) -> bool {
        loop {
            let old = word.load(Acquire); // O2
            if self.state.load(Relaxed) != own {
                return false; // O3
            }
            // Beaten only by one who had looked before this change was begun.
            if word.compare_exchange(old, Half::new(own.newest(), half), Release, Relaxed).is_ok() {
                return true; // O4
            }
        }
    }
}

impl<const N: usize> Default for Publication<N> {
    /// All zeros.
    fn default() -> Self {
        Self::of(core::iter::empty())
    }
}

impl<const N: usize> Publication<N> {
    /// A copy, of its words in order; zeros for those that are missing.
    pub(super) fn of(words: impl IntoIterator<Item = u64>) -> Self {
        let mut words = words.into_iter().fuse();
        let state = Word::new(State(words.next().unwrap_or(0)));
        let mut half = |_| Word::new(Half(words.next().unwrap_or(0)));
        let slots = core::array::from_fn(|_| core::array::from_fn(&mut half));
        Self { state, slots }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I1, I5: tags go round without 0, and never to the slot in force.
    #[test]
    fn tags_take_turns() {
        for present in [0, 1, 2, 5, u32::MAX - 1, u32::MAX] {
            for newest in [0, 1, 2, 3, u32::MAX - 1, u32::MAX] {
                let next = State::new(present, newest).next();
                assert_eq!(next.present(), present);
                assert_ne!(next.newest(), 0);
                assert_ne!(slot_of(next.newest()), slot_of(present));
                assert!(next.newest().wrapping_sub(newest) <= 4, "{newest} to {}", next.newest());
            }
        }
    }

    #[test]
    fn values_come_one_after_the_other_also_round_the_end() {
        let value = Publication::<2>::default();
        assert_eq!(value.read(), Ok((0, [0, 0])));
        let near = u32::MAX - 3;
        for from in [State::new(0, 0), State::new(0, near), State::new(0, u32::MAX)] {
            let value = Publication::<2>::of([from.0]);
            let mut tags = alloc::vec![0];
            for n in 1..10 {
                value.set(&[n % 2, n]);
                let (tag, halves) = value.read().unwrap();
                assert_eq!(halves, [n % 2, n * (n % 2)], "what is not in use is 0");
                assert!(!tags.contains(&tag));
                tags.push(tag);
            }
        }
    }

    /// A change that was overtaken writes nothing more: neither the slot of the one after it nor the state (I2, I4).
    #[test]
    fn what_was_overtaken_stays_behind() {
        let value = Publication::<1>::default();
        let own = State::new(0, 0).next();
        value.state.store(own, Release);
        value.set(&[0]);
        let (later, _) = value.read().unwrap();
        assert_eq!(slot_of(later), slot_of(own.newest()), "the slot not in force");
        assert!(!value.write(&value.slots[slot_of(later)][0], own, 8));
        assert_eq!(value.read(), Ok((later, [0])));
    }

    /// Bits that no writer leaves are told, also where they stay as they are.
    #[test]
    fn what_is_not_whole_is_told() {
        let torn = |others| {
            Publication::<2>::of([State::new(3, 3).0, 0, 0, Half::new(3, others).0, Half::new(1, 2).0])
        };
        assert_eq!(torn(0).read(), Ok((3, [0, 0])));
        assert_eq!(torn(u32::MAX).read(), Err(NotWhole), "as many as there are");
        let torn = torn(1);
        assert_eq!(torn.read(), Err(NotWhole));
        torn.set(&[1, 6]);
        assert_eq!(torn.read(), Ok((4, [1, 6])));
    }
}
