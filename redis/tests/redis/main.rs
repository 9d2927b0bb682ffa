//! Against real servers, started by the tests themselves on a socket in a temporary folder.

mod answers;
mod differential;
mod failures;
mod field_cases;
mod memory;
mod oracle;
mod proxy;
mod readme;
mod storm;
mod support;
mod tiers;
