//! Limiters by key, in a region.

use core::ptr::NonNull;

use siphasher::sip128::SipHasher13;

use super::{
    region::Region,
    table::{Bucket, NEVER, Tag, WAYS, Ways},
};
use crate::{Config, Decision, Denied, Nanos, Quota, Reason, WhenFull};

/// The limiters of a region by key. A key is bytes.
///
/// Whatever tells two quotas apart belongs into the key: [`Keyed`](crate::Keyed) says more, and [`network_of`](crate::network_of)
/// gives the key of an address.
///
/// # Room
/// A key has one of the 14 places of its bucket, as long as anything is charged to it; then another key may take the
/// place over, when it finds no free one. There are twice as many places as keys asked for. A new key whose bucket is full of
/// keys in use is dealt with as [`WhenFull`] says. That happens to less than one key in 200 while no more keys are in
/// use than were asked for, to less than one in 1,000 with half of them.
///
/// # Guarantees
/// Each key is limited as its algorithm says, for all processes, whichever keys come and go, and whoever dies. An
/// admission is forgotten only when it has left the window (of the rules in force by then, in a live region). Three exceptions, all to
/// the strict side: a call with an older time than that at which a place of its bucket was last taken over is judged at that
/// time; a call that is under way while its key loses its place looks its key up again, and stays charged to the key that took the
/// place; and in a live region, when a window is lengthened or a longer rule added, a key is also charged, for up to that window,
/// for what the keys before it took of its place, as is a call that overlaps a shortening.
///
/// A key is told from others by 48 bits of a 128-bit keyed hash, and by its bucket by others of them: two keys that are in use
/// share a limiter with a probability of 13 in 2^48 for each key, 3 in 10^8 for any two of a million. The secret of the hash lies in the region:
/// who can read it can make keys that collide.
///
/// # Cost
/// A hash, a look at up to 14 words of one or two cache lines, the algorithm, and, for an admission, one compare-and-swap.
pub struct Keys<'a, C: Config> {
    region: &'a Region<C>,
}

/// What lies in one bucket.
struct Histories<'a, C: Config> {
    region: &'a Region<C>,
    first: NonNull<u8>,
    stride: usize,
}

// === impl Keys ===

impl<'a, C: Config> Keys<'a, C> {
    pub(super) fn new(region: &'a Region<C>) -> Self {
        Self { region }
    }

    /// Takes `cost` permits of `key` at `now`, all or nothing. The cheapest call: yes or no.
    pub fn try_acquire_at(&self, key: &[u8], cost: u64, now: Nanos) -> bool {
        self.region.ask(|config| {
            let ask = |state, now| {
                // SAFETY: I1, I3 of `shared`.
                let is_admitted = unsafe { config.try_acquire_at(state, cost, now) };
                (is_admitted, is_admitted)
            };
            self.take(config, key, cost, now, ask).unwrap_or(false)
        })
    }

    /// Takes `cost` permits of `key` at `now`, all or nothing, and tells what is left or how long to wait.
    ///
    /// # Errors
    /// [`Denied`], which changed nothing.
    pub fn check_at(&self, key: &[u8], cost: u64, now: Nanos) -> Decision {
        self.region.ask(|config| {
            let ask = |state, now| {
                // SAFETY: I1, I3 of `shared`.
                let decision = unsafe { config.check_at(state, cost, now) };
                (decision, decision.is_ok())
            };
            self.take(config, key, cost, now, ask).unwrap_or_else(|wait| full(config, now, wait))
        })
    }

