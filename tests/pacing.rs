//! The queue against a plain list of jobs, and under threads.

use std::{sync::Barrier, thread, time::Duration};

use proptest::prelude::*;
use tollgate::{Algorithm, ConfigError, Gcra, Lapsed, Nanos, Pacing, Reason, Reservation};

const S: u64 = 1_000_000_000;
const SECOND: Duration = Duration::from_secs(1);

fn at(nanos: u64) -> Nanos {
    Nanos::from_nanos(nanos)
}

fn pacing(limit: u64, per: Duration, queue: u64) -> Pacing {
    Pacing::builder(limit, per).queue(queue).build().unwrap()
}

/// A server's jobs as a list: each start is that of the one before, and the time that it takes.
struct Jobs {
    /// Ticks in a nanosecond, and those that a permit takes.
    ticks: u64,
    interval: u64,
    places: u64,
    /// Number, start and end of those that have a place, in ticks.
    list: Vec<(usize, u64, u64)>,
    taken: usize,
}

impl Jobs {
    fn new(limit: u64, per: u64, queue: u64) -> Self {
        let ticks = if (2 * per).is_multiple_of(limit) { 2 } else { 3 };
        let interval = (ticks * per).div_ceil(limit);
        Self { ticks, interval, places: queue + 1, list: Vec::new(), taken: 0 }
    }

    /// Ticks until the server is idle, for one who comes at `now`.
    fn backlog(&self, now: u64) -> u64 {
        self.list.last().map_or(0, |&(_, _, end)| end.saturating_sub(now * self.ticks))
    }

    /// Nanoseconds until `cost` more permits start, if there is room for them.
    fn wait(&self, cost: u64, now: u64) -> Option<u64> {
        let room = (self.places * self.interval).checked_sub(cost * self.interval)?;
        (self.backlog(now) <= room).then(|| self.backlog(now).div_ceil(self.ticks))
    }

    fn push(&mut self, cost: u64, now: u64) -> usize {
        let start = now * self.ticks + self.backlog(now);
        self.list.push((self.taken, start, start + cost * self.interval));
        self.taken += 1;
        self.taken - 1
    }

    fn give_back(&mut self, job: usize, now: u64) -> Result<(), Lapsed> {
        let late = |&(id, start, _): &(usize, u64, u64)| id == job && now > start.div_ceil(self.ticks);
        if self.list.iter().any(late) {
            return Err(Lapsed::Started);
        }
        self.list.pop_if(|&mut (id, ..)| id == job).map(|_| ()).ok_or(Lapsed::NotLast)
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Ahead(u64),
    Back(u64),
    Reserve(u64),
    Try(u64),
    /// Gives back the newest but so many.
    GiveBack(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..3_000_u64).prop_map(Step::Ahead),
        1 => (0..3_000_u64).prop_map(Step::Back),
        5 => (1..6_u64).prop_map(Step::Reserve),
        2 => (1..6_u64).prop_map(Step::Try),
        3 => (0..3_usize).prop_map(Step::GiveBack),
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    #[test]
    fn the_queue_answers_as_a_list_of_jobs(
        limit in 1..500_u64, per in 0..100_000_u64, queue in 0..8_u64, steps in steps(),
    ) {
        let per = limit + per;
        let queue_of_tollgate = pacing(limit, Duration::from_nanos(per), queue);
        let mut jobs = Jobs::new(limit, per, queue);
        let mut held: Vec<(Reservation, usize)> = Vec::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Ahead(span) => now += span,
                Step::Back(span) => now = now.saturating_sub(span),
                Step::Reserve(cost) => {
                    let wait = jobs.wait(cost, now);
                    match queue_of_tollgate.reserve_at(cost, at(now)) {
                        Ok(reservation) => {
                            prop_assert_eq!(Some(reservation.wait().as_nanos()), wait);
                            prop_assert_eq!(reservation.start(), at(now) + reservation.wait());
                            held.push((reservation, jobs.push(cost, now)));
                        }
                        Err(denied) => {
                            prop_assert_eq!(wait, None);
                            prop_assert_eq!(denied.reason == Reason::Never, cost > queue + 1);
                            if let Some(retry) = denied.retry_after() {
                                let then = denied.quota.at.as_nanos() + retry.as_nanos();
                                prop_assert!(retry > Nanos::ZERO);
                                prop_assert_eq!(jobs.wait(cost, then - 1), None);
                                prop_assert!(jobs.wait(cost, then).is_some());
                                prop_assert_eq!(jobs.wait(denied.quota.remaining + 1, now), None);
                            }
                        }
                    }
                }
                Step::Try(cost) => {
                    let wait = jobs.wait(cost, now);
                    let peeked = queue_of_tollgate.peek_at(cost, at(now));
                    prop_assert_eq!(peeked.is_ok(), wait == Some(0));
                    let left = if jobs.backlog(now) == 0 { queue + 1 } else { 0 };
                    let quota = peeked.unwrap_or_else(|denied| denied.quota);
                    prop_assert_eq!((quota.limit, quota.remaining), (queue + 1, left));
                    prop_assert_eq!(queue_of_tollgate.usage_at(0, at(now)), Some(queue + 1 - left));
                    let idle = quota.at + quota.reset_after;
                    prop_assert_eq!(jobs.backlog(idle.as_nanos()), 0);
                    prop_assert!(quota.reset_after == Nanos::ZERO || jobs.backlog(idle.as_nanos() - 1) > 0);
                    if let Err(denied) = peeked {
                        prop_assert_eq!(denied.reason == Reason::Never, cost > queue + 1);
                        prop_assert!(denied.retry_after().is_none_or(|wait| wait == quota.reset_after));
                    }
                    let admitted = queue_of_tollgate.try_acquire_at(cost, at(now));
                    prop_assert_eq!(admitted, wait == Some(0));
                    if admitted {
                        jobs.push(cost, now);
                    }
                }
                Step::GiveBack(back) if back < held.len() => {
                    let (reservation, job) = held.remove(held.len() - 1 - back);
                    prop_assert_eq!(queue_of_tollgate.give_back(reservation, at(now)), jobs.give_back(job, now));
                }
                Step::GiveBack(_) => {}
            }
        }
    }

    /// However callers come, no window holds more starts than its limit.
    #[test]
    fn no_window_holds_more_than_its_limit(
        limit in 1..20_u64, per in 20..100_000_u64, queue in 0..40_u64,
        gaps in prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0..20_000_u64], 1..200),
    ) {
        let queue = pacing(limit, Duration::from_nanos(per), queue);
        let mut now = 0;
        let starts: Vec<_> = gaps
            .iter()
            .filter_map(|gap| {
                now += gap;
                queue.reserve_at(1, at(now)).ok().map(|reservation| reservation.start())
            })
            .collect();
        for pair in starts.windows(limit as usize + 1) {
            prop_assert!(pair[limit as usize] - pair[0] >= at(per), "{pair:?}");
        }
    }
}

