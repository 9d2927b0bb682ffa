//! Small worlds, every interleaving: the real desks of some instances, a server with an exact log, and a network that loses,
//! delays and reorders. Time advances in ticks between any two steps.
//!
//! # Checked in every state
//! | id | always |
//! |----|--------|
//! | M1 | no window of spends holds more than the limit: a caller aboard an order spends at its grant, any other when served |
//! | M2 | a repeated refusal is one that the server would give at this moment |
//! | M3 | nobody is answered twice, and an order gives out at most what it was granted |
//! | M4 | whoever waits has an order on its way; when nothing is on its way, everybody has been answered |
//!
//! The clocks here are equal; that of a slow one is a test of its own below. `ci/redis-mutants.sh` breaks the desk in the ways
//! that this must notice.

use std::{
    cell::Cell,
    collections::HashSet,
    hash::Hash,
    time::{Duration, Instant},
};

use tollgate::Nanos;

use super::{Arrival, Desk, Lease, Order, Ticket, Tiers};
use crate::{By, Failure, Reply, Report};

/// A caller: which instance, which of its callers.
type Caller = u8;

const TICK: u64 = 1_000;
const WINDOW: u64 = 2;

fn at(tick: u64) -> Nanos {
    Nanos::from_nanos((100 + tick) * TICK)
}

