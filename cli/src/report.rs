//! The table for people: what each algorithm did, aligned, and below it all that the figures rest on.

use std::fmt::Write;

use crate::{
    json::{Input, Outcome, Report, TopKey},
    text::{Cell, RED, YELLOW, count, grouped, heads, plain, range, rounded, shown, span, table},
    timeline::{Bin, Timeline},
};

/// How wide a sparkline may be.
pub(crate) const SPARKLINE: usize = 60;

/// Writes the report as text, with colours if `colour`.
pub(crate) fn render(report: &Report, key: &str, traffic: &Timeline, colour: bool) -> String {
    let mut text = source(&report.input);
    let rules =
        report.rules.iter().map(|rule| format!("{} per {}", grouped(rule.limit), span(rule.window_ns)));
    let rules = rules.collect::<Vec<_>>().join(" and ");
    let _ = writeln!(text, "Limit: {rules}, {}", whose(&report.input, key));
    text.push_str(&sparkline(traffic));
    text.push('\n');
    text.push_str(&table(&results(report), colour));
    waits(&mut text, report);
    phases(&mut text, report);
    if !report.top_refused.is_empty() {
        let _ = writeln!(text, "\nRefused most by {}:\n", report.results[0].algorithm);
        text.push_str(&table(&top(&report.top_refused), colour));
    }
    let mut notes = Vec::new();
    for left in report.left_out.chunk_by(|a, b| a.why == b.why) {
        let names: Vec<&str> = left.iter().map(|left| left.algorithm).collect();
        notes.push(format!("left out: {} ({})", names.join(", "), left[0].why));
    }
    notes.extend(input_notes(&report.input));
    text.push_str(&listed(&notes));
    text
}

/// What was read: requests, files, and from when to when.
pub(crate) fn source(input: &Input) -> String {
    let files: Vec<String> = input.files.iter().map(|file| shown(file)).collect();
    let mut text = format!("{} of {}", count(input.requests, "request"), files.join(", "));
    if let (Some(first), Some(last)) = (&input.first, &input.last) {
        let _ = write!(text, ", {first} to {last}");
    }
    text.push('\n');
    text
}

/// Whom a limit is for.
pub(crate) fn whose(input: &Input, key: &str) -> String {
    match key {
        "none" => "for all together".to_owned(),
        _ => format!("for each of {} ({})", count(input.keys, "key"), shown(key)),
    }
}

/// A line that shows the traffic over time; nothing without any.
pub(crate) fn sparkline(traffic: &Timeline) -> String {
    match traffic.sparkline(SPARKLINE, Bin::requests) {
        blocks if blocks.is_empty() => blocks,
        blocks => format!("Traffic: {}\n", blocks.trim_end()),
    }
}

/// The rows of the main table.
fn results(report: &Report) -> Vec<Vec<Cell>> {
    let mut first = heads(["algorithm", "admitted", "refused"]);
    for rule in &report.rules {
        let of = if report.rules.len() > 1 { format!(" {}", span(rule.window_ns)) } else { String::new() };
        first.extend(heads([format!("peak{of}").as_str(), &format!("over{of}")]));
    }
    first.extend(heads(["false refusals", "bytes/key", "ns/check"]));

    let alarm = |n: u64, colour| (grouped(n), (n > 0).then_some(colour));
    let row = |outcome: &Outcome| {
        let mut cells =
            vec![plain(outcome.algorithm), plain(grouped(outcome.admitted)), plain(grouped(outcome.refused))];
        for rule in &outcome.rules {
            cells.extend([plain(grouped(rule.peak)), alarm(rule.over, RED)]);
        }
        cells.push(alarm(outcome.false_refusals, YELLOW));
        cells.push(plain(grouped(outcome.bytes_per_key)));
        cells.push(plain(format!("{:.1}", outcome.ns_per_check)));
        cells
    };
    [first].into_iter().chain(report.results.iter().map(row)).collect()
}

/// The rows of the keys refused most.
pub(crate) fn top(keys: &[TopKey]) -> Vec<Vec<Cell>> {
    let rows = keys
        .iter()
        .map(|top| vec![plain(shown(&top.key)), plain(grouped(top.refused)), plain(grouped(top.requests))]);
    [heads(["key", "refused", "requests"])].into_iter().chain(rows).collect()
}

/// How long the queue held what it admitted.
fn waits(text: &mut String, report: &Report) {
    for outcome in &report.results {
        let (Some(waits), Some(drops)) = (&outcome.waits, outcome.drops) else { continue };
        let [p50, p99, max] = [waits.p50_ns, waits.p99_ns, waits.max_ns].map(rounded);
        let _ = writeln!(
            text,
            "\n{} waits: p50 {p50}, p99 {p99}, max {max}; {} dropped",
            outcome.algorithm,
            grouped(drops)
        );
    }
}

/// What the place of the bucket edges does to the figures.
fn phases(text: &mut String, report: &Report) {
    let mut first = true;
    for outcome in &report.results {
        let Some(phases) = &outcome.phases else { continue };
        if std::mem::take(&mut first) {
            let _ = writeln!(text, "\nOver {} places of the bucket edges:", phases.tried);
        }
        let over: Vec<String> = phases.over.iter().map(|&over| range(over)).collect();
        let _ = writeln!(
            text,
            "  {}: admitted {}, over {}, false refusals {}",
            outcome.algorithm,
            range(phases.admitted),
            over.join(" and "),
            range(phases.false_refusals)
        );
    }
}

/// Everything about the input that a reader must know to trust the figures.
pub(crate) fn input_notes(input: &Input) -> Vec<String> {
    let mut notes = Vec::new();
    if input.out_of_order > 0 {
        let rule = match input.order.as_str() {
            "file" => "order file: a key's time never goes back, an older line takes its key's newest time",
            _ => "order time: sorted by time, equal times as in the file",
        };
        notes.push(format!("{} out of order; {rule}", count(input.out_of_order, "line")));
    }
    if input.zone_assumed > 0 {
        notes.push(format!("{} without a time zone, taken as UTC", count(input.zone_assumed, "line")));
    }
    if input.filtered > 0 {
        notes.push(format!("{} outside --from and --to", count(input.filtered, "line")));
    }
    if input.skipped > 0 {
        let mut note =
            format!("{} of {} could not be read", grouped(input.skipped), count(input.lines, "line"));
        for bad in &input.bad {
            let (file, why) = (shown(&bad.file), shown(&bad.why));
            let _ = write!(note, "\n    {file}:{}: {why}: {}", bad.line, shown(&bad.text));
        }
        if input.skipped > input.bad.len() as u64 {
            let _ = write!(note, "\n    and {} more", grouped(input.skipped - input.bad.len() as u64));
        }
        notes.push(note);
    }
    for file in &input.trailing_garbage {
        notes.push(format!("{}: what follows its compressed bytes was left alone", shown(file)));
    }
    notes
}

/// The notes below everything else.
pub(crate) fn listed(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    notes.iter().fold("\nNotes:\n".to_owned(), |text, note| text + "  " + note + "\n")
}
