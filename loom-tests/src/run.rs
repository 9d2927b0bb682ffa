//! The models run, and their table.

use std::{
    collections::BTreeSet,
    fs, thread,
    time::{Duration, Instant},
};

use tollgate_check::{Outcome, Report, Row};

use crate::{
    models::{Expect, Model, all},
    orders::home,
    pool,
};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Preemptions at most.
    pub bound: u8,
    /// The long models too.
    pub long: bool,
    /// Whether to freeze threads, and to run without a bound where a model says so.
    pub deep: bool,
    /// Only models whose name contains all of these.
    pub only: Vec<String>,
    /// Names of models that [`kill`] tries first.
    pub first: Vec<String>,
    /// Models at once, each in a process.
    pub processes: usize,
    /// For deep runs: what seeds them, and schedules for each model and each limiter.
    pub seed: u64,
    /// See `seed`.
    pub runs: u64,
    /// Time at most for each scenario and bound.
    pub max_time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let processes = thread::available_parallelism().map_or(1, |n| n.get());
        let max_time = Duration::from_secs(600);
        let (only, first) = (vec![], vec![]);
        Self { bound: 2, long: false, deep: true, only, first, seed: 0, runs: 1_000, processes, max_time }
    }
}

impl Options {
    /// The models asked for; `Err` names two that bear one name, of which a table could not tell which is which.
    pub(crate) fn models(&self) -> Result<Vec<Model>, String> {
        let mut models = all();
        if let Some(name) = named_twice(&models) {
            return Err(format!("two models are named \"{name}\""));
        }
        models.retain(|model| {
            (self.long || !model.long) && self.only.iter().all(|part| model.name.contains(part.as_str()))
        });
        Ok(models)
    }
}

impl Model {
    /// Runs this model.
    pub fn run(&self, options: &Options) -> Report {
        let mut check = self.check.clone().bound(options.bound).max_time(options.max_time);
        check = check.max_executions(20_000_000);
        if options.deep && self.exhaustive {
            check = check.exhaustive();
        }
        if options.deep {
            check = check.frozen(self.frozen);
        }
        check.run()
    }
}

fn named_twice(models: &[Model]) -> Option<&str> {
    let mut names = BTreeSet::new();
    models.iter().map(|model| model.name.as_str()).find(|name| !names.insert(*name))
}

/// Runs the models and prints one row for each; `Err` tells how many did not end as expected.
///
/// # Errors
/// As said.
pub fn run(options: &Options) -> Result<(), String> {
    let start = Instant::now();
    if !pool::is_copy() {
        println!("{}", heading());
    }
    let results = pool::each(
        || options.models(),
        options.processes,
        |model| {
            let began = Instant::now();
            let report = model.run(options);
            let as_expected = match (model.expect, &report.outcome) {
                // Without the model real threads run, and prove nothing.
                (_, Outcome::Inconclusive { .. }) => cfg!(not(tollgate_loom)),
                (Expect::Pass, Outcome::Pass { .. }) | (Expect::Documented, Outcome::Fail) => true,
                _ => false,
            };
            println!("{}", row(model, &report, began.elapsed()));
            if !as_expected {
                println!("\n{}: expected {:?}\n{report}", model.name, model.expect);
            }
            if as_expected { String::new() } else { model.name.clone() }
        },
    )?;
    if pool::is_copy() {
        return Ok(());
    }
    let models = results.len();
    let bad: Vec<_> = results.into_iter().filter(|name| !name.is_empty()).collect();
    println!("{models} models, {:.0} s", start.elapsed().as_secs_f64());
    if models == 0 {
        Err("no model has such a name".into())
    } else if !bad.is_empty() {
        Err(format!("not as expected: {}", bad.join("; ")))
    } else if cfg!(tollgate_loom) && options.only.is_empty() && !options.long {
        as_in_the_table(&options.models()?)
    } else {
        Ok(())
    }
}

