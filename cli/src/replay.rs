//! The engine: every request through a limiter of its own key, once per algorithm.
//!
//! # What
//! Requests are gathered into batches. For each algorithm a batch goes through three steps: find the limiter of
//! each request, call them all in one loop between two readings of the clock, tell the answers to the oracle.
//! So the time measured is that of the library's calls alone.
//!
//! # Memory
//! One batch, less than 200 bytes and its name for each key, and for each key in use the limiters and the
//! oracles' lists. When requests come in the order of time, a key that has been quiet until its limiter has
//! nothing charged would be served by a new one alike: its limiter is reset and handed to the next new key.
//!
//! # Invariants
//! | id | always                                                          | kept by          |
//! |----|-----------------------------------------------------------------|------------------|
//! | I1 | a key's time never goes back                                    | `Replay::take`   |
//! | I2 | when a batch runs, each of its keys has a seat of its own       | `Lane::seat`     |
//! | I3 | seats and answers stand in the order of the batch               | `Lane::seat`, `Lane::run` |
//! | I4 | a limiter that changes hands answers as a new one does          | `Lane::sweep`    |

use std::{
    collections::HashMap,
    fmt,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tollgate::{Algorithm, Nanos, Pacing};

use crate::{
    json::{Outcome, Peak, Phases, TopKey, Waits},
    lineup::{Limiter, Name, PHASES, Settings, Unfit},
    truth::Truth,
};

/// Requests between two readings of the clock: enough to hide its cost, few enough to stay in the cache.
const BATCH: usize = 4096;

/// Limiters in use before any is taken from a quiet key.
const SWEEP_MIN: usize = 1 << 14;

/// The seat of a key that has none.
const NOWHERE: u32 = u32::MAX;

/// A replay under way.
pub(crate) struct Replay {
    /// The place of each key in every list by key.
    places: HashMap<Box<[u8]>, usize>,
    /// By key.
    tallies: Vec<Tally>,
    /// The algorithms in the order asked for, each followed by its shifted copies.
    lanes: Vec<Lane>,
    batch: Vec<Arrival>,
    /// Whether no request is older than one before it.
    ordered: bool,
    /// The earliest and the latest time used.
    span: Option<(u64, u64)>,
}

/// A request, its key replaced by the key's place.
#[derive(Clone, Copy)]
struct Arrival {
    key: usize,
    at: u64,
}

/// What is known of a key.
#[derive(Clone, Copy, Default)]
struct Tally {
    newest: u64,
    requests: u64,
    /// By the first lane.
    refused: u64,
}

/// One algorithm in one phase.
struct Lane {
    name: Name,
    phase: u32,
    settings: Settings,
    /// By key: its seat, which is its place in the limiters and in the truth, or [`NOWHERE`].
    seats: Vec<u32>,
    /// By seat: the key that has it, or had it last.
    owners: Vec<usize>,
    /// Seats that nobody has.
    free: Vec<u32>,
    /// Seats in use at which quiet keys lose theirs.
    sweep_at: usize,
    limiters: Limiters,
    truth: Truth,
    /// The seat of each request of the batch.
    seated: Vec<usize>,
    /// The wait of each request of the batch; `None`: refused.
    answers: Vec<Option<Nanos>>,
    /// The waits of what a queue admitted.
    waits: Histogram<u64>,
    longest: u64,
    bytes: u64,
    spent: Duration,
}

/// The limiters of one lane, by seat.
enum Limiters {
    Gates(Vec<Box<dyn Algorithm>>),
    Queues(Vec<Pacing>),
}

/// Why a replay stopped: a limiter could not be had.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) name: Name,
    pub(crate) why: Unfit,
    /// Limiters that there are.
    pub(crate) made: usize,
}

// === impl Replay ===

