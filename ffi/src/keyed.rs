//! Limiters by key.

use core::ffi::{c_int, c_void};

use crate::{
    config::tollgate_config_t,
    hot::{tell, time, tollgate_decision_t},
    life::place,
    status::{
        code,
        tollgate_status::{self, *},
    },
};

#[cfg(not(feature = "heap"))]
#[path = "keyed/nowhere.rs"]
mod table;
#[cfg(feature = "heap")]
mod table;

use table::{Asked, Table};

/// The size of `tollgate_keyed_config_t`, for its `struct_size`.
pub const TOLLGATE_KEYED_CONFIG_SIZE: u32 = 72;
/// The size of `tollgate_keyed_stats_t`, for its `struct_size`.
pub const TOLLGATE_KEYED_STATS_SIZE: u32 = 80;
/// The most classes.
pub const TOLLGATE_MAX_CLASSES: u32 = 256;
/// The longest key, in bytes.
pub const TOLLGATE_KEY_MAX: usize = 65535;
/// Bytes that are kept of a key, for its life. A longer one is kept as its first 28 bytes and a digest of 128 bits of all of
/// it under the secret: two such keys are taken for one with a probability of 2^-128.
pub const TOLLGATE_KEY_KEPT: usize = 44;

/// Refuse a new key for which there is no room. Without it such keys share one more limiter of their class: strangers in a
/// flood keep each other out, and nobody else. (A key that gets a place of its own later has its whole quota there.)
pub const TOLLGATE_REFUSE_WHEN_FULL: u32 = 16;

/// Limiters by key. Each key has a history of its own; all keys of a class have the same limits.
///
/// Memory is taken by `tollgate_keyed_create` and does not grow: a call allocates nothing, whatever keys come. A key takes
/// its place with its first admission, and leaves it when a later call, of whatever key, finds that nothing is charged to it
/// any more. Only such keys leave, one at most in a call: no key comes back with a fresh quota before its time. There is no
/// thread, and no sweep.
///
/// TAKES A LOCK, one of many: that of the keys that fall together by a hash under the secret, for the time of a look-up. So
/// it is thread-safe, and neither async-signal-safe nor lock-free; in a forked child, which has a copy, a key may block for
/// ever if another thread of the parent was inside. Processes do not share it. What may run at once: everything but
/// `tollgate_keyed_destroy`.
pub struct tollgate_keyed_t {
    _private: [u8; 0],
}

/// A class of keys.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tollgate_class_t {
    /// What each key is allowed: `TOLLGATE_LOG`, `_WINDOW`, `_FIXED`, `_TWO_WINDOW` or `_GCRA`, with `clock`, `shards` and
    /// `flags` 0 (but for `TOLLGATE_TEXTBOOK_COVERAGE`). NULL: no limit, and nothing is kept. Read by `tollgate_keyed_create`
    /// alone.
    pub limit: *const tollgate_config_t,
    /// How many keys there is room for, 1 at least; without a limit 0.
    pub keys: u64,
}

/// What limiters by key are to be. Begin with zeros and `struct_size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tollgate_keyed_config_t {
    /// `TOLLGATE_KEYED_CONFIG_SIZE`.
    pub struct_size: u32,
    /// `TOLLGATE_CLOCK_PRECISE` and its like; there is no default.
    pub clock: u32,
    /// A sum of `TOLLGATE_STATS`, `TOLLGATE_REFUSE_WHEN_FULL`.
    pub flags: u32,
    /// How many classes there are at `classes`: 1 to `TOLLGATE_MAX_CLASSES`.
    pub class_count: u32,
    /// The classes. A call names one by its number, from 0. A key that is asked for in two classes has a history in each.
    pub classes: *const tollgate_class_t,
    /// What keys are hashed with: strangers must not know it. Both 0: drawn from the system (not in a library built without
    /// clocks, which has no source: TOLLGATE_E_INVALID).
    pub secret: [u64; 2],
    /// 0.
    pub reserved: [u64; 4],
}

