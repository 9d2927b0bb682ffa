//! Regions whose maker dies.

use std::{fs, path::PathBuf, time::Duration};

use tollgate::{
    Algorithm, Log, LogConfig, Nanos,
    shared::{Region, RegionBuilder, SharedError, Time, unlink},
};

use crate::{
    trace::{Mailbox, Victim},
    world::{Call, World, take},
};

const LIMIT: u64 = 5;
const NOW: u64 = 1_000;

fn builder() -> RegionBuilder<LogConfig> {
    let log = Log::builder(LIMIT, Duration::from_nanos(100)).config().expect("valid");
    Region::builder(log).limiters(1).keys(7).time(Time::Caller)
}

/// In memory of the caller's: what a maker leaves at any instruction, the next finishes; and a maker that was only stopped
/// changes nothing any more.
pub(crate) fn kill_makers_at_every_write() -> String {
    let (world, mailbox) = (World::new(builder()), Mailbox::new());
    let zeros = vec![0; world.bytes().len()];
    let calls = [Call::Take { cost: 1, now: NOW }, Call::Key { key: 1, cost: 1, now: NOW }];
    // What is still to be had of a limiter and of a key.
    let rest = || {
        let region = world.attached();
        calls.map(|call| (0..2 * LIMIT).filter(|_| take(&region, call)).count() as u64)
    };
    // Steps after which the memory is another: what is left in between is the same.
    let make = || {
        drop(world.attached());
        0
    };
    world.put(&zeros);
    let victim = Victim::new(mailbox, make);
    let (mut writes, mut steps, mut last) = (Vec::new(), 0, world.bytes());
    while victim.step() {
        steps += 1;
        let left = world.bytes();
        if left != last {
            writes.push(steps);
            last = left;
        }
    }
    victim.finish();
    world.put(&zeros);
    let victim = Victim::new(mailbox, make);
    let path = victim.path();
    victim.finish();
    assert_eq!(path.steps(), steps + 1, "the same each time");
    assert!(writes.len() > 20, "{} writes: the header is as long", writes.len());

    for &steps in &writes {
        for is_killed in [true, false] {
            world.put(&zeros);
            let victim = Victim::new(mailbox, make);
            assert!(victim.follow(&path, steps));
            let resumed = if is_killed {
                victim.kill();
                None
            } else {
                Some(victim)
            };
            assert_eq!(rest(), [LIMIT; 2], "after {steps} instructions");
            if let Some(victim) = resumed {
                victim.finish();
                assert_eq!(rest(), [0; 2], "the late maker gave permits back after {steps} instructions");
            }
        }
    }
    format!("a maker killed, and stopped, at each of its {} writes in {steps} instructions", writes.len())
}

/// Files: killed before and after every call of the system.
pub(crate) fn kill_at_every_system_call() -> String {
    let (mailbox, path) = (Mailbox::new(), Name::new());
    let mut kills = [0; 3];
    let work: [&dyn Fn() -> u64; 3] =
        [&|| builder().create(&path.0).is_ok().into(), &|| builder().open(&path.0).is_ok().into(), &|| {
            builder().attach(&path.0).is_ok().into()
        }];
    for (n, work) in work.into_iter().enumerate() {
        for calls in 0.. {
            path.remove();
            let is_there = n == 2;
            if is_there {
                let region = builder().create(&path.0).expect("it is gone");
                assert!(region.limiter(0).expect("one").try_acquire_at(LIMIT, Nanos::from_nanos(NOW)));
            }
            let victim = Victim::new(mailbox, work);
            let is_under_way = (0..calls).all(|_| victim.to_system());
            victim.kill();
            kills[n] += 1;
            match builder().attach(&path.0) {
                Ok(_) => {}
                Err(SharedError::System { call: "open", errno: libc::ENOENT }) => assert!(!is_there),
                Err(other) => panic!("killed at {calls}: {other}"),
            }
            let region = builder().open(&path.0).expect("whatever was left");
            let admitted = region.limiter(0).expect("one").try_acquire_at(LIMIT, Nanos::from_nanos(NOW));
            assert_eq!(admitted, !is_there, "killed at {calls}");
            if !is_under_way {
                break;
            }
        }
    }
    let left: Vec<_> = fs::read_dir(path.0.parent().expect("a folder"))
        .expect("a folder")
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().contains(&Name::stem()))
        .collect();
    assert!(left.len() <= 1, "a file is left: {left:?}");
    path.remove();
    let [create, open, attach] = kills;
    format!("create killed {create} times, open {open}, attach {attach}: the file is whole or not there")
}

/// A file's name, removed at the end.
struct Name(PathBuf);

impl Name {
    fn stem() -> String {
        format!("tollgate-crash-{}", std::process::id())
    }

    fn new() -> Self {
        Self(std::env::temp_dir().join(Self::stem()))
    }

    fn remove(&self) {
        match unlink(&self.0) {
            Ok(()) | Err(SharedError::System { errno: libc::ENOENT, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
