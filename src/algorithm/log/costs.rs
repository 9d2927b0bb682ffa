//! Admission of any cost: the head decides.
//!
//! One word holds the number of permits admitted (as a position) and the time of the newest admission, so its
//! compare-and-swap admits `n` permits at once. The slots of an admission are filled by whoever admits next,
//! from the head that still names their time; until then everybody takes that time for them. Nobody fills its
//! own: a caller that dies right after its admission leaves what every caller leaves.
//!
//! # State
//! | word  | bits   | meaning                                                                |
//! |-------|--------|------------------------------------------------------------------------|
//! | head  | 63     | bank: which base counts                                                 |
//! |       | 62..P  | how far the newest time is past the base, in `span` bits                |
//! |       | P-1..0 | position of the end: index and lap parity                               |
//! | bases | all    | a time at most `2^span - 1` below the newest; in bank 1 `2^span` more    |
//!
//! The newest time is the base's word plus the head's upper bits, in which the bank is a sign: bank 1 takes `2^span`
//! off, which its base has on top. An admission past the base's span first proposes a later base in the other bank,
//! then switches banks by the very CAS that admits. Bases strictly grow, so a proposal is told from a leftover by
//! comparing it with the base that counts, and a late proposal fails its CAS.
//!
//! # Invariants
//! | id | always                                                              | kept by                              |
//! |----|---------------------------------------------------------------------|--------------------------------------|
//! | I3 | times never decrease along the ring                                  | the maximum with the newest time     |
//! | I4 | a slot's value strictly grows from lap to lap, so a late fill fails  | I3, a window is at least 1 ns         |
//! | I6 | only slots of the newest admission can lack their parity             | filled before the head moves on       |
//! | I7 | `base <= newest time < base + 2^span`                                | the bank switch                       |
//! | I8 | the base of the bank that counts is never written                    | proposals go to the other; they grow  |
//!
//! # Linearization points
//! L1 admission: the CAS of the head. L2 refusal: the load of the head, read again unchanged after the look-backs.
//!
//! # Progress
//! Lock-free: the head moves only when somebody was admitted or, at most once for each proposal, when an
//! abandoned proposal is passed. A thread that dies loses at most its own permits.

use super::{
    OnLog,
    ring::{Base, Head, Index, LogLook, LookBack, Pos, Slot, Stamp},
};
use crate::{
    Nanos,
    sync::{Acquire, Relaxed, Release, Retries},
};

/// The head and the newest time it names. Good while the head is still the one read.
#[derive(Clone, Copy)]
struct Newest {
    seen: Head,
    time: Nanos,
}

/// `cost` permits (1 to the ceiling) under one rule, as large as the ring, for a caller whose time is not older than the newest
/// admission's. `None`: not settled.
#[inline(always)]
pub(super) fn glance(log: OnLog<'_>, cost: u64, now: Nanos) -> Option<bool> {
    let newest = read(log);
    if now < newest.time {
        return None; // Judged at the newest time (I3).
    }
    // A whole lap back, which is the same slot, and on by what is asked for beyond one permit.
    let lap_back = Pos(newest.seen.0 ^ 1); // Its parity, which is all that is asked of it.
    let (pos, index) = log.ring.after(lap_back, log.ring.index(Pos(newest.seen.0)), cost - 1);
    let slot = log.ring.slot_at(log.state, index).load(Acquire); // O2
    // A slot not yet filled still holds the lap before, which leaves no later than what will be written there.
    if !log.full.is_past_at(slot, now) {
        return unmoved(log, &newest).then_some(false); // L2
    }
    if now.as_nanos() >= log.glance_until || cost > 1 && cost > log.ceiling || !slot.is_of(pos) {
        return None;
    }
    Some(fill_and_admit(log, now, cost, newest.seen, newest.time))
}

/// Admits what a glance found to fit; what is rare starts over. The next head is made before the swap that fills:
/// nothing but the second swap has to wait for the first.
#[inline(never)]
fn fill_and_admit(log: OnLog<'_>, now: Nanos, cost: u64, seen: Head, time: Nanos) -> bool {
    let newest = Newest { seen, time };
    let Some(next) = next(log, &newest, cost, now) else { return take(log, now, cost) };
    if fill_last(log, &newest) != Some(true) {
        return take(log, now, cost);
    }
    claim(log, &newest, next).unwrap_or_else(|| contend(log, now, cost))
}

