//! Which executions tear a read-modify-write.
//!
//! A read-modify-write follows the store that it read from without another in between, in the order of modifications of
//! its word. Loom keeps that order as far as it is known, and forgets this part of it: after `T2 cas(1 => 0)` and
//! `T1 store(2)` it may hand the 0 to a swap of T1's, as if the 2 had come between the two halves of T2's cas.
//!
//! So each word that is also plainly stored to has its modifications put in order here, by coherence: what an access
//! read or wrote comes no later than what is read or written by another that it happens before. If there is no such order in
//! which the read-modify-writes are whole, the execution is none of the language. Which store was read is known by its
//! value alone; where that leaves a choice, every choice must fail.

use crate::history::{Knowledge, MAIN};

/// Stores of one word, and choices of what was read, up to which tears are looked for; beyond, none is seen. A word that
/// threads wait for has many of the same value, and each choice costs the square of the stores.
const STORES_MAX: usize = 32;
const WORLDS_MAX: usize = 16;

/// The accesses of one word.
#[derive(Default)]
pub(super) struct Word {
    touches: Vec<Touch>,
    /// The orders that are possible. None is kept while loom can not be wrong: all stores but the first are
    /// read-modify-writes, and each read the newest.
    worlds: Vec<World>,
    watched: bool,
}

/// An access of a word.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub(super) thread: usize,
    /// Its number among the steps of its thread, and what its thread knew of all before.
    pub(super) step: u32,
    pub(super) knew: Knowledge,
    pub(super) read: Option<u64>,
    pub(super) wrote: Option<u64>,
}

/// What each access read or wrote, and the order of the stores, as far as it is known.
#[derive(Clone, Default)]
struct World {
    /// For each access the store that it wrote, or else read.
    stores_of: Vec<usize>,
    stores: Vec<Store>,
}

#[derive(Clone, Copy)]
struct Store {
    value: u64,
    /// The store that a read-modify-write has read.
    read: Option<usize>,
    /// The stores after this one, as bits.
    later: u64,
}

// === impl Word ===

impl Word {
    /// Adds an access. `false`: some read-modify-write is torn.
    pub(super) fn add(&mut self, touch: Touch) -> bool {
        self.touches.push(touch);
        let plain_store = touch.read.is_none() && touch.wrote.is_some();
        let new = if self.watched {
            self.touches.len() - 1..self.touches.len()
        } else if plain_store && touch.thread != MAIN {
            (self.watched, self.worlds) = (true, vec![World::default()]);
            0..self.touches.len()
        } else {
            return true;
        };
        for i in new {
            self.worlds = self.worlds.iter().flat_map(|world| world.with(&self.touches, i)).collect();
        }
        if self.worlds.iter().any(|world| world.stores.len() >= STORES_MAX) || self.worlds.len() > WORLDS_MAX
        {
            *self = Word::default();
            return true;
        }
        !self.worlds.is_empty()
    }
}

// === impl World ===

impl World {
    /// This world after access `i`, once for each store that it may have read.
    fn with(&self, touches: &[Touch], i: usize) -> Vec<World> {
        let touch = &touches[i];
        let known = |(_, other): &(&usize, &Touch)| touch.knew[other.thread] >= other.step;
        let known: Vec<_> =
            self.stores_of.iter().zip(touches).filter(known).map(|(store, _)| *store).collect();
        let Some(value) = touch.read else {
            return self.clone().written(touch.wrote, None, &known).into_iter().collect();
        };
        let candidates = (0..self.stores.len()).filter(|&store| self.stores[store].value == value);
        let read = |store| {
            let mut world = self.clone();
            world.all_before(&known, store).then_some(())?;
            match touch.wrote {
                Some(_) => world.written(touch.wrote, Some(store), &known),
                None => {
                    world.stores_of.push(store);
                    world.is_whole().then_some(world)
                }
            }
        };
        candidates.filter_map(read).collect()
    }

    fn written(mut self, wrote: Option<u64>, read: Option<usize>, known: &[usize]) -> Option<World> {
        let new = self.stores.len();
        self.stores.push(Store { value: wrote?, read, later: 0 });
        self.stores_of.push(new);
        (self.all_before(known, new) && self.all_before(read.as_slice(), new) && self.is_whole())
            .then_some(self)
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        self.stores[a].later >> b & 1 == 1
    }

