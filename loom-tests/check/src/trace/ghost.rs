//! The observer of the running execution.
//!
//! Loom runs all threads of a model on one OS thread, so the observer is a plain thread-local: always current, and
//! invisible to the model.

use std::{cell::RefCell, panic::Location, sync::atomic::Ordering};

use super::shadow::{Shadows, Touch, shadows};
use super::{Access, Effect, Event, Op, Site, SiteOrder, Weakening, happens::Age};
use crate::{
    engine::watch::Pulse,
    history::{MAIN, Record},
    limiter::{Call, When},
    rt::thread,
    scenario::THREADS_MAX,
    search::{Broken, Property},
};

/// Whether there is an execution, and how an access reaches its word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mode {
    /// Not an execution of ours: straight to loom.
    #[default]
    Off,
    /// One thread runs: straight to the word.
    Alone,
    /// Through loom.
    Together,
}

/// Why a thread is unwound by an access.
pub(crate) enum Unwound {
    Frozen,
    Stuck,
}

/// Old values that a call may see. Stores become visible in finite time, so a call that sees more of them than this is
/// not worth following.
const OLD_MAX: u32 = 32;

const ALL: usize = THREADS_MAX + 1;

#[derive(Default)]
pub(crate) struct Ghost {
    pub(crate) mode: Mode,
    /// The thread whose place this is.
    ids: Vec<Option<thread::ThreadId>>,
    /// Moments: one for each access and each end of a call.
    now: u32,
    pub(crate) events: Vec<Event>,
    pub(crate) records: Vec<Record>,
    /// The call each thread is in, and whether it has taken its first step.
    open: [Option<(usize, bool)>; ALL],
    steps: [u32; ALL],
    steps_in_call: [u32; ALL],
    waits_in_call: [u32; ALL],
    old_in_call: [u32; ALL],
    /// Whether a thread is inside loom: a panic then is loom's.
    pub(crate) inside: [bool; ALL],
    pub(crate) finished: usize,
    /// The thread to freeze and after how many of its steps.
    pub(crate) freeze: Option<(usize, u32)>,
    pub(crate) frozen: bool,
    pub(crate) gave_up: bool,
    /// Whether a load saw a value that had been replaced, and whether one did to which the language forbids it.
    pub(crate) stale: bool,
    pub(crate) impossible: bool,
    pub(crate) steps_max: u32,
    pub(crate) alone_max: u32,
    words: Vec<&'static str>,
    pub(crate) weakenings: Vec<Weakening>,
    broken: Option<Broken>,
    happens: super::happens::Before,
    shadows: Shadows,
    /// Who waits for which lock.
    parked: Vec<(u32, thread::Thread)>,
    // Kept from one execution to the next.
    pub(crate) sites: Vec<(&'static Location<'static>, SiteOrder)>,
    /// The most steps that a call took among others, and alone.
    pub(crate) most: (u32, u32),
    pub(crate) pulse: Pulse,
}

thread_local! {
    static GHOST: RefCell<Ghost> = RefCell::default();
}

/// Looks at the observer. `f` must not touch the model.
pub(crate) fn with<R>(f: impl FnOnce(&mut Ghost) -> R) -> R {
    GHOST.with(|ghost| f(&mut ghost.borrow_mut()))
}

/// Begins another execution with so many threads beside the main one.
pub(crate) fn reset(threads: usize) {
    with(|ghost| {
        ghost.mode = Mode::Alone;
        ghost.pulse.fetch_add(1, Ordering::Relaxed);
        ghost.now = 0;
        ghost.ids.clear();
        ghost.ids.resize(ALL, None);
        ghost.ids[MAIN] = Some(thread::current().id());
        ghost.events.clear();
        ghost.records.clear();
        ghost.open = Default::default();
        ghost.steps = Default::default();
        ghost.steps_in_call = Default::default();
        ghost.inside = Default::default();
        ghost.finished = 0;
        ghost.frozen = false;
        ghost.gave_up = false;
        ghost.stale = false;
        ghost.impossible = false;
        ghost.words.clear();
        ghost.happens.clear();
        // Shuttle has no blind spot that shadows would fill.
        ghost.shadows.reset(if cfg!(tollgate_shuttle) { 0 } else { threads });
        ghost.broken = None;
        ghost.parked.clear();
    });
}

