//! Rows along an axis: the limit, the buckets, the window, the empty buckets before a call.

use std::time::Duration;

use tollgate::{Log, Window};

use crate::{Row, SECOND};

/// What is varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Permits in a window.
    Limit,
    /// Buckets of a window.
    Buckets,
    /// The window, in nanoseconds.
    Window,
    /// Empty buckets passed over by every call, of 10 in a window.
    GapOf10,
    /// The same, of 1,000 in a window.
    GapOf1000,
}

/// A row at a place of an axis.
pub struct Point {
    /// What is called, and how the calls go.
    pub series: &'static str,
    /// What is varied.
    pub axis: Axis,
    /// Where on the axis.
    pub at: u64,
    /// The row.
    pub row: Row,
}

fn log(limit: u64, window: Duration) -> Log {
    Log::builder(limit, window).build().unwrap()
}

fn unit(limit: u64, window: Duration) -> Log {
    Log::builder(limit, window).max_cost(1).build().unwrap()
}

fn counter(limit: u64, buckets: u64, window: Duration) -> Window {
    Window::builder(limit, window).buckets(buckets).build().unwrap()
}

/// The largest limit that a counter takes for buckets of this width.
fn counter_limit(width: Duration) -> u64 {
    match Window::builder(u64::MAX, width).buckets(1).build() {
        Err(tollgate::ConfigError::Limit { max, .. }) => max,
        other => panic!("no limit is as large as that: {:?}", other.err()),
    }
}

fn point(series: &'static str, axis: Axis, at: u64, build: impl FnOnce(String) -> Row) -> Point {
    Point { series, axis, at, row: build(format!("{series}, {axis:?} {at}")) }
}

/// The same call whatever the limit, the buckets and the window, of which one is varied at a time. (A log that no longer
/// fits a cache pays its misses, a slot or two per call, read in order.)
pub fn flat() -> Vec<Point> {
    let mut points = Vec::new();
    for limit in (1..=7).map(|digits| 10u64.pow(digits)) {
        let (axis, step) = (Axis::Limit, SECOND * 2 / limit as u32);
        points.extend([
            point("log, admitted", axis, limit, |name| Row::admitted(name, log(limit, SECOND), step)),
            point("log, refused", axis, limit, |name| Row::refused(name, log(limit, SECOND))),
            point("log of single permits, admitted", axis, limit, |name| {
                Row::admitted(name, unit(limit, SECOND), step)
            }),
            point("log of single permits, refused", axis, limit, |name| {
                Row::refused(name, unit(limit, SECOND))
            }),
            point("counter, refused", axis, limit, |name| Row::refused(name, counter(limit, 10, SECOND))),
        ]);
    }
    // Long enough for a limit of which the narrowest bucket holds thousands: calls in the newest bucket are meant.
    let (window, most) = (SECOND * 400, 10_000);
    let limit = 100_000_000.min(counter_limit(window / most));
    for buckets in [2, 10, 100, 1_000, most] {
        let (axis, at, step) = (Axis::Buckets, u64::from(buckets), window * 2 / limit as u32);
        points.extend([
            point("counter, admitted", axis, at, |name| {
                Row::admitted(name, counter(limit, at, window), step)
            }),
            point("counter, refused", axis, at, |name| Row::refused(name, counter(1_000, at, window))),
        ]);
    }
    for window in [SECOND / 1_000, SECOND, SECOND * 60, SECOND * 3_600, SECOND * 86_400] {
        let (axis, at, step) = (Axis::Window, window.as_nanos() as u64, window * 2 / 1_000_000);
        let limit = counter_limit(window / 10).min(1 << 27);
        let counted = (window * 2 / limit as u32).max(Duration::from_nanos(1));
        points.extend([
            point("log, admitted", axis, at, |name| Row::admitted(name, log(1_000_000, window), step)),
            point("log, refused", axis, at, |name| Row::refused(name, log(1_000_000, window))),
            point("counter, admitted", axis, at, |name| {
                Row::admitted(name, counter(limit, 10, window), counted)
            }),
            point("counter, refused", axis, at, |name| Row::refused(name, counter(1_000, 10, window))),
        ]);
    }
    points
}

/// The counter's calls that come after empty buckets.
pub fn gaps() -> Vec<Point> {
    let mut points = Vec::new();
    for (buckets, axis) in [(10, Axis::GapOf10), (1_000, Axis::GapOf1000)] {
        for gap in [1, 10, 100, 1_000] {
            // Short, so that the longest gap leaves room for billions of calls within 146 years.
            let counter = counter(10_000, buckets, SECOND / 100);
            let step = Duration::from(counter.width()) * gap;
            points.push(point("counter, admitted", axis, gap.into(), |name| {
                Row::admitted(name, counter, step)
            }));
        }
    }
    points
}
