//! Arrivals judged at once: what each algorithm admits, what senders see of it, and whom it refuses.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    fmt::Write,
};

use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use serde::Serialize;

use super::{Arrival, Chance, Kind, Sender};
use crate::{
    json::{LeftOut, Outcome, Rule},
    load::Load,
    replay::Verdict,
    report::{listed, sparkline},
    text::{RED, count, grouped, heads, percent, plain, rounded, span, table},
    timeline::Timeline,
};

/// What was asked for, as the report tells it.
#[derive(Serialize)]
pub(crate) struct Outline {
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    pub(crate) rule: Rule,
    /// Whether each sender has a limit of its own.
    pub(crate) by_sender: bool,
    /// How long answers take to get back, on average.
    pub(crate) delay_ns: u64,
}

/// What the judged arrivals were, and what became of them.
#[derive(Serialize)]
pub(crate) struct SimulationReport {
    #[serde(flatten)]
    pub(crate) outline: Outline,
    /// Who sent.
    pub(crate) senders: Vec<Senders>,
    pub(crate) results: Vec<Told>,
    /// Algorithms that `all` could not take.
    pub(crate) left_out: Vec<LeftOut>,
}

/// All senders of one kind.
#[derive(Serialize)]
pub(crate) struct Senders {
    pub(crate) kind: &'static str,
    /// Those who sent anything.
    pub(crate) senders: u64,
    pub(crate) requests: u64,
}

/// What one algorithm did.
#[derive(Serialize)]
pub(crate) struct Told {
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// The most answers that told of an admission, of one limiter within any true window, by the times at which they
    /// came back.
    pub(crate) peak_seen: u64,
    /// By kind of sender, as in `senders`.
    pub(crate) refused_of: Vec<u64>,
}

/// Judged arrivals, as they go by.
pub(crate) struct Judged {
    by_sender: bool,
    places: HashMap<Sender, u32>,
    /// Requests and those who sent them.
    senders: BTreeMap<Kind, (u64, u64)>,
    /// Who sent what some entry has not heard of yet.
    unheard: Vec<Kind>,
    entries: Vec<Entry>,
}

/// One algorithm's.
struct Entry {
    /// How much of `unheard` it has heard of.
    heard: usize,
    refused: BTreeMap<Kind, u64>,
    seen: Seen,
}

/// Answers on their way back. None is back before its request was made, so those due by then are in order.
struct Seen {
    delay: f64,
    chance: Chance,
    under_way: BinaryHeap<Reverse<(u64, u32)>>,
    load: Load,
}

/// Writes the report as text, with colours if `colour`.
pub(crate) fn render(report: &SimulationReport, traffic: &Timeline, colour: bool) -> String {
    let outline = &report.outline;
    let arrivals = report.senders.iter().map(|senders| senders.requests).sum();
    let whose = if outline.by_sender { "for each sender" } else { "for all together" };
    let mut text = format!(
        "{} in {} s, seed {}\nLimit: {} per {}, {whose}\n",
        count(arrivals, "arrival"),
        grouped(outline.seconds),
        outline.seed,
        grouped(outline.rule.limit),
        span(outline.rule.window_ns)
    );
    for senders in &report.senders {
        let (of, sent) = (count(senders.senders, senders.kind), count(senders.requests, "request"));
        let _ = writeln!(text, "{of}: {sent}");
    }
    text.push_str(&sparkline(traffic));
    let kinds: Vec<String> =
        report.senders.iter().map(|senders| format!("{}s refused", senders.kind)).collect();
    let mut names = heads(["algorithm", "admitted", "refused", "peak", "over", "peak seen by senders"]);
    names.extend(heads(kinds.iter().map(String::as_str)));
    let rows = report.results.iter().map(|told| {
        let outcome = &told.outcome;
        let mut cells =
            vec![plain(outcome.algorithm), plain(grouped(outcome.admitted)), plain(grouped(outcome.refused))];
        for rule in &outcome.rules {
            cells.extend([plain(grouped(rule.peak)), (grouped(rule.over), (rule.over > 0).then_some(RED))]);
        }
        cells.push(plain(grouped(told.peak_seen)));
        let shares = told.refused_of.iter().zip(&report.senders);
        cells.extend(shares.map(|(&refused, senders)| plain(percent(refused, senders.requests))));
        cells
    });
    let rows: Vec<_> = [names].into_iter().chain(rows).collect();
    let _ = write!(text, "\n{}", table(&rows, colour));
    let _ = write!(
        text,
        "\npeak: admissions within one true window, by the times that the limiter recorded.\n\
         peak seen by senders: the same admissions, by the times at which their answers came back, each after a\n  \
         delay of its own ({} on average): answers given in two windows arrive within one. Both count right;\n  \
         a limiter can keep its promise only by its own times.\n",
        rounded(outline.delay_ns)
    );
    let left = report.left_out.iter().map(|left| format!("left out: {} ({})", left.algorithm, left.why));
    text.push_str(&listed(&left.collect::<Vec<_>>()));
    text
}

// === impl Judged ===

