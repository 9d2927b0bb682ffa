//! The run: every scenario, with more and more preemptions, then with one thread frozen.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Limiter, Outcome, Report, Scenario, Spec,
    canary::canaries,
    engine::{self, End, Job, Make, Run, Witness},
    report::{Failure, Row},
    trace::{SiteOrder, Weakening},
};

/// Whether the interleavings within a bound are run one and all. Otherwise chance picks.
pub(crate) const EXHAUSTS: bool = cfg!(all(tollgate_loom, not(tollgate_shuttle)));

/// Executions that shrinking spends on one smaller scenario, and time that it spends on one failure.
const SHRINK_EXECUTIONS: u64 = 20_000;
const SHRINK_TIME: Duration = Duration::from_secs(20);

/// A check to be run. [`check`] makes one.
#[derive(Clone)]
#[must_use = "a check does nothing until it runs"]
pub struct Check {
    make: Make,
    spec: Spec,
    name: Option<String>,
    scenarios: Vec<Scenario>,
    bound: u8,
    exhaustive: bool,
    frozen_bound: Option<u8>,
    max_executions: u64,
    max_time: Duration,
    seed: u64,
    steps_max: u32,
    alone_max: u32,
    shrink: bool,
    first: bool,
    trusted: bool,
    replay: Option<(Option<u8>, u64)>,
    frozen_at: Option<(usize, u32)>,
    weakenings: Vec<Weakening>,
    describe: Option<Describe>,
}

/// Puts the value of a named word into words.
pub(crate) type Describe = Arc<dyn Fn(&str, u64) -> Option<String> + Send + Sync>;

/// Checks what `make` makes against `spec`.
///
/// # Examples
/// ```
/// use tollgate_check::{Limiter, Scenario, Spec, Verdict, acquire, check, sync::{AtomicU64, Ordering}};
///
/// /// One permit, for ever.
/// struct Once(AtomicU64);
///
/// impl Limiter for Once {
///     fn try_acquire(&self, _cost: u64, _now: u64) -> Verdict {
///         Verdict::yes_or_no(self.0.swap(1, Ordering::Relaxed) == 0)
///     }
/// }
///
/// let report = check(|| Once(AtomicU64::new(0)), Spec::exact(&[(1, u64::MAX / 2)]))
///     .scenario(Scenario::new("race").thread([acquire(1, 5)]).thread([acquire(1, 6)]))
///     .bound(2)
///     .run();
/// println!("{report}");
/// ```
pub fn check<L: Limiter>(make: impl Fn() -> L + Send + Sync + 'static, spec: Spec) -> Check {
    Check {
        make: Arc::new(move || Arc::new(make())),
        spec,
        name: None,
        scenarios: vec![],
        bound: 2,
        exhaustive: false,
        frozen_bound: Some(1),
        max_executions: 500_000,
        max_time: Duration::from_secs(120),
        seed: 0,
        steps_max: 200,
        alone_max: 200,
        shrink: true,
        first: false,
        trusted: false,
        replay: None,
        frozen_at: None,
        weakenings: vec![],
        describe: None,
    }
}

impl Check {
    /// The limiter's name in the report.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a scenario.
    pub fn scenario(mut self, scenario: Scenario) -> Self {
        self.scenarios.push(scenario);
        self
    }

    /// Adds scenarios; see [`Suite`](crate::Suite).
    pub fn scenarios(mut self, scenarios: impl IntoIterator<Item = Scenario>) -> Self {
        self.scenarios.extend(scenarios);
        self
    }

    /// Runs this scenario alone.
    pub fn only(mut self, scenario: Scenario) -> Self {
        self.scenarios = vec![scenario];
        self
    }

    /// How often a thread may be interrupted in one execution; the default is 2, which finds most bugs. Bounds 0, 1,
    /// ... up to this one are run in order, so that the first failure is one with the fewest preemptions. No run
    /// with a bound is a proof.
    pub fn bound(mut self, preemptions: u8) -> Self {
        self.bound = preemptions;
        self
    }

    /// After the bounded runs, runs without a bound. If that ends in time the report says *exhaustive*: every
    /// interleaving and every read that loom knows.
    pub fn exhaustive(mut self) -> Self {
        self.exhaustive = true;
        self
    }

