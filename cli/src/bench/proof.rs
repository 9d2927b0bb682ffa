//! The proof that no window went over: what threads were given while they asked as fast as they could, counted.
//!
//! # What
//! The time recorded for an admission lies between the caller's and the one that the answer tells: the answer speaks
//! of an instant after the decision, when a rival may have been admitted at a later time. Only what surely lies within
//! a window is counted, so the peak is never told too high: one above the bound is a fault of the limiter.

use std::{sync::Barrier, thread, time::Duration};

use serde::Serialize;
use tollgate::{Clock, Nanos, Precise};

use super::{Error, build};
use crate::lineup::{Limiter, Name};

/// The limiter that is asked.
const LIMIT: u64 = 1_000;
const WINDOW: Duration = Duration::from_millis(10);

/// What a limiter admitted, counted.
#[derive(Serialize)]
pub(crate) struct Proof {
    pub(crate) algorithm: &'static str,
    pub(crate) threads: usize,
    pub(crate) admitted: u64,
    /// The most admissions that surely lie within one true window, by the times that the limiter recorded.
    pub(crate) peak: u64,
    /// What the algorithm promises.
    pub(crate) bound: u64,
}

/// Asks from so many threads for so long, then counts.
///
/// # Errors
/// [`Error::Over`] if some window holds more than the algorithm promises; [`Error::Unfit`].
pub(crate) fn prove(name: Name, threads: usize, time: Duration) -> Result<Proof, Error> {
    let limiter = build(name, LIMIT, WINDOW)?;
    let (from, to) = record(&limiter, threads, time).into_iter().unzip();
    let (admitted, peak) = fullest(from, to, Nanos::from(WINDOW));
    let bound = bound(name);
    if peak > bound {
        return Err(Error::Over { name, peak, bound });
    }
    Ok(Proof { algorithm: name.as_str(), threads, admitted, peak, bound })
}

/// Between which times the limiter recorded each admission, thread by thread.
fn record(limiter: &Limiter, threads: usize, time: Duration) -> Vec<(Nanos, Nanos)> {
    let (clock, gate) = (Precise::new(), Barrier::new(threads));
    let work = || {
        gate.wait();
        let end = clock.now() + Nanos::from(time);
        let mut times = Vec::new();
        loop {
            let now = clock.now();
            if now >= end {
                return times;
            }
            times.extend(limiter.admitted_at(now));
        }
    };
    thread::scope(|scope| {
        let hands: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        hands.into_iter().flat_map(|hand| hand.join().expect("nothing in there panics")).collect()
    })
}

/// How many admissions there were, and the most that surely lie within one window `(t - window, t]`: those recorded at
/// `t` at the latest, less all that may have been recorded before it.
fn fullest(mut from: Vec<Nanos>, mut to: Vec<Nanos>, window: Nanos) -> (u64, u64) {
    from.sort_unstable();
    to.sort_unstable();
    let (mut most, mut before) = (0, 0);
    for (last, &at) in to.iter().enumerate() {
        while before <= last && from[before] + window <= at {
            before += 1;
        }
        most = most.max(last + 1 - before);
    }
    (to.len() as u64, most as u64)
}

/// What the algorithm promises.
fn bound(name: Name) -> u64 {
    match name {
        Name::Log | Name::Window | Name::Compact | Name::Wheel | Name::Paced => LIMIT,
        // Every hundredth of the limit is remembered; fewer than that many are not.
        Name::Sampled => LIMIT + LIMIT / 100 - 1,
        // Around an edge; or the burst and what comes back meanwhile.
        Name::Fixed | Name::TwoWindow | Name::Token | Name::Leaky => 2 * LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_window_is_half_open_and_never_told_too_high() {
        let fullest = |list: &[(u64, u64)]| {
            let times = list.iter().map(|&(a, b)| (Nanos::from_nanos(a), Nanos::from_nanos(b)));
            let (from, to) = times.unzip();
            fullest(from, to, Nanos::from_nanos(10)).1
        };
        assert_eq!([fullest(&[]), fullest(&[(5, 5)]), fullest(&[(5, 5), (15, 15)])], [0, 1, 1]);
        assert_eq!(fullest(&[(14, 14), (5, 5), (15, 15), (5, 5)]), 3);
        // The second one may have been recorded at 5, and have left the window that ends at 15.
        assert_eq!(fullest(&[(15, 15), (5, 6), (15, 15)]), 2);
        // Nobody knows the first one's time, so it counts as gone and never as there.
        assert_eq!(fullest(&[(0, 100), (50, 50), (50, 50)]), 1);
    }

    #[test]
    fn no_algorithm_goes_over_its_bound() {
        for name in Name::ALL {
            let proof = prove(name, 2, Duration::from_millis(30)).unwrap();
            assert!(proof.admitted > 0 && (1..=proof.bound).contains(&proof.peak), "{name}: {}", proof.peak);
        }
    }
}
