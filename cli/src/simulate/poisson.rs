//! Arrivals that know nothing of one another, at a rate that may change: a Poisson process, thinned.
//!
//! # What
//! Gaps are exponential at a rate that is never exceeded until some time; what comes too often for the true rate then is
//! dropped by chance. Since such gaps have no memory, a gap that reaches beyond that time starts anew there.

use std::f64::consts::TAU;

use rand::RngExt;
use rand_distr::{Distribution, Exp1};

use super::{Arrival, Chance, Kind, SECOND, Sender};

/// Independent arrivals.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(super) rate: Rate,
    /// Those who are no abusers.
    pub(super) senders: u64,
    /// How many abusers there are besides, and how much more often each of them sends; `None`: nobody asks.
    pub(super) abusers: Option<(u64, u64)>,
}

/// Arrivals a second.
#[derive(Clone, Debug)]
pub(super) enum Rate {
    Steady(f64),
    /// Least at the beginning of each day, which takes so many seconds (`None`: as long as all).
    Day {
        mean: f64,
        swing: f64,
        day: Option<f64>,
    },
    /// Calm for a sixth of the time, then so many times as much (drawn from a range).
    Sale {
        base: f64,
        factor: (u64, u64),
    },
}

/// The process under way; times are seconds since its start.
pub(crate) struct Poisson {
    process: Process,
    start: u64,
    length: f64,
    now: f64,
    /// What was drawn.
    factor: f64,
    /// The share of arrivals that abusers send.
    abuse: f64,
    chance: Chance,
}

// === impl Poisson ===

impl Poisson {
    pub(super) fn new(process: Process, start: u64, end: u64, mut chance: Chance) -> Self {
        let factor = match process.rate {
            Rate::Sale { factor: (low, high), .. } => chance.random_range(low..=high) as f64,
            _ => 1.0,
        };
        let abuse = process.abusers.map_or(0.0, |(abusers, greed)| {
            let weight = abusers as f64 * greed as f64;
            weight / (weight + process.senders as f64)
        });
        let length = (end - start) as f64 / SECOND as f64;
        Self { process, start, length, now: 0.0, factor, abuse, chance }
    }

    /// The rate now, a rate that it does not exceed for a while, and when that ends.
    fn rate(&self) -> (f64, f64, f64) {
        match self.process.rate {
            Rate::Steady(rate) => (rate, rate, self.length),
            Rate::Day { mean, swing, day } => {
                let day = day.unwrap_or(self.length);
                let now = mean * (1.0 - swing * f64::cos(TAU * self.now / day));
                (now, mean * (1.0 + swing), self.length)
            }
            Rate::Sale { base, .. } => {
                let begins = self.length / 6.0;
                if self.now < begins {
                    (base, base, begins)
                } else {
                    let rate = base * self.factor;
                    (rate, rate, self.length)
                }
            }
        }
    }

    fn sender(&mut self) -> Sender {
        let kinds = match self.process.abusers {
            None => (Kind::Sender, self.process.senders),
            Some((abusers, _)) if self.chance.random::<f64>() < self.abuse => (Kind::Abuser, abusers),
            Some(_) => (Kind::User, self.process.senders),
        };
        Sender { kind: kinds.0, number: self.chance.random_range(1..=kinds.1.max(1)) }
    }
}

impl Iterator for Poisson {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        while self.now < self.length {
            let (_, most, until) = self.rate();
            let gap: f64 = Exp1.sample(&mut self.chance);
            let next = self.now + gap / most;
            if next >= until {
                self.now = until;
                continue;
            }
            self.now = next;
            let (rate, _, _) = self.rate();
            if rate >= most || self.chance.random::<f64>() * most < rate {
                let at = self.start + (self.now * SECOND as f64) as u64;
                return Some(Arrival { at, sender: self.sender() });
            }
        }
        None
    }
}
