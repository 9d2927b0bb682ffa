//! The clocks: manual and rebased.

use std::time::Duration;

use tollgate::{Manual, Nanos, Rebased};
use tollgate_check::{Scenario, Spec, acquire};

use super::{Model, Subject};
use crate::{
    limiters::{Published, Stepping},
    oracles::Asserts,
};

pub(super) fn add(models: &mut Vec<Model>) {
    let make = || {
        let source = Manual::at(Nanos::from_nanos(100));
        Stepping(Rebased::new(source, Duration::from_nanos(5)))
    };
    let clock = Subject::new("rebased", make, Spec::oracle(Asserts));
    let show = |max| acquire(Stepping::SHOW, max);
    let set = |time| acquire(Stepping::SET, time);
    let step = |time| acquire(Stepping::STEP, time);
    let offset = |time| acquire(Stepping::OFFSET, time);
    let manual = Subject::new("manual", Published::default, Spec::oracle(Asserts));
    let published = |how| {
        Scenario::new(if how == Published::SET { "set publishes" } else { "advance publishes" })
            .thread([acquire(how, 7)])
            .thread([acquire(Published::READ, 7)])
    };
    models.extend([
        manual.model(published(Published::SET)).exhaustive(),
        manual.model(published(Published::ADVANCE)).exhaustive(),
    ]);
    models.extend([
        clock.model(
            Scenario::new("a step forward is no step back")
                .setup([show(100)])
                .thread([set(200)])
                .thread([show(200)])
                .thread([show(200)])
                .after([show(200), offset(0)]),
        ),
        clock.model(
            Scenario::new("a gap is closed once")
                .setup([show(100)])
                .thread([set(20)])
                .thread([show(100)])
                .thread([show(100)])
                .after([show(100), offset(80)]),
        ),
        clock.model(
            Scenario::new("a late show")
                .setup([show(100)])
                .thread([set(102), show(104)])
                .thread([set(104), step(101)])
                .after([show(104), offset(0)]),
        ),
        clock
            .model(
                Scenario::new("dies anywhere")
                    .setup([show(100)])
                    .thread([set(20), show(100)])
                    .thread([show(100)])
                    .after([set(20), show(100), offset(80)]),
            )
            .frozen(1),
    ]);
}
