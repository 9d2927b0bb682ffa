//! A part of a limit, kept by this instance alone.
//!
//! # What
//! A history of the instance's own admissions, by the core's window counter: never over, and a permit comes back at most one
//! bucket late. The counter is as large for one limit as for another, so it is built for the largest one, `M`, and a part
//! `p` is asked for: "would `cost + (M - p)` fit?" holds if and only if `used + cost <= p`. So parts and limits may
//! change at any time, and the use so far is kept. For another window another counter is made, and begins with the use
//! that the old one shows, as if it were of that moment.
//!
//! # Invariants
//! | id | always | kept by | checked by |
//! |----|--------|---------|------------|
//! | I1 | an admission at part `p` leaves at most `p` used in any window | `History::decide` | `a_part_is_never_exceeded` |
//! | I2 | a refusal records nothing | the peek before the take | the same |
//! | I3 | a change of windows forgets no use before its old window has passed | `History::follow` | `another_window_forgets_nothing` |

use std::sync::{Mutex, PoisonError};

use tollgate::{Algorithm, ConfigError, Decision, Denied, Nanos, Quota, Reason, Rule, Window};

use crate::{
    BuildError, Mode,
    keyed::{Idle, Keyed},
};

/// The own admissions of one key: a counter for each rule.
struct History(Vec<Window>);

/// The own admissions of every key.
pub(crate) struct Local {
    /// `None`: there was no memory for it.
    histories: Keyed<Option<History>>,
    /// Shared by the keys for which there is no room.
    crowd: Mutex<History>,
}

// === impl History ===

impl History {
    fn new(rules: &[Rule]) -> Result<Self, ConfigError> {
        rules.iter().map(|rule| counter(rule.window)).collect::<Result<_, _>>().map(Self)
    }

    /// Makes the counters those of the rules' windows, should they have been of others. (I3)
    fn follow(&mut self, rules: &[Rule], now: Nanos) -> Result<(), ConfigError> {
        for (counted, rule) in self.0.iter_mut().zip(rules) {
            if counted.rules().first().is_none_or(|old| old.window != rule.window) {
                let anew = counter(rule.window)?;
                anew.try_acquire_at(counted.usage_at(0, now).unwrap_or(0).min(largest(&anew)), now);
                *counted = anew;
            }
        }
        Ok(())
    }

    /// Takes, takes part of, or looks at `cost` units: each rule must have them within its part. Returns how many.
    fn decide(&self, mode: Mode, cost: u64, parts: &[Rule], now: Nanos) -> (u64, Decision) {
        let left = || {
            let figures =
                |(rule, (window, part)): (usize, (&Window, &Rule))| figures(window, part.limit, rule, now);
            let tightest =
                self.0.iter().zip(parts).enumerate().map(figures).min_by_key(|quota| quota.remaining);
            tightest.unwrap_or(Quota::new(0, now))
        };
        let granted = if mode == Mode::Part { cost.min(left().remaining).max(1) } else { cost };
        if let Some(denied) = self.refusal(granted, parts, now) {
            return (0, Err(denied));
        }
        if mode != Mode::Peek {
            self.note(granted, now);
        }
        match self.refusal(1, parts, now) {
            Some(denied) if granted < cost => (granted, Err(denied)),
            _ => (granted, Ok(left())),
        }
    }

    /// The refusal with the longest wait, the first of equals.
    fn refusal(&self, cost: u64, parts: &[Rule], now: Nanos) -> Option<Denied> {
        let mut refusal: Option<Denied> = None;
        for (rule, (window, part)) in self.0.iter().zip(parts).enumerate() {
            if let Err(denied) = judge(window, part.limit, rule, cost, now)
                && refusal.is_none_or(|known| wait(&denied) > wait(&known))
            {
                refusal = Some(denied);
            }
        }
        refusal
    }

