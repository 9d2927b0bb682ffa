//! The sliding-window counter.
//!
//! With buckets of 2 ns a total has 2 bits, so that it wraps at 4; with buckets of 1 ns it has one.

use std::time::Duration;

use tollgate::{Coverage, Window};
use tollgate_check::{Call, Coverage as Covered, Scenario, Spec, acquire, acquire_by_clock, peek};

use super::{Model, Subject};
use crate::{
    deep::Asks,
    limiters::{Hot, Told},
};

type Rules = &'static [(u64, u64)];

fn build(rules: Rules, buckets: u64, coverage: Coverage) -> Window {
    let ns = Duration::from_nanos;
    let mut builder = Window::builder(rules[0].0, ns(rules[0].1)).buckets(buckets).coverage(coverage);
    for &(limit, window) in &rules[1..] {
        builder = builder.rule(limit, ns(window));
    }
    builder.build().expect("a valid counter")
}

fn name(rules: Rules, buckets: u64) -> String {
    let rules: Vec<_> = rules.iter().map(|(limit, window)| format!("{limit}/{window}")).collect();
    format!("counter {} in {buckets}", rules.join(" "))
}

fn hot(rules: Rules, buckets: u64) -> Subject {
    let spec = Spec::counter(rules, buckets, Covered::Full);
    Subject::new(name(rules, buckets), move || Hot(build(rules, buckets, Coverage::Full)), spec)
}

fn textbook(rules: Rules, buckets: u64) -> Subject {
    let name = format!("{} textbook", name(rules, buckets));
    let spec = Spec::counter(rules, buckets, Covered::Textbook);
    Subject::new(name, move || Hot(build(rules, buckets, Coverage::Textbook)), spec)
}

fn told(rules: Rules, buckets: u64) -> Subject {
    let name = format!("{} told", name(rules, buckets));
    let spec = Spec::counter(rules, buckets, Covered::Full);
    Subject::new(name, move || Told(build(rules, buckets, Coverage::Full)), spec)
}

/// For generated scenarios.
pub(super) fn subjects() -> Vec<(Subject, Asks)> {
    let narrow: [(Rules, u64); 5] =
        [(&[(3, 2)], 1), (&[(3, 4)], 2), (&[(3, 6)], 3), (&[(3, 8), (2, 4)], 2), (&[(1, 2)], 2)];
    let both = narrow.iter().flat_map(|&(rules, buckets)| {
        let (least, window) = rules.iter().fold((u64::MAX, 0), |(l, w), rule| (l.min(rule.0), w.max(rule.1)));
        let asks = Asks { cost_max: least, ..Asks::permits(rules[0].1, window) };
        [hot(rules, buckets), textbook(rules, buckets), told(rules, buckets)].map(|subject| (subject, asks))
    });
    both.collect()
}