/// A key that is busy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tollgate_busy_key_t {
    /// Permits charged to the first rule.
    pub used: u64,
    /// The key's length.
    pub len: u32,
    /// Its class.
    pub class_index: u32,
    /// Its bytes, up to `TOLLGATE_KEY_KEPT`; of a longer key the first 28. Behind them zeros.
    pub key: [u8; TOLLGATE_KEY_KEPT],
    /// 0.
    pub reserved: u32,
}

/// What there is, and what was counted. Set `struct_size` before.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tollgate_keyed_stats_t {
    /// `TOLLGATE_KEYED_STATS_SIZE`, set by the caller.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Keys that have a place now, those that are idle but have not left yet among them.
    pub keys: u64,
    /// The most that `keys` can be: at least what was asked for.
    pub capacity: u64,
    /// Bytes that were taken for keys and histories.
    pub bytes: u64,
    /// Keys that have left because they were idle.
    pub evictions: u64,
    /// Calls admitted, with `TOLLGATE_STATS`, else 0; those of cost 0 are not counted.
    pub allowed: u64,
    /// Calls refused, with `TOLLGATE_STATS`, else 0; errors are not counted.
    pub refused: u64,
    /// 0.
    pub reserved: [u64; 3],
}

const _: () = assert!(size_of::<tollgate_busy_key_t>() == 64);
const _: () = assert!(size_of::<tollgate_keyed_stats_t>() == TOLLGATE_KEYED_STATS_SIZE as usize);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<tollgate_keyed_config_t>() == TOLLGATE_KEYED_CONFIG_SIZE as usize);

/// Makes limiters by key, and puts them in `*out`.
///
/// Errors, which leave `*out` alone:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of `config`, `classes`, a class's `limit`, `out`.
/// - TOLLGATE_E_SIZE: `struct_size`, of a class's `limit` too.
/// - TOLLGATE_E_INVALID: anything else in the configuration.
/// - TOLLGATE_E_UNSUPPORTED: an algorithm that keys can not have; a library that was built without.
/// - TOLLGATE_E_NOMEM: for the tables; where there is no memory for a small piece the process ends.
///
/// Thread-safe.   Allocates.   Blocks: as `tollgate_create`.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_create(
    config: *const tollgate_keyed_config_t,
    out: *mut *mut tollgate_keyed_t,
) -> c_int {
    code((|| {
        let config = place(config.cast_mut())?;
        // SAFETY: the contract of this function: begins with a size.
        if unsafe { config.cast::<u32>().read() } != TOLLGATE_KEYED_CONFIG_SIZE {
            return Err(TOLLGATE_E_SIZE);
        }
        let out = place(out)?;
        // SAFETY: the contract of this function.
        let config = unsafe { config.read() };
        // SAFETY: the contract of this function: so many classes.
        let made = unsafe { Table::create(&config) }?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(made) };
        Ok(())
    })())
}

/// Ends limiters by key. NULL is allowed.
///
/// Needs exclusive access: no other call may run or follow.   Frees.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_destroy(keyed: *mut tollgate_keyed_t) {
    // SAFETY: the contract of this function.
    unsafe { Table::destroy(keyed) }
}

/// Takes `n` permits of a key now, all or nothing; 0 are always had. `key` are `len` bytes, of any values; the empty key is
/// one as well. False if it was refused, for NULL (of `key`, too), without such a class, for a key longer than
/// `TOLLGATE_KEY_MAX`, and without a clock.
///
/// Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_try_acquire(
    keyed: *mut tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
) -> bool {
    // SAFETY: the contract of this function.
    unsafe { try_acquire(keyed, class_index, key, len, n, None) }
}

/// The same at `now_ns`, for any `clock`. False for a time not below 2^62 as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_try_acquire_at(
    keyed: *mut tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
    now_ns: u64,
) -> bool {
    // SAFETY: the contract of this function.
    unsafe { try_acquire(keyed, class_index, key, len, n, Some(now_ns)) }
}