impl Replay {
    /// A replay through `names`, of requests `ordered` by time or not.
    ///
    /// # Errors
    /// [`Stopped`] if one of them does not take the settings.
    pub(crate) fn new(names: &[Name], settings: &Settings, ordered: bool) -> Result<Self, Stopped> {
        let mut lanes = Vec::new();
        for &name in names {
            for phase in 0..if name.has_edges() { PHASES } else { 1 } {
                lanes.push(Lane::new(name, phase, settings)?);
            }
        }
        Ok(Self {
            places: HashMap::new(),
            tallies: Vec::new(),
            lanes,
            batch: Vec::with_capacity(BATCH),
            ordered,
            span: None,
        })
    }

    /// Takes the next request. A time older than its key's newest becomes that (I1).
    ///
    /// # Errors
    /// [`Stopped`] if there is no memory for another limiter.
    pub(crate) fn take(&mut self, key: &[u8], time: u64) -> Result<(), Stopped> {
        let place = match self.places.get(key) {
            Some(&place) => place,
            None => {
                let place = self.tallies.len();
                self.places.insert(key.into(), place);
                self.tallies.push(Tally::default());
                place
            }
        };
        let tally = &mut self.tallies[place];
        tally.newest = tally.newest.max(time);
        tally.requests += 1;
        let at = tally.newest;
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
        self.batch.push(Arrival { key: place, at });
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// Sends the batch through every lane.
    ///
    /// # Errors
    /// [`Stopped`] if there is no memory for another limiter.
    pub(crate) fn flush(&mut self) -> Result<(), Stopped> {
        let Some(&Arrival { at: now, .. }) = self.batch.first() else { return Ok(()) };
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            if self.ordered && lane.in_use() >= lane.sweep_at {
                lane.sweep(now);
            }
            lane.seat(&self.batch)?;
            lane.run(&self.batch);
            if place == 0 {
                let refused = self.batch.iter().zip(&lane.answers).filter(|(_, answer)| answer.is_none());
                refused.for_each(|(arrival, _)| self.tallies[arrival.key].refused += 1);
            }
            lane.judge(&self.batch);
        }
        self.batch.clear();
        Ok(())
    }

    /// How many different keys there were.
    pub(crate) fn keys(&self) -> u64 {
        self.tallies.len() as u64
    }

    /// The earliest and the latest time used.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// What each algorithm did, in the order asked for. Everything must have been flushed.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.lanes
            .chunk_by(|a, b| a.name == b.name)
            .map(|lanes| {
                let phases = (lanes.len() > 1).then(|| phases(lanes));
                Outcome { phases, ..lanes[0].outcome() }
            })
            .collect()
    }

    /// The `most` keys that the first algorithm refused most; of equals, the lesser key first.
    pub(crate) fn top_refused(&self, most: usize) -> Vec<TopKey> {
        let refused = self.places.iter().map(|(key, &place)| (key, self.tallies[place]));
        let mut keys: Vec<_> = refused.filter(|(_, tally)| tally.refused > 0).collect();
        keys.sort_by(|(a, x), (b, y)| y.refused.cmp(&x.refused).then_with(|| a.cmp(b)));
        keys.truncate(most);
        keys.into_iter()
            .map(|(key, tally)| TopKey {
                key: String::from_utf8_lossy(key).into_owned(),
                refused: tally.refused,
                requests: tally.requests,
            })
            .collect()
    }
}

// === impl Lane ===

impl Lane {
    fn new(name: Name, phase: u32, settings: &Settings) -> Result<Self, Stopped> {
        let first = settings.build(name, phase).map_err(|why| Stopped { name, why, made: 0 })?;
        let bytes = first.bytes() as u64;
        let limiters = match first {
            Limiter::Gate(_) => Limiters::Gates(Vec::new()),
            Limiter::Queue(_) => Limiters::Queues(Vec::new()),
        };
        Ok(Self {
            name,
            phase,
            settings: settings.clone(),
            seats: Vec::new(),
            owners: Vec::new(),
            free: Vec::new(),
            sweep_at: SWEEP_MIN,
            limiters,
            truth: Truth::new(&settings.rules),
            seated: Vec::with_capacity(BATCH),
            answers: Vec::with_capacity(BATCH),
            waits: Histogram::new(3).expect("3 digits are few enough"),
            longest: 0,
            bytes,
            spent: Duration::ZERO,
        })
    }

