//! No call allocates, and none asks the system for anything: the allocator counts, and the kernel kills a process that
//! calls it (strict seccomp: read, write, exit and nothing else). Times are passed in: that mode forbids the time-stamp
//! counter as well.
#![cfg(target_os = "linux")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tollgate::{
    Algorithm, Compact, Counted, Fixed, Gcra, Live, Log, Nanos, Pacing, Sampled, TwoWindow, Wheel, Window,
};

/// Counts allocations.
struct Counting;

#[global_allocator]
static MEMORY: Counting = Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: contract of `GlobalAlloc`: the system's allocator does everything.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the contract of this function.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// What a child is killed by that calls the system.
const KILLED: i32 = 9;

/// Runs `calls` in a child that may not call the system, after the same here: allocations made in the child, or the signal
/// that killed it.
fn alone_with(calls: impl Fn()) -> Result<u64, i32> {
    calls();
    // SAFETY: contract of `fork`: the child calls nothing that another thread could hold a lock of.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        // SAFETY: contract of `prctl`: an option and its mode.
        let strict = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) };
        calls();
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        let status = if strict == 0 { made.min(100) } else { 101 };
        // SAFETY: contract of `syscall`: the exit of this thread, the child's only one.
        unsafe { libc::syscall(libc::SYS_exit, status) };
    }
    let mut status = 0;
    // SAFETY: contract of `waitpid`: a child of ours and a word for its status.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child, "waitpid");
    if libc::WIFSIGNALED(status) {
        return Err(libc::WTERMSIG(status));
    }
    assert_ne!(libc::WEXITSTATUS(status), 101, "the kernel has no strict mode");
    Ok(libc::WEXITSTATUS(status) as u64)
}

/// Every kind of call, admitted and refused, over windows that fill up, pass, and are left empty for long.
fn use_up(limiter: &impl Algorithm) {
    let mut now = Nanos::from_secs(1_000);
    for round in 0..6_u64 {
        for _ in 0..40 {
            black_box(limiter.try_acquire_at(1, now));
            now = now + Nanos::from_millis(10);
        }
        black_box((
            limiter.check_at(2, now).is_ok(),
            limiter.peek_at(3, now).is_ok(),
            limiter.usage_at(0, now),
        ));
        now = now + Nanos::from_millis(700 * round);
    }
}

#[test]
fn no_call_allocates_or_asks_the_system() {
    const SECOND: Duration = Duration::from_secs(1);
    macro_rules! quiet {
        ($($name:literal: $limiter:expr),+ $(,)?) => {$(
            let limiter = $limiter.unwrap();
            assert_eq!(alone_with(|| use_up(&limiter)), Ok(0), $name);
        )+};
    }
    quiet! {
        "log": Log::builder(20, SECOND).build(),
        "log of several rules": Log::builder(20, SECOND).rule(5, SECOND / 10).build(),
        "log of single permits": Log::builder(20, SECOND).max_cost(1).build(),
        "counter": Window::builder(20, SECOND).build(),
        "fixed": Fixed::builder(20, SECOND).build(),
        "two-window": TwoWindow::builder(20, SECOND).build(),
        "gcra": Gcra::builder(20, SECOND).build(),
        "pacing queue": Pacing::builder(20, SECOND).build(),
        "compact log": Compact::builder(20, SECOND).build(),
        "sampling log": Sampled::builder(20, SECOND).build(),
        "wheel": Wheel::builder(20, SECOND).build(),
        "sharded counter": Window::builder(20, SECOND).build_sharded(2),
        "sharded log": Log::builder(20, SECOND).max_cost(1).build_sharded(2),
        "live log": Live::new(Log::builder(20, SECOND).build().unwrap()),
        "counted counter": Window::builder(20, SECOND).build().map(Counted::new),
    }
    #[cfg(feature = "keyed")]
    {
        let log = Log::builder(20, SECOND).config().unwrap();
        let keyed = tollgate::Keyed::<u64>::builder(log, 100).build().unwrap();
        let (first, second) = (keyed.of(&1), keyed.of(&2));
        let calls = || [&first, &second].iter().for_each(|of| use_up_layer(*of));
        assert_eq!(alone_with(calls), Ok(0), "keyed");
    }
}

/// The calls that a limiter by key has, some of them.
#[cfg(feature = "keyed")]
fn use_up_layer(layer: &impl tollgate::Layer) {
    let mut now = Nanos::from_secs(1_000);
    for _ in 0..200 {
        black_box(tollgate::Layers::new([layer]).try_acquire_at(1, now));
        now = now + Nanos::from_millis(10);
    }
}

/// Else the test above would see nothing.
#[test]
fn who_allocates_or_asks_is_noticed() {
    // SAFETY: contract of `getppid`: none.
    let ask = || assert!(unsafe { libc::getppid() } >= 0);
    assert_eq!(alone_with(ask), Err(KILLED));
    assert_eq!(alone_with(|| drop(black_box(Box::new(1)))), Ok(1));
}
