//! Naive models of limiters: a list of admissions and a search through instants.
//!
//! Nothing here knows how the library works. A model keeps every admission that still counts; any question is
//! answered by adding up the list at one instant after another, at each of which some admission leaves, until
//! the answer fits. It is slow and obviously right; `agrees` compares an algorithm with it, call by call.

use std::time::Duration;

use tollgate::{Decision, Nanos, Quota, Reason, Rule};

/// One complete answer, as a value that can be compared; times and spans in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    pub(crate) rule: usize,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) next_after: u64,
    pub(crate) reset_after: u64,
    pub(crate) at: u64,
}

/// Admitted, or why not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Admitted,
    Wait(u64),
    Never,
    MaxCost(u64),
    OutOfRange,
}

/// A model that an algorithm can be compared with.
pub(crate) trait Oracle {
    /// The answer that `peek_at` should give.
    fn peek(&self, cost: u64, now: u64) -> Answer;
    /// Permits charged to `rule` at `now`.
    fn usage(&self, rule: usize, now: u64) -> Option<u64>;
    /// Charges an admission at `now`.
    fn record(&mut self, cost: u64, now: u64);
    /// The number of rules.
    fn rules(&self) -> usize;

    /// The answer that `check_at` should give: the figures of an admission are those after it.
    fn check(&mut self, cost: u64, now: u64) -> Answer {
        let answer = self.peek(cost, now);
        if answer.verdict != Verdict::Admitted || cost == 0 {
            return answer;
        }
        self.record(cost, now);
        self.peek(0, now)
    }
}

/// How finely a history knows time: in buckets with edges at `phase` and every `width` from there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grain {
    pub(crate) width: u64,
    pub(crate) phase: u64,
    /// By how many buckets more than its window an admission is remembered.
    pub(crate) late: u64,
}

/// A history that forgets each admission as a whole: the exact log, the window counter, the fixed window.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    rules: Vec<Rule>,
    grain: Grain,
    max_cost: u64,
    /// Time and cost of each admission that may still count, oldest first.
    admitted: Vec<(u64, u64)>,
}

// === impl Answer ===

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        let (verdict, quota) = match decision {
            Ok(quota) => (Verdict::Admitted, quota),
            Err(denied) => {
                let verdict = match denied.reason {
                    Reason::Limit { retry_after } => Verdict::Wait(retry_after.as_nanos()),
                    Reason::Never => Verdict::Never,
                    Reason::MaxCost { max } => Verdict::MaxCost(max),
                    Reason::TimeOutOfRange => Verdict::OutOfRange,
                    other => panic!("no such reason in the contract: {other:?}"),
                };
                (verdict, denied.quota)
            }
        };
        let Quota { rule, limit, remaining, next_after, reset_after, at, .. } = quota;
        let [next_after, reset_after, at] = [next_after, reset_after, at].map(Nanos::as_nanos);
        Self { verdict, rule, limit, remaining, next_after, reset_after, at }
    }
}

// === impl Grain ===

impl Grain {
    /// Exact to the nanosecond.
    pub(crate) const EXACT: Self = Self { width: 1, phase: 0, late: 0 };

    /// The start of the bucket that holds `t`; below zero for the one that the clock's zero cuts.
    pub(crate) fn start(self, t: u64) -> i128 {
        let (t, width, phase) = (i128::from(t), i128::from(self.width), i128::from(self.phase));
        phase + (t - phase).div_euclid(width) * width
    }

    /// The first instant at which an admission at `t` no longer counts in `window`.
    pub(crate) fn leaves(self, t: u64, window: u64) -> i128 {
        self.start(t) + i128::from(window) + i128::from(self.late) * i128::from(self.width)
    }
}

// === impl Naive ===

impl Naive {
    pub(crate) fn new(rules: &[Rule], grain: Grain) -> Self {
        Self { rules: rules.to_vec(), grain, max_cost: u64::MAX, admitted: Vec::new() }
    }

    /// An exact log.
    pub(crate) fn log(rules: &[Rule]) -> Self {
        Self::new(rules, Grain::EXACT)
    }

    /// A counter with `buckets` to the shortest window, that remembers `late` buckets longer than it must.
    pub(crate) fn window(rules: &[Rule], buckets: u64, late: u64, phase: Duration) -> Self {
        let shortest = rules.iter().map(|rule| rule.window.as_nanos()).min().expect("a rule");
        let phase = Nanos::from(phase).as_nanos();
        Self::new(rules, Grain { width: shortest / buckets, phase, late })
    }

