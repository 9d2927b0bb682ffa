//! Threads on the forms that live in one word: exact totals while time stands still, and no span of time over what the
//! form promises while it runs. Rounds as in `threads`.

use std::{sync::Mutex, time::Duration};

use tollgate::{Algorithm, Fixed, Gcra, Nanos, Pacing, TwoWindow};

use crate::{
    oracle::Grain,
    threads::{
        A_SHARED_CLOCK, CLOCKS_THAT_DISAGREE, EVERY_CALL_TICKS, Event, REAL_TIME, Spans, audit, clock,
        free_running, from_a_barrier, rounds, sum,
    },
};

const LIMIT: u64 = 6;
const WINDOW: u64 = 48;
/// Nanoseconds in which a permit of the rate comes back.
const INTERVAL: u64 = WINDOW / LIMIT;
const BURST: u64 = 5;

fn window() -> Duration {
    Duration::from_nanos(WINDOW)
}

fn fixed() -> Fixed {
    Fixed::builder(LIMIT, window()).build().unwrap()
}

fn two_window() -> TwoWindow {
    TwoWindow::builder(LIMIT, window()).build().unwrap()
}

fn gcra() -> Gcra {
    Gcra::builder(LIMIT, window()).burst(BURST).build().unwrap()
}

fn pacing() -> Pacing {
    Pacing::builder(LIMIT, window()).queue(BURST).build().unwrap()
}

/// Threads take what is free, most of it dear, until nothing is: together exactly what was free to the first of them.
fn exact_totals(name: &str, limiter: &dyn Algorithm, threads: usize, times: &[u64]) {
    let free = Mutex::new(Vec::new());
    // Round `2 n` asks what is free, round `2 n + 1` takes it.
    let results = from_a_barrier(threads, 2 * times.len(), |thread, round| {
        let now = Nanos::from_nanos(times[round / 2]);
        if round % 2 == 0 {
            if thread == 0 {
                free.lock().unwrap().push(limiter.peek_at(0, now).unwrap().remaining);
            }
            return 0;
        }
        let mut taken = 0;
        for cost in [1 + thread as u64 % 3, 1] {
            while limiter.try_acquire_at(cost, now) {
                taken += cost;
            }
        }
        taken
    });
    let (free, mut some) = (free.into_inner().unwrap(), 0);
    for ((taken, free), now) in sum(&results).skip(1).step_by(2).zip(free).zip(times) {
        assert_eq!(taken, free, "{name}, {threads} threads at {now}");
        some += taken;
    }
    assert!(some > 0, "{name}: nothing was ever free");
}

#[test]
fn threads_take_exactly_what_is_free_from_one_word() {
    rounds(|n| {
        for threads in [2, 4, 8] {
            let times = clock(1_600 / threads, n);
            exact_totals("fixed", &fixed(), threads, &times);
            exact_totals("two windows", &two_window(), threads, &times);
            exact_totals("GCRA", &gcra(), threads, &times);
        }
    });
}

/// A free run of a limiter on each clock.
fn free_runs(make: fn() -> Box<dyn Algorithm>, check: impl Fn(&str, &[Event])) {
    let clocks = [
        ("every call ticks", EVERY_CALL_TICKS),
        ("a shared clock", A_SHARED_CLOCK),
        ("clocks that disagree", CLOCKS_THAT_DISAGREE),
        ("real time", REAL_TIME),
    ];
    rounds(|_| {
        for (name, clock) in clocks {
            for threads in [2, 4, 8] {
                let events = free_running(&*make(), 3, threads, 40_000 / threads, &clock());
                let admitted = events.iter().filter(|event| event.admitted).count();
                assert!(admitted > 20, "{name}: {admitted} admissions go through few windows");
                check(&format!("{name}, {threads} threads"), &events);
            }
        }
    });
}

/// Admissions are forgotten at the end of their own window.
const ALIGNED: Grain = Grain { width: WINDOW, phase: 0, late: 0 };

#[test]
fn no_fixed_window_is_over_and_no_refusal_false() {
    free_runs(|| Box::new(fixed()), |name, events| audit(name, events, ALIGNED, &[(LIMIT, WINDOW)]));
}

/// At least each of the two windows keeps the limit, whatever the weight of the other.
#[test]
fn neither_of_two_windows_is_over() {
    free_runs(
        || Box::new(two_window()),
        |name, events| {
            let admitted = events.iter().filter(|event| event.admitted);
            let surely = admitted.map(|e| (e.to.into(), ALIGNED.leaves(e.from, WINDOW), e.cost));
            let most = Spans::new(surely).most();
            assert!(most <= LIMIT, "{name}: {most} permits within a window");
        },
    );
}

/// In any span of time the admissions that carried a time in it cost at most the burst and what comes back meanwhile,
/// whatever their order: each adds its charge to a moment that was not before the start, and the last of them fits.
#[test]
fn no_span_of_time_has_more_than_the_burst_and_the_rate() {
    free_runs(
        || Box::new(gcra()),
        |name, events| {
            let mut admitted: Vec<_> =
                events.iter().filter(|e| e.admitted).map(|e| (e.from, e.cost)).collect();
            admitted.sort_unstable();
            // With charges in nanoseconds: a queue that drains one a nanosecond never exceeds the burst.
            let (mut queue, mut last) = (0_u64, 0_u64);
            for (now, cost) in admitted {
                queue = queue.saturating_sub(now - last) + cost * INTERVAL;
                last = now;
                assert!(queue <= BURST * INTERVAL, "{name}: {queue} ns of permits at {now}");
            }
        },
    );
}

/// Places that were not given back never overlap, begin no sooner than asked for, and wait no longer than the queue.
#[test]
fn no_two_places_of_the_queue_overlap() {
    rounds(|_| {
        for threads in [2, 4, 8] {
            let (queue, clock, all) = (pacing(), EVERY_CALL_TICKS(), Mutex::new(Vec::new()));
            let one = |thread: usize, n: usize| {
                let (cost, now) = (1 + (thread + n) as u64 % 3, Nanos::from_nanos(clock(thread)));
                let Ok(place) = queue.reserve_at(cost, now) else { return 0 };
                let start = place.start();
                assert!(start >= now && place.wait() == start - now);
                assert!(place.wait().as_nanos() + cost * INTERVAL <= (BURST + 1) * INTERVAL);
                if n.is_multiple_of(2) && queue.give_back(place, now).is_ok() {
                    return 1;
                }
                all.lock().unwrap().push((start.as_nanos(), cost));
                0
            };
            let given =
                from_a_barrier(threads, 1, |thread, _| (0..24_000 / threads).map(|n| one(thread, n)).sum());
            let mut all = all.into_inner().unwrap();
            all.sort_unstable();
            for pair in all.windows(2) {
                assert!(pair[0].0 + pair[0].1 * INTERVAL <= pair[1].0, "{threads} threads: {pair:?} overlap");
            }
            let given = sum(&given).sum::<u64>();
            assert!(all.len() > 100 && given > 100, "{} places kept, {given} given back", all.len());
        }
    });
}