    /// Records what was admitted, here or elsewhere.
    fn note(&self, cost: u64, now: Nanos) {
        for window in &self.0 {
            window.try_acquire_at(cost, now);
        }
    }
}

impl Idle for Option<History> {
    fn is_idle(&self, now: Nanos) -> bool {
        self.as_ref().is_none_or(|history| history.0.iter().all(|window| window.usage_at(0, now) == Some(0)))
    }
}

/// The counter of a window, for the largest limit that its words can hold.
fn counter(window: Nanos) -> Result<Window, ConfigError> {
    let build = |limit| Window::builder(limit, window.into()).build();
    match build(u64::MAX) {
        Err(ConfigError::Limit { max, .. }) => build(max),
        other => other,
    }
}

/// The largest limit of a counter.
fn largest(window: &Window) -> u64 {
    window.rules().first().map_or(0, |rule| rule.limit)
}

/// How long until `units` fit a part of what a counter holds.
fn until(window: &Window, part: u64, units: u64, now: Nanos) -> Nanos {
    let hidden = largest(window).saturating_sub(part);
    window
        .peek_at(units.saturating_add(hidden), now)
        .err()
        .and_then(|denied| denied.retry_after())
        .unwrap_or_default()
}

/// What is left of a part.
fn figures(window: &Window, part: u64, rule: usize, now: Nanos) -> Quota {
    let whole = window.peek_at(0, now).unwrap_or_else(|denied| denied.quota);
    let used = whole.limit - whole.remaining;
    let mut quota = Quota::new(part, whole.at);
    quota.rule = rule;
    quota.remaining = part.saturating_sub(used);
    quota.next_after =
        if quota.remaining < part { until(window, part, quota.remaining + 1, now) } else { Nanos::ZERO };
    quota.reset_after = whole.reset_after;
    quota
}

/// Whether `cost` fits a part now.
fn judge(window: &Window, part: u64, rule: usize, cost: u64, now: Nanos) -> Result<(), Denied> {
    let reason = if cost > part {
        Reason::Never
    } else {
        match until(window, part, cost, now) {
            Nanos::ZERO => return Ok(()),
            _ if cost == 0 => return Ok(()),
            retry_after => Reason::Limit { retry_after },
        }
    };
    Err(Denied::new(reason, figures(window, part, rule, now)))
}

/// A refusal's wait; *never* is the longest.
fn wait(denied: &Denied) -> Nanos {
    denied.retry_after().unwrap_or(Nanos::from_nanos(u64::MAX))
}

// === impl Local ===

impl Local {
    /// Histories for `keys` keys, 512 bytes a key and rule.
    pub(crate) fn new(rules: &[Rule], keys: usize) -> Result<Self, BuildError> {
        Self::validate(rules)?;
        Ok(Self { histories: Keyed::new(keys), crowd: Mutex::new(History::new(rules)?) })
    }

    /// Refuses a limit that no counter of its window can hold.
    pub(crate) fn validate(rules: &[Rule]) -> Result<(), BuildError> {
        for (rule, window) in rules.iter().zip(History::new(rules)?.0) {
            let max = largest(&window);
            if rule.limit > max {
                return Err(BuildError::Limit { got: rule.limit, max });
            }
        }
        Ok(())
    }

    /// Decides on `cost` units by this instance's own use of `key`, each part given as a rule. Returns how many were taken,
    /// or could be.
    pub(crate) fn decide(
        &self,
        key: &[u8],
        mode: Mode,
        cost: u64,
        parts: &[Rule],
        now: Nanos,
    ) -> (u64, Decision) {
        self.with(key, parts, now, |history| history.decide(mode, cost, parts, now))
    }

    /// Records what was admitted elsewhere on this instance's behalf.
    pub(crate) fn note(&self, key: &[u8], cost: u64, rules: &[Rule], now: Nanos) {
        self.with(key, rules, now, |history| history.note(cost, now));
    }

