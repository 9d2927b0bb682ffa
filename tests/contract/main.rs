//! The contract, held against naive oracles, the field's textbook traces, and threads.

mod agrees;
mod cases;
mod examples;
mod forms;
mod give_back;
mod keyed;
mod layers;
mod live;
mod one_word;
mod oracle;
mod properties;
mod sharded;
mod threads;
mod traces;
