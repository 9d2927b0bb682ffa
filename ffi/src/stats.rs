//! Statistics, for limiters that ask for them: a line of cache for each shard, of which a thread counts on one.
//!
//! # Memory order
//! | id | site          | order   | pairs with | because                        |
//! |----|---------------|---------|------------|--------------------------------|
//! | O1 | every access  | Relaxed | none       | counts, which order nothing    |

use core::{ffi::c_int, sync::atomic::Ordering::Relaxed};

use tollgate::{Algorithm, Decision, Denied, Nanos, Reason, contention_retries};

use crate::{
    config::TOLLGATE_MAX_RULES,
    handle::{Handle, tollgate_limiter_t},
    life::place,
    status::{code, tollgate_status::*},
};

/// The size of `tollgate_stats_t`, for its `struct_size`.
pub const TOLLGATE_STATS_SIZE: u32 = 128;

/// What was counted since the limiter was made. Each figure only grows; together they are not of one moment.
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
    /// Calls whose time was older than that of an earlier one (with shards: of one counted on the same line).
    pub clock_regressions: u64,
    /// Permits that the admitted calls took.
    pub permits: u64,
    /// Calls that each rule refused, a cost above its limit among them. What these lack of `refused` was above the largest cost.
    pub refused_by: [u64; TOLLGATE_MAX_RULES],
    /// Tries that calls lost to another caller, and made again: what contention costs. 0 in a library built without std, which has no
    /// way to count them.
    pub contention_retries: u64,
    /// 0.
    pub reserved: [u64; 2],
}

const _: () = assert!(size_of::<tollgate_stats_t>() == TOLLGATE_STATS_SIZE as usize);

// The words of a line.
const ALLOWED: usize = 0;
const REFUSED: usize = 1;
const REGRESSIONS: usize = 2;
const PERMITS: usize = 3;
const REFUSED_BY: usize = 4;
const NEWEST: usize = REFUSED_BY + TOLLGATE_MAX_RULES;
const RETRIES: usize = NEWEST + 1;

const _: () = assert!(8 * (RETRIES + 1) <= crate::handle::ALIGN);

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
        let count = |index| sum(handle, index);
        let stats = tollgate_stats_t {
            struct_size: TOLLGATE_STATS_SIZE,
            flags: 0,
            allowed: count(ALLOWED),
            refused: count(REFUSED),
            clock_regressions: count(REGRESSIONS),
            permits: count(PERMITS),
            refused_by: core::array::from_fn(|rule| count(REFUSED_BY + rule)),
            contention_retries: count(RETRIES),
            reserved: [0; 2],
        };
        // SAFETY: the contract of this function.
        unsafe { out.write(stats) };
        Ok(())
    })())
}

/// What all lines have counted.
#[inline(never)]
fn sum(handle: Handle, index: usize) -> u64 {
    let of = |line| handle.stats_word(line, index).load(Relaxed); // O1
    (0..handle.stats_lines()).fold(0, |sum: u64, line| sum.wrapping_add(of(line)))
}

/// What the calling thread has lost before a call, for whoever counts it afterwards.
pub(crate) fn lost_before(handle: Handle) -> u64 {
    if handle.counts() { contention_retries() } else { 0 }
}

/// Counts a call that was decided, if the limiter counts.
pub(crate) fn count(handle: Handle, cost: u64, now: Nanos, lost_before: u64, denied: Option<&Denied>) {
    if handle.counts() {
        add(handle, cost, now, lost_before, denied.map(refusing));
    }
}

/// Counts a call of which only the outcome is known: the rule that refused is looked for.
pub(crate) fn count_bare(
    handle: Handle,
    it: &dyn Algorithm,
    cost: u64,
    now: Nanos,
    lost_before: u64,
    admitted: bool,
) {
    if !handle.counts() {
        return;
    }
    let refused = if admitted {
        None
    } else {
        Some(match it.peek_at(cost, now) {
            // A permit came free meanwhile: the rule with the least left is as good a guess as any.
            Decision::Ok(quota) => Some(quota.rule),
            Decision::Err(denied) => refusing(&denied),
        })
    };
    add(handle, cost, now, lost_before, refused);
}

/// The rule that refused; none if the cost is above the largest.
fn refusing(denied: &Denied) -> Option<usize> {
    match denied.reason {
        Reason::MaxCost { .. } => None,
        _ => Some(denied.quota.rule),
    }
}

/// Counts a call, and who refused it.
fn add(handle: Handle, cost: u64, now: Nanos, lost_before: u64, refused: Option<Option<usize>>) {
    if cost == 0 || !now.in_range() {
        return;
    }
    let line = line(handle.stats_lines());
    let add = |index, more| handle.stats_word(line, index).fetch_add(more, Relaxed); // O1
    match refused {
        None => {
            add(ALLOWED, 1);
            add(PERMITS, cost);
        }
        Some(rule) => {
            add(REFUSED, 1);
            if let Some(rule) = rule.filter(|&rule| rule < TOLLGATE_MAX_RULES) {
                add(REFUSED_BY + rule, 1);
            }
        }
    }
    let lost = contention_retries().wrapping_sub(lost_before);
    if lost > 0 {
        add(RETRIES, lost);
    }
    let newest = handle.stats_word(line, NEWEST).fetch_max(now.as_nanos(), Relaxed); // O1
    if newest > now.as_nanos() {
        add(REGRESSIONS, 1);
    }
}

/// The line of a thread, which is known by its stack.
pub(crate) fn line(lines: usize) -> usize {
    let here = 0_u8;
    let stack = (&raw const here).addr() as u64 >> 16;
    let spread = stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (spread.wrapping_mul(lines as u64) >> 32) as usize
}

/// Forgets the newest time, so that one may begin anew.
pub(crate) fn restart(handle: Handle) {
    if handle.counts() {
        (0..handle.stats_lines()).for_each(|line| handle.stats_word(line, NEWEST).store(0, Relaxed)); // O1
    }
}
