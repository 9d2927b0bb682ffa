//! The memory of a history: its head words on a cache line of their own, then a ring of slots, in one
//! contiguous allocation without pointers.
//!
//! # Invariants
//! | id | always                                                         | kept by                        |
//! |----|----------------------------------------------------------------|--------------------------------|
//! | I1 | a new block is all zeros, which every head and slot type allows | `Block::zeroed`, bound `Zeroed` |
//! | I2 | a block's layout is that of its length                          | `Block::layout`                |

#[cfg(not(tollgate_loom))]
use alloc::alloc::{Layout, alloc_zeroed};
use alloc::boxed::Box;
#[cfg(not(tollgate_loom))]
use core::ptr;

use bytemuck::Pod;
use crossbeam_utils::CachePadded;

use crate::{ConfigError, sync::Word};

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
type Slots<S> = Box<[Word<S>]>;

// === impl Block ===

impl<H: Zeroed, S: Pod> Block<H, S> {
    /// A new block with `len` slots (at least 1), all zeros.
    ///
    /// # Errors
    /// [`ConfigError::Memory`] if there is not that much.
    #[cfg(not(tollgate_loom))]
    pub(crate) fn zeroed(len: usize) -> Result<Box<Self>, ConfigError> {
        let bytes = size_of::<CachePadded<H>>().saturating_add(len.saturating_mul(size_of::<Word<S>>()));
        let layout = Self::layout(len).ok_or(ConfigError::Memory { bytes })?;
        // SAFETY: contract of `alloc_zeroed`: the layout is not empty, its head is padded to a cache line.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(ConfigError::Memory { bytes });
        }
        // The length of a slice at the same address becomes the length of the block's tail.
        let block = ptr::slice_from_raw_parts_mut(memory.cast::<Word<S>>(), len) as *mut Self;
        // SAFETY: I1, I2: this allocation has the block's layout, and zeros are a block.
        Ok(unsafe { Box::from_raw(block) })
    }

    #[cfg(tollgate_loom)]
    pub(crate) fn zeroed(len: usize) -> Result<Box<Self>, ConfigError> {
        let slots = (0..len).map(|_| Word::default()).collect();
        Ok(Box::new(Self { head: CachePadded::default(), slots }))
    }

    /// The layout of a block with `len` slots.
    #[cfg(not(tollgate_loom))]
    fn layout(len: usize) -> Option<Layout> {
        let slots = Layout::array::<Word<S>>(len).ok()?;
        let (layout, _) = Layout::new::<CachePadded<H>>().extend(slots).ok()?;
        Some(layout.pad_to_align())
    }

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
