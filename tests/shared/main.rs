//! Limiters that processes share.

mod hostile;
mod keys;
mod made;
mod memory;
mod processes;
