//! What the calls of one execution answered, and when.

use crate::limiter::{Call, Verdict};

/// The thread that runs setup and after, and starts the others.
pub(crate) const MAIN: usize = 0;

/// One call of one execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// Who called: 0 before and after the threads, else the thread's place in the scenario, from 1.
    pub thread: usize,
    /// The call.
    pub call: Call,
    /// The time it carried.
    pub now: u64,
    /// What it answered; `None` if its thread died inside.
    pub answer: Option<Verdict>,
    /// The moment of its first atomic step.
    pub began: u32,
    /// The moment at which it returned.
    pub ended: Option<u32>,
    /// What its first step knew of the other threads' steps, and the number of its own thread's last one.
    pub(crate) knew: Option<Knowledge>,
    pub(crate) last: u32,
}

/// For each thread the number of its steps that happen before.
pub(crate) type Knowledge = [u32; crate::THREADS_MAX + 1];

/// The calls of one execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct History {
    /// In the order in which they began.
    pub records: Vec<Record>,
    /// For each call the calls that come before it, as bits.
    pub(crate) before: Vec<u64>,
}

/// Which calls count as one before the other. The calls of one thread always do, and so do those before and after
/// the threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// A call whose last step *happens before* another's first, in the sense of the memory model: what any caller can
    /// know. A limiter may answer from a value that is out of date as long as nobody can tell.
    #[default]
    HappensBefore,
    /// A call that returned before another began, by a clock that no thread has: linearizability as in the textbook.
    /// Limiters that refuse after a plain load break it in loom's model, where a load may see a value that another
    /// thread has replaced; hardware with coherent caches shows them no such thing.
    RealTime,
}

// === impl Record ===

impl Record {
    /// `T1 acquire(1, t=5)`.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", thread_name(self.thread), self.call.at(self.now))
    }
}

pub(crate) fn thread_name(thread: usize) -> String {
    if thread == MAIN { "--".into() } else { format!("T{thread}") }
}

// === impl History ===

impl History {
    /// Moments replaced by their ranks, so that executions which differ only inside the calls become equal.
    pub(crate) fn new(mut records: Vec<Record>, order: Order) -> History {
        records.sort_by_key(|record| record.began);
        let before = records.iter().map(|b| {
            let set = records.iter().enumerate().filter(|(_, a)| comes_before(a, b, order));
            set.fold(0, |bits, (i, _)| bits | 1 << i)
        });
        let before = before.collect();
        let mut moments: Vec<u32> = Vec::with_capacity(2 * records.len());
        for record in &records {
            moments.push(record.began);
            moments.extend(record.ended);
        }
        moments.sort_unstable();
        let rank = |moment: u32| moments.partition_point(|&m| m < moment) as u32;
        for record in &mut records {
            record.began = rank(record.began);
            record.ended = record.ended.map(rank);
            (record.knew, record.last) = (None, 0);
        }
        History { records, before }
    }

    /// The newest time that any call begun before the end of this one has carried.
    pub(crate) fn latest(&self, record: &Record) -> u64 {
        let ended = record.ended.unwrap_or(u32::MAX);
        self.records.iter().filter(|other| other.began < ended).map(|other| other.now).max().unwrap_or(0)
    }
}

fn comes_before(a: &Record, b: &Record, order: Order) -> bool {
    let ended_first = a.ended.is_some_and(|ended| ended < b.began);
    let always = a.thread == b.thread || a.thread == MAIN || b.thread == MAIN;
    ended_first
        && match (order, b.knew) {
            (Order::HappensBefore, Some(knew)) => always || knew[a.thread] >= a.last,
            _ => true,
        }
}
