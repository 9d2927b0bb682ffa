//! Every single memory order made weaker, one at a time, in one build.
//!
//! Every model that runs the site is tried with one preemption, then the small ones with as many as asked for (with
//! `--long`, all of them). A weakening that breaks none survives. It has to stand in the list of survivors with its reason; one that
//! stands there and dies must leave the list.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::atomic::Ordering, time::Instant};

use tollgate_check::{Check, Outcome, Site, SiteOrder, Weakening};

use crate::{
    models::{Expect, Model},
    pool,
    run::Options,
};

/// A model with more executions than this within one preemption is not tried with more of them.
const SMALL: u64 = 400;

/// Executions of one model and bound at most, under one weakening.
const EXECUTIONS_MAX: u64 = 20_000;

/// A weakening (or several at once), the models that run its site with their executions (the quickest first), and its name in the list.
struct Job<'a> {
    name: String,
    weakenings: Vec<Weakening>,
    models: Vec<(u64, &'a Model)>,
}

/// Runs every weakening and prints what killed it.
///
/// # Errors
/// A survivor is not listed, or a listed one dies or is gone.
pub fn orders(options: &Options) -> Result<(), String> {
    let start = Instant::now();
    let mut models = options.models();
    models.retain(|model| model.expect == Expect::Pass);
    let known: Vec<_> = pool::each(&models, options.threads, |model| {
        let report = model.check.clone().bound(1).run();
        let executions: u64 = report.rows.iter().map(|row| row.executions).sum();
        Some((executions, report.orders))
    });
    let mut source = Source::default();
    // A site and its operation, with the models that reach it and what they cost.
    type Reached<'a> = (SiteOrder, Vec<(u64, &'a Model)>);
    let mut sites: BTreeMap<(Site, &'static str), Reached<'_>> = BTreeMap::new();
    for (model, (executions, orders)) in models.iter().zip(&known) {
        for order in orders {
            let entry = sites.entry((order.site, order.op.name())).or_insert_with(|| (*order, vec![]));
            entry.1.push((*executions, model));
        }
    }
    let mut jobs = Vec::new();
    for (order, mut models) in sites.values().cloned() {
        models.sort_by_key(|(executions, _)| *executions);
        for weakening in order.weakenings() {
            let models = models.clone();
            let name = source.name(&order, &weakening, sites.keys());
            jobs.push(Job { name, weakenings: vec![weakening], models });
        }
    }
    let listed = list()?;
    println!("{} sites, {} weakenings, bound {}", sites.len(), jobs.len(), options.bound);
    println!("| weakening | killed by | models | time |\n|---|---|---:|---:|");
    let results = pool::each(&jobs, options.threads, |job| {
        let began = Instant::now();
        let killer = kill(job, options);
        let reason = listed.iter().find(|(name, _)| *name == job.name).map(|(_, reason)| reason.as_str());
        let (told, fault) = match (&killer, reason) {
            (Ok(Some(killer)), None) => (killer.clone(), false),
            (Ok(Some(killer)), Some(_)) => (format!("{killer}; BUT LISTED as a survivor"), true),
            (Ok(None), Some(reason)) => (format!("survives: {reason}"), false),
            (Ok(None), None) => ("SURVIVES, not listed".into(), true),
            (Err(why), _) => (format!("NO VERDICT: {why}"), true),
        };
        println!("| {} | {told} | {} | {:.0} s |", job.name, job.models.len(), began.elapsed().as_secs_f64());
        Some((killer, fault))
    });
    let killed = results.iter().filter(|(killer, _)| matches!(killer, Ok(Some(_)))).count();
    let faults = results.iter().filter(|(_, fault)| *fault).count();
    let survivors = jobs.iter().zip(&results).filter(|(_, (killer, _))| matches!(killer, Ok(None)));
    let together = together(&models, survivors.map(|(job, _)| job));
    println!(
        "the survivors at their weakest, all at once: {}",
        kill(&together, options)?.unwrap_or("survive".into())
    );
    let gone: Vec<_> = listed
        .iter()
        .filter(|(name, _)| jobs.iter().all(|job| job.name != *name))
        .map(|(name, _)| name)
        .collect();
    println!(
        "{killed} of {} weakenings killed, {} survive; {:.0} s",
        jobs.len(),
        jobs.len() - killed,
        start.elapsed().as_secs_f64()
    );
    if options.only.is_empty() && !gone.is_empty() {
        return Err(format!("listed, but no such weakening: {gone:?}"));
    }
    if faults > 0 {
        return Err(format!("{faults} weakenings are not as survivors.txt says"));
    }
    Ok(())
}

