//! Regions: limiters that processes share.

use core::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::NonNull,
};
use std::{
    ffi::OsStr,
    os::{
        fd::{BorrowedFd, IntoRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use tollgate::shared::{self, Info, SharedError};

use crate::{
    config::{TOLLGATE_MAX_RULES, tollgate_config_t, tollgate_rule_t},
    control::{tell_rules, with_rules},
    handle::tollgate_limiter_t,
    life::place,
    status::{
        code,
        tollgate_status::{self, *},
    },
};

pub mod by_key;
mod region;

use region::{Plan, Shm, Source, refused_by_system, told};

/// The size of `tollgate_shm_config_t`, for its `struct_size`.
pub const TOLLGATE_SHM_CONFIG_SIZE: u32 = 72;
/// The size of `tollgate_shm_info_t`, for its `struct_size`.
pub const TOLLGATE_SHM_INFO_SIZE: u32 = 208;

/// Trust files of any user. Without it they must be this process's.
pub const TOLLGATE_ANY_OWNER: u32 = 32;
/// Of a region that was looked at: its times are those of another boot or time namespace. No process here can have it.
pub const TOLLGATE_STALE: u32 = 64;

/// A region: limiters by index, and limiters by key, that processes share. Linux; in a library that was built without it (the
/// feature `shm`) there is none of its functions.
///
/// It is a file, anonymous memory behind a descriptor, or memory of the caller's. There is no pointer, lock, owner or process id in
/// it, and zeros are fresh limiters: a process may be killed at any instruction, loses at most the permits of the call that it was in,
/// and there is nothing to recover. Whoever comes to it gives the same configuration as who made it, which is compared to the
/// bit. Programs in Rust (`tollgate::shared`) and in C share one region.
///
/// What is made of it (`tollgate_shm_t`, and the limiters of `tollgate_shm_get`) is of this process, and of children that it
/// forks. What may run at once: everything but `tollgate_shm_close`.
///
/// A region whose bytes come from somebody hostile can decide wrongly. No call reads or writes outside of it, whatever the bytes
/// are, also those that others change meanwhile; who can write to it can make calls wait. A file that somebody cuts short kills
/// whoever touches what is missing (SIGBUS): its folder must be trusted. Anonymous memory is sealed against that.
pub struct tollgate_shm_t {
    _private: [u8; 0],
}

/// What a region is to be. Begin with zeros and `struct_size`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tollgate_shm_config_t {
    /// `TOLLGATE_SHM_CONFIG_SIZE`.
    pub struct_size: u32,
    /// `TOLLGATE_CLOCK_MONOTONIC`, `_BOOTTIME` or `_CALLER` (all processes then pass times of one clock); there is no default.
    pub clock: u32,
    /// A sum of `TOLLGATE_REFUSE_WHEN_FULL`, `TOLLGATE_ANY_OWNER`, `TOLLGATE_LIVE`: the rules may change, by
    /// `tollgate_shm_set_rules`, but for `TOLLGATE_GCRA`.
    pub flags: u32,
    /// The mode of files made, whatever the umask; of those that exist, what others may have the right to write. 0: 0600.
    pub mode: u32,
    /// What each limiter, and each key, is allowed: `TOLLGATE_LOG`, `_WINDOW`, `_FIXED`, `_TWO_WINDOW` or `_GCRA`, with `clock`,
    /// `shards` and `flags` 0 (but for `TOLLGATE_TEXTBOOK_COVERAGE`); `reserved[1]` is for `TOLLGATE_LIVE` here as there.
    /// Read by the call alone.
    pub limit: *const tollgate_config_t,
    /// How many limiters by index.
    pub limiters: u64,
    /// For how many keys in use there is room; 0: no keys.
    pub keys: u64,
    /// 0.
    pub reserved: [u64; 4],
}

/// What is known of a region without its configuration. Set `struct_size` before.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tollgate_shm_info_t {
    /// `TOLLGATE_SHM_INFO_SIZE`, set by the caller.
    pub struct_size: u32,
    /// The version of its layout.
    pub layout_version: u32,
    /// `TOLLGATE_LOG` and its like; 0: one that this library does not know.
    pub algorithm: u32,
    /// `TOLLGATE_CLOCK_MONOTONIC` and its like; 0: one that this library does not know.
    pub clock: u32,
    /// A sum of `TOLLGATE_REFUSE_WHEN_FULL`, `TOLLGATE_STALE`, `TOLLGATE_LIVE`.
    pub flags: u32,
    /// How many of `rules` there are.
    pub rule_count: u32,
    /// Bytes of the region.
    pub bytes: u64,
    /// Limiters by index.
    pub limiters: u64,
    /// The most keys that there can be: at least twice what was asked for.
    pub capacity: u64,
    /// The rules in force.
    pub rules: [tollgate_rule_t; TOLLGATE_MAX_RULES],
    /// 0.
    pub reserved: [u64; 4],
}

const _: () = assert!(size_of::<tollgate_shm_info_t>() == TOLLGATE_SHM_INFO_SIZE as usize);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<tollgate_shm_config_t>() == TOLLGATE_SHM_CONFIG_SIZE as usize);

