//! What can go wrong: with a configuration, and with a check.

use std::{fmt, time::Duration};

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tollgate::{ConfigError, Nanos};

use crate::Store;

/// Why a configuration was refused. Each variant carries the value and the bound it broke.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The limit, or the burst, was too large for the store.
    Limit {
        /// The one asked for.
        got: u64,
        /// The largest one.
        max: u64,
    },
    /// The window was not a whole number of microseconds from 1 to [`Store::WINDOW_MAX`].
    Window {
        /// The window asked for.
        got: Duration,
    },
    /// The number of buckets was 0, too large, or more than the window's microseconds.
    Buckets {
        /// The number asked for.
        got: u32,
        /// The largest one.
        max: u32,
    },
    /// The burst was too small.
    Burst {
        /// The burst asked for.
        got: u64,
        /// The smallest one.
        min: u64,
    },
    /// A full bucket would take too long to drain.
    Drain {
        /// Microseconds that it would take.
        got: u128,
        /// The longest time.
        max: Duration,
    },
    /// There were no rules, or too many.
    Rules {
        /// How many were given.
        got: usize,
        /// The most.
        max: usize,
    },
    /// A name was empty, or held a brace, or was taken.
    Name {
        /// The name.
        got: String,
    },
    /// An option needs another store, or another option.
    Needs {
        /// The option.
        option: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// A span was zero or too long.
    Span {
        /// Of what.
        of: &'static str,
        /// The span asked for.
        got: Duration,
        /// The longest one.
        max: Duration,
    },
    /// A number was zero or too large.
    Number {
        /// Of what.
        of: &'static str,
        /// The number asked for.
        got: u64,
        /// The smallest one.
        min: u64,
        /// The largest one.
        max: u64,
    },
    /// A local limiter could not be had.
    Local(ConfigError),
}

/// Why the server could not be asked, or did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// There was no answer in time. The call may have been counted.
    Deadline,
    /// The breaker is open: the server was not asked.
    Breaker,
    /// The connection failed. The call may have been counted.
    Connection,
    /// The server answered with an error about itself: loading, read-only, out of memory, cluster down, no permission.
    Server,
    /// The server answered with an error about this key, such as a wrong type, or the reply made no sense.
    Key,
    /// The limits were lowered below the cost while the call was on its way: it was not sent.
    Changed,
}

/// A check that could not be made while [`OnFailure::Closed`](crate::OnFailure::Closed) holds: a fault, not a refusal
/// (HTTP: 503, not 429).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unavailable {
    /// Why.
    pub failure: Failure,
    /// When it may be worth trying again: until the breaker lets a call through, at least a millisecond.
    pub retry_after: Nanos,
}

// === impl BuildError ===

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { got, max } => write!(f, "limit or burst {got} is above {max}"),
            Self::Window { got } => write!(
                f,
                "window {got:?} is not a whole number of microseconds between {:?} and {:?}",
                Store::WINDOW_STEP,
                Store::WINDOW_MAX
            ),
            Self::Buckets { got, max } => write!(f, "{got} buckets are not between 1 and {max}"),
            Self::Burst { got, min } => write!(f, "burst {got} is below {min}"),
            Self::Drain { got, max } => {
                write!(f, "a full bucket would drain for {got} us, longer than {max:?}")
            }
            Self::Rules { got, max } => write!(f, "{got} rules are not between 1 and {max}"),
            Self::Name { got } => write!(f, "name {got:?} is empty, has a brace, or is given twice"),
            Self::Needs { option, needs } => write!(f, "{option} needs {needs}"),
            Self::Span { of, got, max } => write!(f, "{of} {got:?} is not between 1us and {max:?}"),
            Self::Number { of, got, min, max } => write!(f, "{of} {got} is not between {min} and {max}"),
            Self::Local(error) => write!(f, "local limiter: {error}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Local(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> Self {
        Self::Local(error)
    }
}

// === impl Failure ===

impl Failure {
    /// All of them, for statistics.
    pub(crate) const ALL: [Self; 6] =
        [Self::Deadline, Self::Breaker, Self::Connection, Self::Server, Self::Key, Self::Changed];

    /// Sorts an error of the client.
    pub(crate) fn of(error: &RedisError) -> Self {
        match error.kind() {
            _ if error.is_timeout() => Self::Deadline,
            _ if in_script(error) => Self::Server,
            ErrorKind::Server(ServerErrorKind::ResponseError)
            | ErrorKind::Parse
            | ErrorKind::UnexpectedReturnType => Self::Key,
            ErrorKind::Extension if error.code() == Some("WRONGTYPE") => Self::Key,
            ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::AuthenticationFailed => Self::Server,
            _ => Self::Connection,
        }
    }

    /// Whether it speaks of the server as a whole, and counts towards opening the breaker.
    pub(crate) fn is_general(self) -> bool {
        matches!(self, Self::Deadline | Self::Connection | Self::Server)
    }
}

/// Whether a command in the script was refused for the server's own reasons: before 7.0 the reply hides it in its text.
fn in_script(error: &RedisError) -> bool {
    let said = error.detail().unwrap_or_default();
    ["-OOM ", "-READONLY ", "-MISCONF ", "-NOREPLICAS ", "-LOADING ", "-BUSY ", "-MASTERDOWN "]
        .iter()
        .any(|code| said.contains(code))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadline => "no answer in time",
            Self::Breaker => "not asked after earlier failures",
            Self::Connection => "connection failed",
            Self::Server => "server refused to work",
            Self::Key => "server could not judge this key",
            Self::Changed => "limits changed meanwhile",
        })
    }
}

// === impl Unavailable ===

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate limit unavailable ({}), retry after {:?}", self.failure, self.retry_after)
    }
}

impl std::error::Error for Unavailable {}
