//! The traces that textbooks and documents of limiters use, with every answer worked out by hand.

use std::time::Duration;

use tollgate::{Algorithm, Coverage, Nanos, Rule};

use crate::forms;

const SECOND: Duration = Duration::from_secs(1);

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

/// How many of `n` calls at `now` are admitted.
pub(crate) fn burst(algorithm: &dyn Algorithm, n: u64, now: Nanos) -> u64 {
    (0..n).map(|_| u64::from(algorithm.try_acquire_at(1, now))).sum()
}

#[test]
fn the_textbook_trace() {
    for log in forms::logs(3, SECOND) {
        let answers = [100, 400, 800, 900, 1200, 1500, 1600, 1900].map(|t| log.try_acquire_at(1, ms(t)));
        assert_eq!(answers, [true, true, true, false, true, true, false, true]);
    }
}

#[test]
fn a_full_first_bucket_leaves_with_its_coverage() {
    // Edges of 100 ms from zero; the second T0 is a late edge, the third one that a phase moved.
    for (t0, phase) in [(0, 0), (86_400_000, 0), (5_037, 37)] {
        let rules = [Rule::new(100, SECOND)];
        let counter = |coverage| forms::shifted(&rules, 10, coverage, Duration::from_millis(phase));
        let (full, textbook) = (counter(Coverage::Full), counter(Coverage::Textbook));
        for counter in [&full, &textbook] {
            assert_eq!(burst(counter, 101, ms(t0)), 100);
            assert_eq!(burst(counter, 1, ms(t0 + 199)), 0, "199 ms old, rightly counted");
            assert_eq!(burst(counter, 1, ms(t0 + 999)), 0, "999 ms old, rightly counted");
        }
        for (taken, late) in (0..).zip([1_000, 1_050, 1_099]) {
            assert_eq!(full.usage_at(0, ms(t0 + late)), Some(100));
            assert!(!full.try_acquire_at(1, ms(t0 + late)), "up to a bucket late");
            assert_eq!(textbook.usage_at(0, ms(t0 + late)), Some(taken));
            assert!(textbook.try_acquire_at(1, ms(t0 + late)));
        }
        assert_eq!(burst(&full, 101, ms(t0 + 1_100)), 100);
    }
}

#[test]
fn a_full_last_instant_of_a_bucket_shows_each_bound() {
    let rules = [Rule::new(100, SECOND)];
    // The textbook form forgets up to a bucket early: 200 permits within 901 ms, its bound of twice the limit.
    let textbook = forms::window(&rules, 10, Coverage::Textbook);
    assert_eq!(burst(&textbook, 101, ms(99)), 100);
    assert_eq!(burst(&textbook, 101, ms(999)), 0);
    assert_eq!(burst(&textbook, 101, ms(1_000)), 100);
    // The full form does not, and is exact for this burst to the millisecond.
    let full = forms::window(&rules, 10, Coverage::Full);
    assert_eq!(burst(&full, 101, ms(99)), 100);
    assert_eq!(burst(&full, 101, ms(1_099)), 0);
    assert_eq!(burst(&full, 101, ms(1_100)), 100);
}

#[test]
fn one_textbook_bucket_bursts_at_the_edge_as_a_fixed_window_does() {
    let around =
        |algorithm: &dyn Algorithm| -> u64 { (900..1_100).map(|t| burst(algorithm, 2, ms(t))).sum() };
    let rules = [Rule::new(100, SECOND)];
    assert_eq!(around(&forms::window(&rules, 1, Coverage::Textbook)), 200);
    for log in forms::logs(100, SECOND) {
        assert_eq!(around(&log), 100);
    }
    for buckets in [1, 2, 10, 100] {
        assert_eq!(around(&forms::window(&rules, buckets, Coverage::Full)), 100, "{buckets} buckets");
    }
    for buckets in [2, 10, 100] {
        assert_eq!(around(&forms::window(&rules, buckets, Coverage::Textbook)), 100, "{buckets} buckets");
    }
}

#[test]
fn a_stacked_rule_flattens_the_start_and_leaks_nothing() {
    let rules = [Rule::new(1_000, SECOND), Rule::new(200, Duration::from_millis(100))];
    let forms: [(&str, Box<dyn Algorithm>); 4] = [
        ("log, any cost", Box::new(forms::log(&rules, None))),
        ("log, cost 1", Box::new(forms::log(&rules, Some(1)))),
        ("counter, full", Box::new(forms::window(&rules, 10, Coverage::Full))),
        ("counter, textbook", Box::new(forms::window(&rules, 10, Coverage::Textbook))),
    ];
    for (name, limiter) in forms {
        let (mut taken, mut early) = (0, 0);
        // Ten calls in each millisecond of a second: ten times as many as may pass.
        for t in 0..1_000 {
            taken += burst(&*limiter, 10, ms(t));
            if t < 100 {
                early = taken;
            }
            // Whatever the short rule refused cost the long one nothing.
            assert_eq!(limiter.usage_at(0, ms(t)), Some(taken), "{name} at {t} ms");
            assert!(limiter.usage_at(1, ms(t)) <= Some(200), "{name} at {t} ms");
        }
        assert_eq!((early, taken), (200, 1_000), "{name}");
        // Now the long rule refuses; the short one is empty and stays so.
        let denied = limiter.check_at(1, ms(999)).expect_err(name);
        assert_eq!((denied.quota.rule, denied.quota.limit), (0, 1_000), "{name}");
        assert_eq!(limiter.usage_at(1, ms(999)), Some(0), "{name}");
    }
}