/// Takes `cost` permits, 1 to the least limit.
#[inline(never)]
pub(super) fn take(log: OnLog<'_>, now: Nanos, cost: u64) -> bool {
    attempt(log, cost, now).unwrap_or_else(|| contend(log, now, cost))
}

/// Attempts, after one that another caller got into, until one is undisturbed.
#[cold]
#[inline(never)]
fn contend(log: OnLog<'_>, now: Nanos, cost: u64) -> bool {
    let retries = Retries::new();
    loop {
        retries.again();
        if let Some(admitted) = attempt(log, cost, now) {
            return admitted;
        }
    }
}

/// One attempt; `None` if another caller got in between.
#[inline(always)]
fn attempt(log: OnLog<'_>, cost: u64, now: Nanos) -> Option<bool> {
    let newest = read(log);
    let at = now.max(newest.time);
    if !log.look_backs().iter().all(|rule| fits(log, &newest, rule, cost, at)) {
        return unmoved(log, &newest).then_some(false); // L2
    }
    fill_last(log, &newest).and_then(|done| if done { Some(()) } else { fill_many(log, &newest) })?;
    match next(log, &newest, cost, at) {
        Some(next) => claim(log, &newest, next),
        None => switch_bank(log, &newest, cost, at),
    }
}

#[inline(always)]
fn read(log: OnLog<'_>) -> Newest {
    let seen = log.state.head().head.load(Acquire); // O1
    let base = log.state.head().bases[bank_of(seen)].load(Acquire); // O6
    Newest { seen, time: Nanos::from_nanos(base.0.wrapping_add(upper(log, seen))) }
}

/// The head without its position: what its base lacks to the newest time. Bank 1 is a sign.
#[inline(always)]
fn upper(log: OnLog<'_>, head: Head) -> u64 {
    (head.0.cast_signed() >> log.pos_bits).cast_unsigned()
}

#[inline(always)]
fn bank_of(head: Head) -> usize {
    (head.0 >> 63) as usize
}

#[inline(always)]
fn pack(log: OnLog<'_>, upper: u64, end: Pos) -> Head {
    Head(upper << log.pos_bits | end.0)
}

/// The head after `cost` permits at `at`, not before the newest time. `None`: the present base can not express that time.
#[inline(always)]
fn next(log: OnLog<'_>, newest: &Newest, cost: u64, at: Nanos) -> Option<Head> {
    let passed = at.as_nanos().wrapping_sub(newest.time.as_nanos());
    let step = log.ring.step(Pos(newest.seen.0), cost);
    let next = newest.seen.0.wrapping_add(passed << log.pos_bits).wrapping_add(step);
    let stays = (newest.seen.0 ^ next).cast_signed() >= 0; // In its bank.
    (passed <= log.span_mask && stays).then_some(Head(next))
}

/// Whether `cost` more permits keep `rule` at `at`: the admission that far back must have left.
#[inline(always)]
fn fits(log: OnLog<'_>, newest: &Newest, rule: &LookBack, cost: u64, at: Nanos) -> bool {
    let pos = log.ring.back(newest.end(log), rule.limit + 1 - cost);
    let slot = log.ring.slot(log.state, pos).load(Acquire); // O2
    let slot = if slot.is_of(pos) { slot } else { Stamp::new(newest.time).slot(pos) };
    rule.is_past(slot, Stamp::new(at))
}

/// Whether the head is still the one read: then so is all that was read since.
#[inline(always)]
fn unmoved(log: OnLog<'_>, newest: &Newest) -> bool {
    log.state.head().head.load(Relaxed) == newest.seen // O3
}

#[inline(always)]
fn claim(log: OnLog<'_>, newest: &Newest, next: Head) -> Option<bool> {
    log.state.head().head.compare_exchange(newest.seen, next, Release, Relaxed).ok()?; // O4, L1
    Some(true)
}

/// Fills the slot of the newest permit (I6), if the one before is filled; whether it was. `None`: the head moved.
#[inline(always)]
fn fill_last(log: OnLog<'_>, newest: &Newest) -> Option<bool> {
    let end = Pos(newest.seen.0); // Its parity and its index are all that is asked of it.
    let (last, index) = log.ring.before(end, log.ring.index(end));
    let slot = log.ring.slot_at(log.state, index).load(Acquire); // O2
    if slot.is_of(last) {
        return Some(true);
    }
    let (before, index_before) = log.ring.before(last, index);
    if !log.ring.slot_at(log.state, index_before).load(Acquire).is_of(before) {
        return Some(false); // O2
    }
    fill_one(log, newest, last, index, slot)?;
    Some(true)
}