impl Ghost {
    /// Says which place the running thread has.
    pub(crate) fn register(&mut self, thread: usize, id: thread::ThreadId) {
        self.ids[thread] = Some(id);
    }

    /// The threads start.
    pub(crate) fn fork(&mut self) {
        self.mode = Mode::Together;
        self.happens.fork();
    }

    /// The threads are done.
    pub(crate) fn join(&mut self) {
        self.mode = Mode::Alone;
        self.happens.join();
    }

    pub(crate) fn begin(&mut self, thread: usize, call: Call, now: u64) {
        let index = self.records.len();
        self.events.push(Event::Begin(index));
        // It begins with its first step, or by reading the clock: so that whoever begins later carries no earlier time.
        let begun = call.when() == Some(When::Clock);
        let (began, knew) =
            if begun { (self.moment(), Some(self.happens.before(thread))) } else { (u32::MAX, None) };
        self.records.push(Record { thread, call, now, answer: None, began, ended: None, knew, last: 0 });
        self.open[thread] = Some((index, begun));
        self.steps_in_call[thread] = 0;
        self.waits_in_call[thread] = 0;
        self.old_in_call[thread] = 0;
    }

    pub(crate) fn end(&mut self, thread: usize, answer: crate::Verdict) {
        let (index, begun) = self.open[thread].take().expect("a call that ends has begun");
        let (now, ended) = (self.moment(), self.moment());
        let record = &mut self.records[index];
        record.answer = Some(answer);
        let knew = self.happens.before(thread);
        if !begun {
            (record.began, record.knew) = (now, Some(knew));
        }
        (record.ended, record.last) = (Some(ended), knew[thread]);
        self.events.push(Event::End(index));
        let most = if thread == MAIN { &mut self.most.1 } else { &mut self.most.0 };
        *most = (*most).max(self.steps_in_call[thread]);
    }

    /// Forgets a call that was never made or took no step.
    pub(crate) fn abandon(&mut self, thread: usize) {
        if let Some((index, false)) = self.open[thread].take() {
            self.records[index].began = u32::MAX;
        }
    }

    /// The first promise found broken.
    pub(crate) fn take_broken(&mut self) -> Option<Broken> {
        self.broken.take()
    }

    pub(crate) fn steps_of(&self, thread: usize) -> u32 {
        self.steps[thread]
    }

    /// The names of the words, numbered where they repeat.
    pub(crate) fn word_names(&self) -> Vec<String> {
        let same = |name: &str| self.words.iter().filter(|other| **other == name).count();
        let number = |i: usize| self.words[..i].iter().filter(|other| **other == self.words[i]).count();
        let name = |(i, name): (usize, &&str)| match (*name, same(name)) {
            ("", _) => format!("word{i}"),
            (name, 1) => name.into(),
            (name, _) => format!("{name}{}", number(i)),
        };
        self.words.iter().enumerate().map(name).collect()
    }

    /// Notes a broken promise: the first one counts, and none after this execution was given up, since what a thread
    /// that was stopped leaves behind is no fault of the limiter's.
    pub(crate) fn breaks(&mut self, broken: Broken) {
        if !self.is_over() {
            self.broken = Some(broken);
        }
    }

    /// Whether nothing more is asked of this execution.
    fn is_over(&self) -> bool {
        self.gave_up || self.impossible || self.broken.is_some()
    }

    fn moment(&mut self) -> u32 {
        self.pulse.fetch_add(1, Ordering::Relaxed);
        self.now += 1;
        self.now
    }

    fn weakened(&self, site: Site, failure: bool, order: Option<Ordering>) -> Option<Ordering> {
        let weakening = self.weakenings.iter().find(|w| w.failure == failure && site.is(&w.site));
        weakening.map_or(order, |w| w.to)
    }

    fn note_site(
        &mut self,
        at: &'static Location<'static>,
        op: Op,
        order: Ordering,
        failure: Option<Ordering>,
    ) {
        let known = |(other, seen): &(&'static Location<'static>, SiteOrder)| {
            std::ptr::eq(*other, at) && seen.op == op && seen.order == order && seen.failure == failure
        };
        if !self.sites.iter().any(known) {
            self.sites.push((at, SiteOrder { site: site(at), op, order, failure }));
        }
    }

