//! Manual and rebased clocks: what a limiter sees when time stands still, jumps and steps back.

use std::{
    cell::Cell,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use proptest::prelude::*;
use tollgate::{Algorithm, Clock, Limiter, Log, Manual, Nanos, Rebased, Window};

const SECOND: Duration = Duration::from_secs(1);
const ONE: Nanos = Nanos::from_nanos(1);

fn secs(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

fn log(limit: u64, window: Duration) -> Log {
    Log::builder(limit, window).build().unwrap()
}

#[test]
fn a_clock_is_read_through_whatever_holds_it() {
    fn read(clock: impl Clock) -> Nanos {
        clock.now()
    }
    let clock = Arc::new(Manual::at(secs(7)));
    assert_eq!(read(&*clock), secs(7));
    assert_eq!(read(Arc::clone(&clock)), secs(7));
    assert_eq!(read(Box::new(Arc::clone(&clock)) as Box<dyn Clock>), secs(7));
    clock.advance(SECOND);
    assert_eq!(read(clock), secs(8));
}

#[test]
fn advances_of_many_threads_add_up() {
    let clock = Manual::new();
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..10_000).for_each(|_| clock.advance(Nanos::from_nanos(3))));
        }
    });
    assert_eq!(clock.now(), Nanos::from_nanos(120_000));
}

#[test]
fn a_step_within_the_tolerance_holds_until_the_source_has_caught_up() {
    let clock = Rebased::new(Manual::at(secs(100)), 5 * SECOND);
    assert_eq!(clock.now(), secs(100));
    for (source, shown) in [(95, 100), (97, 100), (99, 100), (100, 100), (101, 101)] {
        clock.source().set(secs(source));
        assert_eq!(clock.now(), secs(shown), "source at {source}");
    }
    assert_eq!(clock.offset(), Nanos::ZERO);
}

#[test]
fn a_step_beyond_the_tolerance_stands_still_for_one_reading() {
    let clock = Rebased::new(Manual::at(secs(100)), 5 * SECOND);
    assert_eq!(clock.now(), secs(100));
    // One nanosecond more than the tolerance.
    clock.source().set(secs(95) - ONE);
    assert_eq!(clock.now(), secs(100));
    clock.source().advance(ONE);
    assert_eq!(clock.now(), secs(100) + ONE);
    assert_eq!(clock.offset(), secs(5) + ONE);
}

#[test]
fn small_steps_that_add_up_are_closed_like_a_large_one() {
    let clock = Rebased::new(Manual::at(secs(100)), 5 * SECOND);
    for source in [100, 97, 94, 91] {
        clock.source().set(secs(source));
        assert_eq!(clock.now(), secs(100));
    }
    // Closed at 94, 6 behind; 91 is again within the tolerance.
    assert_eq!(clock.offset(), secs(6));
    clock.source().set(secs(95));
    assert_eq!(clock.now(), secs(101));
}

#[test]
fn a_step_forward_is_trusted_and_one_back_from_it_is_closed() {
    let clock = Rebased::new(Manual::at(secs(100)), Duration::ZERO);
    let mut shown = Vec::new();
    for source in [100, 5_000, 101, 102] {
        clock.source().set(secs(source));
        shown.push(clock.now());
    }
    assert_eq!(shown, [100, 5_000, 5_000, 5_001].map(secs));
    assert_eq!(clock.into_source().now(), secs(102));
}

#[test]
fn a_reading_out_of_range_is_shown_and_forgotten() {
    let limiter = Limiter::new(log(1, SECOND), Rebased::new(Manual::at(secs(100)), Duration::ZERO));
    assert!(limiter.try_acquire());
    for wild in [Nanos::MAX + ONE, Nanos::from_nanos(u64::MAX)] {
        limiter.clock().source().set(wild);
        assert_eq!(limiter.clock().now(), wild);
        assert!(!limiter.try_acquire());
    }
    limiter.clock().source().set(secs(101));
    assert_eq!(limiter.clock().now(), secs(101));
    assert!(limiter.try_acquire());
}

/// A source whose readings can be made to overlap: a caller that has set [`SLEEPS`] reads it and then meets the
/// others twice before it gets to use the reading.
struct Sleepy {
    time: Manual,
    meet: Barrier,
}

thread_local! {
    /// Whether this thread's next reading is slept on.
    static SLEEPS: Cell<bool> = const { Cell::new(false) };
}

impl Sleepy {
    fn new(now: Nanos, callers: usize) -> Self {
        Self { time: Manual::at(now), meet: Barrier::new(callers) }
    }
}

