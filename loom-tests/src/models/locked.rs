//! The forms under a lock, which without std is the core's own spin lock: their answers, and that the lock orders what it
//! guards. Nobody is frozen: who stops while it holds the lock stops all others, as documented.

use std::time::Duration;

use tollgate::{Algorithm, Compact, Sampled, Wheel};
use tollgate_check::{Scenario, Spec, acquire, peek};

use super::{Model, Subject};
use crate::{
    limiters::{Hot, Told},
    oracles,
};

const WINDOW: Duration = Duration::from_nanos(10);

/// Ticks of a nanosecond, so that it is exact.
fn compact() -> Compact {
    Compact::builder(2, WINDOW).build().expect("a valid log")
}

/// Slots of a nanosecond, so that it is exact; a window is two turns and a half.
fn wheel() -> Wheel {
    Wheel::builder(2, WINDOW).geometry(3, 4, Duration::from_nanos(1)).build().expect("a valid wheel")
}

fn sampled() -> Sampled {
    Sampled::builder(4, WINDOW).every(2).build().expect("a valid log")
}

/// `permits` of the limit are worth one of a limit of two.
fn add_to<A: Algorithm + 'static>(
    models: &mut Vec<Model>,
    name: &str,
    make: fn() -> A,
    spec: fn() -> Spec,
    permits: u64,
) {
    let a = |now| acquire(permits, now);
    let hot = Subject::new(name, move || Hot(make()), spec());
    let told = Subject::new(format!("{name}, told"), move || Told(make()), spec());
    models.extend([
        hot.model(
            Scenario::new("last permit")
                .setup([a(5)])
                .thread([acquire(1, 6)])
                .thread([a(6)])
                .after([acquire(1, 6), a(6)]),
        ),
        hot.model(
            Scenario::new("all expired")
                .setup([a(0), a(0)])
                .thread([a(20)])
                .thread([a(20), a(20)])
                .after([a(30)]),
        ),
        told.model(
            Scenario::new("waits")
                .setup([a(0)])
                .thread([a(9)])
                .thread([peek(2 * permits, 9)])
                .after([a(12), acquire(2 * permits, 12)]),
        ),
    ]);
}

pub(super) fn add(models: &mut Vec<Model>) {
    let exact = || Spec::exact(&[(2, 10)]);
    let of_sampled = || Spec::oracle(oracles::Sampled { limit: 4, window: 10, m: 2 });
    add_to(models, "compact 2/10 under the spin lock", compact, exact, 1);
    add_to(models, "wheel 2/10 under the spin lock", wheel, exact, 1);
    add_to(models, "sampled 4/10 by 2 under the spin lock", sampled, of_sampled, 2);
}
