//! The layer, and how it is built.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use http::{Method, StatusCode};
use tollgate::{Clock, Precise, Quota};

use crate::{
    BuildError, Fields, Head, Keyless, Legacy, Limits, Local, Names, Problem, RateLimit, Stats, Tiers,
    fields::{Form, system_time},
    filter::Filter,
    gate::{Gate, Options},
};

/// Limits in front of a service.
///
/// A clone is another handle on the same limits, and so is every service made by it: build one, once, and clone it. A layer
/// built in each request, or for each connection, has no memory.
pub struct RateLimitLayer<L, R = Problem> {
    pub(crate) gate: Arc<Gate<L, R>>,
}

/// Builds a [`RateLimitLayer`].
#[must_use = "a builder does nothing until it builds"]
pub struct Builder<L, R = Problem> {
    limits: L,
    reject: R,
    options: Options,
    dry_run: bool,
}

// === impl RateLimitLayer ===

impl<T: Tiers> RateLimitLayer<Local<T>> {
    /// Starts a layer with limits of this process: one ([`All`](crate::All), [`By`](crate::By)), or a tuple of up to four, the
    /// outermost first, of which a request takes from all or from none.
    ///
    /// # Cost
    /// The first precise clock of a process measures the processor's counter: at most 200 ms.
    pub fn builder(tiers: T) -> Builder<Local<T>> {
        Builder::new(Local { tiers, clock: Precise::new() })
    }
}

impl<L: Limits, R> RateLimitLayer<L, R> {
    /// What was decided so far.
    pub fn stats(&self) -> Stats {
        self.gate.stats()
    }

    /// Switches the dry run on or off: while it is on, refusals are counted and logged, and nobody is refused.
    pub fn set_dry_run(&self, dry_run: bool) {
        self.gate.dry_run.store(dry_run, Relaxed);
    }

    /// The limits.
    pub fn limits(&self) -> &L {
        &self.gate.limits
    }
}

impl<T: Tiers, C: Clock + Send + Sync, R> RateLimitLayer<Local<T, C>, R> {
    /// The limits, to change their rules or ask them outside of requests.
    pub fn tiers(&self) -> &T {
        &self.gate.limits.tiers
    }

    /// What a request has left of each limit, the outermost first, under the name of the rule that the figures speak of:
    /// for a page that shows it. Takes nothing.
    ///
    /// # Errors
    /// [`Keyless`].
    pub fn standing(&self, head: &Head<'_>) -> Result<Vec<(&str, Quota)>, Keyless> {
        let Local { tiers, clock } = &self.gate.limits;
        let standing = tiers.standing(head, clock.now())?;
        Ok(standing.into_iter().map(|(names, quota)| (names.of(quota.rule), quota)).collect())
    }
}

impl<L, R> Clone for RateLimitLayer<L, R> {
    fn clone(&self) -> Self {
        Self { gate: self.gate.clone() }
    }
}

impl<L: Limits, R> fmt::Debug for RateLimitLayer<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimitLayer").field(&self.gate).finish()
    }
}

impl<S, L, R> tower_layer::Layer<S> for RateLimitLayer<L, R> {
    type Service = RateLimit<S, L, R>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit { inner, gate: self.gate.clone() }
    }
}

// === impl Builder ===

impl<L: Limits> Builder<L> {
    pub(crate) fn new(limits: L) -> Self {
        let options = Options {
            filter: Filter::default(),
            cost: None,
            form: Form { fields: Fields::default(), legacy: None, unix_time: system_time },
            on_success: true,
            never: StatusCode::TOO_MANY_REQUESTS,
            jitter_max: Duration::ZERO,
        };
        Self { limits, reject: Problem, options, dry_run: false }
    }
}

impl<T: Tiers, R> Builder<Local<T>, R> {
    /// By another clock; [`Precise`] by default.
    pub fn clock<C: Clock + Send + Sync>(self, clock: C) -> Builder<Local<T, C>, R> {
        let Self { limits: Local { tiers, .. }, reject, options, dry_run } = self;
        Builder { limits: Local { tiers, clock }, reject, options, dry_run }
    }
}

