//! Time cut into equal spans (windows, buckets), and one word that holds a span's index below a count.
//!
//! # What
//! Span edges are the multiples of the width from the clock's zero, shifted by a phase. The index takes the
//! lower bits of a word, as many as the last moment a limiter accepts ([`Nanos::MAX`]) needs, so it never
//! wraps; the upper bits, the rest, are for counts. A word of zeros is index 0, rest 0. Counts lie above so that
//! they are added and subtracted in place: what carries out of them leaves the word. A flag may lie between.
//!
//! # Invariants
//! | id | always                                           | kept by                    |
//! |----|--------------------------------------------------|----------------------------|
//! | I1 | `width >= 1`, `lead < width`, both below 2^62    | `Split::new`               |
//! | I2 | `index <= (MAX + lead) / width`                  | times in range             |
//! | I3 | the sum of a time or start and two widths < 2^64 | I1, I2: four times < 2^62  |

use core::{num::NonZeroU64, time::Duration};

use crate::{ConfigError, Nanos};

/// How a 64-bit word is split into `rest | index`, or `rest | flag | index`, and which moments an index stands for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Split {
    width: NonZeroU64,
    /// How long span 0 had been running at the clock's zero: keeps indices unsigned under any phase.
    lead: u64,
    /// When span 0 ends.
    first_end: u64,
    /// Bits of index and flag.
    low_bits: u32,
    rest_bits: u32,
    index_mask: u64,
    /// One of the rest, where it lies in a word.
    unit: u64,
}

// === impl Split ===

impl Split {
    /// Spans of `width` with an edge at `phase`.
    ///
    /// # Errors
    /// [`ConfigError::Window`] for a width outside 1 ns to [`Nanos::MAX`], [`ConfigError::Phase`] for a phase
    /// that is not below the width.
    pub(crate) fn new(width: Nanos, phase: Nanos) -> Result<Self, ConfigError> {
        let some = NonZeroU64::new(width.as_nanos()).filter(|_| width.in_range());
        let Some(width_ns) = some else {
            let (min, max) = (Duration::from_nanos(1), Nanos::MAX.into());
            return Err(ConfigError::Window { got: width.into(), min, max });
        };
        if phase >= width {
            return Err(ConfigError::Phase { got: phase.into(), width: width.into() });
        }
        let lead = if phase == Nanos::ZERO { 0 } else { (width - phase).as_nanos() };
        let first_end = width.as_nanos() - lead;
        // 1 to MAX, so that 2 to 63 bits remain.
        let low_bits = u64::BITS - ((Nanos::MAX.as_nanos() + lead) / width_ns).leading_zeros();
        let unit = 1 << low_bits;
        Ok(Self {
            width: width_ns,
            lead,
            first_end,
            low_bits,
            rest_bits: u64::BITS - low_bits,
            index_mask: unit - 1,
            unit,
        })
    }

    /// The same with a flag between index and rest, which has a bit less.
    pub(crate) fn with_flag(self) -> Self {
        Self { low_bits: self.low_bits + 1, rest_bits: self.rest_bits - 1, unit: self.unit << 1, ..self }
    }

    /// The flag, where it lies in a word.
    #[inline]
    pub(crate) fn flag(&self) -> u64 {
        self.unit >> 1
    }

    /// Whether two words have the same index, and the same flag.
    #[inline]
    pub(crate) fn is_whole(&self, difference: u64) -> bool {
        difference & (self.unit - 1) == 0
    }

    /// The width of a span in nanoseconds.
    #[inline]
    pub(crate) fn width(&self) -> NonZeroU64 {
        self.width
    }

    /// Bits above the index.
    #[inline]
    pub(crate) fn rest_bits(&self) -> u32 {
        self.rest_bits
    }

    /// The largest rest.
    #[inline]
    pub(crate) fn rest_max(&self) -> u64 {
        u64::MAX >> self.low_bits
    }

    /// The index in a word.
    #[inline]
    pub(crate) fn index(&self, word: u64) -> u64 {
        word & self.index_mask
    }

    /// The rest in a word.
    #[inline]
    pub(crate) fn rest(&self, word: u64) -> u64 {
        word >> self.low_bits
    }

    /// A word from its index and its rest, which must not exceed [`rest_max`](Self::rest_max).
    #[inline]
    pub(crate) fn pack(&self, index: u64, rest: u64) -> u64 {
        debug_assert!(rest <= self.rest_max());
        rest << self.low_bits | index
    }

    /// `n` of the rest as they lie in a word, to be added or compared there; wraps.
    #[inline]
    pub(crate) fn in_place(&self, n: u64) -> u64 {
        n.wrapping_mul(self.unit)
    }

