//! Everything that is measured, and how each is built for either path.

use std::{collections::VecDeque, time::Duration};

use tollgate::{Algorithm, Compact, Fixed, Gcra, Log, Nanos, Pacing, Sampled, TwoWindow, Wheel, Window};

use crate::{
    drive::{Path, Subject},
    peers::{
        BetterBucket, Cas, Deque, FetchAdd, Governor, LeakyBucket, Load, Packed, Pingora, Ratelimit, Ring,
        Shared, Summed, Total, TwoCas,
    },
};

const SECOND: Duration = Duration::from_secs(1);
/// Longer than any row takes, and two of it are shorter than the time for which a limiter is filled ahead: the two-window
/// counter is to remember nothing older, of which a permit would come back meanwhile.
const LONG: Duration = Duration::from_secs(200);

/// The limit where all is refused.
const FULL: u64 = 1_000;
/// A log where all is admitted: a permit every 5 ns, more than anybody asks for, in 8 KiB.
const LOG: (u64, Duration) = (1_024, Duration::from_nanos(5_120));
/// A counter where all is admitted: a permit every 10 ns, and most calls in its newest bucket.
const COUNTER: (u64, Duration) = (100_000_000, SECOND);
/// Buckets of a window.
const BUCKETS: u64 = 10;
/// Shards: one for each of the most threads.
const SHARDS: usize = 8;

/// Who made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Floor,
    Ours,
    Peer,
}

/// A limiter that is measured.
#[derive(Clone, Copy)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) side: Side,
    /// Where admitted calls are this far apart when time is passed in.
    pub(crate) step: Nanos,
    /// Whether it reads a clock of its own, whatever time is passed.
    pub(crate) own_clock: bool,
    /// `None`: there is no such path.
    build: fn(Path) -> Option<Box<dyn Subject>>,
}

// === impl Contestant ===

impl Contestant {
    pub(crate) fn build(&self, path: Path) -> Option<Box<dyn Subject>> {
        (self.build)(path)
    }
}

/// A limit for either path.
fn of(path: Path, admitted: (u64, Duration)) -> (u64, Duration) {
    if path == Path::Admitted { admitted } else { (FULL, LONG) }
}

fn boxed<S: Subject + 'static>(subject: S) -> Option<Box<dyn Subject>> {
    Some(Box::new(subject))
}

fn ours<A: Algorithm + Send + Sync + 'static, E: std::fmt::Debug>(
    built: Result<A, E>,
) -> Option<Box<dyn Subject>> {
    boxed(built.expect("a configuration that is valid"))
}

macro_rules! contestant {
    ($side:ident, $name:expr, $step:expr, $build:expr) => {
        contestant!($side, $name, $step, $build, false)
    };
    ($side:ident, $name:expr, $step:expr, $build:expr, $own_clock:literal) => {
        Contestant {
            name: $name,
            side: Side::$side,
            step: Nanos::from_nanos($step),
            own_clock: $own_clock,
            build: $build,
        }
    };
}

/// The floor of an exact log.
pub(crate) const LOG_FLOOR: &str = "floor of a log";

/// The floor of a path, by name.
pub(crate) fn floor(path: Path) -> &'static str {
    if path == Path::Admitted { "one CAS" } else { "load and compare" }
}