impl Judged {
    /// By so many entries.
    pub(crate) fn new(entries: usize, outline: &Outline) -> Self {
        let entry = || Entry { heard: 0, refused: BTreeMap::new(), seen: Seen::new(outline) };
        Self {
            by_sender: outline.by_sender,
            places: HashMap::new(),
            senders: BTreeMap::new(),
            unheard: Vec::new(),
            entries: (0..entries).map(|_| entry()).collect(),
        }
    }

    /// The next arrival, and the place of the key that it is judged by.
    pub(crate) fn arrive(&mut self, arrival: Arrival) -> usize {
        if self.entries.iter().all(|entry| entry.heard == self.unheard.len()) {
            self.unheard.clear();
            self.entries.iter_mut().for_each(|entry| entry.heard = 0);
        }
        let kind = arrival.sender.kind;
        self.unheard.push(kind);
        let next = self.places.len() as u32;
        let place = *self.places.entry(arrival.sender).or_insert(next);
        let (requests, senders) = self.senders.entry(kind).or_default();
        *requests += 1;
        *senders += u64::from(place == next);
        if self.by_sender { place as usize } else { 0 }
    }

    /// The verdict of one entry on the arrival that comes next for it.
    pub(crate) fn hear(&mut self, verdict: Verdict) {
        let entry = &mut self.entries[verdict.entry];
        let kind = self.unheard[entry.heard];
        entry.heard += 1;
        if verdict.admitted {
            entry.seen.answer(verdict.key as u32, verdict.came, verdict.at);
        } else {
            *entry.refused.entry(kind).or_default() += 1;
        }
    }

    /// What the arrivals were, and what became of them.
    pub(crate) fn report(
        self,
        outline: Outline,
        outcomes: Vec<Outcome>,
        left_out: Vec<LeftOut>,
    ) -> SimulationReport {
        let told = outcomes.into_iter().zip(self.entries).map(|(outcome, entry)| Told {
            outcome,
            peak_seen: entry.seen.peak(),
            refused_of: self
                .senders
                .keys()
                .map(|kind| entry.refused.get(kind).copied().unwrap_or(0))
                .collect(),
        });
        let results = told.collect();
        let senders = self.senders.iter().map(|(kind, &(requests, senders))| Senders {
            kind: kind.as_str(),
            senders,
            requests,
        });
        SimulationReport { outline, senders: senders.collect(), results, left_out }
    }
}

// === impl Seen ===

impl Seen {
    fn new(outline: &Outline) -> Self {
        Self {
            delay: outline.delay_ns as f64,
            // Not the chance that makes the arrivals.
            chance: Chance::seed_from_u64(!outline.seed),
            under_way: BinaryHeap::new(),
            load: Load::new(outline.rule.window_ns),
        }
    }

    /// An admission of `key` that came at `came` and passes at `at`, whose answer is seen later. Requests come in order.
    fn answer(&mut self, key: u32, came: u64, at: u64) {
        while let Some(Reverse((due, key))) = self.under_way.peek().copied()
            && due <= came
        {
            self.under_way.pop();
            self.load.take(key, due);
        }
        let late: f64 = Exp1.sample(&mut self.chance);
        self.under_way.push(Reverse((at.saturating_add((late * self.delay) as u64), key)));
    }

    /// The most seen within one window, once all are back.
    fn peak(mut self) -> u64 {
        while let Some(Reverse((due, key))) = self.under_way.pop() {
            self.load.take(key, due);
        }
        self.load.peak()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(delay_ns: u64) -> Outline {
        Outline { seconds: 1, seed: 1, rule: Rule { limit: 1, window_ns: 100 }, by_sender: true, delay_ns }
    }

    /// Without delay senders see what was recorded; with it, admissions of several windows arrive within one.
    #[test]
    fn late_answers_crowd() {
        for (delay, low, high) in [(0, 1, 1), (1_000, 3, 30)] {
            let mut seen = Seen::new(&outline(delay));
            (0..1_000).for_each(|i| seen.answer(0, i * 100, i * 100));
            let peak = seen.peak();
            assert!((low..=high).contains(&peak), "{delay}: {peak}");
        }
    }

    /// Entries hear of a batch one after the other.
    #[test]
    fn refusals_are_those_of_their_senders() {
        let mut judged = Judged::new(2, &outline(0));
        let arrival = |kind, number| Arrival { at: 0, sender: Sender { kind, number } };
        let batches = [
            vec![arrival(Kind::User, 1), arrival(Kind::Abuser, 1), arrival(Kind::Abuser, 1)],
            vec![arrival(Kind::User, 2), arrival(Kind::Abuser, 2)],
        ];
        for batch in batches {
            let keys: Vec<usize> = batch.into_iter().map(|arrival| judged.arrive(arrival)).collect();
            for entry in 0..2 {
                for &key in &keys {
                    // The first entry refuses abusers, the second one everybody.
                    let admitted = entry == 0 && [0, 2].contains(&key);
                    judged.hear(Verdict { entry, key, came: 0, at: 0, admitted, level: 0 });
                }
            }
        }
        let report = judged.report(outline(0), Vec::new(), Vec::new());
        let senders: Vec<_> = report.senders.iter().map(|s| (s.kind, s.senders, s.requests)).collect();
        assert_eq!(senders, [("user", 2, 2), ("abuser", 2, 3)]);
    }
}
