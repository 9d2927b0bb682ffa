//! The coarse clock against everything that can happen to a cached time that a thread keeps.
//!
//! quanta's upkeep is one per process, so these tests take turns.
#![cfg(feature = "std")]

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tollgate::{Clock, Coarse, CoarseError, CoarseGuard, Limiter, Log, Nanos, Precise};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Longer than any of these tests waits on an idle machine; a hang becomes a failure.
const PATIENCE: Duration = Duration::from_secs(30);

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(MS / 10);
    }
}

/// A guard whose cached time is in use.
fn cached(resolution: Duration) -> CoarseGuard {
    let guard = Coarse::start(resolution).unwrap();
    wait_for("the cached time is used", || guard.clock().is_cached());
    guard
}

/// Whether time stands still between two readings, as only a cached one does.
fn stands_still(clock: Coarse) -> bool {
    (0..1_000).any(|_| clock.now() == clock.now() && clock.now() == clock.now())
}

#[test]
fn without_a_guard_it_is_the_precise_clock() {
    let _turn = turn();
    let (coarse, precise) = (Coarse::new(), Precise::new());
    assert!(!coarse.is_cached());
    for _ in 0..1_000 {
        let (before, shown, after) = (precise.now(), coarse.now(), precise.now());
        assert!(before <= shown && shown <= after, "{before:?} {shown:?} {after:?}");
    }
}

#[test]
fn with_a_guard_it_is_a_cached_time_that_is_kept_fresh() {
    let _turn = turn();
    let guard = cached(10 * MS);
    let clock = guard.clock();
    assert!(stands_still(clock));
    let (shown, started) = (clock.now(), Instant::now());
    wait_for("the time goes on", || clock.now() >= shown + Nanos::from_millis(50));
    assert!(started.elapsed() >= 40 * MS, "the cached time ran ahead");
    assert!(clock.now() <= Precise::new().now());
}

#[test]
fn a_dropped_guard_leaves_the_precise_clock_and_no_thread() {
    let _turn = turn();
    let guard = cached(MS);
    let clock = guard.clock();
    let shown = clock.now();
    drop(guard);
    assert!(!clock.is_cached());
    assert!(clock.now() >= shown);
    assert!(!stands_still(clock));
    // The thread has ended: quanta lets others start theirs at once.
    drop(quanta::Upkeep::new(MS).start().unwrap());
}

#[test]
fn guards_share_the_thread_of_the_first() {
    let _turn = turn();
    let first = cached(5 * MS);
    let (same, coarser) = (Coarse::start(5 * MS).unwrap(), Coarse::start(SECOND).unwrap());
    let finer = Coarse::start(4 * MS).unwrap_err();
    assert_eq!(finer, CoarseError::Running { got: 4 * MS, running: 5 * MS });
    assert_eq!(finer.to_string(), "resolution 4ms is finer than 5ms, which is in use");
    drop((first, same));
    assert!(coarser.clock().is_cached());
    let shown = coarser.clock().now();
    wait_for("the time goes on", || coarser.clock().now() > shown);
    drop(coarser);
    assert!(!Coarse::new().is_cached());
    // Nobody is left to set the resolution.
    drop(cached(4 * MS));
}

#[test]
fn f055_the_largest_duration_as_for_ever() {
    let _turn = turn();
    for got in [Duration::MAX, SECOND + Duration::from_nanos(1), Duration::from_nanos(999), Duration::ZERO] {
        let error = Coarse::start(got).unwrap_err();
        assert_eq!(error, CoarseError::Resolution { got, min: MS / 1_000, max: SECOND });
        assert!(error.to_string().ends_with("is not between 1µs and 1s"), "{error}");
    }
    for resolution in [MS / 1_000, SECOND] {
        drop(Coarse::start(resolution).unwrap());
    }
}

