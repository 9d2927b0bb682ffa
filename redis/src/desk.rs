//! What one instance does with the callers of one key before it asks the server: the protocol of the two tiers, without
//! clock, lock or network.
//!
//! # What
//! A desk sends *orders*, each for so many units of cost 1, and shares out what comes back. With sharing on, one order is
//! under way at a time and callers who come meanwhile make up the next. With leases on, an order asks for more than its
//! callers need; the server records what it grants as taken `hold` later, and the rest is spent here until then. With the
//! cache on, a refusal is repeated until the moment that the server named.
//!
//! # Invariants
//! | id | always | kept by |
//! |----|--------|---------|
//! | I1 | a leased unit is spent before `sent + hold`, by a clock at most 1/1,000 slow | `Held::until` |
//! | I2 | units handed out for an order are at most those granted to it | `Desk::land` |
//! | I3 | a refusal is repeated for costs not below the refused one, before `sent + wait` by such a clock | `Full` |
//! | I4 | what an order brings home after the desk was told to forget is not kept | `epoch` |
//! | I5 | every caller is answered once: admitted, refused, or told of a failure; a failed order is not sent again | `Desk::land` |
//! | I6 | at most one order is under way | `under_way` |
//!
//! Checked by `desk/model.rs`: all interleavings of small worlds, and of worlds in which one of these is broken.
//!
//! # Proof of the lease
//! If every leased unit is spent while the server's clock is in `[g, g + hold]`, `g` its grant, no window `(x - W, x]` of
//! spends holds more than `L`. Take the latest grant `g* <= x` among those spends. Each of them, `s`, has a record
//! `e >= g + hold >= s > x - W >= g* - W`, so it was live at `g*`, where the script allowed at most `L` live records.
//! A caller who came before the order was sent and is answered after it, is admitted at `g` itself, however late the reply.

#[cfg(test)]
mod model;

use std::collections::VecDeque;

use tollgate::{Nanos, Rule};

use crate::{BuildError, By, Failure, Reply, Report, keyed::Idle};

/// What is switched on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tiers {
    /// Callers who come while an order is under way share the next.
    pub(crate) shared: bool,
    /// Refusals are repeated, for at most this long.
    pub(crate) cache: Option<Nanos>,
    /// Orders ask for more than is needed at once.
    pub(crate) lease: Option<Lease>,
}

/// How much to ask for in advance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    /// How long leased units may be spent.
    pub(crate) hold: Nanos,
    /// The most units of one order, unless more callers wait.
    pub(crate) most: u64,
}

/// The desk of one key. `W` is a caller who waits.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
pub(crate) struct Desk<W> {
    epoch: u64,
    full: Option<Full>,
    held: Option<Held>,
    under_way: bool,
    waiting: VecDeque<W>,
    /// Whether anybody ever wanted figures: orders ask for them from then on.
    figures: bool,
    demand: Demand,
}

/// A refusal that still holds.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(test, derive(PartialEq, Eq, Hash))]
struct Full {
    cost: u64,
    until: Nanos,
    /// When it was asked for, and what was answered.
    sent: Nanos,
    reply: Reply,
}

/// Leased units.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(test, derive(PartialEq, Eq, Hash))]
struct Held {
    left: u64,
    until: Nanos,
    sent: Nanos,
    reply: Reply,
}

/// Units asked for in this and the last span of a lease's hold.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
struct Demand {
    since: Nanos,
    this: u64,
    last: u64,
}

/// One call to the server for several callers.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
pub(crate) struct Order<W> {
    pub(crate) units: u64,
    pub(crate) hold: Nanos,
    pub(crate) report: Report,
    boarded: Vec<W>,
    epoch: u64,
}

/// A call to the server for one caller, to be told to [`Desk::learn`] afterwards.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(test, derive(PartialEq, Eq, Hash))]
pub(crate) struct Ticket {
    epoch: u64,
}

/// What becomes of a caller who comes.
#[derive(Debug)]
pub(crate) enum Arrival<W> {
    /// Answered at once.
    Served(Reply, By),
    /// Answered when an order comes home.
    Waits,
    /// The same, and whoever came must see this order through.
    Leads(Order<W>),
    /// Must ask the server itself.
    Alone(Ticket),
}

/// An answer to one who waited.
pub(crate) type Served = Result<(Reply, By), Failure>;

// === time and replies ===

/// A span as measured by a clock that may run slow by one part in a thousand.
fn shortened(span: Nanos) -> Nanos {
    span - Nanos::from_nanos(span.as_nanos().div_ceil(1_000))
}

