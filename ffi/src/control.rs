//! The calls beside the way: what a limiter is, and how full.

use core::ffi::c_int;

use tollgate::{Nanos, RULES_MAX, Rule, Rules};

use crate::{
    config::{TOLLGATE_CONFIG_SIZE, TOLLGATE_MAX_RULES, tollgate_config_t, tollgate_rule_t},
    handle::{Handle, tollgate_limiter_t},
    life::place,
    stats,
    status::{
        code,
        tollgate_status::{self, *},
    },
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
        unsafe { handle.reset() };
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

/// Replaces the rules of a limiter that was made with `TOLLGATE_LIVE`: all of them, by the `count` rules at `rules`. Permits
/// taken so far stay taken. A call that overlaps this is judged by the old rules or by the new, whole; one that begins later
/// by the new. A limit of 0 refuses every cost above 0 until it is raised again. After a lowering nothing is admitted until
/// the use has fallen below the new limit (with shards: until it has in some shard).
///
/// `TOLLGATE_LOG`: any rules, with limits up to `reserved[1]`. `TOLLGATE_WINDOW`: limits of up to half of what the header names,
/// less for windows that are shorter than the longest; windows that are multiples of its bucket, up to `reserved[1]`.
/// With shards: one rule. `TOLLGATE_FIXED`, `_TWO_WINDOW`: the limit. `TOLLGATE_COMPACT`: the limit, up to `reserved[1]`.
///
/// Errors, which change nothing:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as `tollgate_reset`, and of `rules`.
/// - TOLLGATE_E_INVALID: rules that this limiter can not get; none, or more than `TOLLGATE_MAX_RULES`.
/// - TOLLGATE_E_UNSUPPORTED: the limiter was made without `TOLLGATE_LIVE`, or has a rate.
///
/// Thread-safe; one change at a time: another waits, no other call does.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_set_rules(
    limiter: *mut tollgate_limiter_t,
    rules: *const tollgate_rule_t,
    count: u32,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let handle = unsafe { Handle::checked(limiter) }?;
        let set = |list: &[Rule]| {
            Ok(handle.rewritable().and_then(|it| it.set_rules(list)).ok_or(TOLLGATE_E_UNSUPPORTED)??)
        };
        // SAFETY: the contract of this function.
        unsafe { with_rules(rules, count, set) }
    })())
}

/// Replaces rate and burst of a `TOLLGATE_GCRA` limiter that was made with `TOLLGATE_LIVE`, from `now_ns` on. The permits owed,
/// which were taken and have not drained, are kept, and drain at the new rate. A limit of 0 refuses every cost above 0 until it
/// is raised again; what is owed drains on as before. A call that overlaps this is judged by the old or by the new, whole; one that begins later by the new.
///
/// Errors, which change nothing:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as `tollgate_reset`, and of `rate`.
/// - TOLLGATE_E_INVALID: a rate above the largest (`reserved[1]` of its configuration); a burst or a window that no such limiter
///   has; a time not below 2^62.
/// - TOLLGATE_E_UNSUPPORTED: another algorithm, or made without `TOLLGATE_LIVE`.
///
/// Thread-safe; one change at a time: another waits, no other call does.   Allocates: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_set_rate_at(
    limiter: *mut tollgate_limiter_t,
    rate: *const tollgate_rule_t,
    burst: u64,
    now_ns: u64,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let handle = unsafe { Handle::checked(limiter) }?;
        let rate = place(rate.cast_mut())?;
        // SAFETY: the contract of this function.
        let tollgate_rule_t { limit, window_ns } = unsafe { rate.read() };
        let (rate, now) = (Rule { limit, window: Nanos::from_nanos(window_ns) }, Nanos::from_nanos(now_ns));
        Ok(handle
            .rewritable()
            .and_then(|it| it.set_rate(rate, burst, now))
            .ok_or(TOLLGATE_E_UNSUPPORTED)??)
    })())
}

/// Tells the present rules: writes them to `rules`, which has room for `TOLLGATE_MAX_RULES`, and their number to `*count`.
///
/// Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
/// `tollgate_reset`, and of `rules` and `count`.
///
/// Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_get_rules(
    limiter: *const tollgate_limiter_t,
    rules: *mut tollgate_rule_t,
    count: *mut u32,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let handle = unsafe { Handle::checked(limiter) }?;
        // SAFETY: the contract of this function.
        unsafe { tell_rules(rules, count, || handle.ask(|it| it.rules()).ok_or(TOLLGATE_E_CORRUPT)) }
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

/// Hands out the rules that a caller passed.
///
/// # Safety
/// `rules` is NULL, or so many can be read there if there may be so many.
pub(crate) unsafe fn with_rules<R>(
    rules: *const tollgate_rule_t,
    count: u32,
    use_them: impl FnOnce(&[Rule]) -> Result<R, tollgate_status>,
) -> Result<R, tollgate_status> {
    let rules = place(rules.cast_mut())?;
    let mut list = [Rule { limit: 0, window: Nanos::ZERO }; RULES_MAX];
    let list = list.get_mut(..count as usize).ok_or(TOLLGATE_E_INVALID)?;
    for (at, rule) in list.iter_mut().enumerate() {
        // SAFETY: the contract of this function: so many rules.
        let asked = unsafe { rules.add(at) };
        // SAFETY: as above.
        let tollgate_rule_t { limit, window_ns } = unsafe { asked.read() };
        *rule = Rule { limit, window: Nanos::from_nanos(window_ns) };
    }
    use_them(list)
}

/// Writes rules to where a caller says.
///
/// # Safety
/// `rules` is NULL or has room for `TOLLGATE_MAX_RULES`, `count` is NULL or writable.
pub(crate) unsafe fn tell_rules(
    rules: *mut tollgate_rule_t,
    count: *mut u32,
    find: impl FnOnce() -> Result<Rules, tollgate_status>,
) -> Result<(), tollgate_status> {
    let (rules, count) = (place(rules)?, place(count)?);
    let found = find()?;
    for (at, rule) in found.iter().take(TOLLGATE_MAX_RULES).enumerate() {
        // SAFETY: the contract of this function: room for so many.
        let out = unsafe { rules.add(at) };
        // SAFETY: as above.
        unsafe { out.write(tollgate_rule_t { limit: rule.limit, window_ns: rule.window.as_nanos() }) };
    }
    // SAFETY: the contract of this function: writable.
    unsafe { count.write(found.len() as u32) };
    Ok(())
}
