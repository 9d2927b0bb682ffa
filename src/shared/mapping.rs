//! Files and mappings: every system call of a region.

use core::ptr::NonNull;
use std::{
    format, fs,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FallocateFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags, Stat, fallocate, fchmod,
        fcntl_add_seals, fcntl_get_seals, fstat, linkat, memfd_create, open, stat,
    },
    io::{Errno, pread},
    mm::{MapFlags, ProtFlags, mmap, munmap},
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
    system::sysinfo,
};

use super::{error::SharedError, header, header::Epoch};

/// A file mapped into this process, for as long as it lives.
pub(super) struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
}

/// Who may own and write a file that is trusted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    pub(super) mode: u32,
    pub(super) any_owner: bool,
}

// === impl Mapping ===

impl Mapping {
    /// All of a file.
    pub(super) fn new(file: BorrowedFd<'_>, bytes: usize) -> Result<Self, SharedError> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: contract of `mmap`: new memory, wherever there is room.
        let memory = unsafe { mmap(core::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) };
        let memory = memory.map_err(SharedError::system("mmap"))?;
        let memory = NonNull::new(memory.cast()).ok_or(SharedError::System { call: "mmap", errno: 0 })?;
        Ok(Self { memory, bytes })
    }

    pub(super) fn memory(&self) -> NonNull<u8> {
        self.memory
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: contract of `munmap`: mapped by `new`, and nobody borrows from it any more.
        let unmapped = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(unmapped, Ok(()), "mapped by `new`");
    }
}

// === files ===

/// A file without a name, in the folder in which it will get one: nobody else finds it, and it goes with its creator.
pub(super) fn nameless(path: &Path, bytes: u64, mode: u32) -> Result<OwnedFd, SharedError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = Mode::from_raw_mode(mode);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = open(folder, flags, mode).map_err(SharedError::system("open"))?;
    fchmod(&file, mode).map_err(SharedError::system("fchmod"))?; // Whatever the umask.
    take(file.as_fd(), bytes)?;
    Ok(file)
}

/// Gives a file its name, unless that exists.
pub(super) fn link(file: BorrowedFd<'_>, path: &Path) -> Result<(), SharedError> {
    let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(SharedError::system("linkat"))
}

/// Anonymous memory with a descriptor, which nobody can make smaller or larger. The system would not refuse more of it than there is,
/// but end processes to make room.
pub(super) fn sealed(name: &str, bytes: u64, mode: u32) -> Result<OwnedFd, SharedError> {
    let machine = sysinfo();
    let units = u128::from(machine.totalram) + u128::from(machine.totalswap);
    if u128::from(bytes) > units * u128::from(machine.mem_unit) {
        return Err(SharedError::System { call: "memfd_create", errno: Errno::NOMEM.raw_os_error() });
    }
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(SharedError::system("memfd_create"))?;
    fchmod(&file, Mode::from_raw_mode(mode)).map_err(SharedError::system("fchmod"))?;
    take(file.as_fd(), bytes)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals).map_err(SharedError::system("fcntl"))?;
    Ok(file)
}

/// How what exists is opened, which may be no file: without waiting for whoever has its other end.
const AS_IT_IS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An existing file.
pub(super) fn named(path: &Path) -> Result<OwnedFd, SharedError> {
    open(path, OFlags::RDWR | AS_IT_IS, Mode::empty()).map_err(SharedError::system("open"))
}

/// An existing file, to be looked at.
pub(super) fn readable(path: &Path) -> Result<OwnedFd, SharedError> {
    open(path, OFlags::RDONLY | AS_IT_IS, Mode::empty()).map_err(SharedError::system("open"))
}

/// Removes a name.
pub(super) fn unlink(path: &Path) -> Result<(), SharedError> {
    rustix::fs::unlink(path).map_err(SharedError::system("unlink"))
}

/// The size of a file that may be mapped: one, of a user and with a mode that are trusted, and that stays as long as it is.
pub(super) fn trusted(file: BorrowedFd<'_>, trust: Trust) -> Result<u64, SharedError> {
    let found = regular(file)?;
    let mode = found.st_mode & 0o7777;
    let is_known = trust.any_owner || found.st_uid == geteuid().as_raw();
    if !is_known || mode & 0o022 & !trust.mode != 0 {
        return Err(SharedError::Permission { owner: found.st_uid, mode });
    }
    // A name is only as good as its folder; without one, a seal there must be, if there can be.
    let seals = if found.st_nlink == 0 { fcntl_get_seals(file).ok() } else { None };
    if seals.is_some_and(|seals| !seals.contains(SealFlags::SHRINK)) {
        return Err(SharedError::Unsealed);
    }
    Ok(found.st_size.unsigned_abs())
}

/// What is known of a file, if it is one.
fn regular(file: BorrowedFd<'_>) -> Result<Stat, SharedError> {
    let found = fstat(file).map_err(SharedError::system("fstat"))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(found),
        _ => Err(SharedError::NotAFile { mode: found.st_mode }),
    }
}

/// The first bytes of a file.
pub(super) fn first_bytes(file: BorrowedFd<'_>) -> Result<[u8; header::BYTES], SharedError> {
    regular(file)?;
    bytes_from(file, 0)
}

/// Bytes of a file from somewhere on; zeros where it is shorter.
pub(super) fn bytes_from<const N: usize>(file: BorrowedFd<'_>, from: u64) -> Result<[u8; N], SharedError> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < bytes.len() {
        let read = pread(file, &mut bytes[filled..], from + filled as u64);
        match read.map_err(SharedError::system("pread"))? {
            0 => break, // Of a header the seal tells.
            more => filled += more,
        }
    }
    Ok(bytes)
}

/// Takes the space now: later a store would die for lack of it.
fn take(file: BorrowedFd<'_>, bytes: u64) -> Result<(), SharedError> {
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::INTR) => {}
            other => return other.map_err(SharedError::system("fallocate")),
        }
    }
}

// === the system ===

/// Two random words.
pub(super) fn random() -> Result<[u64; 2], SharedError> {
    let mut words = [0; 2];
    for word in &mut words {
        let mut bytes = [0; 8];
        let filled =
            getrandom(&mut bytes, GetRandomFlags::empty()).map_err(SharedError::system("getrandom"))?;
        debug_assert_eq!(filled, bytes.len(), "so few come whole");
        *word = u64::from_le_bytes(bytes);
    }
    Ok(words)
}

/// What the system's clocks count from, here and now.
pub(super) fn epoch() -> Result<Epoch, SharedError> {
    let path = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(path).map_err(|error| SharedError::System {
        call: "read of the boot id",
        errno: error.raw_os_error().unwrap_or(0),
    })?;
    let digits = text.bytes().filter_map(|byte| char::from(byte).to_digit(16));
    let id = digits.fold(0_u128, |id, digit| id << 4 | u128::from(digit));
    // Without time namespaces there is one time.
    let namespace = match stat("/proc/self/ns/time") {
        Ok(found) => found.st_ino,
        Err(Errno::NOENT) => 0,
        Err(errno) => return Err(SharedError::system("stat of the time namespace")(errno)),
    };
    Ok(Epoch { boot: [id as u64, (id >> 64) as u64], namespace })
}