impl<L: Limits, R> Builder<L, R> {
    /// Who writes the answer to a refused request: [`Problem`] (the default), [`BusinessCode`](crate::BusinessCode),
    /// [`Grpc`](crate::Grpc), or a closure `|refusal: &Refusal<'_>| Response<B>`.
    pub fn reject<Q>(self, reject: Q) -> Builder<L, Q> {
        let Self { limits, options, dry_run, .. } = self;
        Builder { limits, reject, options, dry_run }
    }

    /// What a request costs; 1 by default. One that costs 0 is let through.
    pub fn cost(mut self, cost: impl Fn(&Head<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.options.cost = Some(Box::new(cost));
        self
    }

    /// Asks only about these paths and all below them. They are compared in a plain spelling: `//api/./%6Cogin/` is below
    /// `/api`. Better is a `route_layer`, or the key [`Route`](crate::Route): they can not differ from what the router does.
    pub fn only_paths<'p>(mut self, paths: impl IntoIterator<Item = &'p str>) -> Self {
        self.options.filter.only_paths(paths);
        self
    }

    /// Does not ask about these paths and those below them, such as `/health`. They are compared as they are written, and
    /// `/health/../api` is not below `/health`.
    pub fn except_paths<'p>(mut self, paths: impl IntoIterator<Item = &'p str>) -> Self {
        self.options.filter.except_paths(paths);
        self
    }

    /// Asks only about these methods.
    pub fn only_methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.options.filter.only_methods(methods);
        self
    }

    /// Does not ask about these methods, such as `OPTIONS`.
    pub fn except_methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.options.filter.except_methods(methods);
        self
    }

    /// Does not ask about requests of which this is true.
    pub fn except(mut self, predicate: impl Fn(&Head<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.options.filter.except(Box::new(predicate));
        self
    }

    /// Which fields tell of limits; [`Fields::Draft10`] by default.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.options.form.fields = fields;
        self
    }

    /// Adds `X-RateLimit-Limit`, `-Remaining`, `-Used` and `-Reset`.
    pub fn legacy_fields(mut self, legacy: Legacy) -> Self {
        self.options.form.legacy = Some(legacy);
        self
    }

    /// Whether answers to requests that were let through tell of limits, too; they do by default.
    pub fn fields_on_success(mut self, told: bool) -> Self {
        self.options.on_success = told;
        self
    }

    /// The status for a request that costs more than its limit can ever give, for which no `Retry-After` is true; 429 by
    /// default. (413 is a choice.)
    pub fn never_status(mut self, status: StatusCode) -> Self {
        self.options.never = status;
        self
    }

    /// Adds up to so many seconds to `Retry-After`, by chance, so that clients who were refused together do not come back
    /// together. None by default; whole seconds, so less than one adds none.
    pub fn jitter(mut self, most: Duration) -> Self {
        self.options.jitter_max = most;
        self
    }

    /// Counts and logs refusals, and refuses nobody; the answers tell of no limits. [`RateLimitLayer::set_dry_run`] ends it.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// The time since 1970, for [`Legacy::Moment`]; the system's by default.
    pub fn unix_time(mut self, clock: fn() -> Duration) -> Self {
        self.options.form.unix_time = clock;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn build(self) -> Result<RateLimitLayer<L, R>, BuildError> {
        let Self { limits, reject, mut options, dry_run } = self;
        Names::check(&limits.names())?;
        options.filter.check()?;
        let got = options.never;
        if !(got.is_client_error() || got.is_server_error()) {
            return Err(BuildError::Status { got });
        }
        Ok(RateLimitLayer { gate: Arc::new(Gate::new(limits, reject, options, dry_run)) })
    }
}

impl<L: Limits, R> fmt::Debug for Builder<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("names", &self.limits.names()).finish_non_exhaustive()
    }
}
