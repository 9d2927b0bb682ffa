//! Rules that change while calls are made.

use std::time::Duration;

use tollgate::{Algorithm, ByRules, Coverage, Gcra, Live, Log, Nanos, Rule, Sharded, Window};
use tollgate_check::{Call, Limiter, Scenario, Spec, Verdict, When, acquire, reconfigure};

use super::{Model, Subject};
use crate::{
    deep::{Asks, Noise},
    oracles,
};

/// Calls and changes.
struct Changes<A: ByRules>(Live<A>);

impl<A: ByRules> Limiter for Changes<A> {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        Verdict::yes_or_no(self.0.try_acquire_at(cost, Nanos::from_nanos(now)))
    }

    fn peek(&self, cost: u64, now: u64) -> Option<Verdict> {
        Some(Verdict::yes_or_no(self.0.peek_at(cost, Nanos::from_nanos(now)).is_ok()))
    }

    fn reconfigure(&self, rules: &[(u64, u64)]) -> Option<Verdict> {
        let rule = |&(limit, window): &(u64, u64)| Rule::new(limit, Duration::from_nanos(window));
        let rules: Vec<_> = rules.iter().map(rule).collect();
        self.0.set_rules(&rules).ok().map(|()| Verdict::Admitted)
    }
}

/// Calls and changes of rate and burst: a change is `[(limit, window), (burst, now)]`.
struct Rates(Live<Gcra>);

impl Limiter for Rates {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        Verdict::yes_or_no(self.0.try_acquire_at(cost, Nanos::from_nanos(now)))
    }

    fn reconfigure(&self, rules: &[(u64, u64)]) -> Option<Verdict> {
        let &[(limit, window), (burst, now)] = rules else { return None };
        let changed = self.0.set_rate_at(Rule::new(limit, ns(window)), burst, Nanos::from_nanos(now));
        changed.ok().map(|()| Verdict::Admitted)
    }
}

/// A bucket of 2, at a permit in 10 ns and at most one in 5.
fn bucket() -> Subject {
    let build = || {
        let bucket = Gcra::builder(1, ns(10)).burst(2).rate_max(1, ns(5)).build().expect("valid");
        Rates(Live::new(bucket).expect("valid"))
    };
    let spec = Spec::oracle(oracles::Rates { parts: 5, rate: (1, 10), burst: 2 });
    Subject::new("live gcra 1/10", build, spec)
}

/// One call in six is a change.
fn or_change(noise: &mut Noise, asks: Asks, now: When, changes: &[&[(u64, u64)]]) -> Call {
    match noise.below(6) {
        0 => reconfigure(noise.pick(changes)),
        _ => Asks::permit_or_look(noise, asks, now),
    }
}

/// For generated scenarios.
pub(super) fn subjects() -> Vec<(Subject, Asks)> {
    let parted =
        |rules, shards, width, carried| Spec::oracle(oracles::Parted { rules, shards, width, carried });
    let log = |max_cost| {
        let build = move || {
            let log = Log::builder(2, ns(10)).max_cost(max_cost).capacity(3).build().expect("valid");
            Changes(Live::new(log).expect("valid"))
        };
        Subject::new(format!("live log 2/10 by {max_cost}"), build, parted(&[(2, 10)], 1, 1, false))
    };
    let shards = || {
        let log = Log::builder(3, ns(10)).capacity(6).build_sharded(2).expect("valid");
        Changes(Live::new(log).expect("valid"))
    };
    let counter = || {
        let counter = Window::builder(2, ns(16)).buckets(2).coverage(Coverage::Textbook).window_max(ns(32));
        Changes(Live::new(counter.build().expect("valid")).expect("valid"))
    };
    let by_rules = |noise: &mut Noise, asks: Asks, now: When| {
        or_change(noise, asks, now, &[&[(1, 10)], &[(3, 10)], &[(2, 20)], &[(0, 10)], &[(3, 5), (2, 10)]])
    };
    let by_one_rule = |noise: &mut Noise, asks: Asks, now: When| {
        or_change(noise, asks, now, &[&[(2, 10)], &[(6, 10)], &[(3, 5)], &[(0, 10)]])
    };
    let by_buckets = |noise: &mut Noise, asks: Asks, now: When| {
        or_change(noise, asks, now, &[&[(1, 16)], &[(3, 16)], &[(2, 32)], &[(0, 8)]])
    };
    let by_rate = |noise: &mut Noise, asks: Asks, now: When| match (noise.below(6), now) {
        (0, When::At(now)) => {
            let rule = noise.pick(&[(1, 5), (1, 10), (1, 20)]);
            reconfigure(&[rule, (1 + noise.below(2), now)])
        }
        _ => Asks::permit_or_look(noise, asks, now),
    };
    let asks = Asks { call: by_rules, cost_max: 2, ..Asks::permits(10, 10) };
    vec![
        (log(1), Asks { cost_max: 1, ..asks }),
        // Not so far apart that times are carried.
        (log(3), Asks { apart: 15, ..asks }),
        (
            Subject::new("live shards 3/10", shards, parted(&[(3, 10)], 2, 1, false)),
            Asks { call: by_one_rule, by_clock: true, apart: 15, ..asks },
        ),
        (
            Subject::new("live counter 2/16", counter, parted(&[(2, 16)], 1, 8, true)),
            Asks { call: by_buckets, ..Asks::permits(8, 16) },
        ),
        (bucket(), Asks { call: by_rate, peeks: false, ..asks }),
    ]
}

