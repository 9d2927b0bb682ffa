//! The exact log, in both of its forms.
//!
//! Under the model the head of the form with costs keeps 5 bits of the time, so that it switches banks after 32 ns.

use std::time::Duration;

use tollgate::Log;
use tollgate_check::{Scenario, Spec, acquire, acquire_by_clock, peek};

use super::{Model, Subject};
use crate::{
    deep::{ANY, Asks},
    limiters::{Hot, Told},
    oracles::Carried,
};

type Rules = &'static [(u64, u64)];

const ONE: Rules = &[(1, 10)];
const TWO: Rules = &[(2, 10)];
const THREE: Rules = &[(3, 10)];
const PAIR: Rules = &[(3, 10), (2, 4)];
/// The second rule is as large as the ring, the first is not.
const TIGHT_FIRST: Rules = &[(1, 4), (2, 10)];
const TIGHT_FIRST_COSTS: Rules = &[(2, 4), (3, 10)];

fn build(rules: Rules, max_cost: u64) -> Log {
    let ns = Duration::from_nanos;
    let mut builder = Log::builder(rules[0].0, ns(rules[0].1)).max_cost(max_cost);
    for &(limit, window) in &rules[1..] {
        builder = builder.rule(limit, ns(window));
    }
    builder.build().expect("a valid log")
}

/// A limit of 1 takes the unit form whatever the largest cost: the models say *costs* all the same, for a log that
/// would not.
fn name(rules: Rules, max_cost: u64) -> String {
    let form = if max_cost == 1 { "unit" } else { "costs" };
    let rules: Vec<_> = rules.iter().map(|(limit, window)| format!("{limit}/{window}")).collect();
    format!("log {form} {}", rules.join(" "))
}

fn hot(rules: Rules, max_cost: u64) -> Subject {
    Subject::new(name(rules, max_cost), move || Hot(build(rules, max_cost)), Spec::exact(rules))
}

fn told(rules: Rules, max_cost: u64) -> Subject {
    let name = format!("{} told", name(rules, max_cost));
    Subject::new(name, move || Told(build(rules, max_cost)), Spec::exact(rules))
}

/// Half of what the head of the form with costs keeps of the time, under the model. A whole one later a head may recur,
/// which `Log` documents: so the newest times of a generated scenario, from the last before its threads on, are less than that apart.
const HALF_SPAN: u64 = 16;

/// For generated scenarios.
pub(super) fn subjects() -> Vec<(Subject, Asks)> {
    let asks = |rules: Rules, cost_max, apart| {
        let window = rules.iter().map(|rule| rule.1).max().unwrap_or(0);
        Asks { cost_max, apart, ..Asks::permits(rules[0].1, window) }
    };
    let mut subjects = Vec::new();
    for rules in [ONE, TWO, PAIR, TIGHT_FIRST] {
        subjects.push((hot(rules, 1), asks(rules, 1, ANY)));
    }
    for rules in [TWO, THREE, PAIR, TIGHT_FIRST_COSTS] {
        subjects.push((hot(rules, 3), asks(rules, 2, HALF_SPAN - 1)));
        let name = format!("{} far", name(rules, 3));
        let spec = Spec::oracle(Carried { rules, half_span: HALF_SPAN });
        let far = asks(rules, 2, HALF_SPAN + 4);
        subjects.push((Subject::new(name, move || Hot(build(rules, 3)), spec), far));
    }
    subjects.push((told(TWO, 1), asks(TWO, 1, ANY)));
    subjects.push((told(THREE, 3), asks(THREE, 3, HALF_SPAN - 1)));
    subjects
}

pub(super) fn add(models: &mut Vec<Model>) {
    for max_cost in [1, 3] {
        both(models, max_cost);
    }
    costs(models);
}

