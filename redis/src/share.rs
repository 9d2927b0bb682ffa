//! A limit divided among instances, with no server on the way.

use std::{fmt, time::Instant};

use tollgate::{Nanos, Rule};

use crate::{Answer, By, Instances, Mode, answer::Outcome, limiter::Capacity, local::Local};

/// This instance's portion of one limit, or of several together: 10 over 3 instances are 4, 3 and 3.
///
/// Never over: each instance keeps to its portion in every window, and all portions together are the limit. The price is paid
/// where traffic is uneven: an instance refuses at its portion, however idle the others are. An instance whose portion is 0
/// (fewer permits than instances) refuses everything with *never* and says limit 0; [`portions`](Share::portions) shows
/// it beforehand.
///
/// When the number of instances changes, each follows at once or with its next heartbeat, and its use so far counts.
/// While they do not agree, all together may give as much as [`change_bound`](crate::change_bound) says.
///
/// Every algorithm of the core has a window counter's bound here: a permit comes back up to a tenth of the window late.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate_redis::{Instances, Limiter};
///
/// let instances = Instances::new(0, 3)?;
/// let share = Limiter::builder("api", 10, Duration::from_secs(60)).instances(&instances).build_share()?;
/// assert_eq!(share.portions(), [4]);
/// assert_eq!((0..10).filter(|_| share.check("user-42", 1).decision.is_ok()).count(), 4);
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
pub struct Share {
    rules: Vec<Rule>,
    local: Local,
    instances: Instances,
    headroom: u64,
    capacity: Option<Capacity>,
    origin: Instant,
}

// === impl Share ===

impl Share {
    pub(crate) fn new(
        rules: Vec<Rule>,
        local: Local,
        instances: Instances,
        headroom: u64,
        capacity: Option<Capacity>,
    ) -> Self {
        Self { rules, local, instances, headroom, capacity, origin: Instant::now() }
    }

    /// Takes `cost` units of every limit of `id` from this instance's portion, all or nothing.
    ///
    /// # Cost
    /// A lock on a part of the map, held for a look at each rule's counter.
    pub fn check(&self, id: impl AsRef<[u8]>, cost: u64) -> Answer {
        self.check_at(id, cost, Nanos::from(self.origin.elapsed()))
    }

    /// The same at a time that the caller passes, which must not be older than any before: times of this instance's
    /// monotonic clock.
    pub fn check_at(&self, id: impl AsRef<[u8]>, cost: u64, now: Nanos) -> Answer {
        let outcome = match self.capacity.as_ref().map(|capacity| capacity(cost)) {
            Some(Err(denied)) => Outcome::whole(cost, Err(denied), By::Capacity),
            _ => {
                let parts = self.rules.iter().zip(self.portions());
                let parts: Vec<Rule> = parts.map(|(rule, limit)| Rule { limit, ..*rule }).collect();
                let (granted, decision) = self.local.decide(id.as_ref(), Mode::Take, cost, &parts, now);
                Outcome { granted, decision, by: By::Local }
            }
        };
        outcome.answer()
    }

    /// This instance's portion of each limit, the headroom kept back.
    pub fn portions(&self) -> Vec<u64> {
        let kept = |limit: u64| (u128::from(limit) * u128::from(100 - self.headroom) / 100) as u64;
        self.rules.iter().map(|rule| self.instances.portion(kept(rule.limit))).collect()
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("rules", &self.rules)
            .field("instances", &self.instances)
            .finish_non_exhaustive()
    }
}
