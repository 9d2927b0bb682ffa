//! Another Rust library in the same program, with a standard library and threads of its own.

use std::{collections::HashMap, sync::mpsc, thread};

/// The sum of `0..count`, worked out by two threads and a map: enough of std that its names would clash.
#[unsafe(no_mangle)]
pub extern "C" fn other_sum(count: u64) -> u64 {
    let (sender, receiver) = mpsc::channel();
    let halves: Vec<_> = [(0, count / 2), (count / 2, count)]
        .into_iter()
        .map(|(from, to)| {
            let sender = sender.clone();
            thread::spawn(move || sender.send((from, (from..to).sum::<u64>())))
        })
        .collect();
    drop(sender);
    let sums: HashMap<u64, u64> = receiver.into_iter().collect();
    let sent = halves.into_iter().all(|half| matches!(half.join(), Ok(Ok(()))));
    if sent { sums.values().sum() } else { 0 }
}
