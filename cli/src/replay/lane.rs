//! One algorithm's part of a replay: its limiters, one per key in use, and the oracle that watches them.
//!
//! # What
//! A batch goes through three steps: find the limiter of each request (its seat), call them all in one loop
//! between two readings of the clock, tell the answers to the oracle. So the time measured is that of the
//! library's calls alone.
//!
//! # Memory
//! A few bytes for each key; a limiter and the oracle's list for each seat. When requests come in the order of
//! time, a key that has been quiet until its limiter has nothing charged would be served by a new one alike:
//! its limiter is reset, and its seat goes to the next new key.
//!
//! # Invariants
//! | id | always                                                    | kept by                   | checked by |
//! |----|-----------------------------------------------------------|---------------------------|------------|
//! | I1 | when a batch runs, each of its keys has a seat of its own | `Lane::seat`              | tests of the tool |
//! | I2 | seats and answers stand in the order of the batch         | `Lane::seat`, `Lane::run` | tests of the tool |
//! | I3 | a limiter that changes hands answers as a new one does    | `Lane::sweep`             | quiet_keys_lose_their_limiters_unseen |

use std::time::Instant;

use hdrhistogram::Histogram;
use tollgate::{Algorithm, Nanos, Pacing};

use super::{Arrival, BATCH, Stopped, Verdict};
use crate::{
    json::{Outcome, Peak, Waits},
    lineup::{Limiter, Name, Settings, Unfit},
    truth::Truth,
};

/// Limiters in use before any is taken from a quiet key.
const SWEEP_MIN: usize = 1 << 14;

/// The seat of a key that has none.
const NOWHERE: u32 = u32::MAX;

/// One algorithm in one phase.
pub(super) struct Lane {
    name: Name,
    phase: u32,
    settings: Settings,
    /// By key, the first of which there is from the start: its seat, which is its place in the limiters and in the
    /// truth, or [`NOWHERE`].
    seats: Vec<u32>,
    /// By seat: the key that has it, or had it last, or (the first seat) will have it.
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
    /// How full the true window was after each request of the batch.
    levels: Vec<u64>,
    /// The waits of what a queue admitted.
    waits: Histogram<u64>,
    longest: u64,
    bytes: u64,
    /// The mean time of a call in each batch, in picoseconds.
    paces: Histogram<u64>,
}

/// The limiters of one lane, by seat.
enum Limiters {
    Gates(Vec<Box<dyn Algorithm>>),
    Queues(Vec<Pacing>),
}

// === impl Lane ===

impl Lane {
    /// An algorithm in one phase, `judged` by the oracle or only counted. The limiter that shows whether it takes the
    /// settings is the first key's.
    ///
    /// # Errors
    /// [`Unfit`] if it does not.
    pub(super) fn new(name: Name, phase: u32, settings: &Settings, judged: bool) -> Result<Self, Unfit> {
        let first = settings.build(name, phase)?;
        let bytes = first.bytes() as u64;
        let limiters = match first {
            Limiter::Gate(gate) => Limiters::Gates(vec![gate]),
            Limiter::Queue(queue) => Limiters::Queues(vec![*queue]),
        };
        Ok(Self {
            name,
            phase,
            settings: settings.clone(),
            seats: vec![NOWHERE],
            owners: vec![0],
            free: vec![0],
            sweep_at: SWEEP_MIN,
            limiters,
            // Without a rule the oracle remembers nothing.
            truth: Truth::new(if judged { &settings.rules } else { &[] }),
            seated: Vec::with_capacity(BATCH),
            answers: Vec::with_capacity(BATCH),
            levels: Vec::with_capacity(BATCH),
            waits: Histogram::new(3).expect("3 digits are few enough"),
            longest: 0,
            bytes,
            paces: Histogram::new(3).expect("3 digits are few enough"),
        })
    }

    /// Lets limiters of quiet keys change hands, once there are many; no request to come is older than `now`.
    pub(super) fn make_room(&mut self, now: u64) {
        if self.in_use() >= self.sweep_at {
            self.sweep(now);
        }
    }

    /// Takes a batch through the three steps.
    ///
    /// # Errors
    /// [`Stopped`] if there is no memory for another limiter.
    pub(super) fn replay(&mut self, batch: &[Arrival]) -> Result<(), Stopped> {
        self.seat(batch)?;
        self.run(batch);
        self.judge(batch);
        Ok(())
    }

    /// What it said to each request of the batch just replayed.
    pub(super) fn verdicts(&self, entry: usize, batch: &[Arrival]) -> impl Iterator<Item = Verdict> {
        batch.iter().zip(&self.answers).zip(&self.levels).map(move |((arrival, answer), &level)| Verdict {
            entry,
            key: arrival.key,
            came: arrival.at,
            at: answer.map_or(arrival.at, |wait| arrival.at.saturating_add(wait.as_nanos())),
            admitted: answer.is_some(),
            level,
        })
    }

    /// Seats in use.
    fn in_use(&self) -> usize {
        self.owners.len() - self.free.len()
    }

    /// Takes the seats of keys that a new limiter would serve no differently from `now` on (I3).
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

