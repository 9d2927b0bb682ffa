//! The loops of `bench.c`, in Rust: the same calls on the same limiters, inlined.

use std::{hint::black_box, time::Duration};

use tollgate::{Algorithm, Log, Nanos, Window};

/// Calls `algorithm` once for every `step_ns`; the number admitted.
///
/// # Safety
/// `algorithm` comes from a constructor below.
unsafe fn calls<A: Algorithm>(algorithm: *const A, calls: u64, now_ns: u64, step_ns: u64) -> u64 {
    let (mut now, step) = (Nanos::from_nanos(now_ns), Nanos::from_nanos(step_ns));
    let mut admitted = 0;
    for _ in 0..calls {
        // SAFETY: alive for ever, by this function's contract.
        let algorithm = unsafe { &*black_box(algorithm) };
        admitted += u64::from(algorithm.try_acquire_at(1, black_box(now)));
        now = now + step;
    }
    admitted
}

/// Puts what was built where it stays to the end of the program; null if it was not built.
fn leak<A, E>(built: Result<A, E>) -> *const A {
    built.map_or(std::ptr::null(), |algorithm| Box::leak(Box::new(algorithm)))
}

/// A log for costs up to `max_cost`.
#[unsafe(no_mangle)]
pub extern "C" fn inlined_log(limit: u64, window_ns: u64, max_cost: u64) -> *const Log {
    leak(Log::builder(limit, Duration::from_nanos(window_ns)).max_cost(max_cost).build())
}

/// A counter for costs up to `max_cost`.
#[unsafe(no_mangle)]
pub extern "C" fn inlined_window(limit: u64, window_ns: u64, max_cost: u64) -> *const Window {
    leak(Window::builder(limit, Duration::from_nanos(window_ns)).max_cost(max_cost).build())
}

/// Calls a log.
///
/// # Safety
/// `log` comes from [`inlined_log`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inlined_log_calls(log: *const Log, count: u64, now_ns: u64, step_ns: u64) -> u64 {
    // SAFETY: by this function's contract.
    unsafe { calls(log, count, now_ns, step_ns) }
}

/// Calls a counter.
///
/// # Safety
/// `window` comes from [`inlined_window`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inlined_window_calls(
    window: *const Window,
    count: u64,
    now_ns: u64,
    step_ns: u64,
) -> u64 {
    // SAFETY: by this function's contract.
    unsafe { calls(window, count, now_ns, step_ns) }
}
