//! What a plan says, in the shape that `--json` prints. Names and meanings here are a promise to scripts.

use serde::Serialize;

use crate::{
    args::{self, Share},
    json::{Input, TopKey},
};

/// Everything that a plan says.
#[derive(Serialize)]
pub(crate) struct PlanReport<'a> {
    pub(crate) input: Input,
    /// What has a limit of its own.
    pub(crate) key: String,
    /// The largest share of requests, and of keys, that may be refused, in thousand-millionths.
    pub(crate) refuse_at_most_ppb: u64,
    /// In the order asked for; the snippet and the pictures of the first one are shown.
    pub(crate) windows: &'a [WindowPlan],
}

/// What is to be said of one length of window. All figures are exact.
#[derive(Serialize)]
pub(crate) struct WindowPlan {
    pub(crate) window_ns: u64,
    pub(crate) peaks: Peaks,
    /// When the first of the busiest windows of one key ended, RFC 3339; null without requests.
    pub(crate) busiest_ends: Option<String>,
    /// The busiest window of all keys together.
    pub(crate) together_peak: u64,
    /// The requests of a window on average; null if no time passed.
    pub(crate) together_mean: Option<f64>,
    /// The most keys that had a request within one window.
    pub(crate) keys_alive: u64,
    /// Requests that may be refused.
    pub(crate) allowed: u64,
    pub(crate) limit: Limit,
    /// What the exact log refuses at the proposed limit.
    pub(crate) refused: Refused,
    /// Limits around the proposed one, those by requests and by keys, and the percentiles of the peaks, in ascending
    /// order.
    pub(crate) effects: Vec<Effect>,
    /// The busiest key, if it is at least twice as busy as the next one.
    pub(crate) outlier: Option<Outlier>,
    /// The keys that the exact log refuses most at the proposed limit; empty with `--key none`.
    pub(crate) refused_most: Vec<TopKey>,
    /// The window counter at the proposed limit, by number of buckets.
    pub(crate) counter: Vec<BucketError>,
    /// The limit for all keys together; null without `--capacity`.
    pub(crate) together: Option<Together>,
    pub(crate) choice: Choice,
    pub(crate) snippet: Snippet,
}

/// Over the keys, each key's busiest true window: the least number that so many of the keys do not pass.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Peaks {
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    /// p99.9.
    pub(crate) p999: u64,
    pub(crate) max: u64,
}

/// The smallest limit that keeps the share asked for.
#[derive(Serialize, Clone, Copy)]
pub(crate) struct Limit {
    /// The larger of the other two.
    pub(crate) proposed: u64,
    /// The smallest that refuses few enough requests.
    pub(crate) by_requests: u64,
    /// The smallest that few enough keys ever meet.
    pub(crate) by_keys: u64,
}

/// What a limit refuses.
#[derive(Serialize, Clone, Copy)]
pub(crate) struct Refused {
    pub(crate) requests: u64,
    /// Keys refused at least once.
    pub(crate) keys: u64,
}

/// A limit and what it refuses.
#[derive(Serialize)]
pub(crate) struct Effect {
    pub(crate) limit: u64,
    #[serde(flatten)]
    pub(crate) refused: Refused,
}

/// A key much busier than all others.
#[derive(Serialize)]
pub(crate) struct Outlier {
    pub(crate) key: String,
    pub(crate) peak: u64,
    /// The next key's.
    pub(crate) next: u64,
}

/// The window counter with so many buckets.
#[derive(Serialize)]
pub(crate) struct BucketError {
    pub(crate) buckets: u64,
    /// Least and most over the places of the bucket edges.
    pub(crate) refused: [u64; 2],
    pub(crate) bytes_per_key: u64,
}

/// A limit for all keys together, from the capacity.
#[derive(Serialize)]
pub(crate) struct Together {
    pub(crate) limit: u64,
    pub(crate) refused_requests: u64,
}

/// What to take for the proposed limit.
#[derive(Serialize)]
pub(crate) struct Choice {
    /// `log` or `window`.
    pub(crate) algorithm: &'static str,
    /// The window's only.
    pub(crate) buckets: Option<u64>,
    pub(crate) bytes_per_key: u64,
    /// For the most keys alive at once.
    pub(crate) bytes: u64,
    pub(crate) why: String,
}

/// The proposed limit, ready to use.
#[derive(Serialize)]
pub(crate) struct Snippet {
    pub(crate) rust: String,
    pub(crate) c: String,
    pub(crate) toml: String,
}

/// What the capacity leaves for a window.
pub(super) struct Capacity {
    pub(super) limit: u64,
}

// === impl Peaks ===

impl Peaks {
    /// The percentiles of peaks in ascending order, by nearest rank; all 0 without any.
    pub(super) fn of(peaks: &[u32]) -> Self {
        let at = |per_mille: usize| {
            let rank = (peaks.len() * per_mille).div_ceil(1_000);
            rank.checked_sub(1).map_or(0, |place| u64::from(peaks[place]))
        };
        Self { p50: at(500), p90: at(900), p99: at(990), p999: at(999), max: at(1_000) }
    }
}

// === impl Capacity ===

impl Capacity {
    /// What fits into a window of this length, less the headroom, rounded down.
    pub(super) fn new(capacity: args::Capacity, headroom: Share, window: u64) -> Self {
        let [all, per, whole, used] =
            [capacity.count, capacity.per_ns, Share::WHOLE, Share::WHOLE - headroom.parts()].map(u128::from);
        // Rounded down once, at the end: what the first division leaves goes into the second. More than 64 bits hold
        // is no limit.
        let (fits, left) = (all * u128::from(window) / per, all * u128::from(window) % per);
        let fits = fits.min(u128::from(u64::MAX)) * used;
        let limit = fits / whole + (fits % whole * per + left * used) / (per * whole);
        Self { limit: u64::try_from(limit).unwrap_or(u64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{parse_rate, parse_share};

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let all = |p50, p90, p99, p999, max| Peaks { p50, p90, p99, p999, max };
        assert_eq!(Peaks::of(&[]), all(0, 0, 0, 0, 0));
        assert_eq!(Peaks::of(&[7]), all(7, 7, 7, 7, 7));
        let peaks: Vec<u32> = (1..=1_000).collect();
        assert_eq!(Peaks::of(&peaks), all(500, 900, 990, 999, 1_000));
        assert_eq!(Peaks::of(&peaks[..10]), all(5, 9, 10, 10, 10));
    }

    #[test]
    fn headroom_is_kept_free() {
        const SECOND: u64 = 1_000_000_000;
        let limit = |rate, headroom, window| {
            let (rate, headroom) = (parse_rate(rate).unwrap(), parse_share(headroom).unwrap());
            Capacity::new(rate, headroom, window).limit
        };
        assert_eq!(limit("1200/s", "25%", SECOND), 900);
        assert_eq!(limit("1200/s", "0%", 10 * SECOND), 12_000);
        assert_eq!(limit("100/m", "0%", SECOND), 1);
        assert_eq!(limit("1200/s", "100%", SECOND), 0);
        // 1.5 a window, of which three quarters are 1.125: a whole request, not three quarters of one.
        assert_eq!(limit("3/2s", "25%", SECOND), 1);
        assert_eq!(limit("18446744073709551615/s", "0%", 60 * SECOND), u64::MAX);
    }
}