    /// Finds the seat of each request, making limiters for keys without one (I1, I2).
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
        let spent = match &self.limiters {
            Limiters::Gates(gates) => {
                let calls: Vec<(&dyn Algorithm, Nanos)> =
                    calls.map(|(&seat, a)| (&*gates[seat], Nanos::from_nanos(a.at))).collect();
                let start = Instant::now();
                answers.extend(
                    calls.iter().map(|(gate, at)| gate.try_acquire_at(1, *at).then_some(Nanos::ZERO)),
                );
                start.elapsed()
            }
            Limiters::Queues(queues) => {
                let calls: Vec<(&Pacing, Nanos)> =
                    calls.map(|(&seat, a)| (&queues[seat], Nanos::from_nanos(a.at))).collect();
                let start = Instant::now();
                answers.extend(calls.iter().map(|(queue, at)| Some(queue.reserve_at(1, *at).ok()?.wait())));
                start.elapsed()
            }
        };
        let pace = spent.as_nanos() * 1_000 / batch.len().max(1) as u128;
        // Never fails: a histogram made by `new` grows to take any value.
        let _ = self.paces.record(u64::try_from(pace).unwrap_or(u64::MAX));
    }

    /// Tells the oracle.
    fn judge(&mut self, batch: &[Arrival]) {
        self.levels.clear();
        for ((&seat, arrival), answer) in self.seated.iter().zip(batch).zip(&self.answers) {
            let Some(wait) = *answer else {
                self.levels.push(self.truth.refuse(seat, arrival.at));
                continue;
            };
            self.levels.push(self.truth.admit(seat, arrival.at, arrival.at.saturating_add(wait.as_nanos())));
            if matches!(self.limiters, Limiters::Queues(_)) {
                self.longest = self.longest.max(wait.as_nanos());
                let _ = self.waits.record(wait.as_nanos());
            }
        }
    }

    /// What the algorithm did, told of this phase alone.
    pub(super) fn outcome(&self) -> Outcome {
        let truth = &self.truth;
        let limits = self.settings.rules.iter().map(|rule| rule.limit);
        let rules = truth
            .peaks()
            .iter()
            .zip(limits)
            .map(|(&peak, limit)| Peak { peak, over: peak.saturating_sub(limit) })
            .collect();
        let queues = matches!(self.limiters, Limiters::Queues(_));
        Outcome {
            algorithm: self.name.as_str(),
            admitted: truth.admitted(),
            refused: truth.refused(),
            rules,
            false_refusals: truth.false_refusals(),
            bytes_per_key: self.bytes,
            // The median, since now and then the system runs something else in the middle of a batch.
            ns_per_check: self.paces.value_at_quantile(0.5) as f64 / 1e3,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::Rule;

    use super::{super::Replay, *};
    use crate::keys::Keys;

    const MS: u64 = 1_000_000;

    /// A limiter may be large, so none is built that no key uses but the one that a lane starts with.
    #[test]
    fn the_first_limiter_is_the_first_keys() {
        let rules = vec![Rule::new(2, Duration::from_millis(50))];
        let settings = Settings { rules, buckets: Some(5), burst: None };
        for name in Name::ALL {
            let mut lane = Lane::new(name, 0, &settings, true).unwrap();
            for (keys, limiters) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
                let batch: Vec<Arrival> = (0..keys).map(|key| Arrival { key, at: MS }).collect();
                lane.replay(&batch).unwrap();
                let made = match &lane.limiters {
                    Limiters::Gates(gates) => gates.len(),
                    Limiters::Queues(queues) => queues.len(),
                };
                assert_eq!((made, lane.in_use()), (limiters, keys), "{name}");
            }
        }
    }

    /// I3: sweeping before every batch changes no figure and keeps the seats to the keys that are not quiet.
    #[test]
    fn quiet_keys_lose_their_limiters_unseen() {
        let rules = vec![Rule::new(2, Duration::from_millis(50))];
        let settings = Settings { rules, buckets: Some(5), burst: None };
        let figures = |sweep: bool| {
            let mut replay = Replay::new(sweep);
            let mut keys = Keys::default();
            Name::ALL.iter().for_each(|&name| replay.add(name, &settings).unwrap());
            replay.add_counted(Name::Window, &settings).unwrap();
            let mut chance = 1_u64;
            for i in 0..5 * BATCH as u64 {
                replay.lanes.iter_mut().for_each(|lane| lane.sweep_at = 0);
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // A few keys at a time, most of which come back after a long while, and the odd pause.
                let key = i / 250 % 40 * 8 + (chance >> 60) % 8;
                let time = i * MS + i / 800 * 400 * MS;
                replay.take(keys.place(&key.to_le_bytes()), time, &mut |_| ()).unwrap();
            }
            replay.flush(&mut |_| ()).unwrap();
            let seats: Vec<usize> = replay.lanes.iter().map(|lane| lane.owners.len()).collect();
            let outcomes = replay.outcomes();
            let timeless = outcomes.into_iter().map(|outcome| Outcome { ns_per_check: 0.0, ..outcome });
            (serde_json::to_string(&timeless.collect::<Vec<_>>()).unwrap(), keys.len(), seats)
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
