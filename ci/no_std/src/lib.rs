//! Uses the core without std. `ci/no_std.sh` then looks at what the library still asks the system for.
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use core::{
    alloc::{GlobalAlloc, Layout},
    ffi::c_void,
    time::Duration,
};

use tollgate::{Algorithm, Log, Nanos, Window};

unsafe extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

struct Libc;

// SAFETY: contract of `GlobalAlloc`: C's allocator, with sizes rounded up to the alignment as it asks.
unsafe impl GlobalAlloc for Libc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: contract of `aligned_alloc`: a power of two and a multiple of it.
        unsafe { aligned_alloc(layout.align(), layout.pad_to_align().size()).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: contract of `free`: it came from `alloc`.
        unsafe { free(memory.cast()) }
    }
}

#[global_allocator]
static MEMORY: Libc = Libc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Admits one permit on a log or a counter made for the purpose.
#[unsafe(no_mangle)]
pub extern "C" fn probe(limit: u64, log: bool, now_ns: u64) -> bool {
    let second = Duration::from_secs(1);
    let limiter: Option<Box<dyn Algorithm>> = if log {
        Log::builder(limit, second).build().ok().map(|it| Box::new(it) as _)
    } else {
        Window::builder(limit, second).build().ok().map(|it| Box::new(it) as _)
    };
    limiter.is_some_and(|it| it.check_at(1, Nanos::from_nanos(now_ns)).is_ok())
}
