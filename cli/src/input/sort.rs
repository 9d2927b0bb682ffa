//! Requests in the order of their times, in bounded memory: an external merge sort.
//!
//! # What
//! Collects requests up to a budget; whatever exceeds it is sorted and written out as a run. At the end all
//! runs are merged. Requests of equal time keep the order in which they came.
//!
//! # State
//! All runs lie one behind the other in a single temporary file that has no name (or, where the system has no
//! such files, is deleted when closed): it is gone however the process ends, and the number of runs is not
//! bounded by open files. While merging, a run takes one buffer: the budget divided by the runs, at least
//! 4 KiB.
//! A record is the time and the key's length (8 and 4 bytes, little endian), then the key.
//!
//! # Invariants
//! | id | always                                                             | kept by          |
//! |----|--------------------------------------------------------------------|------------------|
//! | I1 | runs hold disjoint stretches of the input, in the order of the input | `spill`          |
//! | I2 | within a run, equal times are in the order of the input             | a stable sort    |
//! | I3 | of equal times the merge takes the earliest run first               | heap of (time, run) |
//!
//! I1 to I3 make the whole sort stable.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    env,
    ffi::OsString,
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::PathBuf,
};

use super::{Error, Request};

/// Bytes of keys and entries held before a run is written.
pub(super) const BUDGET: usize = 64 << 20;

/// Bytes of a record before its key.
const HEADER: usize = 12;
const BUFFER_MIN: usize = 4 << 10;
const BUFFER_MAX: usize = 1 << 20;

/// Takes requests in any order and gives them back in the order of their times.
pub(super) struct Sorter {
    budget: usize,
    keys: Vec<u8>,
    entries: Vec<Entry>,
    spilled: Option<Spilled>,
}

/// A request in memory; its key lies in [`Sorter::keys`].
struct Entry {
    time: u64,
    start: u32,
    length: u32,
}

/// The runs written so far.
struct Spilled {
    file: File,
    /// Where the file is, though it has no name there.
    folder: PathBuf,
    runs: Vec<Range<u64>>,
}

/// A run being read: its current record and what is buffered behind it.
struct Run<'f> {
    file: &'f File,
    rest: Range<u64>,
    buffer: Vec<u8>,
    /// The current record in the buffer.
    record: Range<usize>,
    /// How much of the buffer is filled.
    filled: usize,
}

/// A temporary file without a name, and its folder: TMPDIR, if it is set.
///
/// # Errors
/// [`Error::Spill`] if there can be none.
pub(crate) fn scratch() -> Result<(File, PathBuf), Error> {
    scratch_in(env::var_os("TMPDIR"))
}

/// A temporary file without a name, in the folder `given`; without one in a folder that outlives a restart, hence is
/// on a disk, if there is one: the system's default may be memory.
fn scratch_in(given: Option<OsString>) -> Result<(File, PathBuf), Error> {
    const ON_DISK: &str = "/var/tmp";
    let given = given.filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if given.is_none()
        && cfg!(unix)
        && let Ok(file) = tempfile::tempfile_in(ON_DISK)
    {
        return Ok((file, ON_DISK.into()));
    }
    let folder = given.unwrap_or_else(env::temp_dir);
    match tempfile::tempfile_in(&folder) {
        Ok(file) => Ok((file, folder)),
        Err(error) => Err(Error::Spill { folder, error }),
    }
}

// === impl Sorter ===

impl Sorter {
    /// A sorter that holds about `budget` bytes (at most 2 GiB), and half as much again while it sorts.
    pub(super) fn new(budget: usize) -> Self {
        Self { budget: budget.min(1 << 31), keys: Vec::new(), entries: Vec::new(), spilled: None }
    }

    /// Takes one more request.
    ///
    /// # Errors
    /// [`Error::Spill`] if a run can not be written.
    pub(super) fn push(&mut self, request: Request<'_>) -> Result<(), Error> {
        let held = self.keys.len() + self.entries.len() * size_of::<Entry>();
        if held >= self.budget {
            self.spill()?;
        }
        // The budget and the longest line together stay far below 2^32.
        let entry =
            Entry { time: request.time, start: self.keys.len() as u32, length: request.key.len() as u32 };
        self.keys.extend_from_slice(request.key);
        self.entries.push(entry);
        Ok(())
    }