    /// Notes an access that has just taken effect. `Some`: the thread goes no further.
    fn note(&mut self, access: Access) -> Option<Unwound> {
        let thread = access.thread;
        let now = self.moment();
        let age = self.happens.note(&access);
        self.stale |= age >= Age::Old;
        // Loom takes SeqCst accesses for AcqRel. Where such a load misses such a store, the order of execution can not
        // be their total order; if another can, loom runs that as well. And it tears read-modify-writes.
        self.impossible |= age == Age::Impossible;
        self.old_in_call[thread] += u32::from(age >= Age::Old);
        if let Some((index, begun)) = &mut self.open[thread]
            && !*begun
        {
            *begun = true;
            let record = &mut self.records[*index];
            (record.began, record.knew) = (now, Some(self.happens.before(thread)));
        }
        self.events.push(Event::Access(access));
        if self.impossible && thread != MAIN && self.open[thread].is_some() {
            return Some(Unwound::Stuck); // Nothing more is asked of this execution, not even whether it has races.
        }
        if matches!(access.op, Op::Read | Op::Write) {
            return None;
        }
        let (index, _) = self.open[thread]?; // The clock, read before the call, is no step of the limiter's.
        self.steps[thread] += 1;
        self.steps_in_call[thread] += 1;
        self.waits_in_call[thread] += u32::from(access.op == Op::Wait);
        if self.old_in_call[thread] > OLD_MAX {
            self.gave_up = true;
            return Some(Unwound::Stuck);
        }
        let max = if thread == MAIN { self.alone_max } else { self.steps_max };
        if self.steps_in_call[thread] > max {
            if thread != MAIN && self.freeze.is_none() && self.waits_in_call[thread] > 0 {
                // It says that it waits, and nobody is frozen: loom may hide the others' stores for ever.
                self.gave_up = true;
                return Some(Unwound::Stuck);
            }
            let title = self.records[index].title();
            let broken = if thread == MAIN {
                let words = format!("{title} ran alone and did not end within {max} atomic steps");
                Broken::Property(Property::BoundedAlone, words)
            } else {
                let words = format!("{title} did not end within {max} of its own atomic steps");
                Broken::Property(Property::LockFree, words)
            };
            self.breaks(broken);
            return Some(Unwound::Stuck);
        }
        if self.freeze == Some((thread, self.steps[thread])) {
            self.frozen = true;
            self.events.push(Event::Frozen(thread));
            return Some(Unwound::Frozen);
        }
        None
    }
}

fn site(at: &'static Location<'static>) -> Site {
    Site { file: at.file(), line: at.line(), column: at.column() }
}

/// The place of the running thread; `None` outside our executions.
fn current() -> Option<(usize, Mode)> {
    if with(|ghost| ghost.mode == Mode::Off) {
        return None;
    }
    let id = thread::current().id();
    with(|ghost| ghost.ids.iter().position(|other| *other == Some(id)).map(|thread| (thread, ghost.mode)))
}

pub(crate) fn new_word(value: Option<u64>) -> u32 {
    let threads = with(|ghost| if ghost.mode == Mode::Alone { ghost.shadows.threads() } else { 0 });
    let shadows = shadows(threads);
    with(|ghost| {
        ghost.shadows.push(shadows);
        let word = ghost.words.len();
        ghost.words.push("");
        if let Some(value) = value {
            ghost.happens.create(word, value);
        }
        word as u32
    })
}

pub(crate) fn name_word(word: u32, name: &'static str) {
    with(|ghost| ghost.words[word as usize] = name);
}

/// The orders to use, or `None` to go straight to the word.
type How = Option<(Ordering, Ordering)>;

