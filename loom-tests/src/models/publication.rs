//! Rules in memory that processes share: replaced by writers who may stop anywhere, and followed by calls.

use std::time::Duration;

use tollgate::{
    Log, Nanos, Rule,
    shared::{OneRuled, OneValue},
};
use tollgate_check::{Call, Limiter, Oracle, Question, Scenario, Spec, Verdict, acquire, reconfigure};

use super::{Model, Subject};

/// A value: a change is `[(value, 0)]`, a call of cost 1 reads it.
struct Value(OneValue);

/// The same in one piece.
struct Register;

/// Calls of two processes, which are told by odd and even times, and changes.
struct Ruled(OneRuled<Log>);

impl Limiter for Value {
    /// Tells the value as a wait, so that the harness compares it.
    fn try_acquire(&self, _: u64, _: u64) -> Verdict {
        Verdict::Refused { retry_after: Some(self.0.get().into()) }
    }

    fn reconfigure(&self, rules: &[(u64, u64)]) -> Option<Verdict> {
        self.0.set(u32::try_from(rules.first()?.0).ok()?);
        Some(Verdict::Admitted)
    }
}

impl Oracle for Register {
    type State = u64;

    fn name(&self) -> String {
        "the value set last".into()
    }

    fn start(&self) -> u64 {
        0
    }

    fn outcomes(&self, value: &u64, question: &Question<'_>) -> Option<Vec<(Verdict, u64)>> {
        Some(vec![match question.call {
            Call::Reconfigure { rules } => (Verdict::Admitted, rules.first()?.0),
            _ => (Verdict::Refused { retry_after: Some(*value) }, *value),
        }])
    }
}

impl Limiter for Ruled {
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict {
        Verdict::yes_or_no(self.0.try_acquire_at((now % 2) as usize, cost, Nanos::from_nanos(now)))
    }

    fn reconfigure(&self, rules: &[(u64, u64)]) -> Option<Verdict> {
        let rule = |&(limit, window): &(u64, u64)| Rule::new(limit, Duration::from_nanos(window));
        let rules: Vec<_> = rules.iter().map(rule).collect();
        self.0.set_rules(&rules).ok().map(|()| Verdict::Admitted)
    }
}

fn set(value: u64) -> Call {
    reconfigure(&[(value, 0)])
}

fn get() -> Call {
    acquire(1, 0)
}

pub(super) fn add(models: &mut Vec<Model>) {
    let value = Subject::new("shared value", || Value(OneValue::default()), Spec::oracle(Register));
    models.extend([
        value
            .model(
                Scenario::new("read while it changes").thread([set(1)]).thread([get(), get()]).after([get()]),
            )
            .frozen(1)
            .exhaustive(),
        // The slot that is read is written again by the second change.
        value
            .model(
                Scenario::new("read while it changes twice")
                    .setup([set(1)])
                    .thread([set(2), set(3)])
                    .thread([get()]),
            )
            .exhaustive(),
        // One takes over from the other, or is late. Chance, by which nobody waits, lets them take over in turn without end.
        value
            .model(Scenario::new("two writers").thread([set(1)]).thread([set(2)]).after([get()]))
            .frozen(1)
            .not_by_chance(),
        // Whoever is late finds its slot in force.
        value
            .model(
                Scenario::new("two writers, one of them twice")
                    .thread([set(1)])
                    .thread([set(2), set(3)])
                    .after([get()]),
            )
            .not_by_chance(),
        value
            .model(
                Scenario::new("two writers and a reader").thread([set(1)]).thread([set(2)]).thread([get()]),
            )
            .frozen(0)
            .not_by_chance(),
        // Tags end at 7, and begin again at 1.
        value.model(
            Scenario::new("tags come round")
                .setup((1..=6).map(set))
                .thread([set(7), set(8)])
                .thread([get(), get()])
                .after([get()]),
        ),
    ]);
    let build = || {
        Ruled(
            OneRuled::new(Log::builder(1, ns(10)).max_cost(1).capacity(2).build().expect("valid"))
                .expect("valid"),
        )
    };
    let ruled = Subject::new("shared rules of a log 1/10", build, Spec::exact(&[(1, 10)]));
    let a = acquire;
    models.extend([
        // Both processes notice, and so do two threads of one.
        ruled.model(
            Scenario::new("raised")
                .setup([a(1, 1)])
                .thread([a(1, 2)])
                .thread([reconfigure(&[(2, 10)])])
                .after([a(1, 3), a(1, 4)]),
        ),
        ruled.model(
            Scenario::new("two threads notice")
                .setup([a(1, 1), reconfigure(&[(2, 10)])])
                .thread([a(1, 2)])
                .thread([a(1, 2)])
                .after([a(1, 12), a(1, 14), a(1, 16)]),
        ),
        // One of the copies is of rules that are in force no more.
        ruled.model(
            Scenario::new("noticed, and it changes again")
                .setup([a(1, 1), reconfigure(&[(2, 10)])])
                .thread([a(1, 2), a(1, 4)])
                .thread([reconfigure(&[(1, 10)])])
                .after([a(1, 12), a(1, 14)]),
        ),
    ]);
}

fn ns(n: u64) -> Duration {
    Duration::from_nanos(n)
}
