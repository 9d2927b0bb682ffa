//! Memory from C's allocator. Without std, this is also where Rust's would come from, and a panic goes to `abort`,
//! so that the name `abort` in the finished library tells whether a panic is left in it.

use core::ptr::NonNull;

use crate::status::tollgate_status::{self, TOLLGATE_E_NOMEM};

/// What `calloc` aligns to.
const GIVEN: usize = 2 * size_of::<usize>();

/// `bytes` bytes of zeros aligned to `align`, and how far into the piece from `calloc` they begin.
///
/// `calloc` is asked for an alignment that it gives anyway: asked for more, an allocator writes the zeros of a large
/// piece itself, and touches all of it.
pub(crate) fn zeroed(bytes: usize, align: usize) -> Result<(NonNull<u8>, usize), tollgate_status> {
    let spare = align.saturating_sub(GIVEN);
    let total = bytes.checked_add(spare).ok_or(TOLLGATE_E_NOMEM)?;
    // SAFETY: contract of `calloc`: none.
    let piece = unsafe { libc::calloc(1, total) };
    let piece = NonNull::new(piece.cast::<u8>()).ok_or(TOLLGATE_E_NOMEM)?;
    let skip = piece.addr().get().wrapping_neg() & (align - 1);
    // SAFETY: contract of `add`: the piece has room for an alignment less what is given, so for any skip.
    Ok((unsafe { piece.add(skip) }, skip))
}

/// Gives back what [`zeroed`] gave.
///
/// # Safety
/// It gave this, with this skip, and nobody uses it any more.
pub(crate) unsafe fn free(memory: NonNull<u8>, skip: usize) {
    // SAFETY: contract of `sub`: as far as `zeroed` went.
    let piece = unsafe { memory.sub(skip) };
    // SAFETY: contract of `free`: it came from `calloc`.
    unsafe { libc::free(piece.as_ptr().cast()) }
}

#[cfg(not(feature = "std"))]
mod without_std {
    use core::{
        alloc::{GlobalAlloc, Layout},
        panic::PanicInfo,
        ptr,
    };

    struct Libc;

    #[global_allocator]
    static MEMORY: Libc = Libc;

    // SAFETY: contract of `GlobalAlloc`: C's allocator, told the alignment.
    unsafe impl GlobalAlloc for Libc {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let (mut memory, align) = (ptr::null_mut(), layout.align().max(size_of::<usize>()));
            // SAFETY: contract of `posix_memalign`: a power of two that is a multiple of a pointer's size.
            let status = unsafe { libc::posix_memalign(&mut memory, align, layout.size()) };
            if status == 0 { memory.cast() } else { ptr::null_mut() }
        }

        unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
            // SAFETY: contract of `free`: it came from `alloc`.
            unsafe { libc::free(memory.cast()) }
        }
    }

    #[panic_handler]
    fn panic(_: &PanicInfo<'_>) -> ! {
        // SAFETY: contract of `abort`: none.
        unsafe { libc::abort() }
    }
}