/// What either form must bear.
fn both(models: &mut Vec<Model>, max_cost: u64) {
    let (tight_first, full) = match max_cost {
        1 => (TIGHT_FIRST, vec![acquire(1, 0), acquire(1, 4)]),
        _ => (TIGHT_FIRST_COSTS, vec![acquire(2, 0), acquire(1, 4)]),
    };
    let (one, two, pair, riap) =
        (hot(ONE, max_cost), hot(TWO, max_cost), hot(PAIR, max_cost), hot(tight_first, max_cost));
    let a = |now| acquire(1, now);
    let three = |name: &str, setup: [u64; 2], at: [u64; 3]| {
        let threads = at.map(|now| [acquire(1, now)]);
        let setup = setup.into_iter().filter(|&now| now != u64::MAX).map(|now| acquire(1, now));
        threads.into_iter().fold(Scenario::new(name).setup(setup), Scenario::thread)
    };
    models.extend([
        two.model(
            Scenario::new("last permit, two threads")
                .setup([a(5)])
                .thread([a(6)])
                .thread([a(6)])
                .after([a(6)]),
        )
        .exhaustive()
        .frozen(1),
        two.model(three("last permit", [5, u64::MAX], [6, 6, 6])),
        two.model(three("all expired, three threads", [0, 0], [20, 20, 20])).long(),
        two.model(
            Scenario::new("all expired").setup([a(0), a(0)]).thread([a(20)]).thread([a(20), a(20)]).after([
                a(20),
                a(29),
                a(30),
            ]),
        ),
        one.model(three("boundary, W - 1 and W", [0, u64::MAX], [9, 10, 11])),
        one.model(
            Scenario::new("boundary, two threads")
                .setup([a(0)])
                .thread([a(9)])
                .thread([a(10)])
                .after([a(19), a(20)]),
        )
        .exhaustive(),
        one.model(Scenario::new("a lap behind").setup([a(0)]).thread([a(20)]).thread([a(21), a(31), a(41)]))
            .frozen(1),
        two.model(Scenario::new("a lap behind, ring of 2").setup([a(0), a(0)]).thread([a(20)]).thread([
            a(21),
            a(21),
            a(31),
            a(31),
        ])),
        pair.model(
            Scenario::new("two rules, a lap behind").setup([a(0), a(0), a(9)]).thread([a(20)]).thread([
                a(20),
                a(20),
                a(24),
            ]),
        ),
        riap.model(
            Scenario::new("two rules, the second full")
                .setup(full.clone())
                .thread([a(8), a(10)])
                .thread([a(10), a(14)]),
        ),
        riap.model(
            Scenario::new("two rules, four at the end slot").setup(full.clone()).thread([a(14)]).thread([
                a(14),
                a(18),
                a(24),
            ]),
        ),
        two.model(
            Scenario::new("times out of order, three threads")
                .setup([a(0), a(0)])
                .thread([a(12)])
                .thread([a(9), a(11)])
                .thread([a(10)]),
        )
        .long(),
        two.model(
            Scenario::new("times out of order")
                .setup([a(0), a(0)])
                .thread([a(12)])
                .thread([a(9), a(11)])
                .after([a(10), a(21), a(22)]),
        ),
        two.model(
            Scenario::new("an older time").setup([a(0)]).thread([a(12)]).thread([a(3)]).after([a(13), a(22)]),
        )
        .exhaustive(),
        two.model(
            Scenario::new("first use, three threads").thread([a(3)]).thread([a(1), a(12)]).thread([a(2)]),
        )
        .long(),
        two.model(Scenario::new("first use").thread([a(3)]).thread([a(1), a(12)]).after([a(2), a(13)])),
        // The look-back of the second rule is the slot of an admission to come.
        pair.model(
            Scenario::new("two rules, a look-back a lap on")
                .setup([a(0), a(0), a(9)])
                .thread([a(20)])
                .thread([a(14), a(18)])
                .after([a(20)]),
        ),
        pair.model(
            Scenario::new("a look, a lap behind")
                .setup([a(0), a(0), a(9)])
                .thread([peek(1, 20)])
                .thread([a(14), a(18)])
                .after([a(20)]),
        )
        .long(),
        two.model(Scenario::new("a look, a lap on").setup([a(0), a(0)]).thread([peek(1, 12)]).thread([
            a(10),
            a(11),
            a(20),
            a(21),
        ]))
        .long(),
        two.model(
            Scenario::new("ticking clock")
                .setup([a(5), a(5)])
                .clock([14, 15])
                .thread([acquire_by_clock(1), acquire_by_clock(1)])
                .thread([acquire_by_clock(1)]),
        ),
        two.model(
            Scenario::new("dies anywhere").setup([a(0)]).thread([a(11)]).thread([a(11), a(21)]).after([
                a(21),
                a(21),
                a(31),
            ]),
        )
        .frozen(2),
    ]);
    // In the unit form an unmoved hint does not show that the slot at its end was claimed meanwhile.
    models.extend([
        told(ONE, max_cost).model(
            Scenario::new("waits").setup([a(0)]).thread([a(9), peek(1, 9)]).thread([a(10)]).after([a(12)]),
        ),
        told(tight_first, max_cost).model(
            Scenario::new("waits").setup(full.clone()).thread([peek(1, 7)]).thread([a(10)]).after([a(11)]),
        ),
    ]);
}

