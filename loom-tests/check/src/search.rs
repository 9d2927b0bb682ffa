//! The search for an order of the calls that explains their answers, and what it means if there is none.

use std::{collections::HashSet, fmt, hash::Hash};

use crate::{
    history::{History, Record},
    limiter::{Call, Verdict},
};

/// A sequential limiter that says which answers are right. Write your own for a limiter with rules of its own.
///
/// # Examples
/// A limiter that admits `n` permits once and for all:
/// ```
/// use tollgate_check::{Call, Oracle, Question, Spec, Verdict};
///
/// struct Once(u64);
///
/// impl Oracle for Once {
///     type State = u64;
///     fn name(&self) -> String {
///         format!("{} permits, once", self.0)
///     }
///     fn start(&self) -> u64 {
///         self.0
///     }
///     fn outcomes(&self, left: &u64, question: &Question<'_>) -> Option<Vec<(Verdict, u64)>> {
///         let Call::Acquire { cost, .. } = question.call else { return None };
///         Some(match left.checked_sub(*cost) {
///             Some(rest) => vec![(Verdict::Admitted, rest)],
///             None => vec![(Verdict::Never, *left)],
///         })
///     }
/// }
/// let spec = Spec::oracle(Once(3));
/// # let _ = spec;
/// ```
pub trait Oracle: Send + Sync + 'static {
    /// What it remembers between calls.
    type State: Clone + Eq + Hash;

    /// What it allows, in a few words.
    fn name(&self) -> String;

    /// Its state before any call.
    fn start(&self) -> Self::State;

    /// The answers that are right for this call in this state, each with the state it leads to. `None`: this
    /// oracle says nothing about such a call, and the run is inconclusive.
    fn outcomes(&self, state: &Self::State, question: &Question<'_>) -> Option<Vec<(Verdict, Self::State)>>;
}

/// One call, as an oracle is asked about it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The call.
    pub call: &'a Call,
    /// The time it carried.
    pub now: u64,
    /// The newest time carried by any call that began before this one returned, its own among them. An exact
    /// limiter has no use for it.
    pub latest: u64,
    /// Changes of the rules that have been taken before this call, though they had not returned when it began: it may
    /// still be judged by the rules before them, if the limiter says so.
    pub overlapped: usize,
}

/// What was promised and not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Property {
    /// More was admitted than any order of the calls allows.
    OverLimit,
    /// A call was refused though at every instant inside it there was room.
    FalseRefusal,
    /// A refusal told a wait that is not the shortest after which the same call would pass.
    WrongRetryAfter,
    /// A peek told what no call at any instant inside it would have been told.
    WrongPeek,
    /// A call did not end within a fixed number of its own atomic steps while others were suspended.
    LockFree,
    /// A call that ran alone took more atomic steps than allowed.
    BoundedAlone,
    /// Memory that is not atomic was accessed by two threads at once.
    DataRace,
    /// All threads waited for each other.
    Deadlock,
    /// A call panicked.
    NoPanic,
    /// Something allocated under the model was not freed.
    NoLeak,
    /// What a litmus test says can not be seen was seen.
    Litmus,
}

/// A property that an execution breaks, with the circumstances in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    Property(Property, String),
    /// The oracle has no opinion.
    Unjudged(String),
}

/// An [`Oracle`] whose state is hidden.
pub(crate) trait Judge: Send + Sync {
    fn name(&self) -> String;
    fn judge(&self, history: &History) -> Result<(), Broken>;
}

impl Property {
    /// The property in words.
    pub fn words(self) -> &'static str {
        match self {
            Property::OverLimit => "never over the limit",
            Property::FalseRefusal => "never falsely refused",
            Property::WrongRetryAfter => "retry-after is right",
            Property::WrongPeek => "peek is right",
            Property::LockFree => "lock-free",
            Property::BoundedAlone => "bounded when alone",
            Property::DataRace => "no data race",
            Property::Deadlock => "no deadlock",
            Property::NoPanic => "no panic",
            Property::NoLeak => "nothing leaks",
            Property::Litmus => "the litmus test holds",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

// === the search ===

struct Search<'a, O: Oracle> {
    oracle: &'a O,
    history: &'a History,
    /// Calls that must be explained; the others died and may be taken or left.
    must: u64,
    /// Calls left out altogether.
    ignored: u64,
    /// Calls that change the rules.
    changes: u64,
    /// Calls whose wait is not compared.
    any_wait: u64,
    dead_ends: HashSet<(u64, O::State)>,
    /// The oracle's answers along the way found.
    told: Vec<(usize, Verdict)>,
    unjudged: bool,
}

impl<O: Oracle> Search<'_, O> {
    /// Whether the calls not in `done` can follow in some order from `state`.
    fn explains(&mut self, done: u64, state: &O::State) -> bool {
        if self.must & !done == 0 {
            return true;
        }
        if self.dead_ends.contains(&(done, state.clone())) {
            return false;
        }
        for i in 0..self.history.records.len() {
            let bit = 1 << i;
            if (done | self.ignored) & bit != 0 || self.history.before[i] & !(done | self.ignored) != 0 {
                continue;
            }
            let record = &self.history.records[i];
            let latest = self.history.latest(record);
            let overlapped = (self.changes & done & !self.history.before[i]).count_ones() as usize;
            let question = Question { call: &record.call, now: record.now, latest, overlapped };
            let Some(outcomes) = self.oracle.outcomes(state, &question) else {
                self.unjudged = true;
                return true;
            };
            for (verdict, next) in outcomes {
                let agrees = record.answer.is_none_or(|answer| {
                    let any = self.any_wait & bit != 0;
                    (if any { answer.without_wait() } else { answer }).agrees(verdict)
                });
                if agrees {
                    self.told.push((i, verdict));
                    if self.explains(done | bit, &next) {
                        return true;
                    }
                    self.told.pop();
                }
            }
        }
        self.dead_ends.insert((done, state.clone()));
        false
    }
}

