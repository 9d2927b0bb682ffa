//! The memory of a history: its head words on a cache line of their own, then a ring of slots, in one contiguous
//! piece without pointers. It may lie anywhere: on the heap ([`Owned`]), inside
//! its owner if it has no ring ([`Inline`]), or in memory that a caller keeps.
//!
//! The allocator is asked for an alignment that it gives anyway, and the block begins at the first cache line in
//! what it gives. Asked for more, it would write the zeros itself: a ring of a million slots would cost all its
//! memory at once, and not as it is used.
//!
//! # Invariants
//! | id | always                                                          | kept by                         |
//! |----|-----------------------------------------------------------------|---------------------------------|
//! | I1 | a new block is all zeros, which every head and slot type allows  | `Owned::zeroed`, bound `Zeroed` |
//! | I2 | a block lies, aligned, inside the memory that its owner took     | `Owned::zeroed`, `At::new`      |
//! | I3 | a head of one word may lie in any word                           | bound `Zeroed`, `Word` is transparent |

use bytemuck::Pod;
use crossbeam_utils::CachePadded;

use crate::sync::Word;

#[cfg(feature = "keyed")]
mod packed;

#[cfg(tollgate_loom)]
pub(crate) use modelled::{At, Owned};
#[cfg(feature = "keyed")]
pub(crate) use packed::Packed;
#[cfg(not(tollgate_loom))]
pub(crate) use real::{At, Owned};

/// Head words that are valid, and mean "nothing admitted yet", when all their bytes are zero: their default.
///
/// # Safety
/// The type consists of [`Word`]s alone.
pub(crate) unsafe trait Zeroed: Default + Send + Sync {}

// SAFETY: contract of `Zeroed`: a word alone.
unsafe impl<T: Pod + Send> Zeroed for Word<T> {}

/// A block without a ring, inside its owner.
#[derive(Default)]
pub(crate) struct Inline<H: Zeroed>(CachePadded<H>);

/// Bytes of a block with `len` slots, up to the end of a line; as many as there can be, if there is no such block.
pub(crate) fn bytes<H: Zeroed, S: Pod>(len: u64) -> usize {
    bytes_used::<H, S>(len).saturating_add(LINE - 1) & !(LINE - 1)
}

/// The same up to the end of the last slot.
fn bytes_used<H: Zeroed, S: Pod>(len: u64) -> usize {
    let slots = usize::try_from(len).unwrap_or(usize::MAX).saturating_mul(size_of::<Word<S>>());
    size_of::<CachePadded<H>>().saturating_add(slots)
}

/// What a block is aligned to, so that it shares no cache line.
pub(crate) const LINE: usize = align_of::<CachePadded<u64>>();

// === impl Inline ===

impl<H: Zeroed> Inline<H> {
    /// The block.
    #[inline(always)]
    pub(crate) fn at<S: Pod>(&self) -> At<'_, H, S> {
        At::headed(&self.0)
    }

    /// Makes every word zero again.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(not(tollgate_loom))]
mod real {
    use alloc::alloc::{Layout, alloc_zeroed, dealloc};
    use core::{marker::PhantomData, ptr::NonNull};

    use bytemuck::Pod;
    use crossbeam_utils::CachePadded;

    use super::{LINE, Zeroed, bytes, bytes_used};
    use crate::{ConfigError, sync::Word};

    /// What an allocator aligns to unasked.
    const GIVEN: usize = 2 * size_of::<usize>();