pub(super) fn add(models: &mut Vec<Model>) {
    let a = acquire;
    let last = hot(&[(2, 4)], 2);
    models.extend([
        last.model(
            Scenario::new("last permit, two threads")
                .setup([a(1, 2)])
                .thread([a(1, 4)])
                .thread([a(1, 4)])
                .after([a(1, 4), a(2, 10)]),
        )
        .exhaustive()
        .frozen(1),
        last.model(
            Scenario::new("last permit")
                .setup([a(1, 2)])
                .thread([a(1, 4)])
                .thread([a(1, 4)])
                .thread([a(1, 4)]),
        ),
        last.model(
            Scenario::new("all expired, three threads")
                .setup([a(2, 2)])
                .thread([a(1, 8)])
                .thread([a(1, 8)])
                .thread([a(1, 9)]),
        )
        .long(),
        last.model(
            Scenario::new("boundary, two threads")
                .setup([a(2, 2)])
                .thread([a(1, 7)])
                .thread([a(1, 8)])
                .after([a(1, 8), a(2, 14)]),
        ),
        last.model(
            Scenario::new("ticking clock")
                .setup([a(2, 2)])
                .clock([7, 8])
                .thread([acquire_by_clock(1), acquire_by_clock(1)])
                .thread([acquire_by_clock(1)]),
        ),
        last.model(
            Scenario::new("first use, three threads")
                .thread([a(1, 3)])
                .thread([a(1, 1), a(1, 12)])
                .thread([a(1, 2)]),
        )
        .long(),
        last.model(
            Scenario::new("first use")
                .thread([a(1, 3)])
                .thread([a(1, 1), a(1, 12)])
                .after([a(1, 2), a(2, 18)]),
        ),
        last.model(
            Scenario::new("times out of order, three threads")
                .setup([a(1, 2)])
                .thread([a(1, 9)])
                .thread([a(1, 3), a(1, 8)])
                .thread([a(1, 6)]),
        )
        .long(),
        last.model(
            Scenario::new("all expired")
                .setup([a(2, 2)])
                .thread([a(1, 8)])
                .thread([a(1, 8), a(1, 9)])
                .after([a(2, 15)]),
        ),
        last.model(
            Scenario::new("times out of order")
                .setup([a(1, 2)])
                .thread([a(1, 9)])
                .thread([a(1, 3), a(1, 8)])
                .after([a(1, 6), a(2, 15)]),
        ),
        // The wait is read off slots that the rival writes.
        last.model(Scenario::new("a look at a jump").setup([a(2, 2)]).thread([peek(1, 9)]).thread([a(2, 8)])),
        last.model(Scenario::new("a look, a lap on").setup([a(2, 2)]).thread([peek(1, 9)]).thread([
            a(1, 8),
            a(1, 12),
            a(1, 16),
        ])),
        last.model(
            Scenario::new("dies anywhere")
                .setup([a(1, 2)])
                .thread([a(1, 7)])
                .thread([a(1, 6), a(1, 9)])
                .after([a(1, 9), a(2, 15)]),
        )
        .frozen(2),
    ]);
    for buckets in [1, 2] {
        let rules: Rules = if buckets == 1 { &[(3, 2)] } else { &[(3, 4)] };
        for subject in [hot(rules, buckets), textbook(rules, buckets)] {
            narrow(models, &subject, buckets);
        }
    }
    let a = in_buckets;
    let wrap = hot(&[(3, 6)], 3);
    let pair = hot(&[(3, 8), (2, 4)], 2);
    let riap = hot(&[(1, 4), (3, 12)], 2);
    let bit = hot(&[(1, 2)], 2);
    models.extend([
        wrap.model(Scenario::new("totals wrap").setup([a(1, 7)]).thread([a(1, 10)]).thread([
            a(1, 7),
            a(2, 10),
            a(1, 12),
            a(3, 13),
        ])),
        wrap.model(
            Scenario::new("totals wrap between two early writes")
                .setup([a(1, 1)])
                .thread([a(1, 9)])
                .thread([a(3, 6), a(1, 10)])
                .after([a(3, 10), a(3, 14)]),
        ),
        wrap.model(
            Scenario::new("two early writes, two writers")
                .setup([a(2, 1)])
                .thread([a(1, 5)])
                .thread([a(1, 5)])
                .thread([a(1, 2)])
                .after([a(3, 6), a(3, 10)]),
        )
        .long(),
        wrap.model(
            Scenario::new("two early writes")
                .setup([a(2, 1)])
                .thread([a(1, 5)])
                .thread([a(1, 2), a(2, 5)])
                .after([a(3, 6), a(3, 10)]),
        ),
        riap.model(
            Scenario::new("two rules, one jump")
                .setup([a(1, 2)])
                .thread([a(1, 6)])
                .thread([a(1, 7)])
                .after([a(1, 9), a(1, 14)]),
        ),
        riap.model(
            Scenario::new("two rules, a jump").setup([a(1, 2)]).thread([a(1, 6)]).thread([a(1, 7), a(1, 12)]),
        )
        .long(),
        pair.model(
            Scenario::new("two rules, the second tighter")
                .setup([a(1, 5)])
                .thread([a(1, 5)])
                .thread([a(1, 5)])
                .after([a(1, 5), a(1, 8)]),
        ),
        pair.model(
            Scenario::new("two rules").setup([a(1, 2)]).thread([a(1, 4), a(1, 7)]).thread([a(2, 5), a(1, 6)]),
        ),
        pair.model(
            Scenario::new("two rules, dies anywhere")
                .setup([a(1, 2)])
                .thread([a(1, 5)])
                .thread([a(2, 6)])
                .after([a(1, 7), a(2, 9)]),
        )
        .frozen(1),
        riap.model(
            Scenario::new("two rules, two jumps")
                .setup([a(1, 2)])
                .thread([a(1, 6), a(1, 9)])
                .thread([a(1, 7), a(1, 12)]),
        )
        .long(),
        bit.model(
            Scenario::new("a total of one bit")
                .setup([acquire(1, 1)])
                .thread([acquire(1, 4)])
                .thread([acquire(1, 4), acquire(1, 7)])
                .after([acquire(1, 9), acquire(1, 10)]),
        ),
        told(&[(2, 4)], 2).model(
            Scenario::new("waits")
                .setup([acquire(2, 2)])
                .thread([acquire(1, 6)])
                .thread([peek(1, 7), acquire(1, 8)])
                .after([acquire(1, 9)]),
        ),
    ]);
}

/// A call in this bucket of 2 ns.
fn in_buckets(cost: u64, bucket: u64) -> Call {
    acquire(cost, 2 * bucket)
}

/// Buckets of 2 ns.
fn narrow(models: &mut Vec<Model>, subject: &Subject, k: u64) {
    let a = in_buckets;
    models.extend([
        subject
            .model(
                Scenario::new("a jump over many buckets, three threads")
                    .setup([a(1, 1), a(1, 2)])
                    .thread([a(1, 2 + k)])
                    .thread([a(1, 4)])
                    .thread([a(1, 9)]),
            )
            .long(),
        subject.model(
            Scenario::new("a jump over many buckets")
                .setup([a(1, 1), a(1, 2)])
                .thread([a(1, 4)])
                .thread([a(1, 9)])
                .after([a(1, 4), a(3, 9), a(3, 9 + k + 1)]),
        ),
        subject.model(
            Scenario::new("one rolls, another admits")
                .setup([a(1, 1)])
                .thread([a(1, 2)])
                .thread([a(1, 1), a(1, 2)])
                .after([a(1, 2), a(3, 9)]),
        ),
        subject.model(Scenario::new("two roll, one late").setup([a(1, 1)]).thread([a(1, 4)]).thread([
            a(1, 3),
            a(1, 3),
            a(1, 8),
        ])),
        subject.model(Scenario::new("2 lost the race").setup([a(1, 1)]).thread([a(2, 4)]).thread([
            a(1, 3),
            a(2, 3),
            a(1, 5),
        ])),
        subject.model(Scenario::new("laps behind").setup([a(1, 1)]).thread([a(1, 2)]).thread([
            a(2, 3),
            a(2, 6),
            a(3, 10),
            a(1, 14),
        ])),
    ]);
}