/// Attaches to the region in a file, say in /dev/shm, or makes it if there is none, and puts it in `*out`. Of processes that come at
/// once one makes it, and all have the same. Nobody ever sees part of it: it is built without a name and gets it when it is done.
///
/// Errors, which leave `*out` alone:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of any pointer, the configuration's `limit` too.
/// - TOLLGATE_E_SIZE: `struct_size`; or the file has another size than the region.
/// - TOLLGATE_E_INVALID: anything else in the configuration.   TOLLGATE_E_CLOCK: a clock of one process.
/// - TOLLGATE_E_UNSUPPORTED: an algorithm that no region has.   TOLLGATE_E_NOMEM: no memory is that large.
/// - TOLLGATE_E_SYS: the system refused; `errno` says why.
/// - TOLLGATE_E_UNTRUSTED: another user's file, one that others may write to, or no file.
/// - TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC, TOLLGATE_E_CORRUPT: no region is in it, or a broken one.
/// - TOLLGATE_E_LAYOUT: a region of another layout.   TOLLGATE_E_CONFIG: one of another configuration.
/// - TOLLGATE_E_CLOCK: one whose time is of another boot or time namespace.
///
/// Cost: reads all of the region.
///
/// Thread-safe, process-safe.   Allocates; where there is no memory for a small piece the process ends.   Blocks: for files.
/// Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_open(
    path: *const c_char,
    config: *const tollgate_shm_config_t,
    out: *mut *mut tollgate_shm_t,
) -> c_int {
    // SAFETY: the contract of this function.
    let path = unsafe { path_of(path) };
    // SAFETY: the contract of this function.
    unsafe { begin(path.map(Source::Open), config, out) }
}

/// Makes a region in a file that does not exist yet, as `tollgate_shm_open` does. Its errors, and TOLLGATE_E_SYS with `EEXIST` if
/// there is something of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_create(
    path: *const c_char,
    config: *const tollgate_shm_config_t,
    out: *mut *mut tollgate_shm_t,
) -> c_int {
    // SAFETY: the contract of this function.
    let path = unsafe { path_of(path) };
    // SAFETY: the contract of this function.
    unsafe { begin(path.map(Source::Create), config, out) }
}

/// Attaches to the region in a file, as `tollgate_shm_open` does, and writes nothing. Its errors, and TOLLGATE_E_SYS with `ENOENT` if
/// there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_attach(
    path: *const c_char,
    config: *const tollgate_shm_config_t,
    out: *mut *mut tollgate_shm_t,
) -> c_int {
    // SAFETY: the contract of this function.
    let path = unsafe { path_of(path) };
    // SAFETY: the contract of this function.
    unsafe { begin(path.map(Source::Attach), config, out) }
}

