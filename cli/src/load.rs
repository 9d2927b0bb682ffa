//! What every limit at once would do to the traffic: one pass, exact, whatever the limit.
//!
//! # What
//! A log of `L` permits per window is a counter with `L` places: an admission takes a place for one window, and who
//! finds none free is refused. Let there be any number of places, in a row, and let each request take the first that
//! is free. Then the first `L` of them see exactly what a log of `L` sees: whoever finds one of them free takes it,
//! and whoever finds none goes past and comes back to none of them. So **the place that a request takes is the
//! smallest limit that admits it**, and counting places tells the refusals of every limit. The highest place
//! ever taken by a key is its busiest window.
//!
//! # State
//! One queue of everything within the window, for all keys (times never decrease); for each key that has something
//! in it, the places that are free below its highest. A key with nothing in it costs its peak alone.
//!
//! # Invariants
//! | id | always                                                        | kept by       | checked by |
//! |----|---------------------------------------------------------------|---------------|------------|
//! | I1 | `recent` holds every request in `(now - window, now]`, and no other | `leave`  | property against logs |
//! | I2 | a hall's free places and those taken in `recent` are `0..high`  | `enter`, `leave` | property against logs |

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// The hall of a key that has nothing within the window.
const NOWHERE: u32 = u32::MAX;

/// The load that some traffic puts on a window, key by key.
pub(crate) struct Load {
    window: u64,
    /// What lies within the window, oldest first. (I1)
    recent: VecDeque<Taken>,
    /// By key: where its places are, or [`NOWHERE`].
    halls: Vec<u32>,
    /// By key: its busiest window.
    peaks: Vec<u32>,
    places: Vec<Hall>,
    /// Halls that no key has.
    free: Vec<u32>,
    /// By place: how many requests took it.
    takers: Vec<u64>,
    requests: u64,
    alive: usize,
    busiest_at: u64,
}

/// A request within the window.
struct Taken {
    at: u64,
    key: u32,
    place: u32,
}

/// The places of one key.
#[derive(Default)]
struct Hall {
    busy: u32,
    /// One past the highest place taken since the hall was empty.
    high: u32,
    /// Free places below `high`. (I2)
    free: BinaryHeap<Reverse<u32>>,
}

// === impl Load ===

impl Load {
    /// No load yet, on windows of this length.
    pub(crate) fn new(window: u64) -> Self {
        Self {
            window,
            recent: VecDeque::new(),
            halls: Vec::new(),
            peaks: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            takers: Vec::new(),
            requests: 0,
            alive: 0,
            busiest_at: 0,
        }
    }

    /// The next request, no older than the one before it. The key's requests in the window that it ends.
    ///
    /// # Cost
    /// Logarithmic in the key's requests within the window.
    pub(crate) fn take(&mut self, key: u32, at: u64) -> u64 {
        self.leave(at);
        let index = key as usize;
        if self.halls.len() <= index {
            self.halls.resize(index + 1, NOWHERE);
            self.peaks.resize(index + 1, 0);
        }
        if self.halls[index] == NOWHERE {
            self.halls[index] = self.free.pop().unwrap_or_else(|| {
                self.places.push(Hall::default());
                self.places.len() as u32 - 1
            });
            self.alive = self.alive.max(self.places.len() - self.free.len());
        }
        let hall = &mut self.places[self.halls[index] as usize];
        let place = hall.enter();
        let busy = hall.busy;
        self.recent.push_back(Taken { at, key, place });
        if self.takers.len() <= place as usize {
            // No other key was ever as busy.
            self.takers.push(0);
            self.busiest_at = at;
        }
        self.takers[place as usize] += 1;
        self.peaks[index] = self.peaks[index].max(busy);
        self.requests += 1;
        u64::from(busy)
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// By key: its busiest window.
    pub(crate) fn peaks(&self) -> &[u32] {
        &self.peaks
    }

    /// The busiest window of any key.
    pub(crate) fn peak(&self) -> u64 {
        self.takers.len() as u64
    }

    /// The end of the first window that is as busy as any.
    pub(crate) fn busiest_at(&self) -> u64 {
        self.busiest_at
    }

    /// The most keys that had a request within one window.
    pub(crate) fn alive(&self) -> u64 {
        self.alive as u64
    }

    /// Requests that a limit would refuse.
    pub(crate) fn refused(&self, limit: u64) -> u64 {
        let admitted = usize::try_from(limit).unwrap_or(usize::MAX).min(self.takers.len());
        self.takers[admitted..].iter().sum()
    }

    /// The smallest limit that refuses at most so many requests.
    pub(crate) fn smallest(&self, refused: u64) -> u64 {
        let mut left = self.requests;
        let needed = self.takers.iter().take_while(|&&takers| {
            let more = left > refused;
            left -= if more { takers } else { 0 };
            more
        });
        needed.count() as u64
    }

    /// Lets go what is a window old. (I1)
    fn leave(&mut self, now: u64) {
        while let Some(taken) = self.recent.pop_front_if(|taken| taken.at.saturating_add(self.window) <= now)
        {
            let hall_of = &mut self.halls[taken.key as usize];
            let hall = &mut self.places[*hall_of as usize];
            if hall.leave(taken.place) {
                self.free.push(*hall_of);
                *hall_of = NOWHERE;
            }
        }
    }
}

// === impl Hall ===

impl Hall {
    /// Takes the first free place. (I2)
    fn enter(&mut self) -> u32 {
        self.busy += 1;
        match self.free.pop() {
            Some(Reverse(place)) => place,
            None => {
                self.high += 1;
                self.high - 1
            }
        }
    }

