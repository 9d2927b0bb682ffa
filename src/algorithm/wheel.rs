//! A hierarchical timing wheel: every admission is a timer, and its permits are taken back when it fires.
//!
//! # What
//! The textbook that cleans up: what the look-back of the log needs nothing for, done by hands that turn. An
//! admission at `a` is due at the first fine slot that begins at or after `a + window`; until then its permits
//! are charged. So it never admits more than `limit` in any window of recorded times, and a permit comes back
//! less than one *fine* slot late: it is exact to the fine slot, though a minute of 60 x 1 s over 1,000 x 1 ms
//! has 1,060 slots only. What makes that true is a timer for each millisecond in use, which has to be kept
//! apart until its second comes: a wheel of counts alone would be exact to the *coarse* slot only.
//!
//! # State
//! | field    | meaning                                                                                  |
//! |----------|------------------------------------------------------------------------------------------|
//! | `newest` | the newest recorded time in nanoseconds                                                  |
//! | `turn`   | whole turns of the fine wheel before `newest`                                            |
//! | `place`  | the fine slot of this turn that `newest` lies in                                         |
//! | `used`   | permits charged: all in `fine` and in the timers                                         |
//! | `fine`   | permits due at the start of each slot of this turn                                       |
//! | `coarse` | for each later turn, its timers: the last one of a ring of them                          |
//! | `timers` | permits, fine slot and successor of each; one for all permits due at once; spares linked |
//!
//! # Invariants
//! | id | always                                                            | kept by                         |
//! |----|-------------------------------------------------------------------|---------------------------------|
//! | I1 | the slots of `fine` up to `place`, and the coarse slot of `turn`, are empty | `State::turn_to`       |
//! | I2 | timers of one turn stand in the order they are due, one per fine slot | time judged never goes back |
//! | I3 | timers are due at most one round of `coarse` ahead, so no two turns share a slot | geometry at least the window, one coarse slot more |
//! | I4 | timers in use: at most one per fine slot in the window plus one, and per permit | I2, `WheelBuilder::build` |
//! | I5 | a refusal changes nothing: the wheel turns for admissions only    | early return                    |
//!
//! # Linearization points
//! L1: every call takes effect while it holds the lock.
//!
//! # Memory order
//! None of its own: see `sync/lock.rs`.
//!
//! # Progress
//! Blocking: under a lock.

use alloc::vec::Vec;
use core::{iter, time::Duration};

use super::{algorithm, ring::reserve};
use crate::{
    ConfigError, Nanos, Rule,
    decision::{History, Limits, Look},
    sync::{Guard, Lock},
    time::decimal_step,
};

/// The most slots of a level. Two levels of these still number their timers in 32 bits.
const SLOTS_MAX: u32 = 1 << 15;

/// A hierarchical timing wheel of two levels, the textbook form that takes permits back one by one. Takes a lock.
///
/// Never admits more than `limit` permits in any window of recorded times; a permit comes back less than one
/// fine slot after it left the window. [`retry_after`](crate::Denied::retry_after) counts to that, so it stays
/// below the window plus one fine slot. A time older than the newest recorded one is judged at the newest one.
///
/// It is here to be compared with: [`Compact`](crate::Compact) is exact to as fine a step, smaller for limits up
/// to a few thousand, and its calls cost the same after any gap.
///
/// Its limit does not change while it runs: [`Live`](crate::Live) lists those that do.
///
/// # Cost
/// One lock. An admission soon after the last takes a few steps; the worst, after a long gap, turns both wheels
/// all the way: all slots and all timers, for that one call. A refusal at a time past the newest recorded walks
/// the slots between, each time anew, as it must not turn the wheel. `check` and `peek` walk as far as their
/// answer is away. Memory: 8 bytes a fine slot, 4 a coarse slot, and 16 a timer, of which there are as many as
/// permits or fine slots in the window, whichever are fewer.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Nanos, Wheel};
///
/// // A minute: 60 x 1 s over 1,000 x 1 ms, as by default.
/// let wheel = Wheel::builder(2, Duration::from_secs(60)).geometry(60, 1_000, Duration::from_millis(1)).build()?;
/// assert!(wheel.try_acquire_at(2, Nanos::from_micros(1)));
/// // Free again at the first millisecond after 60.000001 s.
/// assert!(!wheel.try_acquire_at(1, Nanos::from_secs(60)));
/// assert!(wheel.try_acquire_at(1, Nanos::from_millis(60_001)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Wheel {
    rule: Rule,
    /// Width of a fine slot in nanoseconds.
    width: u64,
    max_cost: u64,
    ceiling: u64,
    state: Lock<State>,
}

/// Configures a [`Wheel`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct WheelBuilder {
    rule: Rule,
    coarse: u32,
    fine: u32,
    width: Option<Nanos>,
    max_cost: u64,
}

struct State {
    newest: u64,
    turn: u64,
    place: usize,
    used: u64,
    fine: Vec<u64>,
    /// Numbers of timers count from 1; 0 is none.
    coarse: Vec<u32>,
    timers: Vec<Timer>,
    spare: u32,
}