    /// A block, wherever it lies: one pointer.
    pub(crate) struct At<'a, H: Zeroed, S: Pod> {
        head: NonNull<H>,
        lives: PhantomData<&'a (H, Word<S>)>,
    }

    /// A block on the heap.
    pub(crate) struct Owned<H: Zeroed, S: Pod> {
        pub(super) block: NonNull<u8>,
        memory: NonNull<u8>,
        pub(super) len: u64,
        owns: PhantomData<(H, Word<S>)>,
    }

    // SAFETY: contract of `Send`: it owns its block alone, whose words may be sent.
    unsafe impl<H: Zeroed + Send, S: Pod + Send> Send for Owned<H, S> {}
    // SAFETY: contract of `Sync`: sharing it shares its block, whose words may be shared.
    unsafe impl<H: Zeroed + Sync, S: Pod + Send> Sync for Owned<H, S> {}

    // === impl At ===

    impl<'a, H: Zeroed, S: Pod> At<'a, H, S> {
        /// The block that begins at `memory`.
        ///
        /// # Safety
        /// For `'a`, a block of these types lies there (I1, I2).
        pub(crate) const unsafe fn new(memory: NonNull<u8>) -> Self {
            Self { head: memory.cast(), lives: PhantomData }
        }

        /// A block without a ring.
        #[inline(always)]
        pub(crate) fn headed(head: &'a CachePadded<H>) -> Self {
            Self { head: NonNull::from(&**head), lives: PhantomData }
        }

        /// Whether the block may be one word, if it has no ring.
        #[cfg(feature = "keyed")]
        pub(crate) const IS_WORD: bool = size_of::<H>() == size_of::<Word<u64>>();

        /// A block without a ring that is one word: this. `None`: its head is more.
        #[cfg(feature = "keyed")]
        #[inline(always)]
        pub(crate) fn of_word(word: &'a Word<u64>) -> Option<Self> {
            // I3: a head as large as a word is one, and words are alike whatever they hold.
            Self::IS_WORD.then(|| Self { head: NonNull::from(word).cast(), lives: PhantomData })
        }

        /// The words before the ring.
        #[inline(always)]
        pub(crate) fn head(self) -> &'a H {
            // SAFETY: I2, I3.
            unsafe { self.head.as_ref() }
        }

        /// A slot of the ring.
        ///
        /// # Safety
        /// `index` is below the length of the ring.
        #[inline(always)]
        pub(crate) unsafe fn slot(self, index: u64) -> &'a Word<S> {
            // SAFETY: I2: the ring begins behind the head, where a padded head would end.
            let ring = unsafe { self.head.byte_add(size_of::<CachePadded<H>>()) }.cast::<Word<S>>();
            // SAFETY: I2, by the contract of this function.
            let slot = unsafe { ring.add(index as usize) };
            // SAFETY: I1, I2.
            unsafe { slot.as_ref() }
        }

        /// A block that lies inside the ring, so many bytes behind the beginning of this one.
        ///
        /// # Safety
        /// Such a block lies there, aligned.
        #[inline(always)]
        pub(crate) unsafe fn beyond<G: Zeroed, T: Pod>(self, bytes: usize) -> At<'a, G, T> {
            // SAFETY: I2, by the contract of this function.
            At { head: unsafe { self.head.byte_add(bytes) }.cast(), lives: PhantomData }
        }

        /// Makes a block with `len` slots zero again.
        ///
        /// # Safety
        /// It has that many slots, and nobody else uses it meanwhile.
        pub(crate) unsafe fn clear(self, len: u64) {
            // SAFETY: contract of `write_bytes`: I2, and nobody reads.
            unsafe { self.head.write_bytes(0, 1) };
            // SAFETY: I2: the ring begins behind the head, where a padded head would end.
            let ring = unsafe { self.head.byte_add(size_of::<CachePadded<H>>()) }.cast::<Word<S>>();
            // SAFETY: contract of `write_bytes`: I2, and nobody reads.
            unsafe { ring.write_bytes(0, len as usize) };
        }
    }

    impl<H: Zeroed, S: Pod> Clone for At<'_, H, S> {
        #[inline(always)]
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<H: Zeroed, S: Pod> Copy for At<'_, H, S> {}

    // === impl Owned ===

    impl<H: Zeroed, S: Pod> Owned<H, S> {
        /// A new block with `len` slots, all zeros.
        ///
        /// # Errors
        /// [`ConfigError::Memory`] if there is not that much.
        pub(crate) fn zeroed(len: u64) -> Result<Self, ConfigError> {
            let bytes = bytes::<H, S>(len);
            let layout = Self::layout(len).ok_or(ConfigError::Memory { bytes })?;
            // SAFETY: contract of `alloc_zeroed`: the layout is not empty, its head is padded to a cache line.
            let memory =
                NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(ConfigError::Memory { bytes })?;
            let skip = memory.align_offset(LINE);
            // SAFETY: I2: the layout has room for an alignment less what is given, so for any skip.
            let block = unsafe { memory.add(skip) };
            Ok(Self { block, memory, len, owns: PhantomData })
        }

        /// The block.
        #[inline(always)]
        pub(crate) fn at(&self) -> At<'_, H, S> {
            // SAFETY: I1, I2: a block, as long as its owner lives.
            unsafe { At::new(self.block) }
        }

        /// Makes every word zero again.
        pub(crate) fn clear(&mut self) {
            // SAFETY: contract of `clear`: it has so many slots, and is borrowed exclusively.
            unsafe { self.at().clear(self.len) }
        }

        /// What is asked of the allocator for a block with `len` slots: at most 240 bytes beside them. The line of the last slots
        /// may be another's too.
        fn layout(len: u64) -> Option<Layout> {
            let spare = LINE.saturating_sub(GIVEN);
            Layout::from_size_align(bytes_used::<H, S>(len).checked_add(spare)?, GIVEN).ok()
        }
    }

    impl<H: Zeroed, S: Pod> Drop for Owned<H, S> {
        fn drop(&mut self) {
            // A block was made with this length, so the layout is one. Words need no drop.
            if let Some(layout) = Self::layout(self.len) {
                // SAFETY: contract of `dealloc`: taken by `zeroed` with this layout.
                unsafe { dealloc(self.memory.as_ptr(), layout) };
            }
        }
    }
}

