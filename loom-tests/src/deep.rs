//! The deep runs: random schedules over the models' scenarios, and over generated ones that are too long for all
//! schedules. For `--cfg tollgate_shuttle`: words are sequentially consistent, and calls in the order of real time.

use std::time::Instant;

use tollgate_check::{Call, Outcome, Scenario, THREADS_MAX, When, acquire, refund};

use crate::{
    models::{Subject, subjects},
    pool,
    run::Options,
};

/// Schedules of a generated scenario.
const SCHEDULES: u64 = 40;

/// Steps of a call at most: rivals that succeed may send it back as often as there are calls.
const STEPS_MAX: u32 = 2_000;

/// Changes of the rules in a generated scenario: under the model their generation recurs with the fourth, as `Sharded`
/// documents for the 2^14th.
const CHANGES_MAX: usize = 3;

/// Times may be any distance apart.
pub(crate) const ANY: u64 = u64::MAX >> 1;

/// What a generated scenario may ask of a limiter.
#[derive(Clone, Copy)]
pub(crate) struct Asks {
    /// Draws a call.
    pub(crate) call: fn(&mut Noise, Asks, When) -> Call,
    pub(crate) cost_max: u64,
    pub(crate) peeks: bool,
    /// Each admission may be given back; then no two calls have the same time.
    pub(crate) refunds: bool,
    /// How far apart the times of two threads may be.
    pub(crate) apart: u64,
    /// Whether threads take their times from the scenario's clock, so that no time steps back.
    pub(crate) by_clock: bool,
    /// The moments worth meeting: multiples of this, and one beside.
    pub(crate) step: u64,
    /// The longest window.
    pub(crate) window: u64,
    /// The cost of a last call of all, which looks whether all is well.
    pub(crate) audit: Option<u64>,
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub(crate) struct Noise(u64);

// === impl Asks ===

impl Asks {
    /// Single permits, with looks, at any times around these moments.
    pub(crate) fn permits(step: u64, window: u64) -> Self {
        Self {
            call: Self::permit_or_look,
            cost_max: 1,
            peeks: true,
            refunds: false,
            apart: ANY,
            by_clock: false,
            step,
            window,
            audit: None,
        }
    }

