//! Many equal blocks in one piece of memory, small ones close together.
//!
//! A ring begins one line behind its head, wherever that lies: so the heads of a few blocks fit one line, and their rings
//! the next.
//!
//! # Invariants
//! | id | always                                                   | kept by                       |
//! |----|----------------------------------------------------------|-------------------------------|
//! | I1 | a new block is all zeros                                  | `Owned::zeroed`               |
//! | I2 | a block lies, aligned to its words, inside the memory taken | `Packed::zeroed`, `Packed::at` |
//! | I3 | blocks do not overlap                                     | `Packing::new`                |

#[cfg(tollgate_loom)]
pub(crate) use modelled::Packed;
#[cfg(not(tollgate_loom))]
pub(crate) use real::Packed;

#[cfg(not(tollgate_loom))]
mod real {
    use bytemuck::Pod;
    use crossbeam_utils::CachePadded;

    use crate::{
        ConfigError,
        block::{At, Owned, Zeroed, bytes},
        sync::Word,
    };

    /// Equal blocks, close together, on the heap.
    pub(crate) struct Packed<H: Zeroed, S: Pod> {
        /// One large block, whose memory they are.
        all: Owned<H, S>,
        packing: Packing,
        count: u64,
        len: u64,
    }

    /// Where packed blocks lie, in bytes.
    #[derive(Clone, Copy)]
    struct Packing {
        /// Blocks that share a line of heads.
        group: u64,
        /// From a block to the next of its group.
        stride: usize,
        /// From a group to the next.
        page: usize,
    }

    // === impl Packing ===

    impl Packing {
        /// For blocks with `len` slots.
        fn new<H: Zeroed, S: Pod>(len: u64) -> Self {
            let line = size_of::<CachePadded<H>>();
            let ring = bytes::<H, S>(len) - line;
            let exact =
                usize::try_from(len).map_or(usize::MAX, |len| len.saturating_mul(size_of::<Word<S>>()));
            // I3: neither a head nor a ring reaches beyond the stride, nor do the strides of a group beyond a line.
            let stride = size_of::<H>().max(exact);
            if stride > line / 2 {
                return Self { group: 1, stride: 0, page: line + ring };
            }
            let group = line / stride;
            Self { group: group as u64, stride, page: if len == 0 { line } else { 2 * line } }
        }

        fn offset(self, index: u64) -> usize {
            (index / self.group) as usize * self.page + (index % self.group) as usize * self.stride
        }
    }

    // === impl Packed ===

    impl<H: Zeroed, S: Pod> Packed<H, S> {
        /// So many new blocks with `len` slots each, all zeros.
        ///
        /// # Errors
        /// [`ConfigError::Memory`] if there is not that much.
        pub(crate) fn zeroed(count: u64, len: u64) -> Result<Self, ConfigError> {
            let packing = Packing::new::<H, S>(len);
            let pages = usize::try_from(count.div_ceil(packing.group).max(1)).unwrap_or(usize::MAX);
            let bytes = pages.saturating_mul(packing.page);
            let slots = bytes.saturating_sub(size_of::<CachePadded<H>>()) / size_of::<Word<S>>();
            Ok(Self { all: Owned::zeroed(slots as u64)?, packing, count, len })
        }

        /// One of the blocks.
        #[inline]
        pub(crate) fn at(&self, index: u64) -> At<'_, H, S> {
            assert!(index < self.count, "there is no such block");
            // SAFETY: I2: below the count, so inside the memory taken.
            let block = unsafe { self.all.block.add(self.packing.offset(index)) };
            // SAFETY: I1, I3: a block, as long as its owner lives.
            unsafe { At::new(block) }
        }

        /// Makes every word of one block zero again.
        pub(crate) fn clear(&mut self, index: u64) {
            // SAFETY: contract of `clear`: it has so many slots, and is borrowed exclusively.
            unsafe { self.at(index).clear(self.len) }
        }

        /// Bytes of all blocks.
        pub(crate) fn bytes(&self) -> usize {
            bytes::<H, S>(self.all.len)
        }
    }
}

#[cfg(tollgate_loom)]
mod modelled {
    use alloc::boxed::Box;

    use bytemuck::Pod;

    use crate::{
        ConfigError,
        block::{At, Owned, Zeroed},
    };

    /// Blocks of modelled words.
    pub(crate) struct Packed<H: Zeroed, S: Pod>(Box<[Owned<H, S>]>);

    // === impl Packed ===

    impl<H: Zeroed, S: Pod> Packed<H, S> {
        pub(crate) fn zeroed(count: u64, len: u64) -> Result<Self, ConfigError> {
            (0..count).map(|_| Owned::zeroed(len)).collect::<Result<_, _>>().map(Self)
        }

        pub(crate) fn at(&self, index: u64) -> At<'_, H, S> {
            self.0[index as usize].at()
        }

        pub(crate) fn clear(&mut self, index: u64) {
            self.0[index as usize].clear();
        }

        pub(crate) fn bytes(&self) -> usize {
            self.0.len() * size_of::<Owned<H, S>>()
        }
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use super::*;
    use crate::sync::{Relaxed, Word, word};

    word! {
        /// A slot.
        Plain
    }

    #[derive(Default)]
    struct Heads(Word<Plain>);

    // SAFETY: contract of `Zeroed`: words alone.
    unsafe impl crate::block::Zeroed for Heads {}

    /// Every word of every block is its own, and clearing one leaves the others.
    #[test]
    fn packed_blocks_do_not_overlap() {
        for len in [0, 1, 2, 5, 7, 8, 9, 16, 17, 40] {
            let count = 50;
            let mut blocks = Packed::<Heads, Plain>::zeroed(count, len).unwrap();
            let slot = |blocks: &Packed<_, Plain>, block, index| {
                // SAFETY: contract of `slot`: below the length.
                unsafe { blocks.at(block).slot(index) }.load(Relaxed)
            };
            for block in 0..count {
                let at = blocks.at(block);
                assert_eq!(at.head().0.load(Relaxed), Plain(0));
                at.head().0.store(Plain(1 + block), Relaxed);
                for index in 0..len {
                    assert_eq!(slot(&blocks, block, index), Plain(0));
                    // SAFETY: below the length.
                    unsafe { at.slot(index) }.store(Plain(100 + block * len + index), Relaxed);
                }
            }
            blocks.clear(3);
            for block in 0..count {
                let (lives, at) = (u64::from(block != 3), blocks.at(block));
                assert_eq!(at.head().0.load(Relaxed), Plain(lives * (1 + block)));
                let values = (0..len).map(|index| slot(&blocks, block, index));
                assert!(values.eq((0..len).map(|index| Plain(lives * (100 + block * len + index)))));
            }
            assert!(blocks.bytes() as u64 <= (8 * len + 128).max(128 * count.div_ceil(16)) * (count + 16));
        }
        let bytes = |len| Packed::<Heads, Plain>::zeroed(1_600, len).unwrap().bytes();
        assert_eq!([0, 1, 5, 8, 9].map(bytes), [12_800, 25_600, 136_704, 204_800, 409_600]);
    }
}
