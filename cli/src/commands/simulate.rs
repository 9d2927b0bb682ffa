//! `tollgate simulate`.

use std::io::{self, BufWriter, Write};

use tollgate::Nanos;

use super::{Film, lineup, print};
use crate::{
    args::{SimulateJob, Trial},
    failure::Failure,
    json::Rule,
    output,
    progress::Bar,
    simulate::{Judged, Outline, render},
    text,
};

/// Makes arrivals and writes them as lines or, with a limit, judges them.
pub(crate) fn simulate(job: &SimulateJob) -> Result<(), Failure> {
    let end = Nanos::from_nanos(job.start) + Nanos::from_secs(job.seconds);
    if !end.in_range() {
        let (start, last) = (text::rfc3339(job.start), text::rfc3339(Nanos::MAX.as_nanos()));
        let times = format!("--start {start} and --seconds {} reach beyond {last}", job.seconds);
        return Err(Failure::Usage(times));
    }
    match &job.trial {
        None => Ok(lines(job)?),
        Some(trial) => judge(job, trial),
    }
}

fn lines(job: &SimulateJob) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    for arrival in job.arrivals.stream(job.start, job.seconds, job.seed) {
        writeln!(out, "{arrival}")?;
    }
    out.flush()
}

fn judge(job: &SimulateJob, trial: &Trial) -> Result<(), Failure> {
    let (mut replay, left_out) = lineup(&trial.names, trial.all, &trial.settings, true)?;
    if let Some(path) = &trial.plot {
        output::check(path)?;
    }
    let outline = Outline {
        seconds: job.seconds,
        seed: job.seed,
        rule: Rule::from(&trial.settings.rules[0]),
        by_sender: trial.by_sender,
        delay_ns: u64::try_from(trial.delay.as_nanos()).unwrap_or(u64::MAX),
    };
    let entries = trial.names.len() - left_out.len();
    let mut judged = Judged::new(entries, &outline);
    let mut film = Film::new(entries);
    let bar = Bar::counting("judging");
    for arrival in job.arrivals.stream(job.start, job.seconds, job.seed) {
        bar.request();
        let key = judged.arrive(arrival);
        replay.take(key, arrival.at, &mut |verdict| {
            judged.hear(verdict);
            film.take(verdict);
        })?;
    }
    replay.flush(&mut |verdict| {
        judged.hear(verdict);
        film.take(verdict);
    })?;
    drop(bar);

    let outcomes = replay.outcomes();
    if let Some(path) = &trial.plot {
        output::whole(path, &film.svg(&trial.settings, &outcomes)?)?;
    }
    let report = judged.report(outline, outcomes, left_out);
    print(&report, trial.json, |colour| render(&report, &film.traffic(), colour))?;
    Ok(())
}
