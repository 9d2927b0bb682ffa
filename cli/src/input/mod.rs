//! From log files to requests: time-stamped, keyed, in order.
//!
//! # What
//! [`read`] goes through every file once, line by line, and hands each request that the options choose to a
//! sink. It streams: lines are lent from one buffer per file, and sorting by time spills to a temporary file
//! beyond a budget. Input is bytes; nothing in it can end the reading but a file that can not be read, a
//! format that can not be told, or a bad line under `strict`.
//!
//! # Invariants
//! | id | always                                                           | checked by             |
//! |----|------------------------------------------------------------------|------------------------|
//! | I1 | `lines = requests + skipped + filtered`                           | property totals_add_up |
//! | I2 | by [`Order::Time`], times never decrease, equal ones keep file order | F104, `sort`           |

mod format;
mod lines;
mod moment;
mod options;
mod sort;
mod source;

#[cfg(test)]
mod tests;

use std::{fmt, io, path::PathBuf};

use self::{
    format::{Parsed, Parser},
    lines::{Line, Lines},
    moment::Why,
    sort::Sorter,
};
pub(crate) use self::{
    moment::parse_moment,
    options::{Format, KeySpec, Options, Order},
    sort::scratch,
};

/// So many bad lines are kept for people to look at.
const BAD_MAX: usize = 5;

/// So much of a file is looked at to tell its format.
const SAMPLE: usize = 64 << 10;

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request<'a> {
    /// When, in nanoseconds since 1970: at most `tollgate::Nanos::MAX`.
    pub(crate) time: u64,
    /// Whose: what the [`KeySpec`] selects.
    pub(crate) key: &'a [u8],
}

/// Hears how far the reading is.
pub(crate) trait Progress {
    /// So many more bytes of the files, as stored, have been read.
    fn bytes(&self, n: u64);
    /// A part of the work begins: `reading` (once per file) or `sorting`.
    fn phase(&self, name: &str);
}

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Summary {
    /// The files, as named.
    pub(crate) files: Vec<String>,
    /// All lines.
    pub(crate) lines: u64,
    /// Lines used.
    pub(crate) requests: u64,
    /// Lines that could not be used.
    pub(crate) skipped: u64,
    /// Lines outside `from` and `to`.
    pub(crate) filtered: u64,
    /// The earliest time used.
    pub(crate) first: Option<u64>,
    /// The latest time used.
    pub(crate) last: Option<u64>,
    /// Lines used whose time is before that of a line above: those that sorting moves, or whose time a clock
    /// that never goes back would lift.
    pub(crate) out_of_order: u64,
    /// Lines used whose date had no offset and was taken as UTC.
    pub(crate) zone_assumed: u64,
    /// The first few lines that could not be used.
    pub(crate) bad: Vec<BadLine>,
    /// Files that hold something else behind their compressed bytes, which was left alone.
    pub(crate) trailing_garbage: Vec<String>,
}

/// A line that could not be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadLine {
    /// The file.
    pub(crate) file: String,
    /// The line, counted from 1.
    pub(crate) line: u64,
    /// What is wrong with it.
    pub(crate) why: &'static str,
    /// How it begins; safe to print.
    pub(crate) text: String,
}

