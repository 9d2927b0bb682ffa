//! The calls on the way of every request.

use core::ffi::c_int;

use tollgate::{Decision, Nanos, Reason};

use crate::{
    clock,
    handle::{Handle, tollgate_limiter_t},
    stats,
    status::{
        code,
        tollgate_status::{self, *},
    },
};

/// Admitted.
pub const TOLLGATE_REASON_NONE: u32 = 0;
/// Too few permits are free now.
pub const TOLLGATE_REASON_LIMIT: u32 = 1;
/// The cost is above the limit (the burst).
pub const TOLLGATE_REASON_ABOVE_LIMIT: u32 = 2;
/// The cost is above the largest cost.
pub const TOLLGATE_REASON_ABOVE_MAX_COST: u32 = 3;

/// There is no room for another key.
pub const TOLLGATE_REASON_FULL: u32 = 4;

/// The answer to one call. All spans count from `now_ns`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tollgate_decision_t {
    /// 1 if admitted, else 0.
    pub allowed: u32,
    /// `TOLLGATE_REASON_NONE` and its like.
    pub reason: u32,
    /// The rule that these figures speak of, counted from 0: the one that refused, else that with the least left.
    pub rule: u32,
    /// 0.
    pub reserved: u32,
    /// The limit of that rule (the burst).
    pub limit: u64,
    /// Permits that could still be had at once: the least over all rules.
    pub remaining: u64,
    /// How long until the same call would pass if nobody else came: 0 if it was admitted, `UINT64_MAX` for never.
    pub retry_after_ns: u64,
    /// How long until `remaining` grows if nobody else comes; 0 when it can not grow.
    pub next_after_ns: u64,
    /// How long until nothing is charged to any rule if nobody else comes.
    pub reset_after_ns: u64,
    /// The time judged: the caller's, or the newest recorded one if that is later.
    pub now_ns: u64,
}

const _: () = assert!(size_of::<tollgate_decision_t>() == 64);

/// How a call asks.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    Check,
    Peek,
}

/// Takes one permit now. False if it was refused, if the limiter has no clock, and for NULL.
///
/// Effect: at one instant inside the call; a refusal changes nothing.   Ordering: none for your own data.
/// Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_try_acquire(limiter: *mut tollgate_limiter_t) -> bool {
    acquire_now(limiter, 1)
}

/// Takes `n` permits now, all or nothing; 0 are always had.
///
/// As `tollgate_try_acquire`; false for an `n` that can never be had, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_try_acquire_n(limiter: *mut tollgate_limiter_t, n: u64) -> bool {
    acquire_now(limiter, n)
}

/// Takes `n` permits at `now_ns`, all or nothing; 0 are always had.
///
/// The time is in nanoseconds since any zero, below 2^62; above it is out of range and false. An older time than the
/// newest recorded one is judged at that one, as exactly as the algorithm knows it. For any `clock` of the limiter.
///
/// As `tollgate_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_try_acquire_at(
    limiter: *mut tollgate_limiter_t,
    n: u64,
    now_ns: u64,
) -> bool {
    Handle::of(limiter).is_some_and(|handle| handle.try_acquire(n, Nanos::from_nanos(now_ns)))
}

/// Takes `n` permits now, all or nothing, and tells what is left, or how long to wait.
///
/// RETURNS 0 WHEN ADMITTED: write `if (tollgate_check(l, n, &d) != TOLLGATE_OK) refuse();`, which refuses on errors
/// as well.
///
/// Returns: TOLLGATE_OK, TOLLGATE_REFUSED, TOLLGATE_NEVER; `*out`, which may be NULL, is then written.
/// Errors, which write nothing: TOLLGATE_E_NULL: `limiter`.   TOLLGATE_E_CLOCK: the limiter has no clock.
///
/// Effect: at one instant inside the call; a refusal changes nothing. The figures are exact if nobody else calls, else
/// true of an instant inside the call, after the effect.   Ordering: none for your own data.
/// Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_check(
    limiter: *mut tollgate_limiter_t,
    n: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(limiter, n, None, Ask::Check, out) }
}

/// The same at `now_ns`.
///
/// Errors: TOLLGATE_E_NULL: `limiter`.   TOLLGATE_E_INVALID: the time is not below 2^62.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_check_at(
    limiter: *mut tollgate_limiter_t,
    n: u64,
    now_ns: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(limiter, n, Some(now_ns), Ask::Check, out) }
}

/// Tells what `tollgate_check` would, with the figures of now, and changes nothing: the limiter may be in memory that
/// can only be read.
///
/// Returns and errors as `tollgate_check`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_peek(
    limiter: *const tollgate_limiter_t,
    n: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(limiter, n, None, Ask::Peek, out) }
}

/// The same at `now_ns`.
///
/// Returns and errors as `tollgate_check_at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_peek_at(
    limiter: *const tollgate_limiter_t,
    n: u64,
    now_ns: u64,
    out: *mut tollgate_decision_t,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { answer(limiter, n, Some(now_ns), Ask::Peek, out) }
}

/// Takes a place for `n` permits in the queue of a `TOLLGATE_PACING` limiter, and tells how long to wait for its
/// start: 0 if at once. The place is taken; whoever does not want to wait so long asks `tollgate_peek` before.
///
/// Returns: TOLLGATE_OK; TOLLGATE_REFUSED if the queue is full, TOLLGATE_NEVER if it is never long enough, both with
/// the wait after which the same call would get a place, `UINT64_MAX` for never.
/// Errors, which write nothing: TOLLGATE_E_NULL: `limiter` or `wait_ns`.   TOLLGATE_E_CLOCK: the limiter has no clock.
/// TOLLGATE_E_UNSUPPORTED: the limiter is no queue.
///
/// Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_reserve(
    limiter: *mut tollgate_limiter_t,
    n: u64,
    wait_ns: *mut u64,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { reserve(limiter, n, None, wait_ns) }
}

