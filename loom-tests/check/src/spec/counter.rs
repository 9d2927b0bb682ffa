//! The sliding-window counter: a running total of admissions, cut into buckets.

use crate::{
    limiter::{Call, Verdict},
    search::{Oracle, Question},
};

/// How far back a rule looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// The bucket judged and as many whole buckets before it as fit the window: never above the limit in any
    /// true window.
    Full,
    /// One bucket less: the textbook form. One bucket and this coverage are the fixed window.
    Textbook,
}

pub(crate) struct Counter {
    /// `(limit, buckets before the one judged that still count)`.
    rules: Vec<(u64, u64)>,
    width: u64,
    name: String,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    newest: u64,
    /// `(bucket, cost)` of each admission, oldest first.
    admitted: Vec<(u64, u64)>,
}

impl Counter {
    pub(crate) fn new(rules: &[(u64, u64)], buckets: u64, coverage: Coverage) -> Counter {
        let shortest =
            rules.iter().map(|&(_, window)| window).min().expect("a counter has at least one rule");
        assert!(
            buckets > 0 && shortest.is_multiple_of(buckets),
            "{shortest} is not a multiple of {buckets} buckets"
        );
        let width = shortest / buckets;
        let back = |window: u64| {
            assert!(window.is_multiple_of(width), "window {window} is not a multiple of the width {width}");
            window / width - u64::from(coverage == Coverage::Textbook)
        };
        let name = format!("counter: {rules:?} in buckets of {width}, {coverage:?}");
        Counter { rules: rules.iter().map(|&(limit, window)| (limit, back(window))).collect(), width, name }
    }

    fn fits(&self, state: &State, cost: u64, bucket: u64) -> bool {
        self.rules.iter().all(|&(limit, back)| {
            let inside = state.admitted.iter().filter(|(b, _)| b + back >= bucket);
            inside.map(|(_, cost)| cost).sum::<u64>() + cost <= limit
        })
    }
}

impl Oracle for Counter {
    type State = State;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn start(&self) -> State {
        State { newest: 0, admitted: vec![] }
    }

    fn outcomes(&self, state: &State, question: &Question<'_>) -> Option<Vec<(Verdict, State)>> {
        let (cost, takes) = match *question.call {
            Call::Acquire { cost, .. } => (cost, true),
            Call::Peek { cost, .. } => (cost, false),
            Call::Refund { .. } | Call::Reconfigure { .. } => return None,
        };
        if cost == 0 {
            return Some(vec![(Verdict::Admitted, state.clone())]);
        }
        if self.rules.iter().any(|&(limit, _)| cost > limit) {
            return Some(vec![(Verdict::Never, state.clone())]);
        }
        let first = state.newest.max(question.now / self.width);
        let last = first.max(question.latest / self.width);
        let in_bucket = |bucket: u64| {
            if self.fits(state, cost, bucket) {
                let mut next = state.clone();
                if takes {
                    next.newest = bucket;
                    next.admitted.push((bucket, cost));
                }
                return (Verdict::Admitted, next);
            }
            let at = question.now.max(bucket * self.width);
            let leaves =
                state.admitted.iter().flat_map(|(b, _)| self.rules.iter().map(move |(_, back)| b + back + 1));
            let free = leaves.filter(|&leave| leave > bucket && self.fits(state, cost, leave)).min();
            let wait = free.map(|free| (free * self.width).saturating_sub(at));
            (Verdict::Refused { retry_after: wait }, state.clone())
        };
        Some((first..=last).map(in_bucket).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::acquire;

    fn outcomes(counter: &Counter, state: &State, now: u64, latest: u64) -> Vec<(Verdict, State)> {
        let call = acquire(1, now);
        counter.outcomes(state, &Question { call: &call, now, latest, overlapped: 0 }).unwrap()
    }

    #[test]
    fn full_coverage_frees_one_bucket_later_than_the_textbook() {
        for (coverage, free) in [(Coverage::Full, 15), (Coverage::Textbook, 10)] {
            let counter = Counter::new(&[(1, 10)], 2, coverage);
            let (_, full) = outcomes(&counter, &counter.start(), 2, 2).remove(0);
            let refused = Verdict::Refused { retry_after: Some(1) };
            assert_eq!(outcomes(&counter, &full, free - 1, 0)[0].0, refused);
            assert_eq!(outcomes(&counter, &full, free, 0)[0].0, Verdict::Admitted);
        }
    }

    #[test]
    fn a_call_may_be_judged_in_a_bucket_that_another_carries() {
        let counter = Counter::new(&[(1, 10)], 1, Coverage::Textbook);
        let (_, full) = outcomes(&counter, &counter.start(), 0, 0).remove(0);
        let verdicts: Vec<_> =
            outcomes(&counter, &full, 3, 25).into_iter().map(|(v, s)| (v, s.newest)).collect();
        let refused = Verdict::Refused { retry_after: Some(7) };
        assert_eq!(verdicts, [(refused, 0), (Verdict::Admitted, 1), (Verdict::Admitted, 2)]);
    }
}
