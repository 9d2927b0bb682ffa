//! One scenario run in many interleavings: by loom under the model, by real threads without it.

use std::{sync::Arc, time::Instant};

use crate::{
    Limiter, Scenario, Spec,
    history::Record,
    search::{Broken, Property},
    trace::{Event, SiteOrder, Weakening},
};

#[cfg(tollgate_loom)]
mod modelled;
#[cfg(tollgate_shuttle)]
mod random;
#[cfg(tollgate_loom)]
pub(crate) mod watch;

#[cfg(not(tollgate_loom))]
mod native;
#[cfg(not(tollgate_loom))]
pub(crate) use native::run;

/// Runs a job; see [`Run`].
#[cfg(tollgate_loom)]
pub(crate) fn run(job: &Job) -> Run {
    watch::watched(job, modelled::run)
}

pub(crate) type Make = Arc<dyn Fn() -> Arc<dyn Limiter> + Send + Sync>;

/// What to run.
#[derive(Clone)]
#[cfg_attr(not(tollgate_loom), allow(dead_code))]
pub(crate) struct Job {
    pub(crate) make: Make,
    pub(crate) spec: Spec,
    pub(crate) scenario: Scenario,
    /// Preemptions at most; `None`: any number.
    #[cfg_attr(tollgate_shuttle, allow(dead_code))]
    pub(crate) bound: Option<u8>,
    /// A thread, and after how many of its atomic steps it is frozen for good.
    pub(crate) freeze: Option<(usize, u32)>,
    pub(crate) steps_max: u32,
    pub(crate) alone_max: u32,
    pub(crate) executions_max: u64,
    pub(crate) deadline: Instant,
    /// Of random schedules.
    pub(crate) seed: u64,
    /// Whether to look on, after a failure that needs an old value, for one that does not.
    pub(crate) believable: bool,
    /// Show this execution, whatever it does.
    pub(crate) replay: Option<u64>,
    pub(crate) weakenings: Vec<Weakening>,
}

/// What became of it.
pub(crate) struct Run {
    pub(crate) executions: u64,
    /// Of them given up because a call waited too long, or saw old values without end.
    pub(crate) given_up: u64,
    pub(crate) end: End,
    /// The most atomic steps of a call among others, and alone.
    pub(crate) most: (u32, u32),
    pub(crate) sites: Vec<SiteOrder>,
    /// Whether the thread to freeze ever came so far.
    pub(crate) frozen: bool,
}

pub(crate) enum End {
    /// Every interleaving within the bound was run.
    Complete,
    /// Stopped before.
    Cut(String),
    /// No verdict can be had.
    Void(String),
    /// It never ends, and another run would not either.
    #[cfg_attr(not(tollgate_loom), allow(dead_code))]
    Hung(String),
    /// A promise is broken.
    Broken(Box<Witness>),
}

/// An execution that breaks a promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Witness {
    pub(crate) property: Property,
    pub(crate) words: String,
    pub(crate) records: Vec<Record>,
    pub(crate) events: Vec<Event>,
    pub(crate) names: Vec<String>,
    /// Whether a load saw a value that another thread had replaced.
    pub(crate) stale: bool,
    /// Counted from 1.
    pub(crate) execution: u64,
    pub(crate) seed: u64,
}

/// Judges off the model's small stacks.
fn judge(spec: &Spec, history: &crate::History) -> Result<(), Broken> {
    std::thread::scope(|scope| match scope.spawn(|| spec.judge.judge(history)).join() {
        Ok(verdict) => verdict,
        Err(_) => Err(Broken::Unjudged("the oracle panicked".into())),
    })
}

/// The message of a panic.
fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}

/// Runs `f` with the panic hook silent on this thread.
fn quietly<R>(f: impl FnOnce() -> R) -> R {
    use std::{cell::Cell, sync::Once};
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let was = QUIET.replace(true);
    let result = f();
    QUIET.set(was);
    result
}
