//! Why a region was not had.

use core::fmt;

use crate::{ConfigError, PlaceError};

/// Why a region was not made or attached to. Nothing was changed, but for what `System` may have left half way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SharedError {
    /// The configuration is none.
    Config(ConfigError),
    /// The system refused.
    System {
        /// The call.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
    /// The memory can not hold the region.
    Memory(PlaceError),
    /// A file has another size than the region.
    Size {
        /// The file's bytes.
        got: u64,
        /// The region's.
        expected: u64,
    },
    /// Nobody has made a region there, or not all of it yet.
    NotReady,
    /// Something else is there.
    Magic {
        /// The first word.
        got: u64,
    },
    /// The region is of another layout.
    Layout {
        /// Its version.
        got: u32,
        /// This library's.
        expected: u32,
    },
    /// The region's header contradicts itself.
    Corrupt,
    /// The header is neither zeros nor that of a region of this configuration, begun or done.
    Foreign,
    /// The region is of another configuration, boot or container.
    Differs {
        /// In what.
        field: Field,
        /// The first word that differs.
        got: u64,
        /// As it should be.
        expected: u64,
    },
    /// A state holds what no calls leave behind.
    State {
        /// Which: limiters by index first, then those of keys.
        index: u64,
    },
    /// The rules in force are not whole, or none that this configuration takes.
    Rules,
    /// The rules of a region can not change that was not made for it: [`RegionBuilder::live`](super::RegionBuilder::live).
    NotLive,
    /// The file is another user's, or others may write to it.
    Permission {
        /// Its owner.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// What is there is not a file.
    NotAFile {
        /// Its mode.
        mode: u32,
    },
    /// A file without a name could be cut short under its users: it is not sealed.
    Unsealed,
}

/// What two processes disagree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Field {
    /// How states lie: another build, or another word size.
    Layout,
    /// The algorithm.
    Algorithm,
    /// The clock, or what becomes of a key without room.
    Kinds,
    /// The boot, or the time namespace, whose time it is.
    Boot,
    /// The rules; of a region whose rules may change, those to begin with.
    Rules,
    /// Whether rules may change.
    Live,
    /// Anything else in the configuration.
    Configuration,
    /// The number of limiters.
    Limiters,
    /// The number of keys.
    Keys,
}

// === impl SharedError ===

impl SharedError {
    /// Of a system call.
    pub(super) fn system(call: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System { call, errno: errno.raw_os_error() }
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Config(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::System { call, errno } => {
                write!(f, "{call}: {}", std::io::Error::from_raw_os_error(errno))
            }
            Self::Size { got, expected } => write!(f, "a file of {got} bytes, the region has {expected}"),
            Self::NotReady => write!(f, "no region is there yet"),
            Self::Magic { got } => write!(f, "no region, it begins with {got:#018x}"),
            Self::Layout { got, expected } => write!(f, "a region of layout {got}, not {expected}"),
            Self::Corrupt => write!(f, "the header contradicts itself"),
            Self::Foreign => write!(f, "the memory is in use for something else"),
            Self::Differs { field, got, expected } => {
                write!(f, "{}: {got:#x}, not {expected:#x}", field.name())
            }
            Self::State { index } => write!(f, "state {index} holds what no calls leave behind"),
            Self::Rules => write!(f, "the rules in force are not whole, or none of this configuration"),
            Self::NotLive => write!(f, "the rules of this region do not change"),
            Self::Permission { owner, mode } => {
                write!(f, "a file of user {owner} with mode {mode:o} is not trusted")
            }
            Self::NotAFile { mode } => write!(f, "not a file, its mode is {mode:o}"),
            Self::Unsealed => write!(f, "a file without a name and without a seal could shrink"),
        }
    }
}

impl core::error::Error for SharedError {}

impl From<ConfigError> for SharedError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

// === impl Field ===

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Layout => "another layout of states",
            Self::Algorithm => "another algorithm",
            Self::Kinds => "another clock, or another answer to keys without room",
            Self::Boot => "time of another boot or time namespace",
            Self::Rules => "other rules",
            Self::Live => "one of them with rules that may change, bytes for them",
            Self::Configuration => "another configuration",
            Self::Limiters => "another number of limiters",
            Self::Keys => "another number of keys",
        }
    }
}
