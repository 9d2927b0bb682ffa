//! Limiters that processes share.

mod hostile;
mod keys;
mod live;
mod made;
mod memory;
mod processes;