    pub(crate) fn permit_or_look(noise: &mut Noise, asks: Asks, now: When) -> Call {
        let cost = 1 + noise.below(asks.cost_max);
        if asks.peeks && noise.below(4) == 0 { Call::Peek { cost, now } } else { Call::Acquire { cost, now } }
    }
}

// === impl Noise ===

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// A scenario from a seed, with no more changes of the rules than there are generations under the model.
fn scenario(seed: u64, asks: Asks) -> Scenario {
    let noise = &mut Noise(seed);
    loop {
        let scenario = drawn(format!("generated {seed}"), noise, asks);
        let changes = scenario.calls().filter(|call| matches!(call, Call::Reconfigure { .. }));
        if changes.count() <= CHANGES_MAX {
            return scenario;
        }
    }
}

/// A scenario: two to four threads around the same moments, one of them perhaps far ahead or behind.
fn drawn(name: String, noise: &mut Noise, asks: Asks) -> Scenario {
    let draw = |noise: &mut Noise, at| (asks.call)(noise, asks, When::At(at));
    let mut now = noise.pick(&[0, asks.step, 3 * asks.window]);
    let mut scenario = Scenario::new(name);
    for _ in 0..noise.below(5) {
        now += noise.below(2) * noise.below(asks.step + 1);
        scenario = scenario.setup([draw(noise, now)]);
    }
    if asks.apart != ANY {
        scenario = scenario.setup([acquire(1, now)]); // Admitted, or the newest time is less than a window ago.
    }
    let spread = noise.pick(&[1, asks.step, asks.window + 1, 2 * asks.window + 2]).min(asks.apart);
    let (newest, mut used) = (now + asks.apart, Vec::new());
    let mut later = now + spread;
    if asks.by_clock {
        scenario = scenario.clock([now]);
        for _ in 0..noise.below(4) {
            now += 1 + noise.below(spread);
            scenario = scenario.clock([now]);
        }
        later = now;
    }
    let threads = noise.pick(&[2, 2, 3, 4]).min(THREADS_MAX as u64 - u64::from(asks.by_clock));
    for _ in 0..threads {
        let mut at = now + noise.below(spread);
        if asks.apart == ANY {
            at = at.saturating_sub(noise.below(2) * noise.below(asks.step));
        }
        let mut calls = Vec::new();
        for _ in 0..1 + noise.below(12 / threads) {
            at = (at + noise.below(2) * noise.below(spread)).min(newest);
            while asks.refunds && used.contains(&at) {
                at += 1;
            }
            used.push(at);
            let call = if asks.by_clock { (asks.call)(noise, asks, When::Clock) } else { draw(noise, at) };
            let taken = match call {
                Call::Acquire { cost, .. } if asks.refunds && noise.below(2) == 0 => Some(refund(cost, at)),
                _ => None,
            };
            calls.push(call);
            calls.extend(taken);
        }
        scenario = scenario.thread(calls);
    }
    let after = [0, later, later + asks.window / 2, later + asks.window];
    let after = after.into_iter().skip(usize::from(asks.by_clock));
    let calls: Vec<_> = after.map(|at| draw(noise, at)).collect();
    scenario.after(calls).after(asks.audit.map(|cost| acquire(cost, 0)))
}

/// Runs every model, then generated scenarios on each limiter, and prints a row for each limiter.
///
/// # Errors
/// Something broke.
pub fn deep(options: &Options) -> Result<(), String> {
    if cfg!(not(tollgate_shuttle)) {
        return Err("deep runs need --cfg tollgate_loom and --cfg tollgate_shuttle: see ci/deep.sh".into());
    }
    if !pool::is_copy() {
        println!("| limiter or model | scenarios | schedules | verdict |\n|---|---:|---:|---|");
    }
    let start = Instant::now();
    let mut jobs = Vec::new();
    for model in options.models()?.into_iter().filter(|model| model.by_chance) {
        jobs.push(Work { name: model.name, check: model.check, generated: None });
    }
    let wanted = |subject: &Subject| options.only.iter().all(|part| subject.name.contains(part.as_str()));
    for (subject, asks) in subjects().into_iter().filter(|(subject, _)| wanted(subject)) {
        jobs.push(Work { name: subject.name, check: subject.check, generated: Some(asks) });
    }
    let results = pool::each(|| Ok(jobs), options.processes, |job| job.run(options).unwrap_or_default())?;
    if pool::is_copy() {
        return Ok(());
    }
    let rows = results.len();
    let bad: Vec<_> = results.into_iter().filter(|why| !why.is_empty()).collect();
    println!("seed {}: {rows} rows, {:.0} s", options.seed, start.elapsed().as_secs_f64());
    if rows == 0 {
        Err("no limiter and no model has such a name".into())
    } else if bad.is_empty() {
        Ok(())
    } else {
        Err(format!("killed by {} of {rows} rows, the first {}", bad.len(), bad[0]))
    }
}

struct Work {
    name: String,
    check: tollgate_check::Check,
    generated: Option<Asks>,
}

impl Work {
    /// `Some`: broken.
    fn run(&self, options: &Options) -> Option<String> {
        let scenarios = if self.generated.is_some() { options.runs.div_ceil(SCHEDULES) } else { 1 };
        let (mut schedules, mut broken) = (0, None);
        for n in 0..scenarios {
            let mut check = self.check.clone().max_time(options.max_time).max_steps(STEPS_MAX);
            let mut seed = options.seed;
            if let Some(asks) = self.generated {
                // The scenario's own seed, so that one found can be run alone with `--runs 1`.
                seed = seed.wrapping_add(n);
                check = check.only(scenario(seed, asks)).max_executions(SCHEDULES);
            } else {
                check = check.max_executions(options.runs);
            }
            let report = check.seed(seed).run();
            schedules += report.rows.iter().map(|row| row.executions).sum::<u64>();
            match &report.outcome {
                // Chance proves nothing, but that it ran.
                Outcome::Inconclusive { why } if why.contains("executions") => {}
                Outcome::Pass { .. } => unreachable!("chance proves nothing"),
                Outcome::Inconclusive { why } => broken = Some(format!("no verdict: {why}")),
                Outcome::Fail => {
                    let property = report.failures[0].property;
                    broken = Some(format!("{}: {property} (seed {seed})", self.name));
                    println!("\n{report}");
                }
            }
            if broken.is_some() {
                break;
            }
        }
        let verdict = broken.as_deref().unwrap_or("nothing found");
        println!("| {} | {scenarios} | {schedules} | {verdict} |", self.name);
        broken
    }
}
