//! The machine: what it is, and whether it took time away.

use std::{fs, process::Command, thread};

/// Times that the system took the processor from a thread that wanted to go on.
#[derive(Clone, Copy)]
pub(crate) struct Switches(i64);

/// Ticks that the hypervisor gave to others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stolen(u64);

// === impl Switches ===

impl Switches {
    /// Of the calling thread.
    pub(crate) fn of_thread() -> Self {
        // SAFETY: contract of `getrusage`: zeros are a `rusage`, which it fills.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: contract of `getrusage`: a `rusage` to fill.
        let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        assert_eq!(status, 0, "getrusage");
        Self(usage.ru_nivcsw)
    }

    pub(crate) fn since(self, before: Self) -> u64 {
        self.0.abs_diff(before.0)
    }
}

// === impl Stolen ===

impl Stolen {
    /// Up to now; 0 where there is no such figure.
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let steal = stat.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse().ok());
        Self(steal.unwrap_or(0))
    }
}

/// Processors.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What a command prints, or nothing.
pub(crate) fn output(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The machine, the compiler and the day, as lines of a list.
pub(crate) fn describe() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    format!(
        "- {}, {} threads, {} GiB; {}\n- {}, {}\n- {}; load of the minute before: {}",
        cpu.map_or("unknown processor", |cpu| cpu.1),
        cores(),
        kib >> 20,
        output("uname", &["-srm"]),
        output("rustc", &["--version"]),
        first(output("cc", &["--version"])),
        output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or_default(),
    )
}

/// The versions of what was compared, from the lock file.
pub(crate) fn versions(names: &[&str]) -> String {
    let lock = include_str!("../Cargo.lock");
    let version = |name: &&str| {
        let (_, found) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", found.split('"').next()?))
    };
    names.iter().filter_map(version).collect::<Vec<_>>().join(", ")
}
