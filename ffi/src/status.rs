//! What a function returns: done, an outcome, or why not.

use core::ffi::{CStr, c_char, c_int};

use tollgate::ConfigError;

/// What functions that return `int` return. 0 is success, in a check: ADMITTED. Positive: an outcome. Negative: an
/// error, which changed nothing. Numbers are never used again for anything else; -18 is kept for later.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum tollgate_status {
    /// Done; in a check: admitted.
    TOLLGATE_OK = 0,
    /// Refused: too few permits are free now. The decision says when to come again.
    TOLLGATE_REFUSED = 1,
    /// Refused, and waiting can not help: the cost is above the limit, the burst, or the largest cost.
    TOLLGATE_NEVER = 2,
    /// A pointer that must not be NULL was.
    TOLLGATE_E_NULL = -1,
    /// An argument or a field of the configuration was out of range, or a reserved one not 0.
    TOLLGATE_E_INVALID = -2,
    /// The memory was too short, or `struct_size` is not one that this library knows.
    TOLLGATE_E_SIZE = -3,
    /// The memory was not aligned to `tollgate_align()`.
    TOLLGATE_E_ALIGN = -4,
    /// There was not that much memory.
    TOLLGATE_E_NOMEM = -5,
    /// The system refused: a thread, or a file or memory for a region. Then `errno` is what its call set.
    TOLLGATE_E_SYS = -6,
    /// Nobody has initialised this memory, or not all of it yet.
    TOLLGATE_E_NOT_READY = -10,
    /// This memory holds something else.
    TOLLGATE_E_MAGIC = -11,
    /// This memory holds a limiter of another layout version.
    TOLLGATE_E_LAYOUT = -12,
    /// What this memory says of its limiter contradicts itself.
    TOLLGATE_E_CORRUPT = -13,
    /// This memory holds, or is about to hold, a limiter of another configuration.
    TOLLGATE_E_CONFIG = -14,
    /// The clock does not serve here: the limiter has none and was not told the time; it is not one that processes
    /// share; or the coarse clock was inherited from a parent process.
    TOLLGATE_E_CLOCK = -15,
    /// The coarse clock runs already, at a coarser resolution.
    TOLLGATE_E_EXISTS = -16,
    /// The file is not trusted: another user's, writable by others, no file at all, or one that could be cut short.
    TOLLGATE_E_UNTRUSTED = -17,
    /// This library, algorithm or machine can not do that.
    TOLLGATE_E_UNSUPPORTED = -19,
}

use tollgate_status::*;

/// Every status, with its name and what it means.
macro_rules! statuses {
    ($($status:ident $text:literal)+) => {
        const ALL: &[(tollgate_status, &CStr, &CStr)] = &[$((
            $status,
            match CStr::from_bytes_with_nul(concat!(stringify!($status), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            $text,
        )),+];
    };
}

statuses! {
    TOLLGATE_OK c"done"
    TOLLGATE_REFUSED c"refused: too few permits are free now"
    TOLLGATE_NEVER c"refused: the cost is above what the limiter ever admits"
    TOLLGATE_E_NULL c"a required pointer is NULL"
    TOLLGATE_E_INVALID c"an argument is out of range"
    TOLLGATE_E_SIZE c"too little memory, or an unknown struct_size"
    TOLLGATE_E_ALIGN c"memory is not aligned to tollgate_align()"
    TOLLGATE_E_NOMEM c"out of memory"
    TOLLGATE_E_SYS c"the system refused"
    TOLLGATE_E_NOT_READY c"memory is not initialised"
    TOLLGATE_E_MAGIC c"memory does not hold a limiter"
    TOLLGATE_E_LAYOUT c"memory holds a limiter of another layout"
    TOLLGATE_E_CORRUPT c"memory holds a corrupt limiter"
    TOLLGATE_E_CONFIG c"memory holds a limiter of another configuration"
    TOLLGATE_E_CLOCK c"the clock does not serve here"
    TOLLGATE_E_EXISTS c"the coarse clock runs at a coarser resolution"
    TOLLGATE_E_UNTRUSTED c"the file is not trusted"
    TOLLGATE_E_UNSUPPORTED c"not supported"
}

/// The texts of a status.
fn texts(status: c_int) -> Option<(&'static CStr, &'static CStr)> {
    ALL.iter().find(|entry| entry.0 as c_int == status).map(|entry| (entry.1, entry.2))
}

/// The meaning of any status, or of any other number: static, never NULL.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_strerror(status: c_int) -> *const c_char {
    texts(status).map_or(c"unknown status", |(_, text)| text).as_ptr()
}

/// The name of a status, such as "TOLLGATE_E_NULL", or "TOLLGATE_UNKNOWN": static, never NULL.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_status_name(status: c_int) -> *const c_char {
    texts(status).map_or(c"TOLLGATE_UNKNOWN", |(name, _)| name).as_ptr()
}

/// The status as C sees it.
pub(crate) fn code(result: Result<(), tollgate_status>) -> c_int {
    result.err().unwrap_or(TOLLGATE_OK) as c_int
}

impl From<ConfigError> for tollgate_status {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Memory { .. } => TOLLGATE_E_NOMEM,
            _ => TOLLGATE_E_INVALID,
        }
    }
}