/// Whether some order explains the calls that are not `ignored`; if so, the oracle's answers.
fn explained<O: Oracle>(
    oracle: &O,
    history: &History,
    ignored: u64,
    any_wait: u64,
) -> Result<Option<Vec<(usize, Verdict)>>, Broken> {
    let bits = |test: &dyn Fn(&Record) -> bool| bits(history, test);
    let mut search = Search {
        oracle,
        history,
        must: bits(&|record| record.answer.is_some()) & !ignored,
        ignored,
        changes: bits(&|record| matches!(record.call, Call::Reconfigure { .. })),
        any_wait,
        dead_ends: HashSet::new(),
        told: Vec::new(),
        unjudged: false,
    };
    let found = search.explains(0, &oracle.start());
    if search.unjudged {
        let why = format!("the oracle \"{}\" says nothing about one of the calls", oracle.name());
        return Err(Broken::Unjudged(why));
    }
    Ok(found.then_some(search.told))
}

fn bits(history: &History, test: &dyn Fn(&Record) -> bool) -> u64 {
    history.records.iter().enumerate().filter(|(_, r)| test(r)).fold(0, |bits, (i, _)| bits | 1 << i)
}

impl<O: Oracle> Judge for O {
    fn name(&self) -> String {
        Oracle::name(self)
    }

    fn judge(&self, history: &History) -> Result<(), Broken> {
        if explained(self, history, 0, 0)?.is_some() {
            return Ok(());
        }
        Err(diagnose(self, history)?)
    }
}

/// Which promise no order of the calls keeps: the first whose removal leaves an order.
fn diagnose<O: Oracle>(oracle: &O, history: &History) -> Result<Broken, Broken> {
    let records = &history.records;
    let broken = |property, words: String| Ok(Broken::Property(property, words));
    let peeks = bits(history, &|r| matches!(r.call, Call::Peek { .. }));
    let refusals = bits(history, &|r| r.answer.is_some_and(|a| !a.is_admitted())) & !peeks;

    for (i, record) in records.iter().enumerate() {
        if let Some(told) = explained(oracle, history, 0, 1 << i)? {
            let right = told.iter().find(|(j, _)| *j == i).map(|(_, verdict)| verdict.to_string());
            let said = record.answer.map_or_else(String::new, |answer| answer.to_string());
            let right = right.unwrap_or_default();
            let words = format!("{} answered \"{said}\"; right would be \"{right}\"", record.title());
            return broken(Property::WrongRetryAfter, words);
        }
    }
    if explained(oracle, history, 0, u64::MAX)?.is_some() {
        return broken(Property::WrongRetryAfter, "several calls told a wait that is not right".into());
    }
    if explained(oracle, history, peeks, u64::MAX)?.is_some() {
        let words = "a peek told what no instant inside it bears out".into();
        return broken(Property::WrongPeek, words);
    }
    for (i, record) in records.iter().enumerate() {
        if refusals >> i & 1 == 1 && explained(oracle, history, peeks | 1 << i, u64::MAX)?.is_some() {
            let words =
                format!("{} was refused, but at every instant inside it there was room", record.title());
            return broken(Property::FalseRefusal, words);
        }
    }
    if explained(oracle, history, peeks | refusals, u64::MAX)?.is_some() {
        let words = "calls were refused though, in every order of the calls, there was room for one of them";
        return broken(Property::FalseRefusal, words.into());
    }
    let admitted: u64 = records
        .iter()
        .filter(|r| r.answer.is_some_and(Verdict::is_admitted))
        .map(|r| if let Call::Acquire { cost, .. } = r.call { cost } else { 0 })
        .sum();
    broken(
        Property::OverLimit,
        format!(
            "{admitted} permits were admitted; no order of the calls allows that under \"{}\"",
            oracle.name()
        ),
    )
}
