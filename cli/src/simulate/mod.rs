//! Arrivals out of nothing, for people without a log: seeded, in the order of time, one at a time.

mod poisson;
mod spec;
mod trial;
mod volley;

use std::fmt;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use self::{poisson::Poisson, volley::Volleys};
pub(crate) use self::{
    spec::Arrivals,
    trial::{Judged, Outline, render},
};

const SECOND: u64 = 1_000_000_000;

/// The source of chance: small, fast, the same on every machine.
type Chance = Xoshiro256PlusPlus;

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// In nanoseconds since 1970.
    pub(crate) at: u64,
    pub(crate) sender: Sender,
}

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Sender {
    pub(crate) kind: Kind,
    /// Counted from 1 within its kind.
    pub(crate) number: u64,
}

/// What kind of sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Kind {
    Sender,
    User,
    Abuser,
}

/// Arrivals under way.
pub(crate) enum Stream {
    Poisson(Poisson),
    Volleys(Volleys),
}

// === impl Arrivals ===

impl Arrivals {
    /// The arrivals from `start` on for so many seconds, by a seed.
    pub(crate) fn stream(&self, start: u64, seconds: u64, seed: u64) -> Stream {
        let chance = Chance::seed_from_u64(seed);
        let end = start.saturating_add(seconds.saturating_mul(SECOND));
        match self {
            Self::Poisson(process) => Stream::Poisson(Poisson::new(process.clone(), start, end, chance)),
            Self::Volley(volley) => Stream::Volleys(Volleys::new(volley.clone(), start, end, chance)),
        }
    }
}

// === impl Stream ===

impl Iterator for Stream {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match self {
            Self::Poisson(poisson) => poisson.next(),
            Self::Volleys(volleys) => volleys.next(),
        }
    }
}

// === impl Arrival ===

impl fmt::Display for Arrival {
    /// A line that `replay -` and `plan -` read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} {}", self.at / SECOND, self.at % SECOND, self.sender)
    }
}

// === impl Sender ===

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind.as_str(), self.number)
    }
}

// === impl Kind ===

impl Kind {
    /// In lines.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::User => "user",
            Self::Abuser => "abuser",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_767_225_600 * SECOND;

    fn arrivals(spec: &str, seconds: u64, seed: u64) -> Vec<Arrival> {
        spec.parse::<Arrivals>().unwrap().stream(START, seconds, seed).collect()
    }

    const ALL: [&str; 5] = [
        "poisson:500/s",
        "burst:40/2s",
        "diurnal:500/s",
        "edge-attack:500/1s",
        "flash-sale:base=100/s,factor=100..1000,users=1000",
    ];

    #[test]
    fn a_seed_always_gives_the_same_and_another_seed_does_not() {
        for spec in ALL {
            let first = arrivals(spec, 6, 1);
            assert!(first.len() > 100, "{spec}");
            assert_eq!(first, arrivals(spec, 6, 1), "{spec}");
            assert_ne!(first, arrivals(spec, 6, 2), "{spec}");
        }
    }

    #[test]
    fn arrivals_are_in_order_and_within_their_time() {
        for spec in ALL {
            let all = arrivals(spec, 6, 7);
            assert!(all.is_sorted_by_key(|arrival| arrival.at), "{spec}");
            let within = |arrival: &Arrival| (START..START + 6 * SECOND).contains(&arrival.at);
            assert!(all.iter().all(within), "{spec}");
        }
    }

    #[test]
    fn a_line_is_a_time_and_a_sender() {
        let sender = Sender { kind: Kind::Abuser, number: 7 };
        assert_eq!(Arrival { at: START + 5, sender }.to_string(), "1767225600.000000005 abuser-7");
    }

    /// Within five standard deviations of what is asked for.
    #[test]
    fn rates_are_those_asked_for() {
        for (spec, seconds, wanted) in [
            ("poisson:500/s", 60, 30_000.0),
            ("poisson:50/100ms", 60, 30_000.0),
            ("diurnal:500/s", 60, 30_000.0),
        ] {
            let count = arrivals(spec, seconds, 3).len() as f64;
            assert!((count - wanted).abs() < 5.0 * f64::sqrt(wanted), "{spec}: {count}");
        }
        assert_eq!(arrivals("burst:40/2s", 6, 3).len(), 120);
        // Edges at whole seconds, every other one: 1, 3, 5.
        assert_eq!(arrivals("edge-attack:500/1s", 6, 3).len(), 3_000);
    }

    #[test]
    fn a_day_is_quiet_at_first_and_busy_at_noon() {
        let all = arrivals("diurnal:1000/s,swing=90%,day=8s", 8, 3);
        let between = |from: u64, to: u64| {
            let range = START + from * SECOND..START + to * SECOND;
            all.iter().filter(|arrival| range.contains(&arrival.at)).count()
        };
        let (night, noon) = (between(0, 1) + between(7, 8), between(3, 5));
        assert!(night * 5 < noon, "{night}, {noon}");
    }

    #[test]
    fn a_sale_is_calm_before_it_begins_and_abusers_are_greedy() {
        let all = arrivals("flash-sale:base=100/s,factor=200,users=1000,abusers=1%,greed=99", 12, 3);
        let (calm, sale): (Vec<&Arrival>, Vec<&Arrival>) =
            all.iter().partition(|arrival| arrival.at < START + 2 * SECOND);
        assert!((100..300).contains(&calm.len()), "{}", calm.len());
        assert!((198_000..202_000).contains(&sale.len()), "{}", sale.len());
        let counted = arrivals("flash-sale:base=100/s,factor=200,users=1000,abusers=10,greed=99", 12, 3);
        assert_eq!(counted, all);
        // Ten abusers send as much as the 990 others.
        let abusers = sale.iter().filter(|arrival| arrival.sender.kind == Kind::Abuser);
        assert!(abusers.clone().all(|arrival| (1..=10).contains(&arrival.sender.number)));
        let share = abusers.count() as f64 / sale.len() as f64;
        assert!((0.49..0.51).contains(&share), "{share}");
    }
}
