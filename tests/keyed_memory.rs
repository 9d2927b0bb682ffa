//! What a limiter's state and a key cost in memory, and that strangers can not make it more. The allocator counts.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

use tollgate::{Algorithm, Class, Gcra, Keyed, Log, Nanos, WhenFull, Window};

/// Counts for each thread what it allocates, so that nobody else's allocations are in the way.
struct Counting;

#[global_allocator]
static MEMORY: Counting = Counting;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Ten million where code is optimized: `ci/keyed.sh`.
const STRANGERS: u64 = if cfg!(debug_assertions) { 500_000 } else { 10_000_000 };

fn count(bytes: isize) {
    // The words of a thread that ends are gone before its last deallocation; nobody asks for them then.
    let _ = BYTES.try_with(|word| word.set(word.get().wrapping_add_signed(bytes)));
    let _ = CALLS.try_with(|word| word.set(word.get() + usize::from(bytes > 0)));
}

/// Bytes that this thread holds, and allocations it has made.
fn counted() -> (usize, usize) {
    (BYTES.get(), CALLS.get())
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

fn log() -> Class {
    Log::builder(5, Duration::from_secs(10)).config().unwrap().into()
}

fn bucket() -> Class {
    Gcra::builder(5, Duration::from_secs(10)).config().unwrap().into()
}

/// Bytes that so many keys take, all of which are then admitted, with not one allocation more.
fn bytes_of(class: Class, keys: u64) -> usize {
    let before = counted().0;
    let keyed = Keyed::<u64>::builder(class, keys).when_full(WhenFull::Refuse).build().unwrap();
    let bytes = counted().0 - before;
    // The configuration is not counted, nor what alignment takes in each shard.
    let uncounted = bytes - keyed.state_bytes();
    assert!(uncounted < 4_096 + bytes / 100, "{uncounted} of {bytes}");
    let built = counted();
    let admitted = (0..keys).filter(|key| keyed.try_acquire_at(key, 1, Nanos::from_secs(1))).count();
    // A shard may be full a little before the others.
    assert!(admitted == keyed.len() && admitted as u64 >= keys - keys / 1_000, "{admitted} of {keys}");
    assert_eq!(counted(), built);
    bytes
}

/// The numbers of the documentation.
#[test]
fn bytes_per_key() {
    let million = 1_000_000;
    let per_key = [log(), bucket()].map(|class| bytes_of(class, million) / million as usize);
    assert_eq!(per_key, [105, 19]);
    assert!(bytes_of(bucket(), 1) < 1_088);
}

/// Alignment included, beside the configuration.
#[test]
fn a_state_takes_no_more_than_promised() {
    let takes = |build: &dyn Fn() -> Box<dyn Fn()>| {
        let before = counted().0;
        let limiter = build();
        let taken = counted().0.wrapping_sub(before) - size_of_val(&*limiter);
        limiter();
        taken as u64
    };
    for limit in [1, 5, 100, 1_000, 10_000, 1_000_000] {
        let taken = takes(&|| {
            let log = Log::builder(limit, Duration::from_secs(1)).build().unwrap();
            Box::new(move || assert!(log.try_acquire_at(1, Nanos::ZERO)))
        });
        assert!((8 * limit..=8 * limit + 256).contains(&taken), "a log of {limit}: {taken}");
    }
    for buckets in [1, 2, 10, 1_000, 10_000] {
        let taken = takes(&|| {
            let counter = Window::builder(9, Duration::from_secs(1)).buckets(buckets).build().unwrap();
            Box::new(move || assert!(counter.try_acquire_at(1, Nanos::ZERO)))
        });
        let slots = 8 * (buckets + 1).next_power_of_two();
        assert!((slots..=slots + 256).contains(&taken), "a counter of {buckets} buckets: {taken}");
    }
}

/// Millions of strangers come, faster than they can leave; memory stays as it was, and honest keys get what is theirs.
#[test]
fn hostile_keys() {
    let (room, honest) = (20_000, 1_000);
    let keyed = Keyed::<u64>::builder(log(), room).build().unwrap();
    let built = counted();
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
    assert_eq!(counted(), built);
    // And no more than that: not one of them came back with a fresh quota.
    assert!((0..honest).all(|key| !keyed.try_acquire_at(&key, 1, Nanos::from_micros(9_999_999))));
    assert!(keyed.len() as u64 <= keyed.capacity());
}

/// Keys come and leave, each place many times over, whatever the size of the index: nothing is allocated.
#[test]
fn keys_that_come_and_go() {
    for room in [50, 725, 900, 5_000] {
        let keyed = Keyed::<u64>::builder(bucket(), room).build().unwrap();
        let built = counted();
        for n in 0..200 * room {
            let now = Nanos::from_nanos(n * (20_000_000_000 / room));
            assert!(keyed.try_acquire_at(&n, 1, now));
        }
        assert_eq!(counted(), built, "room for {room}");
        assert!(keyed.evicted() > 190 * room && keyed.len() as u64 <= keyed.capacity());
    }
}
