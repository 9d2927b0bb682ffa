//! What the scripts should answer, from the definitions: a plain list of everything ever admitted, searched anew for
//! every question. Nothing is shared with the scripts: no ring, no header, no closed form of a wait.

use tollgate_redis::{Mode, Store};

/// One limit, all in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) limit: u64,
    pub(crate) window: u64,
}

/// A rule's history: every admission as (time judged, time recorded, units).
#[derive(Default)]
struct History {
    admitted: Vec<(u64, u64, u64)>,
    newest_record: u64,
    newest_judged: u64,
    /// Ring: the largest limit so far, and how many of the newest units are remembered.
    capacity: u64,
    /// Counts by buckets: how wide they were at the last admission, as after a change a unit may be anywhere in its bucket.
    width: u64,
    /// GCRA: when the bucket would be empty, in 2^-20 us.
    empty_at: u128,
    /// GCRA: in which time a full bucket drained at the last admission, whole microseconds.
    span: u64,
    /// GCRA, in the call at hand: the clock ran back so far that nothing is given before this.
    closed_before: u64,
}

pub(crate) struct Oracle {
    store: Store,
    histories: Vec<History>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) granted: u64,
    pub(crate) retry: u64,
    pub(crate) at: u64,
    pub(crate) rule: usize,
    pub(crate) left: u64,
    pub(crate) next: u64,
    pub(crate) reset: u64,
    /// Until one more fits.
    pub(crate) ahead: u64,
}

const PARTS: u128 = 1 << 20;

impl Oracle {
    pub(crate) fn new(store: Store, rules: usize) -> Self {
        Self { store, histories: (0..rules).map(|_| History::default()).collect() }
    }

    /// Judges one call, all times in microseconds, and records what it takes.
    pub(crate) fn call(&mut self, limits: &[Limit], mode: Mode, cost: u64, hold: u64, now: u64) -> Expected {
        let at = self.judged(limits, now);
        let (mut retry, mut rule) = self.wait(limits, cost, at);
        let granted = match (retry, mode) {
            (0, _) => cost,
            (_, Mode::Part) => self.free(limits, at).min(cost),
            _ => 0,
        };
        if granted > 0 && mode != Mode::Peek {
            self.record(limits, granted, at, hold);
        }
        if retry > 0 && mode == Mode::Part {
            (retry, rule) = self.wait(limits, 1, at);
        }
        let left = self.free(limits, at);
        if retry == 0 {
            rule = (0..limits.len()).min_by_key(|&i| self.one_free(i, limits[i], at)).unwrap();
        }
        let grows = limits.iter().all(|limit| limit.limit > left);
        Expected {
            granted,
            retry,
            at,
            rule,
            left,
            next: if grows { self.wait(limits, left + 1, at).0 } else { 0 },
            reset: (0..limits.len()).map(|i| self.until_empty(i, limits[i], at)).max().unwrap(),
            ahead: if limits.iter().all(|limit| limit.limit > 0) { self.wait(limits, 1, at).0 } else { 0 },
        }
    }

    fn judged(&mut self, limits: &[Limit], now: u64) -> u64 {
        if !matches!(self.store, Store::Gcra { .. }) {
            return self.histories.iter().map(|history| history.newest_judged).max().unwrap().max(now);
        }
        // Not the newest time, but the first at which the bucket can have been so full.
        let full = |history: &History, limit: &Limit| {
            let span = drain(*limit).max(history.span);
            u64::try_from(history.empty_at.div_ceil(PARTS).saturating_sub(span.into())).unwrap()
        };
        let at = self
            .histories
            .iter()
            .zip(limits)
            .map(|(history, limit)| full(history, limit))
            .max()
            .unwrap()
            .max(now);
        for (history, limit) in self.histories.iter_mut().zip(limits) {
            history.closed_before = if now < full(history, limit) { at + 1 } else { 0 };
        }
        at
    }

    fn record(&mut self, limits: &[Limit], units: u64, at: u64, hold: u64) {
        let store = self.store;
        for (history, limit) in self.histories.iter_mut().zip(limits) {
            history.forget(store, *limit, at);
            history.newest_record = history.newest_record.max(at + hold);
            history.newest_judged = at;
            history.admitted.push((at, history.newest_record, units));
            if store == Store::Ring {
                history.capacity = history.capacity.max(limit.limit);
                history.overwrite();
            }
            history.span = drain(*limit);
            history.empty_at =
                history.empty_at.max(u128::from(at) * PARTS) + interval(*limit) * u128::from(units);
        }
    }