/// Why the reading ended early.
#[derive(Debug)]
pub(crate) enum Error {
    /// A file could not be opened or read, or is damaged.
    Read {
        /// The file.
        file: String,
        /// The last line read; 0 if there was none.
        line: u64,
        /// What the system said.
        error: io::Error,
    },
    /// The format of a file could not be told, or has no such key.
    Format {
        /// The file; empty if the format was given and no file can help it.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A line could not be used, and `strict` was set.
    Line(BadLine),
    /// A temporary file, for sorting or for going through the requests again, could not be written or read.
    Spill {
        /// Its folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// The reading of one set of files.
struct Scan<'o, 's, E> {
    options: &'o Options,
    summary: Summary,
    sink: &'s mut dyn FnMut(Request<'_>) -> Result<(), E>,
}

/// Reads the files and hands every request to `sink`, in the order asked for.
///
/// # Errors
/// [`Error`], or what the sink returns: both end the reading at once.
/// # Cost
/// Memory for one line buffer (about 1 MiB) and, with [`Order::Time`], about 100 MiB for sorting, however
/// long the files are; the rest goes to a temporary file.
pub(crate) fn read<E: From<Error>>(
    options: &Options,
    progress: &dyn Progress,
    sink: &mut dyn FnMut(Request<'_>) -> Result<(), E>,
) -> Result<Summary, E> {
    match options.order {
        Order::File => scan(options, progress, sink),
        Order::Time => sorted(options, progress, sort::BUDGET, sink),
    }
}

/// Reads the files and hands every request to `sink`, the earliest first, sorting with this much memory.
fn sorted<E: From<Error>>(
    options: &Options,
    progress: &dyn Progress,
    budget: usize,
    sink: &mut dyn FnMut(Request<'_>) -> Result<(), E>,
) -> Result<Summary, E> {
    let mut sorter = Sorter::new(budget);
    let summary = scan::<Error>(options, progress, &mut |request| sorter.push(request))?;
    progress.phase("sorting");
    sorter.drain(sink)?;
    Ok(summary)
}

/// Reads the files and hands every request to `sink` as it comes.
fn scan<E: From<Error>>(
    options: &Options,
    progress: &dyn Progress,
    sink: &mut dyn FnMut(Request<'_>) -> Result<(), E>,
) -> Result<Summary, E> {
    let mut scan = Scan { options, summary: Summary::default(), sink };
    let mut given = match &options.format {
        Format::Auto => None,
        format => Some(parser("", format, &options.key)?),
    };
    for path in &options.files {
        let file = source::name(path);
        progress.phase("reading");
        scan.summary.files.push(file.clone());
        let source = source::open(path, progress)?;
        let garbage = source.garbage();
        scan.file(&file, source, &mut given)?;
        if garbage.get() {
            scan.summary.trailing_garbage.push(file);
        }
    }
    Ok(scan.summary)
}

/// Makes the parser that a file needs.
fn parser(file: &str, format: &Format, key: &KeySpec) -> Result<Box<dyn Parser>, Error> {
    format::parser(format, key).map_err(|why| Error::Format { file: file.into(), why })
}

/// The beginning of a line, made safe to print: no control character reaches the terminal.
fn shown(line: &[u8]) -> String {
    const MAX: usize = 120;
    let text = String::from_utf8_lossy(&line[..line.len().min(MAX)]);
    let more = if line.len() > MAX { "..." } else { "" };
    let safe = text.chars().flat_map(|c| {
        let escaped = c.is_control().then(|| c.escape_default());
        let plain = escaped.is_none().then_some(c);
        escaped.into_iter().flatten().chain(plain)
    });
    safe.chain(more.chars()).collect()
}

// === impl Scan ===

impl<E: From<Error>> Scan<'_, '_, E> {
    /// Reads one file, with the parser given or the one that its first lines ask for.
    fn file(
        &mut self,
        file: &str,
        source: impl io::Read,
        given: &mut Option<Box<dyn Parser>>,
    ) -> Result<(), E> {
        let failed = |line, error| Error::Read { file: file.into(), line, error };
        let mut lines = Lines::new(source).map_err(|error| failed(0, error))?;
        let mut detected;
        let parser = match given {
            Some(parser) => parser,
            None => {
                let sample = lines.peek(SAMPLE).map_err(|error| failed(0, error))?;
                let format = format::detect(sample, &self.options.key)
                    .map_err(|why| Error::Format { file: file.into(), why })?;
                detected = self::parser(file, &format, &self.options.key)?;
                &mut detected
            }
        };
        if matches!(self.options.format, Format::Csv(_)) {
            lines.quoted();
        }
        loop {
            match lines.next() {
                Ok(Some(Line { number, text })) => self.line(file, number, text, parser.as_mut())?,
                Ok(None) => return Ok(()),
                Err(error) => return Err(failed(lines.number().saturating_sub(1), error).into()),
            }
        }
    }

    /// Counts one line and hands on its request. (I1)
    fn line(
        &mut self,
        file: &str,
        number: u64,
        text: Result<&[u8], Why>,
        parser: &mut dyn Parser,
    ) -> Result<(), E> {
        self.summary.lines += 1;
        let parsed = match text.and_then(|text| parser.parse(text)) {
            Ok(parsed) => parsed,
            Err(why) => return self.bad(file, number, text.unwrap_or_default(), why),
        };
        let time = match self.options.order {
            Order::Time => parsed.stamp.ns.saturating_sub(parsed.took),
            Order::File => parsed.stamp.ns,
        };
        let before = self.options.from.is_some_and(|from| time < from);
        let after = self.options.to.is_some_and(|to| time >= to);
        if before || after {
            self.summary.filtered += 1;
            return Ok(());
        }
        self.summary.count(time, &parsed);
        (self.sink)(Request { time, key: parsed.key })
    }

    #[cold]
    fn bad(&mut self, file: &str, line: u64, text: &[u8], why: Why) -> Result<(), E> {
        self.summary.skipped += 1;
        let strict = self.options.strict;
        if strict || self.summary.bad.len() < BAD_MAX {
            let bad = BadLine { file: file.into(), line, why, text: shown(text) };
            if strict {
                return Err(Error::Line(bad).into());
            }
            self.summary.bad.push(bad);
        }
        Ok(())
    }
}

// === impl Summary ===

impl Summary {
    fn count(&mut self, time: u64, parsed: &Parsed<'_>) {
        self.requests += 1;
        self.out_of_order += u64::from(self.last.is_some_and(|last| time < last));
        self.zone_assumed += u64::from(!parsed.stamp.zoned);
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }
}

// === impl BadLine ===

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.why, self.text)
    }
}

// === impl Error ===

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, line: 0, error } => write!(f, "{file}: can not be read: {error}"),
            Self::Read { file, line, error } => {
                write!(f, "{file}: can not be read after line {line}: {error}")
            }
            Self::Format { file, why } if file.is_empty() => f.write_str(why),
            Self::Format { file, why } => write!(f, "{file}: {why}"),
            Self::Line(line) => line.fmt(f),
            Self::Spill { folder, error } => write!(
                f,
                "{}: no temporary file can be used there: {error} (TMPDIR names another folder; \
                 replay --order file needs none)",
                folder.display()
            ),
        }
    }
}

impl std::error::Error for Error {}
