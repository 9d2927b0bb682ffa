//! One bucket of a table of keys: which history is whose, and how a key takes over an idle one.
//!
//! # State
//! A line of words before the histories of the bucket, its *ways*. All zeros is a bucket without keys.
//!
//! | word    | bits   | field | meaning                                                                      |
//! |---------|--------|-------|------------------------------------------------------------------------------|
//! | turn    | 63..16 | tag   | the key that the last turn was about; 0: none, or the turn was cancelled         |
//! |         | 15..12 | way   | the way that it gets                                                           |
//! |         | 11     | claim | the way is only claimed: its history is still its old key's                      |
//! |         | 10..0  | seq   | turns so far, wrapping                                                          |
//! | floor   | all    | time  | no call is judged before: the latest time at which an idle history was taken over |
//! | way     | 63..16 | tag   | whose history it is; 0: nobody's yet                                            |
//! |         | 10..0  | seq   | the turn that gave it                                                           |
//!
//! A new key gets a way in a *turn*, in three steps: a claim, by which everybody is told; a look whether the history
//! is idle; and the decision. The word of the turn names all that follows from it, so whoever finds a claim decides it, and
//! whoever finds a decision writes it to the way: a caller that dies leaves nothing that others wait for.
//! Who was admitted makes sure by a compare-and-swap of the turn, mostly by itself, that the way was its key's
//! until then. On a claim of its way the same step cancels it; a way that is gone means to look the key up again.
//!
//! # Invariants
//! | id | always                                                                          | kept by             |
//! |----|---------------------------------------------------------------------------------|---------------------|
//! | I1 | a turn begins when the one before is written to its way: no key has two ways       | `claim` after `fill` |
//! | I2 | a way is taken over only if its history is idle, with every admission that was answered | `finish`, `keep` |
//! | I3 | a key whose history was taken over is judged at `floor` or later, when that had gone | `raise_floor` before the claim |
//! | I4 | the word of a way is another after each turn, so a late write fails                | `seq`               |
//!
//! I2: `keep` and the claim are compare-and-swaps of one word, so one comes first. If the claim, `keep` cancels it. If `keep`, the
//! claim acquires it, and the look that follows sees the admission. What is admitted after that look and before the
//! decision makes the decision fail, and what comes after the decision looks the key up again; it stays charged
//! to the way's new key, which may be refused for it, and is never over.
//!
//! A refusal is kept by loads alone (`is_kept`). So the histories acquire what they judge by and release what they admit: an
//! answer that rests on another key's admission comes with the turn that gave the way to that key.
//!
//! Of `2^11` turns in one bucket a word comes round: I1, I2 and I4 assume that no caller sleeps inside a call for
//! exactly a multiple of them, and finds the same key on the same way again.
//!
//! # Linearization points
//! Those of the algorithm. L1 a key gets a way: the decision.
//!
//! # Memory order
//! | id | site                 | order   | pairs with | because                                                          |
//! |----|----------------------|---------|------------|------------------------------------------------------------------|
//! | O1 | turn, load           | Acquire | O2, O3     | the ways written and the floor raised before it are then seen      |
//! | O2 | claim, CAS           | AcqRel  | O1, O3     | acquires what `keep` published: the admission that it stands for   |
//! | O3 | other turn CASes     | Release | O1, O2     | publish what their callers saw and did                             |
//! | O4 | way, load            | Acquire | O5         | whoever finds its key sees the floor of the turn that gave it      |
//! | O5 | way, CAS             | Release | O4         | as O4                                                             |
//! | O6 | floor, other loads   | Relaxed | none       | published by the claim, seen after O1 or O4                        |
//! | O7 | floor, load of a decision | Acquire | O8    | the history is asked by the rules that who raised it asked by, or by later ones |
//! | O8 | floor, CAS           | Release | O7         | as O7                                                             |
//!
//! # Progress
//! Lock-free: a caller starts over only when the turn moved, which is when a key got a way, or somebody was admitted.

use crate::{
    Nanos,
    sync::{AcqRel, Acquire, Relaxed, Release, Word, word},
};

/// Histories in a bucket.
pub(super) const WAYS: usize = if cfg!(tollgate_loom) { 2 } else { 14 };

const SEQ: u64 = (1 << 11) - 1;
const CLAIM: u64 = 1 << 11;
const WAY_AT: u32 = 12;
const TAG_AT: u32 = 16;

/// What tells a key from the others of its bucket: 48 bits of its hash, never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tag(u64);

word! {
    /// The last turn.
    Turn
}

word! {
    /// Whose a way is.
    Key
}

/// The words of a bucket, in C's order: processes of different builds share them.
#[derive(Default)]
#[repr(C)]
pub(super) struct Bucket {
    turn: Word<Turn>,
    floor: Word<u64>,
    ways: [Word<Key>; WAYS],
}