    /// Seats in use.
    fn in_use(&self) -> usize {
        self.owners.len() - self.free.len()
    }

    /// Takes the seats of keys that a new limiter would serve no differently from `now` on (I4).
    fn sweep(&mut self, now: u64) {
        // Which of the next requests a sampling log records depends on how many it has ever seen.
        if self.name == Name::Sampled {
            return;
        }
        for (seat, &owner) in self.owners.iter().enumerate() {
            let taken = self.seats[owner] == seat as u32;
            if taken && self.truth.is_quiet(seat, now) && self.limiters.rest(seat, Nanos::from_nanos(now)) {
                self.seats[owner] = NOWHERE;
                self.free.push(seat as u32);
            }
        }
        self.sweep_at = SWEEP_MIN.max(2 * self.in_use());
    }

    /// Finds the seat of each request, making limiters for keys without one (I2, I3).
    fn seat(&mut self, batch: &[Arrival]) -> Result<(), Stopped> {
        self.seated.clear();
        for arrival in batch {
            if self.seats.len() <= arrival.key {
                self.seats.resize(arrival.key + 1, NOWHERE);
            }
            if self.seats[arrival.key] == NOWHERE {
                self.seats[arrival.key] = self.new_seat(arrival.key)?;
            }
            self.seated.push(self.seats[arrival.key] as usize);
        }
        Ok(())
    }

    /// A seat for `key`: one that nobody has, else one with a new limiter.
    fn new_seat(&mut self, key: usize) -> Result<u32, Stopped> {
        if let Some(seat) = self.free.pop() {
            self.owners[seat as usize] = key;
            return Ok(seat);
        }
        let made = self.owners.len();
        let stopped = |why| Stopped { name: self.name, why, made };
        let limiter = self.settings.build(self.name, self.phase).map_err(stopped)?;
        self.limiters.push(limiter);
        self.owners.push(key);
        Ok(made as u32)
    }

    /// Asks the limiters, and measures them alone.
    fn run(&mut self, batch: &[Arrival]) {
        let calls = self.seated.iter().zip(batch);
        let answers = &mut self.answers;
        answers.clear();
        match &self.limiters {
            Limiters::Gates(gates) => {
                let calls: Vec<(&dyn Algorithm, Nanos)> =
                    calls.map(|(&seat, a)| (&*gates[seat], Nanos::from_nanos(a.at))).collect();
                let start = Instant::now();
                answers.extend(
                    calls.iter().map(|(gate, at)| gate.try_acquire_at(1, *at).then_some(Nanos::ZERO)),
                );
                self.spent += start.elapsed();
            }
            Limiters::Queues(queues) => {
                let calls: Vec<(&Pacing, Nanos)> =
                    calls.map(|(&seat, a)| (&queues[seat], Nanos::from_nanos(a.at))).collect();
                let start = Instant::now();
                answers.extend(calls.iter().map(|(queue, at)| Some(queue.reserve_at(1, *at).ok()?.wait())));
                self.spent += start.elapsed();
            }
        }
    }

