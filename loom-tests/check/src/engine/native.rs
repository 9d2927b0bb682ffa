//! With real threads: a smoke check, since nothing says which interleavings the machine chooses.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Barrier, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    },
    time::Instant,
};

use super::{End, Job, Run, Witness, judge, message, quietly};
use crate::{
    Limiter,
    history::{History, MAIN, Record},
    limiter::{Call, When},
    search::{Broken, Property},
};

/// Executions at most: each starts its threads anew.
const EXECUTIONS_MAX: u64 = 200;

struct Native<'a> {
    limiter: &'a dyn Limiter,
    clock: AtomicU64,
    now: AtomicU32,
    records: Mutex<Vec<Record>>,
    broken: Mutex<Option<Broken>>,
}

impl Native<'_> {
    fn calls(&self, thread: usize, calls: &[Call]) {
        for call in calls {
            let now = match call.when() {
                Some(When::At(now)) => now,
                Some(When::Clock) => self.clock.load(SeqCst),
                None => 0,
            };
            let began = self.now.fetch_add(1, SeqCst);
            let made = catch_unwind(AssertUnwindSafe(|| quietly(|| call.make(self.limiter, now))));
            let ended = Some(self.now.fetch_add(1, SeqCst));
            let broken = match made {
                Ok(Some(answer)) => {
                    let record = Record {
                        thread,
                        call: call.clone(),
                        now,
                        answer: Some(answer),
                        began,
                        ended,
                        knew: None,
                        last: 0,
                    };
                    self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
                    continue;
                }
                Ok(None) => Broken::Unjudged(format!("the limiter does not offer {}", call.at(now))),
                Err(payload) => {
                    let words = format!("{} panicked: {}", call.at(now), message(&*payload));
                    Broken::Property(Property::NoPanic, words)
                }
            };
            self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(broken);
            return;
        }
    }
}

pub(crate) fn run(job: &Job) -> Run {
    let mut run =
        Run { executions: 0, given_up: 0, end: End::Complete, most: (0, 0), sites: vec![], frozen: false };
    let most = job.executions_max.min(EXECUTIONS_MAX);
    while run.executions < most && Instant::now() < job.deadline {
        run.executions += 1;
        match execute(job) {
            Ok(()) => {}
            Err((Broken::Unjudged(why), _)) => {
                run.end = End::Void(why);
                return run;
            }
            Err((Broken::Property(property, words), history)) => {
                run.end = End::Broken(Box::new(Witness {
                    property,
                    words,
                    records: history.records,
                    events: vec![],
                    names: vec![],
                    stale: false,
                    execution: run.executions,
                    seed: 0,
                }));
                return run;
            }
        }
    }
    run.end = End::Cut(format!("{} runs of real threads", run.executions));
    run
}

fn execute(job: &Job) -> Result<(), (Broken, History)> {
    let scenario = &job.scenario;
    let limiter = (job.make)();
    let native = Native {
        limiter: &*limiter,
        clock: AtomicU64::new(scenario.clock.first().copied().unwrap_or(0)),
        now: AtomicU32::new(0),
        records: Mutex::default(),
        broken: Mutex::default(),
    };
    native.calls(MAIN, &scenario.setup);
    let ticks = scenario.clock.get(1..).unwrap_or_default();
    let start = Barrier::new(scenario.threads.len() + 1);
    std::thread::scope(|scope| {
        for (i, calls) in scenario.threads.iter().enumerate() {
            let (native, start) = (&native, &start);
            scope.spawn(move || {
                start.wait();
                native.calls(i + 1, calls);
            });
        }
        start.wait();
        ticks.iter().for_each(|&time| native.clock.store(time, SeqCst));
    });
    native.calls(MAIN, &scenario.after);
    let records = native.records.into_inner().unwrap_or_else(PoisonError::into_inner);
    let history = History::new(records, job.spec.order);
    let verdict = match native.broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(broken) => Err(broken),
        None => judge(&job.spec, &history),
    };
    verdict.map_err(|broken| (broken, history))
}
