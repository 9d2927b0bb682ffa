//! Clocks: what a limiter reads when the caller does not pass the time.

use core::ffi::c_int;

use tollgate::Nanos;
#[cfg(feature = "std")]
use tollgate::{Clock, Coarse, CoarseError, CoarseGuard, Precise};

use crate::{
    handle::Handle,
    status::{
        code,
        tollgate_status::{self, *},
    },
};

/// The processor's counter, scaled. Of one process: for `tollgate_create` alone. Its first limiter in a process measures
/// the counter, for at most 200 ms.
pub const TOLLGATE_CLOCK_PRECISE: u32 = 1;
/// A time that a thread keeps fresh while `tollgate_coarse_start` asks for it, else as `_PRECISE`. Of one process: for
/// `tollgate_create` alone.
pub const TOLLGATE_CLOCK_COARSE: u32 = 2;
/// The system's `CLOCK_MONOTONIC`: one clock for all processes.
pub const TOLLGATE_CLOCK_MONOTONIC: u32 = 3;
/// The system's `CLOCK_BOOTTIME`, which goes on while the machine sleeps: one clock for all processes. Linux.
pub const TOLLGATE_CLOCK_BOOTTIME: u32 = 4;
/// None: callers pass the time, to the functions that end in `_at`.
pub const TOLLGATE_CLOCK_CALLER: u32 = 5;

/// Keeps the coarse clock fresh.
pub struct tollgate_coarse_t {
    _private: [u8; 0],
}

/// The time of a clock now, or `UINT64_MAX`, a time at which nothing is admitted, if there is none. Times of
/// `TOLLGATE_CLOCK_PRECISE` and `_COARSE` compare within one process, those of others in all.
///
/// Thread-safe, async-signal-safe (`_PRECISE` and `_COARSE` after the first use).   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_now_ns(clock: u32) -> u64 {
    read(clock).map_or(u64::MAX, Nanos::as_nanos)
}

/// The time of a clock now.
pub(crate) fn read(clock: u32) -> Option<Nanos> {
    match clock {
        #[cfg(feature = "std")]
        TOLLGATE_CLOCK_PRECISE => Some(Precise::new().now()),
        #[cfg(feature = "std")]
        TOLLGATE_CLOCK_COARSE => Some(Coarse::new().now()),
        _ => system(clock),
    }
}

/// Starts to keep the coarse clock fresh, every `resolution_ns` (1,000 to 1,000,000,000): until all of `*out` are
/// stopped. The first starts a thread, later ones share it; a call may take a millisecond.
///
/// Errors:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of `out`.
/// - TOLLGATE_E_INVALID: the resolution.
/// - TOLLGATE_E_EXISTS: runs already, at a coarser resolution.
/// - TOLLGATE_E_CLOCK: in a child forked while it ran.
/// - TOLLGATE_E_SYS: no thread.   TOLLGATE_E_NOMEM.
/// - TOLLGATE_E_UNSUPPORTED: the library was built without clocks.
///
/// Thread-safe.   Allocates.   Blocks: takes a lock.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_coarse_start(
    resolution_ns: u64,
    out: *mut *mut tollgate_coarse_t,
) -> c_int {
    code(crate::life::place(out).and_then(|out| {
        let guard = start(resolution_ns)?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(guard) };
        Ok(())
    }))
}

/// Ends what `tollgate_coarse_start` began; the last one waits for the thread to end, about one resolution. NULL is
/// allowed. Exactly once for each start.
///
/// Thread-safe.   Frees.   Blocks: takes a lock.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_coarse_stop(coarse: *mut tollgate_coarse_t) {
    #[cfg(feature = "std")]
    if let Some(memory) = core::ptr::NonNull::new(coarse) {
        // SAFETY: the contract of this function: `start` wrote it there.
        drop(unsafe { memory.cast::<CoarseGuard>().read() });
        // SAFETY: contract of `free`: from `zeroed`, at its begin.
        unsafe { crate::memory::free(memory.cast(), 0) };
    }
    #[cfg(not(feature = "std"))]
    let _ = coarse;
}

