//! The limiter: rules on a server, with what stands before it and what stands in for it.

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{
            AtomicU64,
            Ordering::{AcqRel, Acquire},
        },
    },
    time::Instant,
};

use redis::aio::ConnectionLike;
use tokio::{sync::oneshot, time::timeout_at};
use tollgate::{Decision, Denied, Nanos, Quota, Reason, Rule};

use crate::{
    Answer, BuildError, Builder, By, Call, Failure, Grant, Health, Instances, Mode, OnFailure, Reply, Report,
    Scripted, Stats, Store, Unavailable, Verdict,
    answer::Outcome,
    breaker::Breaker,
    desk::{Arrival, Desk, Order, Served, Ticket, Tiers},
    key::Keys,
    keyed::Keyed,
    local::Local,
    stats::Counters,
};

/// One limit, or several together, for every instance that shares a server.
///
/// All calls take `&self`, and a clone is another handle on the same limiter. A call belongs to an id (any bytes): a tenant,
/// a user, an address. Each call is one round trip at most, ends within the deadline, and is decided at one instant on the
/// server, by the server's clock.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tollgate_redis::Limiter;
///
/// let connection = redis::Client::open("redis://127.0.0.1/")?.get_connection_manager().await?;
/// let limiter = Limiter::builder("api", 100, Duration::from_secs(60)).build(connection)?;
/// limiter.verify().await?;
///
/// let answer = limiter.check("user-42", 1).await?;
/// match answer.decision {
///     Ok(quota) => println!("{} left", quota.remaining),
///     Err(denied) => println!("429, retry after {:?}", denied.retry_after()),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Limiter<C> {
    inner: Arc<Inner<C>>,
}

/// What a builder has checked.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    /// How many there are, whatever they become.
    pub(crate) rules: usize,
    pub(crate) tiers: Tiers,
    pub(crate) coarse: Option<u64>,
    pub(crate) local: Option<Local>,
    pub(crate) desks: Option<Keyed<Desk<Caller>>>,
    pub(crate) instances: Instances,
    pub(crate) capacity: Option<Capacity>,
    pub(crate) breaker: Breaker,
    pub(crate) deadline: std::time::Duration,
    pub(crate) on_failure: OnFailure,
}

/// A limiter for the machine's own capacity.
pub(crate) type Capacity = Box<dyn Fn(u64) -> Decision + Send + Sync>;

/// One who waits for an order to come home.
pub(crate) type Caller = oneshot::Sender<Served>;

struct Inner<C> {
    connection: C,
    scripted: Scripted,
    parts: Parts,
    rules: RwLock<Arc<[Rule]>>,
    /// Moved on whenever desks must forget; a new desk starts at the present one.
    epoch: AtomicU64,
    counters: Counters,
    origin: Instant,
}

/// One check on its way.
#[derive(Clone, Copy)]
struct Ask<'a> {
    id: &'a [u8],
    mode: Mode,
    cost: u64,
    report: Report,
    until: Instant,
}

/// A reset on its way. When it ends, or is given up, this instance forgets the key: the server may have.
struct Forgotten<'a, C> {
    inner: &'a Inner<C>,
    id: &'a [u8],
}

/// An order on its way, and those that follow from it. One that is dropped with its runtime is lost like its connection: whoever
/// waits is told, and the desk is free.
struct Flight<C> {
    inner: Arc<Inner<C>>,
    id: Vec<u8>,
    order: Option<Order<Caller>>,
}

// === impl Limiter ===

impl<C> Clone for Limiter<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<C> fmt::Debug for Limiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("store", &self.inner.parts.store)
            .field("rules", &self.inner.rules())
            .finish()
    }
}