/// Takes `n` permits of a key now, all or nothing, and tells what is left, or how long to wait.
///
/// Returns: TOLLGATE_OK, TOLLGATE_REFUSED, TOLLGATE_NEVER; `*out`, which may be NULL, is then written. A key for which there is
/// no room is TOLLGATE_REFUSED with `TOLLGATE_REASON_FULL`, and with a time at which it is worth asking again.
/// Errors, which write nothing: TOLLGATE_E_NULL: `keyed` or `key`.   TOLLGATE_E_INVALID: the class, or `len`.
/// TOLLGATE_E_CLOCK: there is no clock.
///
/// Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_check(
    keyed: *mut tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(keyed, class_index, key, len, n, None, true, out) }
}

/// The same at `now_ns`.
///
/// Errors: as `tollgate_keyed_check`, but TOLLGATE_E_INVALID for a time not below 2^62 instead of TOLLGATE_E_CLOCK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_check_at(
    keyed: *mut tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
    now_ns: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(keyed, class_index, key, len, n, Some(now_ns), true, out) }
}

/// Tells what `tollgate_keyed_check` would, with the figures of now, and changes nothing: the key is not made.
///
/// Returns and errors as `tollgate_keyed_check`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_peek(
    keyed: *const tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(keyed, class_index, key, len, n, None, false, out) }
}

/// The same at `now_ns`.
///
/// Returns and errors as `tollgate_keyed_check_at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_peek_at(
    keyed: *const tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
    now_ns: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(keyed, class_index, key, len, n, Some(now_ns), false, out) }
}

/// Tells how many permits are charged to a rule (counted from 0) of a key at `now_ns`. The key is not made; what it took of a
/// shared limiter is not told apart.
///
/// Errors, which write nothing: TOLLGATE_E_NULL: `keyed`, `key`, `used`.   TOLLGATE_E_ALIGN: `used`.   TOLLGATE_E_INVALID: no
/// such class, or a key too long; no such rule, or none in a class without limits; a time not below 2^62.
///
/// Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_usage_at(
    keyed: *const tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    rule: u32,
    now_ns: u64,
    used: *mut u64,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let table = unsafe { Table::of(keyed) }?;
        // SAFETY: the contract of this function.
        let key = unsafe { key_of(table, class_index, key, len) }?;
        let used = place(used)?;
        let usage = table.usage(&key, rule as usize, now_ns).ok_or(TOLLGATE_E_INVALID)?;
        // SAFETY: the contract of this function: writable.
        unsafe { used.write(usage) };
        Ok(())
    })())
}

/// Forgives a key of a class: forgets its history. Whether it had one; false for whatever is wrong. To forgive all keys that have
/// used too much, take them from `tollgate_keyed_busiest_at`: no call here walks over keys with a callback.
///
/// Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_remove(
    keyed: *mut tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
) -> bool {
    // SAFETY: the contract of this function.
    let Ok(table) = (unsafe { Table::of(keyed) }) else { return false };
    // SAFETY: the contract of this function.
    unsafe { key_of(table, class_index, key, len) }.is_ok_and(|key| table.remove(&key))
}

/// How many keys have a place now; 0 for NULL.
///
/// Thread-safe.   Takes every lock, one after the other.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_len(keyed: *const tollgate_keyed_t) -> u64 {
    // SAFETY: the contract of this function.
    unsafe { Table::of(keyed) }.map_or(0, Table::keys)
}

