//! Comma-separated values (RFC 4180): columns, and where a line ends.
//!
//! A quote opens a quoted column only as its first byte, as every reader has it; after the closing quote the
//! column goes on unquoted up to the comma. Tested against the `csv` crate.

use super::{Parsed, Parser, Why};
use crate::input::moment;

const NO_COLUMN: Why = "it has fewer columns";

/// Where in a line a reader stands.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::input) enum Quotes {
    /// At the first byte of a column.
    #[default]
    Start,
    /// In a column outside quotes.
    Bare,
    /// Inside quotes: commas and line breaks are text.
    Open,
    /// After a quote inside quotes: it closed them, unless another one follows.
    Closed,
}

/// Lines with their time in one column.
pub(super) struct Csv {
    column: usize,
    scratch: Vec<u8>,
}

// === impl Quotes ===

impl Quotes {
    /// The place after `byte`.
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Open, b'"') => Self::Closed,
            (Self::Open, _) | (Self::Start | Self::Closed, b'"') => Self::Open,
            (_, b',') => Self::Start,
            _ => Self::Bare,
        }
    }

    /// Where the line ends in `bytes`, if it does; otherwise the place moves behind them.
    pub(in crate::input) fn line_end(&mut self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| {
            let end = *byte == b'\n' && *self != Self::Open;
            *self = self.after(*byte);
            end
        })
    }
}

/// The column `n` of a line, counted from 1, without its quotes.
///
/// # Errors
/// There are fewer columns.
pub(super) fn column<'a>(line: &'a [u8], n: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Why> {
    let (mut at, mut start, mut place, mut plain) = (1, 0, Quotes::Start, true);
    scratch.clear();
    for (i, &byte) in line.iter().enumerate() {
        let next = place.after(byte);
        if at == n {
            match (place, next) {
                (_, Quotes::Start) => return Ok(if plain { &line[start..i] } else { scratch }),
                // A quote that opens or closes is no text; the second of a doubled one is.
                (Quotes::Start, Quotes::Open) | (Quotes::Open, Quotes::Closed) => plain = false,
                _ => scratch.push(byte),
            }
        } else if next == Quotes::Start {
            (at, start) = (at + 1, i + 1);
        }
        place = next;
    }
    match at == n {
        true => Ok(if plain { &line[start..] } else { scratch }),
        false => Err(NO_COLUMN),
    }
}

// === impl Csv ===

impl Csv {
    pub(super) fn new(column: usize) -> Self {
        Self { column, scratch: Vec::new() }
    }
}

impl Parser for Csv {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Why> {
        let stamp = moment::any_form(column(line, self.column, &mut self.scratch)?)?;
        Ok(Parsed { stamp, took: 0, key: b"" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(line: &[u8]) -> Vec<Vec<u8>> {
        (1..).map_while(|n| column(line, n, &mut Vec::new()).map(<[u8]>::to_vec).ok()).collect()
    }

    #[test]
    fn quotes_commas_and_empty_columns() {
        assert_eq!(
            columns(br#"a,"b,c","d ""e""",,5" disk,"#),
            [&b"a"[..], b"b,c", br#"d "e""#, b"", b"5\" disk", b""]
        );
        assert_eq!(columns(b""), [b""]);
        assert_eq!(column(b"a,b", 3, &mut Vec::new()), Err(NO_COLUMN));
    }

    #[test]
    fn the_time_may_be_a_number_or_a_date_in_quotes() {
        let time = |line: &[u8]| Csv::new(2).parse(line).map(|parsed| parsed.stamp.ns);
        assert_eq!(time(b"alice,1700000000.5,GET"), Ok(1_700_000_000_500_000_000));
        assert_eq!(time(b"\"a,b\",\"2023-11-14 22:13:20\",x"), Ok(1_700_000_000_000_000_000));
        assert_eq!(time(b"user,time"), Err("its time can not be read"));
    }

    proptest! {
        /// Columns and line ends are those that the `csv` crate finds.
        #[test]
        fn reads_as_the_csv_crate_does(
            text in proptest::collection::vec(proptest::sample::select(&b"ab,\"\n"[..]), 1..60)
        ) {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false).flexible(true)
                .terminator(csv::Terminator::Any(b'\n'))
                .from_reader(text.as_slice());
            let expected: Vec<Vec<Vec<u8>>> = reader
                .byte_records()
                .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
                .collect();
            let mut lines = crate::input::lines::Lines::new(text.as_slice()).unwrap();
            lines.quoted();
            let mut found = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                let line = line.text.unwrap();
                // The crate passes over empty lines.
                if !line.is_empty() {
                    found.push(columns(line));
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
