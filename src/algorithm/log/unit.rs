//! Admission of single permits: the slot decides.
//!
//! The compare-and-swap of slot `t` is the admission; the head word is a hint that lags behind the true end `t` by
//! at most one claim. Nobody moves the hint but a caller about to claim, so a refusal stores nothing.
//!
//! # Invariants
//! | id | always                                                             | kept by                                     |
//! |----|--------------------------------------------------------------------|---------------------------------------------|
//! | I3 | times never decrease along the ring                                 | the maximum with the newest time            |
//! | I4 | a slot's value strictly grows from lap to lap, so a late CAS fails  | I3, a window is at least 1 ns                |
//! | I5 | the hint is the end or one before it, and never decreases           | a claim past the hint moves the hint first   |
//!
//! # Linearization points
//! L1 admission: the CAS of slot `t`. L2 refusal: the load that found slot `t` unclaimed. The hint, read again
//! unchanged afterwards, proves that the slots read before belong to the laps they were read for (I5).
//!
//! # Progress
//! Lock-free: a caller starts over only when another moved the hint or claimed the slot. A thread that dies between
//! the two leaves a hint that the next claim moves on.

use super::{
    Log,
    ring::{Head, LogLook, Pos, Slot, Stamp},
};
use crate::{
    Nanos,
    sync::{AcqRel, Acquire, Relaxed, Release},
};

/// The true end of the history, valid if the hint is read again unchanged.
struct End {
    hint: Head,
    pos: Pos,
    /// The value of slot `pos`: the admission a whole lap ago.
    oldest: Slot,
    newest: Slot,
}

/// One attempt to take one permit under one rule; `None` if another caller got in between.
#[inline(always)]
pub(super) fn attempt_one(log: &Log, now: Nanos) -> Option<bool> {
    // The rule is as large as the ring: its look-back is the slot about to be claimed, already read.
    attempt_if(log, now, |end, at| log.look_backs[0].is_past(end.oldest, at))
}

/// The same under several rules.
#[inline(never)]
pub(super) fn attempt_all(log: &Log, now: Nanos) -> Option<bool> {
    attempt_if(log, now, |end, at| {
        log.look_backs().iter().all(|rule| rule.is_past(look_back(log, end, rule.limit), at))
    })
}

#[inline(always)]
fn attempt_if(log: &Log, now: Nanos, free: impl Fn(&End, Stamp) -> bool) -> Option<bool> {
    let end = find_end(log);
    let at = Stamp::new(now).max(end.newest.stamp());
    let free = free(&end, at);
    let head = &log.block.head.head;
    if head.load(Relaxed) != end.hint {
        return None; // O3
    }
    if !free {
        return Some(false); // L2
    }
    if end.pos.0 != end.hint.0 {
        head.compare_exchange(end.hint, Head(end.pos.0), Release, Relaxed).ok()?; // O4
    }
    let slot = log.ring.slot(&log.block, end.pos);
    slot.compare_exchange(end.oldest, at.slot(end.pos), AcqRel, Relaxed).ok()?; // O5, L1
    Some(true)
}

/// Finds the end: at the hint, or one after it (I5).
#[inline(always)]
fn find_end(log: &Log) -> End {
    let (ring, block) = (&log.ring, &*log.block);
    let hint = block.head.head.load(Acquire); // O1
    let pos = Pos(hint.0);
    let slot = ring.slot(block, pos).load(Acquire); // O2
    if slot.is_of(pos) {
        let pos = ring.ahead(pos, 1);
        let oldest = ring.slot(block, pos).load(Acquire); // O2
        End { hint, pos, oldest, newest: slot }
    } else {
        let newest = ring.slot(block, ring.back(pos, 1)).load(Acquire); // O2
        End { hint, pos, oldest: slot, newest }
    }
}

/// The admission `back` places before the end.
fn look_back(log: &Log, end: &End, back: u64) -> Slot {
    if back == log.ring.cap {
        return end.oldest;
    }
    log.ring.slot(&log.block, log.ring.back(end.pos, back)).load(Acquire) // O2
}

/// Looks at the history.
pub(super) fn look(log: &Log, now: Nanos) -> LogLook<'_> {
    loop {
        let end = find_end(log);
        if log.block.head.head.load(Relaxed) == end.hint {
            let at = Stamp::new(now).max(end.newest.stamp()); // O3
            return log.look_from(end.hint, end.pos, at, None);
        }
    }
}
