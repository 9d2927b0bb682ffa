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
//! L1 admission: the CAS of slot `t`. L2 refusal: the load that found slot `t` unclaimed. The hint, found unchanged
//! after the slots were read, proves that they belong to the laps they were read for (I5): a refusal and a claim at
//! the hint read it again, a claim past it moves it.
//!
//! # Progress
//! Lock-free: a caller starts over only when another moved the hint or claimed the slot. A thread that dies between
//! the two leaves a hint that the next claim moves on.

use super::{
    OnLog,
    ring::{Head, Index, LogLook, Pos, Slot, Stamp},
};
use crate::{
    Nanos,
    decision::take_if_ordinary,
    sync::{Acquire, Relaxed, Release, Retries},
};

/// The true end of the history, valid if the hint is read again unchanged.
#[derive(Clone, Copy)]
struct End {
    hint: Head,
    /// Whether the end is one past the hint (I5).
    past_hint: bool,
    pos: Pos,
    index: Index,
    /// The slot at the end: the admission a whole lap ago.
    oldest: Slot,
}

/// One permit, for a caller whose time is not older than the newest admission's: refused by the slot a whole lap back, or
/// admitted if no other rule is asked. `None`: not settled.
#[inline(always)]
pub(super) fn glance(log: OnLog<'_>, now: Nanos) -> Option<bool> {
    let (ring, hint) = (&log.ring, log.state.head().head.load(Acquire)); // O1
    let index = ring.index(Pos(hint.0));
    let newest = ring.slot_at(log.state, index).load(Acquire); // O2
    // The end may be at the hint: nothing was claimed since it moved.
    if !newest.is_of(Pos(hint.0)) || newest.is_after(now) {
        return None;
    }
    match ring.next(index) {
        Some(index) => glance_at(log, now, hint, Pos(hint.0.wrapping_add(2)), index),
        None => Some(acquire_at_start(log, now, hint)),
    }
}

/// The same where a lap ends, and what follows if it is not settled. Apart, so that no call saves registers for it.
#[inline(never)]
fn acquire_at_start(log: OnLog<'_>, now: Nanos, hint: Head) -> bool {
    let pos = log.ring.ahead(Pos(hint.0), 1);
    let glance = glance_at(log, now, hint, pos, log.ring.index(pos));
    glance.unwrap_or_else(|| take_if_ordinary(&log, 1, now))
}

/// Judges by the slot at the end, one past the hint, and claims it.
#[inline(always)]
fn glance_at(log: OnLog<'_>, now: Nanos, hint: Head, pos: Pos, index: Index) -> Option<bool> {
    let oldest = log.ring.slot_at(log.state, index).load(Acquire); // O2
    let end = End { hint, past_hint: true, pos, index, oldest };
    if !log.full.is_past_at(oldest, now) {
        return unmoved(log, end).then_some(false); // L2
    }
    if now.as_nanos() >= log.glance_until {
        return None;
    }
    // I3: not before the newest time.
    Some(claim(log, end, Stamp::new(now)).unwrap_or_else(|| take(log, now)))
}

/// Takes one permit under any rules.
#[inline(never)]
pub(super) fn take(log: OnLog<'_>, now: Nanos) -> bool {
    let retries = Retries::new();
    loop {
        if let Some(admitted) = attempt(log, now) {
            return admitted;
        }
        retries.again();
    }
}

/// One attempt; `None` if another caller got in between.
#[inline(always)]
fn attempt(log: OnLog<'_>, now: Nanos) -> Option<bool> {
    let (end, newest) = find_end(log);
    let at = newest.max(Stamp::new(now)); // I3
    let past = log.look_backs().iter().all(|rule| {
        // Read again, the slot at the end could show a rival's claim: a false refusal.
        let slot = if rule.limit == log.ring.cap {
            end.oldest
        } else {
            log.ring.slot(log.state, log.ring.back(end.pos, rule.limit)).load(Acquire) // O2
        };
        rule.is_past(slot, at)
    });
    if past { claim(log, end, at) } else { unmoved(log, end).then_some(false) } // L2
}

/// Claims the slot at the end.
#[inline(always)]
fn claim(log: OnLog<'_>, end: End, at: Stamp) -> Option<bool> {
    if end.past_hint {
        log.state.head().head.compare_exchange(end.hint, Head(end.pos.0), Release, Relaxed).ok()?; // O4
    } else if !unmoved(log, end) {
        return None;
    }
    let slot = log.ring.slot_at(log.state, end.index);
    slot.compare_exchange(end.oldest, at.slot(end.pos), Release, Relaxed).ok()?; // O5, L1
    Some(true)
}

/// Whether the hint is still the one read: then the end read was the end.
#[inline(always)]
fn unmoved(log: OnLog<'_>, end: End) -> bool {
    log.state.head().head.load(Relaxed) == end.hint // O3
}

/// Finds the end, at the hint or one past it (I5), and the newest time.
#[inline(always)]
fn find_end(log: OnLog<'_>) -> (End, Stamp) {
    let (ring, block) = (&log.ring, log.state);
    let hint = block.head().head.load(Acquire); // O1
    let index = ring.index(Pos(hint.0));
    let load = |index| ring.slot_at(block, index).load(Acquire); // O2
    let slot = load(index);
    if slot.is_of(Pos(hint.0)) {
        let (pos, index) = ring.after(Pos(hint.0), index, 1);
        (End { hint, past_hint: true, pos, index, oldest: load(index) }, slot.stamp())
    } else {
        let newest = load(ring.before(Pos(hint.0), index).1);
        (End { hint, past_hint: false, pos: Pos(hint.0), index, oldest: slot }, newest.stamp())
    }
}

/// Looks at the history.
pub(super) fn look(log: OnLog<'_>, now: Nanos) -> LogLook<'_> {
    loop {
        let (end, newest) = find_end(log);
        if unmoved(log, end) {
            return log.look_from(end.hint, end.pos, newest.max(Stamp::new(now)), None);
        }
    }
}

/// Whether the words there, of any bits, are a state: the hint lies in the ring, each slot is of the lap that it says
/// (I5), and none is later than the newest (I3).
pub(super) fn accepts(log: OnLog<'_>) -> bool {
    log.ring.indices().all(|index| {
        // Lock-free: a round is lost only to another caller that was admitted.
        loop {
            let hint = log.state.head().head.load(Acquire); // O1
            if !log.ring.holds(Pos(hint.0)) {
                return false;
            }
            let slot = log.ring.slot_at(log.state, index).load(Acquire); // O2
            let (end, newest) = find_end(log);
            if end.hint == hint {
                let in_lap = log.ring.lap_before(Pos(hint.0), index).is_none_or(|pos| slot.is_of(pos));
                return in_lap && slot.is_by(newest);
            }
        }
    })
}