#[test]
fn configurations_that_are_refused() {
    let error = |builder: tollgate::PacingBuilder| builder.build().err();
    assert!(matches!(error(Pacing::builder(1, Duration::ZERO)), Some(ConfigError::Window { .. })));
    assert_eq!(error(Pacing::builder(S + 1, SECOND)), Some(ConfigError::Limit { got: S + 1, max: S }));
    assert_eq!(error(Pacing::builder(1, SECOND).max_cost(0)), Some(ConfigError::MaxCost { got: 0, min: 1 }));
    let max = (u64::MAX - Nanos::MAX.as_nanos()) / S - 1;
    for got in [max + 1, u64::MAX] {
        let queue = ConfigError::Burst { got, min: 0, max };
        assert_eq!(error(Pacing::builder(1, SECOND).queue(got)), Some(queue));
    }
    let longest = pacing(1, SECOND, max);
    assert!(longest.reserve_at(max + 1, Nanos::MAX).is_ok());
    let waits = longest.check_at(1, Nanos::MAX).unwrap_err().retry_after();
    assert_eq!(waits, Some(Nanos::from_secs(max + 1)));
}

#[test]
fn costs_and_times_that_can_not_be_served() {
    let queue = Pacing::builder(1, SECOND).queue(3).max_cost(2).build().unwrap();
    let reason = |cost, now| queue.reserve_at(cost, now).unwrap_err().reason;
    assert_eq!(reason(5, at(0)), Reason::Never);
    assert_eq!(reason(3, at(0)), Reason::MaxCost { max: 2 });
    assert_eq!(reason(1, at(1 << 62)), Reason::TimeOutOfRange);
    assert_eq!(queue.usage_at(0, at(0)), Some(0));
    // Cost 0 starts at once, however long the queue, and leaves it as it is.
    assert!(queue.reserve_at(2, at(0)).is_ok() && queue.reserve_at(2, at(0)).is_ok());
    let nothing = queue.reserve_at(0, at(0)).unwrap();
    assert_eq!((nothing.wait(), nothing.start()), (Nanos::ZERO, at(0)));
    assert_eq!(queue.give_back(nothing, at(S)), Ok(()));
    assert_eq!(queue.reserve_at(1, at(0)).unwrap_err().retry_after(), Some(at(S)));
}

#[test]
fn limit_zero_serves_nobody() {
    let queue = pacing(0, SECOND, 4);
    assert_eq!(queue.reserve_at(1, at(0)).unwrap_err().reason, Reason::Never);
    assert_eq!(queue.check_at(1, at(0)).unwrap_err().reason, Reason::Never);
    assert!(queue.reserve_at(0, at(0)).is_ok() && !queue.try_acquire_at(1, at(0)));
}

#[test]
fn a_place_can_not_be_given_back_after_its_start() {
    let queue = pacing(1, SECOND, 1);
    let reservation = queue.reserve_at(1, at(5)).unwrap();
    assert_eq!(queue.give_back(reservation, at(6)), Err(Lapsed::Started));
    assert_eq!(queue.reserve_at(1, at(6)).unwrap().wait(), at(S - 1));
}

