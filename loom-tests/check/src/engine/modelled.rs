//! Under loom, or shuttle.

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::{End, Job, Run, Witness, judge, message, quietly};
use crate::{
    Limiter,
    history::{History, MAIN, Order},
    limiter::{Call, When},
    rt::thread,
    search::{Broken, Property},
    sync::{AtomicExt, AtomicU64, Ordering},
    trace::{self, Ghost, Mode, SiteOrder, Unwound},
};

/// Branches of one execution at most; a call's own bound on steps is met long before.
#[cfg(not(tollgate_shuttle))]
const BRANCHES_MAX: usize = 20_000;

/// Executions in which to look for a witness that needs no old value, after one that does.
const BETTER_MAX: u64 = 20_000;

/// Ends the exploration from inside.
#[cfg_attr(tollgate_shuttle, allow(dead_code))]
struct Stop;

#[derive(Default)]
struct Tally {
    executions: u64,
    given_up: u64,
    end: Option<End>,
    /// The first execution that breaks a promise because a load saw an old value.
    stale: Option<Box<Witness>>,
    judged: HashSet<History>,
    frozen: bool,
    most: (u32, u32),
    sites: Vec<SiteOrder>,
}

pub(super) fn run(job: &Job) -> Run {
    let tally = Arc::new(Mutex::new(Tally::default()));
    let ended = quietly(|| {
        let (job, tally) = (job.clone(), tally.clone());
        catch_unwind(AssertUnwindSafe(|| explore(job, tally)))
    });
    trace::with(|ghost| ghost.mode = Mode::Off);
    let mut tally = std::mem::take(&mut *lock(&tally));
    let end = match ended {
        Ok(()) => tally.end.take().unwrap_or(End::Complete),
        Err(payload) if payload.is::<Stop>() => tally.end.take().expect("who stops says why"),
        Err(payload) => checker_gave_up(&message(&*payload), tally.executions, job.seed),
    };
    let end = match (end, tally.stale.take()) {
        (End::Complete | End::Cut(_), Some(stale)) => End::Broken(stale),
        (end, _) => end,
    };
    trace::with(|ghost| take_from(ghost, &mut tally));
    let Tally { executions, given_up, .. } = tally;
    Run { executions, given_up, end, most: tally.most, sites: tally.sites, frozen: tally.frozen }
}

#[cfg(not(tollgate_shuttle))]
fn explore(job: Job, tally: Arc<Mutex<Tally>>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = job.bound.map(usize::from);
    model.max_branches = BRANCHES_MAX;
    model.max_permutations = None;
    model.max_duration = None;
    model.location = false;
    model.check(move || {
        if enough(&job, &mut lock(&tally)) {
            resume_unwind(Box::new(Stop));
        }
        execute(&job, &tally);
    });
}

#[cfg(tollgate_shuttle)]
fn explore(job: Job, tally: Arc<Mutex<Tally>>) {
    let (asked, of) = (job.clone(), tally.clone());
    let enough = move || enough(&asked, &mut lock(&of));
    super::random::explore(job.seed, enough, move || execute(&job, &tally));
}

