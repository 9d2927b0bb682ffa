//! As many processes as there are processors, each taking the next piece of work.
//!
//! Not threads: loom maps a stack for each thread of each execution, and the threads of one process wait for each other
//! there. So this program starts itself again with the same arguments, and the copies share the work by files in a folder:
//! whoever creates a file does that piece, and leaves the result in it.

use std::{
    env,
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

/// Where a copy finds the folder.
const FOLDER: &str = "TOLLGATE_MODELS_SHARED";

/// Does `work` on every item, in any order, and returns the results in the order of the items; in a copy, the results of
/// the pieces that it did itself. Only who works makes the items.
pub(crate) fn each<T>(
    items: impl FnOnce() -> Result<Vec<T>, String>,
    processes: usize,
    work: impl Fn(&T) -> String,
) -> Result<Vec<String>, String> {
    if let Some(folder) = env::var_os(FOLDER) {
        return share(&items()?, Path::new(&folder), work).map_err(|error| format!("{}: {error}", FOLDER));
    }
    if processes <= 1 {
        return Ok(items()?.iter().map(work).collect());
    }
    let folder = env::temp_dir().join(format!("tollgate-models-{}", std::process::id()));
    let results = start(processes, &folder);
    let removed = fs::remove_dir_all(&folder);
    let results = results?;
    removed.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(results)
}

/// Whether this process is a copy, which prints no totals.
pub(crate) fn is_copy() -> bool {
    env::var_os(FOLDER).is_some()
}

fn piece(folder: &Path, i: usize) -> PathBuf {
    folder.join(i.to_string())
}

fn share<T>(items: &[T], folder: &Path, work: impl Fn(&T) -> String) -> std::io::Result<Vec<String>> {
    let mut results = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match File::create_new(piece(folder, i)) {
            Ok(mut file) => {
                let result = work(item);
                file.write_all(result.as_bytes())?;
                results.push(result);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(results)
}

fn start(processes: usize, folder: &Path) -> Result<Vec<String>, String> {
    fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let own = env::current_exe().map_err(|error| format!("the program's own path: {error}"))?;
    let copies: Result<Vec<_>, _> = (0..processes)
        .map(|_| Command::new(&own).args(env::args_os().skip(1)).env(FOLDER, folder).spawn())
        .collect();
    for mut copy in copies.map_err(|error| format!("{}: {error}", own.display()))? {
        let ended = copy.wait().map_err(|error| format!("a copy of this program: {error}"))?;
        if !ended.success() {
            return Err(format!("a copy of this program ended with {ended}"));
        }
    }
    let result = |i| fs::read_to_string(piece(folder, i)).map_err(|error| format!("result {i}: {error}"));
    let pieces = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?.count();
    (0..pieces).map(result).collect()
}