/// A reply repeated `age` later.
fn aged(reply: &Reply, age: Nanos) -> Reply {
    let left = |span: Nanos| span - age;
    let retry_after = match reply.retry_after {
        Nanos::ZERO => Nanos::ZERO,
        retry => left(retry).max(Nanos::from_micros(1)),
    };
    Reply {
        retry_after,
        at: reply.at + age,
        figures: reply.figures.map(|(units, next, reset)| (units, left(next), left(reset))),
        ..*reply
    }
}

// === impl Lease ===

impl Lease {
    /// Refuses a hold longer than the shortest window.
    pub(crate) fn validate(self, rules: &[Rule]) -> Result<(), BuildError> {
        let max = rules.iter().map(|rule| rule.window).min().unwrap_or(self.hold);
        if self.hold > max {
            return Err(BuildError::Span { of: "lease", got: self.hold.into(), max: max.into() });
        }
        Ok(())
    }
}

// === impl Demand ===

impl Demand {
    fn count(&mut self, units: u64, now: Nanos, span: Nanos) {
        let age = now - self.since;
        if age >= span + span {
            *self = Self { since: now, this: 0, last: 0 };
        } else if age >= span {
            *self = Self { since: self.since + span, this: 0, last: self.this };
        }
        self.this = self.this.saturating_add(units);
    }

    fn expected(&self) -> u64 {
        self.this.max(self.last)
    }
}

// === impl Desk ===

impl<W> Desk<W> {
    pub(crate) fn new(epoch: u64) -> Self {
        Self {
            epoch,
            full: None,
            held: None,
            under_way: false,
            waiting: VecDeque::new(),
            figures: false,
            demand: Demand::default(),
        }
    }

    /// A caller comes for `cost` (1 to the least capacity, `ceiling`) at `now`.
    pub(crate) fn arrive(
        &mut self,
        tiers: &Tiers,
        (cost, ceiling): (u64, u64),
        figures: bool,
        now: Nanos,
        caller: impl FnOnce() -> W,
    ) -> Arrival<W> {
        if let Some(lease) = tiers.lease {
            self.demand.count(cost, now, lease.hold);
        }
        self.figures |= figures;
        if let Some((reply, by)) = self.serve(cost, figures, now) {
            return Arrival::Served(reply, by);
        }
        if cost > 1 || !tiers.shared {
            return Arrival::Alone(self.ticket());
        }
        self.waiting.push_back(caller());
        if self.under_way {
            return Arrival::Waits;
        }
        self.under_way = true;
        Arrival::Leads(self.order(tiers, ceiling))
    }

    /// A caller comes for as many units as there are: it asks for itself, unless there are known to be none.
    pub(crate) fn arrive_for_part(&self, now: Nanos) -> Arrival<W> {
        match self.refusal(1, now) {
            Some(reply) => Arrival::Served(reply, By::Cache),
            None => Arrival::Alone(self.ticket()),
        }
    }

    /// An order comes home, or is given up. `offer` hands an answer to a caller and says whether it was still wanted:
    /// a unit that nobody takes goes to the next. Returns the next order, which must be seen through too.
    pub(crate) fn land(
        &mut self,
        tiers: &Tiers,
        ceiling: u64,
        order: Order<W>,
        result: Result<Reply, Failure>,
        (sent, now): (Nanos, Nanos),
        mut offer: impl FnMut(W, Served) -> bool,
    ) -> Option<Order<W>> {
        match result {
            Err(failure) => {
                for caller in order.boarded {
                    offer(caller, Err(failure));
                }
            }
            Ok(reply) => self.share_out(tiers, order, reply, (sent, now), &mut offer),
        }
        while !self.waiting.is_empty()
            && let Some(served) = self.serve(1, self.figures, now)
        {
            while let Some(caller) = self.waiting.pop_front()
                && !offer(caller, Ok(served))
            {}
        }
        self.under_way = !self.waiting.is_empty();
        self.under_way.then(|| self.order(tiers, ceiling))
    }

    /// What a call made alone for `cost` brought home.
    pub(crate) fn learn(&mut self, tiers: &Tiers, ticket: Ticket, cost: u64, reply: &Reply, sent: Nanos) {
        if ticket.epoch == self.epoch {
            self.remember(tiers, cost, reply, sent);
        }
    }

    /// Forgets what it knows of the server, and what is still on its way: the key was reset, or the limits changed.
    pub(crate) fn forget(&mut self, epoch: u64) {
        (self.epoch, self.full, self.held) = (epoch, None, None);
    }

