//! `tollgate replay`.

use super::{Film, check_file, check_range, lineup, print, told};
use crate::{
    args::ReplayJob,
    failure::Failure,
    input::{self, KeySpec, Order, Request},
    json::{Report, Rule},
    keys::Keys,
    output,
    progress::Bar,
    report,
};

/// Reads the input through the algorithms and prints the report.
pub(crate) fn replay(job: &ReplayJob) -> Result<(), Failure> {
    check_range(&job.input)?;
    let ordered = job.input.order == Order::Time;
    let (mut replay, left_out) = lineup(&job.names, job.all, &job.settings, ordered)?;
    if let Some(path) = &job.plot {
        check_file(path, &job.input)?;
    }
    // The first entry's traffic is shown in any case.
    let mut film = Film::new(if job.plot.is_some() { job.names.len() } else { 1 });
    let bar = Bar::new("replaying", &job.input.files);
    let mut keys = Keys::default();
    let mut take = |request: Request<'_>| {
        bar.request();
        let place = keys.place(request.key);
        replay.take(place, request.time, &mut |verdict| film.take(verdict)).map_err(Failure::from)
    };
    let summary = input::read::<Failure>(&job.input, &bar, &mut take)?;
    replay.flush(&mut |verdict| film.take(verdict))?;
    drop(bar);

    let named = !matches!(job.input.key, KeySpec::None);
    let report = Report {
        input: told(&job.input, summary, keys.len(), replay.span()),
        rules: job.settings.rules.iter().map(Rule::from).collect(),
        results: replay.outcomes(),
        left_out,
        top_refused: if named {
            keys.most_refused(job.top, |place| replay.counts(place))
        } else {
            Vec::new()
        },
    };
    if let Some(path) = &job.plot {
        output::whole(path, &film.svg(&job.settings, &report.results)?)?;
    }
    let key = job.input.key.to_string();
    print(&report, job.json, |colour| report::render(&report, &key, &film.traffic(), colour))?;
    Ok(())
}