    /// The bound of the runs in which one thread is frozen after each of its atomic steps in turn; the default is 1.
    /// `None` leaves them out: then nothing is said about lock-freedom but that no call took too many steps.
    pub fn frozen(mut self, preemptions: Option<u8>) -> Self {
        self.frozen_bound = preemptions;
        self
    }

    /// Executions at most for each scenario and bound; the default is 500,000.
    pub fn max_executions(mut self, executions: u64) -> Self {
        self.max_executions = executions;
        self
    }

    /// Time at most for each scenario and bound; the default is two minutes.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.max_time = time;
        self
    }

    /// Seeds the random schedules that `--cfg tollgate_shuttle` beside `--cfg tollgate_loom` runs instead of all within
    /// the bound: [`max_executions`](Check::max_executions) of them, under sequentially consistent words and with
    /// calls in the order of real time. For long scenarios. A run that finds nothing is inconclusive.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The most atomic steps that a call may take while others run or are frozen; the default is 200. It must
    /// exceed what rivals that do finish can cost it.
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.steps_max = steps;
        self
    }

    /// The most atomic steps that a call may take alone, in setup and after; the default is 200.
    pub fn max_steps_alone(mut self, steps: u32) -> Self {
        self.alone_max = steps;
        self
    }

    /// Whether a failing scenario is made smaller while it still fails, and an execution preferred in which no load sees an
    /// old value; the default is yes. Without, a failure is told sooner.
    pub fn shrink(mut self, shrink: bool) -> Self {
        self.shrink = shrink;
        self
    }

    /// Whether the run ends with the first scenario that fails; the default is no.
    pub fn stop_at_first(mut self, stop: bool) -> Self {
        self.first = stop;
        self
    }

    /// Runs with a memory order weaker than written. May be repeated.
    pub fn weaken(mut self, weakening: Weakening) -> Self {
        self.weakenings.push(weakening);
        self
    }

    /// How the values of named words read in the interleaving; `None` leaves them as numbers.
    pub fn describe(mut self, words: impl Fn(&str, u64) -> Option<String> + Send + Sync + 'static) -> Self {
        self.describe = Some(Arc::new(words));
        self
    }

    /// Shows one execution of the first scenario: `bound` and number as the report of a failure tells them. An earlier
    /// one that breaks a promise ends the replay instead; one that keeps them all is inconclusive.
    pub fn replay(mut self, bound: Option<u8>, execution: u64) -> Self {
        self.replay = Some((bound, execution));
        self
    }

    /// For a replay: freezes `thread` (from 1) for good after so many of its atomic steps.
    pub fn frozen_at(mut self, thread: usize, steps: u32) -> Self {
        self.frozen_at = Some((thread, steps));
        self
    }

    /// Does not run the canaries first: they are checks themselves.
    pub(crate) fn trusted(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Runs everything.
    pub fn run(&self) -> Report {
        let mut report = Report {
            name: self.name.clone().unwrap_or_else(|| "limiter".into()),
            spec: self.spec.judge.name(),
            bound: self.bound,
            outcome: Outcome::Inconclusive { why: String::new() },
            rows: vec![],
            failures: vec![],
            orders: vec![],
        };
        if let Some(why) = self.impossible() {
            report.outcome = Outcome::Inconclusive { why };
            return report;
        }
        if let Some((bound, execution)) = self.replay {
            let (scenario, freeze, start) = (&self.scenarios[0], self.frozen_at, Instant::now());
            let run = engine::run(&Job { freeze, replay: Some(execution), ..self.job(scenario, bound) });
            self.take(&mut report, scenario, freeze, &[(bound, run)], start);
        } else {
            for scenario in &self.scenarios {
                if self.first && !report.failures.is_empty() || report.rows.last().is_some_and(Row::hung) {
                    break;
                }
                let kept = self.run_all(&mut report, scenario);
                if kept && EXHAUSTS && self.frozen_bound.is_some() {
                    self.run_frozen(&mut report, scenario);
                }
            }
        }
        report.conclude();
        report
    }

    fn impossible(&self) -> Option<String> {
        if self.scenarios.is_empty() {
            return Some("there is no scenario to run".into());
        }
        let faults = self.scenarios.iter().filter_map(|s| s.fault().map(|why| format!("{}: {why}", s.name)));
        let canaries =
            || if self.trusted || cfg!(not(tollgate_loom)) { Ok(()) } else { canaries(self.bound) };
        faults.chain(canaries().err()).next()
    }

    fn job(&self, scenario: &Scenario, bound: Option<u8>) -> Job {
        Job {
            make: self.make.clone(),
            spec: self.spec.clone(),
            scenario: scenario.clone(),
            bound,
            freeze: None,
            steps_max: self.steps_max,
            alone_max: self.alone_max,
            executions_max: self.max_executions,
            deadline: Instant::now() + self.max_time,
            seed: self.seed,
            replay: None,
            believable: self.shrink,
            weakenings: self.weakenings.clone(),
        }
    }

    /// Every bound in order, while the runs end complete.
    fn in_order(
        &self,
        scenario: &Scenario,
        most: u8,
        freeze: Option<(usize, u32)>,
    ) -> Vec<(Option<u8>, Run)> {
        let mut runs = Vec::new();
        let mut stale = None;
        let bounds: Vec<_> = match EXHAUSTS {
            true => (0..=most).map(Some).chain(self.exhaustive.then_some(None)).collect(),
            false => vec![None],
        };
        for bound in bounds {
            let run = engine::run(&Job { freeze, ..self.job(scenario, bound) });
            match &run.end {
                // One more preemption may show the same without an old value, which is easier to believe.
                End::Broken(witness) if witness.stale && self.shrink => stale = stale.or(Some((bound, run))),
                End::Complete => runs.push((bound, run)),
                End::Hung(_) => {
                    runs.push((bound, run));
                    return runs;
                }
                _ if stale.is_some() && !matches!(run.end, End::Broken(_)) => break,
                _ => {
                    runs.push((bound, run));
                    return runs;
                }
            }
        }
        runs.extend(stale);
        runs
    }

    /// With all threads running. Whether it ended, and found nothing.
    fn run_all(&self, report: &mut Report, scenario: &Scenario) -> bool {
        let start = Instant::now();
        let runs = self.in_order(scenario, self.bound, None);
        self.take(report, scenario, None, &runs, start);
        !runs.last().is_some_and(|(_, run)| matches!(run.end, End::Broken(_) | End::Hung(_)))
    }

    /// Freezes each thread after each of its atomic steps; threads that make the same calls count as one.
    fn run_frozen(&self, report: &mut Report, scenario: &Scenario) {
        let bound = self.frozen_bound.unwrap_or(0).min(self.bound);
        if scenario.threads.len() < 2 && scenario.after.is_empty() {
            return;
        }
        for (i, calls) in scenario.threads.iter().enumerate() {
            if scenario.threads[..i].contains(calls) {
                continue;
            }
            let (start, mut all) = (Instant::now(), Vec::new());
            let mut step = 1;
            loop {
                let runs = self.in_order(scenario, bound, Some((i + 1, step)));
                let frozen = runs.iter().any(|(_, run)| run.frozen);
                let ended = runs.last().is_none_or(|(_, run)| !matches!(run.end, End::Complete));
                all.extend(runs);
                if ended || !frozen {
                    break;
                }
                step += 1;
            }
            self.take(report, scenario, Some((i + 1, step)), &all, start);
        }
    }

    /// Adds the runs of one scenario to the report.
    fn take(
        &self,
        report: &mut Report,
        scenario: &Scenario,
        freeze: Option<(usize, u32)>,
        runs: &[(Option<u8>, Run)],
        start: Instant,
    ) {
        let Some((bound, last)) = runs.last() else { return };
        let complete = |(_, run): &&(Option<u8>, Run)| matches!(run.end, End::Complete);
        let mut row = Row {
            scenario: scenario.name.clone(),
            frozen: freeze.map(|(thread, _)| thread),
            bound: runs.iter().filter(complete).filter_map(|(bound, _)| *bound).max(),
            exhaustive: matches!(last.end, End::Complete) && bound.is_none() && last.given_up == 0,
            executions: runs.iter().map(|(_, run)| run.executions).sum(),
            steps: runs.iter().map(|(_, run)| run.most.0).max().unwrap_or(0),
            steps_alone: runs.iter().map(|(_, run)| run.most.1).max().unwrap_or(0),
            given_up: runs.iter().map(|(_, run)| run.given_up).sum(),
            time: start.elapsed(),
            broken: None,
            needs: None,
            cut: None,
            void: None,
            hung: false,
        };
        for (_, run) in runs {
            report.note(&run.sites);
        }
        match &last.end {
            End::Complete => {}
            End::Cut(why) => {
                let wanted = if freeze.is_some() {
                    self.frozen_bound.unwrap_or(0).min(self.bound)
                } else {
                    self.bound
                };
                // A cut run without a bound leaves the bounded ones before it as they are.
                row.cut = Some(why.clone()).filter(|_| row.bound != Some(wanted) || self.replay.is_some());
            }
            End::Void(why) => row.void = Some(why.clone()),
            End::Hung(why) => (row.void, row.hung) = (Some(why.clone()), true),
            End::Broken(witness) => {
                (row.broken, row.needs) = (Some(witness.property), *bound);
                match self.smaller(scenario, *bound, freeze, witness) {
                    Ok((scenario, witness)) => {
                        let describe = self.describe.clone();
                        report.failures.push(Failure::new(scenario, *bound, freeze, witness, describe));
                    }
                    Err(hung) => (row.broken, row.void, row.hung) = (None, Some(hung), true),
                }
            }
        }
        report.rows.push(row);
    }

    /// Drops threads and calls while the same promise is still broken. `Err`: a run hung.
    fn smaller(
        &self,
        scenario: &Scenario,
        bound: Option<u8>,
        freeze: Option<(usize, u32)>,
        witness: &Witness,
    ) -> Result<(Scenario, Witness), String> {
        let (mut scenario, mut witness) = (scenario.clone(), witness.clone());
        if !self.shrink || self.replay.is_some() || cfg!(not(tollgate_loom)) {
            return Ok((scenario, witness));
        }
        let deadline = Instant::now() + SHRINK_TIME.min(self.max_time);
        'again: loop {
            for smaller in scenario.smaller() {
                // The frozen thread keeps its place and its calls.
                let frozen = |(thread, _): (usize, u32)| {
                    smaller.threads.len() == scenario.threads.len()
                        && smaller.threads[thread - 1] == scenario.threads[thread - 1]
                };
                let threads = smaller.threads.len() + usize::from(smaller.clock.len() > 1);
                if threads < if EXHAUSTS { 1 } else { 2 }
                    || !freeze.is_none_or(frozen)
                    || smaller.fault().is_some()
                {
                    continue;
                }
                let executions_max = self.max_executions.min(SHRINK_EXECUTIONS);
                let run = engine::run(&Job { freeze, executions_max, deadline, ..self.job(&smaller, bound) });
                match run.end {
                    End::Broken(found)
                        if found.property == witness.property && (witness.stale || !found.stale) =>
                    {
                        (scenario, witness) = (smaller, *found);
                        continue 'again;
                    }
                    End::Hung(why) => return Err(why),
                    _ => {}
                }
            }
            return Ok((scenario, witness));
        }
    }

    /// The sites of all atomic accesses that the scenarios make while threads run, with the orders written there.
    /// One run at the bound; no judgement.
    pub fn orders(&self) -> Vec<SiteOrder> {
        let quick = Check { frozen_bound: None, shrink: false, trusted: true, ..self.clone() };
        quick.run().orders
    }

    /// Runs once for every single memory order that can be made weaker, each until something breaks. A weakening
    /// whose report does not fail survives: either the code may take the weaker order, or a scenario is missing, or
    /// the difference is beyond what the model can see.
    ///
    /// # Examples
    /// ```no_run
    /// # use tollgate_check::{check, Limiter, Spec, Suite, Verdict};
    /// # struct Mine;
    /// # impl Limiter for Mine { fn try_acquire(&self, _: u64, _: u64) -> Verdict { Verdict::Admitted } }
    /// let check = check(|| Mine, Spec::exact(&[(2, 10)])).scenarios(Suite::standard(2, 10));
    /// for (weakening, report) in check.run_weakened() {
    ///     println!("{weakening}: {}", if report.failed() { "killed" } else { "SURVIVES" });
    /// }
    /// ```
    pub fn run_weakened(&self) -> Vec<(Weakening, Report)> {
        let weakenings = self.orders().into_iter().flat_map(|seen| seen.weakenings());
        let run = |weakening: Weakening| {
            let report = self.clone().shrink(false).stop_at_first(true).weaken(weakening.clone()).run();
            (weakening, report)
        };
        weakenings.map(run).collect()
    }
}
