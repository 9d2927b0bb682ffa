//! Every single memory order made weaker, one at a time, in one build.
//!
//! Every model that runs the site is tried with one preemption, then the small ones with as many as asked for (with
//! `--long`, all of them). A weakening that breaks none survives, unless it lets a call see old values without end. It has to
//! stand in the list of survivors with its reason; one that stands there and dies must leave the list. Of the survivors all
//! at once, each at its weakest, every model is asked; of each alone the small ones are, since it allows no more.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use tollgate_check::{Check, Outcome, Row, Site, SiteOrder, Weakening};

use crate::{
    models::{Expect, Model},
    pool,
    run::Options,
};

/// A model with more executions than this within one preemption is not tried with more of them.
const SMALL: u64 = 400;

/// Executions of one model and bound at most, under one weakening.
const EXECUTIONS_MAX: u64 = 20_000;

/// One row of the table.
const TOGETHER: &str = "the survivors at their weakest, all at once";

/// Survivors that stand in for one another: each is listed with this reason, and all of them at once must die.
const NET: &str = "[net]";

/// Their row of the table.
const NET_TOGETHER: &str = "the [net] at its weakest, all at once";

/// What became of a weakening, in a word that is left for the totals.
const KILLED: &str = "killed";
const SURVIVES: &str = "survives";
const FAULT: &str = "fault";
const AT_ONCE: &str = "several at once, as expected";

/// A model that runs a site, with its executions within one preemption, and how many of them are given up.
#[derive(Clone, Copy)]
struct Runs<'a> {
    model: &'a Model,
    executions: u64,
    given_up: u64,
}

/// A weakening (or several at once), the models that run its site (the quickest first), and its name in the list.
struct Job<'a> {
    name: String,
    weakenings: Vec<Weakening>,
    models: Vec<Runs<'a>>,
}

/// Runs every weakening and prints what killed it.
///
/// # Errors
/// A survivor is not listed, or a listed one dies or is gone.
pub fn orders(options: &Options) -> Result<(), String> {
    let start = Instant::now();
    let mut models = options.models()?;
    models.retain(|model| model.expect == Expect::Pass);
    let listed = list()?;
    if !pool::is_copy() {
        println!("| weakening | killed by | models | time |\n|---|---|---:|---:|");
    }
    let to_do = || {
        let (jobs, sites) = jobs(&models, &listed, options);
        if options.only.is_empty() {
            all_reached(&sites, &listed)?;
        }
        Ok(jobs)
    };
    let results = pool::each(to_do, options.processes, |job| {
        let began = Instant::now();
        let killer = kill(job, options);
        let reason = reason(&listed, &job.name);
        let (told, result) = match (killer, reason) {
            (Ok(Some(killer)), None) if job.name == NET_TOGETHER => (killer, AT_ONCE),
            (Ok(Some(killer)), None) if job.name != TOGETHER => (killer, KILLED),
            (Ok(Some(killer)), _) => (format!("{killer}; BUT LISTED as a survivor"), FAULT),
            (Ok(None), Some(reason)) => (format!("survives: {reason}"), SURVIVES),
            (Ok(None), None) if job.name == TOGETHER => ("survive".into(), AT_ONCE),
            (Ok(None), None) => ("SURVIVES, and may not".into(), FAULT),
            (Err(why), _) => (format!("NO VERDICT: {why}"), FAULT),
        };
        println!("| {} | {told} | {} | {:.0} s |", job.name, job.models.len(), began.elapsed().as_secs_f64());
        format!("{result}|{}", job.name)
    })?;
    if pool::is_copy() {
        return Ok(());
    }
    let results: Vec<_> = results.iter().filter_map(|result| result.split_once('|')).collect();
    let count = |what| results.iter().filter(|(result, _)| *result == what).count();
    let (seconds, singles) = (start.elapsed().as_secs_f64(), results.len() - count(AT_ONCE));
    println!("{} of {singles} weakenings killed, bound {}, {seconds:.0} s", count(KILLED), options.bound);
    // A file, or a file and a function in it.
    let is_place = |name: &str| {
        let (file, function) = name.split_once(' ').unwrap_or((name, ""));
        let text = fs::read_to_string(home().join("../src").join(file));
        text.is_ok_and(|text| function.is_empty() || text.contains(&format!("fn {function}(")))
    };
    let unknown = |name: &&String| !is_place(name) && results.iter().all(|(_, job)| job != *name);
    let gone: Vec<_> = listed.iter().map(|(name, _)| name).filter(unknown).collect();
    if options.only.is_empty() && !gone.is_empty() {
        return Err(format!("listed, but no such weakening: {gone:?}"));
    }
    match count(FAULT) {
        0 => Ok(()),
        faults => Err(format!("{faults} weakenings are not as survivors.txt says")),
    }
}