impl Clock for Sleepy {
    fn now(&self) -> Nanos {
        let now = self.time.now();
        if SLEEPS.replace(false) {
            self.meet.wait();
            self.meet.wait();
        }
        now
    }
}

#[test]
fn a_caller_that_sleeps_on_its_reading_is_no_step() {
    let clock = Rebased::new(Sleepy::new(secs(100), 2), Duration::ZERO);
    thread::scope(|s| {
        let sleeper = s.spawn(|| {
            SLEEPS.set(true);
            clock.now()
        });
        clock.source().meet.wait();
        clock.source().time.set(secs(900));
        assert_eq!(clock.now(), secs(900));
        clock.source().meet.wait();
        // Its reading, 100, is older than what has been shown; that was no step of the clock.
        assert_eq!(sleeper.join().unwrap(), secs(900));
    });
    assert_eq!(clock.offset(), Nanos::ZERO);
    clock.source().time.set(secs(901));
    assert_eq!(clock.now(), secs(901));
}

#[test]
fn each_gap_is_closed_once() {
    let clock = Rebased::new(Sleepy::new(secs(1_000), 3), SECOND);
    assert_eq!(clock.now(), secs(1_000));
    clock.source().time.set(secs(300));
    thread::scope(|s| {
        let callers = [(); 3].map(|()| {
            s.spawn(|| {
                SLEEPS.set(true);
                clock.now()
            })
        });
        // All three have read 300 before any of them closes the gap.
        assert_eq!(callers.map(|caller| caller.join().unwrap()), [secs(1_000); 3]);
    });
    assert_eq!(clock.offset(), secs(700));
    clock.source().time.set(secs(301));
    assert_eq!(clock.now(), secs(1_001));
}

#[test]
fn threads_never_see_time_run_back() {
    let clock = Rebased::new(Manual::at(secs(1_000)), Duration::from_micros(2));
    let (seen, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let (steps, forward) = (200, Nanos::from_micros(1));
    thread::scope(|s| {
        s.spawn(|| {
            for _ in 0..steps {
                (0..20).for_each(|_| clock.source().advance(forward));
                clock.source().set(clock.source().now() - Nanos::from_millis(500));
                thread::yield_now();
            }
            done.store(true, Ordering::Release);
        });
        for _ in 0..3 {
            s.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    // Whatever any caller has been shown before this call began.
                    let before = seen.load(Ordering::Acquire);
                    let now = clock.now().as_nanos();
                    assert!(now >= before, "{now} after {before}");
                    seen.fetch_max(now, Ordering::AcqRel);
                }
            });
        }
    });
    // Only what the source ran forward can have been shown.
    let ran = Nanos::from_micros(20 * steps);
    assert!(seen.into_inner() <= (secs(1_000) + ran).as_nanos());
}

proptest! {
    /// Any source: time never runs back, a step back shows nothing, and a stretch that runs on by `x` shows at most
    /// `x` and at least `x` less the tolerance.
    #[test]
    fn any_source_is_followed_within_the_tolerance(
        tolerance in 0u64..20,
        moves in prop::collection::vec(prop_oneof![-30i64..30, -1_000i64..0], 1..80),
    ) {
        let clock = Rebased::new(Manual::at(Nanos::from_nanos(100_000)), Duration::from_nanos(tolerance));
        let mut shown = clock.now();
        let (mut ran, mut shown_of_run) = (0, 0);
        for step in moves {
            let source = clock.source().now().as_nanos();
            clock.source().set(Nanos::from_nanos(source.checked_add_signed(step).unwrap()));
            let now = clock.now();
            prop_assert!(now >= shown);
            let passed = (now - shown).as_nanos();
            if step < 0 {
                prop_assert_eq!(passed, 0);
                (ran, shown_of_run) = (0, 0);
            } else {
                prop_assert!(passed <= step.unsigned_abs());
                ran += step.unsigned_abs();
                shown_of_run += passed;
                prop_assert!(shown_of_run + tolerance >= ran);
            }
            shown = now;
        }
    }
}

/// The log, and the counter, which gives a permit back at most one bucket late: how late.
fn log_and_counter(limit: u64, window: Duration) -> [(Box<dyn Algorithm>, Nanos); 2] {
    let counter = Window::builder(limit, window).build().unwrap();
    let late = counter.width();
    [(Box::new(log(limit, window)), Nanos::ZERO), (Box::new(counter), late)]
}

