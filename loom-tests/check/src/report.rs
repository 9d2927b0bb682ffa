//! What a run found.

mod interleaving;
mod json;

use std::{fmt, time::Duration};

use crate::{
    Property, Scenario,
    check::{Describe, EXHAUSTS},
    engine::Witness,
    history::{Record, thread_name},
    limiter::{Call, When},
    trace::{Access, Event, SiteOrder},
};

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The limiter's name.
    pub name: String,
    /// What it was held to.
    pub spec: String,
    /// The bound on preemptions that was asked for.
    pub bound: u8,
    /// The verdict over all.
    pub outcome: Outcome,
    /// One for each scenario, and for each thread of it that was frozen.
    pub rows: Vec<Row>,
    /// The broken promises, at most one for each row.
    pub failures: Vec<Failure>,
    /// The sites of atomic accesses made while threads ran, with the orders written there.
    pub orders: Vec<SiteOrder>,
}

/// The verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No promise was broken in any interleaving that was run.
    Pass {
        /// Interleavings run.
        executions: u64,
        /// Whether these were all there are (in loom's model of memory), for every row. Otherwise the bound on
        /// preemptions held, and this is no proof.
        exhaustive: bool,
    },
    /// A promise is broken; see [`Report::failures`].
    Fail,
    /// Nothing can be said.
    Inconclusive {
        /// Why.
        why: String,
    },
}

/// One scenario.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub scenario: String,
    /// The thread that was frozen after each of its steps in turn.
    pub frozen: Option<usize>,
    /// The largest bound on preemptions within which every interleaving was run.
    pub bound: Option<u8>,
    /// Whether every interleaving without a bound was run.
    pub exhaustive: bool,
    /// Interleavings run, over all bounds.
    pub executions: u64,
    /// Interleavings given up because a call waited (by a spin hint) too long for a thread that was not frozen, or saw
    /// old values without end, as loom allows and no machine does. Nothing is said about these.
    pub given_up: u64,
    /// The most atomic steps of one call while other threads ran.
    pub steps: u32,
    /// The most atomic steps of one call in setup and after.
    pub steps_alone: u32,
    /// Time taken.
    pub time: Duration,
    /// The promise broken.
    pub broken: Option<Property>,
    /// The fewest preemptions that show it; `None` if only the run without a bound did.
    pub needs: Option<u8>,
    /// Why the run ended before its bound was done.
    pub cut: Option<String>,
    /// Why there is no verdict.
    pub void: Option<String>,
    /// Whether the run hung.
    pub(crate) hung: bool,
}

/// A broken promise and the execution that shows it.
#[derive(Clone)]
pub struct Failure {
    /// The promise.
    pub property: Property,
    /// What happened, in words.
    pub words: String,
    /// The smallest scenario found that shows it.
    pub scenario: Scenario,
    /// The fewest preemptions that show it; `None` if only the run without a bound did.
    pub preemptions: Option<u8>,
    /// The thread that was frozen and after how many of its atomic steps.
    pub frozen: Option<(usize, u32)>,
    /// The calls.
    pub history: Vec<Record>,
    /// The interleaving.
    pub events: Vec<Event>,
    /// Whether a load saw a value that another thread had already replaced.
    pub stale: bool,
    /// The number of the execution, for [`Check::replay`](crate::Check::replay).
    pub execution: u64,
    seed: u64,
    names: Vec<String>,
    describe: Option<Describe>,
}

// === impl Row ===

impl Row {
    /// Whether a call hung where the checker does not see it: then this is the last row.
    pub fn hung(&self) -> bool {
        self.hung
    }
}

// === impl Report ===

impl Report {
    /// Whether all promises were kept.
    pub fn passed(&self) -> bool {
        matches!(self.outcome, Outcome::Pass { .. })
    }

    /// Whether a promise is broken.
    pub fn failed(&self) -> bool {
        self.outcome == Outcome::Fail
    }

    /// For tests: panics with the report unless all promises were kept. Without the model, where nothing can be
    /// proved, only a broken promise panics.
    ///
    /// # Panics
    /// As said.
    #[track_caller]
    pub fn expect_pass(&self) {
        let excused = cfg!(not(tollgate_loom)) && !self.failed();
        assert!(self.passed() || excused, "\n{self}");
    }