#[derive(Clone, Copy)]
struct Timer {
    permits: u64,
    place: u32,
    next: u32,
}

pub(crate) struct WheelLook<'a> {
    wheel: &'a Wheel,
    state: Guard<'a, State>,
    at: u64,
}

algorithm!(Wheel);

// The latest time, plus the longest window, plus a slot (which is at most as long as a window).
const _: () = assert!(Nanos::MAX.as_nanos().checked_mul(3).is_some());

// === impl Wheel ===

impl Wheel {
    /// Configures a wheel that admits `limit` permits in any `window`.
    pub fn builder(limit: u64, window: Duration) -> WheelBuilder {
        let rule = Rule::new(limit, window);
        WheelBuilder { rule, coarse: 60, fine: 1_000, width: None, max_cost: u64::MAX }
    }

    /// The width of a fine slot: how late a permit may come back.
    pub fn slot(&self) -> Nanos {
        Nanos::from_nanos(self.width)
    }

    fn bytes(&self) -> usize {
        let state = self.state.lock();
        size_of::<Lock<State>>()
            + size_of_val(&state.fine[..])
            + size_of_val(&state.coarse[..])
            + state.timers.capacity() * size_of::<Timer>()
    }

    fn clear(&mut self) {
        let state = self.state.get_mut();
        (state.newest, state.turn, state.place, state.used, state.spare) = (0, 0, 0, 0, 0);
        state.fine.fill(0);
        state.coarse.fill(0);
        state.timers.clear();
    }
}

impl Limits for Wheel {
    fn rules(&self) -> &[Rule] {
        core::slice::from_ref(&self.rule)
    }

    fn max_cost(&self) -> u64 {
        self.max_cost
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

impl History for Wheel {
    type Limits = Self;
    type Look<'a> = WheelLook<'a>;

    fn limits(&self) -> &Self {
        self
    }

    fn take(&self, cost: u64, now: Nanos) -> bool {
        let mut state = self.state.lock(); // L1
        let at = state.newest.max(now.as_nanos());
        let (tick, room) = (at / self.width, self.rule.limit - cost);
        if state.used > room && state.used - state.due_by(tick) > room {
            return false; // I5
        }
        state.newest = at;
        state.turn_to(tick);
        state.charge(cost, (at + self.rule.window.as_nanos()).div_ceil(self.width));
        true
    }

    fn look(&self, now: Nanos) -> WheelLook<'_> {
        let state = self.state.lock(); // L1
        let at = state.newest.max(now.as_nanos());
        WheelLook { wheel: self, state, at }
    }
}

// === impl WheelBuilder ===

impl WheelBuilder {
    /// Sets the geometry: so many coarse slots, each as wide as all the fine slots, which are `width` wide.
    ///
    /// Up to 32,768 slots a level. Together the coarse slots must reach over the window. By default 60 over
    /// 1,000, with the narrowest decimal width (1 ns, 10 ns, 100 ns, 1 us, ...) that reaches: 1 ms for a minute.
    pub fn geometry(mut self, coarse: u32, fine: u32, width: Duration) -> Self {
        (self.coarse, self.fine, self.width) = (coarse, fine, Some(width.into()));
        self
    }

    /// Sets the largest cost of one call. By default the limit.
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// Builds the wheel.
    ///
    /// # Errors
    /// [`ConfigError::Buckets`] for a level without slots or with too many, [`ConfigError::Tick`] for a fine
    /// slot too narrow to reach over the window or wider than it, [`ConfigError::Window`],
    /// [`ConfigError::MaxCost`], [`ConfigError::Memory`].
    pub fn build(self) -> Result<Wheel, ConfigError> {
        self.rule.validate()?;
        for slots in [self.coarse, self.fine] {
            if slots == 0 || slots > SLOTS_MAX {
                return Err(ConfigError::Buckets { got: slots.into(), min: 1, max: SLOTS_MAX.into() });
            }
        }
        let (limit, window) = (self.rule.limit, self.rule.window);
        let narrowest = window.as_nanos().div_ceil(u64::from(self.coarse) * u64::from(self.fine));
        let width = self.width.unwrap_or(Nanos::from_nanos(decimal_step(narrowest)));
        if width < Nanos::from_nanos(narrowest) || width > window {
            return Err(ConfigError::Tick {
                got: width.into(),
                min: Duration::from_nanos(narrowest),
                max: window.into(),
            });
        }
        if self.max_cost == 0 {
            return Err(ConfigError::MaxCost { got: 0, min: 1 });
        }
        // I4: from the slot after a time to that in which the window after it ends.
        let timers = limit.min(window.as_nanos().div_ceil(width.as_nanos()) + 1);
        // I3: a window of the whole round that begins inside a slot ends one slot further on.
        let (coarse, fine) = (self.coarse + 1, self.fine);
        Ok(Wheel {
            rule: self.rule,
            width: width.as_nanos(),
            max_cost: self.max_cost,
            ceiling: limit.min(self.max_cost),
            state: Lock::new(State {
                newest: 0,
                turn: 0,
                place: 0,
                used: 0,
                fine: zeros(fine)?,
                coarse: zeros(coarse)?,
                timers: reserve(timers)?,
                spare: 0,
            }),
        })
    }
}

fn zeros<T: Clone + Default>(len: u32) -> Result<Vec<T>, ConfigError> {
    let mut list = reserve(len.into())?;
    list.resize(len as usize, T::default());
    Ok(list)
}

// === impl State ===

impl State {
    /// Turns the wheels to `tick` and takes back all permits due by then. At most one round of each wheel.
    fn turn_to(&mut self, tick: u64) {
        let (turn, place) = self.locate(tick);
        let passed = turn - self.turn;
        let from = if passed == 0 { self.place + 1 } else { 0 };
        if passed > 0 {
            self.used -= self.fine[self.place + 1..].iter().sum::<u64>();
            self.fine[self.place + 1..].fill(0);
        }
        for ahead in 1..=passed.min(self.coarse.len() as u64) {
            self.fire(self.turn + ahead, ahead == passed);
        }
        self.used -= self.fine[from..=place].iter().sum::<u64>();
        self.fine[from..=place].fill(0);
        (self.turn, self.place) = (turn, place);
    }

