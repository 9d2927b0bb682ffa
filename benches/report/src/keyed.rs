//! What a key costs, in time and in bytes: ours beside `governor`, for the same kind of limit, and beside what neither can do
//! without.

use std::{
    hash::{BuildHasher, RandomState},
    hint::black_box,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState as Fast;
use tollgate::{Class, Gcra, Keyed, Log, Nanos, WhenFull};
use tollgate_benches::{START, uniform};

use crate::{
    drive::{Crowd, Path},
    machine::{self, Switches},
    markdown::{Table, ns, times},
    measure::{Bench, Figure, Measured},
    memory,
    peers::{GovernorKeyed, KeysFloor, Step},
};

/// A row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) keys: u64,
    pub(crate) path: Path,
    pub(crate) threads: usize,
}

/// Times, and bytes a key by name and number of keys.
pub(crate) struct KeyedFigures {
    pub(crate) times: Measured<Label, 1>,
    pub(crate) bytes: Vec<(&'static str, u64, f64)>,
}

/// A limiter for each key.
trait ByKey: Send + Sync {
    fn try_acquire(&self, key: u64, now: Nanos) -> bool;
    /// Calls with these keys: those admitted.
    fn batch(&self, keys: &[u64], from: Nanos, step: Nanos) -> u64;
}

pub(crate) const OURS: &str = "token bucket";
pub(crate) const GOVERNOR: &str = "governor";
/// The same two with a hasher that promises nothing against clients who choose their keys.
pub(crate) const OURS_FAST: &str = "token bucket, foldhash";
pub(crate) const GOVERNOR_FAST: &str = "governor, foldhash";
/// Three floors, each with one thing more.
pub(crate) const FLOORS: [&str; 3] =
    ["floor: SipHash alone", "floor: and the key's two lines", "floor: and a lock"];
/// The same with the other hasher.
pub(crate) const FLOORS_FAST: [&str; 3] =
    ["floor: foldhash alone", "floor, foldhash: and the key's two lines", "floor, foldhash: and a lock"];
pub(crate) const KEYS: [u64; 2] = [100_000, 1_000_000];

type Build = fn(u64, Path) -> Option<Box<dyn ByKey>>;

/// A hasher that both take.
trait Hasher: BuildHasher + Default + Clone + Send + Sync + 'static {}

impl<S: BuildHasher + Default + Clone + Send + Sync + 'static> Hasher for S {}

const HOUR: Duration = Duration::from_secs(3_600);
/// Admitted: so many permits at once and one a second, so that no key is ever idle.
const PLENTY: u32 = 1_000_000;

/// Refused: one permit an hour, or five, and they are taken.
const LINEUP: [(&str, Build); 11] = [
    (FLOORS[0], |keys, path| floor::<RandomState>(keys, Step::Hash, path)),
    (FLOORS[1], |keys, path| floor::<RandomState>(keys, Step::Rows, path)),
    (FLOORS[2], |keys, path| floor::<RandomState>(keys, Step::Locks, path)),
    (OURS, |keys, path| bucket::<RandomState>(keys, path)),
    (GOVERNOR, |_, path| governor::<RandomState>(path)),
    (FLOORS_FAST[0], |keys, path| floor::<Fast>(keys, Step::Hash, path)),
    (FLOORS_FAST[1], |keys, path| floor::<Fast>(keys, Step::Rows, path)),
    (FLOORS_FAST[2], |keys, path| floor::<Fast>(keys, Step::Locks, path)),
    (OURS_FAST, |keys, path| bucket::<Fast>(keys, path)),
    (GOVERNOR_FAST, |_, path| governor::<Fast>(path)),
    ("log of 5", |keys, path| {
        let config = Log::builder(5, HOUR).config().expect("a configuration that is valid");
        if path == Path::Refused { ours::<RandomState>(keys, config) } else { None }
    }),
];

/// Those that two threads call, too.
const CROWDED: [&str; 3] = [OURS, GOVERNOR, "log of 5"];

fn floor<S: Hasher>(keys: u64, step: Step, path: Path) -> Option<Box<dyn ByKey>> {
    Some(Box::new(KeysFloor::<S>::new(keys, step, path == Path::Admitted)))
}

fn bucket<S: Hasher>(keys: u64, path: Path) -> Option<Box<dyn ByKey>> {
    let bucket = match path {
        Path::Admitted => Gcra::builder(PLENTY.into(), PLENTY * Duration::from_secs(1)),
        Path::Refused => Gcra::builder(1, HOUR),
    };
    ours::<S>(keys, bucket.config().expect("a configuration that is valid"))
}

fn governor<S: Hasher>(path: Path) -> Option<Box<dyn ByKey>> {
    Some(Box::new(match path {
        Path::Admitted => GovernorKeyed::<S>::new(PLENTY, Duration::from_secs(1)),
        Path::Refused => GovernorKeyed::<S>::new(1, HOUR),
    }))
}

fn ours<S: Hasher>(keys: u64, class: impl Into<Class>) -> Option<Box<dyn ByKey>> {
    // A little more: that a shard is too full for a key to be admitted is to be out of the question.
    let builder = Keyed::<u64, S>::builder_with_hasher(class, keys + keys / 100, S::default());
    Some(Box::new(builder.when_full(WhenFull::Refuse).build().expect("memory")))
}

/// Whose limiter a row is compared with: governor's, with the same hasher.
pub(crate) fn partner(name: &str) -> &'static str {
    let is_fast = [OURS_FAST, GOVERNOR_FAST].contains(&name) || FLOORS_FAST.contains(&name);
    if is_fast { GOVERNOR_FAST } else { GOVERNOR }
}

