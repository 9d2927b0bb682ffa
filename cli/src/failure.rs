//! Why a command did not do what it was asked for, and the exit code that says so.

use std::{fmt, io};

use crate::{bench, input, output, picture, replay::Stopped};

/// Why there is no report.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The options do not go together, or an algorithm that was asked for does not take the rules.
    Usage(String),
    Input(input::Error),
    Stopped(Stopped),
    Bench(bench::Error),
    Picture(picture::Error),
    File(output::Error),
    Output(io::Error),
}

// === impl Failure ===

impl Failure {
    /// Whether the options alone are to blame, whatever the files hold.
    pub(crate) fn is_usage(&self) -> bool {
        match self {
            Self::Usage(_) => true,
            Self::Input(input::Error::Format { file, .. }) => file.is_empty(),
            _ => false,
        }
    }

    /// Whether the reader of the output has seen enough (`| head`).
    pub(crate) fn is_enough(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<input::Error> for Failure {
    fn from(error: input::Error) -> Self {
        Self::Input(error)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<bench::Error> for Failure {
    fn from(error: bench::Error) -> Self {
        Self::Bench(error)
    }
}

impl From<picture::Error> for Failure {
    fn from(error: picture::Error) -> Self {
        Self::Picture(error)
    }
}

impl From<output::Error> for Failure {
    fn from(error: output::Error) -> Self {
        Self::File(error)
    }
}

impl From<io::Error> for Failure {
    /// Of standard output: all other errors have a type of their own.
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) => write!(f, "{why}"),
            Self::Input(error) => write!(f, "{error}"),
            Self::Stopped(stopped) => write!(f, "{stopped}"),
            Self::Bench(error) => write!(f, "{error}"),
            Self::Picture(error) => write!(f, "{error}"),
            Self::File(error) => write!(f, "{error}"),
            Self::Output(error) => write!(f, "standard output: {error}"),
        }
    }
}
