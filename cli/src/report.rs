//! The table for people: what each algorithm did, aligned, and below it all that the figures rest on.

use std::{fmt::Write, time::Duration};

use crate::json::{Outcome, Report};

/// Longest key and line shown, in characters.
const SHOWN: usize = 80;

const BOLD: &str = "1";
const RED: &str = "31";
const YELLOW: &str = "33";

/// A cell: its text, and its colour if it has one.
type Cell = (String, Option<&'static str>);

/// Writes the report as text, with colours if `colour`.
pub(crate) fn render(report: &Report, key: &str, colour: bool) -> String {
    let mut text = String::new();
    heading(&mut text, report, key);
    text.push('\n');
    text.push_str(&table(&results(report), colour));
    waits(&mut text, report);
    phases(&mut text, report);
    if !report.top_refused.is_empty() {
        let _ = writeln!(text, "\nRefused most by {}:\n", report.results[0].algorithm);
        text.push_str(&table(&top(report), colour));
    }
    notes(&mut text, report);
    text
}

/// What was replayed, and against which limits.
fn heading(text: &mut String, report: &Report, key: &str) {
    let input = &report.input;
    let files: Vec<String> = input.files.iter().map(|file| shown(file)).collect();
    let _ = write!(text, "{} of {}", count(input.requests, "request"), files.join(", "));
    if let (Some(first), Some(last)) = (&input.first, &input.last) {
        let _ = write!(text, ", {first} to {last}");
    }
    let rules =
        report.rules.iter().map(|rule| format!("{} per {}", grouped(rule.limit), span(rule.window_ns)));
    let rules = rules.collect::<Vec<_>>().join(" and ");
    let _ = match key {
        "none" => writeln!(text, "\nLimit: {rules}, for all together"),
        _ => writeln!(text, "\nLimit: {rules}, for each of {} ({})", count(input.keys, "key"), shown(key)),
    };
}

/// The rows of the main table.
fn results(report: &Report) -> Vec<Vec<Cell>> {
    let head = |name: &str| (name.to_owned(), Some(BOLD));
    let mut heads = vec![head("algorithm"), head("admitted"), head("refused")];
    for rule in &report.rules {
        let of = if report.rules.len() > 1 { format!(" {}", span(rule.window_ns)) } else { String::new() };
        heads.extend([head(&format!("peak{of}")), head(&format!("over{of}"))]);
    }
    heads.extend([head("false refusals"), head("bytes/key"), head("ns/check")]);

    let alarm = |n: u64, colour| (grouped(n), (n > 0).then_some(colour));
    let row = |outcome: &Outcome| {
        let mut cells = vec![
            (outcome.algorithm.to_owned(), None),
            (grouped(outcome.admitted), None),
            (grouped(outcome.refused), None),
        ];
        for rule in &outcome.rules {
            cells.extend([(grouped(rule.peak), None), alarm(rule.over, RED)]);
        }
        cells.push(alarm(outcome.false_refusals, YELLOW));
        cells.push((grouped(outcome.bytes_per_key), None));
        cells.push((format!("{:.1}", outcome.ns_per_check), None));
        cells
    };
    [heads].into_iter().chain(report.results.iter().map(row)).collect()
}

/// The rows of the keys refused most.
fn top(report: &Report) -> Vec<Vec<Cell>> {
    let head = |name: &str| (name.to_owned(), Some(BOLD));
    let heads = vec![head("key"), head("refused"), head("requests")];
    let rows = report.top_refused.iter().map(|top| {
        vec![(shown(&top.key), None), (grouped(top.refused), None), (grouped(top.requests), None)]
    });
    [heads].into_iter().chain(rows).collect()
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

/// Everything that a reader must know to trust the figures.
fn notes(text: &mut String, report: &Report) {
    let input = &report.input;
    let mut notes = Vec::new();
    for left in report.left_out.chunk_by(|a, b| a.why == b.why) {
        let names: Vec<&str> = left.iter().map(|left| left.algorithm).collect();
        notes.push(format!("left out: {} ({})", names.join(", "), left[0].why));
    }
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
    if !notes.is_empty() {
        text.push_str("\nNotes:\n");
        for note in notes {
            let _ = writeln!(text, "  {note}");
        }
    }
}

/// Aligns the cells: the first column to the left, the others to the right.
fn table(rows: &[Vec<Cell>], colour: bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|(cell, _)| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, ((cell, paint), width)) in row.iter().zip(&widths).enumerate() {
            let padded = match column {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
            let _ = match paint {
                Some(code) if colour => write!(text, "\x1b[{code}m{padded}\x1b[0m"),
                _ => write!(text, "{padded}"),
            };
        }
        text.push('\n');
    }
    text
}

/// A number with its thousands separated.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things.
fn count(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// One number, or the least and the most.
fn range([least, most]: [u64; 2]) -> String {
    if least == most { grouped(least) } else { format!("{} to {}", grouped(least), grouped(most)) }
}

/// A span, in full.
fn span(ns: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    match [("d", 86_400), ("h", 3_600), ("m", 60)]
        .into_iter()
        .find(|(_, s)| ns > 0 && ns.is_multiple_of(s * SECOND))
    {
        Some((unit, seconds)) => format!("{}{unit}", ns / (seconds * SECOND)),
        None => format!("{:?}", Duration::from_nanos(ns)),
    }
}

/// A span, to one decimal.
fn rounded(ns: u64) -> String {
    format!("{:.1?}", Duration::from_nanos(ns))
}

/// Text from a log, made safe for a terminal and cut to a line's length.
fn shown(text: &str) -> String {
    let mut safe = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == SHOWN {
            safe.push('…');
            break;
        }
        // Beside the control characters, those that turn the direction of a line around.
        if c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(n), text);
        }
    }

    #[test]
    fn spans_take_the_largest_unit_that_is_whole() {
        for (ns, text) in [(1, "1ns"), (1_500_000, "1.5ms"), (90_000_000_000, "90s"), (60_000_000_000, "1m")]
        {
            assert_eq!(span(ns), text);
        }
        assert_eq!([span(7_200_000_000_000), span(86_400_000_000_000)], ["2h", "1d"]);
    }

    #[test]
    fn columns_are_aligned() {
        let cell = |text: &str| (text.to_owned(), None);
        let rows = [vec![cell("name"), cell("n")], vec![cell("b"), cell("1,000")]];
        assert_eq!(table(&rows, true), "name      n\nb     1,000\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let rows = [vec![("a".to_owned(), None), ("1".to_owned(), Some(RED))]];
        assert_eq!(table(&rows, true), "a\x1b[31m  1\x1b[0m\n");
        assert_eq!(table(&rows, false), "a  1\n");
    }

    /// A log holds what strangers sent: it must not steer the terminal.
    #[test]
    fn keys_can_not_steer_the_terminal() {
        assert_eq!(shown("a\x1b[2Jb\n\u{202e}c\u{7f}"), "a\\u{1b}[2Jb\\n\\u{202e}c\\u{7f}");
        assert_eq!(shown(&"é".repeat(100)), format!("{}…", "é".repeat(80)));
    }
}