    /// Tells whether [`check_at`](Self::check_at) would admit, with the figures of now, and changes nothing.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn peek_at(&self, key: &[u8], cost: u64, now: Nanos) -> Decision {
        self.region.ask(|config| {
            // SAFETY: I1, I3 of `shared`.
            let peek = |state, now| unsafe { config.peek_at(state, cost, now) };
            let (bucket, tag, ways) = self.bucket(key);
            if let Some(decision) = bucket.look(tag, now, |way, now| peek(ways.state(way), now)) {
                return decision;
            }
            if !is_ordinary(config, cost, now) {
                return peek(self.blank(), now);
            }
            match bucket.has_room(now, &ways) {
                Ok(()) => peek(self.blank(), now.max(bucket.floor())),
                Err(_) if self.region.when_full() == WhenFull::Share => peek(self.overflow(), now),
                Err(wait) => full(config, now, wait),
            }
        })
    }

    /// Permits charged to `rule` of `key` at `now`; `None` without such a rule or with a time out of range. What the key took
    /// of a shared limiter is not told apart.
    pub fn usage_at(&self, key: &[u8], rule: usize, now: Nanos) -> Option<u64> {
        self.region.ask(|config| {
            // SAFETY: I1, I3 of `shared`.
            let usage = |state, now| unsafe { config.usage_at(state, rule, now) };
            let (bucket, tag, ways) = self.bucket(key);
            let found = bucket.look(tag, now, |way, now| usage(ways.state(way), now));
            found.unwrap_or_else(|| usage(self.blank(), now))
        })
    }

    /// Keys that have a place, idle ones among them. Each bucket is counted at a moment of its own.
    pub fn len(&self) -> u64 {
        (0..self.region.buckets()).map(|index| self.region.bucket(index).0.taken() as u64).sum()
    }

    /// Whether no key has a place.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most keys that [`len`](Self::len) can ever be.
    pub fn capacity(&self) -> u64 {
        self.region.buckets() * WAYS as u64
    }

    /// Asks the history of a key, a new one if it has none. `Err`: there is no room, or after how long.
    fn take<R>(
        &self,
        config: &C,
        key: &[u8],
        cost: u64,
        now: Nanos,
        ask: impl Fn(NonNull<u8>, Nanos) -> (R, bool),
    ) -> Result<R, Nanos> {
        let (bucket, tag, ways) = self.bucket(key);
        if !is_ordinary(config, cost, now) {
            // It stores nothing, so it only looks.
            let found = bucket.look(tag, now, |way, now| ask(ways.state(way), now).0);
            return Ok(found.unwrap_or_else(|| ask(self.blank(), now).0));
        }
        match bucket.admit(tag, now, &ways, |way, now| ask(ways.state(way), now)) {
            Err(_) if self.region.when_full() == WhenFull::Share => Ok(ask(self.overflow(), now).0),
            answer => answer,
        }
    }

    /// Where a key belongs.
    fn bucket(&self, key: &[u8]) -> (&'a Bucket, Tag, Histories<'a, C>) {
        let region = self.region;
        let [first, second] = region.secret();
        let hash = SipHasher13::new_with_keys(first, second).hash(key);
        let buckets = region.buckets();
        // The upper half of the product: below `buckets`.
        let index = ((u128::from(hash.h1) * u128::from(buckets)) >> 64) as u64;
        let (bucket, first) = region.bucket(index);
        (bucket, Tag::new(hash.h2), Histories { region, first, stride: region.stride() })
    }

    /// A state that is never written.
    fn blank(&self) -> NonNull<u8> {
        self.region.state(self.region.limiters())
    }

    /// The state that keys without room share.
    fn overflow(&self) -> NonNull<u8> {
        self.region.state(self.region.limiters() + 1)
    }
}

/// Whether a call can take anything: else it makes no key.
fn is_ordinary<C: Config>(config: &C, cost: u64, now: Nanos) -> bool {
    now.in_range() && cost.wrapping_sub(1) < config.cost_max()
}

/// What a new key without room is told.
fn full<C: Config>(config: &C, now: Nanos, retry_after: Nanos) -> Decision {
    let limit = config.rules().first().map_or(0, |rule| rule.limit);
    let quota = Quota { remaining: 0, ..Quota::new(limit, now) };
    Err(Denied { reason: Reason::Full { retry_after }, quota })
}

// === impl Histories ===

impl<C: Config> Histories<'_, C> {
    fn state(&self, way: usize) -> NonNull<u8> {
        debug_assert!(way < WAYS, "I1 of `shared`");
        // SAFETY: I1 of `shared`: the states of a bucket lie one behind the other.
        unsafe { self.first.add(way * self.stride) }
    }
}

impl<C: Config> Ways for Histories<'_, C> {
    fn idle_after(&self, way: usize, now: Nanos) -> Nanos {
        if !now.in_range() {
            return NEVER; // A floor that nobody of us has raised.
        }
        // Not by the rules of the call: what newer ones charge at this time, a late call would forget.
        self.region.ask(|config| {
            // SAFETY: I1, I3 of `shared`.
            unsafe { config.idle_after(self.state(way), now) }
        })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::{Log, Rule, shared::Time};

    /// A call that has its rules from before a lengthening, and goes on long after it: what both the old rules, then, and
    /// the new ones charge is not forgotten.
    #[test]
    fn a_late_call_takes_no_place_that_newer_rules_charge() {
        let at = Nanos::from_secs;
        let config = Log::builder(3, Duration::from_secs(60)).capacity(10).config().unwrap();
        let builder = Region::builder(config).keys(7).time(Time::Caller).when_full(WhenFull::Refuse).live();
        let (region, _file) = builder.memfd("late").unwrap();
        let keys = region.keys().unwrap();
        let take = |n: u64, cost, now| keys.try_acquire_at(&n.to_le_bytes(), cost, at(now));
        assert!(take(0, 1, 1) && (1..13).all(|n| take(n, 3, 20)) && take(13, 1, 1));
        let late = region.ask(|old| {
            region.set_rules(&[Rule::new(3, Duration::from_secs(600))]).unwrap();
            assert!(!take(1, 1, 70), "charged by the old rules until 80, by the new until 620");
            assert!(take(101, 1, 601), "the first place is idle by the new rules: the floor is 601");
            keys.take(old, &100_u64.to_le_bytes(), 1, at(69), |_, _| ((), true))
        });
        assert_eq!(late, Ok(()), "the last place is idle too");
        assert!((1..13).all(|n| !take(n, 1, 602)), "and no other");
    }
}