/// Tells the keys with the most permits charged to their first rule at `now_ns`, the busiest first: at most `room` of them,
/// written to `out`, and their number to `*found`. Each key is as at some moment of its own.
///
/// Errors, which write nothing: TOLLGATE_E_NULL: `keyed`, `out`, `found`.   TOLLGATE_E_ALIGN: `out`, `found`.
/// TOLLGATE_E_INVALID: a time not below 2^62.
///
/// Cost: a look at every key: for dashboards.   Thread-safe.   Takes every lock, one after the other.   Allocates.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_busiest_at(
    keyed: *const tollgate_keyed_t,
    now_ns: u64,
    out: *mut tollgate_busy_key_t,
    room: usize,
    found: *mut usize,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let table = unsafe { Table::of(keyed) }?;
        let (out, found) = (place(out)?, place(found)?);
        let mut count = 0;
        table.busiest(room, now_ns, &mut |key| {
            // SAFETY: the contract of this function: no more than there is room for.
            let at = unsafe { out.add(count) };
            // SAFETY: as above.
            unsafe { at.write(key) };
            count += 1;
        })?;
        // SAFETY: the contract of this function: writable.
        unsafe { found.write(count) };
        Ok(())
    })())
}

/// Tells what there is, and what was counted. Set `out->struct_size` before.
///
/// Errors, which write nothing: TOLLGATE_E_NULL: `keyed`, `out`.   TOLLGATE_E_ALIGN: `out`.   TOLLGATE_E_SIZE: `struct_size`.
///
/// Thread-safe.   Takes every lock, one after the other.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_keyed_stats(
    keyed: *const tollgate_keyed_t,
    out: *mut tollgate_keyed_stats_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let table = unsafe { Table::of(keyed) }?;
        let out = place(out)?;
        // SAFETY: the contract of this function: begins with a size.
        if unsafe { out.cast::<u32>().read() } != TOLLGATE_KEYED_STATS_SIZE {
            return Err(TOLLGATE_E_SIZE);
        }
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(table.stats()) };
        Ok(())
    })())
}

/// The key that a caller passed.
///
/// # Safety
/// If `key` is not NULL, and `len` not above the longest, so many bytes can be read there.
unsafe fn key_of(
    table: &Table,
    class_index: u32,
    key: *const c_void,
    len: usize,
) -> Result<Asked, tollgate_status> {
    // SAFETY: the contract of this function.
    let bytes = unsafe { bytes_of(key, len) }?;
    table.key(class_index, bytes).ok_or(TOLLGATE_E_INVALID)
}

/// The bytes of a key.
///
/// # Safety
/// As [`key_of`], for as long as they are used.
pub(crate) unsafe fn bytes_of<'a>(key: *const c_void, len: usize) -> Result<&'a [u8], tollgate_status> {
    if key.is_null() {
        return Err(TOLLGATE_E_NULL);
    }
    if len > TOLLGATE_KEY_MAX {
        return Err(TOLLGATE_E_INVALID);
    }
    // SAFETY: the contract of this function.
    Ok(unsafe { core::slice::from_raw_parts(key.cast::<u8>(), len) })
}

/// # Safety
/// `keyed` is NULL or alive, `key` as [`key_of`] says.
unsafe fn try_acquire(
    keyed: *mut tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
    passed: Option<u64>,
) -> bool {
    // SAFETY: the contract of this function.
    let Ok(table) = (unsafe { Table::of(keyed) }) else { return false };
    // SAFETY: the contract of this function.
    let Ok(key) = (unsafe { key_of(table, class_index, key, len) }) else { return false };
    time(passed, || table.now()).is_ok_and(|now| table.try_acquire(&key, n, now))
}

/// # Safety
/// `keyed` is NULL or alive, `key` as [`key_of`] says, `out` NULL or writable.
#[expect(clippy::too_many_arguments, reason = "those of the calls that it is behind")]
unsafe fn answer(
    keyed: *const tollgate_keyed_t,
    class_index: u32,
    key: *const c_void,
    len: usize,
    n: u64,
    passed: Option<u64>,
    takes: bool,
    out: *mut tollgate_decision_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let table = unsafe { Table::of(keyed) }?;
        // SAFETY: the contract of this function.
        let key = unsafe { key_of(table, class_index, key, len) }?;
        let now = time(passed, || table.now())?;
        let decision = if takes { table.check(&key, n, now) } else { table.peek(&key, n, now) };
        // SAFETY: the contract of this function.
        unsafe { tell(decision, out) }
    })())
}