/// Whether to end before the next execution; else counts it.
fn enough(job: &Job, tally: &mut Tally) -> bool {
    if tally.end.is_none() {
        if tally.stale.as_ref().is_some_and(|stale| tally.executions >= stale.execution + BETTER_MAX) {
            tally.end = Some(End::Complete); // Replaced by the stale witness.
        } else if tally.executions >= job.executions_max {
            tally.end = Some(End::Cut(format!("stopped after {} executions", tally.executions)));
        } else if tally.executions % 64 == 63 && Instant::now() >= job.deadline {
            tally.end = Some(End::Cut(format!("out of time after {} executions", tally.executions)));
        }
    }
    tally.executions += u64::from(tally.end.is_none());
    tally.end.is_some()
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves what the observer has gathered over all executions.
fn take_from(ghost: &mut Ghost, tally: &mut Tally) {
    tally.most = std::mem::take(&mut ghost.most);
    let own = |seen: &SiteOrder| seen.site.file == file!();
    tally.sites = ghost.sites.drain(..).map(|(_, seen)| seen).filter(|seen| !own(seen)).collect();
    tally.sites.sort_by_key(|seen| (seen.site, seen.op));
    tally.sites.dedup();
}

/// One execution, in the checker's first thread.
fn execute(job: &Job, shared: &Arc<Mutex<Tally>>) {
    trace::reset(job.scenario.threads.len() + usize::from(job.scenario.clock.len() > 1));
    trace::with(|ghost| {
        ghost.freeze = job.freeze;
        ghost.steps_max = job.steps_max;
        ghost.alone_max = job.alone_max;
        if ghost.weakenings != job.weakenings {
            ghost.weakenings.clone_from(&job.weakenings);
        }
    });
    threads(job);
    conclude(job, &mut lock(shared));
}

/// Setup, threads, after.
fn threads(job: &Job) {
    let scenario = &job.scenario;
    let limiter = match catch_unwind(AssertUnwindSafe(|| (job.make)())) {
        Ok(limiter) => limiter,
        Err(payload) => return panicked("the constructor", &*payload),
    };
    let first = scenario.clock.first().copied().unwrap_or(0);
    let clock = Arc::new(AtomicU64::new(first).named("clock"));
    if !scenario.setup.iter().all(|call| make_call(MAIN, call, &*limiter, &clock)) {
        return;
    }
    trace::with(Ghost::fork);
    let main = thread::current();
    let (mut count, mut hands) = (0, Vec::new());
    let mut spawn = |body: Box<dyn FnOnce(usize) + Send>| {
        count += 1;
        let (thread, main) = (count, main.clone());
        hands.push(thread::spawn(move || {
            let id = thread::current().id();
            trace::with(|ghost| ghost.register(thread, id));
            body(thread);
            trace::with(|ghost| ghost.finished += 1);
            main.unpark();
        }));
    };
    for calls in &scenario.threads {
        let (calls, limiter, clock) = (calls.clone(), limiter.clone(), clock.clone());
        spawn(Box::new(move |thread| {
            calls.iter().all(|call| make_call(thread, call, &*limiter, &clock));
        }));
    }
    if scenario.clock.len() > 1 {
        let (times, clock) = (scenario.clock[1..].to_vec(), clock.clone());
        spawn(Box::new(move |_| times.iter().for_each(|&time| clock.store(time, Ordering::Relaxed))));
    }
    // Shuttle may wake who parks for no reason, again and again.
    if cfg!(tollgate_shuttle) {
        hands.drain(..).for_each(|hand| drop(hand.join()));
    }
    // Not `join`: loom's prints to stderr. Parking loses no order either: who unparks hands on all it has seen.
    while trace::with(|ghost| ghost.finished) < count {
        thread::park();
    }
    trace::with(Ghost::join);
    scenario.after.iter().all(|call| make_call(MAIN, call, &*limiter, &clock));
}

/// Makes a call. `false`: this thread goes no further.
fn make_call(thread: usize, call: &Call, limiter: &dyn Limiter, clock: &AtomicU64) -> bool {
    let now = match call.when() {
        Some(When::At(now)) => now,
        Some(When::Clock) => clock.load(Ordering::Relaxed),
        None => 0,
    };
    trace::with(|ghost| ghost.begin(thread, call.clone(), now));
    let made = catch_unwind(AssertUnwindSafe(|| call.make(limiter, now)));
    match made {
        Ok(Some(answer)) => {
            trace::with(|ghost| ghost.end(thread, answer));
            return true;
        }
        Ok(None) => trace::with(|ghost| {
            ghost.breaks(Broken::Unjudged(format!("the limiter does not offer {}", call.at(now))));
        }),
        Err(payload) if payload.is::<Unwound>() => {}
        Err(payload) if trace::with(|ghost| ghost.inside[thread]) => resume_unwind(payload),
        Err(payload) => panicked(&call.at(now), &*payload),
    }
    trace::with(|ghost| ghost.abandon(thread));
    trace::unpark_if_over();
    false
}

fn panicked(who: &str, payload: &(dyn std::any::Any + Send)) {
    let words = format!("{who} panicked: {}", message(payload));
    trace::with(|ghost| ghost.breaks(Broken::Property(Property::NoPanic, words)));
}

/// Judges the execution that has just ended.
fn conclude(job: &Job, tally: &mut Tally) {
    struct Seen {
        broken: Option<Broken>,
        history: History,
        steps: u32,
        frozen: bool,
        gave_up: bool,
        impossible: bool,
    }
    // With sequentially consistent words, what returned is known.
    let order = if cfg!(tollgate_shuttle) { Order::RealTime } else { job.spec.order };
    let seen = trace::with(|ghost| {
        ghost.mode = Mode::Off;
        let records = ghost.records.iter().filter(|record| record.began != u32::MAX).cloned().collect();
        Seen {
            broken: ghost.take_broken(),
            history: History::new(records, order),
            steps: (1..=job.scenario.threads.len()).map(|thread| ghost.steps_of(thread)).sum(),
            frozen: ghost.frozen,
            gave_up: ghost.gave_up,
            impossible: ghost.impossible,
        }
    });
    tally.frozen |= seen.frozen;
    let asked = job.replay == Some(tally.executions);
    let verdict = match seen.broken {
        Some(Broken::Unjudged(why)) => Err(Broken::Unjudged(why)),
        // Not an execution of the language, or one that the runs without a frozen thread judge.
        _ if !asked && (seen.impossible || job.freeze.is_some() && !seen.frozen) => Ok(()),
        Some(broken) => Err(broken),
        None if seen.gave_up => {
            tally.given_up += 1;
            Ok(())
        }
        None if tally.executions == 1 && seen.steps == 0 && !job.scenario.threads.is_empty() => {
            let why =
                "the limiter made no atomic access that the checker sees: build it on tollgate_check::sync";
            Err(Broken::Unjudged(why.into()))
        }
        None if !asked && tally.judged.contains(&seen.history) => Ok(()),
        None => {
            let verdict = judge(&job.spec, &seen.history);
            if verdict.is_ok() {
                tally.judged.insert(seen.history);
            }
            verdict
        }
    };
    match verdict {
        Ok(()) if asked => {
            tally.end = Some(End::Void(format!("execution {} keeps all promises", tally.executions)))
        }
        Ok(()) => {}
        Err(Broken::Unjudged(why)) => tally.end = Some(End::Void(why)),
        Err(Broken::Property(property, words)) => {
            let witness = Box::new(witness(property, words, tally.executions, job.seed));
            if witness.stale && job.believable && !asked {
                tally.stale.get_or_insert(witness);
            } else {
                tally.end = Some(End::Broken(witness));
            }
        }
    }
}

fn witness(property: Property, words: String, execution: u64, seed: u64) -> Witness {
    trace::with(|ghost| Witness {
        property,
        words,
        records: ghost.records.clone(),
        events: ghost.events.clone(),
        names: ghost.word_names(),
        stale: ghost.stale,
        execution,
        seed,
    })
}

/// A panic of the checker itself.
fn checker_gave_up(message: &str, execution: u64, seed: u64) -> End {
    let first = message.lines().next().unwrap_or_default();
    if message.contains("deadlock") && trace::with(|ghost| ghost.frozen) {
        let words = "the calls that are left wait for a lock that the frozen thread holds".into();
        return End::Broken(Box::new(witness(Property::LockFree, words, execution, seed)));
    }
    let property = if message.contains("Causality violation") || message.contains("Concurrent") {
        Property::DataRace
    } else if message.contains("deadlock") {
        Property::Deadlock
    } else if message.contains("leaked") {
        Property::NoLeak
    } else {
        return End::Void(format!("the checker stopped in execution {execution}: {first}"));
    };
    End::Broken(Box::new(witness(property, first.to_string(), execution, seed)))
}