/// All of `survivors` at once, each site at its weakest order.
fn together<'a>(models: &'a [Model], survivors: impl Iterator<Item = &'a Job<'a>>) -> Job<'a> {
    let mut weakenings: Vec<Weakening> = vec![];
    for weakening in survivors.flat_map(|job| &job.weakenings) {
        match weakenings.iter_mut().find(|known| known.site == weakening.site) {
            Some(known) if weakening.to == Some(Ordering::Relaxed) => *known = weakening.clone(),
            Some(_) => {}
            None => weakenings.push(weakening.clone()),
        }
    }
    Job {
        name: "together".into(),
        weakenings,
        models: models.iter().map(|model| (u64::MAX, model)).collect(),
    }
}

/// Which model the weakening breaks.
fn kill(job: &Job<'_>, options: &Options) -> Result<Option<String>, String> {
    let all = job.models.iter().map(|(_, model)| (1, *model));
    let small = job.models.iter().filter(|(executions, _)| options.long || *executions <= SMALL);
    for (bound, model) in all.chain(small.map(|(_, model)| (options.bound, *model))) {
        let check = job.weakenings.iter().cloned().fold(model.check.clone(), Check::weaken).shrink(false);
        let report = check.bound(bound).max_executions(EXECUTIONS_MAX).max_time(options.max_time).run();
        match report.outcome {
            Outcome::Fail => {
                let failure = &report.failures[0];
                let stale = if failure.stale { ", by an old value" } else { "" };
                return Ok(Some(format!("{}: {}{stale}", model.name, failure.property)));
            }
            // A weak order can make retries, and so executions, without end: this model is done with it.
            Outcome::Inconclusive { .. } if report.rows.iter().any(|row| row.cut.is_some()) => {}
            Outcome::Inconclusive { why } => return Err(format!("{}: {why}", model.name)),
            Outcome::Pass { .. } => {}
        }
    }
    Ok(None)
}

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// `name | reason` in each line but empty ones and comments.
fn list() -> Result<Vec<(String, String)>, String> {
    let path = home().join("survivors.txt");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, reason) =
                line.split_once('|').ok_or(format!("a survivor without a reason: {line}"))?;
            Ok((name.trim().to_string(), reason.trim().to_string()))
        })
        .collect()
}

/// The core's source, to name a site by its function instead of its line.
#[derive(Default)]
struct Source(BTreeMap<String, Vec<String>>);

impl Source {
    fn lines(&mut self, file: &str) -> &[String] {
        self.0.entry(file.to_string()).or_insert_with(|| {
            let text = fs::read_to_string(home().join("..").join(file)).unwrap_or_default();
            text.lines().map(str::to_string).collect()
        })
    }

    /// The function that a site stands in.
    fn function(&mut self, site: Site) -> String {
        let lines = self.lines(site.file);
        let before = lines[..lines.len().min(site.line as usize)].iter().rev();
        let name = |line: &String| {
            let (_, rest) = line.split_once("fn ").filter(|_| !line.trim_start().starts_with("//"))?;
            Some(rest.split(['(', '<']).next()?.to_string())
        };
        before.into_iter().find_map(name).unwrap_or_else(|| "?".into())
    }

    /// `log/unit.rs find_end load #2: Acquire -> Relaxed`.
    fn name<'a>(
        &mut self,
        order: &SiteOrder,
        weakening: &Weakening,
        sites: impl Iterator<Item = &'a (Site, &'static str)>,
    ) -> String {
        let (site, op) = (order.site, order.op.name());
        let function = self.function(site);
        let same = sites.filter(|(other, other_op)| {
            other.file == site.file && *other < site && *other_op == op && self.function(*other) == function
        });
        let number = match same.count() {
            0 => String::new(),
            n => format!(" #{}", n + 1),
        };
        let short = site.file.trim_start_matches("src/").trim_start_matches("algorithm/");
        let from = if weakening.failure { order.failure.unwrap_or(order.order) } else { order.order };
        let failing = if weakening.failure { " failing" } else { "" };
        let to = weakening.to.map_or("none".into(), |to| format!("{to:?}"));
        format!("{short} {function} {op}{number}{failing}: {from:?} -> {to}")
    }
}
