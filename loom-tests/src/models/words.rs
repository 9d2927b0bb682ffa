//! The forms that live in one word: GCRA, the pacing queue, the two-window counter, the fixed window.

use std::time::Duration;

use tollgate::{Fixed, Gcra, Pacing, TwoWindow};
use tollgate_check::{Scenario, Spec, acquire, acquire_by_clock, peek, refund};

use super::{Model, Subject};
use crate::{
    deep::Asks,
    limiters::{Hot, Queue, Told},
    oracles,
};

const WINDOW: u64 = 10;

fn ns(n: u64) -> Duration {
    Duration::from_nanos(n)
}

fn gcra() -> Gcra {
    Gcra::builder(2, ns(WINDOW)).burst(2).build().expect("valid")
}

fn fixed() -> Fixed {
    Fixed::builder(2, ns(WINDOW)).build().expect("valid")
}

fn two() -> TwoWindow {
    TwoWindow::builder(2, ns(WINDOW)).build().expect("valid")
}

/// The forms that answer by one word, by the hot path.
fn hot() -> [Subject; 3] {
    [
        Subject::new("gcra 2/10", || Hot(gcra()), Spec::gcra(2, WINDOW, 2)),
        Subject::new("fixed 2/10", || Hot(fixed()), of_fixed()),
        Subject::new("two windows 2/10", || Hot(two()), of_two()),
    ]
}

fn of_fixed() -> Spec {
    Spec::oracle(oracles::Fixed { limit: 2, window: WINDOW })
}

fn of_two() -> Spec {
    Spec::oracle(oracles::TwoWindow { limit: 2, window: WINDOW })
}

fn queue() -> Subject {
    let make = || Queue {
        pacing: Pacing::builder(1, ns(WINDOW)).queue(2).build().expect("valid"),
        places: Vec::new().into(),
    };
    Subject::new("pacing 1/10", make, Spec::oracle(oracles::Queue { interval: WINDOW, queue: 2 }))
}

/// For generated scenarios.
pub(super) fn subjects() -> Vec<(Subject, Asks)> {
    let asks = Asks { cost_max: 2, peeks: false, ..Asks::permits(WINDOW, WINDOW) };
    let mut subjects: Vec<_> = hot().map(|subject| (subject, asks)).into();
    subjects.push((queue(), Asks { refunds: true, ..asks }));
    subjects
}

pub(super) fn add(models: &mut Vec<Model>) {
    for subject in hot() {
        one_word(models, &subject);
    }
    let a = acquire;
    let waits =
        Scenario::new("waits").setup([a(2, 3)]).thread([a(1, 7)]).thread([a(1, 12)]).after([a(2, 12)]);
    models.extend([
        Subject::new("gcra 2/10 told", move || Told(gcra()), Spec::gcra(2, WINDOW, 2))
            .model(waits.clone().thread([peek(1, 8)]))
            .exhaustive(),
        Subject::new("fixed 2/10 told", move || Told(fixed()), of_fixed()).model(waits.clone()).exhaustive(),
        Subject::new("two windows 2/10 told", move || Told(two()), of_two()).model(waits).exhaustive(),
    ]);
    let queue = queue();
    models.extend([
        queue
            .model(
                Scenario::new("last place")
                    .setup([a(1, 5)])
                    .thread([a(1, 6)])
                    .thread([a(1, 7)])
                    .thread([a(1, 8)]),
            )
            .exhaustive(),
        queue
            .model(
                Scenario::new("given back, against a newcomer")
                    .setup([a(1, 5)])
                    .thread([a(1, 6), refund(1, 6)])
                    .thread([a(2, 7)])
                    .after([a(1, 8)]),
            )
            .exhaustive()
            .frozen(1),
        queue
            .model(
                Scenario::new("given back in any order")
                    .thread([a(1, 6), refund(1, 6)])
                    .thread([a(1, 7), refund(1, 7)])
                    .after([a(1, 8), a(2, 9)]),
            )
            .exhaustive(),
    ]);
}

fn one_word(models: &mut Vec<Model>, subject: &Subject) {
    let a = acquire;
    models.extend([
        subject
            .model(
                Scenario::new("last permit")
                    .setup([a(1, 5)])
                    .thread([a(1, 6)])
                    .thread([a(1, 6)])
                    .thread([a(1, 6)])
                    .after([a(1, 6)]),
            )
            .exhaustive(),
        subject
            .model(
                Scenario::new("boundary and an older time")
                    .setup([a(2, 9)])
                    .thread([a(1, 19)])
                    .thread([a(1, 20)])
                    .thread([a(1, 14)])
                    .after([a(1, 20), a(2, 41)]),
            )
            .exhaustive(),
        subject
            .model(
                Scenario::new("one rolls, another admits")
                    .setup([a(1, 9)])
                    .thread([a(2, 25)])
                    .thread([a(1, 9), a(1, 25)])
                    .after([a(1, 31), a(2, 50)]),
            )
            .exhaustive()
            .frozen(1),
        subject.model(
            Scenario::new("ticking clock")
                .setup([a(2, 9)])
                .clock([19, 20])
                .thread([acquire_by_clock(1), acquire_by_clock(1)])
                .thread([acquire_by_clock(1)]),
        ),
        subject
            .model(Scenario::new("first use").thread([a(1, 3)]).thread([a(2, 1)]).thread([a(1, 12)]))
            .exhaustive(),
    ]);
}
