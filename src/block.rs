//! The memory of a history: its head words on a cache line of their own, then a ring of slots, in one contiguous
//! allocation without pointers.
//!
//! The allocator is asked for an alignment that it gives anyway, and the block begins at the first cache line in
//! what it gives. Asked for more, it would write the zeros itself: a ring of a million slots would cost all its
//! memory at once, and not as it is used.
//!
//! # Invariants
//! | id | always                                                          | kept by                         |
//! |----|-----------------------------------------------------------------|---------------------------------|
//! | I1 | a new block is all zeros, which every head and slot type allows  | `Owned::zeroed`, bound `Zeroed` |
//! | I2 | a block lies, aligned, inside the memory that its owner took     | `Owned::zeroed`                 |

use bytemuck::Pod;
use crossbeam_utils::CachePadded;

use crate::sync::Word;

#[cfg(tollgate_loom)]
pub(crate) use modelled::Owned;
#[cfg(not(tollgate_loom))]
pub(crate) use real::Owned;

/// Head words that are valid, and mean "nothing admitted yet", when all their bytes are zero: their default.
///
/// # Safety
/// The type consists of [`Word`]s alone.
pub(crate) unsafe trait Zeroed: Default {}

/// Head words `H`, then a ring of slots `S`.
#[repr(C)]
pub(crate) struct Block<H: Zeroed, S: Pod> {
    pub(crate) head: CachePadded<H>,
    pub(crate) slots: Slots<S>,
}

#[cfg(not(tollgate_loom))]
type Slots<S> = [Word<S>];
/// The words of a model must each be made, and are larger: its block is in two pieces.
#[cfg(tollgate_loom)]
type Slots<S> = alloc::boxed::Box<[Word<S>]>;

// === impl Block ===

impl<H: Zeroed, S: Pod> Block<H, S> {
    /// Bytes of the whole block.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self)
    }

    /// Makes every word zero again.
    pub(crate) fn clear(&mut self) {
        self.head = CachePadded::default();
        for slot in &mut self.slots {
            *slot = Word::default();
        }
    }
}

#[cfg(not(tollgate_loom))]
mod real {
    use alloc::alloc::{Layout, alloc_zeroed, dealloc};
    use core::{
        marker::PhantomData,
        ops::{Deref, DerefMut},
        ptr::{self, NonNull},
    };

    use bytemuck::Pod;
    use crossbeam_utils::CachePadded;

    use super::{Block, Zeroed};
    use crate::{ConfigError, sync::Word};

    /// What an allocator aligns to unasked.
    const GIVEN: usize = 2 * size_of::<usize>();

    /// A block on the heap.
    pub(crate) struct Owned<H: Zeroed, S: Pod> {
        block: NonNull<Block<H, S>>,
        memory: NonNull<u8>,
        owns: PhantomData<Block<H, S>>,
    }

    // SAFETY: contract of `Send`: it owns its block alone, whose words may be sent.
    unsafe impl<H: Zeroed + Send, S: Pod + Send> Send for Owned<H, S> {}
    // SAFETY: contract of `Sync`: sharing it shares its block, whose words may be shared.
    unsafe impl<H: Zeroed + Sync, S: Pod + Send> Sync for Owned<H, S> {}

    // === impl Owned ===

    impl<H: Zeroed, S: Pod> Owned<H, S> {
        /// A new block with `len` slots (at least 1), all zeros.
        ///
        /// # Errors
        /// [`ConfigError::Memory`] if there is not that much.
        pub(crate) fn zeroed(len: usize) -> Result<Self, ConfigError> {
            let bytes = size_of::<CachePadded<H>>().saturating_add(len.saturating_mul(size_of::<Word<S>>()));
            let layout = Self::layout(len).ok_or(ConfigError::Memory { bytes })?;
            // SAFETY: contract of `alloc_zeroed`: the layout is not empty, its head is padded to a cache line.
            let memory =
                NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(ConfigError::Memory { bytes })?;
            let skip = memory.align_offset(align_of::<CachePadded<H>>());
            // SAFETY: I2: the layout has room for an alignment less what is given, so for any skip.
            let start = unsafe { memory.add(skip) };
            // The length of a slice at the same address becomes the length of the block's tail.
            let block = ptr::slice_from_raw_parts_mut(start.as_ptr().cast::<Word<S>>(), len);
            // SAFETY: contract of `new_unchecked`: it points into an allocation.
            let block = unsafe { NonNull::new_unchecked(block as *mut Block<H, S>) };
            Ok(Self { block, memory, owns: PhantomData })
        }

