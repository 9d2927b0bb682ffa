//! Random rules, costs and clocks: every answer of the histories is the oracle's.

use std::time::Duration;

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};
use tollgate::{Algorithm, Coverage, Nanos, Rule};

use crate::{
    agrees::{Call, agrees},
    forms,
    oracle::Naive,
};

/// What the clock does before a call.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Stay,
    Forward(u64),
    /// To within a nanosecond of where an earlier call leaves the window of a rule, or a bucket after that.
    Edge {
        call: Index,
        rule: Index,
        late: bool,
        off: u64,
    },
    Back(u64),
    /// Ahead, by any power of two.
    Jump(u32),
    /// To any time at all.
    Anywhere(u64),
    /// Above the largest time.
    Beyond(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => Just(Step::Stay),
        60 => (0..12_u64).prop_map(Step::Forward),
        50 => (any::<Index>(), any::<Index>(), any::<bool>(), 0..3_u64)
            .prop_map(|(call, rule, late, off)| Step::Edge { call, rule, late, off }),
        15 => (1..40_u64).prop_map(Step::Back),
        6 => (0..62_u32).prop_map(Step::Jump),
        1 => (0..=Nanos::MAX.as_nanos()).prop_map(Step::Anywhere),
        2 => (Nanos::MAX.as_nanos() + 1..=u64::MAX).prop_map(Step::Beyond),
    ]
}

fn cost() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 50 => Just(1), 20 => 2..5_u64, 5 => 5..50_u64, 1 => Just(u64::MAX)]
}

pub(crate) fn limit() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 10 => 1..6_u64, 6 => 6..40_u64]
}

/// The clock's grain: the unit of windows and steps, so that edges are met at every scale.
pub(crate) fn scale() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(1), 1 => Just(7), 1 => Just(1_000), 1 => Just(1_000_000_007), 1 => Just(1 << 40)]
}

/// Where the clock stands at first.
pub(crate) fn origin() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0), 2 => 0..1_000_u64, 1 => (0..62_u32).prop_map(|bits| (1 << bits) - 1)]
}

