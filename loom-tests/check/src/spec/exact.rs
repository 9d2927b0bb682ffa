//! The exact sliding window, as simply as it can be said.

use crate::{
    limiter::{Call, Verdict},
    search::{Oracle, Question},
};

pub(crate) struct Exact {
    pub(crate) rules: Vec<(u64, u64)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    rules: Vec<(u64, u64)>,
    /// `(time, cost)` of each admission, oldest first.
    admitted: Vec<(u64, u64)>,
}

impl State {
    fn fits(&self, cost: u64, at: u64) -> bool {
        self.rules.iter().all(|&(limit, window)| {
            let inside = self.admitted.iter().filter(|(time, _)| time + window > at);
            inside.map(|(_, cost)| cost).sum::<u64>() + cost <= limit
        })
    }

    /// The answer at `at`, with the shortest wait. `cost` is at most the least limit.
    fn answer(&self, cost: u64, at: u64) -> Verdict {
        if self.fits(cost, at) {
            return Verdict::Admitted;
        }
        let leaves = self.admitted.iter().flat_map(|(t, _)| self.rules.iter().map(move |(_, w)| t + w));
        let first = leaves.filter(|&leave| leave > at && self.fits(cost, leave)).min();
        Verdict::Refused { retry_after: first.map(|first| first - at) }
    }
}

impl Oracle for Exact {
    type State = State;

    fn name(&self) -> String {
        let rules: Vec<_> =
            self.rules.iter().map(|(l, w)| format!("at most {l} in any window of {w}")).collect();
        format!("exact: {}", rules.join(" and "))
    }

    fn start(&self) -> State {
        State { rules: self.rules.clone(), admitted: vec![] }
    }

    fn outcomes(&self, state: &State, question: &Question<'_>) -> Option<Vec<(Verdict, State)>> {
        let (cost, takes) = match *question.call {
            Call::Acquire { cost, .. } => (cost, true),
            Call::Peek { cost, .. } => (cost, false),
            Call::Reconfigure { ref rules } => {
                let next = State { rules: rules.clone(), admitted: state.admitted.clone() };
                return Some(vec![(Verdict::Admitted, next)]);
            }
            Call::Refund { .. } => return None,
        };
        if cost == 0 {
            return Some(vec![(Verdict::Admitted, state.clone())]);
        }
        if state.rules.iter().any(|&(limit, _)| cost > limit) {
            return Some(vec![(Verdict::Never, state.clone())]);
        }
        let newest = state.admitted.last().map_or(0, |&(time, _)| time);
        let at = question.now.max(newest);
        let answer = state.answer(cost, at);
        let mut next = state.clone();
        if takes && answer.is_admitted() {
            next.admitted.push((at, cost));
        }
        Some(vec![(answer, next)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::acquire;

    fn run(rules: &[(u64, u64)], calls: &[(u64, u64)]) -> Vec<Verdict> {
        let oracle = Exact { rules: rules.to_vec() };
        let mut state = oracle.start();
        let mut verdicts = vec![];
        for &(cost, now) in calls {
            let call = acquire(cost, now);
            let question = Question { call: &call, now, latest: now, overlapped: 0 };
            let (verdict, next) = oracle.outcomes(&state, &question).unwrap().remove(0);
            state = next;
            verdicts.push(verdict);
        }
        verdicts
    }

    fn refused(wait: u64) -> Verdict {
        Verdict::Refused { retry_after: Some(wait) }
    }

    #[test]
    fn an_admission_exactly_a_window_old_has_left() {
        let verdicts = run(&[(1, 10)], &[(1, 0), (1, 9), (1, 10)]);
        assert_eq!(verdicts, [Verdict::Admitted, refused(1), Verdict::Admitted]);
    }

    #[test]
    fn an_old_time_is_judged_at_the_newest() {
        let verdicts = run(&[(2, 10)], &[(1, 5), (1, 0), (1, 3), (1, 14), (2, 15)]);
        assert_eq!(
            verdicts,
            [Verdict::Admitted, Verdict::Admitted, refused(10), refused(1), Verdict::Admitted]
        );
    }

    #[test]
    fn all_rules_or_none_and_the_longest_wait() {
        let verdicts = run(&[(3, 100), (1, 10)], &[(1, 0), (1, 5), (1, 10), (1, 20), (1, 25), (2, 30)]);
        let admitted = Verdict::Admitted;
        assert_eq!(verdicts, [admitted, refused(5), admitted, admitted, refused(75), Verdict::Never]);
    }

    #[test]
    fn limit_zero_refuses_all_but_cost_zero() {
        assert_eq!(run(&[(0, 10)], &[(0, 0), (1, 0)]), [Verdict::Admitted, Verdict::Never]);
    }
}
