//! Right and wrong limiters get the right verdict, and for the right reason.
#![cfg(all(tollgate_loom, not(tollgate_shuttle)))]

use std::sync::Mutex as StdMutex;

use tollgate_check::{
    Check, Coverage, Limiter, Order, Outcome, Property, Scenario, Spec, Suite, Verdict, acquire, canaries,
    check,
    sync::{Arc, AtomicBool, AtomicExt, AtomicU64, Mutex, Ordering, UnsafeCell, spin_loop},
};

#[test]
fn the_canaries_die() {
    assert_eq!(canaries(2), Ok(()));
}

#[test]
fn bound_zero_is_void() {
    let why = canaries(0).unwrap_err();
    assert!(why.contains("check-then-act") && why.contains("bound 0"), "{why}");
}

/// One permit per window in one word: the time it frees at.
struct OneWord(AtomicU64, u64);

impl OneWord {
    fn new() -> OneWord {
        OneWord(AtomicU64::new(0).named("free_at"), 10)
    }
}

impl Limiter for OneWord {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        if cost > 1 {
            return Verdict::Never;
        }
        let mut free_at = self.0.load(Ordering::Relaxed);
        loop {
            if now.max(free_at.saturating_sub(self.1)) < free_at {
                let at = now.max(free_at - self.1);
                return Verdict::Refused { retry_after: Some(free_at - at) };
            }
            match self.0.compare_exchange_weak(free_at, now + self.1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Verdict::Admitted,
                Err(found) => free_at = found,
            }
        }
    }
}

fn exact() -> Spec {
    Spec::exact(&[(1, 10)])
}

#[test]
fn a_right_limiter_passes_exhaustively() {
    let report =
        check(OneWord::new, exact()).name("one word").scenarios(Suite::standard(1, 10)).exhaustive().run();
    println!("{report}");
    assert!(matches!(report.outcome, Outcome::Pass { exhaustive: true, .. }), "{report}");
}

#[test]
fn a_bounded_run_is_not_called_exhaustive() {
    let report = check(OneWord::new, exact()).scenarios(Suite::standard(1, 10)).bound(1).run();
    assert!(matches!(report.outcome, Outcome::Pass { exhaustive: false, .. }), "{report}");
    assert!(report.to_string().contains("not a proof"));
}

#[test]
fn a_run_that_is_cut_is_inconclusive() {
    let report = check(OneWord::new, exact()).scenarios(Suite::standard(1, 10)).max_executions(5).run();
    assert!(
        matches!(report.outcome, Outcome::Inconclusive { ref why } if why.contains("5 executions")),
        "{report}"
    );
}

/// Fails with the property, and the same execution shows it again.
fn fails(check: Check, property: Property) -> String {
    let report = check.run();
    println!("{report}");
    let failure =
        report.failures.iter().find(|f| f.property == property).unwrap_or_else(|| panic!("{report}"));
    let mut again =
        check.clone().only(failure.scenario.clone()).replay(failure.preemptions, failure.execution);
    if let Some((thread, steps)) = failure.frozen {
        again = again.frozen_at(thread, steps);
    }
    assert_eq!(again.run().failures[0].interleaving(), failure.interleaving());
    let json = report.to_json();
    assert!(
        json.contains(&format!("\"property\":\"{property}\"")) && json.contains("\"verdict\":\"fail\""),
        "{json}"
    );
    failure.to_string()
}

/// Refuses when another thread got in between.
struct Impatient(AtomicU64);

impl Limiter for Impatient {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        let left = self.0.load(Ordering::Acquire);
        let next = left.checked_sub(1);
        let took = |next| self.0.compare_exchange(left, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let _ = now;
        Verdict::yes_or_no(next.is_some_and(took))
    }
}

#[test]
fn refusing_on_contention_is_a_false_refusal() {
    let scenario = Scenario::new("contention").thread([acquire(1, 0)]).thread([acquire(1, 0)]);
    let check = check(|| Impatient(AtomicU64::new(2)), Spec::exact(&[(2, 100)])).scenario(scenario);
    let text = fails(check, Property::FalseRefusal);
    assert!(text.contains("needs 1 preemption") || text.contains("needs no preemption"), "{text}");
}

