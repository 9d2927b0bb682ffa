//! Regions in the tests' own memory, and everything that they can be asked.

use std::{
    cell::RefCell,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tollgate::{
    Algorithm, Config, Decision, Nanos, Rule,
    shared::{Region, RegionBuilder},
};

use crate::trace::shared_words;

/// A call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    /// Of limiter 0.
    Take { cost: u64, now: u64 },
    /// Of a key.
    Key { key: u64, cost: u64, now: u64 },
    /// Another rule for all; the answers that are asked for speak of limiter 0.
    Change { limit: u64, window: u64, now: u64 },
}

/// Whom a call speaks of: limiter 0, or a key.
pub(crate) type Subject = Option<u64>;

/// A region in memory of its own.
pub(crate) struct World<C: Config> {
    builder: RegionBuilder<C>,
    words: &'static [AtomicU64],
    /// As whoever came after the last [`restore`](World::restore) has it.
    region: RefCell<Region<C>>,
}

// === impl Call ===

impl Call {
    pub(crate) fn subject(self) -> Subject {
        match self {
            Self::Take { .. } | Self::Change { .. } => None,
            Self::Key { key, .. } => Some(key),
        }
    }

    pub(crate) fn now(self) -> u64 {
        let (Self::Take { now, .. } | Self::Key { now, .. } | Self::Change { now, .. }) = self;
        now
    }

    /// Permits asked for.
    pub(crate) fn cost(self) -> u64 {
        match self {
            Self::Take { cost, .. } | Self::Key { cost, .. } => cost,
            Self::Change { .. } => 0,
        }
    }
}

// === impl World ===

impl<C: Config> World<C> {
    pub(crate) fn new(builder: RegionBuilder<C>) -> Self {
        let words = shared_words(builder.bytes().expect("small") / 8);
        let region = RefCell::new(place(&builder, words));
        Self { builder, words, region }
    }

    pub(crate) fn bytes(&self) -> Vec<u64> {
        self.words.iter().map(|word| word.load(Relaxed)).collect()
    }

    /// Makes the memory what it was, or what another is: nobody attaches.
    pub(crate) fn put(&self, bytes: &[u64]) {
        for (word, &value) in self.words.iter().zip(bytes) {
            word.store(value, Relaxed);
        }
    }

    /// Makes it what it was, or what another is.
    pub(crate) fn restore(&self, bytes: &[u64]) {
        self.put(bytes);
        // What this process has of the rules in force may be of another history.
        self.region.replace(self.attached());
    }

    /// The region as whoever attaches to it now finds it.
    pub(crate) fn attached(&self) -> Region<C> {
        place(&self.builder, self.words)
    }

    /// Whether a call is admitted.
    pub(crate) fn take(&self, call: Call) -> bool {
        take(&self.region.borrow(), call)
    }

    /// A call with all figures; those of a change are what limiter 0 has left then.
    pub(crate) fn check(&self, call: Call) -> Decision {
        let region = self.region.borrow();
        match call {
            Call::Take { cost, now } => limiter(&region).check_at(cost, Nanos::from_nanos(now)),
            Call::Key { key, cost, now } => {
                keys(&region).check_at(&key.to_le_bytes(), cost, Nanos::from_nanos(now))
            }
            Call::Change { now, .. } => {
                take(&region, call);
                limiter(&region).peek_at(1, Nanos::from_nanos(now))
            }
        }
    }

    fn peek(&self, subject: Subject, cost: u64, now: u64) -> Decision {
        let (region, now) = (self.region.borrow(), Nanos::from_nanos(now));
        match subject {
            None => limiter(&region).peek_at(cost, now),
            Some(key) => keys(&region).peek_at(&key.to_le_bytes(), cost, now),
        }
    }

    /// Every answer to calls of a subject that are not older than `now`. It changes the region.
    pub(crate) fn answers(&self, subjects: &[Subject], now: u64, window: u64) -> Vec<Decision> {
        let mut answers = Vec::new();
        for ahead in [0, 1, window / 2, window - 1, window, window + 1, 3 * window] {
            for &subject in subjects {
                let call = |cost| match subject {
                    None => Call::Take { cost, now: now + ahead },
                    Some(key) => Call::Key { key, cost, now: now + ahead },
                };
                answers.extend([0, 1, 2, 5].map(|cost| self.peek(subject, cost, now + ahead)));
                answers.extend([2, 1].map(|cost| self.check(call(cost))));
            }
        }
        answers
    }
}

/// Whether a call is admitted, or a change taken.
pub(crate) fn take<C: Config>(region: &Region<C>, call: Call) -> bool {
    match call {
        Call::Take { cost, now } => limiter(region).try_acquire_at(cost, Nanos::from_nanos(now)),
        Call::Key { key, cost, now } => {
            keys(region).try_acquire_at(&key.to_le_bytes(), cost, Nanos::from_nanos(now))
        }
        Call::Change { limit, window, .. } => {
            region.set_rules(&[Rule { limit, window: Nanos::from_nanos(window) }]).is_ok()
        }
    }
}

fn place<C: Config>(builder: &RegionBuilder<C>, words: &'static [AtomicU64]) -> Region<C> {
    let start = NonNull::from(words).cast::<u8>();
    // SAFETY: contract of `place`: never unmapped, and only regions write it while any call is under way.
    unsafe { builder.place(NonNull::slice_from_raw_parts(start, 8 * words.len())) }.expect("a region")
}

fn limiter<C: Config>(region: &Region<C>) -> tollgate::shared::Shared<'_, C> {
    region.limiter(0).expect("there is one")
}

fn keys<C: Config>(region: &Region<C>) -> tollgate::shared::Keys<'_, C> {
    region.keys().expect("there is room for some")
}
