//! Bytes, by an allocator that counts.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    collections::VecDeque,
    fs,
    time::Duration,
};

use tollgate::{Compact, Fixed, Gcra, Log, Nanos, Pacing, Sampled, TwoWindow, Wheel, Window};
use tollgate_benches::START;

use crate::{
    drive::{Subject, Time},
    markdown::Table,
    peers::{BetterBucket, Deque, Governor, LeakyBucket, Packed, Pingora, Ratelimit, Total},
};

/// Counts for each thread what it allocates, so that nobody else's allocations are in the way.
pub(crate) struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // The words of a thread that ends are gone before its last deallocation; nobody asks for them then.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
    let _ = TAKEN.try_with(|taken| taken.set(taken.get() + u64::from(bytes > 0)));
}

/// Bytes that this thread holds.
pub(crate) fn held() -> isize {
    HELD.get()
}

// SAFETY: contract of `GlobalAlloc`: the system's allocator does everything.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the contract of this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the contract of this function.
        unsafe { System.dealloc(memory, layout) }
    }
}

pub(crate) const LIMITS: [u64; 3] = [100, 10_000, 1_000_000];

type Build = fn(u64) -> Box<dyn Subject>;

const SECOND: Duration = Duration::from_secs(1);

macro_rules! ours {
    ($limit:ident => $build:expr) => {
        |$limit| Box::new($build.expect("a configuration that is valid"))
    };
}

const LINEUP: [(&str, Build); 20] = [
    ("log", ours!(limit => Log::builder(limit, SECOND).build())),
    ("log of single permits", ours!(limit => Log::builder(limit, SECOND).max_cost(1).build())),
    ("counter, 10 buckets", ours!(limit => Window::builder(limit, SECOND).build())),
    ("counter, 100 buckets", ours!(limit => Window::builder(limit, SECOND).buckets(100).build())),
    ("counter, 1,000 buckets", ours!(limit => Window::builder(limit, SECOND).buckets(1_000).build())),
    ("compact log", ours!(limit => Compact::builder(limit, SECOND).build())),
    ("sampling log", ours!(limit => Sampled::builder(limit, SECOND).build())),
    ("wheel", ours!(limit => Wheel::builder(limit, SECOND).build())),
    ("two-window", ours!(limit => TwoWindow::builder(limit, 3_600 * SECOND).build())),
    ("fixed", ours!(limit => Fixed::builder(limit, SECOND).build())),
    ("token bucket", ours!(limit => Gcra::builder(limit, SECOND).build())),
    ("pacing queue", ours!(limit => Pacing::builder(limit, SECOND).build())),
    ("deque", |limit| Box::new(Deque::<parking_lot::Mutex<VecDeque<Nanos>>>::new(limit, SECOND.into()))),
    ("packed head and count", |limit| Box::new(Packed::new(limit, SECOND.into()))),
    ("buckets, running total, 10", |limit| Box::new(Total::new(limit, SECOND.into(), 10))),
    ("governor", |limit| Box::new(Governor::new(limit as u32, SECOND / limit as u32))),
    ("ratelimit", |limit| Box::new(Ratelimit::new(limit, SECOND))),
    ("better-bucket", |limit| Box::new(BetterBucket::new(limit as u32, SECOND))),
    ("leaky-bucket", |limit| Box::new(LeakyBucket::new(limit as usize, 3_600 * SECOND))),
    ("pingora-limits", |limit| Box::new(Pingora::new(limit as isize, 3_600 * SECOND))),
];

/// Bytes of a limiter.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    pub(crate) name: &'static str,
    pub(crate) limit: u64,
    /// What it is itself, its configuration with it: the rest is its state, and lies elsewhere.
    pub(crate) own: usize,
    /// Taken from the allocator, itself with them, when it is made; when its window is full; and when that has passed.
    pub(crate) made: isize,
    pub(crate) full: isize,
    pub(crate) passed: isize,
    /// Pages that became resident when it was made, in bytes.
    pub(crate) resident: i64,
    /// Allocations of its calls.
    pub(crate) allocations: u64,
}

// === impl Bytes ===

impl Bytes {
    /// What it takes beside itself: the state, where that has a ring, and what it takes to align it.
    pub(crate) fn state(&self) -> u64 {
        self.made.unsigned_abs() as u64 - self.own as u64
    }

    /// What it takes of the system's memory while nothing was admitted: pages it did not touch are not there.
    pub(crate) fn idle(&self) -> i64 {
        const PAGES: isize = 1 << 20;
        if self.made < PAGES { self.made as i64 } else { self.resident }
    }
}

/// Bytes of this process in memory.
fn resident() -> i64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<i64>().ok()).unwrap_or(0) * 4_096
}

fn measure_one(name: &'static str, limit: u64, build: Build) -> Bytes {
    let (before, pages) = (held(), resident());
    let subject = build(limit);
    let (made, resident, taken) = (held() - before, resident() - pages, TAKEN.get());
    subject.fill(Time::Passed);
    let full = held() - before;
    let later = Nanos::from_nanos(START.as_nanos() + 10 * SECOND.as_nanos() as u64);
    subject.batch(Time::Passed, 1, later, Nanos::ZERO);
    let own = size_of_val(&*subject);
    Bytes {
        name,
        limit,
        own,
        made,
        full,
        passed: held() - before,
        resident,
        allocations: TAKEN.get() - taken,
    }
}

/// Every limiter at every limit.
pub(crate) fn measure() -> Vec<Bytes> {
    // Pages that others freed are not given to the next.
    // SAFETY: contract of `mallopt`: a parameter and a value.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 64 << 10) };
    let rows =
        LINEUP.into_iter().flat_map(|(name, build)| LIMITS.map(|limit| measure_one(name, limit, build)));
    rows.collect()
}

/// All of them.
pub(crate) fn table(bytes: &[Bytes]) -> String {
    let mut table = Table::new(&[
        "bytes",
        "itself",
        "limit 100",
        "10,000",
        "1,000,000",
        "full of 1,000,000",
        "a window later",
        "resident when made",
        "allocations of calls",
    ]);
    for rows in bytes.chunk_by(|a, b| a.name == b.name) {
        let most = rows.last().expect("not empty");
        let allocations: u64 = rows.iter().map(|row| row.allocations).sum();
        let figures = [most.full as i64, most.passed as i64, most.resident, allocations as i64];
        let made = [most.own as i64].into_iter().chain(rows.iter().map(|row| row.made as i64));
        table.row(
            [most.name.to_owned()].into_iter().chain(made.chain(figures).map(|figure| figure.to_string())),
        );
    }
    table.to_string()
}

/// One of them.
pub(crate) fn find<'a>(bytes: &'a [Bytes], name: &str, limit: u64) -> Option<&'a Bytes> {
    bytes.iter().find(|row| (row.name, row.limit) == (name, limit))
}

/// Whether it is one of this crate's: those stand before the peers.
pub(crate) fn is_ours(name: &str) -> bool {
    LINEUP.iter().map(|it| it.0).take_while(|&it| it != "deque").any(|it| it == name)
}
