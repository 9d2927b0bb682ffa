//! The requests in order, kept to be gone through again: beyond a budget in a nameless temporary file.
//!
//! # State
//! A request is the time since the one before it and the place of its key, each as a number of 7 bits a byte, the
//! lowest first, the eighth bit telling that more follows.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, Write},
    path::PathBuf,
};

use crate::input::{self, scratch};

/// Bytes held before they go to the file.
const BUDGET: usize = 32 << 20;

/// Requests, oldest first.
pub(super) struct Spool {
    budget: usize,
    held: Vec<u8>,
    /// What was held before, and where.
    file: Option<(File, PathBuf)>,
    newest: u64,
    count: u64,
}

// === impl Spool ===

impl Spool {
    pub(super) fn new() -> Self {
        Self { budget: BUDGET, held: Vec::new(), file: None, newest: 0, count: 0 }
    }

    /// Keeps one more request, no older than the one before it.
    ///
    /// # Errors
    /// [`input::Error::Spill`] if the temporary file can not be written.
    pub(super) fn push(&mut self, key: u32, at: u64) -> Result<(), input::Error> {
        if self.held.len() >= self.budget {
            self.spill()?;
        }
        write_number(&mut self.held, at - self.newest);
        write_number(&mut self.held, u64::from(key));
        self.newest = at;
        self.count += 1;
        Ok(())
    }

    /// How many requests there are.
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    /// Hands every request to `sink`, the oldest first.
    ///
    /// # Errors
    /// What the sink returns, or [`input::Error::Spill`] if the temporary file can not be read.
    pub(super) fn replay<E: From<input::Error>>(
        &mut self,
        mut sink: impl FnMut(u32, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { held, file, count, .. } = self;
        let mut none = io::empty();
        let (stored, folder): (&mut dyn Read, PathBuf) = match file {
            Some((file, folder)) => {
                let failed = |error| input::Error::Spill { folder: folder.clone(), error };
                file.rewind().map_err(failed)?;
                (file, folder.clone())
            }
            None => (&mut none, PathBuf::new()),
        };
        let mut bytes = BufReader::with_capacity(1 << 20, stored.chain(held.as_slice()));
        let mut newest = 0;
        for _ in 0..*count {
            let mut number = || {
                read_number(&mut bytes).map_err(|error| input::Error::Spill { folder: folder.clone(), error })
            };
            newest += number()?;
            let key = number()? as u32;
            sink(key, newest)?;
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> Result<(), input::Error> {
        let (file, folder) = match &mut self.file {
            Some(file) => file,
            none => none.insert(scratch()?),
        };
        file.write_all(&self.held).map_err(|error| input::Error::Spill { folder: folder.clone(), error })?;
        self.held.clear();
        Ok(())
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut impl BufRead) -> io::Result<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let &[byte, ..] = bytes.fill_buf()? else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        bytes.consume(1);
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return Ok(number);
        }
        if shift > 63 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// As often as asked, in memory and on disk.
        #[test]
        fn what_went_in_comes_out(
            mut requests in prop::collection::vec((0..u64::MAX, any::<u32>(), 0_u32..64), 0..300),
            budget in 1_usize..400,
        ) {
            for request in &mut requests {
                request.0 >>= request.2;
            }
            requests.sort();
            let mut spool = Spool { budget, ..Spool::new() };
            for &(at, key, _) in &requests {
                spool.push(key, at).unwrap();
            }
            prop_assert_eq!(spool.len(), requests.len() as u64);
            for _ in 0..2 {
                let mut seen = Vec::new();
                spool.replay::<input::Error>(|key, at| { seen.push((at, key)); Ok(()) }).unwrap();
                prop_assert_eq!(seen, requests.iter().map(|&(at, key, _)| (at, key)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_sink_that_fails_ends_it() {
        let mut spool = Spool::new();
        (0..3).for_each(|i| spool.push(i, u64::from(i)).unwrap());
        let mut calls = 0;
        let failed = spool.replay(|_, _| {
            calls += 1;
            Err(input::Error::Spill { folder: PathBuf::new(), error: io::ErrorKind::Other.into() })
        });
        assert!(failed.is_err() && calls == 1);
    }
}