    /// This report with all times zero, to be compared with an earlier one.
    #[must_use]
    pub fn without_times(&self) -> Report {
        let mut report = self.clone();
        report.rows.iter_mut().for_each(|row| row.time = Duration::ZERO);
        report
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        json::report(self)
    }

    pub(crate) fn note(&mut self, sites: &[SiteOrder]) {
        self.orders.extend_from_slice(sites);
        self.orders.sort_by_key(|seen| (seen.site, seen.op));
        self.orders.dedup();
    }

    /// Draws the verdict from the rows.
    pub(crate) fn conclude(&mut self) {
        let void = self.rows.iter().find_map(|row| Some(format!("{}: {}", row.scenario, row.void.as_ref()?)));
        let cut = self.rows.iter().find_map(|row| Some(format!("{}: {}", row.scenario, row.cut.as_ref()?)));
        let smoke =
            "built without --cfg tollgate_loom: real threads ran and broke nothing, which proves nothing";
        if self.rows.iter().any(Row::hung) {
            // Whatever keeps the calls apart, the checker does not see it: what broke may be the same.
            self.failures.clear();
        }
        self.outcome = if !self.failures.is_empty() {
            Outcome::Fail
        } else if let Some(why) = void {
            Outcome::Inconclusive { why }
        } else if cfg!(not(tollgate_loom)) {
            Outcome::Inconclusive { why: smoke.into() }
        } else if let Some(why) = cut {
            Outcome::Inconclusive { why }
        } else {
            let executions = self.rows.iter().map(|row| row.executions).sum();
            Outcome::Pass { executions, exhaustive: self.rows.iter().all(|row| row.exhaustive) }
        };
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} against \"{}\": {}\n", self.name, self.spec, self.outcome)?;
        writeln!(
            f,
            "{:<32} {:<6} {:<11} {:>10} {:>5} {:>5} {:>8}  verdict",
            "scenario", "frozen", "preemptions", "executions", "steps", "alone", "time"
        )?;
        for row in &self.rows {
            let frozen = row.frozen.map_or("-".into(), thread_name);
            let bound = match (row.exhaustive, row.bound, row.broken, row.needs) {
                (_, _, Some(_), Some(needs)) => format!("needs {needs}"),
                (_, _, Some(_), None) if EXHAUSTS => "needs more".into(),
                (true, ..) => "any".into(),
                (false, Some(bound), ..) => format!("up to {bound}"),
                (false, ..) => "-".into(),
            };
            let verdict = match (&row.broken, &row.void, &row.cut) {
                (Some(property), ..) => format!("FAIL: {property}"),
                (None, Some(why), _) | (None, None, Some(why)) => format!("inconclusive: {why}"),
                (None, None, None) if row.exhaustive => "pass, exhaustive".into(),
                (None, None, None) if row.given_up > 0 => {
                    format!("pass within the bound; {} given up", row.given_up)
                }
                (None, None, None) => "pass within the bound".into(),
            };
            writeln!(
                f,
                "{:<32} {:<6} {:<11} {:>10} {:>5} {:>5} {:>7.2}s  {verdict}",
                row.scenario,
                frozen,
                bound,
                row.executions,
                row.steps,
                row.steps_alone,
                row.time.as_secs_f64()
            )?;
        }
        // The same bug tends to break several rows: one interleaving for each promise.
        let mut shown = Vec::new();
        for failure in &self.failures {
            if !shown.contains(&failure.property) {
                shown.push(failure.property);
                write!(f, "\n{failure}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Pass { executions, exhaustive: true } => {
                write!(f, "PASS, all {executions} executions (exhaustive)")
            }
            Outcome::Pass { executions, exhaustive: false } => {
                write!(f, "PASS, {executions} executions (bounded: not a proof)")
            }
            Outcome::Fail => f.write_str("FAIL"),
            Outcome::Inconclusive { why } => write!(f, "INCONCLUSIVE, {why}"),
        }
    }
}

// === impl Failure ===

impl Failure {
    pub(crate) fn new(
        scenario: Scenario,
        preemptions: Option<u8>,
        frozen: Option<(usize, u32)>,
        witness: Witness,
        describe: Option<Describe>,
    ) -> Failure {
        Failure {
            property: witness.property,
            words: witness.words,
            scenario,
            preemptions,
            frozen,
            history: witness.records,
            events: witness.events,
            stale: witness.stale,
            execution: witness.execution,
            seed: witness.seed,
            names: witness.names,
            describe,
        }
    }

