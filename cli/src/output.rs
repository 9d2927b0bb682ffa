//! What the tool leaves behind: text on standard output, and files that are whole or not there.
//!
//! # What
//! A file is written under another name in the same folder, then renamed. Whoever is interrupted in between takes the
//! other name away. What is there already and is no plain file (a device, a pipe) is written to as it is.
//!
//! # Invariants
//! | id | always                                                        | kept by                     |
//! |----|-----------------------------------------------------------------|-----------------------------|
//! | I1 | `PENDING` names the unfinished file whenever there is one       | `whole`: made and renamed under its lock |
//! | I2 | nothing is made or renamed once an interrupt has begun to clean up | `interrupted` keeps the lock |

use std::{
    env, fmt,
    fs::{self, File},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, PoisonError},
};

use tempfile::TempPath;

/// What a shell expects of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The unfinished file.
static PENDING: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Why a file was not written.
#[derive(Debug)]
pub(crate) struct Error {
    path: PathBuf,
    error: io::Error,
}

/// Ends the process, after taking the unfinished file away. (I2)
pub(crate) fn interrupted() -> ! {
    let pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = pending.as_deref() {
        let _ = fs::remove_file(path); // Nobody is left who could do better.
    }
    if io::stderr().is_terminal() {
        let _ = writeln!(io::stderr()); // The shell's prompt starts below the bar.
    }
    process::exit(INTERRUPTED)
}

/// Whether text on standard output may have colours.
pub(crate) fn coloured() -> bool {
    // NO_COLOR counts when it is not empty.
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !plain
}

/// Tries whether a file could be written, before much work is put into what it is to hold.
///
/// # Errors
/// [`Error`] with what the system says.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    let _no_interrupt = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let (target, plain) = target(path);
    let tried = if plain { unfinished(&target).map(drop) } else { Ok(()) };
    tried.map_err(|error| Error { path: path.to_owned(), error })
}

/// Writes a file that is there as a whole or, on an error, as it was.
///
/// # Errors
/// [`Error`] with what the system says.
pub(crate) fn whole(path: &Path, text: &str) -> Result<(), Error> {
    write(path, text.as_bytes()).map_err(|error| Error { path: path.to_owned(), error })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (target, plain) = target(path);
    if !plain {
        return File::options().write(true).open(&target)?.write_all(bytes);
    }
    let pending = || PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut file, name) = {
        let mut pending = pending();
        let (file, name) = unfinished(&target)?; // I1
        *pending = Some(name.to_path_buf());
        (file, name)
    };
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let mut pending = pending();
    let done = written.and_then(|()| name.persist(&target).map_err(io::Error::from));
    *pending = None;
    done
}

/// Where a file really is, behind links, and whether it is a plain file or not there yet.
fn target(path: &Path) -> (PathBuf, bool) {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let plain = fs::metadata(&target).map_or(true, |data| data.is_file() || data.is_dir());
    (target, plain)
}

/// A file beside the target, with the permissions that the target has or a new file gets.
fn unfinished(target: &Path) -> io::Result<(File, TempPath)> {
    if target.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tollgate-").suffix(".part");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let (file, name) = builder.tempfile_in(folder)?.into_parts();
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    Ok((file, name))
}

// === impl Error ===

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: can not be written: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        check(&path).unwrap();
        assert_eq!(names(folder.path()), [""; 0]);
        for text in ["first", "second"] {
            whole(&path, text).unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path()).len()), (text.into(), 1));
        }
        assert_eq!(*PENDING.lock().unwrap(), None);
    }

    #[test]
    fn what_can_not_be_written_is_said_before_and_after() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing").join("report.html");
        for path in [missing.as_path(), folder.path()] {
            for error in [check(path).unwrap_err(), whole(path, "x").unwrap_err()] {
                let start = format!("{}: can not be written: ", path.display());
                assert!(error.to_string().starts_with(&start), "{error}");
            }
        }
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_devices_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        whole(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        check(Path::new("/dev/null")).unwrap();
        whole(Path::new("/dev/null"), "gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
