//! How the cost goes with the limit, the buckets, the window, a gap, and with what expires.

use std::{collections::VecDeque, hint::black_box, time::Duration};

use tollgate::Nanos;
use tollgate_benches::{Axis, Point, Row, START, clock_alone, expiries, flat, gaps};

use crate::{
    machine::Switches,
    markdown::{Table, ns, times},
    measure::{Bench, Figure, Measured},
    peers::{Deque, Limits, Ring, Summed, Total},
};

/// A row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) series: &'static str,
    pub(crate) axis: Axis,
    pub(crate) at: u64,
}

/// Nanoseconds a call along the axes.
pub(crate) type Shapes = Measured<Label, 1>;

/// Nanoseconds of the one call before which a full log of so many permits expires.
pub(crate) type Expired = Measured<&'static str, 1>;

pub(crate) const LOG_FLOOR_ADMITTED: &str = "floor of a log, admitted";
pub(crate) const CLOCK: &str = "the clock alone";
pub(crate) const EXPIRE: u64 = 1_000_000;

const SECOND: Duration = Duration::from_secs(1);

/// A peer's row: admitted at half the rate that its limit allows, or refused.
fn peer<L: Limits>(series: &'static str, axis: Axis, at: u64, limit: u64, admits: bool, limiter: L) -> Point {
    let step = if admits { SECOND * 2 / limit as u32 } else { Duration::ZERO };
    while !admits && limiter.try_acquire(START) {}
    let name = format!("{series}, {axis:?} {at}");
    let row = Row::acts(name, admits, step, move |now| black_box(&limiter).try_acquire(black_box(now)));
    Point { series, axis, at, row }
}

/// The deque by its limit, and sums by their buckets.
fn peers() -> Vec<Point> {
    const WINDOW: Nanos = Nanos::from_secs(1);
    let mut points = Vec::new();
    for limit in (1..=7).map(|digits| 10_u64.pow(digits)) {
        let ring = Ring::new(limit, WINDOW);
        points.push(peer(LOG_FLOOR_ADMITTED, Axis::Limit, limit, limit, true, ring));
    }
    for limit in [10, 1_000, 100_000, 10_000_000] {
        let deque = || Deque::<parking_lot::Mutex<VecDeque<Nanos>>>::new(limit, WINDOW);
        points.push(peer("deque, parking_lot, admitted", Axis::Limit, limit, limit, true, deque()));
        points.push(peer("deque, parking_lot, refused", Axis::Limit, limit, limit, false, deque()));
    }
    for buckets in [2, 10, 100, 1_000, 10_000] {
        let (axis, plenty) = (Axis::Buckets, 100_000_000);
        let summed = |limit| Summed::new(limit, WINDOW, buckets);
        let total = |limit| Total::new(limit, WINDOW, buckets);
        points.push(peer("buckets summed, mutex, admitted", axis, buckets, plenty, true, summed(plenty)));
        points.push(peer("buckets summed, mutex, refused", axis, buckets, 1_000, false, summed(1_000)));
        points.push(peer("buckets, running total, admitted", axis, buckets, plenty, true, total(plenty)));
    }
    points
}

/// Rows along the axes.
pub(crate) fn measure(rounds: usize, calls: u64) -> Shapes {
    let points = flat().into_iter().chain(gaps()).chain(peers());
    let benches = points.map(|mut point| {
        let label = Label { series: point.series, axis: point.axis, at: point.at };
        Bench::new(label, move || {
            let switches = Switches::of_thread();
            let span = point.row.time(calls).as_nanos() as f64;
            let disturbed = Switches::of_thread().since(switches) > 0;
            Figure { values: [span / calls as f64], disturbed }
        })
    });
    Measured::rounds(rounds, benches.collect())
}

/// The calls before which a million entries expire.
pub(crate) fn measure_expiry(rounds: usize) -> Expired {
    let figure = |ns| Figure { values: [ns], disturbed: false };
    let mut benches = vec![Bench::new(CLOCK, move || figure(clock_alone(1_000).as_nanos() as f64 / 1_000.0))];
    benches.extend(
        expiries(EXPIRE)
            .into_iter()
            .map(|mut expiry| Bench::new(expiry.name, move || figure(expiry.time(1).as_nanos() as f64))),
    );
    Measured::rounds(rounds, benches)
}

impl Shapes {
    /// The greatest of a series along an axis, as a multiple of the least; and of those from `least` to `most` on it.
    pub(crate) fn spread(&self, series: &str, axis: Axis, most: u64) -> f64 {
        let of = |row: &&crate::measure::Series<Label, 1>| {
            (row.label.series, row.label.axis) == (series, axis) && row.label.at <= most
        };
        let medians = || self.series.iter().filter(of).map(|row| row.median(0));
        medians().fold(f64::NAN, f64::max) / medians().fold(f64::NAN, f64::min)
    }

    /// The rows of an axis, a table.
    pub(crate) fn table(&self, axis: Axis, name: &str) -> String {
        let rows = || self.series.iter().filter(move |row| row.label.axis == axis);
        let (mut places, mut names) = (Vec::new(), Vec::new());
        for row in rows() {
            if !places.contains(&row.label.at) {
                places.push(row.label.at);
            }
            if !names.contains(&row.label.series) {
                names.push(row.label.series);
            }
        }
        let heads = places.iter().map(|&at| if axis == Axis::Window { span(at) } else { at.to_string() });
        let heads: Vec<String> =
            [format!("{name}, ns")].into_iter().chain(heads).chain(["max / min".into()]).collect();
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        for series in names {
            let figure = |&at: &u64| ns(self.median(&Label { series, axis, at }));
            let spread = times(self.spread(series, axis, u64::MAX));
            table.row([series.to_owned()].into_iter().chain(places.iter().map(figure)).chain([spread]));
        }
        table.to_string()
    }
}

/// A window, short.
fn span(ns: u64) -> String {
    match ns {
        1_000_000 => "1 ms".into(),
        ns => match ns / 1_000_000_000 {
            60 => "1 min".into(),
            3_600 => "1 h".into(),
            86_400 => "1 day".into(),
            seconds => format!("{seconds} s"),
        },
    }
}

/// The table of expiries.
pub(crate) fn expiry_table(expired: &Expired) -> String {
    let mut table = Table::new(&["a million expire", "ns"]);
    for row in &expired.series {
        table.row([row.label.to_owned(), ns(row.median(0))]);
    }
    table.to_string()
}