#[cfg(feature = "std")]
fn start(resolution_ns: u64) -> Result<*mut tollgate_coarse_t, tollgate_status> {
    let guard =
        Coarse::start(core::time::Duration::from_nanos(resolution_ns)).map_err(|error| match error {
            CoarseError::Resolution { .. } => TOLLGATE_E_INVALID,
            CoarseError::Running { .. } | CoarseError::Foreign => TOLLGATE_E_EXISTS,
            CoarseError::Forked => TOLLGATE_E_CLOCK,
            _ => TOLLGATE_E_SYS,
        })?;
    // Ordinary alignment, so nothing is skipped.
    let (memory, _) = crate::memory::zeroed(size_of::<CoarseGuard>(), align_of::<CoarseGuard>())?;
    // SAFETY: contract of `write`: as large, and aligned.
    unsafe { memory.cast::<CoarseGuard>().write(guard) };
    Ok(memory.as_ptr().cast())
}

#[cfg(not(feature = "std"))]
fn start(_resolution_ns: u64) -> Result<*mut tollgate_coarse_t, tollgate_status> {
    Err(TOLLGATE_E_UNSUPPORTED)
}

/// Whether a limiter may have this clock; `shared` if it is not bound to one process.
pub(crate) fn serves(clock: u32, shared: bool) -> Result<(), tollgate_status> {
    let here = match clock {
        TOLLGATE_CLOCK_PRECISE | TOLLGATE_CLOCK_COARSE if shared => return Err(TOLLGATE_E_CLOCK),
        TOLLGATE_CLOCK_PRECISE | TOLLGATE_CLOCK_COARSE | TOLLGATE_CLOCK_MONOTONIC => cfg!(feature = "std"),
        TOLLGATE_CLOCK_BOOTTIME => {
            cfg!(all(feature = "std", any(target_os = "linux", target_os = "android")))
        }
        TOLLGATE_CLOCK_CALLER => true,
        _ => return Err(TOLLGATE_E_INVALID),
    };
    if here { Ok(()) } else { Err(TOLLGATE_E_UNSUPPORTED) }
}

/// Prepares the clock of this process that a limiter of our own will read.
pub(crate) fn prepare(handle: Handle, clock: u32) {
    #[cfg(feature = "std")]
    match clock {
        // SAFETY: contract of `local_clock`: kept there for `now`.
        TOLLGATE_CLOCK_PRECISE => unsafe { handle.local_clock().write(Precise::new()) },
        // SAFETY: contract of `local_clock`: kept there for `now`.
        TOLLGATE_CLOCK_COARSE => unsafe { handle.local_clock().write(Coarse::new()) },
        _ => {}
    }
    #[cfg(not(feature = "std"))]
    let _ = (handle, clock);
}

/// The time that a limiter reads. `None`: it has no clock.
#[inline(always)]
pub(crate) fn now(handle: Handle) -> Option<Nanos> {
    #[cfg(feature = "std")]
    if handle.clock() == TOLLGATE_CLOCK_PRECISE {
        // SAFETY: contract of `local_clock`: `prepare` has put it there.
        return Some(unsafe { handle.local_clock::<Precise>().as_ref() }.now());
    }
    other_now(handle)
}

/// The same of any other clock, in a function of its own, which needs a stack.
#[inline(never)]
fn other_now(handle: Handle) -> Option<Nanos> {
    #[cfg(feature = "std")]
    if handle.clock() == TOLLGATE_CLOCK_COARSE {
        // SAFETY: contract of `local_clock`: `prepare` has put it there.
        return Some(unsafe { handle.local_clock::<Coarse>().as_ref() }.now());
    }
    system(handle.clock())
}

/// A clock of the system.
#[cfg(feature = "std")]
#[inline]
fn system(clock: u32) -> Option<Nanos> {
    let id = match clock {
        TOLLGATE_CLOCK_MONOTONIC => libc::CLOCK_MONOTONIC,
        #[cfg(any(target_os = "linux", target_os = "android"))]
        TOLLGATE_CLOCK_BOOTTIME => libc::CLOCK_BOOTTIME,
        _ => return None,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: contract of `clock_gettime`: writable.
    if unsafe { libc::clock_gettime(id, &mut time) } != 0 {
        return None;
    }
    let (secs, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    Some(Nanos::from_nanos(secs.wrapping_mul(1_000_000_000).wrapping_add(nanos)))
}

#[cfg(not(feature = "std"))]
fn system(_clock: u32) -> Option<Nanos> {
    None
}
