//! x
#![allow(missing_docs)]
mod call;
mod error;
mod key;
mod script;
mod store;
pub use call::{Call, Mode, Reply, Report, Scripted};
pub use error::{BuildError, Failure, Unavailable};
pub use store::Store;
