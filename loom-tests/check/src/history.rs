//! What the calls of one execution answered, and when.

use crate::limiter::{Call, Verdict};

/// The thread that runs setup and after, and starts the others.
pub const MAIN: usize = 0;

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
}

/// The calls of one execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct History {
    /// In the order in which they began.
    pub records: Vec<Record>,
}

/// Which calls count as one before the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// A call that returned before another began comes before it (linearizability).
    #[default]
    RealTime,
    /// Only the calls of one thread are ordered, and those before and after the threads (sequential
    /// consistency): for designs that may answer from a stale read.
    PerThread,
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
    /// Moments replaced by their ranks: executions that differ only inside the calls become equal.
    pub(crate) fn normalized(mut self) -> History {
        self.records.sort_by_key(|record| record.began);
        let mut moments: Vec<u32> = Vec::with_capacity(2 * self.records.len());
        for record in &self.records {
            moments.push(record.began);
            moments.extend(record.ended);
        }
        moments.sort_unstable();
        let rank = |moment: u32| moments.partition_point(|&m| m < moment) as u32;
        for record in &mut self.records {
            record.began = rank(record.began);
            record.ended = record.ended.map(rank);
        }
        self
    }

    /// For each call the set of calls that come before it, as bits.
    pub(crate) fn before(&self, order: Order) -> Vec<u64> {
        let comes_before = |a: &Record, b: &Record| {
            a.ended.is_some_and(|ended| ended < b.began)
                && (order == Order::RealTime
                    || a.thread == b.thread
                    || a.thread == MAIN
                    || b.thread == MAIN)
        };
        let bits = |b: &Record| {
            let set = self.records.iter().enumerate().filter(|(_, a)| comes_before(a, b));
            set.fold(0, |bits, (i, _)| bits | 1 << i)
        };
        self.records.iter().map(bits).collect()
    }

    /// The newest time that any call begun before the end of this one has carried.
    pub(crate) fn latest(&self, record: &Record) -> u64 {
        let ended = record.ended.unwrap_or(u32::MAX);
        self.records.iter().filter(|other| other.began < ended).map(|other| other.now).max().unwrap_or(0)
    }
}
