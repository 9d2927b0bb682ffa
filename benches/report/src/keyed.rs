//! What a key costs, in time and in bytes: ours beside `governor`, for the same kind of limit.

use std::{
    hint::black_box,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use tollgate::{Class, Gcra, Keyed, Log, Nanos, WhenFull};
use tollgate_benches::{START, uniform};

use crate::{
    drive::{Crowd, Path},
    machine::{self, Switches},
    markdown::{Table, ns, times},
    measure::{Bench, Figure, Measured},
    memory,
    peers::GovernorKeyed,
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
pub(crate) const KEYS: [u64; 2] = [100_000, 1_000_000];

type Build = fn(u64, Path) -> Option<Box<dyn ByKey>>;

const HOUR: Duration = Duration::from_secs(3_600);
/// Admitted: so many permits at once and one a second, so that no key is ever idle.
const PLENTY: u32 = 1_000_000;

/// Refused: one permit an hour, or five, and they are taken.
const LINEUP: [(&str, Build); 3] = [
    (OURS, |keys, path| {
        let bucket = match path {
            Path::Admitted => Gcra::builder(PLENTY.into(), PLENTY * Duration::from_secs(1)),
            Path::Refused => Gcra::builder(1, HOUR),
        };
        ours(keys, bucket.config().expect("a configuration that is valid"))
    }),
    (GOVERNOR, |_, path| {
        Some(Box::new(match path {
            Path::Admitted => GovernorKeyed::new(PLENTY, Duration::from_secs(1)),
            Path::Refused => GovernorKeyed::new(1, HOUR),
        }))
    }),
    ("log of 5", |keys, path| {
        let config = Log::builder(5, HOUR).config().expect("a configuration that is valid");
        if path == Path::Refused { ours(keys, config) } else { None }
    }),
];

fn ours(keys: u64, class: impl Into<Class>) -> Option<Box<dyn ByKey>> {
    let builder = Keyed::<u64>::builder(class, keys).when_full(WhenFull::Refuse);
    Some(Box::new(builder.build().expect("memory")))
}

fn batch(limiter: &impl ByKey, keys: &[u64], from: Nanos, step: Nanos) -> u64 {
    let (mut now, mut admitted) = (from, 0);
    for &key in keys {
        admitted += u64::from(black_box(limiter).try_acquire(key, black_box(now)));
        now = now + step;
    }
    admitted
}

impl ByKey for Keyed<u64> {
    #[inline(always)]
    fn try_acquire(&self, key: u64, now: Nanos) -> bool {
        self.try_acquire_at(&key, 1, now)
    }

    fn batch(&self, keys: &[u64], from: Nanos, step: Nanos) -> u64 {
        batch(self, keys, from, step)
    }
}

impl ByKey for GovernorKeyed {
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
                for threads in [1, 2] {
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
                        let governor = Label { name: GOVERNOR, ..label };
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
