//! Layers against naive models: all or nothing, and the answer of the layer that binds.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use tollgate::{Algorithm, Gcra, Layer, Layers, Log, Nanos, Rule, Window};

use crate::{
    oracle::{Answer, Naive, Oracle, Verdict},
    threads::{from_a_barrier, rounds, sum},
};

/// A limiter and its model.
struct Pair {
    limiter: Box<dyn Algorithm>,
    model: Naive,
}

/// one layer: limit, windows of 4 us, whether it is exact.
type Shape = (u64, u64, bool);

fn shape() -> impl Strategy<Value = Shape> {
    (0..4_u64, 1..5_u64, any::<bool>())
}

impl Pair {
    fn new((limit, windows, exact): Shape) -> Self {
        let rule = Rule::new(limit, Duration::from_micros(windows * 4));
        if exact {
            let limiter = Log::builder(limit, rule.window.into()).build().unwrap();
            return Self { limiter: Box::new(limiter), model: Naive::log(&[rule]) };
        }
        let limiter = Window::builder(limit, rule.window.into()).buckets(4).build().unwrap();
        Self { limiter: Box::new(limiter), model: Naive::window(&[rule], 4, 1, Duration::ZERO) }
    }
}

/// What layers should answer, by the answers of each: the longest wait, else the least left.
fn told(answers: &[Answer]) -> (usize, Answer) {
    let refusals = || answers.iter().enumerate().filter(|(_, answer)| answer.verdict != Verdict::Admitted);
    let ends = |answer: &Answer| match answer.verdict {
        Verdict::Wait(wait) => u128::from(answer.at) + u128::from(wait),
        _ => u128::MAX,
    };
    let latest = refusals().map(|(_, answer)| ends(answer)).max();
    let least = answers.iter().map(|answer| answer.remaining).min().unwrap();
    let all = answers.iter().enumerate();
    let found = match latest {
        Some(latest) => {
            all.filter(|(_, answer)| answer.verdict != Verdict::Admitted).find(|(_, a)| ends(a) == latest)
        }
        None => all.into_iter().find(|(_, answer)| answer.remaining == least),
    };
    let (layer, &answer) = found.unwrap();
    (layer, answer)
}

fn check(pairs: &mut [Pair; 3], cost: u64, now: u64, quick: bool) {
    let at = Nanos::from_nanos(now);
    let seen: Vec<Answer> = pairs.iter().map(|pair| pair.model.peek(cost, now)).collect();
    let passes = seen.iter().all(|answer| answer.verdict == Verdict::Admitted);
    {
        let [outer, middle, inner] = &*pairs;
        let layers = Layers::new([&outer.limiter, &middle.limiter, &inner.limiter]);
        let (layer, decision) = layers.peek_at(cost, at);
        assert_eq!((layer, Answer::from(decision)), told(&seen));
        if quick {
            assert_eq!(layers.try_acquire_at(cost, at), passes);
        } else {
            let (layer, decision) = layers.check_at(cost, at);
            let mut expected = seen.clone();
            if passes {
                expected = pairs.iter().map(|pair| pair.model.clone().check(cost, now)).collect();
            }
            assert_eq!((layer, Answer::from(decision)), told(&expected));
        }
    }
    for pair in pairs {
        if passes {
            pair.model.check(cost, now);
        }
        // Whatever the answer, each layer stands where its model stands.
        assert_eq!(Answer::from(pair.limiter.peek_at(0, at)), pair.model.peek(0, now));
        assert_eq!(pair.limiter.usage_at(0, at), pair.model.usage(0, now));
    }
}

proptest! {
    #[test]
    fn layers_agree(
        shapes in [shape(), shape(), shape()],
        calls in vec((0..3_u64, 0..3_u64, 0..6_u64, any::<bool>()), 1..60),
    ) {
        let (mut pairs, mut now) = (shapes.map(Pair::new), 50_000);
        for (cost, forward, back, quick) in calls {
            now += 2_000 * forward;
            check(&mut pairs, cost, if back == 0 { now - 3_000 } else { now }, quick);
        }
    }
}

/// The bound on what lost races cost: the outer layer is charged for what was admitted and nothing else, the inner
/// ones for at most one call more for each call that was refused.
#[test]
fn threads_never_go_over_and_lose_at_most_what_they_asked_for() {
    const RACES: usize = 2_000;
    rounds(|_| {
        let hour = Duration::from_secs(3_600);
        let make = |limit| (0..RACES).map(|_| Log::builder(limit, hour).build().unwrap()).collect::<Vec<_>>();
        let (globals, users) = (make(3), [make(2), make(2)]);
        let now = Nanos::from_secs(1);
        let admitted = from_a_barrier(4, RACES, |thread, round| {
            Layers::new([&globals[round], &users[thread % 2][round]]).try_acquire_at(1, now).into()
        });
        for (round, admitted) in sum(&admitted).enumerate() {
            assert_eq!(globals[round].usage_at(0, now), Some(admitted));
            let charged: u64 = users.iter().map(|user| user[round].usage_at(0, now).unwrap()).sum();
            assert!(
                admitted <= 3 && (admitted..=4).contains(&charged),
                "{admitted} admitted, {charged} charged"
            );
            // Four calls, three permits: a call is refused only if the global limit is used up, so three are admitted.
            assert_eq!(admitted, 3);
        }
    });
}

#[test]
fn a_token_bucket_outside_and_a_log_inside() {
    let second = Duration::from_secs(1);
    let bucket = Gcra::builder(10, second).burst(4).build().unwrap();
    let users = [0, 1].map(|_| Log::builder(3, second).build().unwrap());
    let now = Nanos::from_secs(9);
    let admit = |user: usize| Layers::new([&bucket, &users[user]]).check_at(1, now);
    assert!((0..3).all(|_| admit(0).1.is_ok()));
    let (layer, denied) = admit(0);
    assert_eq!((layer, denied.unwrap_err().retry_after()), (1, Some(second.into())));
    assert!(admit(1).1.is_ok());
    let (layer, denied) = admit(1);
    assert_eq!((layer, denied.unwrap_err().retry_after()), (0, Some(Nanos::from_millis(100))));
    assert_eq!(users[1].usage_at(0, now), Some(1));
}

/// Layers are a layer.
#[test]
fn layers_nest() {
    let second = Duration::from_secs(1);
    let [a, b, c] = [3, 2, 1].map(|limit| Log::builder(limit, second).build().unwrap());
    let inner = Layers::new([&b, &c]);
    let all: &dyn Layer = &Layers::new([&a, &inner]);
    let now = Nanos::ZERO;
    assert!(all.look_at(1, now).is_ok() && all.decide_at(1, now).is_ok() && !all.take_at(1, now));
    assert_eq!([&a, &b, &c].map(|log| log.usage_at(0, now)), [Some(1); 3]);
}
