//! GCRA over rationals: times are counted in parts of a tick, so that no interval is rounded.

use crate::{
    limiter::{Call, Verdict},
    search::{Oracle, Question},
};

pub(crate) struct Gcra {
    pub(crate) limit: u64,
    pub(crate) window: u64,
    pub(crate) burst: u64,
}

impl Oracle for Gcra {
    /// The theoretical arrival time, in `1 / limit` of a tick.
    type State = u128;

    fn name(&self) -> String {
        format!("gcra: {} per {}, burst {}", self.limit, self.window, self.burst)
    }

    fn start(&self) -> u128 {
        0
    }

    fn outcomes(&self, &tat: &u128, question: &Question<'_>) -> Option<Vec<(Verdict, u128)>> {
        let (cost, takes) = match *question.call {
            Call::Acquire { cost, .. } => (cost, true),
            Call::Peek { cost, .. } => (cost, false),
            Call::Refund { .. } | Call::Reconfigure { .. } => return None,
        };
        if cost == 0 {
            return Some(vec![(Verdict::Admitted, tat)]);
        }
        if cost > self.burst || self.limit == 0 {
            return Some(vec![(Verdict::Never, tat)]);
        }
        let parts = u128::from(self.limit);
        let span = u128::from(self.burst) * u128::from(self.window);
        // The bucket can not have been fuller than full: an older time is judged when it was just full.
        let at = u128::from(question.now).max(tat.saturating_sub(span).div_ceil(parts));
        let next = tat.max(at * parts) + u128::from(cost) * u128::from(self.window);
        let over = next.saturating_sub(at * parts + span);
        Some(vec![if over > 0 {
            (Verdict::Refused { retry_after: Some(over.div_ceil(parts) as u64) }, tat)
        } else {
            (Verdict::Admitted, if takes { next } else { tat })
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::acquire;

    #[test]
    fn three_per_ten_come_back_at_the_exact_thirds() {
        let gcra = Gcra { limit: 3, window: 10, burst: 3 };
        let mut tat = gcra.start();
        let mut ask = |cost, now| {
            let call = acquire(cost, now);
            let (verdict, next) =
                gcra.outcomes(&tat, &Question { call: &call, now, latest: now }).unwrap().remove(0);
            tat = next;
            verdict
        };
        assert_eq!(ask(3, 0), Verdict::Admitted);
        assert_eq!(ask(1, 0), Verdict::Refused { retry_after: Some(4) });
        assert_eq!(ask(1, 4), Verdict::Admitted);
        assert_eq!(ask(2, 6), Verdict::Refused { retry_after: Some(4) });
        assert_eq!(ask(2, 10), Verdict::Admitted);
        assert_eq!(ask(4, 99), Verdict::Never);
    }
}
