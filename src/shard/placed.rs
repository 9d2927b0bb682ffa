//! Shards in one piece of memory, wherever it lies.
//!
//! # State
//! | bytes             | what                                                      |
//! |-------------------|-----------------------------------------------------------|
//! | 0x000             | `refused_until`, on a line of its own                     |
//! | 0x080 + n * stride | the state of shard `n`; the stride is that of the larger part |
//!
//! # Invariants
//! | id | always                                                      | kept by         |
//! |----|-------------------------------------------------------------|-----------------|
//! | I5 | every shard's state lies, aligned, inside the ring of the whole | `Parted::slots` |

use super::{ByThread, Log, OnSharded, Parted, Shard, ShardedLook, Shards, Until, Window};
use crate::{
    LogConfig, Nanos, WindowConfig,
    algorithm::{On, Parts, StateOf},
    block::{At, LINE},
    decision::History,
    sync::Word,
};

/// A configuration of shards, and what they are shards of.
pub(crate) trait OfShards: Parts + Copy {
    type Algorithm: Shard<Config = Self>;
}

impl OfShards for LogConfig {
    type Algorithm = Log;
}

impl OfShards for WindowConfig {
    type Algorithm = Window;
}

/// The shards behind a line of their own.
pub(crate) struct Piece<'s, C: OfShards> {
    config: &'s Parted<C>,
    state: At<'s, Word<Until>, C::Slot>,
}

// === impl Parted ===

/// From a shard to the next.
#[inline(always)]
fn stride<C: OfShards>(config: &Parted<C>) -> usize {
    let [larger, smaller] = &config.parts;
    larger.bytes().max(smaller.bytes())
}

impl<C: OfShards> Parts for Parted<C>
where
    for<'a> On<'a, C>: History,
{
    /// That of a shard, marked.
    const NAME: [u8; 8] = {
        let mut name = C::NAME;
        name[7] = b's';
        name
    };

    type Heads = Word<Until>;
    type Slot = C::Slot;

    fn slots(&self) -> u64 {
        self.shards.saturating_mul((stride(self) / size_of::<Word<C::Slot>>()) as u64) // I5
    }

    /// Any `refused_until` is one that a call might have left.
    fn accepts(on: On<'_, Self>) -> bool {
        let piece = Piece { config: on.config, state: on.state };
        (0..piece.len()).all(|shard| {
            let config = on.config.part(shard).0;
            piece.get(shard).is_some_and(|state| C::accepts(On { config, state }))
        })
    }
}

// === impl On ===

impl<'l, C: OfShards> On<'l, Parted<C>>
where
    for<'a> On<'a, C>: History,
{
    #[inline(always)]
    fn on_shards(self) -> OnSharded<'l, C::Algorithm, Piece<'l, C>, ByThread> {
        let Self { config, state } = self;
        OnSharded { config, shards: Piece { config, state }, home: ByThread }
    }
}

impl<'l, C: OfShards> History for On<'l, Parted<C>>
where
    for<'a> On<'a, C>: History,
{
    type Limits = Parted<C>;
    type Look<'a>
        = ShardedLook<'l, C::Algorithm, Piece<'l, C>>
    where
        Self: 'a;

    fn limits(&self) -> &Parted<C> {
        self.config
    }

    #[inline(always)]
    fn glance(&self, cost: u64, now: Nanos) -> Option<bool> {
        self.on_shards().glance(cost, now)
    }

    #[inline(always)]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        self.on_shards().take(cost, now)
    }

    fn look(&self, now: Nanos) -> Self::Look<'_> {
        ShardedLook::new(self.config, Piece { config: self.config, state: self.state }, now)
    }
}

// === impl Piece ===

impl<'s, C: OfShards> Shards<'s, C::Algorithm> for Piece<'s, C> {
    #[inline(always)]
    fn refused_until(self) -> &'s Word<Until> {
        self.state.head()
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.config.shards as usize
    }

    #[inline(always)]
    fn get(self, shard: usize) -> Option<StateOf<'s, C::Algorithm>> {
        // SAFETY: I5: below their number, and aligned, since a line and a stride are whole lines.
        (shard < self.len()).then(|| unsafe { self.state.beyond(LINE + shard * stride(self.config)) })
    }

    #[inline(always)]
    fn address(self) -> usize {
        (&raw const *self.state.head()).addr()
    }
}