/// The calls that the steps make, for windows and buckets of these lengths.
pub(crate) fn calls(
    steps: Vec<(Step, u64, bool)>,
    origin: u64,
    scale: u64,
    windows: &[u64],
    width: u64,
) -> Vec<Call> {
    let end = Nanos::MAX.as_nanos();
    let (mut now, mut past) = (origin, vec![origin]);
    let one = |(step, cost, quick)| {
        let next = match step {
            Step::Stay => now,
            Step::Forward(n) => now.saturating_add(n * scale),
            Step::Edge { call, rule, late, off } => {
                let start = call.get(&past[past.len().saturating_sub(8)..]);
                let due = start.saturating_add(*rule.get(windows)).saturating_add(u64::from(late) * width);
                (due + off).saturating_sub(1)
            }
            Step::Back(n) => now.saturating_sub(n * scale),
            Step::Jump(bits) => now + (1 << bits),
            Step::Anywhere(t) => t,
            // The clock itself does not go there.
            Step::Beyond(t) => return Call { cost, now: t, quick },
        };
        now = next.min(end);
        past.push(now);
        Call { cost, now, quick }
    };
    steps.into_iter().map(one).collect()
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<(Step, u64, bool)>> {
    vec((step(), cost(), any::<bool>()), 1..160)
}

fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// Limits of a log, and the bits of the newest time that they leave in its head.
fn spans() -> impl Strategy<Value = (u64, u32)> {
    select(&[(2, 61), (3, 60), (4, 60), (100, 55), (1 << 17, 45)][..])
}

/// How many halves of a span pass.
fn halves() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..4_u64, 1 => 0..1_u64 << 18]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The exact log, in its form for any cost, for a largest cost, and for cost 1.
    #[test]
    fn the_log_is_the_oracle(
        rules in vec((limit(), 1..40_u64), 1..=4),
        max_cost in prop_oneof![Just(None), Just(Some(1)), (1..8_u64).prop_map(Some)],
        steps in steps(),
        scale in scale(),
        origin in origin(),
    ) {
        let windows: Vec<u64> = rules.iter().map(|&(_, n)| n * scale).collect();
        let rules: Vec<Rule> = rules.iter().map(|&(limit, n)| Rule::new(limit, nanos(n * scale))).collect();
        let mut log = forms::log(&rules, max_cost);
        let oracle = || Naive::log(&rules).max_cost(max_cost.unwrap_or(u64::MAX));
        let calls = calls(steps, origin, scale, &windows, 0);
        agrees(&log, &mut oracle(), calls.iter().copied());
        log.reset();
        agrees(&log, &mut oracle(), calls.into_iter().take(20));
    }

    /// A log so large that its head can not hold a whole time: it counts from bases, which jumps leave behind.
    #[test]
    fn a_large_log_that_jumps_is_the_oracle(
        limit in limit(),
        window in 1..40_u64,
        steps in vec((step(), cost(), any::<bool>()), 1..80),
        bits in 30..45_u32,
    ) {
        let scale = 1 << bits;
        let rules = [Rule::new(limit, nanos(window * scale)), Rule::new(1 << 20, nanos(40 * scale))];
        let calls = calls(steps, 0, scale, &[window * scale], 0);
        agrees(&forms::log(&rules, None), &mut Naive::log(&rules), calls);
    }

    /// A log whose head counts from bases: times at the multiples of half its span where bases lie, at the ends of
    /// their reach, and a nanosecond to either side, up to the last moment there is; windows as long as that.
    #[test]
    fn the_log_is_the_oracle_around_its_bases(
        (limit, span_bits) in spans(),
        second in prop_oneof![Just(None), (2..6_u64).prop_map(Some)],
        windows in [(0..5_u64, 1..4_u64), (0..5_u64, 1..4_u64)],
        steps in vec((halves(), 0..3_u64, prop_oneof![0..4_u64, 90..=100_u64], any::<bool>()), 1..120),
        origin in 0..6_u64,
    ) {
        let around = |halves: u64, off: u64| {
            let at = halves.saturating_mul(1 << (span_bits - 1)).saturating_add(off);
            at.saturating_sub(1).min(Nanos::MAX.as_nanos())
        };
        let windows = windows.map(|(halves, off)| nanos(around(halves, off).max(1)));
        let mut rules = vec![Rule::new(limit, windows[0])];
        rules.extend(second.map(|limit| Rule::new(limit, windows[1])));
        let mut passed = origin;
        let calls = steps.into_iter().map(|(halves, off, cost, quick)| {
            passed += halves;
            Call { cost, now: around(passed, off), quick }
        });
        agrees(&forms::log(&rules, None), &mut Naive::log(&rules), calls);
    }

    /// The window counter: any number of buckets, both coverages, several rules, any phase.
    #[test]
    fn the_counter_is_the_oracle(
        first in limit(),
        // Each further window is so many buckets longer than the shortest.
        longer in vec((limit(), 0..30_u64), 0..=3),
        place in any::<Index>(),
        buckets in 1..14_u64,
        coverage in prop_oneof![Just(Coverage::Full), Just(Coverage::Textbook)],
        phase in any::<Index>(),
        steps in steps(),
        scale in scale(),
        parts in 1..5_u64,
        origin in origin(),
    ) {
        // A bucket of several steps of the clock, so that calls meet inside it.
        let width = parts * scale;
        let phase = nanos(phase.index(usize::try_from(width).expect("64 bits")) as u64);
        // The narrowest take few permits; their totals wrap all the time.
        let most = forms::largest_limit(nanos(width), phase);
        let rule = |limit: u64, n: u64| Rule::new(limit.min(most), nanos(n * width));
        let mut rules: Vec<Rule> = longer.iter().map(|&(limit, n)| rule(limit, buckets + n)).collect();
        rules.insert(place.index(rules.len() + 1), rule(first, buckets));
        let windows: Vec<u64> = rules.iter().map(|rule| rule.window.as_nanos()).collect();
        let mut counter = forms::shifted(&rules, buckets, coverage, phase);
        let oracle = || Naive::window(&rules, buckets, forms::late(coverage), phase);
        let calls = calls(steps, origin, scale, &windows, width);
        agrees(&counter, &mut oracle(), calls.iter().copied());
        counter.reset();
        agrees(&counter, &mut oracle(), calls.into_iter().take(20));
    }

    /// With buckets as wide as the clock's tick the textbook counter is an exact log.
    #[test]
    fn a_counter_with_buckets_of_a_tick_is_exact(
        limit in limit(),
        window in 1..40_u64,
        tick in prop_oneof![Just(1), Just(1_000)],
        steps in steps(),
        origin in origin(),
    ) {
        let rules = [Rule::new(limit.min(forms::largest_limit(nanos(tick), Duration::ZERO)), nanos(window * tick))];
        let counter = forms::window(&rules, window, Coverage::Textbook);
        let calls = calls(steps, origin, tick, &[window * tick], tick);
        let ticking = calls.into_iter().map(|call| Call { now: call.now - call.now % tick, ..call });
        agrees(&counter, &mut Naive::log(&rules), ticking);
    }

    /// A counter of one textbook bucket is the fixed window: it counts from the last edge.
    #[test]
    fn one_textbook_bucket_counts_from_the_last_edge(
        limit in limit(),
        window in 1_000..1_040_u64,
        steps in steps(),
    ) {
        let rules = [Rule::new(limit, nanos(window))];
        let counter = forms::window(&rules, 1, Coverage::Textbook);
        let (mut edge, mut used) = (0, 0);
        for Call { cost, now, .. } in calls(steps, 0, 100, &[window], window) {
            let here = now - now % window;
            let fresh = if here > edge { 0 } else { used };
            let admitted = now <= Nanos::MAX.as_nanos() && cost <= limit - fresh;
            prop_assert_eq!(counter.try_acquire_at(cost, Nanos::from_nanos(now)), admitted);
            if admitted && cost > 0 {
                (edge, used) = (edge.max(here), fresh + cost);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Long runs: the ring goes round hundreds of times.
    #[test]
    fn long_runs_are_the_oracle(
        limit in 1..12_u64,
        second in 1..12_u64,
        steps in vec((step(), 0..3_u64, any::<bool>()), 3_000),
    ) {
        // A jump to the end of time would leave the rest of the run standing there.
        let tame = |call: &(Step, u64, bool)| !matches!(call.0, Step::Jump(20..) | Step::Anywhere(_));
        let steps: Vec<_> = steps.into_iter().filter(tame).collect();
        let rules = [Rule::new(limit, nanos(40)), Rule::new(second, nanos(120))];
        let calls = calls(steps, 0, 1, &[40, 120], 8);
        for max_cost in [None, Some(1)] {
            let mut oracle = Naive::log(&rules).max_cost(max_cost.unwrap_or(u64::MAX));
            agrees(&forms::log(&rules, max_cost), &mut oracle, calls.iter().copied());
        }
        for coverage in [Coverage::Full, Coverage::Textbook] {
            let mut oracle = Naive::window(&rules, 5, forms::late(coverage), Duration::ZERO);
            agrees(&forms::window(&rules, 5, coverage), &mut oracle, calls.iter().copied());
        }
    }
}