/// Attaches to the region behind a descriptor, which stays the caller's and may be closed after that. It writes nothing.
///
/// Errors as `tollgate_shm_open`; TOLLGATE_E_SYS with `EBADF` for what is no descriptor; TOLLGATE_E_UNTRUSTED for anonymous memory
/// that could be cut short.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_open_fd(
    fd: c_int,
    config: *const tollgate_shm_config_t,
    out: *mut *mut tollgate_shm_t,
) -> c_int {
    // SAFETY: the contract of this function.
    let fd = unsafe { descriptor(fd) };
    // SAFETY: the contract of this function.
    unsafe { begin(fd.map(Source::Descriptor), config, out) }
}

/// Makes a region in anonymous memory that nobody can cut short (a memfd), and puts its descriptor in `*fd`: it is the caller's, to be
/// inherited by children, sent over a socket, or closed. It is closed on `exec`, unless that is changed. `name` is shown in /proc.
///
/// Errors as `tollgate_shm_open`; TOLLGATE_E_INVALID for a name that is not UTF-8; TOLLGATE_E_SYS with `ENOMEM` if the machine does not
/// have so much memory. They leave `*fd` alone. All of it is taken at once: where there is less left, the system ends processes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_create_memfd(
    name: *const c_char,
    config: *const tollgate_shm_config_t,
    fd: *mut c_int,
    out: *mut *mut tollgate_shm_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let name = unsafe { text_of(name) }?.to_str().map_err(|_| TOLLGATE_E_INVALID)?;
        let fd = place(fd)?;
        // SAFETY: the contract of this function.
        if let Some(made) = unsafe { make(Source::Memfd(name), config, out) }? {
            // SAFETY: the contract of this function: writable.
            unsafe { fd.write(made.into_raw_fd()) };
        }
        Ok(())
    })())
}

/// Makes a region in memory of the caller's: `len` bytes at `memory`, aligned to `tollgate_align()`, all zeros, or holding a region of
/// this very configuration, which is then the one. Say a zone of nginx, or memory mapped before forking. Any number of
/// processes may call this at once, with the same configuration: they help one another, and what one leaves half done when it
/// dies, the next finishes. The memory must stay for as long as what is made of it.
///
/// Errors as `tollgate_shm_open`, of files aside, with TOLLGATE_E_SIZE: `len` is less than `tollgate_shm_size` says; TOLLGATE_E_ALIGN: of
/// the memory too; TOLLGATE_E_CONFIG: its header is neither zeros nor that of such a region, begun or done. Nothing of value was written.
/// Behind a header of zeros there must be zeros: anything else is TOLLGATE_E_CORRUPT, or taken for what was admitted.
///
/// Cost: reads all of the region.
///
/// Thread-safe, process-safe, fork-safe, lock-free.   Allocates as `tollgate_shm_open`.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_place(
    memory: *mut c_void,
    len: usize,
    config: *const tollgate_shm_config_t,
    out: *mut *mut tollgate_shm_t,
) -> c_int {
    let memory = NonNull::new(memory.cast::<u8>()).ok_or(TOLLGATE_E_NULL);
    let memory = memory.map(|memory| NonNull::slice_from_raw_parts(memory, len));
    // SAFETY: the contract of this function.
    unsafe { begin(memory.map(Source::Memory), config, out) }
}

/// Tells how many bytes a region of this configuration takes.
///
/// Errors: those of `tollgate_shm_open` about the configuration.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_size(config: *const tollgate_shm_config_t, out: *mut usize) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let plan = unsafe { read(config) }?;
        let out = place(out)?;
        let bytes = plan.bytes()?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(bytes) };
        Ok(())
    })())
}

/// Ends what this process has of a region, which itself stays as it is. NULL is allowed. The limiters of `tollgate_shm_get` must not be
/// used any more; they are still to be destroyed.
///
/// Needs exclusive access, in this process: no other call may run or follow.   Frees.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_close(shm: *mut tollgate_shm_t) {
    // SAFETY: the contract of this function.
    unsafe { Shm::close(shm) };
}

/// Removes the name of a region. Processes that have it go on with it; whoever opens that name makes a new one.
///
/// Errors: TOLLGATE_E_NULL: `path`.   TOLLGATE_E_SYS: the system refused; `errno` says why.
///
/// Thread-safe.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_unlink(path: *const c_char) -> c_int {
    // SAFETY: the contract of this function.
    code(unsafe { path_of(path) }.and_then(|path| Ok(shared::unlink(path)?)))
}

