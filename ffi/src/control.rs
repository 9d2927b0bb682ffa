//! The calls beside the way: what a limiter is, and how full.

use core::ffi::c_int;

use tollgate::Nanos;

use crate::{
    config::{TOLLGATE_CONFIG_SIZE, tollgate_config_t},
    handle::{Handle, tollgate_limiter_t},
    life::place,
    stats,
    status::{code, tollgate_status::*},
};

/// Forgets every admission: the limiter is as new. Statistics go on.
///
/// Errors: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of `limiter`.   TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: no limiter is there.
///
/// Needs exclusive access: no other call may run meanwhile.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_reset(limiter: *mut tollgate_limiter_t) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let handle = unsafe { Handle::checked(limiter) }?;
        // SAFETY: the contract of this function.
        unsafe { handle.reset() }.ok_or(TOLLGATE_E_CORRUPT)?;
        stats::restart(handle);
        Ok(())
    })())
}

/// Tells how many permits are charged to a rule (counted from 0) at `now_ns`.
///
/// Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
/// `tollgate_reset`, and of `used`.   TOLLGATE_E_INVALID: no such rule, or a time not below 2^62.
///
/// Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_usage_at(
    limiter: *const tollgate_limiter_t,
    rule: u32,
    now_ns: u64,
    used: *mut u64,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let handle = unsafe { Handle::checked(limiter) }?;
        let used = place(used)?;
        let usage = handle.ask(|it| it.usage_at(rule as usize, Nanos::from_nanos(now_ns)));
        let usage = usage.ok_or(TOLLGATE_E_CORRUPT)?.ok_or(TOLLGATE_E_INVALID)?;
        // SAFETY: the contract of this function: writable.
        unsafe { used.write(usage) };
        Ok(())
    })())
}

/// Tells the configuration that the limiter was made with. Set `out->struct_size` before.
///
/// Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
/// `tollgate_reset`, and of `out`.   TOLLGATE_E_SIZE: `struct_size`.
///
/// Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_get_config(
    limiter: *const tollgate_limiter_t,
    out: *mut tollgate_config_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let handle = unsafe { Handle::checked(limiter) }?;
        let out = place(out)?;
        // SAFETY: the contract of this function: begins with a size.
        if unsafe { out.cast::<u32>().read() } != TOLLGATE_CONFIG_SIZE {
            return Err(TOLLGATE_E_SIZE);
        }
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(handle.config()) };
        Ok(())
    })())
}
