//! The sampling log: every m-th within m permits, by chance within the binomial error.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, ConfigError, Nanos, Reason, Sampled};

use crate::{
    SECOND, ms,
    naive::{Naive, calls, replay},
    ns,
};

fn every(limit: u64, window: u64, m: u64) -> Sampled {
    Sampled::builder(limit, Duration::from_nanos(window)).every(m).build().unwrap()
}

fn bernoulli(limit: u64, m: u64, seed: u64) -> Sampled {
    Sampled::builder(limit, SECOND).bernoulli(m, seed).build().unwrap()
}

/// What any answer must say of the charge before it, and of the wait.
fn consistent(limiter: &dyn Algorithm, limit: u64, cost: u64, at: u64, charged: u64, window: u64) -> bool {
    let before = limiter.peek_at(cost, ns(at));
    let answer = limiter.check_at(cost, ns(at));
    assert_eq!(answer.is_ok(), charged + cost <= limit, "cost {cost} at {at}: {answer:?}");
    let Err(denied) = answer else { return true };
    assert_eq!((limiter.peek_at(cost, ns(at)), before), (before, Err(denied)));
    assert_eq!((denied.quota.at, denied.quota.remaining), (ns(at), limit - charged));
    let reset = ns(at) + denied.quota.reset_after;
    assert_eq!(limiter.usage_at(0, reset), Some(0));
    assert!(charged == 0 || limiter.usage_at(0, reset - ns(1)).unwrap() > 0);
    if cost > limit {
        assert_eq!(denied.reason, Reason::Never);
    } else {
        let wait = denied.retry_after().unwrap();
        assert!(wait > Nanos::ZERO && wait <= ns(window));
        assert!(limiter.peek_at(cost, ns(at) + wait - ns(1)).is_err());
        assert!(limiter.peek_at(cost, ns(at) + wait).is_ok());
    }
    false
}

proptest! {
    /// The charge is never below the truth and less than m above it: hence never over, and falsely refused by
    /// fewer than m.
    #[test]
    fn every_mth_is_within_m_of_the_naive_log(
        (limit, m, window, calls) in (1_u64..40, 1_u64..2_000)
            .prop_flat_map(|(limit, window)| {
                (Just(limit), 1..=limit, Just(window), calls(window, limit, &[1 << 40]))
            })
    ) {
        let limiter = every(limit, window, m);
        let mut naive = Naive::new();
        replay(&calls, |cost, now| {
            let at = naive.newest.max(now);
            let (charged, truth) = (limiter.usage_at(0, ns(now)).unwrap(), naive.younger(window, at));
            assert!(truth <= charged && charged < truth + m, "{charged} charged, {truth} true");
            if consistent(&limiter, limit, cost, at, charged, window) && cost > 0 {
                naive.record(cost, at, at + window);
                assert!(naive.younger(window, at) <= limit);
            }
        });
    }

    /// The same draws, and a list of all that they record.
    #[test]
    fn bernoulli_charges_m_for_every_permit_drawn(
        (limit, m, seed, calls) in (1_u64..40, any::<u64>())
            .prop_flat_map(|(limit, seed)| {
                (Just(limit), 1..=limit, Just(seed), calls(1_000_000_000, limit, &[1 << 40]))
            })
    ) {
        let limiter = bernoulli(limit, m, seed);
        let mut naive = Naive::new();
        let mut sequence = seed;
        replay(&calls, |cost, now| {
            let at = naive.newest.max(now);
            let charged = (m * naive.charged(at)).min(limit);
            assert_eq!(limiter.usage_at(0, ns(now)), Some(charged));
            if consistent(&limiter, limit, cost, at, charged, 1_000_000_000) && cost > 0 {
                // One number a call says which of its permits is the first recorded; then every m-th is.
                let first = m - 1 - ((u128::from(splitmix64(&mut sequence)) * u128::from(m)) >> 64) as u64;
                let entries = (first..cost).step_by(m as usize).count() as u64;
                naive.record(entries, at, at + 1_000_000_000);
            }
        });
    }
}

/// As published, from memory of its state instead of a place in its sequence.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// 1 %: one entry for each 10 of 1,000.
#[test]
fn every_mth_reaches_its_bound_and_goes_no_further() {
    let limiter = every(1_000, 1_000, 10);
    // Nine permits go in early, and one late; their entry bears the late one's time.
    assert!((0..9).all(|_| limiter.try_acquire_at(1, ns(0))));
    assert!(limiter.try_acquire_at(1, ns(500)));
    // Nine of ten have left: charged 10, true 1, and m - 1 permits are falsely held back.
    assert_eq!(limiter.usage_at(0, ns(1_000)), Some(10));
    let denied = limiter.check_at(991, ns(1_000)).unwrap_err();
    assert_eq!(denied.retry_after(), Some(ns(500)));
    assert!(limiter.try_acquire_at(990, ns(1_000)));

    // The other side, no error at all: from nothing, exactly the limit.
    let limiter = every(1_000, 1_000, 10);
    assert_eq!((0..2_000).filter(|_| limiter.try_acquire_at(1, ns(7))).count(), 1_000);
    assert!(!limiter.try_acquire_at(1, ns(1_006)));
    assert!(limiter.try_acquire_at(1_000, ns(1_007)));
}