#[test]
fn a_foreign_upkeep_is_reported_and_not_trusted() {
    let _turn = turn();
    // Were its cached time used, time would stand still for half a second.
    let clock = Coarse::new();
    let foreign = quanta::Upkeep::new(SECOND / 2).start().unwrap();
    assert_eq!(Coarse::start(MS).unwrap_err(), CoarseError::Foreign);
    assert!(CoarseError::Foreign.to_string().contains("quanta's upkeep"));
    assert!(!clock.is_cached());
    assert!(!stands_still(clock));
    let (before, shown, after) = (Precise::new().now(), clock.now(), Precise::new().now());
    assert!(before <= shown && shown <= after);
    // The other way round, ours keeps its interval, and the other code is told.
    drop(foreign);
    let ours = cached(MS);
    assert!(quanta::Upkeep::new(SECOND).start().is_err());
    let shown = ours.clock().now();
    wait_for("the time goes on", || ours.clock().now() > shown);
}

#[test]
fn a_limiter_on_it_keeps_its_limit() {
    let _turn = turn();
    let guard = cached(MS);
    let limiter = Limiter::new(Log::builder(100, 50 * MS).build().unwrap(), guard.clock());
    let (start, mut admitted) = (Precise::new().now(), Vec::new());
    while Precise::new().now() - start < Nanos::from_millis(300) {
        if let Ok(quota) = limiter.check() {
            admitted.push(quota.at);
        }
    }
    assert!(admitted.len() >= 200, "time stood still: {}", admitted.len());
    let window = Nanos::from_millis(50);
    assert!(admitted.windows(101).all(|w| w[100] - w[0] >= window), "more than 100 in a window");
}

#[test]
fn time_never_runs_back_while_guards_come_and_go() {
    let _turn = turn();
    let (newest, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let clock = Coarse::new();
    let (mut switches, start) = (0, Instant::now());
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    // Whatever any caller has been shown before this call began.
                    let before = newest.load(Ordering::SeqCst);
                    let now = clock.now().as_nanos();
                    assert!(now >= before, "back by {} ns", before - now);
                    newest.fetch_max(now, Ordering::SeqCst);
                }
            });
        }
        while start.elapsed() < SECOND {
            // Sometimes the guard goes before its cached time was used.
            let guard = if switches % 4 == 0 { Coarse::start(MS).unwrap() } else { cached(MS / 5) };
            thread::sleep(MS);
            drop(guard);
            thread::sleep(MS / 10);
            switches += 1;
        }
        done.store(true, Ordering::Release);
    });
    assert!(switches > 10, "{switches} switches");
}

/// Stops the upkeep thread alone, as a scheduler may, by a signal whose handler does not return.
#[cfg(target_os = "linux")]
#[test]
fn a_starved_upkeep_thread_shows_as_staleness() {
    static STOPPED: AtomicBool = AtomicBool::new(false);
    static GO_ON: AtomicBool = AtomicBool::new(false);

    extern "C" fn stop(_: libc::c_int) {
        STOPPED.store(true, Ordering::SeqCst);
        while !GO_ON.load(Ordering::SeqCst) {
            // SAFETY: contract of poll: no descriptors, so no array; it may be called in a signal handler.
            unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
        }
    }

    /// The thread by that name. quanta names it before it runs.
    fn upkeep_thread() -> Option<libc::pid_t> {
        std::fs::read_dir("/proc/self/task").unwrap().flatten().find_map(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            (name.trim() == "quanta-upkeep").then(|| task.file_name().to_str()?.parse().ok()).flatten()
        })
    }

    let _turn = turn();
    let guard = cached(MS);
    let clock = guard.clock();
    let thread = upkeep_thread().unwrap();

    // SAFETY: contract of sigaction: a zeroed action with a handler that only calls what a handler may.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = stop as extern "C" fn(libc::c_int) as usize;
    // SAFETY: contract of sigaction: both pointers are null or live.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) }, 0);
    // SAFETY: contract of tgkill: three integers; a thread that is gone is an error.
    assert_eq!(unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, libc::SIGUSR1) }, 0);
    wait_for("the thread stops", || STOPPED.load(Ordering::SeqCst));

    let shown = clock.now();
    thread::sleep(100 * MS);
    assert_eq!(clock.now(), shown, "the thread is stopped, so the time is");
    let stale = clock.staleness();
    assert!(stale >= Nanos::from_millis(100), "{stale:?} after 100 ms");

    GO_ON.store(true, Ordering::SeqCst);
    wait_for("the time catches up", || clock.staleness() < Nanos::from_millis(50));
    assert!(clock.now() > shown + Nanos::from_millis(50));
}
