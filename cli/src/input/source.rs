//! Files as bytes: plain, gzip or zstd, told by their first bytes, or standard input.
//!
//! A compressed file may consist of several members or frames. Behind the last member of gzip, zeros (a tape's
//! block, filled up) are nothing, and anything else is left alone and reported, as gzip does. Progress counts the
//! bytes as stored.

use std::{
    cell::Cell,
    fs::File,
    io::{self, BufReader, Chain, Cursor, Read},
    path::Path,
    rc::Rc,
};

use flate2::bufread::GzDecoder;

use super::{Error, Progress};

/// Formats that are recognised only to say so.
const OTHERS: &[(&[u8], &str)] = &[
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
];

/// As much of gzip as one read asks for.
const CHUNK: usize = 1 << 15;

/// A file's bytes, without their compression.
pub(super) struct Source<'p> {
    bytes: Box<dyn Read + 'p>,
    garbage: Rc<Cell<bool>>,
}

/// What is read of gzip: the beginning of a member, looked at before, and the rest.
type Stored<R> = Chain<Cursor<Vec<u8>>, BufReader<R>>;

/// The members of a gzip file, one behind the other.
struct Members<R> {
    /// `None` behind the last one.
    member: Option<GzDecoder<Stored<R>>>,
    garbage: Rc<Cell<bool>>,
}

/// Reports every byte that passes.
struct Counted<'p, R> {
    inner: R,
    progress: &'p dyn Progress,
}

/// How messages and the summary name a file.
pub(super) fn name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".into() } else { path.display().to_string() }
}

/// Opens a file for reading and undoes its compression.
///
/// # Errors
/// [`Error::Read`] naming the file: it can not be opened, or is compressed in a way not known here.
pub(super) fn open<'p>(path: &Path, progress: &'p dyn Progress) -> Result<Source<'p>, Error> {
    let failed = |error| Error::Read { file: name(path), line: 0, error };
    let stored: Box<dyn Read> = if is_standard_input(path) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(failed)?)
    };
    decoded(Counted { inner: stored, progress }).map_err(failed)
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Undoes the compression that the first bytes name.
fn decoded<'p>(mut stored: impl Read + 'p) -> io::Result<Source<'p>> {
    let mut magic = Vec::new();
    stored.by_ref().take(6).read_to_end(&mut magic)?;
    let garbage = Rc::new(Cell::new(false));
    let whole = |magic| Cursor::new(magic).chain(stored);
    let bytes: io::Result<Box<dyn Read>> = match magic.as_slice() {
        [0x1f, 0x8b, ..] => {
            let reader = BufReader::with_capacity(CHUNK, whole(magic));
            let member = Some(GzDecoder::new(Cursor::new(Vec::new()).chain(reader)));
            Ok(Box::new(Members { member, garbage: Rc::clone(&garbage) }))
        }
        // A frame, or the skippable frame that parallel compressors put first.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Ok(Box::new(zstd::Decoder::new(whole(magic))?))
        }
        _ => match OTHERS.iter().find(|(start, _)| magic.starts_with(start)) {
            Some((_, kind)) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it is {kind}-compressed; gzip, zstd and plain text can be read"),
            )),
            None => Ok(Box::new(whole(magic))),
        },
    };
    Ok(Source { bytes: bytes?, garbage })
}

// === impl Source ===

impl Source<'_> {
    /// Tells, once all is read, whether bytes were left that are not of the compression.
    pub(super) fn garbage(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.garbage)
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

// === impl Members ===

impl<R: Read> Members<R> {
    /// The member in `stored` behind zeros; `None` if there is nothing, or none.
    fn next(&self, mut stored: BufReader<R>) -> io::Result<Option<GzDecoder<Stored<R>>>> {
        const MAGIC: [u8; 2] = [0x1f, 0x8b];
        let Some(first) = stored.by_ref().bytes().find(|byte| !matches!(byte, Ok(0))) else {
            return Ok(None);
        };
        let mut start = vec![first?];
        stored.by_ref().take(1).read_to_end(&mut start)?;
        // A member may be cut after its first byte.
        if MAGIC.starts_with(&start) {
            return Ok(Some(GzDecoder::new(Cursor::new(start).chain(stored))));
        }
        self.garbage.set(true);
        Ok(None)
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            // The beginning that was looked at lies behind: no member is as short.
            let stored = self.member.take().map(|member| member.into_inner().into_inner().1);
            self.member = stored.map_or(Ok(None), |stored| self.next(stored))?;
        }
        Ok(0)
    }
}

