//! Threads on every limiter, for ThreadSanitizer to watch. `ci/tsan.sh` builds and runs it.
//!
//! ThreadSanitizer knows only what was compiled for it, which std was not: what std's mutex, barrier and scoped threads
//! order, it does not see, and takes for races. So nothing here synchronizes through std: threads are those of the
//! system, which ThreadSanitizer intercepts, and the barrier spins on words of this file. The core is built without
//! std as well, so that the members under a lock take the core's own lock.
//!
//! What can be found: an access of memory that is not atomic, unordered with another thread's. The lock-free members
//! have none but in `reset` and `drop`; the members under a lock have nothing else, and need the orders of that lock.
//!
//! `race`, `lock` and `reset` are canaries: each must be reported, or a run without a report says nothing.

use std::{
    cell::UnsafeCell,
    ffi::c_void,
    hash::RandomState,
    hint,
    process::ExitCode,
    ptr,
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    time::Duration,
};

use tollgate::{
    Algorithm, Clock, Compact, Counted, Coverage, Fixed, Gcra, Keyed, Layers, Live, Log, Manual, Nanos,
    Pacing, Rebased, Rule, Sampled, TwoWindow, Wheel, Window,
};

const LIMIT: u64 = 8;
const WINDOW: Duration = Duration::from_nanos(120);
const ROUNDS: usize = 400;

// === threads ===

/// Runs `work(thread)` in so many threads of the system, and returns when all have ended.
fn together(threads: usize, work: &(dyn Fn(usize) + Sync)) {
    struct Job<'a>(usize, &'a (dyn Fn(usize) + Sync));

    extern "C" fn run(job: *mut c_void) -> *mut c_void {
        // SAFETY: contract of `together`: the job outlives its thread.
        let Job(thread, work) = unsafe { &*job.cast::<Job<'_>>() };
        work(*thread);
        ptr::null_mut()
    }

    let mut jobs: Vec<_> = (0..threads).map(|thread| Job(thread, work)).collect();
    let ids = jobs.iter_mut().map(|job| {
        let (mut id, attributes) = (0, ptr::null());
        // SAFETY: contract of `pthread_create`: `run` takes the job, which lives until the thread is joined.
        let failed = unsafe { libc::pthread_create(&mut id, attributes, run, ptr::from_mut(job).cast()) };
        assert_eq!(failed, 0, "no thread");
        id
    });
    for id in ids.collect::<Vec<_>>() {
        // SAFETY: contract of `pthread_join`: a thread of ours, joined once.
        let failed = unsafe { libc::pthread_join(id, ptr::null_mut()) };
        assert_eq!(failed, 0, "not joined");
    }
}

/// A barrier of one word.
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
}

impl Gate {
    fn new(threads: usize) -> Self {
        Self { threads, arrived: AtomicUsize::new(0) }
    }

    fn pass(&self) {
        let all = (self.arrived.fetch_add(1, AcqRel) / self.threads + 1) * self.threads;
        let mut spins = 0_u32;
        while self.arrived.load(Acquire) < all {
            spins += 1;
            if spins.is_multiple_of(64) {
                // SAFETY: contract of `sched_yield`: it has none.
                unsafe { libc::sched_yield() };
            } else {
                hint::spin_loop();
            }
        }
    }
}

// === limiters ===