/// Tells what region is in a file, of whatever configuration. It writes nothing. Set `out->struct_size` before.
///
/// Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.   TOLLGATE_E_SIZE: `struct_size`.
/// TOLLGATE_E_SYS: the system refused; `errno` says why.   TOLLGATE_E_UNTRUSTED: no file.   TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC, TOLLGATE_E_LAYOUT,
/// TOLLGATE_E_CORRUPT: as `tollgate_shm_open`.
///
/// Thread-safe, process-safe.   Allocates.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_inspect(path: *const c_char, out: *mut tollgate_shm_info_t) -> c_int {
    // SAFETY: the contract of this function.
    let path = unsafe { path_of(path) };
    // SAFETY: the contract of this function.
    code(path.and_then(|path| unsafe { inform(|| shared::inspect(path), out) }))
}

/// The same of the region behind a descriptor. TOLLGATE_E_SYS with `EBADF` for what is no descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_inspect_fd(fd: c_int, out: *mut tollgate_shm_info_t) -> c_int {
    // SAFETY: the contract of this function.
    let fd = unsafe { descriptor(fd) };
    // SAFETY: the contract of this function.
    code(fd.and_then(|fd| unsafe { inform(|| shared::inspect_fd(fd), out) }))
}

/// Replaces the rules of a region that was made with `TOLLGATE_LIVE`, for all its limiters and keys: all of them, by the `count` rules at
/// `rules`. Any process of the region may do so, any number of them at once; one that dies inside of it leaves the old rules or the
/// new.
///
/// Permits taken so far stay taken, as far as the rules before still charged them. When a window is lengthened or a longer rule added, a key
/// may also be charged, for up to that window, for what the keys before it took of its place: a region made from the start with the longer
/// window, its limit as high as the capacity, has no such case. A call that overlaps this is judged by the old rules or by the
/// new, whole; one that begins later, in any process, by the new. What may change is said at `tollgate_set_rules`.
///
/// Errors, which change nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.   TOLLGATE_E_INVALID: rules that these limiters
/// can not get; none, or more than `TOLLGATE_MAX_RULES`.   TOLLGATE_E_UNSUPPORTED: the region was made without `TOLLGATE_LIVE`.
///
/// Thread-safe, process-safe, fork-safe, async-signal-safe. It begins again when another change is begun meanwhile, and waits for
/// nobody; nobody waits for it.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_set_rules(
    shm: *mut tollgate_shm_t,
    rules: *const tollgate_rule_t,
    count: u32,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let shm = unsafe { Shm::of(shm) }?;
        // SAFETY: the contract of this function.
        unsafe { with_rules(rules, count, |rules| Ok(shm.region().set_rules(rules)?)) }
    })())
}

/// Tells the rules in force: writes them to `rules`, which has room for `TOLLGATE_MAX_RULES`, and their number to `*count`.
///
/// Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of any pointer.
///
/// Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_get_rules(
    shm: *const tollgate_shm_t,
    rules: *mut tollgate_rule_t,
    count: *mut u32,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let shm = unsafe { Shm::of(shm) }?;
        // SAFETY: the contract of this function.
        unsafe { tell_rules(rules, count, || Ok(shm.region().rules())) }
    })())
}

/// How many limiters by index there are; 0 for NULL.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_count(shm: *const tollgate_shm_t) -> u64 {
    // SAFETY: the contract of this function.
    unsafe { Shm::of(shm) }.map_or(0, |shm| shm.region().limiters())
}

