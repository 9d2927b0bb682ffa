//! Model-checks a concurrent rate limiter of your own and shows the interleaving that breaks it.

pub mod sync;

mod canary;
mod check;
mod engine;
mod history;
mod limiter;
mod report;
mod scenario;
mod search;
mod spec;
mod trace;

pub use canary::canaries;
pub use check::{Check, check};
pub use history::{History, Order, Record};
pub use limiter::{Call, Limiter, Verdict, When, acquire, acquire_by_clock, peek, reconfigure, refund};
pub use report::{Failure, Outcome, Report, Row};
pub use scenario::{Scenario, Suite, THREADS_MAX};
pub use search::{Oracle, Property, Question};
pub use spec::{Coverage, Spec};
pub use trace::{Access, Effect, Event, Op, Site, SiteOrder, Weakening};