#[derive(Clone)]
struct Size {
    limit: u64,
    /// For each instance, the costs of its callers, in the order they come.
    callers: &'static [&'static [u64]],
    ticks: u64,
    tiers: Tiers,
    /// Requests or replies that the network may lose.
    losses: u8,
    /// Callers who may give up while they wait.
    leaves: u8,
    /// Times that the limit may be raised by one and the desk be told.
    raises: u8,
    /// Times that the key may be reset.
    resets: u8,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Stage {
    Sent,
    /// The grant's time and the reply.
    Answered(u64, Reply),
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Aboard {
    Order(Order<Caller>),
    Alone(Ticket, Caller, u64),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Flight {
    instance: usize,
    sent: u64,
    aboard: Aboard,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    tick: u64,
    limit: u64,
    epoch: u64,
    /// Records on the server.
    log: Vec<u64>,
    last: u64,
    /// When units were spent, since the last reset.
    spends: Vec<u64>,
    desks: Vec<Desk<Caller>>,
    came: Vec<usize>,
    flights: Vec<Flight>,
    /// Requests given up by their senders that the server may yet see: units and hold.
    stray: Vec<(u64, u64)>,
    answered: u32,
    gone: u32,
    losses: u8,
    leaves: u8,
    raises: u8,
    resets: u8,
}

impl World {
    fn new(size: &Size) -> Self {
        Self {
            tick: 0,
            limit: size.limit,
            epoch: 0,
            log: Vec::new(),
            last: 0,
            spends: Vec::new(),
            desks: (0..size.callers.len()).map(|_| Desk::new(0)).collect(),
            came: vec![0; size.callers.len()],
            flights: Vec::new(),
            stray: Vec::new(),
            answered: 0,
            gone: 0,
            losses: size.losses,
            leaves: size.leaves,
            raises: size.raises,
            resets: size.resets,
        }
    }

    // === the server ===

    fn live(&self) -> u64 {
        self.log.iter().filter(|&&record| record + WINDOW > self.tick).count() as u64
    }

    /// How long until `m` more fit.
    fn wait(&self, m: u64) -> u64 {
        let fits = |later: u64| {
            let live = self.log.iter().filter(|&&record| record + WINDOW > self.tick + later).count() as u64;
            live + m <= self.limit
        };
        (0..).find(|&later| fits(later)).unwrap()
    }

    fn grant(&mut self, part: bool, cost: u64, hold: u64) -> Reply {
        let free = self.limit.saturating_sub(self.live());
        let granted = if part {
            cost.min(free)
        } else if cost <= free {
            cost
        } else {
            0
        };
        self.last = self.last.max(self.tick + hold);
        if granted > 0 {
            self.log.extend(std::iter::repeat_n(self.last, granted as usize));
        }
        self.log.retain(|record| record + WINDOW > self.tick);
        self.log.sort_unstable();
        let retry = if granted == cost { 0 } else { self.wait(if part { 1 } else { cost }) };
        Reply {
            granted,
            retry_after: Nanos::from_nanos(retry * TICK),
            at: at(self.tick),
            rule: 0,
            ahead: Some(Nanos::from_nanos(self.wait(1) * TICK)),
            figures: None,
        }
    }

    // === what must hold ===

    fn spend(&mut self, when: u64, units: u64) {
        self.spends.extend(std::iter::repeat_n(when, units as usize));
        self.spends.sort_unstable();
        for &end in &self.spends {
            let inside =
                self.spends.iter().filter(|&&spend| spend <= end && spend + WINDOW > end).count() as u64;
            assert!(
                inside <= self.limit,
                "M1: {inside} spends in the window that ends at {end}: {:?}",
                self.spends
            );
        }
    }

    fn answer(&mut self, caller: Caller) {
        let bit = 1 << caller;
        assert_eq!(self.answered & bit, 0, "M3: caller {caller} is answered twice");
        self.answered |= bit;
    }

    /// An answer from what a desk knows.
    fn served(&mut self, caller: Caller, cost: u64, by: By) {
        let (leased, repeated) = SERVED.get();
        if by == By::Lease {
            SERVED.set((leased + 1, repeated));
            self.spend(self.tick, cost);
        } else {
            SERVED.set((leased, repeated + 1));
            assert!(self.live() + cost > self.limit, "M2: a refusal repeated at {} does not hold", self.tick);
        }
        self.answer(caller);
    }

    fn check(&self) {
        for (instance, desk) in self.desks.iter().enumerate() {
            let aboard = self.flights.iter().filter(|flight| flight.instance == instance);
            let orders = aboard.filter(|flight| matches!(flight.aboard, Aboard::Order(_))).count();
            assert!(orders <= 1, "I6: {orders} orders under way");
            assert_eq!(desk.under_way, orders == 1, "M4: a desk waits for an order that is not on its way");
            assert!(desk.waiting.is_empty() || desk.under_way, "M4: somebody waits for nothing");
        }
        if self.flights.is_empty() {
            let came: u32 = self.came.iter().enumerate().map(|(i, &n)| ((1 << n) - 1) << (8 * i)).sum();
            assert_eq!(self.answered | self.gone, came, "M4: somebody was forgotten");
        }
    }

    // === steps ===

    fn next(&self, size: &Size) -> Vec<World> {
        let mut next = Vec::new();
        let mut step = |act: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            act(&mut world);
            world.check();
            next.push(world);
        };
        if self.tick < size.ticks {
            step(&|world| world.pass());
        }
        for instance in 0..size.callers.len() {
            // The instance that is called first is the first.
            if self.came[instance] < size.callers[instance].len()
                && (instance == 0 || self.came[instance - 1] > 0)
            {
                step(&|world| world.arrive(size, instance));
            }
        }
        for flight in 0..self.flights.len() {
            match self.flights[flight].stage {
                Stage::Sent => step(&|world| world.reach_server(flight)),
                Stage::Answered(..) => step(&|world| world.come_home(size, flight, false)),
            }
            if self.losses > 0 {
                step(&|world| world.come_home(size, flight, true));
            }
        }
        for stray in 0..self.stray.len() {
            step(&|world| {
                let (units, hold) = world.stray.swap_remove(stray);
                world.grant(true, units, hold);
            });
        }
        for caller in 0..32u8 {
            let waits = self.flights.iter().any(|flight| match &flight.aboard {
                Aboard::Order(order) => order.boarded.contains(&caller),
                Aboard::Alone(..) => false,
            }) || self.desks.iter().any(|desk| desk.waiting.contains(&caller));
            if self.leaves > 0 && waits && self.gone >> caller & 1 == 0 {
                step(&|world| {
                    world.leaves -= 1;
                    world.gone |= 1 << caller;
                });
            }
        }
        if self.raises > 0 {
            step(&|world| {
                world.raises -= 1;
                world.limit += 1;
                world.forget();
            });
        }
        if self.resets > 0 {
            step(&|world| {
                world.resets -= 1;
                (world.log, world.last, world.spends) = (Vec::new(), 0, Vec::new());
                // Grants of before the reset count before it.
                for flight in &mut world.flights {
                    if let Stage::Answered(granted, _) = &mut flight.stage {
                        *granted = BEFORE_RESET;
                    }
                }
                world.forget();
            });
        }
        next
    }

    /// A tick passes. What can matter no more is dropped, so that worlds meet again.
    fn pass(&mut self) {
        self.tick += 1;
        let tick = self.tick;
        self.log.retain(|record| record + WINDOW > tick);
        self.last = self.last.max(tick);
        let grants = self.flights.iter().filter_map(|flight| match flight.stage {
            Stage::Answered(when, _) => Some(when),
            Stage::Sent => None,
        });
        let earliest = grants.min().unwrap_or(tick).min(tick);
        self.spends.retain(|spend| spend + WINDOW > earliest);
    }

    fn forget(&mut self) {
        self.epoch += 1;
        for desk in &mut self.desks {
            desk.forget(self.epoch);
        }
    }

    fn arrive(&mut self, size: &Size, instance: usize) {
        let cost = size.callers[instance][self.came[instance]];
        let caller = (8 * instance + self.came[instance]) as Caller;
        self.came[instance] += 1;
        let now = at(self.tick);
        let arrival = self.desks[instance].arrive(&size.tiers, (cost, self.limit), false, now, || caller);
        let aboard = match arrival {
            Arrival::Served(_, by) => return self.served(caller, cost, by),
            Arrival::Waits => return,
            Arrival::Leads(order) => Aboard::Order(order),
            Arrival::Alone(ticket) => Aboard::Alone(ticket, caller, cost),
        };
        self.flights.push(Flight { instance, sent: self.tick, aboard, stage: Stage::Sent });
    }

    fn reach_server(&mut self, flight: usize) {
        let reply = match &self.flights[flight].aboard {
            Aboard::Order(order) => {
                let (units, hold) = (order.units.min(self.limit), order.hold.as_nanos() / TICK);
                self.grant(true, units, hold)
            }
            Aboard::Alone(_, _, cost) => {
                let cost = *cost;
                self.grant(false, cost, 0)
            }
        };
        self.flights[flight].stage = Stage::Answered(self.tick, reply);
    }

    fn come_home(&mut self, size: &Size, flight: usize, lost: bool) {
        let Flight { instance, sent, aboard, stage } = self.flights.swap_remove(flight);
        let reached = matches!(stage, Stage::Answered(..));
        let (result, granted_at) = match stage {
            _ if lost => (Err(Failure::Deadline), 0),
            Stage::Answered(when, reply) => (Ok(reply), when),
            Stage::Sent => unreachable!("nothing comes home before it was answered"),
        };
        if lost {
            self.losses -= 1;
        }
        match aboard {
            Aboard::Alone(ticket, caller, cost) => {
                if let Ok(reply) = result {
                    self.desks[instance].learn(&size.tiers, ticket, cost, &reply, at(sent));
                    if reply.granted > 0 && granted_at != BEFORE_RESET {
                        self.spend(granted_at, cost);
                    }
                }
                self.answer(caller);
            }
            Aboard::Order(order) => {
                if !reached {
                    self.stray.push((order.units, order.hold.as_nanos() / TICK));
                }
                let boarded = if lost { order.boarded.clone() } else { Vec::new() };
                let (mut handed, gone) = (Vec::new(), self.gone);
                let offer = |caller: Caller, served| {
                    let there = gone >> caller & 1 == 0;
                    if there {
                        handed.push((caller, served));
                    }
                    there
                };
                let (limit, times) = (self.limit, (at(sent), at(self.tick)));
                let next = self.desks[instance].land(&size.tiers, limit, order, result, times, offer);
                let mut units = 0;
                for (caller, served) in handed {
                    match served {
                        Ok((reply, By::Redis)) => {
                            self.answer(caller);
                            if reply.granted > 0 {
                                units += 1;
                                if granted_at != BEFORE_RESET {
                                    self.spend(granted_at, 1);
                                }
                            }
                        }
                        Ok((_, by)) => self.served(caller, 1, by),
                        Err(_) => self.answer(caller),
                    }
                }
                assert!(
                    units <= result.map_or(0, |reply| reply.granted),
                    "M3: more was handed out than granted"
                );
                let told = |caller: &Caller| (self.answered | self.gone) >> caller & 1 == 1;
                assert!(boarded.iter().all(told), "I5: who was aboard a lost order is aboard the next");
                if let Some(order) = next {
                    let flight = Flight {
                        instance,
                        sent: self.tick,
                        aboard: Aboard::Order(order),
                        stage: Stage::Sent,
                    };
                    self.flights.push(flight);
                }
            }
        }
    }
}

/// A grant whose record was deleted by a reset.
const BEFORE_RESET: u64 = u64::MAX;

thread_local! {
    /// Answers by leases and by repeated refusals, so that a world in which there are none is noticed.
    static SERVED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Visits every reachable state.
fn explore(name: &str, size: &Size) {
    let start = Instant::now();
    SERVED.set((0, 0));
    let mut seen = HashSet::new();
    let mut open = vec![World::new(size)];
    while let Some(world) = open.pop() {
        for next in world.next(size) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    let (leased, repeated) = SERVED.get();
    println!("{name}: {} states, {leased} leased, {repeated} repeated, {:?}", seen.len(), start.elapsed());
    assert_eq!(size.tiers.lease.is_some(), leased > 0, "{name}");
    assert_eq!(size.tiers.cache.is_some(), repeated > 0, "{name}");
}

fn tiers(shared: bool, cache: bool, lease: Option<(u64, u64)>) -> Tiers {
    Tiers {
        shared,
        cache: cache.then(|| Nanos::from_nanos(100 * TICK)),
        lease: lease.map(|(hold, most)| Lease { hold: Nanos::from_nanos(hold * TICK), most }),
    }
}

const SMALL: Size = Size {
    limit: 2,
    callers: &[],
    ticks: 3,
    tiers: Tiers { shared: false, cache: None, lease: None },
    losses: 0,
    leaves: 0,
    raises: 0,
    resets: 0,
};

#[test]
fn model_cached_refusals() {
    let tiers = tiers(false, true, None);
    explore("refusals", &Size { limit: 1, callers: &[&[1, 1], &[1, 1]], ticks: 2, tiers, ..SMALL });
    explore("refusals, costs", &Size { callers: &[&[1, 2, 1]], ticks: 4, tiers, ..SMALL });
    explore("refusals, a raise", &Size { callers: &[&[1, 2, 1]], raises: 1, tiers, ..SMALL });
    explore("refusals, a reset", &Size { limit: 1, callers: &[&[1, 1, 1]], resets: 1, tiers, ..SMALL });
}

#[test]
fn model_shared_calls() {
    let tiers = tiers(true, true, None);
    explore(
        "shared calls",
        &Size { losses: 1, leaves: 1, ticks: 2, callers: &[&[1, 1], &[1, 1]], tiers, ..SMALL },
    );
    explore("shared calls, a crowd", &Size { leaves: 1, callers: &[&[1, 1, 1, 1]], tiers, ..SMALL });
}

#[test]
fn model_leases() {
    let tiers = tiers(true, false, Some((2, 2)));
    explore("leases", &Size { limit: 3, callers: &[&[1, 1, 1, 1], &[1]], ticks: 2, tiers, ..SMALL });
    explore("leases, time", &Size { limit: 3, callers: &[&[1, 1, 1, 1]], ticks: 6, tiers, ..SMALL });
    // Time for a unit of the first lease to be left over when the window is free again.
    explore(
        "leases, their end",
        &Size { limit: 3, callers: &[&[1, 1, 1, 1, 1, 1]], ticks: 5, tiers, ..SMALL },
    );
    explore("leases, costs", &Size { limit: 4, callers: &[&[1, 1, 2, 1]], ticks: 4, tiers, ..SMALL });
    explore(
        "leases, losses",
        &Size { limit: 3, callers: &[&[1, 1, 1, 1]], losses: 1, leaves: 1, tiers, ..SMALL },
    );
}

#[test]
fn model_leases_and_a_reset() {
    let tiers = tiers(true, false, Some((2, 2)));
    let size = Size { limit: 3, callers: &[&[1, 1, 1, 1, 1, 1]], ticks: 1, resets: 1, tiers, ..SMALL };
    explore("leases, a reset", &size);
}

#[test]
fn model_leases_and_cached_refusals() {
    let tiers = tiers(true, true, Some((2, 2)));
    explore("both", &Size { limit: 3, callers: &[&[1, 1, 1, 1], &[1]], ticks: 2, tiers, ..SMALL });
    explore(
        "both, a reset",
        &Size { limit: 3, callers: &[&[1, 1, 1, 1, 1]], ticks: 4, resets: 1, tiers, ..SMALL },
    );
    explore("both, losses", &Size { limit: 3, callers: &[&[1, 1, 1, 1, 1]], losses: 1, tiers, ..SMALL });
}

/// A clock slow by one part in a thousand spends no unit after the hold, and repeats no refusal after its end.
#[test]
fn a_slow_clock_is_allowed_for() {
    let hold = Nanos::from(Duration::from_secs(10));
    let tiers = Tiers { shared: true, cache: Some(hold), lease: Some(Lease { hold, most: 5 }) };
    let (start, slow) =
        (Nanos::from_secs(1), |elapsed: Nanos| Nanos::from_nanos(elapsed.as_nanos() / 1_000 * 999));
    let reply = |granted, retry_after, ahead| Reply {
        granted,
        retry_after,
        at: start,
        rule: 0,
        ahead,
        figures: None,
    };
    let landed = |reply| {
        let mut desk = Desk::new(0);
        let Arrival::Leads(order) = desk.arrive(&tiers, (1, 9), false, start, || 0u8) else {
            panic!("it leads")
        };
        assert!(desk.land(&tiers, 9, order, Ok(reply), (start, start), |_, _| true).is_none());
        desk
    };
    let ms = Nanos::from_millis;
    for (known, by) in [(reply(5, Nanos::ZERO, None), By::Lease), (reply(0, hold, Some(hold)), By::Cache)] {
        for (elapsed, served) in [(hold - ms(15), true), (hold, false), (hold + ms(9), false)] {
            let arrival = landed(known).arrive(&tiers, (1, 9), false, start + slow(elapsed), || 1);
            let by_desk = matches!(arrival, Arrival::Served(_, by_desk) if by_desk == by);
            assert_eq!(by_desk, served, "{by:?} after {elapsed:?}: {arrival:?}");
        }
    }
}

/// Who wants figures gets none from a lease without; its units go on beside the next, until the first of both ends.
#[test]
fn units_of_two_leases_end_with_the_first() {
    let hold = Nanos::from_secs(10);
    let tiers = Tiers { shared: true, cache: None, lease: Some(Lease { hold, most: 5 }) };
    let (start, later) = (Nanos::from_secs(1), Nanos::from_secs(8));
    let reply = |granted, figures| {
        Ok(Reply { granted, retry_after: Nanos::ZERO, at: start, rule: 0, ahead: None, figures })
    };
    let mut desk = Desk::new(0);
    let order = |arrival| match arrival {
        Arrival::Leads(order) => order,
        other => panic!("no order: {other:?}"),
    };
    let first = order(desk.arrive(&tiers, (1, 9), false, start, || 0u8));
    assert!(desk.land(&tiers, 9, first, reply(3, None), (start, start), |_, _| true).is_none());
    let second = order(desk.arrive(&tiers, (1, 9), true, later, || 1));
    assert_eq!(second.report, Report::Figures);
    let told = Some((4, Nanos::ZERO, hold));
    assert!(desk.land(&tiers, 9, second, reply(3, told), (later, later), |_, _| true).is_none());
    // Two of each are left.
    let served = desk.arrive(&tiers, (1, 9), true, later, || 2);
    assert!(matches!(served, Arrival::Served(Reply { figures: Some((7, ..)), .. }, By::Lease)), "{served:?}");
    order(desk.clone().arrive(&tiers, (1, 9), true, start + hold, || 3));
    let served = desk.arrive(&tiers, (3, 9), false, later, || 3);
    assert!(matches!(served, Arrival::Served(..)), "{served:?}");
}

/// A lease that is used up has no part in how long the next one lasts.
#[test]
fn a_lease_used_up_leaves_the_next_its_time() {
    let hold = Nanos::from_secs(10);
    let tiers = Tiers { shared: true, cache: None, lease: Some(Lease { hold, most: 5 }) };
    let (start, later) = (Nanos::from_secs(1), Nanos::from_secs(8));
    let reply =
        Reply { granted: 2, retry_after: Nanos::ZERO, at: start, rule: 0, ahead: None, figures: None };
    let mut desk = Desk::new(0);
    for now in [start, later] {
        let Arrival::Leads(order) = desk.arrive(&tiers, (1, 9), false, now, || 0u8) else {
            panic!("nothing is left")
        };
        assert!(desk.land(&tiers, 9, order, Ok(reply), (now, now), |_, _| true).is_none());
        let end = if now == start { now } else { later + hold - Nanos::from_secs(1) };
        let last = desk.arrive(&tiers, (1, 9), false, end, || 1);
        assert!(matches!(last, Arrival::Served(_, By::Lease)), "{last:?}");
    }
}
