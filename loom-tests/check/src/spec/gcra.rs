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
        let now = u128::from(question.now);
        let next = tat.max(now * parts) + u128::from(cost) * u128::from(self.window);
        let wait = |at: u128| next.saturating_sub(at * parts + span).div_ceil(parts) as u64;
        if wait(now) == 0 {
            return Some(vec![(Verdict::Admitted, if takes { next } else { tat })]);
        }
        // The bucket can not have been fuller than full: an older time may be judged when it was just full.
        let full = now.max(tat.saturating_sub(span).div_ceil(parts));
        Some([wait(now), wait(full)].map(|wait| (Verdict::Refused { retry_after: Some(wait) }, tat)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::acquire;

    #[test]
    fn a_late_call_may_count_from_its_own_time_or_from_when_the_bucket_was_full() {
        let gcra = Gcra { limit: 2, window: 10, burst: 2 };
        let call = acquire(1, 100);
        let told = |tat| {
            let outcomes =
                gcra.outcomes(&tat, &Question { call: &call, now: 100, latest: 115, overlapped: 0 });
            outcomes.unwrap().into_iter().map(|(verdict, _)| verdict).collect::<Vec<_>>()
        };
        let wait = |wait| Verdict::Refused { retry_after: Some(wait) };
        // One admission at 110 drains until 115: the bucket was just full at 105.
        assert_eq!(told(2 * 115), [wait(10), wait(5)]);
        assert_eq!(told(2 * 106), [wait(1), wait(1)]);
        assert_eq!(told(2 * 105), [Verdict::Admitted]);
    }

    #[test]
    fn three_per_ten_come_back_at_the_exact_thirds() {
        let gcra = Gcra { limit: 3, window: 10, burst: 3 };
        let mut tat = gcra.start();
        let mut ask = |cost, now| {
            let call = acquire(cost, now);
            let (verdict, next) = gcra
                .outcomes(&tat, &Question { call: &call, now, latest: now, overlapped: 0 })
                .unwrap()
                .remove(0);
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