/// How one bucket reaches its histories.
pub(super) trait Ways {
    /// How long after `now` nothing is charged to the history of a way if nobody comes: zero if it is idle. Where rules change, by
    /// those in force.
    fn idle_after(&self, way: usize, now: Nanos) -> Nanos;
}

/// A key found on its way.
#[derive(Clone, Copy)]
struct Hold {
    way: usize,
    key: Key,
    /// The turn before the key was looked for.
    turn: Turn,
}

/// How long a way is in use that never comes free.
pub(super) const NEVER: Nanos = Nanos::from_nanos(u64::MAX);

// === impl Tag ===

impl Tag {
    /// Of these bits of a hash.
    pub(super) fn new(hash: u64) -> Self {
        Self((hash >> TAG_AT).max(1))
    }
}

// === impl Turn ===

impl Turn {
    fn is_claim(self) -> bool {
        self.0 & CLAIM != 0
    }

    fn way(self) -> usize {
        (self.0 >> WAY_AT & 0xf) as usize
    }

    /// Whether it claims this way.
    fn claims(self, way: usize) -> bool {
        self.is_claim() && self.way() == way
    }

    /// What it writes to its way, if it is decided.
    fn key(self) -> Option<Key> {
        (!self.is_claim() && self.0 >> TAG_AT != 0).then_some(Key(self.0 & !(0xf << WAY_AT)))
    }

    /// The claim of a way that follows this turn.
    fn claim(self, way: usize, tag: Tag) -> Self {
        Self(tag.0 << TAG_AT | (way as u64) << WAY_AT | CLAIM | self.0.wrapping_add(1) & SEQ)
    }

    fn decided(self) -> Self {
        Self(self.0 & !CLAIM)
    }

    fn cancelled(self) -> Self {
        Self(self.0 & SEQ)
    }
}

// === impl Key ===

impl Key {
    fn is_of(self, tag: Tag) -> bool {
        self.0 >> TAG_AT == tag.0
    }

    fn is_nobodys(self) -> bool {
        self.0 >> TAG_AT == 0
    }
}

// === impl Bucket ===

impl Bucket {
    /// Asks the history of a key, a new one if it has none, and tells whether it was admitted. `Err`: every way is in use,
    /// the first for so long.
    pub(super) fn admit<R>(
        &self,
        tag: Tag,
        now: Nanos,
        ways: &impl Ways,
        ask: impl Fn(usize, Nanos) -> (R, bool),
    ) -> Result<R, Nanos> {
        loop {
            let turn = self.turn_written();
            let Some(hold) = self.find(tag, turn) else {
                self.claim(tag, turn, now, ways)?;
                continue;
            };
            let (answer, is_admitted) = ask(hold.way, now.max(self.floor()));
            if if is_admitted { self.keep(hold) } else { self.is_kept(hold) } {
                return Ok(answer);
            }
        }
    }

    /// Asks the history of a key, if it has one, what stores nothing.
    pub(super) fn look<R>(&self, tag: Tag, now: Nanos, ask: impl Fn(usize, Nanos) -> R) -> Option<R> {
        loop {
            let hold = self.find(tag, self.turn_written())?;
            let answer = ask(hold.way, now.max(self.floor()));
            if self.is_kept(hold) {
                return Some(answer);
            }
        }
    }

    /// Whether a new key would get a way; else how long the first is in use.
    pub(super) fn has_room(&self, now: Nanos, ways: &impl Ways) -> Result<(), Nanos> {
        self.room(now.max(self.floor()), ways).map(|_| ())
    }

    /// Ways that are somebody's.
    pub(super) fn taken(&self) -> usize {
        self.ways.iter().filter(|way| !way.load(Acquire).is_nobodys()).count() // O4
    }

    /// No call is judged before (I3).
    pub(super) fn floor(&self) -> Nanos {
        Nanos::from_nanos(self.floor.load(Relaxed)) // O6
    }

    fn find(&self, tag: Tag, turn: Turn) -> Option<Hold> {
        self.ways.iter().enumerate().find_map(|(way, word)| {
            let key = word.load(Acquire); // O4
            key.is_of(tag).then_some(Hold { way, key, turn })
        })
    }

    /// The last turn, written to its way (I1).
    fn turn_written(&self) -> Turn {
        let turn = self.turn.load(Acquire); // O1
        self.fill(turn);
        turn
    }

    /// Writes a turn that is decided to its way. After that it is there, or the turn is a later one.
    fn fill(&self, turn: Turn) {
        let Some((key, way)) = turn.key().zip(self.ways.get(turn.way())) else { return };
        let old = way.load(Acquire); // O4
        if old != key && self.turn.load(Acquire) == turn {
            // O1. Beaten: somebody wrote this very value (I4).
            let _ = way.compare_exchange(old, key, Release, Relaxed); // O5
        }
    }