    /// Hands every request to `sink`, the earliest first.
    ///
    /// # Errors
    /// What the sink returns, or [`Error::Spill`] if a run can not be written or read back.
    pub(super) fn drain<E: From<Error>>(
        mut self,
        sink: &mut dyn FnMut(Request<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.spilled.is_none() {
            self.entries.sort_by_key(|entry| entry.time); // I2
            return self.entries.iter().try_for_each(|entry| sink(entry.request(&self.keys)));
        }
        self.spill()?;
        let Self { budget, keys, entries, spilled } = self;
        drop((keys, entries));
        spilled.map_or(Ok(()), |spilled| spilled.merge(budget, sink))
    }

    /// Writes everything held as one more run. (I1, I2)
    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.entries.sort_by_key(|entry| entry.time);
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(Spilled::new(env::var_os("TMPDIR"))?),
        };
        spilled.append(&self.entries, &self.keys).map_err(|error| spilled.failed(error))?;
        self.entries.clear();
        self.keys.clear();
        Ok(())
    }
}

// === impl Entry ===

impl Entry {
    fn request<'k>(&self, keys: &'k [u8]) -> Request<'k> {
        let start = self.start as usize;
        Request { time: self.time, key: &keys[start..start + self.length as usize] }
    }
}

// === impl Spilled ===

impl Spilled {
    /// No runs yet, in a folder as [`scratch_in`] chooses it.
    fn new(given: Option<OsString>) -> Result<Self, Error> {
        let (file, folder) = scratch_in(given)?;
        Ok(Self { file, folder, runs: Vec::new() })
    }

    /// Writes one more run.
    fn append(&mut self, entries: &[Entry], keys: &[u8]) -> io::Result<()> {
        let start = self.runs.last().map_or(0, |run| run.end);
        let mut end = start;
        let mut out = BufWriter::with_capacity(BUFFER_MAX, &self.file);
        for entry in entries {
            let request = entry.request(keys);
            out.write_all(&request.time.to_le_bytes())?;
            out.write_all(&entry.length.to_le_bytes())?;
            out.write_all(request.key)?;
            end += (HEADER + request.key.len()) as u64;
        }
        out.flush()?;
        drop(out);
        self.runs.push(start..end);
        Ok(())
    }

    /// That the file could not be written or read.
    fn failed(&self, error: io::Error) -> Error {
        Error::Spill { folder: self.folder.clone(), error }
    }

    fn merge<E: From<Error>>(
        self,
        budget: usize,
        sink: &mut dyn FnMut(Request<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = (budget / self.runs.len().max(1)).clamp(BUFFER_MIN, BUFFER_MAX);
        let mut heap = BinaryHeap::with_capacity(self.runs.len());
        let mut runs = Vec::with_capacity(self.runs.len());
        for range in &self.runs {
            let mut run = Run::new(&self.file, range.clone(), size);
            if run.advance().map_err(|error| self.failed(error))? {
                heap.push(Reverse((run.request().time, runs.len()))); // I3
            }
            runs.push(run);
        }
        while let Some(mut least) = heap.peek_mut() {
            let Reverse((_, index)) = *least;
            let run = &mut runs[index];
            sink(run.request())?;
            if run.advance().map_err(|error| self.failed(error))? {
                *least = Reverse((run.request().time, index));
            } else {
                PeekMut::pop(least);
                run.buffer = Vec::new();
            }
        }
        Ok(())
    }
}

// === impl Run ===

impl<'f> Run<'f> {
    fn new(file: &'f File, rest: Range<u64>, size: usize) -> Self {
        Self { file, rest, buffer: vec![0; size], record: 0..0, filled: 0 }
    }

    /// The current record. Called only after [`Run::advance`] found one.
    fn request(&self) -> Request<'_> {
        let record = &self.buffer[self.record.clone()];
        let (time, rest) =
            record.split_first_chunk().map_or((0, record), |(t, rest)| (u64::from_le_bytes(*t), rest));
        Request { time, key: rest.get(4..).unwrap_or_default() }
    }

    /// Moves to the next record; `false` at the end of the run.
    fn advance(&mut self) -> io::Result<bool> {
        self.record.start = self.record.end;
        if self.record.end == self.filled && self.rest.is_empty() {
            return Ok(false);
        }
        let header = self.ensure(HEADER)?;
        let length = header.last_chunk().map_or(0, |length| u32::from_le_bytes(*length));
        let size = HEADER + length as usize;
        self.ensure(size)?;
        self.record.end = self.record.start + size;
        Ok(true)
    }

