#![doc = include_str!("../README.md")]
//!
//! # Cost
//! Between the head of a request and the service within: what the filter, the key and the limiters cost, and the text of the
//! fields. With limits of this process nothing is awaited, no future is boxed, and the service within is not cloned; a limit on
//! a server takes a box and a clone.
//!
//! # Concurrency
//! Everything is shared by `&self`. Limits by key are behind a lock for readers and one writer, which is taken to write by
//! [`By::replace`] alone.
#![deny(missing_docs)]

mod answer;
mod client;
mod error;
mod fields;
mod filter;
mod gate;
mod head;
mod key;
mod layer;
mod network;
mod policy;
#[cfg(feature = "redis")]
mod redis;
mod service;
mod stats;
mod tier;

pub use answer::{BusinessCode, Cause, Grpc, Problem, Refusal, Reject};
pub use client::ClientIp;
pub use error::BuildError;
pub use fields::{FIELDS, Fields, Legacy};
pub use gate::{Limits, Local};
pub use head::{Head, Peer};
pub use key::{Either, Extension, Header, Key, Named, Or, PeerIp, Route};
pub use layer::{Builder, RateLimitLayer};
pub use network::Network;
pub use policy::{Names, Policy};
#[cfg(feature = "redis")]
pub use redis::{Id, Redis};
pub use service::{RateLimit, ResponseFuture};
pub use stats::Stats;
pub use tier::{All, By, Keyless, Limiter, NoKey, Of, Ruling, Tier, Tiers, Whole};