/// Every weakening of every order that the models reach, and those listed as survivors all at once.
fn jobs<'a>(
    models: &'a [Model],
    listed: &[(String, String)],
    options: &Options,
) -> (Vec<Job<'a>>, Vec<Site>) {
    let mut source = Source::default();
    // A site and its operation, with the models that reach it.
    let mut sites: BTreeMap<(Site, &'static str), (SiteOrder, Vec<Runs<'_>>)> = BTreeMap::new();
    let mut all = Vec::new();
    for model in models {
        let report = model.check.clone().bound(1).run();
        let sum = |of: fn(&Row) -> u64| report.rows.iter().map(of).sum();
        let runs = Runs { model, executions: sum(|row| row.executions), given_up: sum(|row| row.given_up) };
        all.push(runs);
        for order in report.orders {
            sites.entry((order.site, order.op.name())).or_insert_with(|| (order, vec![])).1.push(runs);
        }
    }
    let (mut jobs, mut together, mut net) = (Vec::new(), Vec::<Weakening>::new(), Vec::<Weakening>::new());
    for (order, mut models) in sites.values().cloned() {
        models.sort_by_key(|runs| runs.executions);
        for weakening in order.weakenings() {
            let name = source.name(&order, &weakening, sites.keys());
            let mut models = models.clone();
            if let Some(reason) = reason(listed, &name) {
                let all = if reason == NET { &mut net } else { &mut together };
                // From the strongest to the weakest, so that the last of a site counts.
                all.retain(|other| (&other.site, other.failure) != (&weakening.site, weakening.failure));
                all.push(weakening.clone());
                models.retain(|runs| reason == NET || options.long || runs.executions <= SMALL);
            }
            jobs.push(Job { name, weakenings: vec![weakening], models });
        }
    }
    // Rather than each process its own long one at the end.
    jobs.sort_by_key(|job| listed.iter().all(|(listed, _)| *listed != job.name));
    if !net.is_empty() {
        jobs.insert(0, Job { name: NET_TOGETHER.into(), weakenings: net, models: all.clone() });
    }
    jobs.insert(0, Job { name: TOGETHER.into(), weakenings: together, models: all });
    (jobs, sites.into_keys().map(|(site, _)| site).collect())
}

/// Why a weakening survives, if it is listed.
fn reason<'a>(listed: &'a [(String, String)], name: &str) -> Option<&'a str> {
    listed.iter().find(|(listed, _)| listed == name).map(|(_, reason)| reason.as_str())
}

/// Whether every order in the core stands at a site that some model reaches, or in a file or function that the list names.
fn all_reached(sites: &[Site], listed: &[(String, String)]) -> Result<(), String> {
    let mut unreached = Vec::new();
    let orders = ["Acquire", "Release", "AcqRel", "SeqCst", "Relaxed"];
    for path in files(&home().join("../src")).map_err(|error| format!("the core's source: {error}"))? {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = path.strip_prefix(home().join("..")).expect("listed below it").display().to_string();
        if listed.iter().any(|(name, _)| file.ends_with(name)) {
            continue;
        }
        let code = text
            .lines()
            .take_while(|line| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"));
        let mut function = "";
        for (number, line) in (1..).zip(code) {
            let code = line.split("//").next().unwrap_or_default();
            if let Some((_, named)) = code.split_once("fn ") {
                function = named.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            }
            let is_word =
                |order: &&str| code.split(|c: char| !c.is_alphanumeric()).any(|word| word == *order);
            let used = !code.contains(" use ") && code.contains('(') && orders.iter().any(is_word);
            // A call that is broken over lines has its site above.
            let here = |site: &&Site| {
                file.ends_with(site.file) && (number - 2..=number).contains(&i64::from(site.line))
            };
            let is_listed = |(name, _): &(String, String)| {
                name.split_once(' ').is_some_and(|(of, it)| file.ends_with(of) && it == function)
            };
            if used && !sites.iter().any(|site| here(&site)) && !listed.iter().any(is_listed) {
                unreached.push(format!("{file}:{number}: {}", line.trim()));
            }
        }
    }
    if unreached.is_empty() { Ok(()) } else { Err(format!("no model reaches\n{}", unreached.join("\n"))) }
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
    Ok(all)
}

/// Which model the weakening breaks.
fn kill(job: &Job<'_>, options: &Options) -> Result<Option<String>, String> {
    let all = job.models.iter().map(|runs| (1, *runs));
    let small = job.models.iter().filter(|runs| options.long || runs.executions <= SMALL);
    for (bound, Runs { model, given_up, .. }) in all.chain(small.map(|runs| (options.bound, *runs))) {
        let check = job.weakenings.iter().cloned().fold(model.check.clone(), Check::weaken).shrink(false);
        let report = check.bound(bound).max_executions(EXECUTIONS_MAX).max_time(options.max_time).run();
        match report.outcome {
            Outcome::Fail => {
                let failure = &report.failures[0];
                let stale = if failure.stale { ", by an old value" } else { "" };
                return Ok(Some(format!("{}: {}{stale}", model.name, failure.property)));
            }
            _ if given_up == 0 && report.rows.iter().any(|row| row.given_up > 0) => {
                return Ok(Some(format!("{}: old values without end", model.name)));
            }
            // A weak order can make executions without end: this model is done with it.
            Outcome::Inconclusive { .. } if report.rows.iter().any(|row| row.cut.is_some()) => {}
            Outcome::Inconclusive { why } => return Err(format!("{}: {why}", model.name)),
            Outcome::Pass { .. } => {}
        }
    }
    Ok(None)
}

pub(crate) fn home() -> PathBuf {
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