fn limiters() -> Vec<(&'static str, Box<dyn Algorithm>)> {
    let two = |builder: tollgate::LogBuilder| builder.rule(LIMIT * 2, WINDOW * 3);
    let window =
        |coverage| Window::builder(LIMIT, WINDOW).rule(LIMIT * 2, WINDOW * 3).buckets(4).coverage(coverage);
    let narrow = |width| Duration::from_nanos(width);
    vec![
        ("log, cost 1", Box::new(two(Log::builder(LIMIT, WINDOW)).max_cost(1).build().unwrap())),
        ("log, any cost", Box::new(two(Log::builder(LIMIT, WINDOW)).build().unwrap())),
        ("counter, full", Box::new(window(Coverage::Full).build().unwrap())),
        ("counter, textbook", Box::new(window(Coverage::Textbook).build().unwrap())),
        ("fixed", Box::new(Fixed::builder(LIMIT, WINDOW).build().unwrap())),
        ("two windows", Box::new(TwoWindow::builder(LIMIT, WINDOW).build().unwrap())),
        ("GCRA", Box::new(Gcra::builder(LIMIT, WINDOW).burst(LIMIT).build().unwrap())),
        ("compact", Box::new(Compact::builder(LIMIT, WINDOW).build().unwrap())),
        ("sampled", Box::new(Sampled::builder(LIMIT, WINDOW).build().unwrap())),
        ("shards of a log", Box::new(Log::builder(LIMIT, WINDOW).build_sharded(3).unwrap())),
        ("shards of a counter", Box::new(Window::builder(LIMIT, WINDOW).build_sharded(3).unwrap())),
        ("counted", Box::new(Counted::with_lines(Log::builder(LIMIT, WINDOW).build().unwrap(), 1))),
        ("wheel", Box::new(Wheel::builder(LIMIT, WINDOW).geometry(2, 4, narrow(40)).build().unwrap())),
    ]
}

/// Every kind of call, while time stands still in a round and moves on between them: at most the limit is admitted
/// in each, and some in all.
fn hammer(name: &str, mut limiter: Box<dyn Algorithm>, threads: usize) {
    for _ in 0..2 {
        let (gate, admitted) = (Gate::new(threads), AtomicUsize::new(0));
        together(threads, &|thread| {
            for round in 0..ROUNDS {
                gate.pass();
                let now = Nanos::from_nanos(1_000 + 50 * round as u64 - 7 * thread as u64);
                for turn in 0..4 {
                    let took = match (thread + turn) % 4 {
                        0 => limiter.check_at(1, now).is_ok(),
                        1 => {
                            let _ = limiter.peek_at(1, now);
                            limiter.usage_at(0, now);
                            false
                        }
                        _ => limiter.try_acquire_at(1, now),
                    };
                    admitted.fetch_add(usize::from(took), Relaxed);
                }
            }
        });
        let admitted = admitted.into_inner();
        // Rounds are 50 ns, a window 120.
        let rate = ROUNDS * 50 * LIMIT as usize / WINDOW.as_nanos() as usize;
        assert!((rate / 4..=2 * rate).contains(&admitted), "{name}, {threads} threads: {admitted} admitted");
        limiter.reset();
    }
}

/// Reservations, some given back.
fn queue(threads: usize) {
    let queue = Pacing::builder(LIMIT, WINDOW).queue(LIMIT).build().unwrap();
    let (gate, lapsed) = (Gate::new(threads), AtomicUsize::new(0));
    together(threads, &|_| {
        for round in 0..ROUNDS {
            gate.pass();
            let now = Nanos::from_nanos(50 * round as u64);
            for turn in 0..4 {
                let Ok(place) = queue.reserve_at(1, now) else { continue };
                if turn % 2 == 1 {
                    lapsed.fetch_add(usize::from(queue.give_back(place, now).is_err()), Relaxed);
                }
            }
        }
    });
}

/// Rules that one thread changes while the others call, of one limiter and of another that follows it.
fn changes(threads: usize) {
    let log = || Log::builder(LIMIT, WINDOW).capacity(2 * LIMIT).build().unwrap();
    let first = Live::new(log()).unwrap();
    let second = Live::follow(log(), first.handle()).unwrap();
    let bucket = Live::new(Gcra::builder(LIMIT, WINDOW).build().unwrap()).unwrap();
    let gate = Gate::new(threads);
    together(threads, &|thread| {
        for round in 0..ROUNDS as u64 {
            gate.pass();
            let now = Nanos::from_nanos(1_000 + 50 * round);
            if thread == 0 {
                let rule = Rule::new(LIMIT - round % 3, WINDOW);
                first.set_rules(&[rule, Rule::new(LIMIT * 2, 2 * WINDOW)]).unwrap();
                bucket.set_rate_at(rule, LIMIT + round % 3, now).unwrap();
            }
            for limiter in [&first as &dyn Algorithm, &second, &bucket] {
                limiter.try_acquire_at(1, now);
                let _ = limiter.check_at(1, now);
                assert!(limiter.rules()[0].limit <= LIMIT);
            }
        }
    });
}