/// Tells a wait that is one tick too long.
struct WrongWait(OneWord);

impl Limiter for WrongWait {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        match self.0.try_acquire(cost, now) {
            Verdict::Refused { retry_after } => {
                Verdict::Refused { retry_after: retry_after.map(|wait| wait + 1) }
            }
            other => other,
        }
    }
}

#[test]
fn a_wrong_wait_is_told_with_the_right_one() {
    let check = check(|| WrongWait(OneWord::new()), exact()).scenarios(Suite::standard(1, 10));
    let text = fails(check, Property::WrongRetryAfter);
    assert!(text.contains("right would be"), "{text}");
}

/// Locks by spinning.
struct SpinLocked {
    locked: AtomicBool,
    free_at: AtomicU64,
}

impl Limiter for SpinLocked {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        while self.locked.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        let free_at = self.free_at.load(Ordering::Relaxed);
        if now >= free_at {
            self.free_at.store(now + 10, Ordering::Relaxed);
        }
        self.locked.store(false, Ordering::Release);
        Verdict::yes_or_no(now >= free_at)
    }
}

impl SpinLocked {
    fn new() -> SpinLocked {
        SpinLocked { locked: AtomicBool::new(false), free_at: AtomicU64::new(0) }
    }
}

#[test]
fn a_spin_lock_keeps_the_limit_but_is_not_lock_free() {
    let scenario = || Scenario::new("lock").thread([acquire(1, 0)]).thread([acquire(1, 0)]);
    let text = fails(check(SpinLocked::new, exact()).scenario(scenario()), Property::LockFree);
    assert!(text.contains("frozen"), "{text}");
    check(SpinLocked::new, exact()).scenario(scenario()).frozen(None).run().expect_pass();
    let again = Scenario::new("again").thread([acquire(1, 0), acquire(1, 5)]).thread([acquire(1, 0)]);
    check(SpinLocked::new, exact()).scenario(again).frozen(None).run().expect_pass();
}

#[test]
fn a_thread_that_asks_by_the_clock_is_frozen_too() {
    let by_clock = Scenario::new("by clock")
        .clock([5])
        .thread([tollgate_check::acquire_by_clock(1)])
        .thread([tollgate_check::acquire_by_clock(1)]);
    let text = fails(check(SpinLocked::new, exact()).scenario(by_clock), Property::LockFree);
    assert!(text.contains("frozen after its first atomic step"), "{text}");
}

/// One caller stores and swaps: between the two it never sees what the other's cas made of the value before.
struct Torn(AtomicU64);

impl Limiter for Torn {
    fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
        if cost == 1 {
            let _ = self.0.compare_exchange(1, 0, Ordering::Relaxed, Ordering::Relaxed);
            return Verdict::Admitted;
        }
        self.0.store(2, Ordering::Relaxed);
        assert_eq!(self.0.swap(3, Ordering::Relaxed), 2, "a store came between the halves of a cas");
        Verdict::Admitted
    }
}

#[test]
fn a_read_modify_write_is_whole() {
    let scenario = Scenario::new("torn").thread([acquire(1, 0)]).thread([acquire(2, 0)]);
    check(|| Torn(AtomicU64::new(1)), Spec::exact(&[(3, 10)])).scenario(scenario).run().expect_pass();
}

/// Waits for a flag, and takes it.
struct Waits {
    flag: AtomicU64,
    setter_panics: bool,
}

impl Limiter for Waits {
    fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
        if cost == 2 {
            assert!(!self.setter_panics, "before the flag is set");
            self.flag.store(1, Ordering::Release);
            return Verdict::Admitted;
        }
        while self.flag.swap(0, Ordering::Acquire) == 0 {
            spin_loop();
        }
        Verdict::Admitted
    }
}

