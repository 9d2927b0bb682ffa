//! A process under ptrace: stepped, stopped, killed.

use std::{
    ptr::null_mut,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// What a victim tells its tracer: a word in memory that both have.
#[derive(Clone, Copy)]
pub(crate) struct Mailbox(&'static AtomicU64);

/// A child that was stopped before its work began.
pub(crate) struct Victim {
    pid: libc::pid_t,
    mailbox: Mailbox,
}

/// Zeroed memory that children share, for as long as the process lives.
pub(crate) fn shared_words(len: usize) -> &'static [AtomicU64] {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: contract of `mmap`: new memory, wherever there is room.
    let memory = unsafe { libc::mmap(null_mut(), 8 * len, access, kind, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: never unmapped, aligned, of any bits.
    unsafe { std::slice::from_raw_parts(memory.cast(), len) }
}

/// Runs `child` in a forked process.
pub(crate) fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: contract of `fork`: there are no other threads.
    match unsafe { libc::fork() } {
        -1 => panic!("no fork: {}", std::io::Error::last_os_error()),
        0 => {
            child();
            // SAFETY: contract of `_exit`: an integer.
            unsafe { libc::_exit(0) }
        }
        pid => pid,
    }
}

pub(crate) fn wait(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: contract of `waitpid`: `status` is live.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

pub(crate) fn kill(pid: libc::pid_t) {
    // SAFETY: contract of `kill`: integers; a child of ours that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    while !libc::WIFSIGNALED(wait(pid)) {}
}

fn ptrace(request: libc::c_uint, pid: libc::pid_t) {
    // SAFETY: contract of `ptrace`: these requests take nothing else.
    let done = unsafe { libc::ptrace(request, pid, null_mut::<u8>(), null_mut::<u8>()) };
    assert_ne!(done, -1, "ptrace: {}", std::io::Error::last_os_error());
}

// === impl Mailbox ===

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self(&shared_words(1)[0])
    }

    fn answer(self) -> Option<u64> {
        self.0.load(Acquire).checked_sub(1)
    }
}

// === impl Victim ===

impl Victim {
    /// A child that stands before the first instruction of `work`. Its answer is below 2^64 - 1.
    pub(crate) fn new(mailbox: Mailbox, work: impl FnOnce() -> u64) -> Self {
        mailbox.0.store(0, Relaxed);
        let pid = fork(|| {
            ptrace(libc::PTRACE_TRACEME, 0);
            // SAFETY: contract of `raise`: an integer.
            assert_eq!(unsafe { libc::raise(libc::SIGSTOP) }, 0);
            mailbox.0.store(work() + 1, Release);
        });
        assert!(libc::WIFSTOPPED(wait(pid)));
        Self { pid, mailbox }
    }

    /// Lets it do one instruction; whether its work is still to be done.
    pub(crate) fn step(&self) -> bool {
        self.go(libc::PTRACE_SINGLESTEP)
    }

    /// Lets it come to the next entry to the system, or exit from there.
    pub(crate) fn to_system(&self) -> bool {
        self.go(libc::PTRACE_SYSCALL)
    }

    fn go(&self, how: libc::c_uint) -> bool {
        ptrace(how, self.pid);
        let status = wait(self.pid);
        assert!(libc::WIFSTOPPED(status), "the victim ended: {status:#x}");
        let signal = libc::WSTOPSIG(status);
        assert_eq!(signal, libc::SIGTRAP, "signal {signal}");
        self.mailbox.answer().is_none()
    }

    /// Lets it do so many instructions; whether its work is still to be done.
    pub(crate) fn steps(&self, steps: u64) -> bool {
        (0..steps).all(|_| self.step())
    }

    /// Lets it finish, and tells its answer.
    pub(crate) fn finish(self) -> u64 {
        ptrace(libc::PTRACE_DETACH, self.pid);
        let status = wait(self.pid);
        let ended = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        assert!(ended, "the victim ended: {status:#x}");
        self.mailbox.answer().expect("its work is done")
    }

    pub(crate) fn kill(self) {
        kill(self.pid);
    }
}