fn batch(limiter: &impl ByKey, keys: &[u64], from: Nanos, step: Nanos) -> u64 {
    let (mut now, mut admitted) = (from, 0);
    for &key in keys {
        admitted += u64::from(black_box(limiter).try_acquire(key, black_box(now)));
        now = now + step;
    }
    admitted
}

impl<S: Hasher> ByKey for Keyed<u64, S> {
    #[inline(always)]
    fn try_acquire(&self, key: u64, now: Nanos) -> bool {
        self.try_acquire_at(&key, 1, now)
    }

    fn batch(&self, keys: &[u64], from: Nanos, step: Nanos) -> u64 {
        batch(self, keys, from, step)
    }
}

impl<S: Hasher> ByKey for GovernorKeyed<S> {
    #[inline(always)]
    fn try_acquire(&self, key: u64, now: Nanos) -> bool {
        self.try_acquire(key, now)
    }

    fn batch(&self, keys: &[u64], from: Nanos, step: Nanos) -> u64 {
        batch(self, keys, from, step)
    }
}

impl<S: Hasher> ByKey for KeysFloor<S> {
    #[inline(always)]
    fn try_acquire(&self, key: u64, now: Nanos) -> bool {
        self.try_acquire(key, now)
    }

    fn batch(&self, keys: &[u64], from: Nanos, step: Nanos) -> u64 {
        batch(self, keys, from, step)
    }
}

/// All rows, and the bytes of each after every key was seen.
pub(crate) fn measure(rounds: usize, calls: usize) -> KeyedFigures {
    let (mut benches, mut bytes) = (Vec::new(), Vec::new());
    for keys in KEYS {
        let drawn = Arc::new(uniform(keys));
        for path in Path::BOTH {
            for (name, build) in LINEUP {
                let before = memory::held();
                let Some(limiter) = build(keys, path) else { continue };
                let limiter: Rc<dyn ByKey> = Rc::from(limiter);
                for key in 0..keys {
                    while limiter.try_acquire(key, START) && path == Path::Refused {}
                }
                if path == Path::Refused {
                    bytes.push((name, keys, (memory::held() - before) as f64 / keys as f64));
                }
                for threads in if CROWDED.contains(&name) { 1..3 } else { 1..2 } {
                    let (limiter, drawn) = (Rc::clone(&limiter), Arc::clone(&drawn));
                    let label = Label { name, keys, path, threads };
                    let mut now = Nanos::from_nanos(START.as_nanos() + 1_000);
                    benches.push(Bench::new(label, move || {
                        let step = Nanos::from_nanos(if path == Path::Admitted { 50 } else { 0 });
                        let from = now;
                        now = Nanos::from_nanos(now.as_nanos() + calls as u64 * step.as_nanos());
                        row(&*limiter, label, &drawn, calls, from, step)
                    }));
                }
            }
        }
    }
    KeyedFigures { times: Measured::rounds(rounds, benches), bytes }
}

fn row(
    limiter: &dyn ByKey,
    label: Label,
    drawn: &[u64],
    calls: usize,
    from: Nanos,
    step: Nanos,
) -> Figure<1> {
    let part = |thread: usize| &drawn[thread * calls..(thread + 1) * calls];
    let check = |admitted| label.path.check(label.name, calls as u64, admitted);
    limiter.batch(&part(2)[..calls / 10], START, Nanos::ZERO);
    if label.threads == 1 {
        let (switches, begin) = (Switches::of_thread(), Instant::now());
        check(limiter.batch(part(0), from, step));
        let span = begin.elapsed().as_nanos() as f64;
        return Figure {
            values: [span / calls as f64],
            disturbed: Switches::of_thread().since(switches) > 0,
        };
    }
    let crowd = Crowd::run(label.threads, Duration::ZERO, |_, thread| {
        check(limiter.batch(part(thread), from, step));
        calls as u64
    });
    Figure { values: [crowd.ns()], disturbed: crowd.disturbed && label.threads <= machine::cores() }
}

// === impl KeyedFigures ===

impl KeyedFigures {
    /// Bytes a key.
    pub(crate) fn bytes(&self, name: &str, keys: u64) -> f64 {
        self.bytes.iter().find(|it| (it.0, it.1) == (name, keys)).map_or(f64::NAN, |it| it.2)
    }

    pub(crate) fn table(&self) -> String {
        let mut table = Table::new(&[
            "keys",
            "",
            "bytes a key",
            "admitted, ns",
            "x governor",
            "refused, ns",
            "x governor",
            "admitted, 2 threads, ns",
            "x governor",
            "refused, 2 threads, ns",
            "x governor",
        ]);
        for keys in KEYS {
            for (name, _) in LINEUP {
                let mut cells = vec![keys.to_string(), name.to_owned(), ns(self.bytes(name, keys))];
                for threads in [1, 2] {
                    for path in Path::BOTH {
                        let label = Label { name, keys, path, threads };
                        let governor = Label { name: partner(name), ..label };
                        cells.extend([
                            ns(self.times.median(&label)),
                            times(self.times.ratio(&label, &governor)),
                        ]);
                    }
                }
                table.row(cells);
            }
        }
        table.to_string()
    }
}