    /// Tells the oracle.
    fn judge(&mut self, batch: &[Arrival]) {
        for ((&seat, arrival), answer) in self.seated.iter().zip(batch).zip(&self.answers) {
            let Some(wait) = *answer else {
                self.truth.refuse(seat, arrival.at);
                continue;
            };
            self.truth.admit(seat, arrival.at, arrival.at.saturating_add(wait.as_nanos()));
            if matches!(self.limiters, Limiters::Queues(_)) {
                self.longest = self.longest.max(wait.as_nanos());
                // Never fails: a histogram made by `new` grows to take any value.
                let _ = self.waits.record(wait.as_nanos());
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let truth = &self.truth;
        let limits = self.settings.rules.iter().map(|rule| rule.limit);
        let rules = truth
            .peaks()
            .iter()
            .zip(limits)
            .map(|(&peak, limit)| Peak { peak, over: peak.saturating_sub(limit) })
            .collect();
        let calls = truth.admitted() + truth.refused();
        let queues = matches!(self.limiters, Limiters::Queues(_));
        Outcome {
            algorithm: self.name.as_str(),
            admitted: truth.admitted(),
            refused: truth.refused(),
            rules,
            false_refusals: truth.false_refusals(),
            bytes_per_key: self.bytes,
            ns_per_check: self.spent.as_nanos() as f64 / calls.max(1) as f64,
            waits: queues.then(|| Waits {
                p50_ns: self.waits.value_at_quantile(0.50).min(self.longest),
                p99_ns: self.waits.value_at_quantile(0.99).min(self.longest),
                max_ns: self.longest,
            }),
            drops: queues.then_some(truth.refused()),
            phases: None,
        }
    }
}

/// The ranges over the lanes of one algorithm.
fn phases(lanes: &[Lane]) -> Phases {
    let outcomes: Vec<Outcome> = lanes.iter().map(Lane::outcome).collect();
    let range = |figure: &dyn Fn(&Outcome) -> u64| {
        let least = outcomes.iter().map(figure).min().unwrap_or(0);
        [least, outcomes.iter().map(figure).max().unwrap_or(0)]
    };
    Phases {
        tried: lanes.len() as u64,
        admitted: range(&|outcome| outcome.admitted),
        refused: range(&|outcome| outcome.refused),
        over: (0..outcomes[0].rules.len()).map(|rule| range(&|outcome| outcome.rules[rule].over)).collect(),
        false_refusals: range(&|outcome| outcome.false_refusals),
    }
}

// === impl Limiters ===

impl Limiters {
    /// Adds a limiter, of the kind that its lane always builds.
    fn push(&mut self, limiter: Limiter) {
        match (self, limiter) {
            (Self::Gates(gates), Limiter::Gate(gate)) => gates.push(gate),
            (Self::Queues(queues), Limiter::Queue(queue)) => queues.push(*queue),
            _ => unreachable!("a name always builds the same kind"),
        }
    }

    /// Makes the limiter of `seat` new if nothing is charged to it at `now`.
    fn rest(&mut self, seat: usize, now: Nanos) -> bool {
        let limiter: &mut dyn Algorithm = match self {
            Self::Gates(gates) => &mut *gates[seat],
            Self::Queues(queues) => &mut queues[seat],
        };
        let quota = limiter.peek_at(1, now).unwrap_or_else(|denied| denied.quota);
        let idle = quota.reset_after == Nanos::ZERO;
        if idle {
            limiter.reset();
        }
        idle
    }
}

// === impl Stopped ===

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)?;
        if self.made > 0 { write!(f, " (after {} limiters)", self.made) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use tollgate::Rule;

    use super::*;

    const MS: u64 = 1_000_000;

    fn replay(names: &[Name], limit: u64, requests: impl IntoIterator<Item = (&'static str, u64)>) -> Replay {
        let rules = vec![Rule::new(limit, Duration::from_secs(1))];
        let mut replay = Replay::new(names, &Settings { rules, buckets: 10, burst: None }, false).unwrap();
        for (key, time) in requests {
            replay.take(key.as_bytes(), time).unwrap();
        }
        replay.flush().unwrap();
        replay
    }

    /// I1: the older line of `a` counts at 2 s, that of `b` at its own time.
    #[test]
    fn a_keys_time_never_goes_back() {
        let replay = replay(&[Name::Log], 1, [("a", 2_000 * MS), ("a", 500 * MS), ("b", 700 * MS)]);
        let outcome = &replay.outcomes()[0];
        assert_eq!((outcome.admitted, outcome.refused), (2, 1));
        assert_eq!(replay.span(), Some((700 * MS, 2_000 * MS)));
        assert_eq!(replay.keys(), 2);
    }

    #[test]
    fn batches_do_not_show() {
        for n in [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 3] {
            let requests = (0..n).map(|i| (["a", "b", "c"][i % 3], i as u64 * MS));
            let replay = replay(&[Name::Log, Name::Fixed], n as u64, requests);
            assert!(replay.outcomes().iter().all(|outcome| outcome.admitted == n as u64), "{n}");
        }
    }

    /// Ten on either side of an edge: the fixed window lets all pass unless its edges lie elsewhere.
    #[test]
    fn the_range_over_the_phases_shows_what_the_edges_do() {
        let burst = |at: u64| (0..10).map(move |_| ("a", at * MS));
        let replay = replay(&[Name::Fixed, Name::Log], 10, burst(900).chain(burst(1_100)));
        let [fixed, log] = replay.outcomes().try_into().ok().unwrap();
        assert_eq!((fixed.admitted, fixed.rules[0].peak, fixed.rules[0].over), (20, 20, 10));
        let phases = fixed.phases.unwrap();
        assert_eq!((phases.tried, phases.admitted, phases.refused), (4, [10, 20], [0, 10]));
        assert_eq!((phases.over, phases.false_refusals), (vec![[0, 10]], [0, 0]));
        assert!((log.admitted, log.refused) == (10, 10) && log.phases.is_none());
    }

    #[test]
    fn the_keys_refused_most_come_first() {
        let requests = [("b", 0), ("b", 0), ("c", 0), ("c", 0), ("a", 0), ("d", 0), ("d", 0), ("d", 0)];
        let replay = replay(&[Name::Log], 1, requests);
        let top = |most| replay.top_refused(most).into_iter().map(|top| top.key).collect::<Vec<_>>();
        assert_eq!(top(10), ["d", "b", "c"]);
        assert_eq!(top(2), ["d", "b"]);
        assert_eq!(top(0), [""; 0]);
    }

    /// I4: sweeping before every batch changes no figure and keeps the seats to the keys that are not quiet.
    #[test]
    fn quiet_keys_lose_their_limiters_unseen() {
        let rules = vec![Rule::new(2, Duration::from_millis(50))];
        let settings = Settings { rules, buckets: 5, burst: None };
        let figures = |sweep: bool| {
            let mut replay = Replay::new(&Name::ALL, &settings, sweep).unwrap();
            let mut chance = 1_u64;
            for i in 0..5 * BATCH as u64 {
                replay.lanes.iter_mut().for_each(|lane| lane.sweep_at = 0);
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // A few keys at a time, most of which come back after a long while, and the odd pause.
                let key = i / 250 % 40 * 8 + (chance >> 60) % 8;
                let time = i * MS + i / 800 * 400 * MS;
                replay.take(&key.to_le_bytes(), time).unwrap();
            }
            replay.flush().unwrap();
            let seats: Vec<usize> = replay.lanes.iter().map(|lane| lane.owners.len()).collect();
            let outcomes = replay.outcomes();
            let timeless = outcomes.into_iter().map(|outcome| Outcome { ns_per_check: 0.0, ..outcome });
            (serde_json::to_string(&timeless.collect::<Vec<_>>()).unwrap(), replay.keys(), seats)
        };
        let (kept, keys, _) = figures(false);
        let (swept, _, seats) = figures(true);
        assert_eq!(kept, swept);
        assert_eq!(keys, 320);
        let sampled = seats.iter().filter(|&&seats| seats == 320).count();
        let fewer = seats.iter().filter(|&&seats| seats < 160).count();
        assert_eq!((sampled, fewer), (1, seats.len() - 1), "{seats:?}");
    }
}
