//! Rules that change while calls are made.

use std::time::Duration;

use tollgate::{Algorithm, Changing, Live, Log, Nanos, Rule, Sharded};
use tollgate_check::{Limiter, Scenario, Spec, Verdict, acquire, reconfigure};

use super::{Model, Subject};

/// Calls and changes.
struct Changes<A: Changing>(Live<A>);

impl<A: Changing> Limiter for Changes<A> {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        Verdict::yes_or_no(self.0.try_acquire_at(cost, Nanos::from_nanos(now)))
    }

    fn reconfigure(&self, rules: &[(u64, u64)]) -> Option<Verdict> {
        let rule = |&(limit, window): &(u64, u64)| Rule::new(limit, Duration::from_nanos(window));
        let rules: Vec<_> = rules.iter().map(rule).collect();
        self.0.set_rules(&rules).ok().map(|()| Verdict::Admitted)
    }
}

pub(super) fn add(models: &mut Vec<Model>) {
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
