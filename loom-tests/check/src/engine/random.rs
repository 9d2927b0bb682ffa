//! Under shuttle: random schedules, by the algorithm PCT with several depths and by chance with a sleeper, in turn.

use shuttle::{
    Config, FailurePersistence, Runner,
    scheduler::{PctScheduler, Schedule, Scheduler, Task, TaskId},
};

/// Bytes of a thread's stack: oracles are asked elsewhere.
const STACK: usize = 1 << 18;

/// The schedules by PCT: switches that priorities do not ask for, plus one.
const DEPTHS: std::ops::RangeInclusive<usize> = 2..=5;

/// Schedulers that take turns, until `enough`.
struct Turns<F> {
    schedulers: Vec<Box<dyn Scheduler + Send>>,
    turn: usize,
    enough: F,
}

/// Switches by chance, at one in so many accesses. A thread, or none, sleeps from some switch on until all others are
/// done or wait: late by as much as there is.
struct Sleepy {
    noise: u64,
    one_in: u64,
    sleeper: Option<usize>,
    asleep: bool,
}

/// Runs `execute` under one schedule after the other, until `enough`.
pub(super) fn explore(
    seed: u64,
    enough: impl FnMut() -> bool + Send + 'static,
    execute: impl Fn() + Send + Sync + 'static,
) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let pct = |depth| -> Box<dyn Scheduler + Send> {
        Box::new(PctScheduler::new_from_seed(seed.wrapping_add(depth as u64), depth, usize::MAX))
    };
    let sleepy = Sleepy { noise: seed, one_in: 1, sleeper: None, asleep: false };
    let mut schedulers: Vec<_> = DEPTHS.map(pct).collect();
    schedulers.push(Box::new(sleepy));
    Runner::new(Turns { schedulers, turn: 0, enough }, config).run(execute);
}

// === impl Turns ===

impl<F: FnMut() -> bool> Scheduler for Turns<F> {
    fn new_execution(&mut self) -> Option<Schedule> {
        if (self.enough)() {
            return None;
        }
        self.turn = (self.turn + 1) % self.schedulers.len();
        self.schedulers[self.turn].new_execution()
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, yielding: bool) -> Option<TaskId> {
        self.schedulers[self.turn].next_task(runnable, current, yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.schedulers[self.turn].next_u64()
    }
}

// === impl Sleepy ===

impl Sleepy {
    fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }
}

impl Scheduler for Sleepy {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.one_in = 1 << self.below(4);
        // The main thread is 0.
        self.sleeper = (self.below(2) == 0).then(|| 1 + self.below(crate::THREADS_MAX));
        self.asleep = false;
        Some(Schedule::new(self.noise))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, yielding: bool) -> Option<TaskId> {
        let here = current.filter(|id| runnable.iter().any(|task| task.id() == *id));
        if let Some(id) = here
            && !yielding
            && self.below(self.one_in as usize) > 0
        {
            return Some(id);
        }
        if current.is_some_and(|id| self.sleeper == Some(usize::from(id))) && self.below(2) == 0 {
            self.asleep = true;
        }
        let asleep = |id: TaskId| self.asleep && self.sleeper == Some(usize::from(id));
        let ids = || runnable.iter().map(|task| task.id());
        let awake: Vec<_> = ids().filter(|&id| !asleep(id)).collect();
        let others: Vec<_> = awake.iter().copied().filter(|&id| Some(id) != current).collect();
        let from = [others, awake, ids().collect()].into_iter().find(|list| !list.is_empty())?;
        let next = from[self.below(from.len())];
        if self.sleeper == Some(usize::from(next)) && self.asleep {
            (self.sleeper, self.asleep) = (None, false);
        }
        Some(next)
    }

    /// SplitMix64.
    fn next_u64(&mut self) -> u64 {
        self.noise = self.noise.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.noise;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