    /// Puts each of `stores` before `last`, unless it is that one. `false`: it is known to be after.
    fn all_before(&mut self, stores: &[usize], last: usize) -> bool {
        stores.iter().all(|&store| store == last || self.put(store, last))
    }

    fn put(&mut self, a: usize, b: usize) -> bool {
        if a == b || self.is_before(b, a) {
            return false;
        }
        let later = self.stores[b].later | 1 << b;
        for i in 0..self.stores.len() {
            if i == a || self.is_before(i, a) {
                self.stores[i].later |= later;
            }
        }
        true
    }

    /// Draws what follows from nothing standing between a read-modify-write and what it read. `false`: it can not be.
    fn is_whole(&mut self) -> bool {
        loop {
            let mut changed = false;
            for new in 0..self.stores.len() {
                let Some(read) = self.stores[new].read else { continue };
                for other in (0..self.stores.len()).filter(|&other| other != new && other != read) {
                    let missing = [(other, new, other, read), (read, other, new, other)];
                    for (a, b, first, second) in missing {
                        if self.is_before(a, b) && !self.is_before(first, second) {
                            if !self.put(first, second) {
                                return false;
                            }
                            changed = true;
                        }
                    }
                }
            }
            if !changed {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses of one word, by threads that know nothing of each other but that the first was made before.
    struct Accesses(Word, [u32; 3]);

    impl Accesses {
        fn of(first: u64) -> Accesses {
            let mut accesses = Accesses(Word::default(), [0; 3]);
            assert!(accesses.add(MAIN, None, Some(first)));
            accesses
        }

        fn add(&mut self, thread: usize, read: Option<u64>, wrote: Option<u64>) -> bool {
            let mut knew = Knowledge::default();
            (knew[MAIN], knew[thread]) = (1, self.1[thread]);
            self.1[thread] += 1;
            self.0.add(Touch { thread, step: self.1[thread], knew, read, wrote })
        }
    }

    #[test]
    fn a_store_does_not_come_between_the_halves_of_a_cas() {
        let mut torn = Accesses::of(1);
        assert!(torn.add(2, Some(1), Some(0)));
        assert!(torn.add(1, None, Some(2)));
        assert!(!torn.add(1, Some(0), Some(3)), "the 2 would have to be between the 1 and the 0");
        let mut whole = Accesses::of(1);
        assert!(whole.add(2, Some(1), Some(0)));
        assert!(whole.add(1, None, Some(2)));
        assert!(whole.add(1, Some(2), Some(3)));
    }

    #[test]
    fn a_store_may_come_before_what_was_read() {
        let mut whole = Accesses::of(1);
        assert!(whole.add(2, None, Some(4)));
        assert!(whole.add(2, Some(4), Some(0)));
        assert!(whole.add(1, None, Some(2)));
        assert!(whole.add(1, Some(0), Some(3)), "1, 2, 4 => 0 => 3");
    }

    #[test]
    fn of_equal_values_one_that_fits_is_enough() {
        let mut twice = Accesses::of(1);
        assert!(twice.add(2, Some(1), Some(0)));
        assert!(twice.add(2, Some(0), Some(5)));
        assert!(twice.add(2, None, Some(0)));
        assert!(twice.add(1, None, Some(2)));
        assert!(twice.add(1, Some(0), Some(3)), "the second 0 may come after the 2");
        let mut once = Accesses::of(1);
        assert!(once.add(2, Some(1), Some(0)));
        assert!(once.add(2, Some(0), Some(0)));
        assert!(once.add(1, None, Some(2)));
        assert!(!once.add(1, Some(0), Some(3)), "both are of the chain that began with the 1");
    }

    #[test]
    fn a_load_may_not_tear_either() {
        let mut torn = Accesses::of(1);
        assert!(torn.add(2, Some(1), Some(0)));
        assert!(torn.add(1, None, Some(2)));
        assert!(!torn.add(1, Some(0), None));
    }
}
