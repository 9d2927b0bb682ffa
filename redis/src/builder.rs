//! A limiter's configuration, checked at once.

use std::{fmt, time::Duration};

use redis::aio::ConnectionLike;
use tollgate::{Algorithm, Clock, Nanos, RULES_MAX, Rule};

use crate::{
    BuildError, Instances, Limiter, OnFailure, Share, Store,
    breaker::Breaker,
    desk::{Lease, Tiers},
    key::Keys,
    keyed::Keyed,
    limiter::{Capacity, Parts},
    local::Local,
    store::micros,
};

/// A limiter to be. Made by [`Limiter::builder`].
pub struct Builder {
    prefix: String,
    rules: Vec<(String, Rule)>,
    store: Store,
    deadline: Duration,
    failures: u32,
    pause: Duration,
    on_failure: OnFailure,
    instances: Instances,
    shared: bool,
    cache: Option<Duration>,
    lease: Option<(Duration, u64)>,
    coarse: Option<u64>,
    headroom: u64,
    capacity: Option<Capacity>,
    keys: usize,
}

/// The longest of the spans that are not windows.
const SPAN_MAX: Duration = Duration::from_secs(3_600);
/// The most keys of which an instance keeps anything.
const KEYS_MAX: usize = 1 << 30;

// === impl Builder ===

impl Builder {
    pub(crate) fn new(name: String, rule: Rule) -> Self {
        Self {
            prefix: "tollgate".into(),
            rules: vec![(name, rule)],
            store: Store::Ring,
            deadline: Duration::from_millis(50),
            failures: 3,
            pause: Duration::from_millis(500),
            on_failure: OnFailure::Local,
            instances: Instances::alone(),
            shared: false,
            cache: None,
            lease: None,
            coarse: None,
            headroom: 0,
            capacity: None,
            keys: 10_000,
        }
    }

    /// Adds a limit: every one must have room, or nothing is taken from any. One call on the server judges all.
    pub fn rule(mut self, name: impl Into<String>, limit: u64, window: Duration) -> Self {
        self.rules.push((name.into(), Rule::new(limit, window)));
        self
    }

    /// How the limits are kept; a [`Store::Ring`] by default. Change the name or the prefix with the store: what
    /// another store left under a key is an error, or nothing.
    pub fn store(mut self, store: Store) -> Self {
        self.store = store;
        self
    }

    /// The first part of every key; `tollgate` by default.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long a check may take in all; 50 ms by default.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// After how many failures in a row the server is no longer asked, and for how long until one call tries again; 3 and
    /// 500 ms by default.
    pub fn breaker(mut self, failures: u32, pause: Duration) -> Self {
        (self.failures, self.pause) = (failures, pause);
        self
    }

    /// What to do when the server can not be asked; [`OnFailure::Local`] by default.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// How many instances share the limits, for this one's portion when the server can not be asked and for the coarse
    /// limiter. By default there is only this one: then each of several would give the whole limit while it is on its own.
    pub fn instances(mut self, instances: &Instances) -> Self {
        self.instances = instances.clone();
        self
    }

    /// Callers of one key who come while a call is under way share the next: one round trip for all of them, first come
    /// first served. Costs above 1 go alone. Off by default.
    pub fn share_calls(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Repeats a refusal until the moment the server named, or for `longest`, without asking again. Exact if nobody resets
    /// the key or raises the limit from another instance; if somebody may, `longest` is how late this instance sees it. Off by
    /// default.
    pub fn cache_refusals(mut self, longest: Duration) -> Self {
        self.cache = Some(longest);
        self
    }

    /// Takes up to `most` units in advance, as many as were lately asked for, to be spent within `hold`. Never over the
    /// limit. The price: a unit is held for `window + hold`, so that the steady rate is `limit / (window + hold)`, and units
    /// that nobody came for in time are lost for a window. Shares calls. [`Store::Ring`] only. Off by default.
    pub fn lease(mut self, hold: Duration, most: u64) -> Self {
        self.lease = Some((hold, most));
        self.shared = true;
        self
    }

    /// Refuses, before the server is asked, what would take this instance above `percent` (120 is a good choice) of an equal
    /// part of the limit. It refuses falsely when one instance gets more than that of the traffic: with two instances and just the
    /// limit asked for, 10 % of it if one of them gets 70 %, 40 % if it gets everything. Stores that hold every window
    /// only. Off by default.
    pub fn coarse(mut self, percent: u64) -> Self {
        self.coarse = Some(percent);
        self
    }

    /// [`Share`] only: keeps back so many percent of the limit; 0 by default.
    pub fn headroom(mut self, percent: u64) -> Self {
        self.headroom = percent;
        self
    }

    /// A limiter for this machine's own capacity, asked first and for all ids together. What it grants is not given back if
    /// the limit then refuses.
    pub fn capacity<A, C>(mut self, limiter: tollgate::Limiter<A, C>) -> Self
    where
        A: Algorithm + 'static,
        C: Clock + Send + Sync + 'static,
    {
        self.capacity = Some(Box::new(move |cost| limiter.check_n(cost)));
        self
    }

    /// Of how many ids an instance keeps anything (own admissions, refusals, leases); 10,000 by default. Ids beyond share one
    /// local history and go to the server alone.
    pub fn keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Checks everything. Does not speak to the server: see [`Limiter::verify`].
    ///
    /// # Errors
    /// The first thing that does not hold, with its bound.
    pub fn build<C>(self, connection: C) -> Result<Limiter<C>, BuildError>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        let rules = self.checked_rules()?;
        number("headroom of a limiter on a server", self.headroom, 0, 0)?;
        span("deadline", self.deadline)?;
        span("pause", self.pause)?;
        number("failures", self.failures.into(), 1, u32::MAX.into())?;
        if let Some(longest) = self.cache {
            span("cached refusal", longest)?;
        }
        if let Some(percent) = self.coarse {
            number("coarse percentage", percent, 100, 100_000)?;
            if !matches!(self.store, Store::Ring | Store::Zset | Store::Counter { .. }) {
                return Err(BuildError::Needs {
                    option: "a coarse limiter",
                    needs: "a store that holds every window",
                });
            }
        }
        let tiers = Tiers {
            shared: self.shared,
            cache: self.cache.map(Nanos::from),
            lease: self.checked_lease(&rules)?,
        };
        let has_desks = tiers.shared || tiers.cache.is_some();
        let has_local = self.on_failure == OnFailure::Local || self.coarse.is_some();
        let parts = Parts {
            store: self.store,
            keys: Keys::new(self.prefix, self.rules.into_iter().map(|(name, _)| name).collect()),
            local: if has_local { Some(Local::new(&rules, self.keys)?) } else { None },
            desks: has_desks.then(|| Keyed::new(self.keys)),
            rules: rules.len(),
            tiers,
            coarse: self.coarse,
            instances: self.instances,
            capacity: self.capacity,
            breaker: Breaker::new(self.failures, self.pause.into()),
            deadline: self.deadline,
            on_failure: self.on_failure,
        };
        Ok(Limiter::new(connection, rules, parts))
    }

