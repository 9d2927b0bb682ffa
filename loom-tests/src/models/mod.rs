//! The models: one scenario on one limiter each.

mod clock;
mod counter;
mod give_back;
mod keyed;
mod layers;
mod live;
mod locked;
mod log;
#[cfg(tollgate_loom)]
mod publication;
mod shards;
#[cfg(tollgate_loom)]
mod shared;
mod waiting;
mod words;

use crate::deep::Asks;
use tollgate_check::{Check, Limiter, Scenario, Spec, check};

/// One scenario on one limiter, and what is expected of it.
pub struct Model {
    /// The limiter's name and the scenario's.
    pub name: String,
    /// To be given its bound, and run.
    pub check: Check,
    /// Whether to run without a bound as well.
    pub exhaustive: bool,
    /// Preemptions of the others while one thread is frozen after each of its steps; `None`: nobody is frozen.
    pub frozen: Option<u8>,
    /// What must come out.
    pub expect: Expect,
    /// Whether it is too long for every change, and runs by a command.
    pub long: bool,
    /// Whether random schedules are run as well.
    pub by_chance: bool,
}

/// What must come out of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Every promise is kept.
    Pass,
    /// A limit that the documentation states: it breaks, or the documentation is wrong.
    Documented,
}

/// Every model.
pub fn all() -> Vec<Model> {
    let mut models = Vec::new();
    log::add(&mut models);
    counter::add(&mut models);
    layers::add(&mut models);
    keyed::add(&mut models);
    give_back::add(&mut models);
    waiting::add(&mut models);
    words::add(&mut models);
    locked::add(&mut models);
    shards::add(&mut models);
    #[cfg(tollgate_loom)]
    shared::add(&mut models);
    #[cfg(tollgate_loom)]
    publication::add(&mut models);
    live::add(&mut models);
    clock::add(&mut models);
    models
}

/// Limiters for generated scenarios.
pub(crate) fn subjects() -> Vec<(Subject, Asks)> {
    let all = [
        log::subjects,
        counter::subjects,
        words::subjects,
        shards::subjects,
        live::subjects,
        layers::subjects,
        keyed::subjects,
    ];
    all.iter().flat_map(|subjects| subjects()).collect()
}

/// A limiter to make models of.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) check: Check,
}

impl Subject {
    fn new<L: Limiter>(
        name: impl Into<String>,
        make: impl Fn() -> L + Send + Sync + 'static,
        spec: Spec,
    ) -> Self {
        let name = name.into();
        Self { check: check(make, spec).name(name.clone()).frozen(None).stop_at_first(true), name }
    }

    /// Every scenario is a model; threads are not frozen in it.
    fn model(&self, scenario: Scenario) -> Model {
        let name = format!("{}: {}", self.name, scenario.name());
        let check = self.check.clone().scenario(scenario);
        Model {
            name,
            check,
            exhaustive: false,
            frozen: None,
            expect: Expect::Pass,
            long: false,
            by_chance: true,
        }
    }
}

impl Model {
    /// Runs without a bound as well: it takes seconds.
    fn exhaustive(mut self) -> Self {
        self.exhaustive = true;
        self
    }

    /// Freezes every thread after each of its steps as well, with so many preemptions of the others.
    fn frozen(mut self, preemptions: u8) -> Self {
        self.frozen = Some(preemptions);
        self
    }

    fn long(mut self) -> Self {
        self.long = true;
        self
    }

    /// What is documented breaks in one random schedule of many.
    fn documented(mut self) -> Self {
        self.expect = Expect::Documented;
        self.not_by_chance()
    }

    fn not_by_chance(mut self) -> Self {
        self.by_chance = false;
        self
    }
}
