//! Admission of single permits: the slot decides.
//!
//! The compare-and-swap of slot `t` is the admission; the head word is only a hint that may lag behind the true
//! end by [`LAG`] claims, so most admissions write one word.
//!
//! # Invariants
//! | id | always                                                                | kept by                          |
//! |----|-----------------------------------------------------------------------|----------------------------------|
//! | I3 | times never decrease along the ring                                    | the maximum with the newest time |
//! | I4 | a slot's value strictly grows from lap to lap, so a late CAS fails     | I3, a window is at least 1 ns     |
//! | I5 | the end is at most `min(LAG, cap)` past the hint                       | the hint is moved before a claim  |
//! | I6 | the hint never decreases and never passes the end                      | it moves to ends found by walking |
//!
//! # Linearization points
//! L1 admission: the CAS of slot `t`. L2 refusal: the load that found slot `t` unclaimed; the hint, read again
//! unchanged afterwards, proves that every look-back was of that moment or was overwritten and seen to be.
//!
//! # Progress
//! Lock-free: a caller starts over only when another moved the hint or claimed the slot. A thread that dies
//! leaves the hint behind by less than `LAG`, which the next walk passes.

use crossbeam_utils::Backoff;

use super::{
    Log,
    ring::{Head, LogLook, Pos, Slot},
};
use crate::{
    Nanos,
    sync::{AcqRel, Acquire, Relaxed, Release},
};

/// How far the hint may lag: the walk costs a load a step, each move of the hint a second contended line.
pub(super) const LAG: u64 = 4;

/// The true end of the history, found by walking from the hint.
struct End {
    hint: Head,
    pos: Pos,
    /// Claims between hint and end.
    steps: u64,
    /// The value of slot `pos`: the admission a whole lap ago.
    oldest: Slot,
    newest: Slot,
}

/// Takes one permit.
#[inline]
pub(super) fn take(log: &Log, now: Nanos) -> bool {
    let backoff = Backoff::new();
    loop {
        if let Some(admitted) = attempt(log, now) {
            return admitted;
        }
        backoff.spin();
    }
}

/// One attempt; `None` if another caller got in between.
#[inline]
fn attempt(log: &Log, now: Nanos) -> Option<bool> {
    let (ring, block) = (&log.ring, &*log.block);
    let end = find_end(log)?;
    let at = now.max(end.newest.time());
    let mut free = true;
    for rule in log.rules.iter() {
        let back = ring.back(end.pos, rule.limit);
        // The look-back of a rule as large as the ring is the slot about to be claimed, already read.
        let slot = if rule.limit == ring.cap { end.oldest } else { ring.slot(block, back).load(Acquire) }; // O2
        if !slot.is_of(ring.parity(back)) {
            return None;
        }
        free &= slot.has_left(rule.window, at);
    }
    if block.head.head.load(Relaxed) != end.hint {
        return None; // O3
    }
    if !free {
        return Some(false); // L2
    }
    if end.steps >= log.lag {
        let moved = Head(end.pos.0);
        block.head.head.compare_exchange(end.hint, moved, Release, Relaxed).ok()?; // O4
    }
    let claim = Slot::new(at, ring.parity(end.pos));
    let slot = ring.slot(block, end.pos);
    slot.compare_exchange(end.oldest, claim, AcqRel, Relaxed).ok()?; // O5, L1
    Some(true)
}

/// Walks from the hint to the first slot that its lap has not written. `None`: the hint was stale (I5).
#[inline]
fn find_end(log: &Log) -> Option<End> {
    let (ring, block) = (&log.ring, &*log.block);
    let hint = block.head.head.load(Acquire); // O1
    let mut pos = Pos(hint.0);
    let mut newest = None;
    for steps in 0..=log.lag {
        let slot = ring.slot(block, pos).load(Acquire); // O2
        if !slot.is_of(ring.parity(pos)) {
            let newest = match newest {
                Some(newest) => newest,
                None => {
                    let before = ring.back(pos, 1);
                    let newest = ring.slot(block, before).load(Acquire); // O2
                    newest.is_of(ring.parity(before)).then_some(newest)?
                }
            };
            return Some(End { hint, pos, steps, oldest: slot, newest });
        }
        newest = Some(slot);
        pos = ring.ahead(pos, 1);
    }
    None
}

/// Looks at the history.
pub(super) fn look(log: &Log, now: Nanos) -> LogLook<'_> {
    loop {
        let Some(end) = find_end(log) else { continue };
        if log.block.head.head.load(Relaxed) == end.hint {
            // O3
            return LogLook {
                block: &log.block,
                ring: &log.ring,
                rules: &log.rules,
                seen: end.hint,
                end: end.pos,
                at: now.max(end.newest.time()),
                unfilled: None,
            };
        }
    }
}