        /// What is asked of the allocator for a block with `len` slots.
        fn layout(len: usize) -> Option<Layout> {
            let slots = Layout::array::<Word<S>>(len).ok()?;
            let (block, _) = Layout::new::<CachePadded<H>>().extend(slots).ok()?;
            let block = block.pad_to_align();
            let spare = block.align().saturating_sub(GIVEN);
            Layout::from_size_align(block.size().checked_add(spare)?, GIVEN).ok()
        }
    }

    impl<H: Zeroed, S: Pod> Deref for Owned<H, S> {
        type Target = Block<H, S>;

        #[inline]
        fn deref(&self) -> &Block<H, S> {
            // SAFETY: I1, I2: a block, as long as its owner lives.
            unsafe { self.block.as_ref() }
        }
    }

    impl<H: Zeroed, S: Pod> DerefMut for Owned<H, S> {
        fn deref_mut(&mut self) -> &mut Block<H, S> {
            // SAFETY: I1, I2: a block, which only its owner reaches.
            unsafe { self.block.as_mut() }
        }
    }

    impl<H: Zeroed, S: Pod> Drop for Owned<H, S> {
        fn drop(&mut self) {
            // A block was made with this length, so the layout is one. Words need no drop.
            if let Some(layout) = Self::layout(self.slots.len()) {
                // SAFETY: contract of `dealloc`: taken by `zeroed` with this layout.
                unsafe { dealloc(self.memory.as_ptr(), layout) };
            }
        }
    }
}

#[cfg(tollgate_loom)]
mod modelled {
    use alloc::boxed::Box;
    use core::ops::{Deref, DerefMut};

    use bytemuck::Pod;
    use crossbeam_utils::CachePadded;

    use super::{Block, Zeroed};
    use crate::{ConfigError, sync::Word};

    /// A block of modelled words.
    pub(crate) struct Owned<H: Zeroed, S: Pod>(Box<Block<H, S>>);

    // === impl Owned ===

    impl<H: Zeroed, S: Pod> Owned<H, S> {
        pub(crate) fn zeroed(len: usize) -> Result<Self, ConfigError> {
            let slots = (0..len).map(|_| Word::default()).collect();
            Ok(Self(Box::new(Block { head: CachePadded::default(), slots })))
        }
    }

    impl<H: Zeroed, S: Pod> Deref for Owned<H, S> {
        type Target = Block<H, S>;
        fn deref(&self) -> &Block<H, S> {
            &self.0
        }
    }

    impl<H: Zeroed, S: Pod> DerefMut for Owned<H, S> {
        fn deref_mut(&mut self) -> &mut Block<H, S> {
            &mut self.0
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
        for len in [1, 2, 15, 16, 17, 1_000, 100_000] {
            let mut block = Owned::<Heads, Plain>::zeroed(len).unwrap();
            assert_eq!((&raw const block.head).addr() % align_of::<CachePadded<Heads>>(), 0);
            assert!(
                block.slots.len() == len && block.bytes() >= 128 + 8 * len && block.bytes() < 256 + 8 * len
            );
            assert_eq!(block.head.0.load(Relaxed), Plain(0));
            for slot in &block.slots {
                assert!(slot.compare_exchange(Plain(0), Plain(u64::MAX), Relaxed, Relaxed).is_ok());
            }
            block.clear();
            assert!(block.slots.iter().all(|slot| slot.load(Relaxed) == Plain(0)));
        }
    }

    #[test]
    fn more_memory_than_there_is_gets_an_error() {
        for len in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8 - 2] {
            assert!(matches!(Owned::<Heads, Plain>::zeroed(len), Err(crate::ConfigError::Memory { .. })));
        }
    }
}
