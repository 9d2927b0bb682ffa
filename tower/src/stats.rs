//! What a layer has decided so far.

use std::{
    fmt,
    sync::atomic::{
        AtomicU64,
        Ordering::Relaxed, // Counts order nothing; each addition is whole.
    },
};

/// Counts, added to by all requests.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    admitted: AtomicU64,
    skipped: AtomicU64,
    keyless: AtomicU64,
    unavailable: AtomicU64,
    degraded: AtomicU64,
    dry: AtomicU64,
    /// By limit.
    refused: Vec<AtomicU64>,
}

/// What a layer has decided so far. Counts of requests: each exact, together of no one moment.
///
/// Its `Display` is the text format of Prometheus.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate_tower::{All, RateLimitLayer};
///
/// let log = tollgate::Log::builder(5, Duration::from_secs(10)).build()?;
/// let layer = RateLimitLayer::builder(All::new(log).named("global")).build()?;
/// assert!(layer.stats().to_string().contains("tollgate_refused_total{policy=\"global\"} 0\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Let through by the limits.
    pub admitted: u64,
    /// Not asked about: by path, method or predicate.
    pub skipped: u64,
    /// Refused, by the name of each limit (that of its first rule); in a dry run, what would have been refused.
    pub refused: Vec<(String, u64)>,
    /// Without a key, and refused for that.
    pub keyless: u64,
    /// Refused because the limiter could not decide.
    pub unavailable: u64,
    /// Decided without the server that should have, since it was out of reach.
    pub degraded: u64,
    /// Of all that were refused, for whatever cause: let through after all, in a dry run.
    pub dry: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Admitted,
    Skipped,
    /// By a limit, by its place.
    Refused(usize),
    Keyless,
    Unavailable,
    #[cfg(feature = "redis")]
    Degraded,
    Dry,
}

// === impl Counters ===

impl Counters {
    pub(crate) fn new(limits: usize) -> Self {
        Self { refused: (0..limits).map(|_| AtomicU64::new(0)).collect(), ..Self::default() }
    }

    pub(crate) fn count(&self, event: Event) {
        let counter = match event {
            Event::Admitted => &self.admitted,
            Event::Skipped => &self.skipped,
            Event::Refused(limit) => match self.refused.get(limit) {
                Some(counter) => counter,
                None => return,
            },
            Event::Keyless => &self.keyless,
            Event::Unavailable => &self.unavailable,
            #[cfg(feature = "redis")]
            Event::Degraded => &self.degraded,
            Event::Dry => &self.dry,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn read<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Stats {
            admitted: read(&self.admitted),
            skipped: read(&self.skipped),
            refused: names.into_iter().map(str::to_owned).zip(self.refused.iter().map(read)).collect(),
            keyless: read(&self.keyless),
            unavailable: read(&self.unavailable),
            degraded: read(&self.degraded),
            dry: read(&self.dry),
        }
    }
}

// === impl Stats ===

impl Stats {
    /// Refused by limits, all together.
    pub fn refused_by_limits(&self) -> u64 {
        self.refused.iter().map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            ("admitted", self.admitted),
            ("skipped", self.skipped),
            ("keyless", self.keyless),
            ("unavailable", self.unavailable),
            ("degraded", self.degraded),
            ("dry_run", self.dry),
        ];
        for (name, count) in counts {
            writeln!(f, "# TYPE tollgate_{name}_total counter\ntollgate_{name}_total {count}")?;
        }
        writeln!(f, "# TYPE tollgate_refused_total counter")?;
        for (policy, count) in &self.refused {
            writeln!(f, "tollgate_refused_total{{policy=\"{policy}\"}} {count}")?;
        }
        Ok(())
    }
}