    /// How finely it knows time.
    pub(crate) fn grain(&self) -> Grain {
        self.grain
    }

    /// Refuses costs above `max` as undeclared.
    pub(crate) fn max_cost(self, max: u64) -> Self {
        Self { max_cost: max, ..self }
    }

    /// The time at which a call at `now` is judged: its own, or the start of the newest bucket.
    fn judged(&self, now: u64) -> u64 {
        match self.admitted.last() {
            Some(&(newest, _)) if self.grain.start(newest) > self.grain.start(now) => {
                u64::try_from(self.grain.start(newest)).expect("later than a time from zero")
            }
            _ => now,
        }
    }

    fn leaves(&self, rule: usize, t: u64) -> i128 {
        self.grain.leaves(t, self.rules[rule].window.as_nanos())
    }

    fn used(&self, rule: usize, at: i128) -> u64 {
        self.admitted.iter().filter(|&&(t, _)| self.leaves(rule, t) > at).map(|&(_, cost)| cost).sum()
    }

    fn left(&self, rule: usize, at: i128) -> u64 {
        self.rules[rule].limit - self.used(rule, at)
    }

    fn fits(&self, rule: usize, cost: u64, at: i128) -> bool {
        cost <= self.left(rule, at)
    }

    /// How long after `at` it first happens, if it ever does when nobody else comes.
    fn wait(&self, at: u64, happens: impl Fn(i128) -> bool) -> Option<u64> {
        let at = i128::from(at);
        let leaving = |&(t, _): &(u64, u64)| (0..self.rules.len()).map(move |rule| self.leaves(rule, t));
        let mut instants: Vec<i128> = self.admitted.iter().flat_map(leaving).filter(|&t| t > at).collect();
        instants.push(at);
        instants.sort_unstable();
        let first = instants.into_iter().find(|&t| happens(t))?;
        Some(u64::try_from(first - at).expect("not before"))
    }
}

impl Oracle for Naive {
    fn peek(&self, cost: u64, now: u64) -> Answer {
        let rules = 0..self.rules.len();
        if now > Nanos::MAX.as_nanos() {
            let limit = self.rules[0].limit;
            let verdict = Verdict::OutOfRange;
            return Answer { verdict, rule: 0, limit, remaining: 0, next_after: 0, reset_after: 0, at: now };
        }
        let at = self.judged(now);
        let least = |t: i128| rules.clone().map(|rule| self.left(rule, t)).min().expect("a rule");
        let remaining = least(at.into());
        let tightest = rules.clone().find(|&rule| self.left(rule, at.into()) == remaining).expect("one");

        let retry = self.wait(at, |t| rules.clone().all(|rule| self.fits(rule, cost, t)));
        let (verdict, rule) = match retry {
            None => (Verdict::Never, rules.clone().find(|&rule| cost > self.rules[rule].limit).expect("one")),
            Some(_) if cost > self.max_cost => (Verdict::MaxCost(self.max_cost), tightest),
            Some(0) => (Verdict::Admitted, tightest),
            Some(wait) => {
                let alone = |rule: &usize| self.wait(at, |t| self.fits(*rule, cost, t));
                let slowest = rules.clone().find(|rule| alone(rule) == retry).expect("the one waited for");
                (Verdict::Wait(wait), slowest)
            }
        };
        Answer {
            verdict,
            rule,
            limit: self.rules[rule].limit,
            remaining,
            next_after: self.wait(at, |t| least(t) > remaining).unwrap_or(0),
            reset_after: self
                .wait(at, |t| rules.clone().all(|rule| self.used(rule, t) == 0))
                .expect("all leave"),
            at,
        }
    }

    fn usage(&self, rule: usize, now: u64) -> Option<u64> {
        (rule < self.rules.len() && now <= Nanos::MAX.as_nanos())
            .then(|| self.used(rule, self.judged(now).into()))
    }

    fn record(&mut self, cost: u64, now: u64) {
        let at = self.judged(now);
        // No call is judged before `at` from here on, or no earlier than the start of its bucket.
        let gone = self.grain.start(at);
        let (grain, longest) = (self.grain, self.rules.iter().map(|rule| rule.window).max().expect("a rule"));
        self.admitted.retain(|&(t, _)| grain.leaves(t, longest.as_nanos()) > gone);
        self.admitted.push((at, cost));
    }

    fn rules(&self) -> usize {
        self.rules.len()
    }
}