#[test]
fn pending_permits_leave_with_the_newest() {
    let limiter = every(100, 1_000, 10);
    assert!(limiter.try_acquire_at(4, ns(0)));
    assert!(limiter.try_acquire_at(5, ns(600)));
    assert_eq!(limiter.check_at(0, ns(600)).unwrap().reset_after, ns(1_000));
    assert_eq!(limiter.usage_at(0, ns(1_599)), Some(9));
    assert_eq!(limiter.usage_at(0, ns(1_600)), Some(0));
    // They are not taken up again by the permits that follow.
    assert!(limiter.try_acquire_at(1, ns(1_600)));
    assert_eq!(limiter.usage_at(0, ns(1_600)), Some(1));
}

/// From nothing, a limit of 10,000 is spent at the 100th entry of 1 in 100: 10,000 permits in the mean, 995 the
/// standard deviation of 100 geometric gaps. Both sides are reached, and neither is passed by six deviations.
#[test]
fn bernoulli_is_off_by_the_binomial_error_on_both_sides() {
    const SEEDS: u64 = 300;
    let admitted: Vec<u64> = (0..SEEDS)
        .map(|seed| {
            let limiter = bernoulli(10_000, 100, seed);
            (0..100_000).take_while(|_| limiter.try_acquire_at(1, Nanos::ZERO)).count() as u64
        })
        .collect();
    let mean = admitted.iter().sum::<u64>() / SEEDS;
    // Of 300 means, the deviation is 57.
    assert!((9_770..=10_230).contains(&mean), "{mean}");
    let variance = admitted.iter().map(|&n| n.abs_diff(mean).pow(2)).sum::<u64>() / (SEEDS - 1);
    assert!((850 * 850..=1_150 * 1_150).contains(&variance), "{variance}");
    let (least, most) = (admitted.iter().min().unwrap(), admitted.iter().max().unwrap());
    assert!((4_000..9_000).contains(least) && (11_000..16_000).contains(most), "{least} to {most}");
}

/// The charge for a known number of permits: right in the mean, deviation at most sqrt(u (m - 1)).
#[test]
fn bernoulli_charges_the_truth_in_the_mean() {
    const SEEDS: u64 = 400;
    for cost in [1, 7, 25] {
        let permits = 5_000;
        let charges: Vec<u64> = (0..SEEDS)
            .map(|seed| {
                let limiter = bernoulli(1_000_000, 100, seed);
                assert!((0..permits / cost).all(|_| limiter.try_acquire_at(cost, Nanos::ZERO)));
                limiter.usage_at(0, Nanos::ZERO).unwrap()
            })
            .collect();
        let truth = permits / cost * cost;
        let mean = charges.iter().sum::<u64>() / SEEDS;
        assert!(mean.abs_diff(truth) < 4 * 36, "{mean}"); // 704 / sqrt(400) = 36
        let variance = charges.iter().map(|&n| n.abs_diff(truth).pow(2)).sum::<u64>() / SEEDS;
        let binomial = truth * 99;
        // 300 % of one deviation of a variance from 400 is 21 %.
        assert!(variance < binomial * 121 / 100, "cost {cost}: {variance} above {binomial}");
        assert!(cost > 1 || variance > binomial * 79 / 100, "cost {cost}: {variance} below {binomial}");
    }
}

#[test]
fn a_seed_gives_the_same_answers_again_and_after_reset() {
    let spend = |limiter: &Sampled| (0..100_000).take_while(|_| limiter.try_acquire_at(1, ms(5))).count();
    let (mut one, two) = (bernoulli(1_000, 10, 3), bernoulli(1_000, 10, 3));
    let spent = spend(&one);
    assert_eq!(spend(&two), spent);
    one.reset();
    assert_eq!(spend(&one), spent);
    assert!((4..20).any(|seed| spend(&bernoulli(1_000, 10, seed)) != spent));
}

#[test]
fn the_sample_bounds_the_memory() {
    let bytes = |limit| Sampled::builder(limit, SECOND).build().unwrap().state_bytes();
    let small = bytes(1) - 8;
    assert!(small < 128, "{small}");
    for limit in [10_000, 1_000_000, 1_000_000_000_000] {
        assert_eq!(bytes(limit), small + 8 * 100);
    }
}

#[test]
fn a_sample_outside_one_to_the_limit_is_refused() {
    let error = |limit: u64, m| {
        let builder = Sampled::builder(limit, SECOND);
        assert_eq!(builder.every(m).build().err(), builder.bernoulli(m, 0).build().err());
        builder.every(m).build().err()
    };
    assert_eq!(error(10, 0), Some(ConfigError::Sampling { got: 0, min: 1, max: 10 }));
    assert_eq!(error(10, 11), Some(ConfigError::Sampling { got: 11, min: 1, max: 10 }));
    assert_eq!(error(10, 10), None);
    assert_eq!(error(0, 1), None);
    let error = Sampled::builder(10, SECOND).max_cost(0).build().err();
    assert_eq!(error, Some(ConfigError::MaxCost { got: 0, min: 1 }));
}
