//! Every form of the histories under test, built from the same rules.

use std::time::Duration;

use tollgate::{Algorithm, ConfigError, Coverage, Log, Rule, Window};

/// An exact log for costs up to `max_cost`; for any cost with `None`.
pub(crate) fn log(rules: &[Rule], max_cost: Option<u64>) -> Log {
    let (first, rest) = rules.split_first().expect("a rule");
    let mut builder = Log::builder(first.limit, first.window.into());
    for rule in rest {
        builder = builder.rule(rule.limit, rule.window.into());
    }
    if let Some(max) = max_cost {
        builder = builder.max_cost(max);
    }
    builder.build().expect("valid rules")
}

/// Both forms of the exact log: for any cost, and the faster one for cost 1.
pub(crate) fn logs(limit: u64, window: Duration) -> [Log; 2] {
    [None, Some(1)].map(|max_cost| log(&[Rule::new(limit, window)], max_cost))
}

/// A window counter with its edges at the clock's zero.
pub(crate) fn window(rules: &[Rule], buckets: u64, coverage: Coverage) -> Window {
    shifted(rules, buckets, coverage, Duration::ZERO)
}

/// A window counter with its edges at `phase`.
pub(crate) fn shifted(rules: &[Rule], buckets: u64, coverage: Coverage, phase: Duration) -> Window {
    let (first, rest) = rules.split_first().expect("a rule");
    let mut builder = Window::builder(first.limit, first.window.into());
    for rule in rest {
        builder = builder.rule(rule.limit, rule.window.into());
    }
    builder.buckets(buckets).coverage(coverage).phase(phase).build().expect("valid rules")
}

/// The largest limit that a counter with buckets of this width and phase takes: the narrower, the smaller.
pub(crate) fn largest_limit(width: Duration, phase: Duration) -> u64 {
    match Window::builder(u64::MAX, width).buckets(1).phase(phase).build() {
        Ok(_) => u64::MAX,
        Err(ConfigError::Limit { got: u64::MAX, max }) => max,
        Err(other) => panic!("{other}"),
    }
}

/// Both forms of the log and both coverages of a counter with `buckets` to the window.
pub(crate) fn all(limit: u64, window: Duration, buckets: u64) -> Vec<(&'static str, Box<dyn Algorithm>)> {
    let [any, unit] = logs(limit, window);
    let rules = [Rule::new(limit, window)];
    vec![
        ("log, any cost", Box::new(any)),
        ("log, cost 1", Box::new(unit)),
        ("counter, full", Box::new(self::window(&rules, buckets, Coverage::Full))),
        ("counter, textbook", Box::new(self::window(&rules, buckets, Coverage::Textbook))),
    ]
}

/// How many buckets longer than its window a counter remembers.
pub(crate) fn late(coverage: Coverage) -> u64 {
    match coverage {
        Coverage::Full => 1,
        Coverage::Textbook => 0,
    }
}
