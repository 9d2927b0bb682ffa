//! The engine: every request through a limiter of its own key, once per algorithm.
//!
//! # What
//! Requests are gathered into batches, which keeps reading, asking and counting apart: each algorithm in turn
//! takes a whole batch ([`lane`]).
//!
//! # Invariants
//! | id | always                                                   | kept by                         |
//! |----|----------------------------------------------------------|---------------------------------|
//! | I1 | a key's time never goes back                             | `Replay::take`                  |
//! | I2 | every figure but the time taken is the same in every run | no order of a hash map is shown |

mod lane;

use std::{
    collections::HashMap,
    fmt::{self, Write},
};

use self::lane::Lane;
use crate::{
    json::{Outcome, Phases, TopKey},
    lineup::{Name, PHASES, Settings, Unfit},
};

/// Requests between two readings of the clock: enough to hide its cost, few enough to stay in the cache.
const BATCH: usize = 4096;

/// A replay under way.
pub(crate) struct Replay {
    settings: Settings,
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
    pub(crate) fn new(settings: &Settings, ordered: bool) -> Self {
        Self {
            settings: settings.clone(),
            places: HashMap::new(),
            tallies: Vec::new(),
            lanes: Vec::new(),
            batch: Vec::with_capacity(BATCH),
            ordered,
            span: None,
        }
    }

    /// Adds an algorithm. Called before the first request.
    ///
    /// # Errors
    /// [`Unfit`] if it does not take the settings: then the replay is as before.
    pub(crate) fn add(&mut self, name: Name) -> Result<(), Unfit> {
        let phases = 0..if name.has_edges() { PHASES } else { 1 };
        let lanes: Result<Vec<Lane>, Unfit> =
            phases.map(|phase| Lane::new(name, phase, &self.settings)).collect();
        self.lanes.extend(lanes?);
        Ok(())
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
            if self.ordered {
                lane.make_room(now);
            }
            lane.replay(&self.batch)?;
            if place == 0 {
                lane.refused(&self.batch).for_each(|key| self.tallies[key].refused += 1);
            }
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
            .chunk_by(|a, b| a.name() == b.name())
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
                key: readable(key),
                refused: tally.refused,
                requests: tally.requests,
            })
            .collect()
    }
}

/// A key as text. Of one that is not UTF-8 each odd byte becomes `\xHH`, and each backslash two, so that no two such
/// keys look alike.
fn readable(key: &[u8]) -> String {
    if let Ok(text) = str::from_utf8(key) {
        return text.to_owned();
    }
    let mut text = String::new();
    for chunk in key.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
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

    fn replay(names: &[Name], limit: u64, requests: impl IntoIterator<Item = (&'static str, u64)>) -> Replay {
        let rules = vec![Rule::new(limit, Duration::from_secs(1))];
        let mut replay = Replay::new(&Settings { rules, buckets: None, burst: None }, false);
        names.iter().for_each(|&name| replay.add(name).unwrap());
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
    fn keys_that_are_not_utf8_differ_as_text() {
        for (key, text) in [
            (&b"plain \\xFF \xc3\xa9"[..], "plain \\xFF \u{e9}"),
            (b"\xff", r"\xFF"),
            (b"\xfe\x0a", "\\xFE\n"),
            (b"\xffa\\xFE", r"\xFFa\\xFE"),
            (b"\xffa\xfe", r"\xFFa\xFE"),
            (b"\xe2\x82\xe2\x82\xac", "\\xE2\\x82\u{20ac}"),
        ] {
            assert_eq!(readable(key), text, "{key:?}");
        }
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
}
