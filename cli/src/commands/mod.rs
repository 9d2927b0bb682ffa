//! The commands: each joins what was asked for, what does the work, and what is printed.

mod bench;
mod plan;
mod replay;
mod shell;
mod simulate;

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use serde::Serialize;

pub(crate) use self::{
    bench::bench,
    plan::plan,
    replay::replay,
    shell::{completions, man},
    simulate::simulate,
};
use crate::{
    failure::Failure,
    input::{Options, Summary},
    json::{self, Input, LeftOut, Outcome},
    lineup::{Name, Settings, Unfit},
    output,
    picture::{self, Occupancy, Panel, Series, Traffic},
    replay::{Replay, Verdict},
    text,
    timeline::Timeline,
};

/// Everything over time, entry by entry.
struct Film {
    timelines: Vec<Timeline>,
}

/// Prints a report as one line of JSON or, without `json`, as text that may have colours.
fn print(report: &impl Serialize, json: bool, text: impl FnOnce(bool) -> String) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if json {
        serde_json::to_writer(&mut out, report)?;
        writeln!(out)?;
    } else {
        out.write_all(text(output::coloured()).as_bytes())?;
    }
    out.flush()
}

/// Checks what two options say together.
fn check_range(input: &Options) -> Result<(), Failure> {
    match (input.from, input.to) {
        (Some(from), Some(to)) if from >= to => {
            let [from, to] = [from, to].map(text::rfc3339);
            Err(Failure::Usage(format!("--from {from} is not before --to {to}")))
        }
        _ => Ok(()),
    }
}

/// Checks, before a line is read, that a file can be written and is not one of the logs.
fn check_file(path: &Path, input: &Options) -> Result<(), Failure> {
    if input.files.iter().any(|log| log.exists() && same_file(log, path)) {
        return Err(Failure::Usage(format!(
            "{} is one of the logs, and would be overwritten",
            path.display()
        )));
    }
    Ok(output::check(path)?)
}

/// Whether two names are those of one file that is there, or of one that is not there yet in the same folder. A device
/// or a pipe is no file.
fn same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| match fs::canonicalize(path) {
        Ok(path) => path.is_file().then_some(path),
        Err(_) => {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
        }
    };
    place(one).is_some_and(|one| Some(one) == place(other))
}

/// What was read, as the reports tell it.
fn told(input: &Options, summary: Summary, keys: usize, span: Option<(u64, u64)>) -> Input {
    Input {
        files: summary.files,
        lines: summary.lines,
        requests: summary.requests,
        skipped: summary.skipped,
        filtered: summary.filtered,
        keys: keys as u64,
        first: span.map(|(first, _)| text::rfc3339(first)),
        last: span.map(|(_, last)| text::rfc3339(last)),
        order: input.order.to_string(),
        out_of_order: summary.out_of_order,
        zone_assumed: summary.zone_assumed,
        bad: summary.bad.into_iter().map(json::BadLine::from).collect(),
        trailing_garbage: summary.trailing_garbage,
    }
}

/// Gathers the algorithms that take part: what `all` names may be left out, unless a value given to an option is to
/// blame; what was asked for by name may not.
fn lineup(
    names: &[Name],
    all: bool,
    settings: &Settings,
    ordered: bool,
) -> Result<(Replay, Vec<LeftOut>), Failure> {
    let mut replay = Replay::new(ordered);
    let (mut takes_part, mut left_out) = (false, Vec::new());
    for &name in names {
        match replay.add(name, settings) {
            Ok(()) => takes_part = true,
            Err(why) if all => {
                if let Some(option) = settings.to_blame(&why) {
                    return Err(Failure::Usage(format!("{name}: {why} ({option})")));
                }
                left_out.push(LeftOut { algorithm: name.as_str(), why: why.to_string() });
            }
            Err(why @ Unfit::OneRule(_)) => {
                let who = format!("--algorithm {name}: {name} {why}");
                return Err(Failure::Usage(format!("{who} (only log and window take several)")));
            }
            Err(why) => return Err(Failure::Usage(format!("--algorithm {name}: {why}"))),
        }
    }
    match left_out.first() {
        Some(first) if !takes_part => {
            Err(Failure::Usage(format!("no algorithm takes these rules: {}: {}", first.algorithm, first.why)))
        }
        _ => Ok((replay, left_out)),
    }
}

// === impl Film ===

impl Film {
    /// Of so many entries.
    fn new(entries: usize) -> Self {
        Self { timelines: vec![Timeline::default(); entries] }
    }

    fn take(&mut self, verdict: Verdict) {
        if let Some(timeline) = self.timelines.get_mut(verdict.entry) {
            timeline.count(verdict.at, verdict.admitted, verdict.level);
        }
    }

    /// The first entry's.
    fn traffic(&self) -> Timeline {
        self.timelines.first().cloned().unwrap_or_default()
    }

    /// The pictures of all entries, as SVG.
    fn svg(&self, settings: &Settings, outcomes: &[Outcome]) -> Result<String, picture::Error> {
        let (rule, traffic) = (&settings.rules[0], self.traffic());
        let name = |outcome: &Outcome| outcome.algorithm.to_owned();
        let by = outcomes.first().map_or(String::new(), name);
        let window_ns = rule.window.as_nanos();
        let limit = format!("{by} of {} per {}", text::grouped(rule.limit), text::span(window_ns));
        let named = outcomes.iter().map(name).zip(&self.timelines);
        let series = named.map(|(name, timeline)| Series { name, timeline: timeline.clone() }).collect();
        let traffic = Traffic { by: limit, timeline: &traffic };
        let occupancy = Occupancy { limit: rule.limit, window_ns, keys: None, series };
        let panels: [&dyn Panel; 2] = [&traffic, &occupancy];
        picture::sheet(&panels)
    }
}

// === impl json ===

impl From<&tollgate::Rule> for json::Rule {
    fn from(rule: &tollgate::Rule) -> Self {
        Self { limit: rule.limit, window_ns: rule.window.as_nanos() }
    }
}

impl From<crate::input::BadLine> for json::BadLine {
    fn from(bad: crate::input::BadLine) -> Self {
        Self { file: bad.file, line: bad.line, why: bad.why.into(), text: bad.text }
    }
}
