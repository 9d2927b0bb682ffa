//! What a layer decides by, shared by all its services: from a request's head to *let through* or an answer.
//!
//! Everything but the call of a limiter is here, whether that is in this process ([`Local`]) or not.

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::BuildHasher,
    sync::atomic::{
        AtomicBool,
        AtomicU64,
        Ordering::Relaxed, // A switch and a counter: nothing hangs off them.
    },
    time::Duration,
};

use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, RETRY_AFTER},
};
use tollgate::{Clock, Nanos, Precise, Reason};

use crate::{
    Cause, Head, Keyless, Names, Refusal, Reject, Stats, Tiers,
    fields::{Form, Told, retry_seconds},
    filter::Filter,
    stats::{Counters, Event},
    tier::Ruling,
};

/// Limits of this process, and their clock.
pub struct Local<T, C = Precise> {
    pub(crate) tiers: T,
    pub(crate) clock: C,
}

/// What decides on requests: [`Local`], or a limiter elsewhere.
pub trait Limits: Send + Sync {
    /// The names of each limit's rules.
    fn names(&self) -> Vec<&Names>;
}

/// A layer's limits and all that it was told about asking them and answering.
pub(crate) struct Gate<L, R> {
    pub(crate) limits: L,
    pub(crate) reject: R,
    pub(crate) options: Options,
    pub(crate) counters: Counters,
    pub(crate) dry_run: AtomicBool,
    jitter: Jitter,
}

/// What a builder sets.
pub(crate) struct Options {
    pub(crate) filter: Filter,
    pub(crate) cost: Option<Cost>,
    pub(crate) form: Form,
    pub(crate) on_success: bool,
    pub(crate) never: StatusCode,
    pub(crate) jitter_max: Duration,
}

/// Tells what a request costs.
pub(crate) type Cost = Box<dyn Fn(&Head<'_>) -> u64 + Send + Sync>;

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Judged<'a> {
    /// It goes on, and these fields go into its answer.
    Pass(Told),
    /// It is answered at once, with these fields.
    Refuse(Refusal<'a>, Told),
}

/// Random seconds. Not for secrets.
#[derive(Debug, Default)]
struct Jitter {
    hasher: RandomState,
    drawn: AtomicU64,
}

// === impl Local ===

impl<T: Tiers, C> fmt::Debug for Local<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("names", &self.tiers.names()).finish_non_exhaustive()
    }
}

impl<T: Tiers, C: Send + Sync> Limits for Local<T, C> {
    fn names(&self) -> Vec<&Names> {
        self.tiers.names()
    }
}

// === impl Gate ===

impl<T: Tiers, C: Clock + Send + Sync, R> Gate<Local<T, C>, R> {
    /// Asks about a request, now.
    pub(crate) fn ask(&self, head: &Head<'_>) -> Judged<'_> {
        let Some(cost) = self.cost(head) else { return Judged::Pass(Told::default()) };
        let Local { tiers, clock } = &self.limits;
        match tiers.rule(head, cost, clock.now(), self.tells_on_success()) {
            Ok(Some(ruling)) => self.judge(cost, &ruling, true),
            Ok(None) => self.admit(Told::default()),
            Err(keyless) => self.keyless(cost, keyless),
        }
    }
}

impl<L: Limits, R> Gate<L, R> {
    pub(crate) fn new(limits: L, reject: R, options: Options, dry_run: bool) -> Self {
        let counters = Counters::new(limits.names().len());
        let dry_run = AtomicBool::new(dry_run);
        Self { limits, reject, options, counters, dry_run, jitter: Jitter::default() }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.counters.read(self.limits.names().into_iter().map(|names| names.of(0)))
    }

    /// What a request costs; `None` if it is not asked about.
    pub(crate) fn cost(&self, head: &Head<'_>) -> Option<u64> {
        if !self.options.filter.asks(head) {
            self.counters.count(Event::Skipped);
            return None;
        }
        Some(self.options.cost.as_ref().map_or(1, |cost| cost(head)))
    }