    /// The index of the span that holds `now` (in range). Costs a division.
    #[inline]
    pub(crate) fn index_of(&self, now: Nanos) -> u64 {
        (now.as_nanos() + self.lead) / self.width
    }

    /// The later of `index` and the span that holds `now` (in range). Divides only when that is not `index`.
    #[inline]
    pub(crate) fn newest(&self, index: u64, now: Nanos) -> u64 {
        if self.ends_after(index, now) { index } else { self.index_of(now) }
    }

    /// Whether the span `index` ends after `now`: never, for a time out of range.
    #[inline]
    pub(crate) fn ends_after(&self, index: u64, now: Nanos) -> bool {
        now.as_nanos() < index * self.width.get() + self.first_end
    }

    /// How far `now` (in range) is into the span `index`: 0 before it, at least the width after it.
    #[inline]
    pub(crate) fn elapsed(&self, index: u64, now: Nanos) -> u64 {
        (now.as_nanos() + self.lead).saturating_sub(index * self.width.get())
    }

    /// The first moment of the span `index`; for one that began before the clock's zero, zero.
    #[inline]
    pub(crate) fn start_of(&self, index: u64) -> Nanos {
        Nanos::from_nanos((index * self.width.get()).saturating_sub(self.lead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(width: u64, phase: u64) -> Split {
        Split::new(Nanos::from_nanos(width), Nanos::from_nanos(phase)).unwrap()
    }

    #[test]
    fn the_index_outlives_the_machine_and_the_rest_keeps_what_is_left() {
        // 2^62 / width, rounded up to whole bits, leaves:
        let max = Nanos::MAX.as_nanos();
        for (width, bits) in [(1, 2), (1_000, 11), (1_000_000, 21), (1_000_000_000, 31), (max, 63)] {
            let s = split(width, 0);
            assert_eq!((width, s.rest_bits()), (width, bits));
            let last = s.index_of(Nanos::MAX);
            let word = s.pack(last, s.rest_max());
            assert_eq!((s.index(word), s.rest(word)), (last, s.rest_max()));
        }
    }

    #[test]
    fn a_width_or_phase_out_of_bounds_is_named() {
        let zero = Split::new(Nanos::ZERO, Nanos::ZERO).unwrap_err();
        assert!(matches!(zero, ConfigError::Window { got: Duration::ZERO, .. }), "{zero}");
        let long = Split::new(Nanos::MAX + Nanos::from_nanos(1), Nanos::ZERO).unwrap_err();
        assert!(matches!(long, ConfigError::Window { .. }), "{long}");
        let ten = Nanos::from_nanos(10);
        let edge = ConfigError::Phase { got: ten.into(), width: ten.into() };
        assert_eq!(Split::new(ten, ten).unwrap_err(), edge);
        assert!(Split::new(ten, Nanos::from_nanos(9)).is_ok());
    }

    #[test]
    fn a_phase_moves_the_edges() {
        let s = split(10, 3);
        let indices = [0, 2, 3, 12, 13].map(|t| s.index_of(Nanos::from_nanos(t)));
        assert_eq!(indices, [0, 0, 1, 1, 2]);
        assert_eq!([0, 1, 2].map(|i| s.start_of(i).as_nanos()), [0, 3, 13]);
    }

    proptest! {
        /// Every question agrees with wide arithmetic, at the ends of the range too.
        #[test]
        fn spans_agree_with_wide_arithmetic(
            width in prop_oneof![1..20u64, 1..=Nanos::MAX.as_nanos()],
            phase in any::<u64>(),
            now in prop_oneof![0..100u64, 0..=Nanos::MAX.as_nanos(), Just(Nanos::MAX.as_nanos())],
            seen in prop_oneof![0..100u64, 0..=Nanos::MAX.as_nanos()],
        ) {
            let phase = phase % width;
            let s = split(width, phase);
            let lead = (u128::from(width) - u128::from(phase)) % u128::from(width);
            let index = (u128::from(now) + lead) / u128::from(width);
            let start = index * u128::from(width);
            let now = Nanos::from_nanos(now);
            prop_assert_eq!(u128::from(s.index_of(now)), index);
            prop_assert_eq!(u128::from(s.elapsed(s.index_of(now), now)), u128::from(now.as_nanos()) + lead - start);
            prop_assert_eq!(u128::from(s.start_of(s.index_of(now)).as_nanos()), start.saturating_sub(lead));
            prop_assert_eq!(s.index(s.pack(s.index_of(now), s.rest_max())), s.index_of(now));
            let seen = s.index_of(Nanos::from_nanos(seen));
            prop_assert_eq!(s.newest(seen, now), seen.max(s.index_of(now)));
            if seen > s.index_of(now) {
                prop_assert_eq!(s.elapsed(seen, now), 0);
            }
        }
    }
}
