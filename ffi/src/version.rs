//! Versions: what the header says, and what the library says.

use core::ffi::{CStr, c_char};

/// The version of this header, which is that of the package.
pub const TOLLGATE_VERSION_MAJOR: u32 = 0;
/// See above.
pub const TOLLGATE_VERSION_MINOR: u32 = 1;
/// See above.
pub const TOLLGATE_VERSION_PATCH: u32 = 0;
/// The number in `libtollgate.so.0`: any change that breaks a compiled program raises it.
pub const TOLLGATE_ABI_VERSION: u32 = 0;
/// The version of a limiter's bytes, for memory that several processes share. One library attaches to the memory
/// of another only if it is the same.
pub const TOLLGATE_LAYOUT_VERSION: u32 = 1;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version with a NUL inside"),
};

/// The version of the library, to be compared with `TOLLGATE_VERSION_NUMBER`, that of the header.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_version_number() -> u32 {
    TOLLGATE_VERSION_MAJOR * 1_000_000 + TOLLGATE_VERSION_MINOR * 1_000 + TOLLGATE_VERSION_PATCH
}

/// The version of the library as text, such as "0.1.0": static, never NULL.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_version_string() -> *const c_char {
    VERSION.as_ptr()
}

/// The ABI version of the library, to be compared with `TOLLGATE_ABI_VERSION`.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_abi_version() -> u32 {
    TOLLGATE_ABI_VERSION
}

/// The layout version of the library, to be compared with `TOLLGATE_LAYOUT_VERSION`.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_layout_version() -> u32 {
    TOLLGATE_LAYOUT_VERSION
}