/// Fills `pos`, which lies at `index` and held `old` after the head was read.
#[inline(always)]
fn fill_one(log: OnLog<'_>, newest: &Newest, pos: Pos, index: Index, old: Slot) -> Option<()> {
    if !unmoved(log, newest) {
        return None;
    }
    let filled = Stamp::new(newest.time).slot(pos);
    // Beaten: somebody wrote this very value, or the head has moved and the claim will fail.
    let _ = log.ring.slot_at(log.state, index).compare_exchange(old, filled, Release, Relaxed); // O5
    Some(())
}

/// Fills the slots of the newest admission (I6), two at least: at most the largest cost.
#[cold]
fn fill_many(log: OnLog<'_>, newest: &Newest) -> Option<()> {
    let load = |pos| log.ring.slot(log.state, pos).load(Acquire); // O2
    let mut first = log.ring.back(log.ring.back(newest.end(log), 1), 1);
    let mut unfilled = 2;
    while unfilled < log.ring.cap && !load(log.ring.back(first, 1)).is_of(log.ring.back(first, 1)) {
        first = log.ring.back(first, 1);
        unfilled += 1;
    }
    // In ascending order, so that the walk above meets every gap.
    for _ in 0..unfilled {
        let old = load(first);
        if !old.is_of(first) {
            fill_one(log, newest, first, log.ring.index(first), old)?;
        }
        first = log.ring.ahead(first, 1);
    }
    Some(())
}

/// Admits at a time that the present base can not express.
#[cold]
fn switch_bank(log: OnLog<'_>, newest: &Newest, cost: u64, at: Nanos) -> Option<bool> {
    let bank = 1 - bank_of(newest.seen);
    let word = &log.state.head().bases[bank];
    let proposed = word.load(Acquire); // O6
    let sign = upper(log, Head((bank as u64) << 63));
    let base = proposed.0.wrapping_add(sign);
    // What is not past the base that counts is a leftover. In signed numbers, since before its first use bank 1 is
    // below 0. (Numbers make no sense only if the head has moved, and then nothing is put.)
    let counts = newest.time.as_nanos().wrapping_sub(upper(log, newest.seen) & log.span_mask);
    if base.cast_signed() <= counts.cast_signed() {
        // Propose one that callers up to half a span before this one can use as well: a multiple of that, so that the
        // head keeps low bits of the time and does not recur at every switch.
        let half = log.span_mask.div_ceil(2);
        let base = at.as_nanos().saturating_sub(half) & !(half - 1);
        if unmoved(log, newest) {
            let _ = word.compare_exchange(proposed, Base(base.wrapping_sub(sign)), Release, Relaxed); // O7
        }
        return None;
    }
    let past_base = at.as_nanos().saturating_sub(base);
    if past_base > log.span_mask {
        // A proposal that its caller left long ago: pass it, so that both banks serve again.
        let past_base = newest.time.as_nanos().saturating_sub(base);
        claim(log, newest, pack(log, sign.wrapping_add(past_base), newest.end(log)))?;
        return None;
    }
    claim(log, newest, pack(log, sign.wrapping_add(past_base), log.ring.ahead(newest.end(log), cost)))
}

impl Newest {
    /// The end of the history.
    #[inline(always)]
    fn end(&self, log: OnLog<'_>) -> Pos {
        Pos(self.seen.0 & log.ring.mask)
    }
}

