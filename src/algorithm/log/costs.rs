//! Admission of any cost: the head decides.
//!
//! One word holds the number of permits admitted (as a position) and the time of the newest admission, so its
//! compare-and-swap admits `n` permits at once. The slots of an admission are filled by whoever admits next,
//! from the head that still names their time; until then everybody takes that time for them. Nobody fills its
//! own: a caller that dies right after its admission leaves what every caller leaves.
//!
//! # State
//! | word      | bits        | meaning                                                        |
//! |-----------|-------------|----------------------------------------------------------------|
//! | head      | 63          | bank: which base counts                                         |
//! |           | 62..P       | low bits of the newest time, `span` of them                     |
//! |           | P-1..0      | position of the end: lap parity and index                       |
//! | bases     | all         | a time at most `2^span - 1` below the newest time               |
//!
//! The full newest time is the first one at or after the base that ends in the head's bits. An admission later
//! than `2^span` after the base first proposes a later base in the other bank, then switches banks by the very
//! CAS that admits. Bases strictly grow, so a proposal is told from a leftover by comparing it with the base that
//! counts, and a late proposal fails its CAS.
//!
//! # Invariants
//! | id | always                                                              | kept by                              |
//! |----|---------------------------------------------------------------------|--------------------------------------|
//! | I3 | times never decrease along the ring                                  | the maximum with the newest time     |
//! | I4 | a slot's value strictly grows from lap to lap, so a late fill fails  | I3, a window is at least 1 ns         |
//! | I7 | only slots of the newest admission can lack their parity             | filled before the head moves on       |
//! | I8 | `base <= newest time < base + 2^span`                                | the bank switch                       |
//! | I9 | the base of the bank that counts is never written                    | proposals go to the other; they grow  |
//!
//! # Linearization points
//! L1 admission: the CAS of the head. L2 refusal: the load of the head, read again unchanged after the look-backs.
//!
//! # Progress
//! Lock-free: the head moves only when somebody was admitted or, at most once for each proposal, when an
//! abandoned proposal is passed. A thread that dies loses at most its own permits.

use crossbeam_utils::Backoff;

use super::{
    Log,
    ring::{Base, Head, LogLook, Pos, Slot},
};
use crate::{
    Nanos,
    sync::{AcqRel, Acquire, Relaxed},
};

/// Bits of a lap in the position: parity is all that is asked.
pub(super) const LAP_BITS: u32 = 1;

/// The head, decoded.
#[derive(Clone, Copy)]
struct Newest {
    seen: Head,
    bank: usize,
    base: u64,
    time: Nanos,
    end: Pos,
}

/// Takes `cost` permits, 1 to the least limit.
#[inline]
pub(super) fn take(log: &Log, cost: u64, now: Nanos) -> bool {
    let backoff = Backoff::new();
    loop {
        if let Some(admitted) = attempt(log, cost, now) {
            return admitted;
        }
        backoff.spin();
    }
}

/// One attempt; `None` if another caller got in between.
#[inline]
fn attempt(log: &Log, cost: u64, now: Nanos) -> Option<bool> {
    let newest = read(log);
    let at = now.max(newest.time);
    if !fits(log, &newest, cost, at) {
        return unmoved(log, &newest).then_some(false); // L2
    }
    fill(log, &newest)?;
    let offset = at.as_nanos() - newest.base;
    if offset >> log.span != 0 {
        return switch_bank(log, &newest, cost, at);
    }
    let end = log.ring.ahead(newest.end, cost);
    claim(log, &newest, pack(log, newest.bank, at, end))
}

#[inline]
fn read(log: &Log) -> Newest {
    let seen = log.block.head.head.load(Acquire); // O1
    let bank = (seen.0 >> 63) as usize;
    let base = log.block.head.bases[bank].load(Acquire).0; // O6
    let low = seen.0 << 1 >> (1 + log.ring.bits());
    let ahead = low.wrapping_sub(base) & ((1 << log.span) - 1);
    // Saturating: only a damaged block holds a base near the end of time.
    let time = Nanos::from_nanos(base.saturating_add(ahead));
    Newest { seen, bank, base, time, end: log.ring.mask(seen.0) }
}