    /// Empties the coarse slot of `turn`: into the fine wheel if that is `now` its turn, else altogether.
    fn fire(&mut self, turn: u64, now: bool) {
        let slot = self.coarse_slot(turn);
        let last = core::mem::take(&mut self.coarse[slot]);
        let mut next = self.after(last);
        while let Some(number) = next {
            let timer = self.timers[number as usize - 1];
            next = (number != last).then_some(timer.next);
            if now {
                self.fine[timer.place as usize] = timer.permits;
            } else {
                self.used -= timer.permits;
            }
            self.timers[number as usize - 1].next = core::mem::replace(&mut self.spare, number);
        }
    }

    /// Charges `permits` until `due`, a tick after the one turned to and not before any other.
    fn charge(&mut self, permits: u64, due: u64) {
        self.used += permits;
        let (turn, place) = self.locate(due);
        if turn == self.turn {
            self.fine[place] += permits;
            return;
        }
        let slot = self.coarse_slot(turn);
        let last = self.coarse[slot];
        if last != 0 && self.timers[last as usize - 1].place == place as u32 {
            self.timers[last as usize - 1].permits += permits; // I2
            return;
        }
        let number = self.spare_timer();
        let first = self.after(last).unwrap_or(number);
        self.timers[number as usize - 1] = Timer { permits, place: place as u32, next: first };
        if last != 0 {
            self.timers[last as usize - 1].next = number;
        }
        self.coarse[slot] = number;
    }

    /// The number of a timer out of use; there is one (I4), and memory for it.
    fn spare_timer(&mut self) -> u32 {
        match self.spare {
            0 => {
                self.timers.push(Timer { permits: 0, place: 0, next: 0 });
                self.timers.len() as u32
            }
            number => {
                self.spare = self.timers[number as usize - 1].next;
                number
            }
        }
    }

    /// Permits due by `tick`.
    fn due_by(&self, tick: u64) -> u64 {
        self.upcoming().take_while(|&(due, _)| due <= tick).map(|(_, permits)| permits).sum()
    }

    /// Every charge as (tick when due, permits), in order; empty slots of the fine wheel included.
    fn upcoming(&self) -> impl Iterator<Item = (u64, u64)> {
        let round = self.fine.len() as u64;
        let fine = (self.turn * round..).zip(self.fine.iter().copied()).skip(self.place + 1);
        let coarse = (1..=self.coarse.len() as u64).flat_map(move |ahead| {
            let turn = self.turn + ahead;
            let last = self.coarse[self.coarse_slot(turn)];
            iter::successors(self.after(last), move |&number| {
                (number != last).then(|| self.timers[number as usize - 1].next)
            })
            .map(move |number| {
                let timer = self.timers[number as usize - 1];
                (turn * round + u64::from(timer.place), timer.permits)
            })
        });
        fine.chain(coarse)
    }

    /// The first timer of the ring whose last one is given.
    fn after(&self, last: u32) -> Option<u32> {
        (last != 0).then(|| self.timers[last as usize - 1].next)
    }

    /// The turn of the fine wheel that `tick` lies in, and its place there.
    fn locate(&self, tick: u64) -> (u64, usize) {
        let round = self.fine.len() as u64;
        (tick / round, (tick % round) as usize)
    }

    fn coarse_slot(&self, turn: u64) -> usize {
        (turn % self.coarse.len() as u64) as usize
    }
}

// === impl WheelLook ===

impl Look for WheelLook<'_> {
    fn at(&self) -> Nanos {
        Nanos::from_nanos(self.at)
    }

    fn used(&self, _rule: usize) -> Option<u64> {
        Some(self.state.used - self.state.due_by(self.at / self.wheel.width))
    }

    fn wait(&self, _rule: usize, keep: u64) -> Option<Nanos> {
        let (mut left, mut tick) = (self.state.used, 0);
        for (due, permits) in self.state.upcoming() {
            if left <= keep {
                break;
            }
            (left, tick) = (left - permits, due);
        }
        Some(Nanos::from_nanos((tick * self.wheel.width).saturating_sub(self.at)))
    }
}