impl Limiter<()> {
    /// At most `limit` units in any window, under this name: the last part of every key.
    pub fn builder(name: impl Into<String>, limit: u64, window: std::time::Duration) -> Builder {
        Builder::new(name.into(), Rule::new(limit, window))
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Limiter<C> {
    pub(crate) fn new(connection: C, rules: Vec<Rule>, parts: Parts) -> Self {
        let inner = Inner {
            connection,
            scripted: Scripted::new(parts.store),
            rules: RwLock::new(rules.into()),
            parts,
            epoch: AtomicU64::new(0),
            counters: Counters::default(),
            origin: Instant::now(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes `cost` units of every limit of `id`, all or nothing. The cheapest call: O(1) on a ring.
    ///
    /// # Errors
    /// [`Unavailable`] if the server could not decide and [`OnFailure::Closed`] holds. A refusal is not an error.
    pub async fn try_acquire(&self, id: impl AsRef<[u8]>, cost: u64) -> Result<Verdict, Unavailable> {
        self.decide(id.as_ref(), Mode::Take, cost, Report::Nothing).await.map(Outcome::verdict)
    }

    /// Takes `cost` units of every limit of `id`, all or nothing, and tells what is left: O(log limit) on a ring.
    ///
    /// # Errors
    /// As [`try_acquire`](Limiter::try_acquire).
    pub async fn check(&self, id: impl AsRef<[u8]>, cost: u64) -> Result<Answer, Unavailable> {
        self.decide(id.as_ref(), Mode::Take, cost, Report::Figures).await.map(Outcome::answer)
    }

    /// Takes as many of `units` as every limit of `id` has room for. (A limiter for the machine's own capacity must have room
    /// for all of them.)
    ///
    /// # Errors
    /// As [`try_acquire`](Limiter::try_acquire).
    pub async fn acquire_up_to(&self, id: impl AsRef<[u8]>, units: u64) -> Result<Grant, Unavailable> {
        self.decide(id.as_ref(), Mode::Part, units, Report::Nothing).await.map(Outcome::grant)
    }

    /// Tells what [`check`](Limiter::check) would answer, with the figures of now, and changes nothing. Always asks the
    /// server: what it says holds for all instances.
    ///
    /// # Errors
    /// As [`try_acquire`](Limiter::try_acquire).
    pub async fn peek(&self, id: impl AsRef<[u8]>, cost: u64) -> Result<Answer, Unavailable> {
        self.decide(id.as_ref(), Mode::Peek, cost, Report::Figures).await.map(Outcome::answer)
    }

    /// Forgets every admission of `id`, on the server and here. Other instances may repeat a cached refusal until its end
    /// and spend the leased units that they hold.
    ///
    /// # Errors
    /// [`Unavailable`], whatever [`OnFailure`] says; the key may or may not be gone.
    pub async fn reset(&self, id: impl AsRef<[u8]>) -> Result<(), Unavailable> {
        let id = id.as_ref();
        let inner = &self.inner;
        let mut command = redis::cmd("DEL");
        for key in inner.parts.keys.of(id) {
            command.arg(key);
        }
        let until = Instant::now() + inner.parts.deadline;
        let mut connection = inner.connection.clone();
        let _forgotten = Forgotten { inner, id };
        let done = inner.timed(until, command.query_async::<()>(&mut connection)).await;
        done.map_err(|failure| inner.unavailable(failure))
    }

    /// Replaces the limits, in the order of the rules, and leaves the windows: see [`set_rules`](Limiter::set_rules).
    ///
    /// # Errors
    /// As [`set_rules`](Limiter::set_rules).
    pub fn set_limits(&self, limits: &[u64]) -> Result<(), BuildError> {
        let rules = self.rules();
        if limits.len() != rules.len() {
            return Err(BuildError::Rules { got: limits.len(), max: rules.len() });
        }
        let changed = |(rule, &limit): (&Rule, &u64)| Rule { limit, ..*rule };
        self.set_rules(&rules.iter().zip(limits).map(changed).collect::<Vec<_>>())
    }

    /// Replaces limits and windows, in the order of the rules. Calls that begin later are judged by the new ones, and the use
    /// so far counts; a limit of 0 refuses everything from now on, whether the server answers or not. Other instances keep
    /// theirs until they are told.
    ///
    /// A shorter window holds at once. A longer one looks back as far as units are kept: for one old window after they
    /// were taken, and [`Store::Ring`] keeps the newest `limit` units longer, until the key dies. [`Store::Gcra`] keeps the
    /// time until its bucket is empty, whatever a unit takes from now on.
    ///
    /// # Errors
    /// A number of rules other than before, or a rule that could not have been built. Then nothing has changed.
    pub fn set_rules(&self, rules: &[Rule]) -> Result<(), BuildError> {
        let parts = &self.inner.parts;
        if rules.len() != parts.rules {
            return Err(BuildError::Rules { got: rules.len(), max: parts.rules });
        }
        rules.iter().try_for_each(|rule| parts.store.validate(*rule))?;
        parts.tiers.lease.map_or(Ok(()), |lease| lease.validate(rules))?;
        if parts.local.is_some() {
            Local::validate(rules)?;
        }
        *self.inner.rules.write().unwrap_or_else(PoisonError::into_inner) = rules.into();
        // Only now: whoever takes a ticket of the new epoch reads the new rules.
        self.inner.forget(|desks, epoch| desks.for_each(|desk| desk.forget(epoch)));
        Ok(())
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<[Rule]> {
        self.inner.rules()
    }

    /// Runs the limiter's script on a key of its own, taking nothing: the server has all that it needs, and allows it.
    /// For the start of a program, where a wrong address, a missing right or too old a server should be seen.
    ///
    /// # Errors
    /// The server's or the connection's own words.
    pub async fn verify(&self) -> Result<(), redis::RedisError> {
        let inner = &self.inner;
        let rules = inner.rules();
        let call = Call { mode: Mode::Take, cost: 1, report: Report::Figures, hold: Nanos::ZERO, now: None };
        let keys = inner.parts.keys.of(VERIFY);
        let rules: Vec<Rule> = rules.iter().map(|rule| Rule { limit: rule.limit.max(1), ..*rule }).collect();
        let mut connection = inner.connection.clone();
        inner.scripted.call(&mut connection, &keys, &rules, call).await?;
        let mut command = redis::cmd("DEL");
        for key in keys {
            command.arg(key);
        }
        command.query_async(&mut connection).await
    }

    /// What happened so far.
    pub fn stats(&self) -> Stats {
        self.inner.counters.read()
    }

    /// How the server is.
    pub fn health(&self) -> Health {
        let breaker = &self.inner.parts.breaker;
        Health { asking: !breaker.is_open(), retry_after: breaker.shut_for(self.inner.now()) }
    }

    async fn decide(&self, id: &[u8], mode: Mode, cost: u64, report: Report) -> Result<Outcome, Unavailable> {
        let inner = &self.inner;
        let until = Instant::now() + inner.parts.deadline;
        let ask = Ask { id, mode, cost, report, until };
        let outcome = match inner.before(&ask) {
            Some(outcome) => Ok(outcome),
            None => match inner.tiered(&ask).await {
                Ok(outcome) => {
                    inner.note(&ask, &outcome);
                    Ok(outcome)
                }
                Err(failure) => inner.without(&ask, failure),
            },
        };
        match &outcome {
            Ok(outcome) => {
                inner.counters.decided(outcome.by, outcome.granted > 0 || outcome.decision.is_ok())
            }
            Err(_) => inner.counters.unavailable(),
        }
        outcome
    }
}

/// The id that [`Limiter::verify`] uses.
const VERIFY: &[u8] = b"\0verify";

// === impl Inner ===

impl<C> Inner<C> {
    fn now(&self) -> Nanos {
        // From 1, so that no time is mistaken for none.
        Nanos::from(self.origin.elapsed()) + Nanos::from_nanos(1)
    }

    fn rules(&self) -> Arc<[Rule]> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells desks to forget what they know of the server.
    fn forget(&self, tell: impl FnOnce(&Keyed<Desk<Caller>>, u64)) {
        let epoch = self.epoch.fetch_add(1, AcqRel) + 1;
        if let Some(desks) = &self.parts.desks {
            tell(desks, epoch);
        }
    }

    fn capacities(&self, rules: &[Rule]) -> Vec<u64> {
        rules.iter().map(|rule| self.parts.store.capacity(*rule)).collect()
    }

    /// The most that one call can ever take.
    fn ceiling(&self, rules: &[Rule]) -> u64 {
        self.capacities(rules).into_iter().min().unwrap_or(0)
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Inner<C> {
    /// What needs no server: costs that are always or never had, the machine's capacity, the coarse limiter.
    fn before(&self, ask: &Ask<'_>) -> Option<Outcome> {
        let Ask { id, mode, cost, report, .. } = *ask;
        let rules = self.rules();
        if cost == 0 && report == Report::Nothing {
            let quota = Quota::new(self.ceiling(&rules), Nanos::ZERO);
            return Some(Outcome { granted: 0, decision: Ok(quota), by: By::Rule });
        }
        if let Some(never) = self.never(ask, &rules) {
            return Some(never);
        }
        if mode == Mode::Peek {
            return None;
        }
        let asked = cost.min(self.ceiling(&rules));
        if let Some(Err(denied)) = self.parts.capacity.as_ref().map(|capacity| capacity(asked)) {
            return Some(Outcome::whole(cost, Err(denied), By::Capacity));
        }
        let (percent, local) = (self.parts.coarse?, self.parts.local.as_ref()?);
        let coarse: Vec<Rule> =
            rules.iter().map(|rule| Rule { limit: self.coarse(rule.limit, percent), ..*rule }).collect();
        let least = if mode == Mode::Part { 1 } else { cost };
        let denied = local.decide(id, Mode::Peek, least, &coarse, self.now()).1.err()?;
        Some(Outcome::whole(cost, Err(denied), By::Coarse))
    }

    /// A cost that no waiting will fit. Its figures, but for the limit, are not asked for, and zero.
    fn never(&self, ask: &Ask<'_>, rules: &[Rule]) -> Option<Outcome> {
        let least = if ask.mode == Mode::Part { ask.cost.min(1) } else { ask.cost };
        let capacities = self.capacities(rules);
        let rule = capacities.iter().position(|&capacity| least > capacity)?;
        let mut quota = Quota::new(capacities[rule], Nanos::ZERO);
        (quota.rule, quota.remaining) = (rule, 0);
        Some(Outcome::whole(ask.cost, Err(Denied::new(Reason::Never, quota)), By::Rule))
    }

    /// This instance's coarse part of a limit: an equal part and some percent more, rounded up.
    fn coarse(&self, limit: u64, percent: u64) -> u64 {
        let (_, count) = self.parts.instances.get();
        let part = (u128::from(limit) * u128::from(percent)).div_ceil(u128::from(count) * 100);
        u64::try_from(part).unwrap_or(u64::MAX).min(limit)
    }

    /// Asks the desk of the key, and the server if that must be.
    async fn tiered(self: &Arc<Self>, ask: &Ask<'_>) -> Result<Outcome, Failure> {
        let Some(desks) = self.parts.desks.as_ref().filter(|_| ask.mode != Mode::Peek && ask.cost > 0) else {
            return self.alone(ask, None).await;
        };
        let (caller, answer) = oneshot::channel();
        let costs = (ask.cost, self.ceiling(&self.rules()));
        let figures = ask.report == Report::Figures;
        let now = self.now();
        let arrival = desks.with(
            ask.id,
            now,
            || Desk::new(self.epoch.load(Acquire)),
            |desk| match ask.mode {
                Mode::Part => desk.arrive_for_part(now),
                _ => desk.arrive(&self.parts.tiers, costs, figures, now, || caller),
            },
        );
        match arrival {
            // No room for a desk.
            None => return self.alone(ask, None).await,
            Some(Arrival::Served(reply, by)) => return Ok(self.outcome(ask, &reply, by)),
            Some(Arrival::Alone(ticket)) => return self.alone(ask, Some(ticket)).await,
            Some(Arrival::Waits) => {}
            Some(Arrival::Leads(order)) => {
                // On a task of its own: a caller who gives up must not leave the others waiting.
                let flight = Flight { inner: self.clone(), id: ask.id.to_vec(), order: Some(order) };
                tokio::spawn(flight.see_through());
            }
        }
        match timeout_at(ask.until.into(), answer).await {
            Ok(Ok(served)) => served.map(|(reply, by)| self.outcome(ask, &reply, by)),
            // Late, or the runtime is shutting down.
            Ok(Err(_)) | Err(_) => Err(Failure::Deadline),
        }
    }

    /// A call for one caller, with nobody else. The desk that gave the ticket learns from it.
    async fn alone(&self, ask: &Ask<'_>, ticket: Option<Ticket>) -> Result<Outcome, Failure> {
        let sent = self.now();
        let ahead = self.parts.tiers.cache.is_some() || ask.mode == Mode::Part;
        let report = if ahead { ask.report.max(Report::Ahead) } else { ask.report };
        let reply = self.call(ask.id, ask.mode, ask.cost, Nanos::ZERO, report, ask.until).await?;
        if let (Some(ticket), Some(desks)) = (ticket, &self.parts.desks) {
            let refused = if ask.mode == Mode::Part { 1 } else { ask.cost };
            desks.with_known(ask.id, |desk| desk.learn(&self.parts.tiers, ticket, refused, &reply, sent));
        }
        Ok(self.outcome(ask, &reply, By::Redis))
    }

    /// The server's one call: by the breaker's leave, within the deadline, never twice.
    async fn call(
        &self,
        id: &[u8],
        mode: Mode,
        cost: u64,
        hold: Nanos,
        report: Report,
        until: Instant,
    ) -> Result<Reply, Failure> {
        let rules = self.rules();
        // The limits may have been lowered since the caller was let in; the script takes no cost above them.
        let ceiling = self.ceiling(&rules);
        let cost = if mode == Mode::Part { cost.min(ceiling) } else { cost };
        if cost > ceiling || cost == 0 && mode == Mode::Part {
            return Err(Failure::Changed);
        }
        let call = Call { mode, cost, report, hold, now: None };
        let keys = self.parts.keys.of(id);
        let mut connection = self.connection.clone();
        self.timed(until, self.scripted.call(&mut connection, &keys, &rules, call)).await
    }

    async fn timed<T>(
        &self,
        until: Instant,
        call: impl Future<Output = Result<T, redis::RedisError>>,
    ) -> Result<T, Failure> {
        let breaker = &self.parts.breaker;
        breaker.admit(self.now()).map_err(|_| Failure::Breaker)?;
        self.counters.called();
        let result = match timeout_at(until.into(), call).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(Failure::of(&error)),
            Err(_) => Err(Failure::Deadline),
        };
        match &result {
            Err(failure) if failure.is_general() => breaker.failed(self.now()),
            _ => breaker.succeeded(),
        }
        result
    }

    fn outcome(&self, ask: &Ask<'_>, reply: &Reply, by: By) -> Outcome {
        let mut reply = *reply;
        if ask.mode == Mode::Part && reply.granted < ask.cost {
            // More than the limit was asked for, and the limit granted: when there will be one more is in the report.
            reply.retry_after = reply.retry_after.max(reply.ahead.unwrap_or_default());
        }
        let decision = reply.decision(&self.capacities(&self.rules()));
        let granted = if ask.mode == Mode::Peek { 0 } else { reply.granted };
        Outcome { granted, decision, by }
    }

    /// Counts an admission among this instance's own, for the limiters that know no other.
    fn note(&self, ask: &Ask<'_>, outcome: &Outcome) {
        if let Some(local) = &self.parts.local
            && outcome.granted > 0
        {
            local.note(ask.id, outcome.granted, &self.rules(), self.now());
        }
    }

    /// What is answered when the server could not be asked.
    fn without(&self, ask: &Ask<'_>, failure: Failure) -> Result<Outcome, Unavailable> {
        self.counters.failed(failure);
        let Ask { id, mode, cost, .. } = *ask;
        let rules = self.rules();
        // Whatever stands in for the server, a limit lowered to 0 meanwhile admits nobody.
        if let Some(never) = self.never(ask, &rules) {
            return Ok(never);
        }
        match (self.parts.on_failure, &self.parts.local) {
            (OnFailure::Local, Some(local)) => {
                let portion = |rule: &Rule| Rule { limit: self.parts.instances.portion(rule.limit), ..*rule };
                let parts: Vec<Rule> = rules.iter().map(portion).collect();
                let (granted, decision) = local.decide(id, mode, cost, &parts, self.now());
                Ok(Outcome { granted, decision, by: By::Local })
            }
            (OnFailure::Open, _) => {
                let ceiling = self.ceiling(&rules);
                let quota = Quota::new(ceiling, self.now());
                Ok(Outcome { granted: cost.min(ceiling), decision: Ok(quota), by: By::Open })
            }
            _ => Err(self.unavailable(failure)),
        }
    }

    fn unavailable(&self, failure: Failure) -> Unavailable {
        let retry_after = self.parts.breaker.shut_for(self.now()).max(Nanos::from_millis(1));
        Unavailable { failure, retry_after }
    }
}

// === impl Forgotten ===

impl<C> Drop for Forgotten<'_, C> {
    fn drop(&mut self) {
        self.inner.forget(|desks, epoch| {
            desks.with_known(self.id, |desk| desk.forget(epoch));
        });
    }
}

// === impl Flight ===

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Flight<C> {
    async fn see_through(mut self) {
        while let Some(order) = &self.order {
            let sent = self.inner.now();
            let until = Instant::now() + self.inner.parts.deadline;
            let call = self.inner.call(&self.id, Mode::Part, order.units, order.hold, order.report, until);
            let result = call.await;
            self.land(result, sent);
        }
    }
}

impl<C> Flight<C> {
    /// Hands out what the order brought home, and goes on with the next.
    fn land(&mut self, result: Result<Reply, Failure>, sent: Nanos) {
        let Self { inner, id, order } = self;
        let (Some(home), Some(desks)) = (order.take(), &inner.parts.desks) else { return };
        let ceiling = inner.ceiling(&inner.rules());
        let landed = desks.with_known(id, |desk| {
            let offer = |caller: Caller, served| caller.send(served).is_ok();
            desk.land(&inner.parts.tiers, ceiling, home, result, (sent, inner.now()), offer)
        });
        *order = landed.flatten();
    }
}

impl<C> Drop for Flight<C> {
    fn drop(&mut self) {
        // Each landing answers all who wait by now, so this ends when nobody is left.
        while self.order.is_some() {
            self.land(Err(Failure::Connection), self.inner.now());
        }
    }
}