/// Keys that come and go, and are forgiven, under another limit.
fn keys(threads: usize) {
    let log = Log::builder(2, WINDOW).config().unwrap();
    let keyed = Keyed::<u64, _>::builder_with_hasher(log, 8, RandomState::new()).build().unwrap();
    let global = Window::builder(LIMIT, WINDOW).buckets(4).build().unwrap();
    let (gate, admitted) = (Gate::new(threads), AtomicUsize::new(0));
    together(threads, &|thread| {
        for round in 0..ROUNDS as u64 {
            gate.pass();
            let now = Nanos::from_nanos(1_000 + 50 * round - 7 * thread as u64);
            for turn in 0..4 {
                let key = (3 * round + turn * turn + thread as u64) % 100;
                let user = keyed.of(&key);
                admitted
                    .fetch_add(usize::from(Layers::new([&global, &user]).try_acquire_at(1, now)), Relaxed);
                keyed.usage_at(&key, 0, now);
            }
            if round % 64 == 0 {
                keyed.remove(&round);
                keyed.retain_at(now, |key, _| key % 2 == 0);
                keyed.busiest_at(3, now);
            }
        }
    });
    assert!(admitted.into_inner() > ROUNDS);
}

/// A clock that steps back while it is read.
fn clock(threads: usize) {
    let clock = Rebased::new(Manual::at(Nanos::from_nanos(1 << 40)), Duration::from_nanos(5));
    let gate = Gate::new(threads);
    together(threads, &|thread| {
        let mut newest = Nanos::ZERO;
        for round in 0..ROUNDS {
            gate.pass();
            if thread == 0 {
                clock.source().set(Nanos::from_nanos((round as u64 % 7) << 20));
            }
            let now = clock.now();
            assert!(now >= newest, "the clock ran back");
            newest = now;
        }
    });
}

// === canaries ===

struct Shared<T>(UnsafeCell<T>);

// SAFETY: none: the canaries race on purpose.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Two threads add to a plain number.
fn race() {
    let (shared, gate) = (Shared(UnsafeCell::new(0_u64)), Gate::new(2));
    together(2, &|_| {
        gate.pass();
        // SAFETY: none: this is the race.
        unsafe { *shared.get() += 1 };
    });
}

/// A lock whose orders are relaxed: it excludes, and orders nothing.
fn lock() {
    let (held, shared, gate) = (AtomicBool::new(false), Shared(UnsafeCell::new(0_u64)), Gate::new(2));
    together(2, &|_| {
        gate.pass();
        for _ in 0..1_000 {
            while held.compare_exchange(false, true, Relaxed, Relaxed).is_err() {
                hint::spin_loop();
            }
            // SAFETY: none: this is the race.
            unsafe { *shared.get() += 1 };
            held.store(false, Relaxed);
        }
    });
}

/// A limiter is reset while another thread asks it: a race inside the core, which shows that the core is watched.
fn reset() {
    let shared = Shared(UnsafeCell::new(Log::builder(LIMIT, WINDOW).build().unwrap()));
    let gate = Gate::new(2);
    together(2, &|thread| {
        for round in 0..100 {
            gate.pass();
            if thread == 0 {
                // SAFETY: none: this is the race.
                unsafe { &mut *shared.get() }.reset();
            } else {
                // SAFETY: none: this is the race.
                let _ = unsafe { &*shared.get() }.check_at(1, Nanos::from_nanos(round));
            }
        }
    });
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => {
            for threads in [2, 4] {
                limiters().into_iter().for_each(|(name, limiter)| hammer(name, limiter, threads));
                queue(threads);
                changes(threads);
                keys(threads);
                clock(threads);
            }
        }
        Some("race") => race(),
        Some("lock") => lock(),
        Some("reset") => reset(),
        Some(_) => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