#[test]
fn what_follows_on_a_call_given_up_is_not_judged() {
    let make = |setter_panics| move || Waits { flag: AtomicU64::new(0), setter_panics };
    let scenario = || {
        Scenario::new("one flag for two")
            .thread([acquire(2, 0)])
            .thread([acquire(1, 0)])
            .after([acquire(1, 0)])
    };
    // Nobody sets the flag for who comes after: it waits alone, and that is a fault.
    let left = check(make(false), Spec::exact(&[(9, 10)])).frozen(None).scenario(scenario()).run();
    assert_eq!(left.failures[0].property, Property::BoundedAlone, "{left}");
    // One of two waits without end, and then who comes after does, too: that says nothing.
    let two = Scenario::new("one flag for two, at once")
        .thread([acquire(2, 0)])
        .thread([acquire(1, 0)])
        .thread([acquire(1, 0)])
        .after([acquire(1, 0)]);
    let given_up =
        check(make(false), Spec::exact(&[(9, 10)])).frozen(None).bound(1).max_steps(30).scenario(two).run();
    assert!(!given_up.failed(), "{given_up}");
    assert!(given_up.rows[0].given_up > 0);
    // What broke before stands.
    let panics = check(make(true), Spec::exact(&[(9, 10)])).frozen(None).scenario(scenario()).shrink(false);
    let text = fails(panics, Property::NoPanic);
    assert!(text.contains("acquire(2, t=0) panicked: before the flag is set"), "{text}");
}

/// Publishes a plain value by a flag.
struct Published {
    value: UnsafeCell<u64>,
    ready: AtomicU64,
    publish: Ordering,
}

// SAFETY: no contract is met here: the test shows that the checker says so.
unsafe impl Sync for Published {}

impl Limiter for Published {
    fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
        if cost == 2 {
            // SAFETY: as above.
            self.value.with_mut(|value| unsafe { *value = 7 });
            self.ready.store(1, self.publish);
            return Verdict::Never;
        }
        if self.ready.load(Ordering::Acquire) == 1 {
            // SAFETY: as above.
            assert_eq!(self.value.with(|value| unsafe { *value }), 7);
        }
        Verdict::Admitted
    }
}

#[test]
fn a_data_race_is_found_and_its_repair_passes() {
    let make = |publish| move || Published { value: UnsafeCell::new(0), ready: AtomicU64::new(0), publish };
    let scenario = || Scenario::new("publish").thread([acquire(2, 0)]).thread([acquire(1, 0)]);
    let broken = check(make(Ordering::Relaxed), exact()).scenario(scenario());
    fails(broken.shrink(false), Property::DataRace);
    check(make(Ordering::Release), exact()).scenario(scenario()).run().expect_pass();
}

#[test]
fn a_weakened_order_is_used_and_every_weakening_is_listed() {
    let make =
        || Published { value: UnsafeCell::new(0), ready: AtomicU64::new(0), publish: Ordering::Release };
    let scenario = Scenario::new("publish").thread([acquire(2, 0)]).thread([acquire(1, 0)]);
    let check = check(make, exact()).scenario(scenario).shrink(false);
    let weakened = check.run_weakened();
    assert_eq!(weakened.len(), 2, "{weakened:?}");
    for (weakening, report) in weakened {
        assert_eq!(
            report.failures.first().map(|f| f.property),
            Some(Property::DataRace),
            "{weakening}\n{report}"
        );
    }
}

/// Panics when it is beaten.
struct Panics(AtomicU64);

impl Limiter for Panics {
    fn try_acquire(&self, _: u64, _: u64) -> Verdict {
        assert_eq!(self.0.swap(1, Ordering::Relaxed), 0, "not the first");
        Verdict::Admitted
    }
}

#[test]
fn a_panic_is_carried_out() {
    let check = check(|| Panics(AtomicU64::new(0)), exact())
        .scenario(Scenario::new("panic").thread([acquire(1, 0)]).thread([acquire(1, 20)]));
    let text = fails(check, Property::NoPanic);
    assert!(text.contains("acquire(1, t=20) panicked") && text.contains("not the first"), "{text}");
}

