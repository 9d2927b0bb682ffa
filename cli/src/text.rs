//! Text for people: aligned tables, colours, numbers with their thousands separated, and nothing that steers a terminal.

use std::{fmt::Write, time::Duration};

use jiff::Timestamp;

/// Longest key and line shown, in characters.
const SHOWN: usize = 80;

pub(crate) const BOLD: &str = "1";
pub(crate) const RED: &str = "31";
pub(crate) const YELLOW: &str = "33";

/// A cell: its text, and its colour if it has one.
pub(crate) type Cell = (String, Option<&'static str>);

/// A cell without colour.
pub(crate) fn plain(text: impl Into<String>) -> Cell {
    (text.into(), None)
}

/// The cells at the top of a table.
pub(crate) fn heads<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Cell> {
    names.into_iter().map(|name| (name.to_owned(), Some(BOLD))).collect()
}

/// Aligns the cells: the first column to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<Cell>], colour: bool) -> String {
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
pub(crate) fn grouped(n: u64) -> String {
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
pub(crate) fn count(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// One number, or the least and the most.
pub(crate) fn range([least, most]: [u64; 2]) -> String {
    if least == most { grouped(least) } else { format!("{} to {}", grouped(least), grouped(most)) }
}

/// A span, in full.
pub(crate) fn span(ns: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    match [("d", 86_400), ("h", 3_600), ("m", 60)]
        .into_iter()
        .find(|(_, s)| ns > 0 && ns.is_multiple_of(s * SECOND))
    {
        Some((unit, seconds)) => format!("{}{unit}", ns / (seconds * SECOND)),
        None => format!("{:?}", Duration::from_nanos(ns)),
    }
}

/// A moment in UTC, with as many digits of the second as it needs.
pub(crate) fn rfc3339(ns: u64) -> String {
    // Every u64 of nanoseconds is a year before 2555.
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::MAX).to_string()
}

/// An amount of memory.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1 << 10 {
        return format!("{n} B");
    }
    let place = (n.ilog2() / 10) as usize;
    format!("{:.1} {}", n as f64 / 2f64.powi(10 * place as i32), UNITS[place - 1])
}

/// A part of a whole in percent, to three decimals; one that is not zero is never shown as zero.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = part as f64 * 100.0 / whole.max(1) as f64;
    if part > 0 && percent < 0.001 { "<0.001%".to_owned() } else { format!("{percent:.3}%") }
}

/// A span, to one decimal.
pub(crate) fn rounded(ns: u64) -> String {
    format!("{:.1?}", Duration::from_nanos(ns))
}

/// Text from a log, made safe for a terminal and cut to a line's length.
pub(crate) fn shown(text: &str) -> String {
    let mut safe = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == SHOWN {
            safe.push('…');
            break;
        }
        // Beside the control characters, those that end a line or turn its direction around, and what is none.
        let steers = matches!(
            c,
            '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        );
        if c.is_control() || steers || matches!(c, '\u{fffe}'..='\u{ffff}') {
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
    fn amounts_of_memory_and_parts_of_a_whole() {
        let amounts = [0, 1_023, 1_024, 1_536, 1 << 20, u64::MAX].map(bytes);
        assert_eq!(amounts, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "16.0 EiB"]);
        let parts =
            [(0, 0), (0, 9), (1, 1_000_000), (1, 3), (5, 5)].map(|(part, whole)| percent(part, whole));
        assert_eq!(parts, ["0.000%", "0.000%", "<0.001%", "33.333%", "100.000%"]);
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
        assert_eq!(shown("\u{61c}\u{2028}\u{ffff}"), "\\u{61c}\\u{2028}\\u{ffff}");
        assert_eq!(shown(&"é".repeat(100)), format!("{}…", "é".repeat(80)));
    }
}
