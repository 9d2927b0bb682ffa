//! `tollgate`: choose a limit by replaying the traffic that was really there.

mod input;

fn main() {}