    /// The interleaving, one line for each atomic access.
    pub fn interleaving(&self) -> Vec<String> {
        interleaving::lines(self)
    }

    fn word(&self, word: u32) -> &str {
        self.names.get(word as usize).map_or("?", String::as_str)
    }

    fn value(&self, word: u32, value: u64) -> String {
        let words = self.describe.as_ref().and_then(|describe| describe(self.word(word), value));
        words.unwrap_or_else(|| value.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "BROKEN: {}, in \"{}\"", self.property, self.scenario.name)?;
        writeln!(f, "  {}", self.words)?;
        match self.frozen {
            Some((thread, 1)) => {
                writeln!(f, "  with {} frozen after its first atomic step", thread_name(thread))?
            }
            Some((thread, step)) => {
                writeln!(f, "  with {} frozen after {step} of its atomic steps", thread_name(thread))?;
            }
            None => {}
        }
        match self.preemptions {
            Some(0) => writeln!(f, "  needs no preemption: the threads run one after the other")?,
            Some(1) => writeln!(f, "  needs 1 preemption")?,
            Some(n) => writeln!(f, "  needs {n} preemptions")?,
            None if cfg!(tollgate_shuttle) => writeln!(f, "  found by a random schedule")?,
            None if cfg!(not(tollgate_loom)) => writeln!(f, "  found by real threads, without the model")?,
            None => writeln!(f, "  needs more preemptions than the bound")?,
        }
        if self.stale {
            writeln!(f, "  needs a load that sees an old value, as weak memory orders allow")?;
        }
        writeln!(f, "\n  calls, in the order in which they began")?;
        let mut calls: Vec<_> = self.history.iter().collect();
        calls.sort_by_key(|record| record.began);
        for record in calls {
            let answer = match record.answer {
                Some(answer) => answer.to_string(),
                None if self.frozen.is_some_and(|(thread, _)| thread == record.thread) => {
                    "frozen inside".into()
                }
                None => "did not return".into(),
            };
            writeln!(f, "    {:<28} {answer}", record.title())?;
        }
        if !self.events.is_empty() {
            writeln!(f, "\n  interleaving")?;
            for line in self.interleaving() {
                writeln!(f, "    {line}")?;
            }
            let bound = self.preemptions.map_or("None".into(), |bound| format!("Some({bound})"));
            writeln!(f, "\n  replay")?;
            write!(f, "    check(..).scenario({})", code(&self.scenario))?;
            if let Some((thread, steps)) = self.frozen {
                write!(f, ".frozen_at({thread}, {steps})")?;
            }
            if cfg!(tollgate_shuttle) {
                write!(f, ".seed({})", self.seed)?;
            }
            writeln!(f, ".replay({bound}, {}).run()", self.execution)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("property", &self.property)
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

/// The scenario as one would write it.
fn code(scenario: &Scenario) -> String {
    let call = |call: &Call| match call {
        Call::Acquire { cost, now: When::Clock } => format!("acquire_by_clock({cost})"),
        Call::Reconfigure { rules } => format!("reconfigure(&{rules:?})"),
        Call::Acquire { cost, now: When::At(now) } => format!("acquire({cost}, {now})"),
        Call::Peek { cost, now: When::At(now) } => format!("peek({cost}, {now})"),
        Call::Refund { cost, now: When::At(now) } => format!("refund({cost}, {now})"),
        other => format!("{other:?}"),
    };
    let list = |calls: &[Call]| calls.iter().map(call).collect::<Vec<_>>().join(", ");
    let mut code = format!("Scenario::new({:?})", scenario.name);
    if !scenario.clock.is_empty() {
        code += &format!(".clock({:?})", scenario.clock);
    }
    if !scenario.setup.is_empty() {
        code += &format!(".setup([{}])", list(&scenario.setup));
    }
    for calls in &scenario.threads {
        code += &format!(".thread([{}])", list(calls));
    }
    if !scenario.after.is_empty() {
        code += &format!(".after([{}])", list(&scenario.after));
    }
    code
}