#[test]
fn a_call_that_is_not_offered_is_told_with_its_time() {
    let scenario = Scenario::new("no peek").thread([tollgate_check::peek(1, 20)]);
    let report = check(OneWord::new, exact()).scenario(scenario).run();
    assert!(
        matches!(report.outcome, Outcome::Inconclusive { ref why } if why.contains("peek(1, t=20)")),
        "{report}"
    );
}

/// Takes first and gives back if it was too much: a thread that dies in between keeps a permit it never had.
struct TakeAndGiveBack(AtomicU64);

impl Limiter for TakeAndGiveBack {
    fn try_acquire(&self, _: u64, _: u64) -> Verdict {
        if self.0.fetch_add(1, Ordering::Relaxed) < 1 {
            return Verdict::Admitted;
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
        Verdict::yes_or_no(false)
    }
}

#[test]
fn what_a_dead_thread_leaves_is_seen_afterwards() {
    let scenario =
        Scenario::new("gives back").setup([acquire(1, 0)]).thread([acquire(1, 0)]).after([acquire(1, 0)]);
    check(|| TakeAndGiveBack(AtomicU64::new(0)), Spec::exact(&[(1, 10)]))
        .scenario(scenario)
        .run()
        .expect_pass();
    let lost = Scenario::new("loses").thread([acquire(2, 0)]).after([acquire(1, 0), acquire(1, 0)]);
    struct Lossy(AtomicU64);
    impl Limiter for Lossy {
        fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
            // Takes the whole limit while it looks.
            let left = self.0.swap(0, Ordering::AcqRel);
            self.0.store(left.saturating_sub(cost), Ordering::Release);
            Verdict::yes_or_no(left >= cost)
        }
    }
    let check = check(|| Lossy(AtomicU64::new(3)), Spec::exact(&[(3, 100)])).scenario(lost);
    assert!(fails(check, Property::FalseRefusal).contains("frozen"));
}

/// A fixed window in one word.
struct Fixed(AtomicU64);

impl Limiter for Fixed {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        let took = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let (window, count) = ((word >> 32).max(now / 10), word & 0xffff_ffff);
            let count = if window == word >> 32 { count } else { 0 };
            (count + cost <= 2).then_some(window << 32 | (count + cost))
        });
        if cost > 2 { Verdict::Never } else { Verdict::yes_or_no(took.is_ok()) }
    }
}

#[test]
fn a_fixed_window_is_a_counter_of_one_textbook_bucket() {
    let spec = Spec::counter(&[(2, 10)], 1, Coverage::Textbook);
    let report = check(|| Fixed(AtomicU64::new(0)), spec).scenarios(Suite::standard(2, 10)).run();
    assert!(report.passed(), "{report}");
    let exact = check(|| Fixed(AtomicU64::new(0)), Spec::exact(&[(2, 10)]))
        .scenario(Scenario::new("edge").thread([acquire(2, 9), acquire(2, 10)]));
    fails(exact, Property::OverLimit);
}

#[test]
fn an_old_value_breaks_real_time_but_no_order_that_a_caller_can_know() {
    let scenario = || Suite::standard(1, 10).into_iter().find(|s| s.name() == "ticking clock").unwrap();
    check(OneWord::new, exact()).scenario(scenario()).run().expect_pass();
    let strict = check(OneWord::new, exact().order(Order::RealTime)).scenario(scenario());
    assert!(fails(strict, Property::WrongRetryAfter).contains("old value"));
}

#[test]
fn steps_alone_are_bounded() {
    let check = check(OneWord::new, exact())
        .scenario(Scenario::new("alone").setup([acquire(1, 0)]).thread([acquire(1, 5)]))
        .max_steps_alone(1);
    fails(check, Property::BoundedAlone);
}

/// Never frees what it shares.
struct Leaks(Arc<()>, AtomicU64);

impl Limiter for Leaks {
    fn try_acquire(&self, _: u64, _: u64) -> Verdict {
        if self.1.swap(1, Ordering::Relaxed) == 1 {
            std::mem::forget(Arc::clone(&self.0));
            return Verdict::yes_or_no(false);
        }
        Verdict::Admitted
    }
}

