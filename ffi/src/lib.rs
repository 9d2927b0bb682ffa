//! The C interface of tollgate. C programmers read `include/tollgate/tollgate.h` and `README.md`.
//!
//! Everything here hands on: a handle is a piece of memory (`handle.rs`), a configuration goes to the builders of
//! the core (`config.rs`), a call to its algorithms. The header is generated from these files, in this order.
#![cfg_attr(not(feature = "std"), no_std)]
// C's names; and the header, which speaks to C programmers, is made from the same comments.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

pub mod clock;
pub mod config;
pub mod control;
pub mod handle;
pub mod hot;
pub mod keyed;
mod kinds;
pub mod life;
mod memory;
#[cfg(feature = "shm")]
pub mod shm;
pub mod stats;
pub mod status;
pub mod version;