// === impl Counted ===

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.progress.bytes(n as u64);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn read(stored: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        decoded(stored)?.read_to_end(&mut bytes).map(|_| bytes)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    #[test]
    fn plain_text_is_itself() {
        for text in [&b""[..], b"a", b"seven b", &[b'x'; 10_000]] {
            assert_eq!(read(text).unwrap(), text);
        }
    }

    #[test]
    fn several_members_are_one_file() {
        assert_eq!(read(&[gzip(b"one\n"), gzip(b""), gzip(b"two\n")].concat()).unwrap(), b"one\ntwo\n");
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"size"].concat();
        assert_eq!(
            read(&[skippable, zstandard(b"one\n"), zstandard(b"two\n")].concat()).unwrap(),
            b"one\ntwo\n"
        );
    }

    /// With whether something was left.
    fn read_all(stored: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        let (mut source, mut bytes) = (decoded(stored)?, Vec::new());
        source.read_to_end(&mut bytes)?;
        Ok((bytes, source.garbage().get()))
    }

    #[test]
    fn what_follows_gzip_is_nothing_if_zeros_and_else_reported() {
        let member = || gzip(b"one\n");
        let zeros = |n| vec![0; n];
        for (tail, text, garbage) in [
            (vec![], "one\n", false),
            (zeros(1), "one\n", false),
            (zeros(100_000), "one\n", false),
            // Padded, then appended to.
            ([zeros(10_240), member(), zeros(512)].concat(), "one\none\n", false),
            (b"garbage".to_vec(), "one\n", true),
            (b"g".to_vec(), "one\n", true),
            (b"\x1fg".to_vec(), "one\n", true),
            ([&zeros(100_000)[..], b"g"].concat(), "one\n", true),
            ([member(), b"garbage".to_vec(), member()].concat(), "one\none\n", true),
        ] {
            let stored = [member(), tail].concat();
            assert_eq!(read_all(&stored).unwrap(), (text.as_bytes().to_vec(), garbage), "{stored:?}");
        }
    }

    /// The last bytes of a member are zeros as often as not, and no padding.
    #[test]
    fn a_member_torn_anywhere_is_an_error() {
        let (first, second) = (gzip(b"one\n"), gzip(b"two\n"));
        let stored = [first.as_slice(), &second].concat();
        for end in 2..stored.len() {
            assert_eq!(read_all(&stored[..end]).is_ok(), end == first.len(), "{end}");
        }
        let mut wrong = stored.clone();
        wrong[first.len() - 8] ^= 1; // The checksum.
        assert!(read_all(&wrong).is_err());
    }

    #[test]
    fn a_torn_file_is_an_error() {
        let text = (0..9_999_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        for stored in [gzip(&text), zstandard(&text)] {
            assert_eq!(read(&stored).unwrap(), text);
            assert!(read(&stored[..stored.len() / 2]).is_err());
        }
    }

    #[test]
    fn other_compressions_are_named() {
        let error = read(b"BZh91AY&SY").unwrap_err();
        assert_eq!(error.to_string(), "it is bzip2-compressed; gzip, zstd and plain text can be read");
    }

    #[test]
    fn progress_counts_bytes_as_stored() {
        struct Sum(std::cell::Cell<u64>);
        impl Progress for Sum {
            fn bytes(&self, n: u64) {
                self.0.set(self.0.get() + n);
            }
            fn phase(&self, _: &str) {}
        }
        let stored = gzip(&[b'x'; 100_000]);
        let sum = Sum(0.into());
        let counted = Counted { inner: stored.as_slice(), progress: &sum };
        decoded(counted).unwrap().read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(sum.0.get(), stored.len() as u64);
    }
}
