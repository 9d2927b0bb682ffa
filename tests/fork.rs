//! A forked child has its parent's cached time and not the thread that keeps it fresh. Alone in its binary, so that
//! no other test's threads are about when it forks.
#![cfg(all(feature = "std", unix))]

use std::{process, thread, time::Duration};

use tollgate::{Clock, Coarse, CoarseError, CoarseGuard, Nanos, Precise};

const MS: Duration = Duration::from_millis(1);

/// Runs `child` in a forked process and tells whether it returned true in time.
fn holds_in_a_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: contract of fork: the child only runs `child` and leaves; the C library's own locks survive a fork.
    match unsafe { libc::fork() } {
        -1 => panic!("no fork: {}", std::io::Error::last_os_error()),
        0 => {
            // A child that hangs is killed, and so fails.
            // SAFETY: contract of alarm: an integer.
            unsafe { libc::alarm(20) };
            let holds = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
            // SAFETY: contract of _exit: an integer. The parent's exit handlers are not for the child to run.
            unsafe { libc::_exit(if holds { 0 } else { 1 }) }
        }
        pid => {
            let mut status = 0;
            // SAFETY: contract of waitpid: `status` is live.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
        }
    }
}

fn cached(resolution: Duration) -> CoarseGuard {
    let guard = Coarse::start(resolution).unwrap();
    (0..100_000).find(|_| {
        thread::sleep(MS / 10);
        guard.clock().is_cached()
    });
    assert!(guard.clock().is_cached());
    guard
}

/// Time goes on, at the pace of the precise clock.
fn is_precise(clock: Coarse) -> bool {
    (0..100).all(|_| {
        let (before, shown, after) = (Precise::new().now(), clock.now(), Precise::new().now());
        before <= shown && shown <= after && !clock.is_cached()
    })
}

#[test]
fn a_forked_child_reads_the_precise_clock() {
    let parent = process::id();
    let guard = cached(MS);
    let clock = guard.clock();
    let shown = clock.now();

    // The parent's guard is alive in the child too, and then dropped there, which must not wait for the thread.
    let mut copy = Some(guard);
    assert!(holds_in_a_child(|| {
        let forked = process::id() != parent && is_precise(clock) && clock.now() >= shown;
        let refused = Coarse::start(MS).unwrap_err() == CoarseError::Forked;
        drop(copy.take());
        // A child of the child inherits the state.
        let grandchild = holds_in_a_child(|| is_precise(clock) && Coarse::start(MS).is_err());
        forked && refused && grandchild && is_precise(clock) && clock.staleness() < Nanos::from_secs(1)
    }));

    // The parent has noticed nothing.
    assert!(clock.is_cached());
    let before = clock.now();
    thread::sleep(50 * MS);
    assert!(clock.now() > before);

    // While the last guard is being dropped its lock is taken by a thread that the child does not have: the drop
    // waits for the upkeep thread, which sleeps for a second.
    drop(copy);
    let slow = Coarse::start(1_000 * MS).unwrap();
    thread::sleep(50 * MS);
    let dropping = thread::spawn(move || drop(slow));
    thread::sleep(50 * MS);
    assert!(holds_in_a_child(
        || is_precise(clock) && Coarse::start(MS).is_err_and(|e| e == CoarseError::Forked)
    ));
    assert!(!dropping.is_finished());
    dropping.join().unwrap();

    // With no guard alive there is nothing to miss: a child may keep a coarse time of its own.
    assert!(holds_in_a_child(|| {
        let own = cached(MS);
        let before = own.clock().now();
        thread::sleep(50 * MS);
        let fresh = own.clock().now() > before;
        drop(own);
        fresh && is_precise(clock)
    }));
    drop(cached(MS));
}
