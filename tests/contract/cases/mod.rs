//! Faults that other limiters had, each as a test named after its id.
//!
//! F005, F018 and F019 change a limit while it is used, which these histories can not. F009 waits: it is held by
//! the pacing queue. F012 and F015 speak of two weighted windows; here they hold the counter to the same result.

mod clock;
mod counter;
mod keyed;
mod layers;
mod log;
mod refunds;