    /// A limiter that never asks a server: this instance's portion of the limits.
    ///
    /// # Errors
    /// A rule, a name or a number that does not hold, with its bound.
    pub fn build_share(self) -> Result<Share, BuildError> {
        let rules = self.checked_rules()?;
        number("headroom", self.headroom, 0, 99)?;
        let local = Local::new(&rules, self.keys)?;
        Ok(Share::new(rules, local, self.instances, self.headroom, self.capacity))
    }

    fn checked_rules(&self) -> Result<Vec<Rule>, BuildError> {
        let rules: Vec<Rule> = self.rules.iter().map(|(_, rule)| *rule).collect();
        if rules.len() > RULES_MAX {
            return Err(BuildError::Rules { got: rules.len(), max: RULES_MAX });
        }
        rules.iter().try_for_each(|rule| self.store.validate(*rule))?;
        let names = || self.rules.iter().map(|(name, _)| name);
        let twice = |name: &&String| names().filter(|other| other == name).count() > 1;
        let braced = |name: &str| name.is_empty() || name.contains(['{', '}']);
        if let Some(name) = names().find(|name| braced(name) || twice(name)) {
            return Err(BuildError::Name { got: name.clone() });
        }
        if braced(&self.prefix) {
            return Err(BuildError::Name { got: self.prefix.clone() });
        }
        number("keys", self.keys as u64, 1, KEYS_MAX as u64)?;
        Ok(rules)
    }

    fn checked_lease(&self, rules: &[Rule]) -> Result<Option<Lease>, BuildError> {
        let Some((hold, most)) = self.lease else { return Ok(None) };
        if self.store != Store::Ring {
            return Err(BuildError::Needs { option: "a lease", needs: "Store::Ring" });
        }
        if hold < Store::WINDOW_STEP {
            return Err(BuildError::Span { of: "lease", got: hold, max: SPAN_MAX });
        }
        number("units of a lease", most, 1, Store::LOG_LIMIT_MAX)?;
        // What the server adds is whole microseconds, so no more may be counted on here.
        let lease = Lease { hold: Nanos::from_micros(micros(hold.into())), most };
        lease.validate(rules)?;
        Ok(Some(lease))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("rules", &self.rules)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

fn span(of: &'static str, got: Duration) -> Result<(), BuildError> {
    if got < Duration::from_micros(1) || got > SPAN_MAX {
        return Err(BuildError::Span { of, got, max: SPAN_MAX });
    }
    Ok(())
}

fn number(of: &'static str, got: u64, min: u64, max: u64) -> Result<(), BuildError> {
    if got < min || got > max { Err(BuildError::Number { of, got, min, max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server records whole microseconds; a unit must not be spent in the rest.
    #[test]
    fn a_hold_has_whole_microseconds() {
        let builder =
            Limiter::builder("api", 5, Duration::from_secs(1)).lease(Duration::from_nanos(1_999), 5);
        let lease = builder.checked_lease(&[Rule::new(5, Duration::from_secs(1))]).unwrap().unwrap();
        assert_eq!(lease.hold, Nanos::from_micros(1));
    }
}
