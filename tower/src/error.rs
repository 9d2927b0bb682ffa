//! Why a layer was not built.

use std::fmt;

use http::StatusCode;

/// Why a configuration was refused. Each variant carries the value that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A text was no network (`10.0.0.0/8`) and no address, or had bits past its prefix.
    Network {
        /// The text.
        got: String,
    },
    /// A policy's name was empty, longer than 64 bytes, or had other than printable ASCII, a quotation mark or a backslash.
    Name {
        /// The name.
        got: String,
    },
    /// Two policies of one layer had the same name.
    Twice {
        /// The name.
        got: String,
    },
    /// A status for refusals was not between 400 and 599.
    Status {
        /// The status.
        got: StatusCode,
    },
    /// A path did not begin with a slash.
    Path {
        /// The path.
        got: String,
    },
}

// === impl BuildError ===

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network { got } => write!(f, "{got:?} is no network and no address"),
            Self::Name { got } => {
                write!(f, "policy name {got:?} is not 1 to 64 printable ASCII characters without \" and \\")
            }
            Self::Twice { got } => write!(f, "policy name {got:?} is given twice"),
            Self::Status { got } => write!(f, "status {} is not between 400 and 599", got.as_u16()),
            Self::Path { got } => write!(f, "path {got:?} does not begin with /"),
        }
    }
}

impl std::error::Error for BuildError {}