/// Makes the limiter at an index (from 0) fit for `tollgate_try_acquire` and every other function of a limiter, and puts it in `*out`.
/// It is the caller's, to be destroyed by `tollgate_destroy`, which leaves what lies in the region as it is. Once for each process
/// and index is enough.
///
/// Its calls are thread-safe, process-safe, fork-safe, async-signal-safe and lock-free, and take a few nanoseconds more than on a
/// limiter of the library's own memory. `tollgate_reset` needs it exclusively, in all processes.
///
/// Errors, which leave `*out` alone: TOLLGATE_E_NULL: `shm` or `out`.   TOLLGATE_E_ALIGN: `out`.   TOLLGATE_E_INVALID: there are not
/// so many.   TOLLGATE_E_NOMEM.
///
/// Thread-safe.   Allocates.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_shm_get(
    shm: *const tollgate_shm_t,
    index: u64,
    out: *mut *mut tollgate_limiter_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let shm = unsafe { Shm::of(shm) }?;
        let out = place(out)?;
        let handle = shm.limiter(index)?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(handle.as_limiter()) };
        Ok(())
    })())
}

/// A region from where the caller said, in `*out`.
///
/// # Safety
/// That of [`make`].
unsafe fn begin(
    source: Result<Source<'_>, tollgate_status>,
    config: *const tollgate_shm_config_t,
    out: *mut *mut tollgate_shm_t,
) -> c_int {
    // SAFETY: the contract of this function.
    code(source.and_then(|source| unsafe { make(source, config, out) }).map(|_| ()))
}

/// The same, with its descriptor if it has a new one.
///
/// # Safety
/// `config` as [`read`] says, `out` NULL or writable; memory as `Region::place` says.
unsafe fn make(
    source: Source<'_>,
    config: *const tollgate_shm_config_t,
    out: *mut *mut tollgate_shm_t,
) -> Result<Option<OwnedFd>, tollgate_status> {
    // SAFETY: the contract of this function.
    let plan = unsafe { read(config) }?;
    let out = place(out)?;
    // SAFETY: the contract of this function.
    let (shm, descriptor) = unsafe { plan.make(source) }?;
    // SAFETY: the contract of this function: writable.
    unsafe { out.write(shm.into_raw()) };
    Ok(descriptor)
}

/// What a caller's configuration comes to.
///
/// # Safety
/// If it is not NULL and aligned, its first field can be read, and all of it if that field says so; its limit likewise.
unsafe fn read(config: *const tollgate_shm_config_t) -> Result<Plan, tollgate_status> {
    let config = place(config.cast_mut())?;
    // SAFETY: the contract of this function.
    if unsafe { config.cast::<u32>().read() } != TOLLGATE_SHM_CONFIG_SIZE {
        return Err(TOLLGATE_E_SIZE);
    }
    // SAFETY: the contract of this function.
    let config = unsafe { config.read() };
    // SAFETY: the contract of this function.
    unsafe { Plan::new(&config) }
}

/// # Safety
/// `text` is NULL or a string of C's.
unsafe fn text_of<'a>(text: *const c_char) -> Result<&'a CStr, tollgate_status> {
    // SAFETY: the contract of this function.
    if text.is_null() { Err(TOLLGATE_E_NULL) } else { Ok(unsafe { CStr::from_ptr(text) }) }
}

/// # Safety
/// `path` is NULL or a string of C's.
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a Path, tollgate_status> {
    // SAFETY: the contract of this function.
    Ok(Path::new(OsStr::from_bytes(unsafe { text_of(path) }?.to_bytes())))
}

/// # Safety
/// If it is open, it stays so for as long as this is used.
unsafe fn descriptor<'a>(fd: c_int) -> Result<BorrowedFd<'a>, tollgate_status> {
    if fd < 0 {
        return Err(refused_by_system(libc::EBADF));
    }
    // SAFETY: the contract of this function.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// # Safety
/// `out` is NULL or begins with a size; and is writable if that is right.
unsafe fn inform(
    look: impl FnOnce() -> Result<Info, SharedError>,
    out: *mut tollgate_shm_info_t,
) -> Result<(), tollgate_status> {
    let out = place(out)?;
    // SAFETY: the contract of this function.
    if unsafe { out.cast::<u32>().read() } != TOLLGATE_SHM_INFO_SIZE {
        return Err(TOLLGATE_E_SIZE);
    }
    let info = told(&look()?);
    // SAFETY: the contract of this function.
    unsafe { out.write(info) };
    Ok(())
}
