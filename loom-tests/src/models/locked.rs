//! A form under a lock, which without std is the core's own spin lock: its answers, and that the lock orders what it
//! guards. Nobody is frozen: who stops while it holds the lock stops all others, as documented.

use std::time::Duration;

use tollgate::Compact;
use tollgate_check::{Scenario, Spec, acquire, peek};

use super::{Model, Subject};
use crate::limiters::{Hot, Told};

fn compact() -> Compact {
    Compact::builder(2, Duration::from_nanos(10)).build().expect("a valid log")
}

pub(super) fn add(models: &mut Vec<Model>) {
    let a = |now| acquire(1, now);
    let spec = || Spec::exact(&[(2, 10)]);
    let hot = Subject::new("compact 2/10 under the spin lock", || Hot(compact()), spec());
    let told = Subject::new("compact 2/10 under the spin lock, told", || Told(compact()), spec());
    models.extend([
        hot.model(Scenario::new("last permit").setup([a(5)]).thread([a(6)]).thread([a(6)]).after([a(6)])),
        hot.model(
            Scenario::new("all expired")
                .setup([a(0), a(0)])
                .thread([a(20)])
                .thread([a(20), a(20)])
                .after([a(30)]),
        ),
        told.model(Scenario::new("waits").setup([a(0)]).thread([a(9)]).thread([peek(2, 9)]).after([a(12)])),
    ]);
}
