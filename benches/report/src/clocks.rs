//! What it costs to read a clock.

use std::{hint::black_box, time::Instant};

use tollgate::{Clock, Coarse, Precise};

use crate::{
    machine::Switches,
    markdown::{Table, ns},
    measure::{Bench, Figure, Measured},
};

/// Nanoseconds a reading.
pub(crate) type Clocks = Measured<&'static str, 1>;

fn bench<T>(name: &'static str, calls: u64, read: impl Fn() -> T + 'static) -> Bench<&'static str, 1> {
    Bench::new(name, move || {
        let (switches, begin) = (Switches::of_thread(), Instant::now());
        (0..calls).for_each(|_| drop(black_box(read())));
        let (span, switches) = (begin.elapsed(), Switches::of_thread().since(switches));
        Figure { values: [span.as_nanos() as f64 / calls as f64], disturbed: switches > 0 }
    })
}

fn system_coarse() -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: contract of `clock_gettime`: a `timespec` to fill.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    assert_eq!(status, 0, "clock_gettime");
    time
}

/// All of them.
pub(crate) fn measure(rounds: usize, calls: u64) -> Clocks {
    let (precise, coarse) = (Precise::new(), Coarse::new());
    let benches = vec![
        bench("precise (quanta)", calls, move || precise.now()),
        bench("coarse (quanta's cached time)", calls, move || coarse.now()),
        bench("std::time::Instant", calls, Instant::now),
        bench("clock_gettime, CLOCK_MONOTONIC_COARSE", calls, system_coarse),
    ];
    Measured::rounds(rounds, benches)
}

pub(crate) fn table(clocks: &Clocks) -> String {
    let mut table = Table::new(&["a reading of the clock", "ns"]);
    for row in &clocks.series {
        table.row([row.label.to_owned(), ns(row.median(0))]);
    }
    table.to_string()
}
