//! Many limiters by key, with room for a few.

use std::collections::BTreeMap;

use tollgate_check::{Call, Oracle, Question, Verdict};

/// Each key `limit` in any `window`, as if none ever left; for a new one room, if fewer keys than `places` are in use. What
/// only the hand knows (whether an idle key has left, and since when) is left open, as far as a call with an older time could
/// tell.
pub(crate) struct Keys {
    pub(crate) limit: usize,
    pub(crate) window: u64,
    pub(crate) places: usize,
    /// Whether keys without room share one more limiter; else they are refused.
    pub(crate) share: bool,
}

/// A call names a key in place of a cost; or one of these, below which keys are.
impl Keys {
    /// Forgets the key that the call's time names.
    pub(crate) const REMOVE: u64 = 100;
    /// Forgets every key that has nothing left at the call's time.
    pub(crate) const RETAIN: u64 = 101;
}

/// When keys were admitted, what they share, and every time that moved the hand.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Kept {
    keys: BTreeMap<u64, Vec<u64>>,
    shared: Vec<u64>,
    passed: Vec<u64>,
}

// === impl Keys ===

impl Keys {
    /// Until when a key is in use.
    fn end(&self, times: &[u64]) -> u64 {
        times.last().map_or(0, |last| last + self.window)
    }

    /// The answer of one history, and the history then.
    fn answer(&self, times: &[u64], now: u64) -> (Verdict, Vec<u64>) {
        let at = now.max(times.last().copied().unwrap_or(0));
        let inside = times.iter().filter(|&time| time + self.window > at).count();
        let admitted = inside < self.limit;
        let next = times.iter().copied().chain(admitted.then_some(at)).collect();
        (Verdict::yes_or_no(admitted), next)
    }

    /// Every answer to a call of `key` at `now`, with what is kept then, but for the time passed.
    fn answers(&self, kept: &Kept, key: u64, now: u64) -> Vec<(Verdict, Kept)> {
        let times = kept.keys.get(&key).map_or(&[][..], Vec::as_slice);
        let passed = kept.passed.iter().copied().max().unwrap_or(0);
        let with = |(verdict, times): (Verdict, Vec<u64>)| {
            let mut next = kept.clone();
            next.keys.insert(key, times);
            (verdict, next)
        };
        let mut answers = Vec::new();
        if !times.is_empty() {
            answers.push(with(self.answer(times, now)));
        }
        if self.end(times) > passed {
            return answers; // Nobody can have taken its place.
        }
        let others = kept.keys.iter().filter(|(other, _)| **other != key);
        let busy_at = |at| others.clone().filter(|(_, times)| self.end(times) > at).count();
        if busy_at(now.max(passed)) < self.places {
            // A new key, not before the time at which one has left.
            let since = kept.passed.iter().copied().filter(|&at| at > now);
            let ats = since.chain([now]).filter(|&at| at >= self.end(times));
            answers.extend(ats.map(|at| with((Verdict::Admitted, vec![at]))));
        }
        if busy_at(now) >= self.places {
            let (verdict, shared) = self.answer(&kept.shared, now);
            answers.push(if self.share {
                (verdict, Kept { shared, ..kept.clone() })
            } else {
                (Verdict::yes_or_no(false), kept.clone())
            });
        }
        answers
    }

    fn remove(&self, kept: &Kept, key: u64) -> Vec<(Verdict, Kept)> {
        let mut next = kept.clone();
        let times = next.keys.remove(&key).unwrap_or_default();
        let gone = kept.passed.iter().any(|&at| at >= self.end(&times));
        let mut outcomes = Vec::new();
        if !times.is_empty() {
            outcomes.push((Verdict::Admitted, next.clone()));
        }
        if times.is_empty() || gone {
            outcomes.push((Verdict::yes_or_no(false), next));
        }
        outcomes
    }
}

impl Oracle for Keys {
    type State = Kept;

    fn name(&self) -> String {
        format!("{} in any {} for each key, room for {}", self.limit, self.window, self.places)
    }

    fn start(&self) -> Kept {
        Kept::default()
    }

    fn outcomes(&self, kept: &Kept, question: &Question<'_>) -> Option<Vec<(Verdict, Kept)>> {
        let now = question.now;
        Some(match *question.call {
            Call::Acquire { cost: Self::REMOVE, .. } => self.remove(kept, now),
            Call::Acquire { cost: Self::RETAIN, .. } => {
                let mut next = kept.clone();
                next.keys.retain(|_, times| self.answer(times, now).0.is_admitted());
                vec![(Verdict::Admitted, next)]
            }
            Call::Acquire { cost: key, .. } => {
                let mut answers = self.answers(kept, key, now);
                for (_, next) in &mut answers {
                    if let Err(place) = next.passed.binary_search(&now) {
                        next.passed.insert(place, now);
                    }
                }
                answers
            }
            Call::Peek { cost: key, .. } => {
                let answers = self.answers(kept, key, now);
                answers.into_iter().map(|(verdict, _)| (verdict, kept.clone())).collect()
            }
            _ => return None,
        })
    }
}