#[inline]
fn pack(log: &Log, bank: usize, time: Nanos, end: Pos) -> Head {
    let low = time.as_nanos() & ((1 << log.span) - 1);
    Head((bank as u64) << 63 | low << log.ring.bits() | end.0)
}

/// Whether `cost` more permits keep every rule at `at`.
#[inline]
fn fits(log: &Log, newest: &Newest, cost: u64, at: Nanos) -> bool {
    log.rules.iter().all(|rule| {
        // With `cost` more, the admission this far back must have left.
        let back = log.ring.back(newest.end, rule.limit - cost + 1);
        let parity = log.ring.parity(back);
        let slot = log.ring.slot(&log.block, back).load(Acquire); // O2
        let slot = if slot.is_of(parity) { slot } else { Slot::new(newest.time, parity) };
        slot.has_left(rule.window, at)
    })
}

/// Whether the head is still the one read: then so is all that was read since.
#[inline]
fn unmoved(log: &Log, newest: &Newest) -> bool {
    log.block.head.head.load(Relaxed) == newest.seen // O3
}

#[inline]
fn claim(log: &Log, newest: &Newest, next: Head) -> Option<bool> {
    log.block.head.head.compare_exchange(newest.seen, next, AcqRel, Relaxed).ok()?; // O4, L1
    Some(true)
}

/// Fills the slots of the newest admission (I7). `None`: the head moved.
#[inline]
fn fill(log: &Log, newest: &Newest) -> Option<()> {
    let ring = &log.ring;
    let lacks = |pos| !ring.slot(&log.block, pos).load(Acquire).is_of(ring.parity(pos)); // O2
    let mut first = newest.end;
    let mut unfilled = 0;
    while unfilled < ring.cap && lacks(ring.back(first, 1)) {
        first = ring.back(first, 1);
        unfilled += 1;
    }
    // In ascending order, so that the walk above meets every gap.
    for _ in 0..unfilled {
        let slot = ring.slot(&log.block, first);
        let old = slot.load(Acquire); // O2
        let parity = ring.parity(first);
        if !old.is_of(parity) {
            if !unmoved(log, newest) {
                return None;
            }
            // Beaten: somebody wrote this very value, or the head has moved and the claim will fail.
            let _ = slot.compare_exchange(old, Slot::new(newest.time, parity), AcqRel, Relaxed); // O5
        }
        first = ring.ahead(first, 1);
    }
    Some(())
}

/// Admits at a time that the present base can not express.
#[cold]
fn switch_bank(log: &Log, newest: &Newest, cost: u64, at: Nanos) -> Option<bool> {
    let bank = 1 - newest.bank;
    let word = &log.block.head.bases[bank];
    let base = word.load(Acquire); // O6
    if base.0 <= newest.base {
        // A leftover: propose a base that callers half a span before and after this one can use as well.
        let proposal = Base(at.as_nanos() - (1 << (log.span - 1)));
        if unmoved(log, newest) {
            let _ = word.compare_exchange(base, proposal, AcqRel, Relaxed); // O7
        }
        return None;
    }
    let base_time = Nanos::from_nanos(base.0);
    if (at - base_time).as_nanos() >> log.span != 0 {
        // A proposal that its caller left long ago: pass it, so that both banks serve again.
        let next = pack(log, bank, newest.time.max(base_time), newest.end);
        claim(log, newest, next)?;
        return None;
    }
    let end = log.ring.ahead(newest.end, cost);
    claim(log, newest, pack(log, bank, at.max(base_time), end))
}

/// Looks at the history.
pub(super) fn look(log: &Log, now: Nanos) -> LogLook<'_> {
    loop {
        let newest = read(log);
        if unmoved(log, &newest) {
            return LogLook {
                block: &log.block,
                ring: &log.ring,
                rules: &log.rules,
                seen: newest.seen,
                end: newest.end,
                at: now.max(newest.time),
                unfilled: Some(newest.time),
            };
        }
    }
}
