//! What lies in a region, for the model checker: one bucket, with limiters in place of states; a published value; a limiter
//! under rules that are published.

use alloc::{boxed::Box, vec::Vec};

use super::{
    publication::Publication,
    rules::{self, Follower, Present},
    table::{Bucket, Tag, WAYS, Ways},
};
use crate::{Algorithm, ByRules, ConfigError, Decision, Nanos, Rule, Rules, decision};

/// A bucket of keys whose histories are limiters of their own.
pub struct OneBucket<A> {
    bucket: Bucket,
    ways: [A; WAYS],
}

impl<A: Algorithm> OneBucket<A> {
    /// Without keys.
    pub fn new(limiter: impl Fn() -> A) -> Self {
        Self { bucket: Bucket::default(), ways: core::array::from_fn(|_| limiter()) }
    }

    /// Asks the history of a key, which tells whether it admitted: [`Keyed::check_at`](crate::Keyed::check_at) and its
    /// like. `None`: there is no room.
    pub fn admit<R>(&self, key: u64, now: Nanos, ask: impl Fn(&A, Nanos) -> (R, bool)) -> Option<R> {
        self.bucket.admit(Tag::new(key << 16), now, &self.ways, |way, now| ask(&self.ways[way], now)).ok()
    }

    /// Looks at a key: [`Keyed::peek_at`](crate::Keyed::peek_at). `Err`: a key without a place, which would get one, or
    /// would not.
    pub fn peek_at(&self, key: u64, cost: u64, now: Nanos) -> Result<Decision, bool> {
        let look = self.bucket.look(Tag::new(key << 16), now, |way, now| self.ways[way].peek_at(cost, now));
        look.ok_or_else(|| self.bucket.has_room(now, &self.ways).is_ok())
    }

    /// Keys that have a place.
    pub fn taken(&self) -> usize {
        self.bucket.taken()
    }
}

impl<A: Algorithm> Ways for [A; WAYS] {
    fn idle_after(&self, way: usize, now: Nanos) -> Nanos {
        self[way].peek_at(0, now).map_or(Nanos::MAX, |quota| quota.at - now + quota.reset_after)
    }
}

/// A number that is published twice over, in two halves.
#[derive(Default)]
pub struct OneValue(Publication<2>);

impl OneValue {
    /// Replaces it by a number above 0.
    pub fn set(&self, value: u32) {
        self.0.set(&[value; 2]);
    }

    /// What is in force: 0 to begin with.
    ///
    /// # Panics
    /// If it is not whole.
    pub fn get(&self) -> u32 {
        let (_, [first, second]) = self.0.read().expect("whole");
        assert_eq!(first, second, "halves of two values");
        first
    }
}

/// A limiter under rules that are published, and two processes that follow them. The checker's stacks are small: most of it is elsewhere.
pub struct OneRuled<A: ByRules> {
    present: Box<Present>,
    algorithm: A,
    processes: Vec<Follower<A::Settings>>,
}

impl<A: ByRules> OneRuled<A> {
    /// Under its own rules.
    ///
    /// # Errors
    /// As [`Live::new`](crate::Live::new).
    pub fn new(algorithm: A) -> Result<Self, ConfigError> {
        let first = algorithm.first()?;
        let processes = (0..2).map(|_| Follower::new(first, A::with_rules)).collect();
        Ok(Self { present: Box::default(), algorithm, processes })
    }

    /// Replaces the rules, as a region does.
    ///
    /// # Errors
    /// As [`Live::set_rules`](crate::Live::set_rules).
    pub fn set_rules(&self, rules: &[Rule]) -> Result<(), ConfigError> {
        let rules = Rules::of(rules);
        self.processes[0].derived(rules)?;
        self.present.set(&rules::halves(&rules));
        Ok(())
    }

    /// A call of one of the processes.
    pub fn try_acquire_at(&self, process: usize, cost: u64, now: Nanos) -> bool {
        self.processes[process]
            .ask(&self.present, |settings| decision::try_acquire(&self.algorithm.under(settings), cost, now))
    }
}
