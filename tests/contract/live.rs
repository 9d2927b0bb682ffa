//! Rules that change while threads call and time runs.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tollgate::{Algorithm, ByRules, Gcra, Live, Log, Nanos, Rule, Window};

use crate::threads::{Event, Spans, free_running, rounds};

const WINDOW: u64 = 40;
const START: u64 = 1_000;

fn ns(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// What eight threads are answered while the first of them moves the limit to and fro between 4 and 7.
fn run(limiter: &dyn Algorithm, cost: u64, change: &(dyn Fn(u64, Nanos) + Sync)) -> Vec<Event> {
    let (ticks, turns) = (AtomicU64::new(START), AtomicU64::new(0));
    free_running(limiter, cost, 8, 2_000, &|thread| {
        let now = ticks.fetch_add(1, Relaxed);
        if thread == 0 {
            let turn = turns.fetch_add(1, Relaxed);
            change([4, 7][(turn / 3 % 2) as usize], Nanos::from_nanos(now));
        }
        now
    })
}

/// No window is over the larger limit, and nobody is refused while there is room under the smaller one.
fn audit(name: &str, events: &[Event], width: u64, late: u64) {
    let leaves = |t: u64| i128::from((t / width + WINDOW / width + late) * width);
    let admitted = events.iter().filter(|event| event.admitted);
    let surely = admitted.clone().map(|e| (e.to.into(), leaves(e.from), e.cost));
    let most = Spans::new(surely).most();
    assert!((1..=7).contains(&most), "{name}: at most {most} permits within a window");
    let start = |t: u64| i128::from(t / width * width);
    let possibly = Spans::new(admitted.map(|e| (start(e.from), leaves(e.to), e.cost)));
    for denied in events.iter().filter(|event| !event.admitted) {
        let charged = possibly.at(denied.to.into());
        assert!(charged + denied.cost > 4, "{name}: refused {} at {} with room", denied.cost, denied.to);
    }
}

#[test]
fn eight_threads_are_judged_by_the_old_limit_or_the_new() {
    fn by_rules<A: ByRules>(name: &str, limiter: A, cost: u64, width: u64, late: u64) {
        let limiter = Live::new(limiter).unwrap();
        let set = |limit, _| limiter.set_rules(&[Rule::new(limit, ns(WINDOW))]).unwrap();
        audit(name, &run(&limiter, cost, &set), width, late);
    }
    rounds(|_| {
        let log = || Log::builder(7, ns(WINDOW)).capacity(7);
        by_rules("log", log().build().unwrap(), 3, 1, 0);
        by_rules("log, cost 1", log().max_cost(1).build().unwrap(), 1, 1, 0);
        by_rules("counter", Window::builder(7, ns(WINDOW)).buckets(5).build().unwrap(), 3, WINDOW / 5, 1);
    });
}

/// The bucket drains at one rate or the other, whatever the moment of a change is worth by the time it is made: no more
/// than the faster one lets through, and the larger burst, and no less than the slower one.
#[test]
fn eight_threads_get_what_the_rates_let_through() {
    rounds(|_| {
        let bucket = Live::new(Gcra::builder(1, ns(5)).burst(7).build().unwrap()).unwrap();
        let set = |limit, now| bucket.set_rate_at(Rule::new(1, ns(35 / limit)), limit, now).unwrap();
        let events = run(&bucket, 3, &set);
        let permits: u64 = events.iter().filter(|event| event.admitted).map(|event| event.cost).sum();
        let span = events.iter().map(|event| event.to).max().unwrap() - START;
        assert!(permits <= 7 + (START + span) / 5 - START / 35, "{permits} permits in {span} ns");
        assert!(permits >= span / 8 / 4, "{permits} permits in {span} ns");
    });
}
