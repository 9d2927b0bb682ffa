//! Bytes to lines, in a buffer that does not grow with the input.
//!
//! # What
//! Lends one line at a time, without its end (LF or CRLF; the last line needs none) and without the file's
//! byte-order mark. A line longer than [`LINE_MAX`] is passed over and reported, never stored.
//! For CSV a line break inside quotes does not end the line.
//!
//! # Invariants
//! | id | always                                                            | kept by            |
//! |----|-------------------------------------------------------------------|--------------------|
//! | I1 | `start <= end <= buffer.len()`; the bytes between are not yet lent | `next`, `fill`     |
//! | I2 | the buffer holds a longest line and one read more                  | `CAPACITY`, `fill` |

use std::io::{self, Read};

use memchr::memchr;

use super::{format::csv::Quotes, moment::Why};

/// The longest line that is read.
pub(super) const LINE_MAX: usize = 1 << 20;

/// As much as one read asks for: small enough to be still in the cache when its lines are read.
const CHUNK: usize = 1 << 17;
const CAPACITY: usize = LINE_MAX + CHUNK;
const TOO_LONG: Why = "it is longer than 1 MiB";

/// The lines of one file.
pub(super) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    quoted: bool,
    number: u64,
    next_number: u64,
}

/// One line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line<'b> {
    /// Counted from 1, as editors count.
    pub(super) number: u64,
    /// The line, or why it was passed over.
    pub(super) text: Result<&'b [u8], Why>,
}

// === impl Lines ===

impl<R: Read> Lines<R> {
    /// The lines of `source`; skips its byte-order mark.
    pub(super) fn new(source: R) -> io::Result<Self> {
        let buffer = vec![0; CAPACITY];
        let mut lines =
            Self { source, buffer, start: 0, end: 0, ended: false, quoted: false, number: 0, next_number: 1 };
        if lines.peek(3)?.starts_with(b"\xef\xbb\xbf") {
            lines.start = 3;
        }
        Ok(lines)
    }

    /// From here on a line break inside CSV quotes does not end a line.
    pub(super) fn quoted(&mut self) {
        self.quoted = true;
    }

