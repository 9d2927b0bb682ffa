//! The naive models against traces worked out by hand, so that the judge is judged first.

use std::time::Duration;

use tollgate::Rule;

use crate::oracle::{Answer, Naive, Oracle, Verdict};

fn rule(limit: u64, window_ns: u64) -> Rule {
    Rule::new(limit, Duration::from_nanos(window_ns))
}

#[test]
fn the_textbook_trace() {
    let mut log = Naive::log(&[rule(3, 1000)]);
    let verdicts: Vec<bool> = [100, 400, 800, 900, 1200, 1500, 1600, 1900]
        .map(|now| log.check(1, now).verdict == Verdict::Admitted)
        .into();
    assert_eq!(verdicts, [true, true, true, false, true, true, false, true]);
}

#[test]
fn every_figure_of_an_answer() {
    let mut log = Naive::log(&[rule(3, 100), rule(2, 10)]);
    let answer = Answer {
        verdict: Verdict::Admitted,
        rule: 1,
        limit: 2,
        remaining: 2,
        next_after: 0,
        reset_after: 0,
        at: 5,
    };
    assert_eq!(log.peek(2, 5), answer);
    // Taken at 5: leaves the short rule at 15, the long one at 105.
    assert_eq!(log.check(1, 5), Answer { remaining: 1, next_after: 10, reset_after: 100, ..answer });
    // Taken at 8: the short rule is full until 15.
    assert_eq!(log.check(1, 8), Answer { remaining: 0, next_after: 7, reset_after: 100, at: 8, ..answer });
    let refused = Answer {
        verdict: Verdict::Wait(6),
        rule: 1,
        limit: 2,
        remaining: 0,
        next_after: 6,
        reset_after: 99,
        at: 9,
    };
    assert_eq!(log.check(1, 9), refused);
    // A step back is judged at the newest time recorded; the refusal at 9 recorded nothing.
    let back = Answer { verdict: Verdict::Wait(7), next_after: 7, reset_after: 100, at: 8, ..refused };
    assert_eq!(log.check(1, 2), back);
    // Two permits: the long rule has one left until 105, and decides.
    let both = Answer {
        verdict: Verdict::Wait(87),
        rule: 0,
        limit: 3,
        remaining: 1,
        next_after: 87,
        reset_after: 90,
        at: 18,
    };
    assert_eq!(log.check(2, 18), both);
    // The third permit of the long rule; nothing is left until 105, and the last leaves at 118.
    let last = Answer { rule: 0, limit: 3, remaining: 0, next_after: 87, reset_after: 100, at: 18, ..answer };
    assert_eq!(log.check(1, 18), last);
    // At 105 one leaves the long rule, at 108 the next: cost 2 fits then.
    assert_eq!(log.check(2, 106).verdict, Verdict::Wait(2));
    assert_eq!(log.check(2, 107).verdict, Verdict::Wait(1));
    assert_eq!(log.check(2, 108).verdict, Verdict::Admitted);
    assert_eq!((log.usage(0, 108), log.usage(1, 108), log.usage(2, 108)), (Some(3), Some(2), None));
}

#[test]
fn refusals_that_no_wait_cures() {
    let mut log = Naive::log(&[rule(5, 10), rule(3, 100)]).max_cost(2);
    assert_eq!(log.check(2, 0).verdict, Verdict::Admitted);
    let never = log.check(4, 1);
    assert_eq!((never.verdict, never.rule, never.limit, never.remaining), (Verdict::Never, 1, 3, 1));
    let both = log.check(6, 1);
    assert_eq!((both.verdict, both.rule, both.limit), (Verdict::Never, 0, 5));
    let undeclared = log.check(3, 1);
    assert_eq!((undeclared.verdict, undeclared.rule, undeclared.limit), (Verdict::MaxCost(2), 1, 3));
    let late = log.check(0, 1 << 62);
    assert_eq!((late.verdict, late.at, late.remaining), (Verdict::OutOfRange, 1 << 62, 0));
    assert_eq!(log.usage(0, 1 << 62), None);

    let mut closed = Naive::log(&[rule(0, 10)]);
    assert_eq!(closed.check(1, 0).verdict, Verdict::Never);
    assert_eq!(closed.check(0, 0).verdict, Verdict::Admitted);
}

#[test]
fn equal_waits_name_the_first_rule() {
    let mut log = Naive::log(&[rule(9, 10), rule(1, 10), rule(1, 10)]);
    log.check(1, 0);
    assert_eq!(log.check(1, 4).rule, 1);
    assert_eq!(log.check(0, 4).rule, 1);
}

#[test]
fn the_counter_forgets_by_the_bucket() {
    let full = |late| {
        let mut counter = Naive::window(&[rule(5, 100)], 10, late, Duration::ZERO);
        counter.check(5, 9);
        counter
    };
    let (mut textbook, mut covered) = (full(0), full(1));
    // Taken in the bucket that starts at 0: leaves at 100, or a bucket later.
    assert_eq!(textbook.check(1, 15).verdict, Verdict::Wait(85));
    assert_eq!(covered.check(1, 15).verdict, Verdict::Wait(95));
    assert_eq!(textbook.check(5, 100).verdict, Verdict::Admitted);
    assert_eq!(covered.check(5, 109).verdict, Verdict::Wait(1));
    assert_eq!(covered.check(5, 110).verdict, Verdict::Admitted);
    // Older calls are judged at the start of the newest bucket, calls in it at their own time.
    assert_eq!((covered.check(1, 99).at, covered.check(1, 99).verdict), (110, Verdict::Wait(110)));
    assert_eq!(covered.check(1, 112).at, 112);
}

#[test]
fn a_phase_moves_the_edges() {
    let mut counter = Naive::window(&[rule(1, 100)], 10, 0, Duration::from_nanos(3));
    counter.check(1, 2);
    // Buckets start at -7, 3, 13, ...: the admission counts from -7 to 93.
    assert_eq!(counter.check(1, 2).verdict, Verdict::Wait(91));
    assert_eq!(counter.check(1, 93).verdict, Verdict::Admitted);
    assert_eq!(counter.check(1, 0).at, 93);
    assert_eq!(counter.check(1, 103).verdict, Verdict::Wait(90));
}