/// What only costs can do.
fn costs(models: &mut Vec<Model>) {
    let (two, three, pair) = (hot(TWO, 3), hot(THREE, 3), hot(PAIR, 3));
    let a = acquire;
    models.extend([
        three.model(
            Scenario::new("2 against 1 and 1")
                .thread([a(2, 1), a(2, 11)])
                .thread([a(1, 1), a(1, 11)])
                .after([a(1, 11)]),
        ),
        three.model(
            Scenario::new("3, ring wrapped")
                .thread([a(3, 1), a(3, 11)])
                .thread([a(1, 11), a(3, 21)])
                .after([a(3, 31)]),
        ),
        three
            .model(
                Scenario::new("3 unfilled")
                    .setup([a(3, 0)])
                    .thread([a(1, 10)])
                    .thread([a(2, 10), a(1, 10)])
                    .after([a(3, 20)]),
            )
            .frozen(1),
        pair.model(Scenario::new("two rules").thread([a(2, 1), a(2, 5)]).thread([
            a(1, 1),
            a(1, 5),
            a(2, 11),
        ])),
        // Late by a lap, and by the time that the slots show: the first look must not believe it.
        three.model(
            Scenario::new("2 claim within one look")
                .setup([a(3, 0)])
                .thread([a(1, 10)])
                .thread([a(1, 10), a(2, 10)])
                .after([a(1, 20)]),
        ),
        two.model(
            Scenario::new("bank switches").thread([a(1, 5), a(1, 100)]).thread([a(1, 5), a(1, 95)]).after([
                a(1, 110),
                a(2, 300),
                a(1, 305),
            ]),
        )
        .frozen(1),
        two.model(Scenario::new("three far jumps").thread([a(1, 5), a(1, 100), a(1, 300)]).thread([
            a(1, 5),
            a(1, 95),
            a(1, 290),
        ]))
        .long(),
        two.model(
            Scenario::new("late in a bank switch, and a lap").setup([a(2, 5)]).thread([a(1, 100)]).thread([
                a(1, 90),
                a(1, 101),
                a(1, 111),
            ]),
        )
        .long(),
        two.model(
            Scenario::new("late in a bank switch")
                .setup([a(2, 5)])
                .thread([a(1, 100)])
                .thread([a(1, 90), a(1, 101)])
                .after([a(1, 110), a(2, 120)]),
        ),
        two.model(
            Scenario::new("an abandoned proposal")
                .setup([a(2, 5)])
                .thread([a(1, 50)])
                .thread([a(1, 200)])
                .after([a(2, 201), a(1, 201), a(1, 300)]),
        )
        .frozen(1),
        // A head from before two switches, beside the base of the second, makes the unfilled slots too late.
        two.model(
            Scenario::new("an old head beside a new base")
                .setup([a(2, 5)])
                .thread([a(1, 15)])
                .thread([a(1, 50), a(1, 100)])
                .after([a(1, 101)]),
        ),
        two.model(
            Scenario::new("a look across two bank switches")
                .setup([a(2, 5)])
                .thread([peek(1, 15)])
                .thread([a(1, 50), a(1, 100)]),
        ),
        two.model(
            Scenario::new("a late proposal").setup([a(1, 5)]).thread([a(1, 60)]).thread([a(1, 120)]).after([
                a(1, 121),
                a(1, 180),
                a(1, 240),
            ]),
        ),
        two.model(
            Scenario::new("a look at an admission").setup([a(1, 5)]).thread([peek(1, 14)]).thread([a(1, 12)]),
        ),
        two.model(
            Scenario::new("a proposal while the base is in use")
                .setup([a(1, 5)])
                .thread([a(1, 100)])
                .thread([a(1, 50), a(1, 110)])
                .after([a(1, 111), a(1, 121)]),
        ),
        // The slots of the two are filled while the look still takes them for the newest.
        three.model(
            Scenario::new("a look while two are filled")
                .setup([a(1, 0), a(1, 1), a(1, 6)])
                .thread([peek(1, 12)])
                .thread([a(2, 15), a(1, 16)]),
        ),
        // The one who proposed finds its proposal passed by a rival that is not done yet.
        two.model(
            Scenario::new("a passed proposal")
                .setup([a(2, 30)])
                .thread([a(2, 60), peek(2, 71)])
                .thread([a(1, 200)]),
        ),
        two.model(Scenario::new("a late proposal, and a lap").setup([a(1, 5)]).thread([a(1, 60)]).thread([
            a(1, 120),
            a(1, 180),
            a(1, 240),
        ]))
        .long(),
        // The head recurs to the bit: 64 ns, two switches and twice the capacity later.
        two.model(
            Scenario::new("the head recurs")
                .setup([a(2, 16)])
                .thread([a(1, 30)])
                .thread([a(2, 48), a(2, 80)])
                .after([a(1, 81)]),
        )
        .documented(),
        told(THREE, 3).model(
            Scenario::new("waits of 2")
                .setup([a(2, 0)])
                .thread([peek(2, 5)])
                .thread([a(1, 6)])
                .after([a(3, 12)]),
        ),
    ]);
}