fn rates(models: &mut Vec<Model>) {
    let (a, bucket) = (acquire, bucket());
    models.extend([
        // At 15 the old rate leaves one and a half of what is owed, the new one leaves one.
        bucket
            .model(
                Scenario::new("the rate is raised")
                    .setup([a(2, 10)])
                    .thread([a(1, 15)])
                    .thread([reconfigure(&[(1, 5), (2, 10)])])
                    .after([a(1, 16), a(1, 20), a(1, 24), a(1, 25)]),
            )
            .frozen(0),
        // Two callers, by whichever burst; later ones by the new one and at the new rate.
        bucket.model(
            Scenario::new("burst and rate are lowered")
                .setup([a(1, 6)])
                .thread([a(1, 10)])
                .thread([a(1, 10)])
                .thread([reconfigure(&[(1, 20), (1, 10)])])
                .after([a(1, 21), a(1, 22), a(1, 42), a(1, 62)]),
        ),
        // The copy that the call reads is written again by the second change.
        bucket.model(
            Scenario::new("changed twice")
                .setup([a(2, 10)])
                .thread([a(1, 20)])
                .thread([reconfigure(&[(1, 20), (1, 10)]), reconfigure(&[(1, 5), (1, 12)])])
                .after([a(1, 16), a(1, 17), a(1, 22), a(1, 27)]),
        ),
    ]);
}

pub(super) fn add(models: &mut Vec<Model>) {
    rates(models);
    let a = acquire;
    let build = || {
        Changes(
            Live::new(Log::builder(1, ns(10)).max_cost(1).capacity(2).build().expect("valid"))
                .expect("valid"),
        )
    };
    let log = Subject::new("live log 1/10", build, Spec::exact(&[(1, 10)]));
    models.extend([log
        .model(
            Scenario::new("raised")
                .setup([a(1, 1)])
                .thread([a(1, 2)])
                .thread([reconfigure(&[(2, 10)])])
                .after([a(1, 3), a(1, 11)]),
        )
        .frozen(0)]);
    let build =
        || Changes(Live::new(Log::builder(2, ns(10)).max_cost(1).build().expect("valid")).expect("valid"));
    let pair = Subject::new("live log 2/10", build, Spec::exact(&[(2, 10)]));
    models.push(
        // The copy that the call reads is written again by the second change. All three rules refuse it; the first
        // limit with the last window would not.
        pair.model(
            Scenario::new("changed twice")
                .setup([a(1, 1), a(1, 5)])
                .thread([a(1, 8)])
                .thread([reconfigure(&[(2, 20)]), reconfigure(&[(1, 5)])])
                .after([a(1, 9), a(1, 10)]),
        ),
    );
    let build = || -> Changes<Sharded<Log>> {
        let shards = Log::builder(2, ns(10)).max_cost(1).capacity(4).build_sharded(2).expect("valid");
        Changes(Live::new(shards).expect("valid"))
    };
    let shards = Subject::new("live shards 2/10", build, Spec::exact(&[(2, 10)]));
    models.push(
        // A scan by the lower limit stores its time late, or early: the raised limit takes no notice.
        shards.model(
            Scenario::new("a scan while the limit is raised")
                .setup([a(1, 1), a(1, 1)])
                .thread([a(1, 2)])
                .thread([reconfigure(&[(4, 10)])])
                .after([a(1, 3), a(1, 3)]),
        ),
    );
}

fn ns(n: u64) -> Duration {
    Duration::from_nanos(n)
}