    /// What follows from a ruling; without figures, if they are not those of the limits.
    pub(crate) fn judge<'a>(&self, cost: u64, ruling: &Ruling<'a>, figures: bool) -> Judged<'a> {
        let tell = |wanted: bool| {
            if wanted && figures { self.options.form.of(ruling) } else { Told::default() }
        };
        let Err(denied) = ruling.decision else {
            return self.admit(tell(self.tells_on_success()));
        };
        let (cause, status, event) = match denied.reason {
            Reason::Limit { .. } | Reason::Full { .. } => {
                (Cause::Limit, StatusCode::TOO_MANY_REQUESTS, Event::Refused(ruling.tier))
            }
            Reason::TimeOutOfRange => {
                (Cause::Unavailable, StatusCode::SERVICE_UNAVAILABLE, Event::Unavailable)
            }
            // `MaxCost`, and what may come: waiting does not help.
            _ => (Cause::Never, self.options.never, Event::Refused(ruling.tier)),
        };
        let retry_after = denied.retry_after().map(|wait| self.jittered(wait));
        let policy = ruling.policy().filter(|_| figures);
        let quota = figures.then_some(denied.quota);
        self.counters.count(event);
        self.refuse(Refusal { cause, status, policy, quota, cost, retry_after }, || tell(true))
    }

    /// Whether an answer to a request that is let through tells of limits.
    fn tells_on_success(&self) -> bool {
        self.options.on_success && self.options.form.tells() && !self.dry_run.load(Relaxed)
    }

    fn admit<'a>(&self, told: Told) -> Judged<'a> {
        self.counters.count(Event::Admitted);
        Judged::Pass(told)
    }

    /// What follows if a request has no key.
    pub(crate) fn keyless(&self, cost: u64, Keyless { status }: Keyless) -> Judged<'_> {
        self.counters.count(Event::Keyless);
        let cause = Cause::NoKey;
        let refusal = Refusal { cause, status, policy: None, quota: None, cost, retry_after: None };
        self.refuse(refusal, Told::default)
    }

    /// Refuses, unless it is a dry run.
    pub(crate) fn refuse<'a>(&self, refusal: Refusal<'a>, told: impl FnOnce() -> Told) -> Judged<'a> {
        let dry_run = self.dry_run.load(Relaxed);
        tracing::debug!(
            target: "tollgate",
            cause = ?refusal.cause,
            policy = refusal.policy.map_or("", |policy| policy.name),
            cost = refusal.cost,
            retry_after_s = refusal.retry_after,
            dry_run,
            "refused"
        );
        if dry_run {
            self.counters.count(Event::Dry);
            return Judged::Pass(Told::default());
        }
        Judged::Refuse(refusal, told())
    }

    /// The answer to a refused request.
    pub(crate) fn answer<B>(&self, refusal: &Refusal<'_>, told: Told) -> Response<B>
    where
        R: Reject<B>,
    {
        let mut response = self.reject.reject(refusal);
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = refusal.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        told.put(headers);
        response
    }

    /// The seconds of `Retry-After`, and some more by chance if that is wanted.
    pub(crate) fn jittered(&self, wait: Nanos) -> u64 {
        let more = self.jitter.below(self.options.jitter_max.as_secs().saturating_add(1));
        retry_seconds(wait).saturating_add(more)
    }
}

impl<L: Limits, R> fmt::Debug for Gate<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("names", &self.limits.names())
            .field("filter", &self.options.filter)
            .field("form", &self.options.form)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

// === impl Jitter ===

impl Jitter {
    /// A number below `end`, any as likely as another: a keyed hash of how many were drawn before.
    fn below(&self, end: u64) -> u64 {
        if end <= 1 {
            return 0;
        }
        let drawn = self.hasher.hash_one(self.drawn.fetch_add(1, Relaxed));
        u64::try_from((u128::from(drawn) * u128::from(end)) >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_spread_evenly_over_its_span() {
        let jitter = Jitter::default();
        assert_eq!(jitter.below(0) + jitter.below(1), 0);
        let mut counts = [0_u32; 4];
        for _ in 0..4_000 {
            counts[usize::try_from(jitter.below(4)).unwrap()] += 1;
        }
        // Five standard deviations.
        assert!(counts.iter().all(|&count| (863..=1_137).contains(&count)), "{counts:?}");
    }
}
