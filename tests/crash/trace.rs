//! A process under ptrace: stepped, stopped, killed.

use std::{
    cell::Cell,
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
    has_ended: Cell<bool>,
}

/// The instructions of a piece of work, by address, in the order in which they were done.
pub(crate) struct Path(Vec<u64>);

/// Zeroed memory that children share, for as long as the process lives.
pub(crate) fn shared_words(len: usize) -> &'static [AtomicU64] {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: contract of `mmap`: new memory, wherever there is room.
    let memory = unsafe { libc::mmap(null_mut(), 8 * len, access, kind, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: never unmapped, aligned, of any bits.
    unsafe { std::slice::from_raw_parts(memory.cast(), len) }
}

/// Keeps this process and its children to come on one processor, where stepping is several times as fast, or lets them go.
pub(crate) fn pin(is_pinned: bool) {
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: contract of `cpu_set_t`: zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: contract of `sched_getcpu`: none.
    let here = unsafe { libc::sched_getcpu() };
    let here = usize::try_from(here).expect("a processor");
    for processor in 0..libc::CPU_SETSIZE as usize {
        if !is_pinned || processor == here {
            // SAFETY: contract of `CPU_SET`: below the size.
            unsafe { libc::CPU_SET(processor, &mut set) };
        }
    }
    // SAFETY: contract of `sched_setaffinity`: a set of that size.
    assert_eq!(unsafe { libc::sched_setaffinity(0, bytes, &raw const set) }, 0);
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

fn kill(pid: libc::pid_t) {
    // SAFETY: contract of `kill`: integers; a child of ours that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    while !libc::WIFSIGNALED(wait(pid)) {}
}

fn ptrace(request: libc::c_uint, pid: libc::pid_t, at: usize, value: u64) -> u64 {
    // A word that is all ones is an answer, too.
    // SAFETY: contract of `__errno_location`: none.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: contract of `__errno_location`: this thread's own.
    unsafe { errno.write(0) };
    // SAFETY: contract of `ptrace`: these requests take numbers.
    let done = unsafe { libc::ptrace(request, pid, at, value) };
    let error = std::io::Error::last_os_error();
    assert!(done != -1 || error.raw_os_error() == Some(0), "ptrace: {error}");
    done.cast_unsigned()
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

// === impl Path ===

impl Path {
    /// Its length: after so many instructions the work is done.
    pub(crate) fn steps(&self) -> usize {
        self.0.len()
    }
}

// === impl Victim ===

impl Victim {
    /// A child that stands before the first instruction of `work`. Its answer is below 2^64 - 1.
    pub(crate) fn new(mailbox: Mailbox, work: impl FnOnce() -> u64) -> Self {
        mailbox.0.store(0, Relaxed);
        let pid = fork(|| {
            ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            trap();
            mailbox.0.store(work() + 1, Release);
        });
        let victim = Self { pid, mailbox, has_ended: Cell::new(false) };
        victim.wait();
        victim
    }

    /// Lets it do one instruction; whether its work is still to be done.
    pub(crate) fn step(&self) -> bool {
        self.go(libc::PTRACE_SINGLESTEP)
    }

    /// Lets it come to the next entry to the system, or exit from there; whether its work is still to be done.
    pub(crate) fn to_system(&self) -> bool {
        self.go(libc::PTRACE_SYSCALL)
    }

    /// Lets it do all its work, and tells by which instructions.
    pub(crate) fn path(&self) -> Path {
        let mut path = Vec::new();
        loop {
            path.push(self.at());
            if !self.step() {
                return Path(path);
            }
        }
    }

    /// Lets it do the first instructions of a path: by a breakpoint, which is many times as fast as steps. Whether its work is
    /// still to be done.
    pub(crate) fn follow(&self, path: &Path, steps: usize) -> bool {
        let Some(&address) = path.0.get(steps) else { return self.go(libc::PTRACE_CONT) };
        // An instruction that repeats itself is stepped, and struck only when it begins.
        let repeated = path.0[..steps].iter().rev().take_while(|&&at| at == address).count();
        let comes_to = |pair: &&[u64]| pair[0] != address && pair[1] == address;
        let strikes = path.0[..=steps].windows(2).filter(comes_to).count();
        if strikes > 0 {
            self.debug_register(0, address);
            self.debug_register(7, 1);
            if !(0..strikes).all(|_| self.go(libc::PTRACE_CONT)) {
                return false;
            }
            self.debug_register(7, 0);
        }
        assert_eq!(self.at(), address, "another instruction than instruction {steps} of the path");
        (0..repeated).all(|_| self.step())
    }

    /// Lets it finish, and tells its answer.
    pub(crate) fn finish(self) -> u64 {
        if !self.has_ended.get() {
            ptrace(libc::PTRACE_DETACH, self.pid, 0, 0);
            self.wait();
        }
        self.mailbox.answer().expect("its work is done")
    }

    pub(crate) fn kill(self) {
        if !self.has_ended.get() {
            kill(self.pid);
        }
    }

    fn go(&self, how: libc::c_uint) -> bool {
        ptrace(how, self.pid, 0, 0);
        self.wait();
        self.mailbox.answer().is_none()
    }

    /// Until it traps or ends.
    fn wait(&self) {
        let status = wait(self.pid);
        let is_trap = libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP;
        let is_end = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        assert!(is_trap || is_end, "the victim came to {status:#x}");
        self.has_ended.set(is_end);
    }

    /// The address of its next instruction.
    fn at(&self) -> u64 {
        ptrace(libc::PTRACE_PEEKUSER, self.pid, std::mem::offset_of!(libc::user, regs.rip), 0)
    }

    fn debug_register(&self, register: usize, value: u64) {
        let at = std::mem::offset_of!(libc::user, u_debugreg) + 8 * register;
        ptrace(libc::PTRACE_POKEUSER, self.pid, at, value);
    }
}

/// Stops the process for its tracer.
#[inline(always)]
fn trap() {
    // SAFETY: contract of `int3`: a signal, which the tracer takes.
    unsafe { std::arch::asm!("int3") };
}