/// Everybody, the floors first.
pub(crate) const ALL: &[Contestant] = &[
    contestant!(Floor, "load and compare", 20, |path| (path == Path::Refused)
        .then(|| Box::<Load>::default() as _)),
    contestant!(Floor, "one CAS", 20, |path| (path == Path::Admitted).then(|| Box::<Cas>::default() as _)),
    contestant!(Floor, "two CASes", 20, |path| (path == Path::Admitted)
        .then(|| Box::<TwoCas>::default() as _)),
    contestant!(Floor, "fetch_add", 20, |path| (path == Path::Admitted)
        .then(|| Box::<FetchAdd>::default() as _)),
    contestant!(Floor, LOG_FLOOR, 20, |path| {
        let (limit, window) = of(path, LOG);
        boxed(Ring::new(limit, window.into()))
    }),
    contestant!(Ours, "log", 20, |path| {
        let (limit, window) = of(path, LOG);
        ours(Log::builder(limit, window).build())
    }),
    contestant!(Ours, "log of single permits", 20, |path| {
        let (limit, window) = of(path, LOG);
        ours(Log::builder(limit, window).max_cost(1).build())
    }),
    contestant!(Ours, "counter", 20, |path| {
        let (limit, window) = of(path, COUNTER);
        ours(Window::builder(limit, window).build())
    }),
    contestant!(Ours, "fixed", 20, |path| {
        let (limit, window) = of(path, COUNTER);
        ours(Fixed::builder(limit, window).build())
    }),
    // Its word holds no larger limit; 16 million in a day outlast a row.
    contestant!(Ours, "two-window", 11_000_000, |path| {
        let (limit, window) = of(path, (16_000_000, 86_400 * SECOND));
        ours(TwoWindow::builder(limit, window).build())
    }),
    contestant!(Ours, "token bucket", 20, |path| {
        let (limit, window) = of(path, (SECOND.as_nanos() as u64, SECOND));
        ours(Gcra::builder(limit, window).build())
    }),
    contestant!(Ours, "pacing queue", 20, |path| {
        let (limit, window) = of(path, (SECOND.as_nanos() as u64, SECOND));
        ours(Pacing::builder(limit, window).build())
    }),
    contestant!(Ours, "compact log", 20, |path| {
        let (limit, window) = of(path, LOG);
        ours(Compact::builder(limit, window).build())
    }),
    contestant!(Ours, "sampling log", 20, |path| {
        let (limit, window) = of(path, LOG);
        ours(Sampled::builder(limit, window).build())
    }),
    contestant!(Ours, "wheel", 20, |path| {
        let (limit, window) = of(path, LOG);
        ours(Wheel::builder(limit, window).build())
    }),
    contestant!(Ours, "sharded log of single permits", 20, |path| {
        let (limit, window) = of(path, LOG);
        ours(Log::builder(limit * SHARDS as u64, window).max_cost(1).build_sharded(SHARDS))
    }),
    contestant!(Ours, "sharded counter", 20, |path| {
        let (limit, window) = of(path, COUNTER);
        ours(Window::builder(limit, window).build_sharded(SHARDS))
    }),
    contestant!(Peer, "governor", 20, |path| boxed(match path {
        Path::Admitted => Governor::new(u32::MAX, Duration::from_nanos(1)),
        Path::Refused => Governor::new(FULL as u32, LONG),
    })),
    contestant!(Peer, "ratelimit", 20, |path| boxed(match path {
        Path::Admitted => Ratelimit::new(1_000_000_000, SECOND),
        Path::Refused => Ratelimit::new(1, LONG),
    })),
    contestant!(Peer, "better-bucket", 20, |path| boxed(match path {
        Path::Admitted => BetterBucket::new(1_000_000_000, SECOND),
        Path::Refused => BetterBucket::new(1, LONG),
    })),
    contestant!(
        Peer,
        "leaky-bucket",
        20,
        |path| boxed(match path {
            Path::Admitted => LeakyBucket::new(1_000_000_000, SECOND),
            Path::Refused => LeakyBucket::new(FULL as usize, LONG),
        }),
        true
    ),
    contestant!(
        Peer,
        "pingora-limits",
        20,
        |path| boxed(match path {
            Path::Admitted => Pingora::new(1_000_000_000, SECOND),
            Path::Refused => Pingora::new(0, LONG),
        }),
        true
    ),
    contestant!(Peer, "deque, std mutex", 20, |path| {
        let (limit, window) = of(path, LOG);
        boxed(Deque::<std::sync::Mutex<VecDeque<Nanos>>>::new(limit, window.into()))
    }),
    contestant!(Peer, "deque, parking_lot", 20, |path| {
        let (limit, window) = of(path, LOG);
        boxed(Deque::<parking_lot::Mutex<VecDeque<Nanos>>>::new(limit, window.into()))
    }),
    contestant!(Peer, "buckets summed, mutex", 20, |path| {
        let (limit, window) = of(path, COUNTER);
        boxed(Summed::new(limit, window.into(), BUCKETS))
    }),
    contestant!(Peer, "buckets summed, RwLock", 20, |path| {
        let (limit, window) = of(path, COUNTER);
        boxed(Shared::new(limit, window.into(), BUCKETS))
    }),
    contestant!(Peer, "buckets, running total", 20, |path| {
        let (limit, window) = of(path, COUNTER);
        boxed(Total::new(limit, window.into(), BUCKETS))
    }),
    contestant!(Peer, "packed head and count", 20, |path| {
        let (limit, window) = of(path, LOG);
        boxed(Packed::new(limit, window.into()))
    }),
];

/// An exact log by name, of so many permits, where all is admitted as in its row.
///
/// # Panics
/// If there is none of that name.
pub(crate) fn log(name: &str, limit: u64) -> Box<dyn Subject> {
    let window = Duration::from_nanos(limit * LOG.1.as_nanos() as u64 / LOG.0);
    let built = match name {
        LOG_FLOOR => boxed(Ring::new(limit, window.into())),
        "log" => ours(Log::builder(limit, window).build()),
        "log of single permits" => ours(Log::builder(limit, window).max_cost(1).build()),
        _ => None,
    };
    built.unwrap_or_else(|| panic!("no log is called {name}"))
}

/// The names of the peers.
pub(crate) fn peers() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|it| it.side == Side::Peer).map(|it| it.name)
}

/// One of them.
///
/// # Panics
/// If there is none of that name.
pub(crate) fn named(name: &str) -> &'static Contestant {
    ALL.iter().find(|contestant| contestant.name == name).unwrap_or_else(|| panic!("nobody is called {name}"))
}