#[test]
fn a_leak_is_found() {
    let scenario = Scenario::new("leak").thread([acquire(1, 0)]).thread([acquire(1, 0)]);
    let check = check(|| Leaks(Arc::new(()), AtomicU64::new(0)), exact()).scenario(scenario).shrink(false);
    let report = check.run();
    assert_eq!(report.failures.first().map(|f| f.property), Some(Property::NoLeak), "{report}");
}

#[test]
fn sequentially_consistent_accesses_raise_no_false_alarm() {
    /// Each stores, then looks whether the other has: the waits told are what they saw, and both can not be 0.
    struct Flags([AtomicU64; 2]);
    impl Limiter for Flags {
        fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
            let (mine, other) = (&self.0[cost as usize - 1], &self.0[2 - cost as usize]);
            mine.store(1, Ordering::SeqCst);
            Verdict::Refused { retry_after: Some(other.load(Ordering::SeqCst)) }
        }
    }
    struct OneSeesTheOther;
    impl tollgate_check::Oracle for OneSeesTheOther {
        type State = u64;
        fn name(&self) -> String {
            "the later of two sees the earlier".into()
        }
        fn start(&self) -> u64 {
            0
        }
        fn outcomes(&self, before: &u64, _: &tollgate_check::Question<'_>) -> Option<Vec<(Verdict, u64)>> {
            let saw = |n| (Verdict::Refused { retry_after: Some(n) }, before + 1);
            Some(if *before == 0 { vec![saw(0), saw(1)] } else { vec![saw(1)] })
        }
    }
    let make = || Flags([AtomicU64::new(0), AtomicU64::new(0)]);
    let scenario = || Scenario::new("store, load").thread([acquire(1, 0)]).thread([acquire(2, 0)]);
    let both = check(make, Spec::oracle(OneSeesTheOther)).scenario(scenario()).frozen(None);
    both.run().expect_pass();
    let weaker = both.run_weakened();
    assert!(
        weaker.iter().any(|(_, report)| report.failed()),
        "a store buffer is seen as soon as an order is weaker"
    );
}

/// Keeps a lock that the model does not see, across accesses that it does.
#[derive(Default)]
struct Unseen {
    lock: StdMutex<()>,
    free_at: AtomicU64,
}

impl Limiter for Unseen {
    fn try_acquire(&self, _: u64, now: u64) -> Verdict {
        let _guard = self.lock.lock();
        let free = self.free_at.load(Ordering::Acquire) <= now;
        if free {
            self.free_at.store(now + 10, Ordering::Release);
        }
        Verdict::yes_or_no(free)
    }
}

#[test]
fn a_lock_that_the_model_does_not_see_is_inconclusive() {
    let scenarios = Suite::standard(1, 10);
    let report = check(Unseen::default, Spec::exact(&[(1, 10)])).scenarios(scenarios).run();
    assert!(report.to_string().contains("INCONCLUSIVE, last permit: no atomic access for 10 s"), "{report}");
    assert_eq!(report.rows.len(), 1, "{report}");
}

/// Admits any cost while it is empty.
#[derive(Default)]
struct Greedy(AtomicU64);

impl Limiter for Greedy {
    fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            (taken == 0 || taken + cost <= 2).then_some(taken + cost)
        });
        Verdict::yes_or_no(taken.is_ok())
    }
}

#[test]
fn the_suite_asks_for_more_than_the_limit() {
    let forever = Spec::exact(&[(2, 1 << 32)]);
    fails(check(Greedy::default, forever).scenarios(Suite::standard(2, 10)), Property::OverLimit);
}

/// Two buckets to a window and the one judged. Clears the bucket that it enters, and none that it has passed.
#[derive(Default)]
struct Jumps(AtomicU64);