/// Makes an access and notes it. A thread that is being unwound is frozen in the model: its access is not made,
/// and `pretended` answers.
pub(crate) fn access<R>(
    at: &'static Location<'static>,
    word: u32,
    op: Op,
    order: Ordering,
    failure: Option<Ordering>,
    pretended: R,
    make: impl FnOnce(How) -> (R, Effect),
) -> R {
    let or_relaxed = |failure: Option<Ordering>| failure.unwrap_or(Ordering::Relaxed);
    if std::thread::panicking() {
        return pretended;
    }
    let Some((thread, mode)) = current() else { return make(Some((order, or_relaxed(failure)))).0 };
    let (used, used_failure) = with(|ghost| {
        if mode == Mode::Together {
            ghost.note_site(at, op, order, failure);
        }
        ghost.inside[thread] = true;
        if ghost.weakenings.is_empty() {
            return (order, failure);
        }
        let used = ghost.weakened(site(at), false, Some(order)).unwrap_or(order);
        (used, ghost.weakened(site(at), true, failure))
    });
    if mode == Mode::Together {
        let touch = with(|ghost| ghost.shadows.before(thread, word, op));
        touch.into_iter().for_each(Touch::touch);
    }
    let (result, effect) = make((mode == Mode::Together).then(|| (used, or_relaxed(used_failure))));
    let unwound = with(|ghost| {
        ghost.inside[thread] = false;
        ghost.note(Access {
            thread,
            site: site(at),
            word: Some(word),
            op,
            order: Some(used),
            failure: used_failure,
            effect,
        })
    });
    if let Some(unwound) = unwound {
        std::panic::resume_unwind(Box::new(unwound));
    }
    result
}

/// Makes an access of memory that is not atomic.
pub(crate) fn plain<R>(at: &'static Location<'static>, word: u32, op: Op, make: impl FnOnce() -> R) -> R {
    // Noted first: a race is a panic inside.
    if !std::thread::panicking()
        && let Some((thread, _)) = current()
    {
        let unwound = with(|ghost| {
            let effect = Effect::default();
            ghost.note(Access {
                thread,
                site: site(at),
                word: Some(word),
                op,
                order: None,
                failure: None,
                effect,
            })
        });
        if let Some(unwound) = unwound {
            std::panic::resume_unwind(Box::new(unwound));
        }
        with(|ghost| ghost.inside[thread] = true);
        let result = make();
        with(|ghost| ghost.inside[thread] = false);
        return result;
    }
    make()
}

pub(crate) fn fence(at: &'static Location<'static>, order: Ordering) {
    without_word(at, Op::Fence, Some(order), |used| {
        if let Some(used) = used {
            crate::rt::sync::atomic::fence(used);
        }
    });
}

pub(crate) fn wait(at: &'static Location<'static>) {
    without_word(at, Op::Wait, None, |_| thread::yield_now());
}

/// Waits until the lock in `word` is given back, or this execution is over.
pub(crate) fn park(word: u32) {
    let Some((thread, _)) = current() else { return };
    let me = thread::current();
    let over = with(|ghost| {
        ghost.parked.push((word, me));
        ghost.inside[thread] = true; // If nobody ever gives it back, the checker panics in here.
        ghost.is_over()
    });
    if !over {
        thread::park();
    }
    let over = with(|ghost| {
        ghost.inside[thread] = false;
        ghost.is_over()
    });
    if over {
        std::panic::resume_unwind(Box::new(Unwound::Stuck));
    }
}

/// Wakes who waits for the lock in `word`.
pub(crate) fn unpark(word: u32) {
    let waited = with(|ghost| ghost.parked.extract_if(.., |(other, _)| *other == word).collect::<Vec<_>>());
    waited.iter().for_each(|(_, thread)| thread.unpark());
}

/// Wakes all who wait, if this execution is over.
pub(crate) fn unpark_if_over() {
    let waited = with(|ghost| if ghost.is_over() { std::mem::take(&mut ghost.parked) } else { vec![] });
    waited.iter().for_each(|(_, thread)| thread.unpark());
}

fn without_word(
    at: &'static Location<'static>,
    op: Op,
    order: Option<Ordering>,
    make: impl FnOnce(Option<Ordering>),
) {
    if std::thread::panicking() {
        return;
    }
    let Some((thread, mode)) = current() else { return make(order) };
    let used = with(|ghost| {
        if let (Mode::Together, Some(order)) = (mode, order) {
            ghost.note_site(at, op, order, None);
        }
        ghost.inside[thread] = true;
        ghost.weakened(site(at), false, order)
    });
    if mode == Mode::Together {
        make(used);
    }
    let unwound = with(|ghost| {
        ghost.inside[thread] = false;
        let effect = Effect::default();
        ghost.note(Access { thread, site: site(at), word: None, op, order: used, failure: None, effect })
    });
    if let Some(unwound) = unwound {
        std::panic::resume_unwind(Box::new(unwound));
    }
}
