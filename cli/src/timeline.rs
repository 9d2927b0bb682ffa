//! What happened over time, in a bounded number of bins whose width doubles whenever time outgrows them.
//!
//! # Invariants
//! | id | always                                                          | kept by          |
//! |----|-----------------------------------------------------------------|------------------|
//! | I1 | at most [`BINS`] bins, each of one width, without a gap          | `Timeline::bin`  |
//! | I2 | a bin holds what fell into `[place * width, (place + 1) * width)` | `Timeline::widen` |
//!
//! So sums and maxima are exact for each bin, in whatever order times come.

use std::collections::VecDeque;

/// The most bins kept.
const BINS: u64 = 512;

/// The width at first: 1 ms.
const FINEST: u64 = 1_000_000;

/// The blocks of a sparkline, the lowest first.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One stretch of time.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Bin {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// The largest level that was seen.
    pub(crate) peak: u64,
}

/// Bins over all the time seen so far.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    width: u64,
    /// The place of the first bin: its start over the width.
    first: u64,
    bins: VecDeque<Bin>,
}

// === impl Bin ===

impl Bin {
    /// All that came.
    pub(crate) fn requests(self) -> u64 {
        self.admitted + self.refused
    }

    fn and(self, other: Self) -> Self {
        Self {
            admitted: self.admitted + other.admitted,
            refused: self.refused + other.refused,
            peak: self.peak.max(other.peak),
        }
    }
}

// === impl Timeline ===

impl Default for Timeline {
    fn default() -> Self {
        Self { width: FINEST, first: 0, bins: VecDeque::new() }
    }
}

impl Timeline {
    /// One more request at `at`, after which a level stood at `level`.
    pub(crate) fn count(&mut self, at: u64, admitted: bool, level: u64) {
        let bin = self.bin(at);
        bin.admitted += u64::from(admitted);
        bin.refused += u64::from(!admitted);
        bin.peak = bin.peak.max(level);
    }

    /// The width of each bin, in nanoseconds.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// Each bin with the time at which it starts.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, Bin)> {
        let starts = (self.first..).map(|place| place.saturating_mul(self.width));
        starts.zip(self.bins.iter().copied())
    }

    /// `columns` blocks (fewer for a short time), each as high as `level` of its bins at most; empty without any.
    pub(crate) fn sparkline(&self, columns: usize, level: impl Fn(Bin) -> u64) -> String {
        let group = self.bins.len().div_ceil(columns.max(1)).max(1);
        let bins: Vec<Bin> = self.bins.iter().copied().collect();
        let joined =
            bins.chunks(group).map(|bins| bins.iter().fold(Bin::default(), |sum, bin| sum.and(*bin)));
        let levels: Vec<u64> = joined.map(level).collect();
        let most = levels.iter().copied().max().unwrap_or(0).max(1);
        let block = |level: u64| match u128::from(level) * BLOCKS.len() as u128 {
            0 => ' ',
            eighths => BLOCKS[eighths.div_ceil(u128::from(most)) as usize - 1],
        };
        levels.into_iter().map(block).collect()
    }

    /// The bin of `at`, made if need be. (I1)
    fn bin(&mut self, at: u64) -> &mut Bin {
        if self.bins.is_empty() {
            self.first = at / self.width;
            self.bins.push_back(Bin::default());
        }
        loop {
            let place = at / self.width;
            let last = self.first + self.bins.len() as u64 - 1;
            if place.max(last) - place.min(self.first) >= BINS {
                self.widen();
                continue;
            }
            for _ in place..self.first {
                self.bins.push_front(Bin::default());
            }
            for _ in last..place.max(last) {
                self.bins.push_back(Bin::default());
            }
            self.first = self.first.min(place);
            return &mut self.bins[(place - self.first) as usize];
        }
    }

    /// Joins bins by two. (I2)
    fn widen(&mut self) {
        let mut joined: VecDeque<Bin> = VecDeque::with_capacity(BINS as usize);
        for (place, bin) in (self.first..).zip(&self.bins) {
            match joined.back_mut() {
                Some(last) if place % 2 == 1 => *last = last.and(*bin),
                _ => joined.push_back(*bin),
            }
        }
        self.bins = joined;
        self.first /= 2;
        self.width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// I1, I2: every bin tells what a list of all requests tells.
        #[test]
        fn bins_are_exact(
            base in prop_oneof![Just(0_u64), Just(1_700_000_000_000_000_000), Just((1 << 62) - (1 << 45))],
            requests in prop::collection::vec((0_u64..1 << 44, 0_u32..44, any::<bool>(), 0_u64..9), 1..200),
        ) {
            let mut timeline = Timeline::default();
            let requests: Vec<_> =
                requests.into_iter().map(|(at, shift, admitted, level)| (base + (at >> shift), admitted, level)).collect();
            for &(at, admitted, level) in &requests {
                timeline.count(at, admitted, level);
            }
            let bins: Vec<_> = timeline.bins().collect();
            prop_assert!(bins.len() as u64 <= BINS);
            let sum = |f: &dyn Fn(Bin) -> u64| bins.iter().map(|(_, bin)| f(*bin)).sum::<u64>();
            prop_assert_eq!(sum(&|bin| bin.requests()), requests.len() as u64);
            for (start, bin) in bins {
                let inside = || requests.iter().filter(|(at, ..)| (start..start + timeline.width()).contains(at));
                prop_assert_eq!(bin.admitted, inside().filter(|(_, admitted, _)| *admitted).count() as u64);
                prop_assert_eq!(bin.refused, inside().filter(|(_, admitted, _)| !*admitted).count() as u64);
                prop_assert_eq!(bin.peak, inside().map(|(.., level)| *level).max().unwrap_or(0));
            }
        }
    }

    #[test]
    fn a_sparkline_is_as_high_as_its_highest_bin() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.sparkline(8, Bin::requests), "");
        for (bin, requests) in [(0, 1), (2, 4), (3, 8)] {
            (0..requests).for_each(|_| timeline.count(bin * FINEST, true, requests));
        }
        assert_eq!(timeline.sparkline(8, Bin::requests), "▁ ▄█");
        assert_eq!(timeline.sparkline(2, Bin::requests), "▁█");
        assert_eq!(timeline.sparkline(2, |bin| bin.peak), "▁█");
    }
}
