//! The engine: every request through a limiter of its own key, once per algorithm.
//!
//! # What
//! Requests are gathered into batches, which keeps reading, asking and counting apart: each algorithm in turn
//! takes a whole batch ([`lane`]). Whoever wants to know more than the figures looks at every [`Verdict`].
//!
//! # Invariants
//! | id | always                                                   | kept by                         |
//! |----|----------------------------------------------------------|---------------------------------|
//! | I1 | a key's time never goes back                             | `Replay::take`                  |
//! | I2 | every figure but the time taken is the same in every run | no order of a hash map is shown |

mod lane;

use std::fmt;

use self::lane::Lane;
use crate::{
    json::{Outcome, Phases},
    lineup::{Name, PHASES, Settings, Unfit},
};

/// Requests between two readings of the clock: enough to hide its cost, few enough to stay in the cache.
const BATCH: usize = 4096;

/// A replay under way.
pub(crate) struct Replay {
    /// By key.
    tallies: Vec<Tally>,
    /// The entries in the order in which they were added, each followed by its shifted copies.
    lanes: Vec<Lane>,
    /// How many lanes each entry has.
    entries: Vec<usize>,
    batch: Vec<Arrival>,
    /// Whether no request is older than one before it.
    ordered: bool,
    /// The earliest and the latest time used.
    span: Option<(u64, u64)>,
}

/// What one entry, its bucket edges unshifted, said to one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    /// The entry, as they were added.
    pub(crate) entry: usize,
    pub(crate) key: usize,
    /// When it came.
    pub(crate) came: u64,
    /// When it passes: at once, or later out of a queue; when it came, if it was refused.
    pub(crate) at: u64,
    pub(crate) admitted: bool,
    /// Admissions of the key in the true window of the first rule that ends then; 0 if nobody counts them.
    pub(crate) level: u64,
}

/// Hears every verdict, batch by batch and there entry by entry.
pub(crate) type Hearer<'a> = &'a mut dyn FnMut(Verdict);

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

/// Why a replay stopped: a further limiter could not be had.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) name: Name,
    pub(crate) why: Unfit,
    /// Limiters that there are.
    pub(crate) made: usize,
}

// === impl Replay ===

impl Replay {
    /// A replay through nothing yet, of requests `ordered` by time or not.
    pub(crate) fn new(ordered: bool) -> Self {
        Self {
            tallies: Vec::new(),
            lanes: Vec::new(),
            entries: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            ordered,
            span: None,
        }
    }

    /// Adds an algorithm, whose answers an oracle watches. Called before the first request.
    ///
    /// # Errors
    /// [`Unfit`] if it does not take the settings: then the replay is as before.
    pub(crate) fn add(&mut self, name: Name, settings: &Settings) -> Result<(), Unfit> {
        self.enter(name, settings, true)
    }

    /// Adds an algorithm whose answers are only counted: its outcome has no peaks, and no refusal of it is known to
    /// be true.
    ///
    /// # Errors
    /// As [`Replay::add`].
    pub(crate) fn add_counted(&mut self, name: Name, settings: &Settings) -> Result<(), Unfit> {
        self.enter(name, settings, false)
    }

    fn enter(&mut self, name: Name, settings: &Settings, judged: bool) -> Result<(), Unfit> {
        let phases = 0..if name.has_edges() { PHASES } else { 1 };
        let lanes: Result<Vec<Lane>, Unfit> =
            phases.map(|phase| Lane::new(name, phase, settings, judged)).collect();
        let lanes = lanes?;
        self.entries.push(lanes.len());
        self.lanes.extend(lanes);
        Ok(())
    }

    /// Takes the next request of the key at this place. A time older than the key's newest becomes that (I1).
    ///
    /// # Errors
    /// [`Stopped`] if there is no memory for another limiter.
    pub(crate) fn take(&mut self, place: usize, time: u64, hear: Hearer<'_>) -> Result<(), Stopped> {
        if self.tallies.len() <= place {
            self.tallies.resize(place + 1, Tally::default());
        }
        let tally = &mut self.tallies[place];
        tally.newest = tally.newest.max(time);
        tally.requests += 1;
        let at = tally.newest;
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
        self.batch.push(Arrival { key: place, at });
        if self.batch.len() == BATCH { self.flush(hear) } else { Ok(()) }
    }

    /// Sends the batch through every lane.
    ///
    /// # Errors
    /// [`Stopped`] if there is no memory for another limiter.
    pub(crate) fn flush(&mut self, hear: Hearer<'_>) -> Result<(), Stopped> {
        let Some(&Arrival { at: now, .. }) = self.batch.first() else { return Ok(()) };
        let mut lanes = self.lanes.as_mut_slice();
        for (entry, &count) in self.entries.iter().enumerate() {
            let (copies, rest) = lanes.split_at_mut(count);
            for lane in copies.iter_mut() {
                if self.ordered {
                    lane.make_room(now);
                }
                lane.replay(&self.batch)?;
            }
            for verdict in copies[0].verdicts(entry, &self.batch) {
                if entry == 0 && !verdict.admitted {
                    self.tallies[verdict.key].refused += 1;
                }
                hear(verdict);
            }
            lanes = rest;
        }
        self.batch.clear();
        Ok(())
    }

