//! The core under a model checker: which limiters are checked, in which scenarios, against which oracles.
//!
//! `README.md` beside this crate says what that proves and what it does not.

mod deep;
mod limiters;
mod models;
mod oracles;
mod orders;
mod pool;
mod run;

pub use deep::deep;
pub use models::{Expect, Model, all};
pub use orders::orders;
pub use run::{Options, kill, run};