    /// Makes sure that a key still has its way after an admission, and that no claim of it from before will be decided.
    fn keep(&self, hold: Hold) -> bool {
        let mut seen = hold.turn;
        loop {
            let next = if seen.claims(hold.way) { seen.cancelled() } else { seen };
            match self.turn.compare_exchange(seen, next, Release, Acquire) {
                Ok(_) => return true,       // O3
                Err(later) => seen = later, // O1
            }
            if !self.has(hold, seen) {
                return false;
            }
        }
    }

    /// Whether a key still has its way after a refusal, which nothing hangs by.
    fn is_kept(&self, hold: Hold) -> bool {
        let turn = self.turn.load(Acquire); // O1
        turn == hold.turn || self.has(hold, turn)
    }

    fn has(&self, hold: Hold, turn: Turn) -> bool {
        self.fill(turn);
        self.ways[hold.way].load(Acquire) == hold.key // O4
    }

    /// A way for a new key at this time: nobody's, or an idle one.
    fn room(&self, now: Nanos, ways: &impl Ways) -> Result<(usize, bool), Nanos> {
        let nobodys = |word: &Word<Key>| word.load(Acquire).is_nobodys(); // O4
        if let Some(way) = self.ways.iter().position(nobodys) {
            return Ok((way, true));
        }
        let mut soonest = NEVER;
        for way in 0..WAYS {
            match ways.idle_after(way, now) {
                Nanos::ZERO => return Ok((way, false)),
                wait => soonest = soonest.min(wait),
            }
        }
        Err(soonest)
    }

    /// Takes a step towards a way for a key that had none when this turn was written. `Err`: there was no room.
    #[cold]
    fn claim(&self, tag: Tag, turn: Turn, now: Nanos, ways: &impl Ways) -> Result<(), Nanos> {
        if turn.is_claim() {
            self.finish(turn, ways);
            return Ok(());
        }
        let now = now.max(self.floor());
        let (way, is_nobodys) = match self.room(now, ways) {
            Ok(found) => found,
            Err(wait) if self.turn.load(Acquire) == turn => return Err(wait), // O1
            Err(_) => return Ok(()),
        };
        if !is_nobodys {
            self.raise_floor(now);
        }
        let claim = turn.claim(way, tag);
        if self.turn.compare_exchange(turn, claim, AcqRel, Relaxed).is_ok() {
            self.finish(claim, ways); // O2
        }
        Ok(())
    }

    /// Decides a claim, whosever it is.
    fn finish(&self, claim: Turn, ways: &impl Ways) {
        let is_free = self.ways.get(claim.way()).is_some_and(|way| {
            let floor = Nanos::from_nanos(self.floor.load(Acquire)); // O7
            way.load(Acquire).is_nobodys() || ways.idle_after(claim.way(), floor) == Nanos::ZERO // O4, I2
        });
        let next = if is_free { claim.decided() } else { claim.cancelled() };
        if self.turn.compare_exchange(claim, next, Release, Relaxed).is_ok() {
            self.fill(next); // O3, L1
        }
    }

    /// Raises the floor to a time at which a history was idle (I3).
    fn raise_floor(&self, to: Nanos) {
        let mut floor = self.floor.load(Relaxed); // O6
        while floor < to.as_nanos() {
            match self.floor.compare_exchange(floor, to.as_nanos(), Release, Relaxed) {
                Ok(_) => return,               // O8
                Err(higher) => floor = higher, // O6
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Histories that nothing is charged to.
    struct Idle;

    impl Ways for Idle {
        fn idle_after(&self, _: usize, _: Nanos) -> Nanos {
            Nanos::ZERO
        }
    }

    /// I4: a turn that somebody read long ago is not written once its way is another key's.
    #[test]
    fn a_late_caller_writes_no_way() {
        let bucket = Bucket::default();
        let take = |tag| bucket.admit(Tag(tag), Nanos::ZERO, &Idle, |way, _| (way, true)).unwrap();
        let ways: alloc::vec::Vec<_> = (1..=WAYS as u64).map(take).collect();
        assert_eq!((ways, take(100)), ((0..WAYS).collect(), 0), "the first idle way changes hands");
        let old = bucket.turn.load(Acquire);
        assert_eq!((take(101), take(2)), (0, 1));
        bucket.fill(old);
        assert_eq!(bucket.find(Tag(101), old).map(|hold| hold.way), Some(0));
    }
    /// I4: a turn like the one before has another word, and gives its way another.
    #[test]
    fn no_turn_comes_twice() {
        let first = Turn(0).claim(3, Tag(7));
        assert_ne!(first.cancelled().claim(3, Tag(7)), first);
        assert_ne!(first.decided().claim(3, Tag(7)).decided().key(), first.decided().key());
    }
}