    /// Units that rule `i` could still take at `t`.
    fn one_free(&self, i: usize, limit: Limit, t: u64) -> u64 {
        let history = &self.histories[i];
        let width = width(self.store, limit);
        let sum = |inside: &dyn Fn(u64, u64) -> bool| -> u64 {
            let counted = |(at, record, _): &&(u64, u64, u64)| inside(history.moved(*at, width), *record);
            history.admitted.iter().filter(counted).map(|(_, _, units)| units).sum()
        };
        let Limit { limit, window } = limit;
        match self.store {
            Store::Counter { buckets } => {
                limit.saturating_sub(sum(&|at, _| at / width + u64::from(buckets) >= t / width))
            }
            Store::TwoWindow => {
                let this = sum(&|at, _| at / window == t / window);
                let before = sum(&|at, _| at / window + 1 == t / window);
                let used = u128::from(before) * u128::from(window - t % window)
                    + u128::from(this) * u128::from(window);
                // The most units with used + m W <= L W.
                let room = (u128::from(limit) * u128::from(window)).saturating_sub(used);
                (room / u128::from(window)) as u64
            }
            Store::Gcra { .. } => {
                let (step, at, t) = (interval(Limit { limit, window }), t, u128::from(t) * PARTS);
                let charged = history.empty_at.saturating_sub(t);
                let span = step * u128::from(limit);
                if limit == 0 || charged > span || at < history.closed_before {
                    0
                } else {
                    ((span - charged) / step) as u64
                }
            }
            _ => limit.saturating_sub(sum(&|_, record| record + window > t)),
        }
    }

    fn free(&self, limits: &[Limit], t: u64) -> u64 {
        (0..limits.len()).map(|i| self.one_free(i, limits[i], t)).min().unwrap()
    }

    /// The shortest wait from `at` until rule `i` could take `m` units, by bisection: room only grows.
    fn one_wait(&self, i: usize, limit: Limit, m: u64, at: u64) -> u64 {
        let (mut lo, mut hi) = (0, 1);
        while self.one_free(i, limit, at + hi - 1) < m {
            (lo, hi) = (hi, 2 * hi);
        }
        while lo < hi {
            let mid = (lo + hi) / 2;
            if self.one_free(i, limit, at + mid) >= m { hi = mid } else { lo = mid + 1 }
        }
        lo
    }

    /// How long until nothing is charged to rule `i`: until even a huge limit would have nothing to subtract.
    fn until_empty(&self, i: usize, limit: Limit, at: u64) -> u64 {
        match self.store {
            Store::Gcra { .. } => self.one_wait(i, limit, limit.limit, at),
            _ => {
                let huge = Limit { limit: 1 << 20, ..limit };
                self.one_wait(i, huge, huge.limit, at)
            }
        }
    }

    /// The longest of the rules' waits and the first rule that has it.
    fn wait(&self, limits: &[Limit], m: u64, at: u64) -> (u64, usize) {
        let waits: Vec<u64> = (0..limits.len()).map(|i| self.one_wait(i, limits[i], m, at)).collect();
        let longest = *waits.iter().max().unwrap();
        (longest, waits.iter().position(|&wait| wait == longest).unwrap())
    }
}

impl History {
    /// Lets go of what the store does not keep, in an admission at `now` under `limit`.
    fn forget(&mut self, store: Store, limit: Limit, now: u64) {
        match store {
            Store::Zset => self.admitted.retain(|(_, record, _)| record + limit.window > now),
            Store::Counter { .. } | Store::TwoWindow => {
                let width = width(store, limit);
                let buckets = if let Store::Counter { buckets } = store { buckets.into() } else { 1 };
                let mut admitted = std::mem::take(&mut self.admitted);
                admitted.iter_mut().for_each(|(at, _, _)| *at = self.moved(*at, width));
                admitted.retain(|(at, _, _)| at / width + buckets >= now / width);
                (self.admitted, self.width) = (admitted, width);
            }
            _ => {}
        }
    }

    /// A ring's newest units take the place of the oldest.
    fn overwrite(&mut self) {
        let mut younger: u64 = self.admitted.iter().map(|(_, _, units)| units).sum();
        self.admitted.retain_mut(|(_, _, units)| {
            younger -= *units;
            *units = (*units).min(self.capacity.saturating_sub(younger));
            *units > 0
        });
    }

    /// A unit's time in buckets of `width`: after a change, the latest that it can be.
    fn moved(&self, at: u64, width: u64) -> u64 {
        if width == 0 || width == self.width {
            return at;
        }
        ((at / self.width + 1) * self.width - 1).min(self.newest_judged)
    }
}

/// How wide a bucket is; 0 without buckets.
fn width(store: Store, limit: Limit) -> u64 {
    match store {
        Store::Counter { buckets } => limit.window.div_ceil(buckets.into()),
        Store::TwoWindow => limit.window,
        _ => 0,
    }
}

fn interval(limit: Limit) -> u128 {
    if limit.limit == 0 { 0 } else { (u128::from(limit.window) * PARTS).div_ceil(limit.limit.into()) }
}

/// The whole microseconds in which a full bucket drains.
fn drain(limit: Limit) -> u64 {
    u64::try_from(interval(limit) * u128::from(limit.limit) / PARTS).unwrap()
}
