//! What a call costs one thread: every limiter, admitted and refused, with the time passed in and with two clocks.

use std::time::Instant;

use tollgate_benches::START;

use crate::{
    drive::{Path, Time},
    lineup::{self, Contestant, Side},
    machine::Switches,
    markdown::{Table, ns, times},
    measure::{Bench, Figure, Measured},
};

/// A row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) path: Path,
    pub(crate) time: Time,
}

/// Every row's nanoseconds a call.
pub(crate) type Singles = Measured<Label, 1>;

const TIMES: [Time; 3] = [Time::Passed, Time::Precise, Time::Coarse];

fn bench(contestant: &'static Contestant, path: Path, time: Time, calls: u64) -> Option<Bench<Label, 1>> {
    let Contestant { name, step, own_clock, .. } = *contestant;
    contestant.build(path)?;
    if own_clock && time != Time::Precise {
        return None;
    }
    Some(Bench::new(Label { name, path, time }, move || {
        let subject = contestant.build(path).expect("built before");
        if path == Path::Refused {
            subject.fill(time);
        }
        let (warm, step) = (calls / 10, if path == Path::Admitted { step } else { tollgate::Nanos::ZERO });
        subject.batch(time, warm, START, step);
        let from = tollgate::Nanos::from_nanos(START.as_nanos() + warm * step.as_nanos());
        let (switches, begin) = (Switches::of_thread(), Instant::now());
        let admitted = subject.batch(time, calls, from, step);
        let (span, switches) = (begin.elapsed(), Switches::of_thread().since(switches));
        path.check(name, calls, admitted);
        Figure { values: [span.as_nanos() as f64 / calls as f64], disturbed: switches > 0 }
    }))
}

/// All of them.
pub(crate) fn measure(rounds: usize, calls: u64) -> Singles {
    let mut benches = Vec::new();
    for path in Path::BOTH {
        for time in TIMES {
            benches.extend(lineup::ALL.iter().filter_map(|it| bench(it, path, time, calls)));
        }
    }
    Measured::rounds(rounds, benches)
}

/// One table for each path.
pub(crate) fn tables(singles: &Singles) -> String {
    let mut text = String::new();
    for path in Path::BOTH {
        text += &format!("### {path:?}, one thread\n\n");
        let mut table = Table::new(&[
            "",
            "time passed, ns",
            "x floor",
            "x best peer",
            "precise clock, ns",
            "x floor",
            "x best peer",
            "coarse clock, ns",
            "x floor",
            "x best peer",
        ]);
        for it in lineup::ALL.iter().filter(|it| it.build(path).is_some()) {
            let mut cells = vec![it.name.to_owned()];
            for time in TIMES {
                let label = Label { name: it.name, path, time };
                let floor = Label { name: lineup::floor(path), ..label };
                let peer = singles.fastest(lineup::peers().map(|name| Label { name, ..label }));
                let of_peer = peer
                    .filter(|_| it.side != Side::Floor)
                    .map_or(f64::NAN, |peer| singles.ratio(&label, &peer));
                cells.extend([
                    ns(singles.median(&label)),
                    times(singles.ratio(&label, &floor)),
                    times(of_peer),
                ]);
            }
            table.row(cells);
        }
        text += &table.to_string();
        text += "\n";
    }
    text
}
