//! Shards. The tens of a call's cost are the shard that it begins with.

use std::time::Duration;

use tollgate::{Algorithm, Coverage, Log, Nanos, Shard, Sharded, Window};
use tollgate_check::{Call, Limiter, Oracle, Question, Scenario, Spec, Verdict, When, acquire, peek};

use super::{Model, Subject};
use crate::{
    deep::{Asks, Noise},
    oracles::{Carried, Parted},
};

/// The form of the shards.
#[derive(Clone, Copy)]
enum Form {
    Unit,
    Costs,
    /// With buckets of 1 ns, which is an exact log to the nanosecond, judged up to the newest time carried.
    Counter,
}

/// Calls that begin where they say.
struct Homed<A: Shard>(Sharded<A>);

/// An oracle to which it is all one where a call begins.
struct Anywhere(Carried);

/// One permit, from this shard on.
fn from(home: u64, now: u64) -> Call {
    acquire(10 * home + 1, now)
}

impl<A: Shard> Limiter for Homed<A> {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        let (home, cost) = (cost as usize / 10, cost % 10);
        Verdict::yes_or_no(self.0.try_acquire_from(home, cost, Nanos::from_nanos(now)))
    }

    fn peek(&self, cost: u64, now: u64) -> Option<Verdict> {
        Some(Verdict::yes_or_no(self.0.peek_at(cost, Nanos::from_nanos(now)).is_ok()))
    }
}

impl Oracle for Anywhere {
    type State = <Carried as Oracle>::State;

    fn name(&self) -> String {
        self.0.name()
    }

    fn start(&self) -> Self::State {
        self.0.start()
    }

    fn outcomes(&self, state: &Self::State, question: &Question<'_>) -> Option<Vec<(Verdict, Self::State)>> {
        let call = match *question.call {
            Call::Acquire { cost, now } => Call::Acquire { cost: cost % 10, now },
            ref other => other.clone(),
        };
        self.0.outcomes(state, &Question { call: &call, ..*question })
    }
}

/// So many permits in any 10 ns, in two shards, is one history.
fn subject(form: Form, rules: &'static [(u64, u64)]) -> Subject {
    let [rule] = *rules else { unreachable!("shards take one rule") };
    let half_span = if matches!(form, Form::Counter) { 0 } else { u64::MAX };
    sharded(form, 2, rule, Spec::oracle(Anywhere(Carried { rules, half_span })))
}

fn sharded(form: Form, shards: usize, (limit, window): (u64, u64), spec: Spec) -> Subject {
    let ns = Duration::from_nanos(window);
    let name = |form| format!("shards {shards} of {form} {limit}/{window}");
    match form {
        Form::Unit => {
            let build =
                move || Homed(Log::builder(limit, ns).max_cost(1).build_sharded(shards).expect("valid"));
            Subject::new(name("log unit"), build, spec)
        }
        Form::Costs => {
            let build = move || Homed(Log::builder(limit, ns).build_sharded(shards).expect("valid"));
            Subject::new(name("log costs"), build, spec)
        }
        Form::Counter => {
            let counter = move || Window::builder(limit, ns).buckets(window).coverage(Coverage::Textbook);
            let build = move || Homed(counter().build_sharded(shards).expect("valid"));
            Subject::new(name("counter"), build, spec)
        }
    }
}