    /// Gives a place back; whether the hall is empty now. (I2)
    fn leave(&mut self, place: u32) -> bool {
        self.busy -= 1;
        if self.busy == 0 {
            self.high = 0;
            self.free.clear();
            return true;
        }
        self.free.push(Reverse(place));
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tollgate::{Algorithm, Log, Nanos};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// One pass tells what a log of each limit tells, request by request summed up, and the busiest windows.
        #[test]
        fn one_pass_equals_a_log_for_every_limit(
            window in 1_u64..40,
            steps in prop::collection::vec((0_u64..12, 0_u32..4), 0..300),
        ) {
            let mut now = 0;
            let requests: Vec<(u32, u64)> = steps
                .into_iter()
                // Often no time at all passes.
                .map(|(step, key)| { now += step.saturating_sub(6); (key, now) })
                .collect();
            let mut load = Load::new(window);
            for (place, &(key, at)) in requests.iter().enumerate() {
                let within = |&&(k, t): &&(u32, u64)| k == key && t + window > at;
                prop_assert_eq!(load.take(key, at), requests[..=place].iter().filter(within).count() as u64);
            }
            let mut smallest = None;
            for limit in (0..=load.peak() + 1).rev() {
                let logs: Vec<Log> = (0..4)
                    .map(|_| Log::builder(limit, Duration::from_nanos(window)).build().unwrap())
                    .collect();
                let refused = requests
                    .iter()
                    .filter(|&&(key, at)| !logs[key as usize].try_acquire_at(1, Nanos::from_nanos(at)))
                    .count() as u64;
                prop_assert_eq!(load.refused(limit), refused, "limit {}", limit);
                if refused <= 10 {
                    smallest = Some(limit);
                }
            }
            prop_assert_eq!(Some(load.smallest(10)), smallest);
            let busiest = |key| {
                let count = |&(k, at): &(u32, u64)| {
                    let within = |&&(o, t): &&(u32, u64)| o == k && t <= at && t + window > at;
                    requests.iter().filter(within).count() as u32
                };
                requests.iter().filter(|(k, _)| *k == key).map(count).max().unwrap_or(0)
            };
            for (key, &peak) in load.peaks().iter().enumerate() {
                prop_assert_eq!(peak, busiest(key as u32));
            }
            prop_assert_eq!(load.peak(), u64::from(load.peaks().iter().copied().max().unwrap_or(0)));
        }

        #[test]
        fn keys_alive_are_those_within_the_window(
            window in 1_u64..20, steps in prop::collection::vec((0_u64..9, 0_u32..30), 0..200),
        ) {
            let (mut load, mut now, mut most) = (Load::new(window), 0, 0);
            let mut seen: Vec<(u32, u64)> = Vec::new();
            for (step, key) in steps {
                now += step;
                load.take(key, now);
                seen.push((key, now));
                let mut keys: Vec<u32> = seen.iter().filter(|(_, at)| at + window > now).map(|(k, _)| *k).collect();
                keys.sort_unstable();
                keys.dedup();
                most = most.max(keys.len() as u64);
            }
            prop_assert_eq!(load.alive(), most);
        }
    }

    #[test]
    fn nothing_needs_no_limit() {
        let load = Load::new(1);
        assert_eq!(
            (load.requests(), load.peak(), load.alive(), load.refused(0), load.smallest(0)),
            (0, 0, 0, 0, 0)
        );
    }

    /// Keys that are gone take no memory but their peak's.
    #[test]
    fn memory_is_what_is_alive() {
        let mut load = Load::new(10);
        for i in 0..100_000 {
            load.take(i, u64::from(i) * 5);
        }
        assert_eq!((load.places.len(), load.alive(), load.recent.len()), (2, 2, 2));
        assert_eq!(load.takers, [100_000]);
    }
}
