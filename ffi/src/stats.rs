//! Statistics, for limiters that ask for them.
//!
//! # Memory order
//! | id | site          | order   | pairs with | because                        |
//! |----|---------------|---------|------------|--------------------------------|
//! | O1 | every access  | Relaxed | none       | counts, which order nothing    |

use core::{ffi::c_int, sync::atomic::Ordering::Relaxed};

use tollgate::Nanos;

use crate::{
    handle::{Handle, tollgate_limiter_t},
    life::place,
    status::{code, tollgate_status::*},
};

/// The size of `tollgate_stats_t`, for its `struct_size`.
pub const TOLLGATE_STATS_SIZE: u32 = 64;

/// What was counted since the limiter was made. Each figure only grows; the three are not of one moment.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tollgate_stats_t {
    /// `TOLLGATE_STATS_SIZE`, set by the caller.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Calls admitted; those of cost 0 are not counted.
    pub allowed: u64,
    /// Calls refused; errors are not counted.
    pub refused: u64,
    /// Calls whose time was older than that of an earlier one.
    pub clock_regressions: u64,
    /// 0.
    pub reserved: [u64; 4],
}

const _: () = assert!(size_of::<tollgate_stats_t>() == TOLLGATE_STATS_SIZE as usize);

// The words of the statistics.
const ALLOWED: usize = 0;
const REFUSED: usize = 1;
const REGRESSIONS: usize = 2;
const NEWEST: usize = 3;

/// Tells what was counted. Set `out->struct_size` before.
///
/// Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
/// `tollgate_reset`, and of `out`.   TOLLGATE_E_SIZE: `struct_size`.   TOLLGATE_E_UNSUPPORTED: the limiter was made
/// without `TOLLGATE_STATS`.
///
/// Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_stats(
    limiter: *const tollgate_limiter_t,
    out: *mut tollgate_stats_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let handle = unsafe { Handle::checked(limiter) }?;
        let out = place(out)?;
        // SAFETY: the contract of this function: begins with a size.
        if unsafe { out.cast::<u32>().read() } != TOLLGATE_STATS_SIZE {
            return Err(TOLLGATE_E_SIZE);
        }
        if !handle.counts() {
            return Err(TOLLGATE_E_UNSUPPORTED);
        }
        let count = |index| handle.stats_word(index).load(Relaxed); // O1
        let stats = tollgate_stats_t {
            struct_size: TOLLGATE_STATS_SIZE,
            flags: 0,
            allowed: count(ALLOWED),
            refused: count(REFUSED),
            clock_regressions: count(REGRESSIONS),
            reserved: [0; 4],
        };
        // SAFETY: the contract of this function.
        unsafe { out.write(stats) };
        Ok(())
    })())
}

/// Counts a call, if the limiter counts.
pub(crate) fn count(handle: Handle, cost: u64, now: Nanos, admitted: bool) {
    if !handle.counts() || cost == 0 || !now.in_range() {
        return;
    }
    let add = |index| handle.stats_word(index).fetch_add(1, Relaxed); // O1
    add(if admitted { ALLOWED } else { REFUSED });
    let newest = handle.stats_word(NEWEST);
    if newest.fetch_max(now.as_nanos(), Relaxed) > now.as_nanos() {
        add(REGRESSIONS); // O1
    }
}

/// Forgets the newest time, so that one may begin anew.
pub(crate) fn restart(handle: Handle) {
    if handle.counts() {
        handle.stats_word(NEWEST).store(0, Relaxed); // O1
    }
}
