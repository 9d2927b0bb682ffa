//! Memory to put regions into.

use std::ptr::{NonNull, null_mut};

/// Zeroed memory that forked children share, between two pages that nobody may touch.
pub(crate) struct Shared {
    start: NonNull<u8>,
    mapped: usize,
    len: usize,
}

const PAGE: usize = 4096;

// SAFETY: the tests share it as regions, or as atomic words.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Of so many bytes, a multiple of 128, which end at the page behind.
    pub(crate) fn new(len: usize) -> Self {
        assert!(len.is_multiple_of(128));
        let mapped = len.next_multiple_of(PAGE) + 2 * PAGE;
        let (none, kind) = (libc::PROT_NONE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: contract of `mmap`: new memory, wherever there is room.
        let memory = unsafe { libc::mmap(null_mut(), mapped, none, kind, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        let start = NonNull::new(memory.cast::<u8>()).expect("not at zero");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: inside of the mapping.
        let inner = unsafe { memory.add(PAGE) };
        // SAFETY: contract of `mprotect`: the mapping's pages but the first and last.
        assert_eq!(unsafe { libc::mprotect(inner, mapped - 2 * PAGE, access) }, 0);
        Self { start, mapped, len }
    }

    pub(crate) fn bytes(&self) -> NonNull<[u8]> {
        // SAFETY: inside of the mapping.
        let first = unsafe { self.start.add(self.mapped - PAGE - self.len) };
        NonNull::slice_from_raw_parts(first, self.len)
    }

    /// The words. Nobody else may write meanwhile but by atomic accesses.
    pub(crate) fn words(&self) -> &[std::sync::atomic::AtomicU64] {
        // SAFETY: so many bytes, aligned, of any bits.
        unsafe { std::slice::from_raw_parts(self.bytes().cast().as_ptr(), self.len / 8) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: contract of `munmap`: mapped by `new`.
        assert_eq!(unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) }, 0);
    }
}
