//! A process that takes what it can from a region, until it is killed: party REGION LIMIT WINDOW_NS KEYS JOURNAL
//!
//! Each admission is appended to the journal as four words: the subject (0: the limiter by index, else the key of that number, in
//! digits), and the times before the call and of the decision, between which it was admitted; and a zero, since a
//! write that reaches over two pages may be killed between them. `party.c` does the same.

use std::{env, error::Error, fs::OpenOptions, io::Write, process, time::Duration};

use tollgate::{Algorithm, Log, WhenFull, shared::Region};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [region, limit, window, keys, journal] = &arguments[..] else {
        return Err("usage: party REGION LIMIT WINDOW_NS KEYS JOURNAL".into());
    };
    let (window, keys) = (Duration::from_nanos(window.parse()?), keys.parse()?);
    let config = Log::builder(limit.parse()?, window).config()?;
    let region = Region::builder(config).limiters(1).keys(keys).when_full(WhenFull::Refuse).open(region)?;
    let (limiter, by_key) = (region.limiter(0).ok_or("no limiter")?, region.keys().ok_or("no keys")?);
    let mut journal = OpenOptions::new().append(true).open(journal)?;
    let mut random = u64::from(process::id()) << 32 | 1;
    loop {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let subject = (random >> 33) % (keys + 1);
        let before = region.now().ok_or("no clock")?;
        let decision = match subject {
            0 => limiter.check_at(1, before),
            key => by_key.check_at(key.to_string().as_bytes(), 1, before),
        };
        if let Ok(quota) = decision {
            let entry = [subject, before.as_nanos(), quota.at.as_nanos(), 0];
            // One write, which is done or not.
            journal.write_all(&entry.map(u64::to_ne_bytes).concat())?;
        }
    }
}
