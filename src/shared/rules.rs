//! Rules that lie in a region and may change, and what a process has of them.
//!
//! # What
//! The region holds the present rules alone (`publication.rs`): no size, no index, no divisor. Each process derives settings from
//! them by its own configuration, as a builder would, once for each change that it notices: a call loads the region's state
//! word and compares its tag with that of its process's copy.
//!
//! # Invariants
//! | id | always                                                                       | kept by           |
//! |----|--------------------------------------------------------------------------------|-------------------|
//! | I1 | a call is judged by settings that were derived from the rules in force when it looked, or by later ones | `ask`: the tag lies in the copy |
//! | I2 | nothing read from a region is used but as rules that the process's own configuration takes | `derived` |
//!
//! Rules that it does not take, which no process of this configuration publishes, leave a process with those it had.
//!
//! # Progress
//! Calls wait for nobody: who finds another thread refreshing the copy uses settings on its own stack. That goes on in a child that was forked
//! during a refresh, where that thread is not: its calls derive settings each time, from the present change on.

use bytemuck::NoUninit;

use super::publication::Publication;
use crate::{
    ConfigError, Nanos, RULES_MAX, Rule, Rules,
    live::{Published, Settings},
};

/// Halves of rules: how many follow, then those of each limit and window.
pub(super) const HALVES: usize = 1 + 4 * RULES_MAX;

/// The rules of a region that may change: a state word, and two slots.
pub(super) type Present = Publication<HALVES>;

/// How settings get other rules.
pub(super) type WithRules<S> = fn(&S, Rules) -> Result<S, ConfigError>;

/// What a process has of a region's rules.
pub(super) struct Follower<S> {
    with_rules: WithRules<S>,
    copy: Published<Tagged<S>>,
}

/// Settings, and the tag of the rules that they are of.
#[derive(Clone, Copy)]
#[repr(C)]
struct Tagged<S> {
    tag: u64,
    settings: S,
}

// === rules ===

/// Rules as halves.
pub(super) fn halves(rules: &Rules) -> [u32; HALVES] {
    let mut halves = [0; HALVES];
    halves[0] = 4 * rules.len() as u32;
    let (of_rules, _) = halves[1..].as_chunks_mut::<4>();
    for (halves, rule) in of_rules.iter_mut().zip(rules.iter()) {
        let (limit, window) = (rule.limit, rule.window.as_nanos());
        *halves = [(limit >> 32) as u32, limit as u32, (window >> 32) as u32, window as u32];
    }
    halves
}

/// Halves of any bits as rules, to be checked: as many as they say.
pub(super) fn rules(halves: &[u32; HALVES]) -> Rules {
    let word = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let (of_rules, _) = halves[1..].as_chunks::<4>();
    let list: [Rule; RULES_MAX] = core::array::from_fn(|at| {
        let [limit, limit_low, window, window_low] = of_rules[at];
        Rule { limit: word(limit, limit_low), window: Nanos::from_nanos(word(window, window_low)) }
    });
    Rules::of(&list[..(halves[0] as usize / 4).min(RULES_MAX)])
}

// === impl Tagged ===

// SAFETY: contract of `NoUninit`: in C's order, a word and then whole words (I4 of `live`), so no padding.
unsafe impl<S: Settings> NoUninit for Tagged<S> {}

impl<S: Settings> Settings for Tagged<S> {
    #[inline(always)]
    fn in_use(mut fetch: impl FnMut(usize) -> u64) {
        fetch(0);
        S::in_use(|place| fetch(1 + place));
    }
}

// === impl Follower ===

impl<S: Settings> Follower<S> {
    /// Begins with the settings of the configuration.
    pub(super) fn new(first: S, with_rules: WithRules<S>) -> Self {
        Self { with_rules, copy: Published::new(Tagged { tag: 0, settings: first }) }
    }

    /// Asks by the rules in force.
    #[inline(always)]
    pub(super) fn ask<R>(&self, present: &Present, ask: impl FnOnce(&S) -> R) -> R {
        let tag = present.present();
        self.copy.read(|copy| {
            if copy.tag == u64::from(tag) {
                return ask(&copy.settings);
            }
            ask(&self.refreshed(present, copy))
        })
    }

    /// The settings of other rules than those of the copy, which is replaced.
    #[cold]
    #[inline(never)]
    fn refreshed(&self, present: &Present, copy: &Tagged<S>) -> S {
        // A slot that is not whole was written by somebody hostile.
        let Ok((tag, halves)) = present.read() else { return copy.settings };
        let settings = if tag == 0 {
            self.copy.first().settings
        } else {
            self.derived(rules(&halves)).unwrap_or(copy.settings)
        };
        self.copy.try_replace(&Tagged { tag: tag.into(), settings });
        settings
    }

    /// The settings of these rules.
    pub(super) fn derived(&self, rules: Rules) -> Result<S, ConfigError> {
        (self.with_rules)(&self.copy.first().settings, rules)
    }
}

#[cfg(test)]
mod tests {
    use core::{cell::Cell, time::Duration};

    use super::*;
    use crate::{Config, Log, LogConfig};

    std::thread_local! {
        static DERIVED: Cell<u32> = const { Cell::new(0) };
    }

    fn with_rules(config: &LogConfig, rules: Rules) -> Result<LogConfig, ConfigError> {
        DERIVED.set(DERIVED.get() + 1);
        crate::algorithm::WithRules::with_rules(config, rules)
    }

    fn derived() -> u32 {
        DERIVED.replace(0)
    }

    fn rule(limit: u64) -> Rule {
        Rule { limit, window: Nanos::from_nanos(1 << 40 | 5) }
    }

    #[test]
    fn rules_come_back_from_halves() {
        let list: [Rule; RULES_MAX] = core::array::from_fn(|n| rule((n as u64 + 1) << 31));
        for len in 0..=RULES_MAX {
            let some = Rules::of(&list[..len]);
            assert_eq!(rules(&halves(&some)), some);
        }
        assert_eq!(rules(&[u32::MAX; HALVES]).len(), RULES_MAX, "as many as there can be");
    }

    /// Settings are derived once for each change, and by each call while the copy is being written: nobody waits.
    #[test]
    fn settings_are_derived_once_and_nobody_waits() {
        let config = Log::builder(5, Duration::from_secs(1)).config().unwrap();
        let (present, follower) = (Present::default(), Follower::new(config, with_rules));
        let limit = || follower.ask(&present, |config| Config::rules(config)[0].limit);
        assert_eq!((limit(), derived()), (5, 0));

        present.set(&halves(&Rules::of(&[rule(3)])));
        assert_eq!(((0..10).map(|_| limit()).sum(), derived()), (30_u64, 1));

        present.set(&halves(&Rules::of(&[rule(4)])));
        follower.copy.hold(|| assert_eq!(((0..10).map(|_| limit()).sum(), derived()), (40_u64, 10)));
        assert_eq!(((0..10).map(|_| limit()).sum(), derived()), (40_u64, 1));

        // None that this configuration takes: asked once, and the last ones kept.
        present.set(&halves(&Rules::of(&[rule(6)])));
        assert_eq!(((0..10).map(|_| limit()).sum(), derived()), (40_u64, 1));
    }
}