    fn with<R>(&self, key: &[u8], rules: &[Rule], now: Nanos, act: impl Fn(&History) -> R) -> R {
        let follows = |history: &mut History| history.follow(rules, now).ok().map(|()| act(history));
        // Such counters were built when the rules were validated, so they can be built again; if not (no memory), the crowd
        // takes the key in.
        let new = || History::new(rules).ok();
        let own = self.histories.with(key, now, new, |history| history.as_mut().and_then(follows));
        own.flatten().unwrap_or_else(|| {
            let mut crowd = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
            follows(&mut crowd).unwrap_or_else(|| act(&crowd))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"k";

    #[test]
    fn a_part_is_never_exceeded() {
        let window = Nanos::from_millis(1_000);
        let rules = [Rule { limit: 100, window }, Rule { limit: 1_000, window: Nanos::from_millis(7_001) }];
        let local = Local::new(&rules, 10).unwrap();
        let mut admitted: Vec<(Nanos, u64)> = Vec::new();
        let mut seed = 1u64;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = |n: u64, shift: u32| (seed >> shift) % n;
            let now = Nanos::from_millis(10_000 + step * 3);
            let parts = [1 + random(40, 20), 900 + random(100, 30)];
            let rules = [0, 1].map(|i| Rule { limit: parts[i], ..rules[i] });
            let cost = 1 + random(4, 40);
            let used = |span: Nanos| -> u64 {
                admitted.iter().filter(|(at, _)| *at + span > now).map(|(_, units)| units).sum()
            };
            let inside = [used(window), used(rules[1].window)];
            match local.decide(KEY, Mode::Take, cost, &rules, now).1 {
                Ok(quota) => {
                    assert!(inside[0] + cost <= parts[0] && inside[1] + cost <= parts[1], "step {step}");
                    assert!(quota.remaining + inside[quota.rule] + cost <= parts[quota.rule]);
                    admitted.push((now, cost));
                }
                Err(denied) if denied.reason == Reason::Never => assert!(cost > parts[0]),
                Err(denied) => {
                    let retry = denied.retry_after().unwrap();
                    assert!(retry > Nanos::ZERO);
                    let refuses = |at| local.decide(KEY, Mode::Peek, cost, &rules, at).1.is_err();
                    assert!(
                        refuses(now) && refuses(now + retry - Nanos::from_nanos(1)) && !refuses(now + retry)
                    );
                }
            }
        }
        assert!(admitted.len() > 1_000);
    }

    #[test]
    fn another_window_forgets_nothing() {
        let rule = |limit, secs| [Rule { limit, window: Nanos::from_secs(secs) }];
        let local = Local::new(&rule(5, 60), 10).unwrap();
        let admitted = |rule: &[Rule], secs: u64| {
            let at = Nanos::from_secs(1_000 + secs);
            (0..9).filter(|_| local.decide(KEY, Mode::Take, 1, rule, at).1.is_ok()).count()
        };
        assert_eq!(admitted(&rule(3, 60), 0), 3);
        assert_eq!(admitted(&rule(5, 3_600), 50), 2, "an hour: the three count as of now");
        assert_eq!(admitted(&rule(5, 3_600), 3_600), 0);
        assert_eq!(admitted(&rule(5, 3_600), 4_050), 5);
        assert_eq!(admitted(&rule(7, 1), 4_050), 2, "a second");
        assert_eq!(admitted(&rule(7, 1), 4_052), 7);
    }

    #[test]
    fn keys_without_room_share_one_history() {
        let five = [Rule { limit: 5, window: Nanos::from_secs(60) }];
        let local = Local::new(&five, 1).unwrap();
        let admitted = (0..1_000u32)
            .filter(|key| local.decide(&key.to_be_bytes(), Mode::Take, 1, &five, Nanos::ZERO).1.is_ok())
            .count();
        assert_eq!(admitted, 16 + 5, "a key for each part of the map, and the crowd's five");
    }
}
