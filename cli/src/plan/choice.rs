//! Which algorithm to take for a limit, and with how many buckets.

use tollgate::Nanos;

use super::figures::{BucketError, Choice};
use crate::text;

/// The numbers of buckets tried.
const LADDER: [u64; 8] = [5, 10, 20, 50, 60, 100, 200, 500];

/// So much memory in all is nothing to save: the exact log is taken.
const LITTLE: u64 = 16 << 20;

/// The numbers of buckets that divide the window.
pub(super) fn ladder(window: u64) -> Vec<u64> {
    LADDER.into_iter().filter(|&buckets| window.is_multiple_of(buckets)).collect()
}

/// As far back as any of these counters looks: a bucket more than the window.
pub(super) fn widest(window: u64) -> u64 {
    let fewest = ladder(window).first().copied();
    fewest.map_or(window, |buckets| window.saturating_add(window / buckets))
}

/// The usual number of buckets for a window.
pub(super) fn preset(window: u64) -> u64 {
    match Nanos::from_nanos(window) {
        window if window < Nanos::from_secs(5) => 10,
        window if window < Nanos::from_secs(30) => 50,
        _ => 60,
    }
}

/// What to take, when so many requests may be refused and so many keys are alive at once.
pub(super) fn choose(
    window: u64,
    allowed: u64,
    log_bytes: u64,
    counter: &[BucketError],
    alive: u64,
) -> Choice {
    let preset = preset(window);
    let log = |why| Choice {
        algorithm: "log",
        buckets: None,
        bytes_per_key: log_bytes,
        bytes: log_bytes.saturating_mul(alive),
        why,
    };
    let memory = text::bytes(log_bytes.saturating_mul(alive));
    let kept = counter.iter().find(|row| row.buckets >= preset && row.refused[1] <= allowed);
    let Some(row) = kept else {
        let tried = match counter.iter().rfind(|row| row.buckets >= preset) {
            Some(row) => format!(
                "with {} buckets the counter still refuses up to {}, and {} may be",
                row.buckets,
                text::count(row.refused[1], "request"),
                text::grouped(allowed)
            ),
            None => format!(
                "the counter takes no such limit with {preset} or more buckets in {}",
                text::span(window)
            ),
        };
        return log(format!("exact, {memory} in all; {tried}"));
    };
    let saved = format!("the counter would take {}", text::bytes(row.bytes_per_key.saturating_mul(alive)));
    if log_bytes <= row.bytes_per_key {
        return log(format!("exact, and {memory} in all is no more than the counter's; {saved}"));
    }
    if log_bytes.saturating_mul(alive) <= LITTLE {
        return log(format!("exact, and {memory} in all is little; {saved}"));
    }
    let with = match row.buckets {
        buckets if buckets == preset => format!("the usual {buckets} buckets"),
        buckets => format!("{buckets} buckets ({preset}, the usual number, refuse too much)"),
    };
    Choice {
        algorithm: "window",
        buckets: Some(row.buckets),
        bytes_per_key: row.bytes_per_key,
        bytes: row.bytes_per_key.saturating_mul(alive),
        why: format!(
            "never over; with {with} it refuses at most {} wherever its edges lie; the exact log would take {memory}",
            text::count(row.refused[1], "request")
        ),
    }
}

/// Buckets for one limit for all keys together; `None`: the exact log, unless it alone takes much memory.
pub(super) fn buckets_for_all(limit: u64, window: u64) -> Option<u64> {
    let much = limit.saturating_mul(size_of::<u64>() as u64) > LITTLE;
    let preset = preset(window);
    if much { ladder(window).into_iter().find(|&buckets| buckets >= preset) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn rows(worst: [u64; 3]) -> Vec<BucketError> {
        let rows = [5, 10, 20].into_iter().zip(worst);
        rows.map(|(buckets, worst)| BucketError {
            buckets,
            refused: [0, worst],
            bytes_per_key: 100 * buckets,
        })
        .collect()
    }

    fn chosen(worst: [u64; 3], log_bytes: u64, alive: u64) -> (&'static str, Option<u64>, u64) {
        let choice = choose(SECOND, 10, log_bytes, &rows(worst), alive);
        (choice.algorithm, choice.buckets, choice.bytes)
    }

    #[test]
    fn usual_numbers_of_buckets() {
        let presets = [1, 10, 60, 3_600].map(|seconds| preset(seconds * SECOND));
        assert_eq!(presets, [10, 50, 60, 60]);
        assert_eq!(ladder(SECOND), [5, 10, 20, 50, 100, 200, 500]);
        assert_eq!(ladder(60 * SECOND), LADDER);
        assert_eq!(ladder(7), [0; 0]);
        assert_eq!(ladder(20), [5, 10, 20]);
        assert_eq!([7, 20, 60 * SECOND].map(widest), [7, 24, 72 * SECOND]);
    }

    #[test]
    fn the_counter_starts_from_the_usual_number_and_only_goes_up() {
        const MUCH: u64 = 1 << 30;
        assert_eq!(chosen([0, 10, 0], MUCH, 1), ("window", Some(10), 1_000));
        assert_eq!(chosen([0, 11, 10], MUCH, 3), ("window", Some(20), 6_000));
        assert_eq!(chosen([0, 11, 11], MUCH, 2), ("log", None, 2 * MUCH));
    }

    #[test]
    fn the_log_is_taken_where_it_costs_little() {
        assert_eq!(chosen([0; 3], 1_000, 1 << 40), ("log", None, 1_000 << 40));
        assert_eq!(chosen([0; 3], 1 << 14, 1 << 10), ("log", None, 1 << 24));
        assert_eq!(chosen([0; 3], 1 << 14, (1 << 10) + 1).0, "window");
        let none = choose(7, 10, 8, &[], 1);
        assert_eq!(none.algorithm, "log");
        assert_eq!(
            none.why,
            "exact, 8 B in all; the counter takes no such limit with 10 or more buckets in 7ns"
        );
        assert_eq!([1 << 21, (1 << 21) + 1].map(|limit| buckets_for_all(limit, SECOND)), [None, Some(10)]);
        assert_eq!(buckets_for_all(u64::MAX, 7), None);
    }
}