    /// The number of the line asked for last; 0 before the first.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Looks at the bytes ahead without taking them: at least `least` (up to [`LINE_MAX`]) unless the file
    /// ends before.
    pub(super) fn peek(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.end - self.start < least.min(LINE_MAX) && !self.ended {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let (mut scanned, mut quotes) = (0, Quotes::default());
        self.number = self.next_number;
        let length = loop {
            let fresh = &self.buffer[self.start + scanned..self.end];
            let found = if self.quoted { quotes.line_end(fresh) } else { memchr(b'\n', fresh) };
            if let Some(at) = found {
                break scanned + at;
            }
            scanned += fresh.len();
            if scanned > LINE_MAX {
                self.skip_line()?;
                return Ok(Some(Line { number: self.number, text: Err(TOO_LONG) }));
            }
            if self.ended {
                if scanned == 0 {
                    return Ok(None);
                }
                break scanned;
            }
            self.fill()?;
        };
        let from = self.start;
        self.start = (from + length + 1).min(self.end); // I1: the last line may end without a line break.
        let line = &self.buffer[from..from + length];
        self.next_number += 1;
        if self.quoted {
            self.next_number += memchr::memchr_iter(b'\n', line).count() as u64;
        }
        let whole = line.strip_suffix(b"\r").unwrap_or(line);
        let text = if length > LINE_MAX { Err(TOO_LONG) } else { Ok(whole) };
        Ok(Some(Line { number: self.number, text }))
    }

    /// Reads once more, after moving what is left to the front if there is no room behind it.
    fn fill(&mut self) -> io::Result<()> {
        if CAPACITY - self.end < CHUNK {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let room = self.end..(self.end + CHUNK).min(CAPACITY);
        let n = loop {
            match self.source.read(&mut self.buffer[room.clone()]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += n;
        self.ended = n == 0;
        Ok(())
    }

    /// Passes over the rest of a line too long to hold, up to the next line break of any kind.
    #[cold]
    fn skip_line(&mut self) -> io::Result<()> {
        if self.quoted {
            self.next_number += memchr::memchr_iter(b'\n', &self.buffer[self.start..self.end]).count() as u64;
        }
        self.next_number += 1;
        loop {
            (self.start, self.end) = (0, 0);
            self.fill()?;
            if let Some(at) = memchr(b'\n', &self.buffer[..self.end]) {
                self.start = at + 1;
                return Ok(());
            }
            if self.ended {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hands out a few bytes per read.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(buffer.len());
            self.0.read(&mut buffer[..n])
        }
    }

    fn all(mut lines: Lines<impl Read>) -> Vec<(u64, Result<Vec<u8>, Why>)> {
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            out.push((line.number, line.text.map(<[u8]>::to_vec)));
        }
        out
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let lines = all(Lines::new(bytes).unwrap());
        lines.into_iter().map(|(_, line)| String::from_utf8(line.unwrap()).unwrap()).collect()
    }

    #[test]
    fn line_ends_and_marks_are_not_part_of_lines() {
        assert_eq!(texts(b""), [""; 0]);
        assert_eq!(texts(b"\xef\xbb\xbf"), [""; 0]);
        assert_eq!(texts(b"\xef\xbb\xbfone\r\ntwo\n\nlast"), ["one", "two", "", "last"]);
        assert_eq!(texts(b"\n"), [""]);
        assert_eq!(texts(b"a\rb\r\r\n"), ["a\rb\r"]);
    }

    #[test]
    fn a_long_line_is_passed_over_and_counted() {
        for length in [LINE_MAX + 1, LINE_MAX + CHUNK, LINE_MAX + CHUNK + 1, 3 * LINE_MAX] {
            let text =
                [b"a\n", vec![b'x'; LINE_MAX].as_slice(), b"\n", &vec![b'y'; length], b"\nb\n"].concat();
            let lines = all(Lines::new(text.as_slice()).unwrap());
            let shapes: Vec<_> = lines.iter().map(|(n, line)| (*n, line.as_ref().map(Vec::len))).collect();
            assert_eq!(shapes, [(1, Ok(1)), (2, Ok(LINE_MAX)), (3, Err(&TOO_LONG)), (4, Ok(1))], "{length}");
            // The same line as the last one, without its end.
            let lines = all(Lines::new(&text[..text.len() - 3]).unwrap());
            assert_eq!(lines.last(), Some(&(3, Err(TOO_LONG))));
            assert_eq!(lines.len(), 3);
        }
    }

    #[test]
    fn quotes_hold_a_csv_line_together() {
        let mut lines = Lines::new(&b"1,\"two\nlines\"\n2,5\" disk\n3,\"a\"\"\nb\"\n4"[..]).unwrap();
        lines.quoted();
        let lines: Vec<_> = all(lines).into_iter().map(|(n, line)| (n, line.unwrap())).collect();
        let expected: [(u64, &[u8]); 4] =
            [(1, b"1,\"two\nlines\""), (3, b"2,5\" disk"), (4, b"3,\"a\"\"\nb\""), (6, b"4")];
        assert_eq!(lines, expected.map(|(n, line)| (n, line.to_vec())));
    }

    #[test]
    fn a_look_ahead_takes_nothing() {
        let mut lines = Lines::new(Drip(b"one\ntwo\n", 1)).unwrap();
        assert_eq!(lines.peek(5).unwrap(), b"one\nt");
        assert_eq!(lines.peek(usize::MAX).unwrap(), b"one\ntwo\n");
        assert_eq!(lines.next().unwrap(), Some(Line { number: 1, text: Ok(b"one") }));
    }

    proptest! {
        /// However the bytes arrive, the lines are those that splitting at LF gives.
        #[test]
        fn lines_do_not_depend_on_reads(
            text in proptest::collection::vec(proptest::sample::select(&b"ab\n\r"[..]), 0..200),
            step in 1..20_usize,
        ) {
            let mut expected: Vec<_> = text.split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) {
                expected.pop();
            }
            let lines = all(Lines::new(Drip(&text, step)).unwrap());
            prop_assert_eq!(lines.len(), expected.len());
            for ((number, line), (i, whole)) in lines.iter().zip((1..).zip(expected)) {
                prop_assert_eq!(*number, i);
                prop_assert_eq!(line.as_deref(), Ok(whole.strip_suffix(b"\r").unwrap_or(whole)));
            }
        }
    }
}
