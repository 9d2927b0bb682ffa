//! The layer in front of services: in this process, and behind real servers on loopback.

mod answers;
mod docs;
mod field_cases;
mod grpc;
mod load;
mod scope;
mod stack;
mod stacked;
mod support;