    /// The earliest and the latest time used.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// What each entry did, in the order in which they were added. Everything must have been flushed.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let mut lanes = self.lanes.as_slice();
        let mut outcomes = Vec::new();
        for &count in &self.entries {
            let (copies, rest) = lanes.split_at(count);
            let phases = (count > 1).then(|| phases(copies));
            outcomes.push(Outcome { phases, ..copies[0].outcome() });
            lanes = rest;
        }
        outcomes
    }

    /// How often the first entry refused the key at this place, and how often the key asked.
    pub(crate) fn counts(&self, place: usize) -> (u64, u64) {
        self.tallies.get(place).map_or((0, 0), |tally| (tally.refused, tally.requests))
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

// === impl Stopped ===

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (after {} limiters)", self.name, self.why, self.made)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::Rule;

    use super::*;

    const MS: u64 = 1_000_000;

    fn replay(names: &[Name], limit: u64, requests: impl IntoIterator<Item = (usize, u64)>) -> Replay {
        let rules = vec![Rule::new(limit, Duration::from_secs(1))];
        let settings = Settings { rules, buckets: None, burst: None };
        let mut replay = Replay::new(false);
        names.iter().for_each(|&name| replay.add(name, &settings).unwrap());
        for (key, time) in requests {
            replay.take(key, time, &mut |_| ()).unwrap();
        }
        replay.flush(&mut |_| ()).unwrap();
        replay
    }

    /// I1: the older line of the first key counts at 2 s, that of the second at its own time.
    #[test]
    fn a_keys_time_never_goes_back() {
        let replay = replay(&[Name::Log], 1, [(0, 2_000 * MS), (0, 500 * MS), (1, 700 * MS)]);
        let outcome = &replay.outcomes()[0];
        assert_eq!((outcome.admitted, outcome.refused), (2, 1));
        assert_eq!(replay.span(), Some((700 * MS, 2_000 * MS)));
        assert_eq!([0, 1, 2].map(|key| replay.counts(key)), [(1, 2), (0, 1), (0, 0)]);
    }

    #[test]
    fn batches_do_not_show() {
        for n in [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 3] {
            let requests = (0..n).map(|i| (i % 3, i as u64 * MS));
            let replay = replay(&[Name::Log, Name::Fixed], n as u64, requests);
            assert!(replay.outcomes().iter().all(|outcome| outcome.admitted == n as u64), "{n}");
        }
    }

    /// Ten on either side of an edge: the fixed window lets all pass unless its edges lie elsewhere.
    #[test]
    fn the_range_over_the_phases_shows_what_the_edges_do() {
        let burst = |at: u64| (0..10).map(move |_| (0, at * MS));
        let replay = replay(&[Name::Fixed, Name::Log], 10, burst(900).chain(burst(1_100)));
        let [fixed, log] = replay.outcomes().try_into().ok().unwrap();
        assert_eq!((fixed.admitted, fixed.rules[0].peak, fixed.rules[0].over), (20, 20, 10));
        let phases = fixed.phases.unwrap();
        assert_eq!((phases.tried, phases.admitted, phases.refused), (4, [10, 20], [0, 10]));
        assert_eq!((phases.over, phases.false_refusals), (vec![[0, 10]], [0, 0]));
        assert!((log.admitted, log.refused) == (10, 10) && log.phases.is_none());
    }

    #[test]
    fn verdicts_tell_when_what_passed_and_how_full_the_window_was() {
        let rules = vec![Rule::new(2, Duration::from_secs(1))];
        let settings = Settings { rules, buckets: None, burst: None };
        let mut replay = Replay::new(true);
        replay.add(Name::Log, &settings).unwrap();
        replay.add_counted(Name::Fixed, &settings).unwrap();
        replay.add(Name::Paced, &settings).unwrap();
        let mut heard = Vec::new();
        for time in [0, 0, 0, 1_000_u64] {
            replay.take(7, time * MS, &mut |_| ()).unwrap();
        }
        replay.flush(&mut |verdict| heard.push(verdict)).unwrap();
        let came = [0, 0, 0, 1_000];
        let of = |entry: usize, at: [u64; 4], admitted: [bool; 4], level: [u64; 4]| {
            (0..4).map(move |i| Verdict {
                entry,
                key: 7,
                came: came[i] * MS,
                at: at[i] * MS,
                admitted: admitted[i],
                level: level[i],
            })
        };
        let two_of_three = [true, true, false, true];
        let wanted = of(0, came, two_of_three, [1, 2, 2, 1])
            .chain(of(1, came, two_of_three, [0; 4]))
            .chain(of(2, [0, 500, 1_000, 1_500], [true; 4], [1, 2, 2, 2]));
        assert_eq!(heard, wanted.collect::<Vec<_>>());
    }
}