#[cfg(tollgate_loom)]
mod modelled {
    use alloc::boxed::Box;
    use core::ptr::NonNull;

    use bytemuck::Pod;

    use super::Zeroed;
    use crate::{ConfigError, sync::Word};

    /// The words of a model must each be made, and are larger: its block is in two pieces.
    pub(crate) struct Owned<H: Zeroed, S: Pod> {
        head: H,
        slots: Box<[Word<S>]>,
    }

    /// A block of modelled words.
    pub(crate) struct At<'a, H: Zeroed, S: Pod> {
        head: &'a H,
        slots: &'a [Word<S>],
    }

    // === impl At ===

    impl<'a, H: Zeroed, S: Pod> At<'a, H, S> {
        pub(crate) fn headed(head: &'a H) -> Self {
            Self { head, slots: &[] }
        }

        pub(crate) const IS_WORD: bool = size_of::<H>() == size_of::<Word<u64>>();

        pub(crate) fn of_word(word: &'a Word<u64>) -> Option<Self> {
            // SAFETY: I3.
            Self::IS_WORD.then(|| Self { head: unsafe { NonNull::from(word).cast().as_ref() }, slots: &[] })
        }

        pub(crate) fn head(self) -> &'a H {
            self.head
        }

        pub(crate) unsafe fn slot(self, index: u64) -> &'a Word<S> {
            &self.slots[index as usize]
        }
    }

    impl<H: Zeroed, S: Pod> Clone for At<'_, H, S> {
        fn clone(&self) -> Self {
            *self
        }
    }

    impl<H: Zeroed, S: Pod> Copy for At<'_, H, S> {}

    // === impl Owned ===

    impl<H: Zeroed, S: Pod> Owned<H, S> {
        pub(crate) fn zeroed(len: u64) -> Result<Self, ConfigError> {
            Ok(Self { head: H::default(), slots: (0..len).map(|_| Word::default()).collect() })
        }

        pub(crate) fn at(&self) -> At<'_, H, S> {
            At { head: &self.head, slots: &self.slots }
        }

        pub(crate) fn clear(&mut self) {
            self.head = H::default();
            self.slots.iter_mut().for_each(|slot| *slot = Word::default());
        }
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;
    use crate::sync::{Relaxed, word};

    word! {
        /// A slot.
        Plain
    }

    #[derive(Default)]
    struct Heads(Word<Plain>);

    // SAFETY: contract of `Zeroed`: words alone.
    unsafe impl Zeroed for Heads {}

    #[test]
    fn a_block_is_aligned_zero_and_writable_to_its_end() {
        for len in [0, 1, 2, 15, 16, 17, 1_000, 100_000] {
            let mut block = Owned::<Heads, Plain>::zeroed(len).unwrap();
            assert_eq!((&raw const *block.at().head()).addr() % LINE, 0);
            let bytes = bytes::<Heads, Plain>(len) as u64;
            assert!(bytes >= 128 + 8 * len && bytes < 256 + 8 * len && bytes.is_multiple_of(LINE as u64));
            assert_eq!(block.at().head().0.load(Relaxed), Plain(0));
            // SAFETY: below the length.
            let slot = |block: &Owned<_, Plain>, index| unsafe { block.at().slot(index) }.load(Relaxed);
            for index in 0..len {
                // SAFETY: below the length.
                let slot = unsafe { block.at().slot(index) };
                assert!(slot.compare_exchange(Plain(0), Plain(u64::MAX), Relaxed, Relaxed).is_ok());
            }
            assert!((0..len).all(|index| slot(&block, index) == Plain(u64::MAX)));
            block.clear();
            assert!((0..len).all(|index| slot(&block, index) == Plain(0)));
        }
    }

    #[test]
    fn more_memory_than_there_is_gets_an_error() {
        for len in [u64::MAX, u64::MAX / 8, isize::MAX as u64 / 8 - 2] {
            assert!(matches!(Owned::<Heads, Plain>::zeroed(len), Err(crate::ConfigError::Memory { .. })));
        }
    }
}