/// The same at `now_ns`.
///
/// Errors: as `tollgate_reserve`, but TOLLGATE_E_INVALID for a time not below 2^62 instead of TOLLGATE_E_CLOCK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_reserve_at(
    limiter: *mut tollgate_limiter_t,
    n: u64,
    now_ns: u64,
    wait_ns: *mut u64,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { reserve(limiter, n, Some(now_ns), wait_ns) }
}

#[inline(always)]
fn acquire_now(limiter: *mut tollgate_limiter_t, n: u64) -> bool {
    let Some(handle) = Handle::of(limiter) else { return false };
    let Some(now) = clock::now(handle) else { return false };
    handle.try_acquire(n, now)
}

/// The time to judge a call at: the caller's, else the clock's.
pub(crate) fn time(
    passed: Option<u64>,
    clock: impl FnOnce() -> Option<Nanos>,
) -> Result<Nanos, tollgate_status> {
    match passed.map(Nanos::from_nanos) {
        Some(now) if now.in_range() => Ok(now),
        Some(_) => Err(TOLLGATE_E_INVALID),
        None => clock().ok_or(TOLLGATE_E_CLOCK),
    }
}

/// # Safety
/// `limiter` is NULL or a limiter, `out` NULL or writable.
unsafe fn answer(
    limiter: *const tollgate_limiter_t,
    n: u64,
    passed: Option<u64>,
    ask: Ask,
    out: *mut tollgate_decision_t,
) -> c_int {
    code((|| {
        let handle = Handle::of(limiter).ok_or(TOLLGATE_E_NULL)?;
        let now = time(passed, || clock::now(handle))?;
        let lost = stats::lost_before(handle);
        let decision = handle.ask(|it| match ask {
            Ask::Check => it.check_at(n, now),
            Ask::Peek => it.peek_at(n, now),
        });
        let decision = decision.ok_or(TOLLGATE_E_CORRUPT)?;
        if ask == Ask::Check {
            stats::count(handle, n, now, lost, decision.as_ref().err());
        }
        // SAFETY: the contract of this function.
        unsafe { tell(decision, out) }
    })())
}

/// # Safety
/// `limiter` is NULL or a limiter, `wait_ns` NULL or writable.
unsafe fn reserve(limiter: *mut tollgate_limiter_t, n: u64, passed: Option<u64>, wait_ns: *mut u64) -> c_int {
    code((|| {
        let handle = Handle::of(limiter).filter(|_| !wait_ns.is_null()).ok_or(TOLLGATE_E_NULL)?;
        let queue = handle.pacing().ok_or(TOLLGATE_E_UNSUPPORTED)?;
        let now = time(passed, || clock::now(handle))?;
        let lost = stats::lost_before(handle);
        let place = queue.reserve_at(n, now);
        stats::count(handle, n, now, lost, place.as_ref().err());
        let (wait, outcome) = match place {
            Ok(place) => (Some(place.wait()), Ok(())),
            Err(denied) => (denied.retry_after(), outcome(&Err(denied))),
        };
        // SAFETY: the contract of this function.
        unsafe { wait_ns.write(wait.map_or(u64::MAX, Nanos::as_nanos)) };
        outcome
    })())
}

/// Tells a decision: the figures to whoever asked for them, and what it comes to.
///
/// # Safety
/// `out` is NULL or writable.
pub(crate) unsafe fn tell(decision: Decision, out: *mut tollgate_decision_t) -> Result<(), tollgate_status> {
    if !out.is_null() {
        // SAFETY: the contract of this function.
        unsafe { out.write(decision.into()) };
    }
    outcome(&decision)
}

/// What a decision comes to, in a word.
fn outcome(decision: &Decision) -> Result<(), tollgate_status> {
    match decision {
        Ok(_) => Ok(()),
        Err(denied) => Err(match denied.reason {
            Reason::Limit { .. } | Reason::Full { .. } => TOLLGATE_REFUSED,
            _ => TOLLGATE_NEVER,
        }),
    }
}

// === impl tollgate_decision_t ===

impl From<Decision> for tollgate_decision_t {
    fn from(decision: Decision) -> Self {
        let (reason, retry_after, quota) = match decision {
            Ok(quota) => (TOLLGATE_REASON_NONE, Some(Nanos::ZERO), quota),
            Err(denied) => {
                let reason = match denied.reason {
                    Reason::Limit { .. } => TOLLGATE_REASON_LIMIT,
                    Reason::MaxCost { .. } => TOLLGATE_REASON_ABOVE_MAX_COST,
                    Reason::Full { .. } => TOLLGATE_REASON_FULL,
                    _ => TOLLGATE_REASON_ABOVE_LIMIT,
                };
                (reason, denied.retry_after(), denied.quota)
            }
        };
        Self {
            allowed: decision.is_ok().into(),
            reason,
            rule: quota.rule as u32,
            reserved: 0,
            limit: quota.limit,
            remaining: quota.remaining,
            retry_after_ns: retry_after.map_or(u64::MAX, Nanos::as_nanos),
            next_after_ns: quota.next_after.as_nanos(),
            reset_after_ns: quota.reset_after.as_nanos(),
            now_ns: quota.at.as_nanos(),
        }
    }
}
