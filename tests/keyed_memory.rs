//! What a key costs in memory, and that strangers can not make it more. The allocator counts.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tollgate::{Class, Gcra, Keyed, Log, Nanos, WhenFull};

/// Bytes allocated now, and allocations so far.
struct Counting {
    bytes: AtomicUsize,
    calls: AtomicUsize,
}

#[global_allocator]
static MEMORY: Counting = Counting { bytes: AtomicUsize::new(0), calls: AtomicUsize::new(0) };

/// Ten million where code is optimized: `ci/keyed.sh`.
const STRANGERS: u64 = if cfg!(debug_assertions) { 500_000 } else { 10_000_000 };

/// One test at a time counts.
static TURN: Mutex<()> = Mutex::new(());

// SAFETY: contract of `GlobalAlloc`: the system's allocator does everything.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.bytes.fetch_add(layout.size(), Relaxed);
        self.calls.fetch_add(1, Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.bytes.fetch_add(layout.size(), Relaxed);
        self.calls.fetch_add(1, Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.bytes.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the contract of this function.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn log() -> Class {
    Log::builder(5, Duration::from_secs(10)).config().unwrap().into()
}

fn bucket() -> Class {
    Gcra::builder(5, Duration::from_secs(10)).config().unwrap().into()
}

/// Bytes that so many keys take, all of which are then admitted, with not one allocation more.
fn bytes_of(class: Class, keys: u64) -> usize {
    let before = MEMORY.bytes.load(Relaxed);
    let keyed = Keyed::<u64>::builder(class, keys).when_full(WhenFull::Refuse).build().unwrap();
    let bytes = MEMORY.bytes.load(Relaxed) - before;
    // The configuration is not counted, nor what alignment takes in each shard.
    let uncounted = bytes - keyed.state_bytes();
    assert!(uncounted < 4_096 + bytes / 100, "{uncounted} of {bytes}");
    let calls = MEMORY.calls.load(Relaxed);
    let admitted = (0..keys).filter(|key| keyed.try_acquire_at(key, 1, Nanos::from_secs(1))).count();
    // A shard may be full a little before the others.
    assert!(admitted == keyed.len() && admitted as u64 >= keys - keys / 1_000, "{admitted} of {keys}");
    assert_eq!((MEMORY.calls.load(Relaxed), MEMORY.bytes.load(Relaxed) - before), (calls, bytes));
    bytes
}

/// The numbers of the documentation.
#[test]
fn bytes_per_key() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let million = 1_000_000;
    let per_key = [log(), bucket()].map(|class| bytes_of(class, million) / million as usize);
    assert_eq!(per_key, [112, 31]);
    assert!(bytes_of(bucket(), 1) < 1_024);
}

/// Millions of strangers come, faster than they can leave; memory stays as it was, and honest keys get what is theirs.
#[test]
fn hostile_keys() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (room, honest) = (20_000, 1_000);
    let keyed = Keyed::<u64>::builder(log(), room).build().unwrap();
    let bytes = MEMORY.bytes.load(Relaxed);
    let all_admitted = |now| (0..honest).all(|key| keyed.try_acquire_at(&key, 1, now));
    assert!(all_admitted(Nanos::ZERO));
    let (strangers, mut random) = (STRANGERS, 1_u64);
    for n in 1..=strangers {
        // All within ten seconds. Honest keys come every two seconds, five times in ten.
        let now = Nanos::from_nanos(n * (10_000_000_000 / strangers));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        keyed.try_acquire_at(&(random | 1 << 63), 1, now);
        if n % (strangers / 5) == 0 {
            assert!(n == strangers || all_admitted(now), "an honest key was refused at {now:?}");
        }
    }
    // The harness may have printed something.
    assert!(MEMORY.bytes.load(Relaxed) < bytes + 100_000, "{bytes} were {}", MEMORY.bytes.load(Relaxed));
    // And no more than that: not one of them came back with a fresh quota.
    assert!((0..honest).all(|key| !keyed.try_acquire_at(&key, 1, Nanos::from_micros(9_999_999))));
    assert!(keyed.len() as u64 <= keyed.capacity());
}