#[test]
fn a_reset_lets_reservations_lapse() {
    let mut queue = pacing(1, SECOND, 1);
    let old = queue.reserve_at(1, at(0)).unwrap();
    queue.reset();
    // Ends when the old one would have ended.
    let new = queue.reserve_at(1, at(0)).unwrap();
    assert_eq!(queue.give_back(old, at(0)), Err(Lapsed::NotLast));
    assert_eq!(queue.give_back(new, at(0)), Ok(()));
    assert_eq!((queue.rules().len(), queue.state_bytes()), (1, align_of::<Gcra>()));
}

#[test]
fn f009_queued_callers_all_pile_into_the_next_window() {
    // A wait of up to 10 s of the 12 s that callers have: three may queue.
    let queue = pacing(3, 10 * SECOND, 3);
    let starts: Vec<_> = (0..10).filter_map(|_| queue.reserve_at(1, at(0)).ok()).map(|r| r.start()).collect();
    assert_eq!(starts, [0, 3_333_333_334, 6_666_666_667, 10 * S].map(at));
}

#[test]
fn f051_a_leaky_bucket_used_as_a_queue_that_does_not_delay() {
    let queue = pacing(1, SECOND, 5);
    let starts: Vec<_> = (0..8).filter_map(|_| queue.reserve_at(1, at(0)).ok()).map(|r| r.start()).collect();
    assert_eq!(starts, [0, 1, 2, 3, 4, 5].map(Nanos::from_secs));
    let denied = queue.reserve_at(1, at(0)).unwrap_err();
    assert_eq!((denied.retry_after(), denied.quota.remaining), (Some(at(S)), 0));
    assert!(queue.reserve_at(1, at(S - 1)).is_err());
    assert_eq!(queue.reserve_at(1, at(S)).unwrap().wait(), Nanos::from_secs(5));
}

#[test]
fn f070_a_refund_larger_than_what_was_taken() {
    // A reservation gives back what it took, and only once: it is moved into the call.
    let queue = pacing(1, SECOND, 9);
    for _ in 0..20 {
        let reservation = queue.reserve_at(1, at(S)).unwrap();
        assert_eq!(queue.give_back(reservation, at(S)), Ok(()));
        assert_eq!(queue.peek_at(1, at(S)).unwrap().remaining, 10);
    }
    let full = queue.reserve_at(10, at(S)).unwrap();
    assert!(queue.reserve_at(1, at(S)).is_err());
    assert_eq!(queue.give_back(full, at(S)), Ok(()));
    assert_eq!(queue.peek_at(1, at(S)).unwrap().remaining, 10);
}

#[test]
fn f071_cancelling_reservations_does_not_restore_the_start() {
    for (limit, per) in [(30, SECOND), (60, SECOND), (100, SECOND), (7, 3 * SECOND)] {
        let queue = pacing(limit, per, 2);
        let mut held: Vec<_> = (0..3).map(|_| queue.reserve_at(1, at(0)).unwrap()).collect();
        while let Some(last) = held.pop() {
            assert_eq!(queue.give_back(last, at(0)), Ok(()));
        }
        assert_eq!(queue.usage_at(0, at(0)), Some(0), "{limit} per {per:?}");
        assert!(queue.try_acquire_at(1, at(0)));

        // In forward order all but the last lapse, and give nothing away.
        let queue = pacing(limit, per, 2);
        let held: Vec<_> = (0..3).map(|_| queue.reserve_at(1, at(0)).unwrap()).collect();
        let third = held[2].start();
        let given: Vec<_> = held.into_iter().map(|r| queue.give_back(r, at(0))).collect();
        assert_eq!(given, [Err(Lapsed::NotLast), Err(Lapsed::NotLast), Ok(())]);
        assert_eq!(queue.reserve_at(1, at(0)).unwrap().start(), third);
    }
}

/// Every place goes to one caller, whoever comes and goes: starts are distinct intervals without a gap, and all
/// that lapsed are told so.
#[test]
fn threads_share_the_places() {
    let threads = 4;
    for round in 0..300 {
        let queue = pacing(1_000, SECOND, 39);
        let gate = Barrier::new(threads);
        let kept: Vec<Nanos> = thread::scope(|scope| {
            let hands: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        gate.wait();
                        let mut kept = Vec::new();
                        for turn in 0..8 {
                            let Ok(reservation) = queue.reserve_at(1, at(0)) else { continue };
                            let start = reservation.start();
                            if turn % 2 == 0 || queue.give_back(reservation, at(0)).is_err() {
                                kept.push(start);
                            }
                        }
                        kept
                    })
                })
                .collect();
            hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
        });
        let mut starts = kept;
        starts.sort();
        let places: Vec<_> = (0..starts.len() as u64).map(Nanos::from_millis).collect();
        assert_eq!(starts, places, "round {round}");
        assert!(starts.len() >= threads * 4);
        assert_eq!(queue.reserve_at(1, at(0)).unwrap().start(), Nanos::from_millis(starts.len() as u64));
    }
}