/// `Err`: the table of models in `README.md` lacks some, or has some that there are not.
fn as_in_the_table(models: &[Model]) -> Result<(), String> {
    let path = home().join("README.md");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let section = text.split("\n## ").find(|section| section.starts_with("Models\n")).unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).skip(1);
    let rows: BTreeSet<_> = rows.map(|(name, _)| name.trim()).collect();
    let names: BTreeSet<_> = models.iter().map(|model| model.name.as_str()).collect();
    let unlike: Vec<_> = rows.symmetric_difference(&names).copied().collect();
    match unlike.is_empty() {
        true => Ok(()),
        false => Err(format!("in README.md's table or among the models, not both: {}", unlike.join("; "))),
    }
}

fn heading() -> String {
    format!(
        "| {:<62} | {:>9} | {:>10} | {:>9} | {:>5} | {:>7} | verdict |\n|{:-<64}|{:->10}:|{:->11}:|{:->10}:|{:->6}:|{:->8}:|---|",
        "model", "bound", "executions", "frozen", "steps", "time", "", "", "", "", "", ""
    )
}

fn row(model: &Model, report: &Report, time: Duration) -> String {
    let executions = |frozen: bool| {
        report.rows.iter().filter(|r| r.frozen.is_some() == frozen).map(|r| r.executions).sum()
    };
    let (together, frozen): (u64, u64) = (executions(false), executions(true));
    let exhaustive = report.rows.iter().filter(|row| row.frozen.is_none()).all(|row| row.exhaustive);
    let bound = if exhaustive && !report.rows.is_empty() { "none".into() } else { report.bound.to_string() };
    let steps = report.rows.iter().map(|row| row.steps).max().unwrap_or(0);
    let verdict = match &report.outcome {
        Outcome::Pass { .. } if exhaustive => "pass, exhaustive".into(),
        Outcome::Pass { .. } => "pass within the bound".into(),
        Outcome::Fail if model.expect == Expect::Documented => "breaks, as documented".into(),
        Outcome::Fail => format!("FAIL: {}", report.failures[0].property),
        Outcome::Inconclusive { why } => format!("inconclusive: {why}"),
    };
    let frozen = if frozen == 0 { "-".into() } else { frozen.to_string() };
    format!(
        "| {:<62} | {bound:>9} | {together:>10} | {frozen:>9} | {steps:>5} | {:>5.1} s | {verdict} |",
        model.name,
        time.as_secs_f64()
    )
}

/// Runs the models until one breaks, and prints which: for mutants. First those named, then all with one preemption,
/// which is quick and kills most.
///
/// # Errors
/// All passed, or one gave no verdict.
pub fn kill(options: &Options) -> Result<(), String> {
    let mut models = options.models()?;
    models.retain(|model| model.expect == Expect::Pass);
    let bounds = if options.bound > 1 { vec![1, options.bound] } else { vec![options.bound] };
    let (first, rest): (Vec<_>, Vec<_>) =
        models.iter().partition(|model| options.first.contains(&model.name));
    let jobs = [first, rest].into_iter().flat_map(|models| {
        bounds.iter().flat_map(move |bound| models.clone().into_iter().map(move |model| (*bound, model)))
    });
    for (bound, model) in jobs {
        let mut check = model.check.clone().shrink(false).bound(bound);
        if model.exhaustive && bound == options.bound {
            check = check.exhaustive();
        }
        let report = check.max_executions(20_000_000).max_time(options.max_time).run();
        match report.outcome {
            Outcome::Pass { .. } => {}
            Outcome::Fail => {
                println!("killed by {}: {}", model.name, report.failures[0].property);
                return Ok(());
            }
            Outcome::Inconclusive { .. } if report.rows.iter().any(Row::hung) => {
                println!("killed by {}: a call ends", model.name);
                return Ok(());
            }
            // A mutant can make executions without end: this model is done with it.
            Outcome::Inconclusive { .. } if report.rows.iter().any(|row| row.cut.is_some()) => {}
            Outcome::Inconclusive { why } => return Err(format!("no verdict: {why}")),
        }
    }
    Err("survives".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_models_bear_one_name() {
        let mut models = all();
        assert_eq!(named_twice(&models), None);
        models.extend(all().into_iter().nth(3));
        assert_eq!(named_twice(&models), Some(&*all()[3].name));
    }
}