#[test]
fn f052_the_clock_steps_back() {
    // Closed: the step is invisible, and the lock-out lasts one window of the stepped clock.
    for (algorithm, late) in log_and_counter(10, SECOND) {
        let limiter = Limiter::new(algorithm, Rebased::new(Manual::at(secs(100)), Duration::ZERO));
        assert!(limiter.try_acquire_n(3));
        limiter.clock().source().set(secs(89));
        assert_eq!((0..8).filter(|_| limiter.try_acquire()).count(), 7);
        assert!(!limiter.try_acquire());
        limiter.clock().source().set(secs(90) + late - ONE);
        assert!(!limiter.try_acquire());
        limiter.clock().source().set(secs(90) + late);
        assert!(limiter.try_acquire_n(10));
    }

    // Within the tolerance: at most the tolerance more.
    for (algorithm, late) in log_and_counter(10, SECOND) {
        let limiter = Limiter::new(algorithm, Rebased::new(Manual::at(secs(100)), 11 * SECOND));
        assert!(limiter.try_acquire_n(10));
        limiter.clock().source().set(secs(89));
        assert!(!limiter.try_acquire());
        limiter.clock().source().set(secs(101) + late - ONE);
        assert!(!limiter.try_acquire());
        limiter.clock().source().set(secs(101) + late);
        assert!(limiter.try_acquire());
    }

    // As it is: no extra permit, and nothing frees until the clock has caught up.
    for (algorithm, _) in log_and_counter(10, SECOND) {
        let limiter = Limiter::new(algorithm, Manual::at(secs(100)));
        assert!(limiter.try_acquire_n(3));
        limiter.clock().set(secs(89));
        assert_eq!((0..8).filter(|_| limiter.try_acquire()).count(), 7);
        limiter.clock().set(secs(90));
        assert!(!limiter.try_acquire());
    }
}

#[test]
fn f053_the_wait_after_a_step_back_is_longer_than_the_window() {
    for (algorithm, late) in log_and_counter(1, 60 * SECOND) {
        let limiter = Limiter::new(algorithm, Rebased::new(Manual::at(secs(1_000)), Duration::ZERO));
        assert!(limiter.try_acquire());
        limiter.clock().source().set(secs(700));
        let wait = limiter.check().unwrap_err().retry_after().unwrap();
        assert!(secs(60) <= wait && wait <= secs(60) + late, "{wait:?}");

        // The wait is true of the stepped clock: not a nanosecond before it, and at it.
        limiter.clock().source().set(secs(700) + wait - ONE);
        assert!(!limiter.try_acquire());
        limiter.clock().source().set(secs(700) + wait);
        assert!(limiter.try_acquire());
    }
}

#[test]
fn f054_a_32_bit_millisecond_clock_after_24_8_and_49_7_days() {
    for wrap in [1u64 << 31, 1 << 32] {
        for (algorithm, late) in log_and_counter(10, SECOND) {
            let limiter = Limiter::new(algorithm, Rebased::new(Manual::new(), Duration::from_millis(1)));
            let at = |ms: u64| limiter.clock().source().set(Nanos::from_millis(ms));
            at(wrap - 6);
            assert!(limiter.try_acquire_n(10));
            at(wrap + 4);
            assert!(!limiter.try_acquire());
            at(wrap + 993);
            assert!(!limiter.try_acquire());
            at(wrap + 994 + late.as_nanos() / 1_000_000);
            assert!(limiter.try_acquire());
            assert_eq!(limiter.clock().offset(), Nanos::ZERO);
            for days in [25, 50] {
                at(wrap + 994 + days * 86_400_000);
                assert_eq!(limiter.usage(0), Some(0));
            }
        }
    }
}

#[test]
fn f055_the_largest_duration_as_for_ever() {
    let clock = Manual::at(secs(1));
    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), Nanos::from_nanos(u64::MAX));
    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), Nanos::from_nanos(u64::MAX));

    // A tolerance of for ever means to hold for ever, never "no tolerance".
    for tolerance in [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::from_secs(300 * 31_557_600)] {
        let clock = Rebased::new(Manual::at(Nanos::MAX), tolerance);
        assert_eq!(clock.now(), Nanos::MAX);
        clock.source().set(Nanos::ZERO);
        assert_eq!(clock.now(), Nanos::MAX);
        assert_eq!(clock.offset(), Nanos::ZERO);
    }

    // The largest step there is, and on from there.
    let clock = Rebased::new(Manual::at(Nanos::MAX - ONE), Duration::ZERO);
    assert_eq!(clock.now(), Nanos::MAX - ONE);
    clock.source().set(Nanos::ZERO);
    assert_eq!(clock.now(), Nanos::MAX - ONE);
    clock.source().advance(ONE);
    assert_eq!(clock.now(), Nanos::MAX);
}