impl Limiter for Jumps {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let mut counts = [word & 0xFF, word >> 8 & 0xFF, word >> 16 & 0xFF];
            let newest = (word >> 24).max(now / 5);
            let place = (newest % 3) as usize;
            if newest > word >> 24 {
                counts[place] = 0;
            }
            counts[place] += cost;
            let fits = counts.iter().sum::<u64>() <= 2;
            fits.then_some(newest << 24 | counts[2] << 16 | counts[1] << 8 | counts[0])
        });
        Verdict::yes_or_no(taken.is_ok())
    }
}

#[test]
fn the_suite_pauses_for_long() {
    let two_buckets = Spec::counter(&[(2, 10)], 2, Coverage::Full);
    let failed = fails(
        check(Jumps::default, two_buckets).frozen(None).scenarios(Suite::standard(2, 10)),
        Property::FalseRefusal,
    );
    assert!(failed.contains("a long pause"), "{failed}");
}

/// The textbook: a list under a lock.
struct Listed {
    times: Mutex<Vec<u64>>,
    /// Whether the lock is let go between judging and recording.
    lets_go: bool,
}

impl Listed {
    fn new(lets_go: bool) -> impl Fn() -> Listed {
        move || Listed { times: Mutex::new(vec![]).named("times"), lets_go }
    }
}

impl Limiter for Listed {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        let mut times = self.times.lock().unwrap();
        let now = times.last().map_or(now, |&newest: &u64| newest.max(now));
        times.retain(|time| time + 10 > now);
        if times.len() as u64 + cost > 2 {
            return Verdict::yes_or_no(false);
        }
        if self.lets_go {
            drop(times);
            times = self.times.lock().unwrap();
        }
        times.extend((0..cost).map(|_| now));
        Verdict::Admitted
    }
}

#[test]
fn a_lock_is_exhausted_and_is_not_lock_free() {
    let locked = check(Listed::new(false), exact2()).scenarios(Suite::standard(2, 10));
    let report = locked.clone().frozen(None).exhaustive().run();
    assert!(matches!(report.outcome, Outcome::Pass { exhaustive: true, .. }), "{report}");
    let told = fails(locked, Property::LockFree);
    assert!(told.contains("wait for a lock that the frozen thread holds"), "{told}");
    assert!(told.contains("times.lock()  is held: waits"), "{told}");
}

#[test]
fn a_lock_that_is_let_go_is_seen() {
    let check = check(Listed::new(true), exact2()).scenarios(Suite::standard(2, 10));
    let told = fails(check, Property::OverLimit);
    assert!(told.contains("needs 1 preemption") && told.contains("times.unlock()"), "{told}");
}

/// Two locks, taken in the order of the cost.
#[derive(Default)]
struct Crossed(Mutex<u64>, Mutex<u64>);

impl Limiter for Crossed {
    fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
        let (first, second) = if cost == 1 { (&self.0, &self.1) } else { (&self.1, &self.0) };
        let (mut one, mut two) = (first.lock().unwrap(), second.lock().unwrap());
        (*one, *two) = (*one + cost, *two + cost);
        Verdict::yes_or_no(*one <= 3)
    }
}

#[test]
fn locks_that_cross_deadlock() {
    let crossing = Scenario::new("crossing").thread([acquire(1, 5)]).thread([acquire(2, 5)]);
    fails(check(Crossed::default, Spec::exact(&[(3, 100)])).scenario(crossing), Property::Deadlock);
}

/// Panics while it holds a lock.
#[derive(Default)]
struct Bursts(Mutex<u64>);

impl Limiter for Bursts {
    fn try_acquire(&self, cost: u64, _: u64) -> Verdict {
        let mut sum = self.0.lock().unwrap();
        *sum += cost;
        assert!(*sum < 3, "three");
        Verdict::Admitted
    }
}

#[test]
fn a_panic_under_a_lock_is_told_as_a_panic() {
    let scenario = Scenario::new("burst").thread([acquire(1, 5), acquire(1, 5)]).thread([acquire(1, 5)]);
    let told = fails(check(Bursts::default, Spec::exact(&[(9, 9)])).scenario(scenario), Property::NoPanic);
    assert!(told.contains("panicked: three"), "{told}");
}

fn exact2() -> Spec {
    Spec::exact(&[(2, 10)])
}
