//! The contract, held against naive oracles, the field's textbook traces, and threads.

mod agrees;
mod oracle;
mod traces;
