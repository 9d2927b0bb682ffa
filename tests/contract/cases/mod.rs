//! Faults that other limiters had, each as a test named after its id.
//!
//! F005, F018 and F019 change a limit while it is used, F009 waits: operations that these histories do not
//! have. F012 and F015 speak of two weighted windows; here they hold the counter to the same result.

mod clock;
mod counter;
mod log;
