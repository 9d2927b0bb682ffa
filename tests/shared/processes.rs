//! Several processes.

use std::time::Duration;

use tollgate::{
    Algorithm, Limiter, Log, Manual, Nanos,
    shared::{Region, SharedError},
};

use crate::memory::Shared;

/// Runs `child` in a forked process, and returns what it did, below 256.
fn forked(child: impl FnOnce() -> u64) -> libc::pid_t {
    // SAFETY: contract of `fork`: the child only runs `child`, which takes no lock, and leaves.
    match unsafe { libc::fork() } {
        -1 => panic!("no fork: {}", std::io::Error::last_os_error()),
        // SAFETY: contract of `_exit`: an integer.
        0 => unsafe { libc::_exit(child() as i32) },
        pid => pid,
    }
}

fn answer(pid: libc::pid_t) -> u64 {
    let mut status = 0;
    // SAFETY: contract of `waitpid`: `status` is live.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "it ended by itself: {status:#x}");
    libc::WEXITSTATUS(status) as u64
}

const NOW: Nanos = Nanos::from_secs(7);

/// Four processes, forty calls: each with a limiter of its own, then all with one.
#[test]
fn f067_several_processes_one_limit() {
    let log = Log::builder(5, Duration::from_secs(60));
    let memory = Shared::new(Region::builder(log.config().unwrap()).limiters(1).keys(10).bytes().unwrap());
    let builder = Region::builder(log.config().unwrap()).limiters(1).keys(10);
    // SAFETY: contract of `place`: used by regions alone.
    let attach = || unsafe { builder.place(memory.bytes()) }.unwrap();
    let all = |calls: &dyn Fn() -> u64| -> u64 {
        (0..4).map(|_| forked(calls)).collect::<Vec<_>>().into_iter().map(answer).sum()
    };
    let ten = |try_acquire: &dyn Fn() -> bool| (0..10).filter(|_| try_acquire()).count() as u64;

    let own = || {
        let limiter = Limiter::new(log.build().unwrap(), Manual::new());
        ten(&|| limiter.try_acquire())
    };
    assert_eq!(all(&own), 20, "per process");
    assert_eq!(all(&|| ten(&|| attach().limiter(0).unwrap().try_acquire_at(1, NOW))), 5);
    assert_eq!(all(&|| ten(&|| attach().keys().unwrap().try_acquire_at(b"user", 1, NOW))), 5);
}

/// Memory that the machine does not have: an error. The system would give it, page by page, and end processes to make room; so here
/// it is asked by one that it would end first.
#[test]
fn more_than_all_memory_is_refused() {
    let log = Log::builder(5, Duration::from_secs(60)).config().unwrap();
    let terabytes = Region::builder(log).keys(1 << 34);
    assert!(terabytes.bytes().unwrap() > 1 << 42);
    let child = forked(|| {
        let most = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        // SAFETY: contract of `setrlimit`: a limit to be read.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const most) }, 0);
        let is_refused = |error| error == SharedError::System { call: "memfd_create", errno: libc::ENOMEM };
        terabytes.memfd("terabytes").is_err_and(is_refused).into()
    });
    assert_eq!(answer(child), 1);
}

/// A child goes on with the region of its parent; a limiter that is not shared is a copy.
#[test]
fn f067_a_fork_after_three_calls() {
    let log = Log::builder(5, Duration::from_secs(60));
    let (region, _file) = Region::builder(log.config().unwrap()).limiters(1).keys(10).memfd("fork").unwrap();
    let own = log.build().unwrap();
    let (shared, keys) = (region.limiter(0).unwrap(), region.keys().unwrap());
    for _ in 0..3 {
        assert!(own.try_acquire_at(1, NOW));
        assert!(shared.try_acquire_at(1, NOW));
        assert!(keys.try_acquire_at(b"user", 1, NOW));
    }
    let five = |try_acquire: &dyn Fn() -> bool| (0..5).filter(|_| try_acquire()).count() as u64;
    let calls = || {
        let taken = [
            five(&|| own.try_acquire_at(1, NOW)),
            five(&|| shared.try_acquire_at(1, NOW)),
            five(&|| keys.try_acquire_at(b"user", 1, NOW)),
        ];
        taken[0] << 4 | taken[1] << 2 | taken[2]
    };
    assert_eq!(answer(forked(calls)), 2 << 4 | 2 << 2 | 2);
    assert_eq!(calls(), 2 << 4, "the parent's own is as it was");
}
