//! Where a thread begins: its home shard, and where it was admitted last.

/// How a call finds the shard to begin with. `limiter` is an address, which names the limiter.
pub(crate) trait Home: Copy {
    /// The shard to begin with: below their number.
    fn of(self, limiter: usize, shards: usize) -> usize;
    /// The shard that admitted.
    fn remember(self, limiter: usize, shard: usize);
}

/// The calling thread's own.
#[derive(Clone, Copy)]
pub(crate) struct ByThread;

/// One that the caller chose, modulo the number of shards.
#[derive(Clone, Copy)]
pub(crate) struct Chosen(pub(crate) usize);

impl Home for Chosen {
    #[inline(always)]
    fn of(self, _: usize, shards: usize) -> usize {
        self.0.checked_rem(shards).unwrap_or(0)
    }

    fn remember(self, _: usize, _: usize) {}
}

/// Without std a thread is known by its stack, each 64 KiB of which have a home: one that calls from far apart depths has
/// several, and nothing is remembered. Under the model everybody begins at the first.
#[cfg(not(feature = "std"))]
impl Home for ByThread {
    #[inline(always)]
    fn of(self, _: usize, shards: usize) -> usize {
        ByThread::home(shards)
    }

    fn remember(self, _: usize, _: usize) {}
}

#[cfg(not(feature = "std"))]
impl ByThread {
    /// The place of the calling thread among so many.
    #[inline(always)]
    pub(crate) fn home(places: usize) -> usize {
        if cfg!(tollgate_loom) {
            return 0;
        }
        let here = 0_u8;
        let stack = (&raw const here).addr() as u64 >> 16;
        // By the golden ratio: stacks at equal distances get homes at nearly equal distances.
        let spread = stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (spread.wrapping_mul(places as u64) >> 32) as usize
    }
}

#[cfg(feature = "std")]
mod by_thread {
    use core::cell::Cell;
    use std::thread_local;

    use super::{ByThread, Home};
    use crate::sync::{Relaxed, Word};

    thread_local! {
        /// A thread's number, spread over all of 32 bits; 0 before it is given one.
        static SPREAD: Cell<u32> = const { Cell::new(0) };
        /// The limiter that this thread called last, and where it was admitted there, or is at home.
        static LAST: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }

    /// Threads that were given a number.
    static THREADS: Word<u64> = Word::new(0);

    /// The calling thread's number: bits in reverse, so that the first `n` threads lie apart whatever `n` is.
    fn spread() -> u32 {
        let mut spread = SPREAD.get();
        if spread == 0 {
            spread = (THREADS.fetch_add(1, Relaxed) as u32).reverse_bits() | 1; // O4
            SPREAD.set(spread);
        }
        spread
    }

    /// The home of the calling thread in a limiter that it did not call last.
    #[cold]
    #[inline(never)]
    fn arrive(limiter: usize, shards: usize) -> usize {
        let home = ByThread::home(shards);
        LAST.set((limiter, home));
        home
    }

    impl ByThread {
        /// The place of the calling thread among so many, whatever it called last.
        #[inline]
        pub(crate) fn home(places: usize) -> usize {
            ((u64::from(spread()) * places as u64) >> 32) as usize
        }
    }

    impl Home for ByThread {
        #[inline(always)]
        fn of(self, limiter: usize, shards: usize) -> usize {
            let (called, last) = LAST.get();
            // Another limiter, of more shards, may have lain there before.
            if called == limiter && last < shards { last } else { arrive(limiter, shards) }
        }

        #[inline]
        fn remember(self, limiter: usize, shard: usize) {
            LAST.set((limiter, shard));
        }
    }

    #[cfg(test)]
    mod tests {
        use std::{collections::BTreeSet, thread, vec::Vec};

        use super::*;

        #[test]
        fn threads_live_apart_and_remember_one_limiter() {
            let (one, other) = (8, 16);
            let homes: BTreeSet<usize> =
                (0..4).map(|_| thread::scope(|s| s.spawn(|| ByThread.of(one, 4)).join().unwrap())).collect();
            assert!(homes.len() >= 2, "other tests take numbers too: {homes:?}");

            let home = ByThread.of(one, 4);
            let away = (home + 1) % 4;
            ByThread.remember(one, away);
            assert_eq!((ByThread.of(one, 4), ByThread.of(other, 4)), (away, home));
        }

        /// Memory that one limiter gave back may be another's, with fewer shards.
        #[test]
        fn a_limiter_where_a_larger_one_lay_is_begun_inside() {
            let place = 24;
            ByThread.remember(place, 7);
            assert_eq!(ByThread.of(place, 8), 7);
            assert!(ByThread.of(place, 2) < 2 && ByThread.of(place, 1) == 0);
        }

        #[test]
        fn numbers_spread_evenly_over_any_number_of_shards() {
            for shards in 1..20u64 {
                let mut taken = Vec::from_iter((0..shards).map(|_| 0));
                for number in 0..64 * shards {
                    let spread = u64::from((number as u32).reverse_bits());
                    taken[((spread * shards) >> 32) as usize] += 1;
                }
                let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
                assert!(*least >= 60 && *most <= 68, "{shards}: {taken:?}");
            }
        }
    }
}
