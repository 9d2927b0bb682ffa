//! Which steps happen before which, by the release and acquire orders seen.
//!
//! Where a load may have read from several stores of the same value, only what all of them would hand on counts: this
//! errs towards fewer pairs in order, and so towards fewer complaints.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Release, SeqCst};

use super::{
    Access, Effect, Op,
    torn::{Touch, Word},
};
use crate::history::{Knowledge, MAIN};

#[derive(Default)]
pub(crate) struct Before {
    threads: [Thread; crate::THREADS_MAX + 1],
    /// For each word the values stored and what each store hands on.
    stores: Vec<Vec<Store>>,
    /// For each word its accesses.
    words: Vec<Word>,
}

#[derive(Clone, Copy)]
struct Store {
    value: u64,
    handed_on: Knowledge,
    seq_cst: bool,
}

/// What a load saw.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Age {
    /// The last value stored.
    New,
    /// An earlier one.
    Old,
    /// What the language forbids: an earlier one, though both the load and a later store are SeqCst; or one that tears
    /// a read-modify-write.
    Impossible,
}

#[derive(Default)]
struct Thread {
    knows: Knowledge,
    /// What a relaxed store hands on: all that was known at the last release fence.
    released: Knowledge,
    /// What the next acquire fence learns.
    pending: Knowledge,
}

impl Before {
    pub(crate) fn clear(&mut self) {
        self.threads = Default::default();
        self.stores.clear();
        self.words.clear();
    }

    /// The threads start: each knows what the main one has done.
    pub(crate) fn fork(&mut self) {
        let knows = self.threads[MAIN].knows;
        self.threads.iter_mut().for_each(|thread| thread.knows = knows);
    }

    /// The threads are done: the main one knows what each has done.
    pub(crate) fn join(&mut self) {
        let all =
            self.threads.iter().map(|thread| thread.knows).fold(Knowledge::default(), |mut all, knows| {
                join(&mut all, &knows);
                all
            });
        self.threads[MAIN].knows = all;
    }

    /// The number of each thread's steps that happen before the next step of `thread`.
    pub(crate) fn before(&self, thread: usize) -> Knowledge {
        self.threads[thread].knows
    }

    /// A word that holds `value`, handed on by nobody.
    pub(crate) fn create(&mut self, word: usize, value: u64) {
        self.stores.resize_with(word + 1, Vec::new);
        self.stores[word].push(Store { value, handed_on: Knowledge::default(), seq_cst: false });
        self.words.resize_with(word + 1, Word::default);
        // Before all steps, so everybody knows it.
        let knew = Knowledge::default();
        self.words[word].add(Touch { thread: MAIN, step: 0, knew, read: None, wrote: Some(value) });
    }

    pub(crate) fn note(&mut self, access: &Access) -> Age {
        let thread = &mut self.threads[access.thread];
        let knew = thread.knows;
        thread.knows[access.thread] += 1;
        let (Some(order), Some(word)) = (access.order, access.word) else {
            if access.op == Op::Fence {
                if access.order.is_some_and(acquires) {
                    let pending = thread.pending;
                    join(&mut thread.knows, &pending);
                }
                if access.order.is_some_and(releases) {
                    thread.released = thread.knows;
                }
            }
            return Age::New;
        };
        let word = word as usize;
        let effect = access.effect;
        let (mut handed, mut age) = (Knowledge::default(), Age::New);
        if let Some(read) = effect.read {
            let stores = &self.stores[word];
            let same = stores.iter().filter(|store| store.value == read);
            handed = same.map(|store| store.handed_on).reduce(meet).unwrap_or_default();
            if access.op == Op::Load {
                let later = stores.iter().rev().take_while(|store| store.value != read);
                age = later.fold(Age::New, |age, store| {
                    age.max(if store.seq_cst && order == SeqCst { Age::Impossible } else { Age::Old })
                });
            }
            let failed = effect.wanted.is_some() && effect.wrote.is_none();
            let order = if failed { access.failure.unwrap_or(order) } else { order };
            if acquires(order) {
                join(&mut thread.knows, &handed);
            }
            join(&mut thread.pending, &handed);
        }
        if let Some(wrote) = effect.wrote {
            // A read-modify-write carries on what the store it read handed on.
            if effect.read.is_none() {
                handed = Knowledge::default();
            }
            join(&mut handed, if releases(order) { &thread.knows } else { &thread.released });
            self.stores[word].push(Store { value: wrote, handed_on: handed, seq_cst: order == SeqCst });
        }
        let step = thread.knows[access.thread];
        let Effect { read, wrote, .. } = effect;
        let whole = self.words[word].add(Touch { thread: access.thread, step, knew, read, wrote });
        if whole { age } else { Age::Impossible }
    }
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Acquire | AcqRel | SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Release | AcqRel | SeqCst)
}

fn join(to: &mut Knowledge, from: &Knowledge) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = (*to).max(*from));
}

fn meet(mut a: Knowledge, b: Knowledge) -> Knowledge {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).min(b));
    a
}
