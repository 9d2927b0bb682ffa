//! Limiters by key, in a region.

use core::ffi::{c_int, c_void};

use super::{region::Shm, tollgate_shm_t};
use crate::{
    hot::{tell, time, tollgate_decision_t},
    keyed::bytes_of,
    life::place,
    status::{code, tollgate_status::*},
};

/// Takes `n` permits of a key now, all or nothing; 0 are always had. A key is `len` bytes at `key`. False if it was refused, and for
/// whatever is wrong: NULL, a key longer than `TOLLGATE_KEY_MAX`, a region without keys, and without a clock.
///
/// A key has one of 14 places of its bucket for as long as anything is charged to it. There are twice as many places as keys asked
/// for; a new key whose bucket is full of keys in use shares one more limiter with others like it, or is refused
/// (`TOLLGATE_REFUSE_WHEN_FULL`). A key is known by a keyed hash: two keys in use are taken for one with a probability of 13 in
/// 2^48 for each key.
///
/// Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_try_acquire(
    shm: *mut tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
) -> bool {
    // SAFETY: the contract of this function.
    unsafe { try_acquire(shm, key, len, n, None) }
}

/// The same at `now_ns`, for any `clock`. False for a time not below 2^62 as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_try_acquire_at(
    shm: *mut tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
    now_ns: u64,
) -> bool {
    // SAFETY: the contract of this function.
    unsafe { try_acquire(shm, key, len, n, Some(now_ns)) }
}

/// Takes `n` permits of a key now, all or nothing, and tells what is left, or how long to wait.
///
/// Returns: TOLLGATE_OK, TOLLGATE_REFUSED, TOLLGATE_NEVER; `*out`, which may be NULL, is then written. A key for which there is
/// no room is TOLLGATE_REFUSED with `TOLLGATE_REASON_FULL`, and with a time at which it is worth asking again.
/// Errors, which write nothing: TOLLGATE_E_NULL: `shm` or `key`.   TOLLGATE_E_INVALID: `len`.   TOLLGATE_E_UNSUPPORTED: a region
/// without keys.   TOLLGATE_E_CLOCK: there is no clock.
///
/// Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_check(
    shm: *mut tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(shm, key, len, n, None, true, out) }
}

/// The same at `now_ns`.
///
/// Errors: as `tollgate_shm_keyed_check`, but TOLLGATE_E_INVALID for a time not below 2^62 instead of TOLLGATE_E_CLOCK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_check_at(
    shm: *mut tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
    now_ns: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(shm, key, len, n, Some(now_ns), true, out) }
}

/// Tells what `tollgate_shm_keyed_check` would, with the figures of now, and charges nothing: the key is not made.
///
/// Returns and errors as `tollgate_shm_keyed_check`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_peek(
    shm: *const tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(shm, key, len, n, None, false, out) }
}

/// The same at `now_ns`.
///
/// Returns and errors as `tollgate_shm_keyed_check_at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_peek_at(
    shm: *const tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
    now_ns: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(shm, key, len, n, Some(now_ns), false, out) }
}

/// Tells how many permits are charged to a rule (counted from 0) of a key at `now_ns`. The key is not made; what it took of a
/// shared limiter is not told apart.
///
/// Errors, which write nothing: TOLLGATE_E_NULL: `shm`, `key`, `used`.   TOLLGATE_E_ALIGN: `used`.   TOLLGATE_E_INVALID: a key too
/// long; no such rule; a time not below 2^62.   TOLLGATE_E_UNSUPPORTED: a region without keys.
///
/// Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_usage_at(
    shm: *const tollgate_shm_t,
    key: *const c_void,
    len: usize,
    rule: u32,
    now_ns: u64,
    used: *mut u64,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let shm = unsafe { Shm::of(shm) }?;
        // SAFETY: the contract of this function.
        let key = unsafe { bytes_of(key, len) }?;
        let used = place(used)?;
        let usage = shm.keyed()?.key_usage(key, rule as usize, now_ns).ok_or(TOLLGATE_E_INVALID)?;
        // SAFETY: the contract of this function: writable.
        unsafe { used.write(usage) };
        Ok(())
    })())
}

/// How many keys have a place now, idle ones among them; 0 for NULL, and without keys.
///
/// Cost: a look at every bucket.   Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_len(shm: *const tollgate_shm_t) -> u64 {
    // SAFETY: the contract of this function.
    unsafe { Shm::of(shm) }.map_or(0, |shm| shm.region().keys_now())
}

/// The most keys that there can be: at least twice what was asked for; 0 for NULL, and without keys.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_keyed_capacity(shm: *const tollgate_shm_t) -> u64 {
    // SAFETY: the contract of this function.
    unsafe { Shm::of(shm) }.map_or(0, |shm| shm.region().capacity())
}

/// # Safety
/// `shm` is NULL or alive, `key` as [`bytes_of`] says.
unsafe fn try_acquire(
    shm: *const tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
    passed: Option<u64>,
) -> bool {
    // SAFETY: the contract of this function.
    let Ok(shm) = (unsafe { Shm::of(shm) }) else { return false };
    // SAFETY: the contract of this function.
    let Ok(key) = (unsafe { bytes_of(key, len) }) else { return false };
    time(passed, || shm.now()).is_ok_and(|now| shm.region().key_acquires(key, n, now))
}

/// # Safety
/// `shm` is NULL or alive, `key` as [`bytes_of`] says, `out` NULL or writable.
unsafe fn answer(
    shm: *const tollgate_shm_t,
    key: *const c_void,
    len: usize,
    n: u64,
    passed: Option<u64>,
    takes: bool,
    out: *mut tollgate_decision_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let shm = unsafe { Shm::of(shm) }?;
        // SAFETY: the contract of this function.
        let key = unsafe { bytes_of(key, len) }?;
        let region = shm.keyed()?;
        let now = time(passed, || shm.now())?;
        let decision = region.key_decision(key, n, now, takes).ok_or(TOLLGATE_E_UNSUPPORTED)?;
        // SAFETY: the contract of this function.
        unsafe { tell(decision, out) }
    })())
}