    /// The next `size` bytes from the start of the record, read from the file where they are not buffered.
    fn ensure(&mut self, size: usize) -> io::Result<&[u8]> {
        if self.filled - self.record.start < size {
            self.buffer.copy_within(self.record.start..self.filled, 0);
            self.filled -= self.record.start;
            self.record = 0..0;
            if self.buffer.len() < size {
                self.buffer.resize(size, 0);
            }
            let room = &mut self.buffer[self.filled..];
            let left = usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX);
            let n = room.len().min(left);
            let mut file = self.file;
            file.seek(SeekFrom::Start(self.rest.start))?;
            file.read_exact(&mut room[..n])?;
            self.rest.start += n as u64;
            self.filled += n;
        }
        self.buffer[..self.filled].get(self.record.start..self.record.start + size).ok_or_else(|| {
            io::Error::new(io::ErrorKind::UnexpectedEof, "the temporary file was changed by somebody else")
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Owned = (u64, Vec<u8>);

    fn sorter(budget: usize, requests: &[Owned]) -> Sorter {
        let mut sorter = Sorter::new(budget);
        for (time, key) in requests {
            sorter.push(Request { time: *time, key }).unwrap();
        }
        sorter
    }

    fn sorted(budget: usize, requests: &[Owned]) -> Vec<Owned> {
        let mut out = Vec::new();
        sorter(budget, requests)
            .drain::<Error>(&mut |request| {
                out.push((request.time, request.key.to_vec()));
                Ok(())
            })
            .unwrap();
        out
    }

    #[test]
    fn nothing_sorts_to_nothing() {
        assert_eq!(sorted(BUDGET, &[]), []);
        assert_eq!(sorted(0, &[]), []);
    }

    #[test]
    fn hundreds_of_runs_need_one_file() {
        // Every request its own run, more runs than files may be open.
        let requests: Vec<_> = (0..2_000_u64).map(|i| (i * 7_919 % 50, i.to_string().into_bytes())).collect();
        let sorter = sorter(1, &requests);
        assert_eq!(sorter.spilled.as_ref().map(|spilled| spilled.runs.len()), Some(1_999));
        let mut expected = requests.clone();
        expected.sort_by_key(|(time, _)| *time);
        assert_eq!(sorted(1, &requests), expected);
    }

    #[test]
    fn a_key_may_be_longer_than_the_buffer() {
        let requests: Vec<_> = (0..20_u64).map(|i| (20 - i, vec![b'k'; i as usize * 1_000])).collect();
        let mut expected = requests.clone();
        expected.sort();
        assert_eq!(sorted(10_000, &requests), expected);
    }

    #[test]
    fn a_sink_that_fails_ends_the_merge() {
        for budget in [1, BUDGET] {
            let mut calls = 0;
            let result = sorter(budget, &[(2, vec![]), (1, vec![]), (3, vec![])]).drain(&mut |_| {
                calls += 1;
                Err(Error::Spill { folder: PathBuf::new(), error: io::ErrorKind::Other.into() })
            });
            assert!(matches!(result, Err(Error::Spill { .. })));
            assert_eq!(calls, 1);
        }
    }

    /// `/tmp` may be memory, which is what is short.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_temporary_file_is_where_asked_else_on_a_disk() {
        use std::{fs, os::fd::AsRawFd};

        let place = |given: Option<OsString>| {
            let spilled = Spilled::new(given).unwrap();
            let link = fs::read_link(format!("/proc/self/fd/{}", spilled.file.as_raw_fd())).unwrap();
            assert!(link.starts_with(fs::canonicalize(&spilled.folder).unwrap()), "{link:?}");
            spilled.folder
        };
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(place(Some(folder.path().into())), folder.path());
        let usable = tempfile::tempfile_in("/var/tmp").is_ok();
        let default = if usable { "/var/tmp".into() } else { env::temp_dir() };
        assert_eq!([place(None), place(Some(OsString::new()))], [default.clone(), default]);

        let missing = folder.path().join("missing");
        let Err(error) = Spilled::new(Some(missing.clone().into())) else {
            panic!("a folder out of nothing")
        };
        assert!(error.to_string().starts_with(&format!("{}: no temporary", missing.display())), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_temporary_file_has_no_name() {
        use std::os::unix::fs::MetadataExt;

        let sorter = sorter(1, &[(2, vec![1]), (1, vec![2])]);
        assert_eq!(sorter.spilled.unwrap().file.metadata().unwrap().nlink(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whatever the budget, the outcome is that of a stable sort in memory.
        #[test]
        fn equals_a_stable_sort_in_memory(
            requests in proptest::collection::vec(
                (0..20_u64, proptest::collection::vec(any::<u8>(), 0..40)), 0..300
            ),
            budget in 1..4_000_usize,
        ) {
            let mut expected = requests.clone();
            expected.sort_by_key(|(time, _)| *time);
            prop_assert_eq!(sorted(budget, &requests), expected);
        }
    }
}