/// Looks at the history.
pub(super) fn look(log: OnLog<'_>, now: Nanos) -> LogLook<'_> {
    loop {
        let newest = read(log);
        if unmoved(log, &newest) {
            let at = Stamp::new(now.max(newest.time));
            return log.look_from(newest.seen, newest.end(log), at, Some(Stamp::new(newest.time)));
        }
    }
}

#[cfg(all(test, not(tollgate_loom)))]
mod tests {
    use alloc::vec::Vec;
    use core::time::Duration;

    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::{Algorithm, Log};

    const LIMIT: u64 = 100;
    /// Half the span that such a limit leaves.
    const HALF: u64 = 1 << 54;

    fn log(window: u64) -> Log {
        let log = Log::builder(LIMIT, Duration::from_nanos(window)).build().unwrap();
        assert_eq!(log.on().span_mask, 2 * HALF - 1);
        log
    }

    fn halves(n: u64) -> Nanos {
        Nanos::from_nanos(n * HALF)
    }

    #[test]
    fn a_proposal_left_behind_moves_the_time_judged_of_those_who_need_it() {
        let log = log(5);
        assert_eq!(attempt(log.on(), 1, halves(10)), None, "dies, having proposed");
        assert_eq!(log.check_at(1, halves(1)).unwrap().at, halves(1), "has no need of it");
        assert_eq!(log.check_at(1, halves(3)).unwrap().at, halves(9));
        assert_eq!(log.check_at(1, halves(9)).unwrap().remaining, LIMIT - 2);
        assert_eq!(log.check_at(1, halves(40)).unwrap().at, halves(40));
    }

    /// An old head beside a base that is only proposed yet: the base in use looks like a leftover.
    #[test]
    fn a_late_caller_proposes_nothing_over_the_base_in_use() {
        let log = log(5);
        let old = read(log.on());
        while log.on().state.head().head.load(Acquire) == old.seen {
            attempt(log.on(), 1, halves(10)); // O1
        }
        assert_eq!(attempt(log.on(), 1, halves(20)), None, "dies, having proposed");
        let proposed = log.on().state.head().bases[bank_of(old.seen)].load(Acquire).0; // O6
        let torn = Newest { seen: old.seen, time: Nanos::from_nanos(proposed) };
        assert_eq!(switch_bank(log.on(), &torn, 1, halves(50)), None);
        assert_eq!(log.check_at(1, halves(10)).unwrap().at, halves(10));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Callers that die between their swaps, on the way to far times too.
        #[test]
        fn the_dead_mint_nothing_and_refuse_nobody(
            (wide, near) in (0..4_u64, 1..4_u64),
            steps in vec((0..5_u64, 0..3_u64, select(&[1, 2, 40, LIMIT][..]), 0..3_u64, 0..20_u64), 1..100),
        ) {
            let window = wide * HALF + near;
            let log = log(window);
            let (mut passed, mut newest, mut dead, mut admitted) = (0, Nanos::ZERO, Nanos::ZERO, Vec::new());
            for (on, off, cost, dies, ahead) in steps {
                passed += on;
                let reaches = passed + if dies == 0 { ahead } else { 0 };
                let now = Nanos::from_nanos((reaches * HALF + off).saturating_sub(1).min(Nanos::MAX.as_nanos()));
                let (admits, at) = if dies == 0 {
                    let Some(admits) = attempt(log.on(), cost, now) else {
                        dead = dead.max(now);
                        continue;
                    };
                    (admits, now.max(read(log.on()).time))
                } else {
                    let answer = log.check_at(cost, now);
                    (answer.is_ok(), answer.map_or_else(|denied| denied.quota.at, |quota| quota.at))
                };
                prop_assert!(now.max(newest) <= at && at <= now.max(newest).max(dead));
                let young = admitted.iter().filter(|(then, _)| (at - *then).as_nanos() < window);
                let used: u64 = young.map(|(_, cost)| cost).sum();
                prop_assert_eq!(admits, used + cost <= LIMIT);
                if admits {
                    newest = at;
                    admitted.push((at, cost));
                }
            }
        }
    }
}

/// Whether the words there, of any bits, are a state: the end lies in the ring, no base is later than a time can be, and no
/// slot later than the newest (I3).
pub(super) fn accepts(log: OnLog<'_>) -> bool {
    let is_base = |bank: usize| {
        let sign = upper(log, Head((bank as u64) << 63));
        let base = log.state.head().bases[bank].load(Acquire).0.wrapping_add(sign); // O6
        base.cast_signed() <= Nanos::MAX.as_nanos().cast_signed()
    };
    is_base(0)
        && is_base(1)
        && log.ring.indices().all(|index| {
            // Lock-free: a round is lost only to another caller that was admitted.
            loop {
                let slot = log.ring.slot_at(log.state, index).load(Acquire); // O2
                let newest = read(log);
                if unmoved(log, &newest) {
                    let in_range = newest.time.in_range() && log.ring.holds(newest.end(log));
                    return in_range && slot.is_by(Stamp::new(newest.time));
                }
            }
        })
}