impl<C: OfShards> Clone for Piece<'_, C> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: OfShards> Copy for Piece<'_, C> {}

#[cfg(test)]
mod tests {
    use alloc::{
        alloc::{Layout, alloc_zeroed, dealloc},
        vec::Vec,
    };
    use core::{ptr::NonNull, time::Duration};

    use super::*;
    #[cfg(feature = "std")]
    use crate::{Algorithm, ConfigError};
    use crate::{Config, STATE_ALIGN};

    /// Zeroed memory for a state.
    struct Memory(NonNull<u8>, Layout);

    impl Memory {
        fn new(bytes: usize) -> Self {
            let layout = Layout::from_size_align(bytes, STATE_ALIGN).unwrap();
            // SAFETY: contract of `alloc_zeroed`: not empty.
            Self(NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap(), layout)
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: contract of `dealloc`: taken with this layout.
            unsafe { dealloc(self.0.as_ptr(), self.1) }
        }
    }

    /// The same calls get the same answers from shards in one piece as from those on the heap.
    #[cfg(feature = "std")]
    fn agrees<C: Config>(config: C, heap: impl Algorithm) {
        let memory = Memory::new(config.state_bytes());
        let (mut seed, mut now, mut admitted) = (1_u64, 0_u64, 0);
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for _ in 0..4_000 {
            now += below(200);
            let (cost, at) = (below(3), Nanos::from_nanos(now.saturating_sub(below(3) * below(500))));
            // SAFETY: contract of `Config`: so many zeros, used by this configuration alone.
            let taken = unsafe { config.try_acquire_at(memory.0, cost, at) };
            assert_eq!(taken, heap.try_acquire_at(cost, at));
            // SAFETY: as above.
            assert_eq!(unsafe { config.check_at(memory.0, cost, at) }, heap.check_at(cost, at));
            // SAFETY: as above.
            assert_eq!(unsafe { config.peek_at(memory.0, cost, at) }, heap.peek_at(cost, at));
            admitted += u64::from(taken && cost > 0);
            // SAFETY: as above.
            assert!(unsafe { config.accepts(memory.0) });
        }
        assert!((200..3_000).contains(&admitted), "{admitted} tell little");
    }

    /// With std: without it two calls from two depths of the stack may begin at two shards.
    #[cfg(feature = "std")]
    #[test]
    fn shards_in_one_piece_answer_as_on_the_heap() -> Result<(), ConfigError> {
        let window = Duration::from_nanos(1_000);
        for (limit, shards) in [(4, 2), (7, 3), (2, 5), (40, 4)] {
            let log = || Log::builder(limit, window);
            agrees(log().config_sharded(shards)?, log().build_sharded(shards)?);
            let counter = || Window::builder(limit, window).buckets(5);
            agrees(counter().config_sharded(shards)?, counter().build_sharded(shards)?);
        }
        Ok(())
    }

    #[test]
    fn shards_in_one_piece_share_no_line_and_end_inside() {
        for (limit, shards) in [(0, 1), (5, 2), (33, 16), (1_000, 7)] {
            let config = Log::builder(limit, Duration::from_secs(1)).config_sharded(shards).unwrap();
            let memory = Memory::new(Config::state_bytes(&config));
            // SAFETY: a state lies there.
            let piece = Piece { config: &config, state: unsafe { At::new(memory.0) } };
            let places: Vec<_> =
                (0..shards).map(|n| (&raw const *piece.get(n).unwrap().head()).addr()).collect();
            let end = memory.0.addr().get() + Config::state_bytes(&config);
            for (n, &place) in places.iter().enumerate() {
                assert!(place.is_multiple_of(LINE) && place >= memory.0.addr().get() + LINE);
                let next = places.get(n + 1).copied().unwrap_or(end);
                assert!(place + config.part(n).0.bytes() <= next);
            }
            assert!(piece.get(shards).is_none());
        }
    }
}
