//! Oracles of the forms that the harness has none for, as simply as they can be said.

mod keys;
mod parted;

use tollgate_check::{Call, Oracle, Question, Verdict};

pub(crate) use keys::Keys;
pub(crate) use parted::Parted;

/// A fixed window: a count that starts again at every edge. An older call is judged in the newest window.
pub(crate) struct Fixed {
    pub(crate) limit: u64,
    pub(crate) window: u64,
}

/// The weighted two-window counter.
pub(crate) struct TwoWindow {
    pub(crate) limit: u64,
    pub(crate) window: u64,
}

/// A queue that serves one permit per `interval` and lets `queue` more wait.
pub(crate) struct Queue {
    pub(crate) interval: u64,
    pub(crate) queue: u64,
}

/// A bucket whose rate and burst change: by a clock of parts drained so far, in whole parts. A call that overlaps a change
/// is judged by either clock and burst.
pub(crate) struct Rates {
    /// Parts of a permit: ticks, of which the fastest rate drains one in a nanosecond.
    pub(crate) parts: u64,
    pub(crate) rate: (u64, u64),
    pub(crate) burst: u64,
}

/// A rate and burst, the moment since when they hold, and the parts drained by then.
type Pace = ((u64, u64), u64, u64, u64);

/// The exact log when calls are more than half the span of its head apart: judged at its own time or the newest, or at
/// any later one that lies half a span before a time which another call has carried, as `Log` documents.
pub(crate) struct Carried {
    pub(crate) rules: &'static [(u64, u64)],
    pub(crate) half_span: u64,
}

/// A log that records every `m`-th permit, as `Sampled` documents: each entry counts `m`, and those since the last entry
/// until the newest permit leaves.
pub(crate) struct Sampled {
    pub(crate) limit: u64,
    pub(crate) window: u64,
    pub(crate) m: u64,
}

/// Every call is fine unless it panics.
pub(crate) struct Asserts;

/// A windowed count: the window's index, the count before it and the count in it.
type Counts = (u64, u64, u64);

fn rolled((index, prev, cur): Counts, to: u64) -> Counts {
    match to.saturating_sub(index) {
        0 => (index, prev, cur),
        1 => (to, cur, 0),
        _ => (to, 0, 0),
    }
}

impl Oracle for Fixed {
    type State = Counts;

    fn name(&self) -> String {
        format!("fixed: {} per aligned {}", self.limit, self.window)
    }

    fn start(&self) -> Counts {
        (0, 0, 0)
    }

    fn outcomes(&self, state: &Counts, question: &Question<'_>) -> Option<Vec<(Verdict, Counts)>> {
        let Call::Acquire { cost, .. } = *question.call else { return None };
        let (index, prev, cur) = rolled(*state, question.now / self.window);
        let wait = (index + 1) * self.window - question.now.max(index * self.window);
        Some(vec![if cur + cost <= self.limit {
            (Verdict::Admitted, (index, prev, cur + cost))
        } else {
            (Verdict::Refused { retry_after: Some(wait) }, *state)
        }])
    }
}

impl TwoWindow {
    fn fits(&self, state: Counts, cost: u64, at: u64) -> bool {
        let (index, prev, cur) = rolled(state, at / self.window);
        let left = (index + 1) * self.window - at.max(index * self.window);
        (prev * left).div_ceil(self.window) + cur + cost <= self.limit
    }
}

impl Oracle for TwoWindow {
    type State = Counts;

    fn name(&self) -> String {
        format!("two windows: {} per {}, weighted", self.limit, self.window)
    }

    fn start(&self) -> Counts {
        (0, 0, 0)
    }

    fn outcomes(&self, state: &Counts, question: &Question<'_>) -> Option<Vec<(Verdict, Counts)>> {
        let Call::Acquire { cost, .. } = *question.call else { return None };
        let at = question.now.max(state.0 * self.window);
        Some(vec![if self.fits(*state, cost, at) {
            let (index, prev, cur) = rolled(*state, at / self.window);
            (Verdict::Admitted, (index, prev, cur + cost))
        } else {
            let wait = (1..=2 * self.window).find(|wait| self.fits(*state, cost, at + wait));
            (Verdict::Refused { retry_after: wait }, *state)
        }])
    }
}

impl Oracle for Queue {
    /// When all will have been served, and the places: `(cost, now)` of the call, the moment before and after it.
    type State = (u64, Vec<((u64, u64), u64, u64)>);

    fn name(&self) -> String {
        format!("queue: one per {}, {} more wait", self.interval, self.queue)
    }

    fn start(&self) -> Self::State {
        (0, vec![])
    }

    fn outcomes(&self, state: &Self::State, question: &Question<'_>) -> Option<Vec<(Verdict, Self::State)>> {
        let (tat, places) = state;
        let mut next = places.clone();
        Some(vec![match *question.call {
            Call::Acquire { cost, .. } => {
                let begin = question.now.max(*tat);
                let served = begin + cost * self.interval;
                if served > question.now + (self.queue + 1) * self.interval {
                    (Verdict::Never, state.clone())
                } else {
                    next.push(((cost, question.now), *tat, served));
                    let wait = begin - question.now;
                    let queued = Verdict::Refused { retry_after: Some(wait) };
                    (if wait == 0 { Verdict::Admitted } else { queued }, (served, next))
                }
            }
            Call::Refund { cost, .. } => {
                let place = places.iter().position(|(of, ..)| *of == (cost, question.now));
                let place = place.map(|place| next.remove(place));
                match place {
                    Some((_, before, after)) if after == *tat => (Verdict::Admitted, (before, next)),
                    _ => (Verdict::Never, (*tat, next)),
                }
            }
            _ => return None,
        }])
    }
}

