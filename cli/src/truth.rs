//! The truth about one algorithm's answers, told by a naive oracle that knows nothing of how they were made.
//!
//! # What
//! Keeps the plain times of what was admitted, key by key, and counts them: how many stood in any true window
//! `(t - W, t]` at worst, and which refusals were made although that window had room.
//!
//! # Invariants
//! | id | always                                                              | kept by                   |
//! |----|---------------------------------------------------------------------|---------------------------|
//! | I1 | arrivals of one key never go back, nor do its admissions            | the caller; debug asserts |
//! | I2 | a key's list holds every admission younger than its longest window  | `Truth::forget`           |
//!
//! By I1 the window that ends at an admission holds as many as any window that ends later and holds it, so
//! looking at those alone finds the peak.

use std::collections::VecDeque;

use tollgate::Rule;

/// What one algorithm really did.
pub(crate) struct Truth {
    rules: Vec<Rule>,
    /// The longest window.
    reach: u64,
    /// By key: when its requests passed, oldest first (I2). A queue's may lie ahead of the newest arrival.
    passed: Vec<VecDeque<u64>>,
    /// By rule: the largest number that passed within one window of one key.
    peaks: Vec<u64>,
    admitted: u64,
    refused: u64,
    false_refusals: u64,
}

// === impl Truth ===

impl Truth {
    /// The truth about nothing yet.
    pub(crate) fn new(rules: &[Rule]) -> Self {
        Self {
            rules: rules.to_vec(),
            reach: rules.iter().map(|rule| rule.window.as_nanos()).max().unwrap_or(0),
            passed: Vec::new(),
            peaks: vec![0; rules.len()],
            admitted: 0,
            refused: 0,
            false_refusals: 0,
        }
    }

    /// A request of `key` came at `now` and passes at `at`: at once, or later out of a queue. How many of the key then
    /// stand in the window of the first rule; 0 without a rule.
    pub(crate) fn admit(&mut self, key: usize, now: u64, at: u64) -> u64 {
        self.forget(key, now);
        let passed = &mut self.passed[key];
        debug_assert!(now <= at && passed.back().is_none_or(|&last| last <= at), "I1");
        passed.push_back(at);
        let mut first = None;
        for (rule, peak) in self.rules.iter().zip(&mut self.peaks) {
            let level = in_window(passed, rule.window.as_nanos(), at);
            *peak = (*peak).max(level);
            first.get_or_insert(level);
        }
        self.admitted += 1;
        first.unwrap_or(0)
    }

    /// A request of `key` came at `now` and was refused: falsely, if every rule had room for it. How many of the key
    /// stand in the window of the first rule; 0 without a rule.
    pub(crate) fn refuse(&mut self, key: usize, now: u64) -> u64 {
        self.forget(key, now);
        let passed = &self.passed[key];
        let (mut room, mut first) = (true, None);
        for rule in &self.rules {
            let level = in_window(passed, rule.window.as_nanos(), now);
            room &= level < rule.limit;
            first.get_or_insert(level);
        }
        self.false_refusals += u64::from(room);
        self.refused += 1;
        first.unwrap_or(0)
    }

    /// Whether no window that ends at `now` or later holds an admission of `key`.
    pub(crate) fn is_quiet(&mut self, key: usize, now: u64) -> bool {
        self.forget(key, now);
        self.passed[key].is_empty()
    }

    /// Requests that were let pass.
    pub(crate) fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Requests that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Refusals made while the key's own admissions in the true window left room.
    pub(crate) fn false_refusals(&self) -> u64 {
        self.false_refusals
    }

    /// By rule: the largest number admitted of one key in any true window.
    pub(crate) fn peaks(&self) -> &[u64] {
        &self.peaks
    }

    /// Drops what no window that ends at `now` or later can hold.
    fn forget(&mut self, key: usize, now: u64) {
        if self.passed.len() <= key {
            self.passed.resize_with(key + 1, VecDeque::new);
        }
        let passed = &mut self.passed[key];
        while passed.front().is_some_and(|&at| age(now, at) >= i128::from(self.reach)) {
            passed.pop_front();
        }
    }
}

/// How many of `passed` lie in the window `(end - window, end]`.
fn in_window(passed: &VecDeque<u64>, window: u64, end: u64) -> u64 {
    let gone = passed.partition_point(|&at| age(end, at) >= i128::from(window));
    let come = passed.partition_point(|&at| at <= end);
    (come - gone) as u64
}

/// How long before `now` a request passed; negative for one still to come.
fn age(now: u64, at: u64) -> i128 {
    i128::from(now) - i128::from(at)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn truth(rules: &[(u64, u64)]) -> Truth {
        let rules: Vec<Rule> = rules.iter().map(|&(l, w)| Rule::new(l, Duration::from_nanos(w))).collect();
        Truth::new(&rules)
    }

    /// An admission exactly one window old has left, so the two never stand together.
    #[test]
    fn the_window_is_half_open() {
        let mut truth = truth(&[(1, 10)]);
        truth.admit(0, 5, 5);
        truth.admit(0, 15, 15);
        assert_eq!(truth.peaks(), [1]);
        truth.admit(0, 24, 24);
        assert_eq!(truth.peaks(), [2]);
    }

    #[test]
    fn a_refusal_is_false_only_when_every_rule_had_room() {
        let mut truth = truth(&[(2, 100), (1, 10)]);
        truth.refuse(0, 0);
        assert_eq!(truth.false_refusals(), 1);
        truth.admit(0, 0, 0);
        truth.refuse(0, 9); // The short rule is full.
        assert_eq!(truth.false_refusals(), 1);
        truth.refuse(0, 10);
        assert_eq!(truth.false_refusals(), 2);
        truth.admit(0, 20, 20);
        truth.refuse(0, 50); // The long rule is full.
        assert_eq!((truth.admitted(), truth.refused(), truth.false_refusals()), (2, 4, 2));
    }

    #[test]
    fn keys_do_not_mix() {
        let mut truth = truth(&[(1, 10)]);
        truth.admit(0, 1, 1);
        truth.admit(1, 1, 1);
        assert_eq!(truth.peaks(), [1]);
        truth.refuse(2, 1);
        assert_eq!(truth.false_refusals(), 1);
    }

    /// What waits in a queue has not passed yet: it fills windows later, not the one in which it came.
    #[test]
    fn a_queue_counts_when_it_lets_go() {
        let mut truth = truth(&[(2, 10)]);
        for at in [0, 5, 10] {
            truth.admit(0, 0, at);
        }
        assert_eq!(truth.peaks(), [2]);
        truth.refuse(0, 0);
        assert_eq!(truth.false_refusals(), 1);
        truth.refuse(0, 5);
        assert_eq!(truth.false_refusals(), 1);
        // The admission at 5 still stands in the window that ends at 14, seen from an arrival at 14.
        truth.admit(0, 14, 14);
        assert_eq!(truth.peaks(), [3]);
    }

    #[test]
    fn a_limit_of_0_has_no_room() {
        let mut truth = truth(&[(0, 10)]);
        truth.refuse(0, 3);
        assert_eq!((truth.false_refusals(), truth.peaks()), (0, &[0][..]));
    }

    #[test]
    fn memory_is_what_one_window_admits() {
        let mut truth = truth(&[(u64::MAX, 10)]);
        for now in 0..10_000 {
            truth.admit(0, now, now);
        }
        assert_eq!(truth.passed[0].len(), 10);
        assert_eq!(truth.peaks(), [10]);
    }
}