/// For generated scenarios: by the clock, since with times that step back answers are not exact; costs as well.
pub(super) fn subjects() -> Vec<(Subject, Asks)> {
    let call = |noise: &mut Noise, asks: Asks, now: When| match Asks::permit_or_look(noise, asks, now) {
        Call::Acquire { cost, now } => Call::Acquire { cost: 10 * noise.below(3) + cost, now },
        look => look,
    };
    type Row = (Form, u64, &'static [(u64, u64)], u64);
    let all: [Row; 7] = [
        (Form::Unit, 2, &[(2, 10)], 1),
        (Form::Unit, 2, &[(3, 10)], 1),
        (Form::Unit, 3, &[(2, 10)], 1),
        (Form::Costs, 2, &[(4, 10)], 2),
        (Form::Costs, 3, &[(6, 10)], 2),
        (Form::Counter, 2, &[(2, 10)], 1),
        (Form::Counter, 3, &[(2, 10)], 1),
    ];
    let all = all.map(|(form, shards, rules, cost_max)| {
        let carried = matches!(form, Form::Counter);
        let spec = Spec::oracle(Parted { rules, shards, width: 1, carried });
        let asks = Asks { call, cost_max, by_clock: true, ..Asks::permits(10, 10) };
        (sharded(form, shards as usize, rules[0], spec), asks)
    });
    all.into()
}

pub(super) fn add(models: &mut Vec<Model>) {
    let a = from;
    for form in [Form::Unit, Form::Costs] {
        let four = subject(form, &[(4, 10)]);
        models.extend([
            // The first shard frees a permit while the second is asked: no one time at which both were full.
            four.model(
                Scenario::new("counter-example")
                    .setup([a(0, 0), a(0, 0), a(1, 5)])
                    .thread([a(0, 9)])
                    .thread([a(0, 10), a(1, 9)]),
            ),
            // What was known to be full is taken back by whoever is admitted, for those who come late.
            four.model(
                Scenario::new("taken back")
                    .setup([a(0, 0), a(0, 0), a(1, 0), a(1, 0), a(0, 5)])
                    .thread([a(0, 10)])
                    .thread([a(1, 10)])
                    .after([a(0, 9), a(1, 9), a(0, 9)]),
            ),
        ]);
    }
    for form in [Form::Unit, Form::Counter] {
        // A turn of the counter passes ten buckets: what waits for one is long.
        let long = |model: Model| if matches!(form, Form::Counter) { model.long() } else { model };
        let two = subject(form, &[(2, 10)]);
        models.extend([
            two.model(
                Scenario::new("last permit").setup([a(0, 1)]).thread([a(0, 2)]).thread([a(1, 2)]).after([
                    a(0, 3),
                    a(1, 11),
                    a(0, 12),
                ]),
            )
            .frozen(1),
            long(
                two.model(
                    Scenario::new("refused until the first is free")
                        .setup([a(0, 1), a(1, 6)])
                        .thread([a(0, 10)])
                        .thread([a(1, 11)])
                        .after([a(0, 11), a(1, 16), a(1, 17)]),
                ),
            ),
            // Whoever is refused by what a scan has stored sees what the scan saw.
            two.model(
                Scenario::new("a look after a refusal")
                    .setup([a(0, 1)])
                    .thread([a(1, 2), a(0, 3)])
                    .thread([a(0, 4), peek(1, 4)]),
            ),
            long(
                two.model(
                    Scenario::new("a slow scan")
                        .setup([a(0, 1), a(1, 1)])
                        .thread([a(0, 10)])
                        .thread([a(1, 11), a(0, 12)])
                        .after([a(1, 12), a(1, 22)]),
                ),
            ),
            two.model(
                Scenario::new("ticking clock")
                    .setup([a(0, 1), a(1, 1)])
                    .clock([10, 11])
                    .thread([by_clock(0), by_clock(1)])
                    .thread([by_clock(1)]),
            )
            .long(),
        ]);
    }
    models.push(
        subject(Form::Unit, &[(2, 10)])
            // A scan that stores its time after a later one has been admitted: whoever comes with an older time is refused.
            .model(
                Scenario::new("a time that steps back")
                    .setup([a(0, 0), a(1, 0)])
                    .thread([a(0, 9)])
                    .thread([a(1, 10)])
                    .after([a(0, 9)]),
            )
            .documented(),
    );
}

/// One permit at the time that the clock shows, from this shard on.
fn by_clock(home: u64) -> Call {
    tollgate_check::acquire_by_clock(10 * home + 1)
}