impl Carried {
    fn fits(&self, admitted: &[(u64, u64)], cost: u64, at: u64) -> bool {
        self.rules.iter().all(|&(limit, window)| {
            let inside = admitted.iter().filter(|(time, _)| time + window > at);
            inside.map(|(_, cost)| cost).sum::<u64>() + cost <= limit
        })
    }
}

impl Rates {
    /// Parts drained until `now`; whoever comes from before the change is judged at it.
    fn clock(&self, &((limit, window), _, since, drained): &Pace, now: u64) -> u64 {
        drained + now.saturating_sub(since) * limit * self.parts / window
    }
}

impl Oracle for Rates {
    /// All paces so far, and what the clock will show when nothing is owed any more.
    type State = (Vec<Pace>, u64);

    fn name(&self) -> String {
        format!("a bucket of {}, {:?}, until it changes", self.burst, self.rate)
    }

    fn start(&self) -> Self::State {
        (vec![(self.rate, self.burst, 0, 0)], 0)
    }

    fn outcomes(&self, state: &Self::State, question: &Question<'_>) -> Option<Vec<(Verdict, Self::State)>> {
        let (paces, end) = state;
        match question.call {
            Call::Reconfigure { rules } => {
                let (&[rate, (burst, now)], present) = (&rules[..], paces.last()?) else { return None };
                let since = now.max(present.2);
                let next = (rate, burst, since, self.clock(present, since));
                let paces = paces.iter().copied().chain([next]).collect();
                Some(vec![(Verdict::Admitted, (paces, *end))])
            }
            &Call::Acquire { cost, .. } => {
                let by = |pace: &Pace| {
                    let now = self.clock(pace, question.now);
                    let charged = now.max(*end) + cost * self.parts;
                    if charged <= now + pace.1 * self.parts {
                        return (Verdict::Admitted, (paces.clone(), charged));
                    }
                    let never = cost > pace.1;
                    let refused = Verdict::Refused { retry_after: None };
                    (if never { Verdict::Never } else { refused }, state.clone())
                };
                Some(paces.iter().rev().take(1 + question.overlapped).map(by).collect())
            }
            _ => None,
        }
    }
}

impl Oracle for Carried {
    type State = Vec<(u64, u64)>;

    fn name(&self) -> String {
        format!("exact, times may be carried: {:?}", self.rules)
    }

    fn start(&self) -> Self::State {
        vec![]
    }

    fn outcomes(&self, state: &Self::State, question: &Question<'_>) -> Option<Vec<(Verdict, Self::State)>> {
        let (cost, takes) = match *question.call {
            Call::Acquire { cost, .. } => (cost, true),
            Call::Peek { cost, .. } => (cost, false),
            _ => return None,
        };
        let own = question.now.max(state.last().map_or(0, |&(time, _)| time));
        let last = question.latest.saturating_sub(self.half_span).max(own);
        let at = |at: u64| {
            if !self.fits(state, cost, at) {
                let wait = (1..).find(|wait| self.fits(state, cost, at + wait));
                return (Verdict::Refused { retry_after: wait }, state.clone());
            }
            let mut next = state.clone();
            next.extend(takes.then_some((at, cost)));
            (Verdict::Admitted, next)
        };
        Some((own..=last).map(at).collect())
    }
}

impl Sampled {
    fn pending(&self, (newest, pending, _): &<Self as Oracle>::State, at: u64) -> u64 {
        if newest + self.window > at { *pending } else { 0 }
    }

    fn charged(&self, state: &<Self as Oracle>::State, at: u64) -> u64 {
        let entries = state.2.iter().filter(|&entry| entry + self.window > at).count() as u64;
        entries * self.m + self.pending(state, at)
    }
}

impl Oracle for Sampled {
    /// The newest time, the permits since the last entry, and the entries.
    type State = (u64, u64, Vec<u64>);

    fn name(&self) -> String {
        format!("sampled: {} in any {}, one entry for {}", self.limit, self.window, self.m)
    }

    fn start(&self) -> Self::State {
        (0, 0, vec![])
    }

    fn outcomes(&self, state: &Self::State, question: &Question<'_>) -> Option<Vec<(Verdict, Self::State)>> {
        let (cost, takes) = match *question.call {
            Call::Acquire { cost, .. } => (cost, true),
            Call::Peek { cost, .. } => (cost, false),
            _ => return None,
        };
        let at = question.now.max(state.0);
        let fits = |at| self.charged(state, at) + cost <= self.limit;
        if !fits(at) {
            let wait = (1..=self.window).find(|wait| fits(at + wait));
            return Some(vec![(Verdict::Refused { retry_after: wait }, state.clone())]);
        }
        let mut next = state.clone();
        if takes {
            let since = self.pending(state, at) + cost;
            (next.0, next.1) = (at, since % self.m);
            next.2.extend((0..since / self.m).map(|_| at));
        }
        Some(vec![(Verdict::Admitted, next)])
    }
}

impl Oracle for Asserts {
    type State = ();

    fn name(&self) -> String {
        "what the calls assert".into()
    }

    fn start(&self) {}

    fn outcomes(&self, (): &(), _: &Question<'_>) -> Option<Vec<(Verdict, ())>> {
        Some(vec![(Verdict::Admitted, ())])
    }
}