    /// Answers a caller from what is known, `figures` among it if they are wanted.
    fn serve(&mut self, cost: u64, figures: bool, now: Nanos) -> Option<(Reply, By)> {
        let tells = |reply: &Reply| !figures || reply.figures.is_some();
        if let Some(held) = self.held.as_mut().filter(|held| now < held.until && cost <= held.left)
            && tells(&held.reply)
        {
            held.left -= cost; // I1, I2
            let mut reply = aged(&held.reply, now - held.sent);
            reply.granted = cost;
            reply.figures = reply.figures.map(|(units, next, reset)| (units + held.left, next, reset));
            return Some((reply, By::Lease));
        }
        self.refusal(cost, now).filter(tells).map(|reply| (reply, By::Cache))
    }

    /// A refusal of `cost` that is known to hold.
    fn refusal(&self, cost: u64, now: Nanos) -> Option<Reply> {
        let full = self.full.filter(|full| now < full.until && cost >= full.cost)?; // I3
        Some(aged(&full.reply, now - full.sent))
    }

    fn ticket(&self) -> Ticket {
        Ticket { epoch: self.epoch }
    }

    /// All who wait, in one order.
    fn order(&mut self, tiers: &Tiers, ceiling: u64) -> Order<W> {
        let boarded: Vec<W> = self.waiting.drain(..).collect();
        let ahead = tiers.lease.map_or(0, |lease| self.demand.expected().min(lease.most));
        let report = if self.figures {
            Report::Figures
        } else if tiers.cache.is_some() || tiers.lease.is_some() {
            // When the order was judged is what a leased unit's record is told from.
            Report::Ahead
        } else {
            Report::Nothing
        };
        Order {
            units: (boarded.len() as u64).max(ahead).min(ceiling),
            hold: tiers.lease.map_or(Nanos::ZERO, |lease| lease.hold),
            report,
            boarded,
            epoch: self.epoch,
        }
    }

    fn share_out(
        &mut self,
        tiers: &Tiers,
        order: Order<W>,
        reply: Reply,
        (sent, now): (Nanos, Nanos),
        offer: &mut impl FnMut(W, Served) -> bool,
    ) {
        let mut granted = reply.granted;
        let mut boarded = VecDeque::from(order.boarded);
        while granted > 0
            && let Some(caller) = boarded.pop_front()
        {
            let mut one = Reply { granted: 1, retry_after: Nanos::ZERO, ..reply };
            one.figures = one.figures.map(|(units, next, reset)| (units + granted - 1, next, reset));
            if offer(caller, Ok((one, By::Redis))) {
                granted -= 1;
            }
        }
        if reply.retry_after > Nanos::ZERO {
            for caller in boarded {
                offer(caller, Ok((Reply { granted: 0, ..reply }, By::Redis)));
            }
        } else {
            // More callers than the limit holds: they go first next time.
            while let Some(caller) = boarded.pop_back() {
                self.waiting.push_front(caller);
            }
        }
        if order.epoch != self.epoch {
            return; // I4
        }
        if granted > 0 {
            // Without a hold this is over before it began.
            let until = sent + shortened(order.hold);
            let reply = Reply { retry_after: Nanos::ZERO, ..reply };
            let fresh = Held { left: granted, until, sent, reply };
            // Units without figures, that one who wanted those left here, go on until the first of both ends.
            self.held = Some(match self.held.filter(|held| held.left > 0 && now < held.until) {
                Some(held) => Held { left: held.left + granted, until: until.min(held.until), ..fresh },
                None => fresh,
            });
        }
        self.remember(tiers, 1, &reply, sent);
    }

    /// Keeps a refusal of `cost`, or the news that the limit is now used up.
    fn remember(&mut self, tiers: &Tiers, cost: u64, reply: &Reply, sent: Nanos) {
        let Some(longest) = tiers.cache else { return };
        let (cost, wait) = match (reply.retry_after, reply.ahead) {
            (Nanos::ZERO, Some(ahead)) => (1, ahead),
            (retry, _) => (cost, retry),
        };
        if wait == Nanos::ZERO {
            return;
        }
        let until = sent + shortened(wait).min(longest);
        // One refusal is kept: of the smallest cost, since it holds for all larger ones.
        if self.full.is_none_or(|known| cost <= known.cost || known.until <= sent) {
            let reply = Reply { granted: 0, retry_after: wait, ..*reply };
            self.full = Some(Full { cost, until, sent, reply });
        }
    }
}

impl<W> Idle for Desk<W> {
    fn is_idle(&self, now: Nanos) -> bool {
        !self.under_way
            && self.full.is_none_or(|full| full.until <= now)
            && self.held.is_none_or(|held| held.until <= now)
    }
}
