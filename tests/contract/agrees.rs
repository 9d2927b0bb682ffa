//! Compares an algorithm with an oracle, call by call, and lets the clock test what the answers foretell.

use tollgate::{Algorithm, Nanos};

use crate::oracle::{Answer, Oracle, Verdict};

/// One call: `check_at`, or the cheaper `try_acquire_at`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) cost: u64,
    pub(crate) now: u64,
    pub(crate) quick: bool,
}

/// Panics at the first answer that is not the oracle's.
pub(crate) fn agrees(
    algorithm: &dyn Algorithm,
    oracle: &mut dyn Oracle,
    calls: impl IntoIterator<Item = Call>,
) {
    let bytes = algorithm.state_bytes();
    for (place, call) in calls.into_iter().enumerate() {
        let Call { cost, now, quick } = call;
        let context = format!("call {place}: {call:?}");

        let foretold = oracle.peek(cost, now);
        assert_eq!(peek(algorithm, cost, now), foretold, "peek, {context}");
        foretells(algorithm, cost, foretold, &context);

        let has_room = algorithm.has_room_at(cost, Nanos::from_nanos(now));
        assert_eq!(has_room, foretold.verdict == Verdict::Admitted, "room, {context}");

        let expected = oracle.check(cost, now);
        if quick {
            let admitted = expected.verdict == Verdict::Admitted;
            assert_eq!(algorithm.try_acquire_at(cost, Nanos::from_nanos(now)), admitted, "quick, {context}");
        } else {
            let answer = Answer::from(algorithm.check_at(cost, Nanos::from_nanos(now)));
            assert_eq!(answer, expected, "check, {context}");
        }
        if expected.verdict != Verdict::Admitted {
            assert_eq!(peek(algorithm, cost, now), foretold, "a refusal changed something, {context}");
        }
        for rule in 0..=oracle.rules() {
            let usage = algorithm.usage_at(rule, Nanos::from_nanos(now));
            assert_eq!(usage, oracle.usage(rule, now), "usage of rule {rule}, {context}");
        }
        assert_eq!(algorithm.state_bytes(), bytes, "state grew, {context}");
    }
}

/// Asks the algorithm again at each time that the answer names, and one nanosecond before it.
fn foretells(algorithm: &dyn Algorithm, cost: u64, answer: Answer, context: &str) {
    let Answer { verdict, remaining, next_after, reset_after, at, .. } = answer;
    if let Verdict::Wait(wait) = verdict {
        assert_ne!(wait, 0, "a refusal without a wait, {context}");
        around(at, wait, |t| peek(algorithm, cost, t).verdict == Verdict::Admitted, "retry_after", context);
    }
    if next_after > 0 {
        around(at, next_after, |t| peek(algorithm, 0, t).remaining > remaining, "next_after", context);
    }
    if reset_after > 0 {
        let idle = |t| {
            (0..algorithm.rules().len()).all(|rule| algorithm.usage_at(rule, Nanos::from_nanos(t)) == Some(0))
        };
        around(at, reset_after, idle, "reset_after", context);
    }
}

/// It must not be so one nanosecond before `at + span`, and must be so then.
fn around(at: u64, span: u64, so: impl Fn(u64) -> bool, what: &str, context: &str) {
    let due = at + span;
    if due - 1 <= Nanos::MAX.as_nanos() {
        assert!(!so(due - 1), "{what} {span} is too long, {context}");
    }
    if due <= Nanos::MAX.as_nanos() {
        assert!(so(due), "{what} {span} is too short, {context}");
    }
}

fn peek(algorithm: &dyn Algorithm, cost: u64, now: u64) -> Answer {
    algorithm.peek_at(cost, Nanos::from_nanos(now)).into()
}
