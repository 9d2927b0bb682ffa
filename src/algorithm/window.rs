//! The sliding-window counter.
//!
//! # What
//! Time is cut into buckets, `buckets` to the shortest window. The counter keeps one running total of all
//! admissions and, in a ring, the total at the start of each bucket, so the use of a window is one subtraction:
//! no sum over buckets, whatever their number. Several rules are several look-backs into the same ring.
//!
//! # State
//! | word    | bits    | field   | meaning                                                     |
//! |---------|---------|---------|-------------------------------------------------------------|
//! | state   | upper   | total   | permits admitted so far, wrapping                            |
//! |         | one     | turning | the bucket was entered, nothing is admitted in it yet        |
//! |         | lower   | bucket  | the newest bucket                                            |
//! | slot    | upper   | total   | the total at the start of the bucket                         |
//! |         | lower   | bucket  | a bucket `b` that lies here: `b mod ring length`             |
//!
//! The split is that of [`Split`]: the bucket outlives the clock, the total must only hold the largest limit. The
//! total lies above, where it is added and subtracted in place and carries out of the word.
//!
//! To admit in a later bucket, the state first *turns*: it enters that bucket and stays as it is otherwise. Then
//! every start total passed over is known to all, since the total can not change before they are written: whoever
//! wants to admit writes them, and the admission ends the turn. So a slot is written once for each bucket, with
//! a value that nobody can write differently.
//!
//! # Invariants
//! | id | always                                                                      | kept by                 |
//! |----|-----------------------------------------------------------------------------|-------------------------|
//! | I1 | the bucket of the state never decreases, and each bucket is turned to once   | the maximum in `newest`  |
//! | I2 | unless turning, each bucket `b` with `state - reach <= b <= state` has its start total in its slot | `fill`, before the turn ends; for bucket 0, zeroed memory |
//! | I3 | while turning, a slot that holds an earlier bucket than its own lacks the present total | as I2, the turn before |
//! | I4 | the bucket of a slot only grows, so a late fill fails                        | one value for each bucket |
//! | I5 | no rule's `total - start` exceeds the largest limit; a state recurs only within its bucket, where the same start totals judge it | the judgement before L1, `with_rules`, `give_back` |
//! | I6 | a masked bucket is below the ring's length                                   | `build`                  |
//!
//! Totals are never compared: they wrap.
//!
//! # Linearization points
//! L1 admission, permits given back: the CAS of the state. L2 refusal: the load of the state that it was judged by; the start totals it
//! looked at were final by then. A turn moves time, to a bucket that a call still under way has carried: it
//! is then admitted there, or another is in its place, unless it dies.
//!
//! # Memory order
//! | id | site             | order   | pairs with | because                                                       |
//! |----|------------------|---------|------------|---------------------------------------------------------------|
//! | O1 | state load       | Acquire | O3         | the start totals written before the state moved are then seen  |
//! | O2 | slot load        | Acquire | O4         | whoever sees a later bucket than its own sees the state that led to it when it looks again |
//! | O3 | state CAS        | Release | O1         | publishes the start totals; the state was acquired before      |
//! | O4 | slot CAS         | Release | O2         | whoever sees the slot sees the state its writer saw            |
//!
//! # Progress
//! Lock-free: a caller starts over only when another turned or was admitted. A thread that dies while turning
//! leaves a turn that the next admission completes.

use core::{
    cmp::Ordering::{Equal, Greater, Less},
    hint::cold_path,
    mem::offset_of,
    num::NonZeroU64,
    time::Duration,
};

use crate::{
    ConfigError, Denied, Lapsed, Nanos, Parted, Permit, RULES_MAX, Rule, Sharded,
    algorithm::{
        algorithm,
        config::{On, Parts, WithRules},
        epoch::Split,
    },
    block::Owned,
    decision::{History, Limits, Look},
    live::{Settings, fetch_before, fetch_rules_and},
    rule::Rules,
    sync::{Acquire, Relaxed, Release, Retries, Word, word},
};

/// Buckets for each shortest window when the builder is not told.
const BUCKETS: u64 = 10;
/// The longest ring that is built without being asked for.
const RING_MAX: u64 = 1 << 16;

word! {
    /// `total | turning | bucket`: the state, and each slot, where `turning` is 0.
    Mark
}

/// How far the look-back of a rule reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coverage {
    /// `buckets + 1` buckets: never above the limit in any true window. A permit comes back at most one bucket
    /// late, so the sustained rate is `limit` per `window * (1 + 1 / buckets)`.
    #[default]
    Full,
    /// `buckets` buckets, the textbook form: no permit comes back late, but a true window may hold the
    /// admissions of one bucket more, which may be as many as the limit again.
    Textbook,
}

/// A sliding-window counter: at most `limit` permits per window, to the bucket.
///
/// Memory is 8 bytes for each bucket of the longest window (rounded up to a power of two), whatever the limit.
/// Any number of threads may call it at once; a refusal stores nothing, not even to turn the window, unless it had
/// found room first, turned, and then lost it to a rival.
///
/// # Accuracy
/// With [`Coverage::Full`] (the default) no window of the recorded times ever holds more than the limit; a
/// refusal may be up to one bucket too strict. With [`Coverage::Textbook`] no refusal is too strict; a window
/// may hold the admissions of one bucket more, at worst twice the limit. With buckets as wide as the clock's
/// tick and [`Coverage::Textbook`] the counter is an exact log of ticks. One bucket and the textbook coverage
/// are the fixed window.
///
/// The time of an older call is known to the bucket: it is judged at the start of the newest bucket. A call that
/// overlaps others may be judged in any bucket up to the newest that one of them carried.
///
/// # Largest limit
/// A word holds the bucket since the clock's zero and the running total, so the narrower the buckets, the smaller
/// the largest limit (with a phase, at some widths half of it):
///
/// | width  | largest limit |
/// |--------|---------------|
/// | 1 ns   | 1             |
/// | 1 us   | 1,023         |
/// | 1 ms   | 1,048,575     |
/// | 10 ms  | 16,777,215    |
/// | 100 ms | 134,217,727   |
/// | 1 s    | 1,073,741,823 |
/// | 1 min  | 68,719,476,735 |
/// | 1 h    | 4,398,046,511,103 |
///
/// # Cost
/// Admission: one CAS in the newest bucket; in a later one a second, and `min(g, reach)` words after a gap of `g` buckets.
/// Refusal: two loads for one rule, one more for each further rule.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Nanos, Window};
///
/// let counter = Window::builder(100, Duration::from_secs(1)).buckets(10).build()?;
/// assert!(counter.try_acquire_at(100, Nanos::from_millis(0)));
///
/// // The bucket of 0 to 99 ms has left once the window has passed all of it.
/// let denied = counter.check_at(1, Nanos::from_millis(1_000)).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Nanos::from_millis(100)));
/// assert!(counter.try_acquire_at(1, Nanos::from_millis(1_100)));
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[repr(C)]
pub struct Window {
    config: WindowConfig,
    block: Owned<Word<Mark>, Mark>,
    /// Resets so far: no permit outlives one.
    resets: u64,
}

/// The configuration of a [`Window`], without its state.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct WindowConfig {
    split: Split,
    /// Ring length less one; the length is a power of two above `reach`.
    mask: u64,
    /// What the first rule may hold as a word: its limit above its look-back.
    first_room: u64,
    /// The times before which the first rule's answer is the answer: all in range where there is one rule, else none.
    first_until: u64,
    /// Buckets of the longest window: how far back start totals are put.
    reach: u64,
    /// Buckets less that a look-back covers: 1 in the textbook form, else 0.
    short: u64,
    ceiling: u64,
    max_cost: u64,
    /// For each rule, how many buckets before the judged one its look-back lies.
    backs: [u64; RULES_MAX],
    rules: Rules,
}

// SAFETY: contract of `NoUninit`: words alone, in C's order, so no padding.
unsafe impl bytemuck::NoUninit for WindowConfig {}

/// A configuration on a state.
type OnWindow<'a> = On<'a, WindowConfig>;

/// Builds a [`Window`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct WindowBuilder {
    rules: Rules,
    buckets: u64,
    coverage: Coverage,
    phase: Nanos,
    max_cost: u64,
    ring_max: u64,
    window_max: Nanos,
}

/// One look: the state, and the bucket judged. It stays true, of the moment of the state, whatever comes after.
pub(crate) struct WindowLook<'a> {
    window: OnWindow<'a>,
    seen: Mark,
    bucket: u64,
    now: Nanos,
}

// === impl Window ===

impl Window {
    /// A counter of at most `limit` permits per `window`.
    pub fn builder(limit: u64, window: Duration) -> WindowBuilder {
        WindowBuilder {
            rules: Rules::one(Rule::new(limit, window)),
            buckets: BUCKETS,
            coverage: Coverage::default(),
            phase: Nanos::ZERO,
            max_cost: u64::MAX,
            ring_max: RING_MAX,
            window_max: Nanos::ZERO,
        }
    }

    /// Takes `cost` permits at `now`, all or nothing, which [`give_back`](Window::give_back) can give back.
    ///
    /// # Errors
    /// [`Denied`], which changed nothing.
    pub fn acquire_at(&self, cost: u64, now: Nanos) -> Result<Permit, Denied> {
        let on = self.on();
        Permit::take(&on, self.resets, cost, now, || on.take_in(cost, now))
    }

    /// Gives permits back, as if they had not been taken: as long as the counter is in the bucket in which it gave them.
    /// After that they are part of the totals of other buckets, which are final.
    ///
    /// # Errors
    /// [`Lapsed::Passed`], which changed nothing: somebody was admitted in a later bucket, or the counter was reset.
    ///
    /// # Cost
    /// One CAS.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Algorithm, Lapsed, Nanos, Window};
    ///
    /// let counter = Window::builder(10, Duration::from_secs(1)).buckets(10).build()?;
    /// let now = Nanos::from_millis(500);
    /// let permit = counter.acquire_at(4, now).unwrap();
    /// assert_eq!(counter.give_back(permit), Ok(()));
    /// assert_eq!(counter.usage_at(0, now), Some(0));
    ///
    /// let permit = counter.acquire_at(4, now).unwrap();
    /// assert!(counter.try_acquire_at(1, Nanos::from_millis(600)));
    /// assert_eq!(counter.give_back(permit), Err(Lapsed::Passed));
    /// # Ok::<(), tollgate::ConfigError>(())
    /// ```
    pub fn give_back(&self, permit: Permit) -> Result<(), Lapsed> {
        match permit.cost {
            0 => Ok(()),
            _ if permit.resets != self.resets => Err(Lapsed::Passed),
            _ => self.on().give_back(permit),
        }
    }

    /// Width of a bucket.
    pub fn width(&self) -> Nanos {
        Nanos::from_nanos(self.config.split.width().get())
    }

    #[inline(always)]
    fn on(&self) -> OnWindow<'_> {
        On { config: &self.config, state: self.block.at() }
    }

    fn bytes(&self) -> usize {
        self.config.bytes()
    }

    fn clear(&mut self) {
        self.block.clear();
        self.resets = self.resets.wrapping_add(1);
    }
}

algorithm!(Window in parts of WindowConfig);

// === impl WindowConfig ===

impl WindowConfig {
    /// The bucket of a state or a slot.
    #[inline]
    fn bucket(&self, mark: Mark) -> u64 {
        self.split.index(mark.0)
    }

    /// The state in a bucket of its own or later, not turning.
    #[inline]
    fn moved_to(&self, bucket: u64, seen: Mark) -> Mark {
        Mark((seen.0 & !self.split.flag()) - self.bucket(seen) + bucket)
    }

    #[inline]
    fn is_turning(&self, seen: Mark) -> bool {
        seen.0 & self.split.flag() != 0
    }

    /// The same with these rules, valid and multiples of the width, none above `limit_max`; without a glance, which
    /// takes for granted that no rule was ever wider than it is.
    fn with(&self, rules: Rules, limit_max: u64) -> Result<Self, ConfigError> {
        if rules.largest_limit() > limit_max {
            return Err(ConfigError::Limit { got: rules.largest_limit(), max: limit_max });
        }
        let mut backs = [0; RULES_MAX];
        for (back, rule) in backs.iter_mut().zip(rules.iter()) {
            *back = rule.window.as_nanos() / self.split.width() - self.short;
        }
        let first_room = self.split.pack(backs[0], rules.first().limit);
        let ceiling = rules.least_limit().min(self.max_cost);
        Ok(Self { first_room, first_until: 0, ceiling, backs, rules, ..*self })
    }
}

impl WithRules for WindowConfig {
    /// The windows must be multiples of the width within the ring. The limits must leave room in the total (I5): a rule
    /// that covers `m` of the `n` buckets that the ring can look back over admits at most `limit` in each `m`, hence, rules
    /// changing meanwhile, less than the total's range in all `n` if each limit is at most a share of `m / 2n` of it.
    fn with_rules(&self, rules: Rules) -> Result<Self, ConfigError> {
        rules.validate()?;
        let width = self.split.width();
        let mut limit_max = self.split.rest_max();
        for rule in rules.iter() {
            let (window, buckets) = (rule.window, rule.window.as_nanos() / width);
            if rule.window.as_nanos() % width != 0 {
                let width = Duration::from_nanos(width.get());
                return Err(ConfigError::Ragged { window: window.into(), width });
            }
            if buckets > self.reach {
                return Err(ConfigError::Buckets { got: buckets, min: 1, max: self.reach });
            }
            let (all, covered) = (self.reach + 1 - self.short, buckets + 1 - self.short);
            limit_max = limit_max.min(self.split.rest_max() / 2 / all.div_ceil(covered));
        }
        self.with(rules, limit_max)
    }
}

impl Settings for WindowConfig {
    #[inline(always)]
    fn in_use(mut fetch: impl FnMut(usize) -> u64) {
        fetch_before(offset_of!(Self, backs), &mut fetch);
        fetch_rules_and::<u64>(offset_of!(Self, rules), offset_of!(Self, backs), &mut fetch);
    }
}

impl Limits for WindowConfig {
    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn max_cost(&self) -> u64 {
        self.max_cost
    }

    fn ceiling(&self) -> u64 {
        self.ceiling
    }
}

impl Parts for WindowConfig {
    const NAME: [u8; 8] = *b"window\0\0";
    type Heads = Word<Mark>;
    type Slot = Mark;

    fn slots(&self) -> u64 {
        self.mask.saturating_add(1)
    }

    /// No bucket is later than that of the state, nor that than time can be; and each lies in its slot.
    fn accepts(window: OnWindow<'_>) -> bool {
        let last = window.split.index_of(Nanos::MAX);
        (0..=window.mask).all(|index| {
            let slot = window.slot(index).load(Acquire); // O2
            let newest = window.bucket(window.state.head().load(Acquire)); // O1
            let bucket = window.bucket(slot);
            let is_own =
                slot.0 == 0 || bucket > 0 && bucket & window.mask == index && !window.is_turning(slot);
            is_own && bucket <= newest && newest <= last
        })
    }
}

// === impl OnWindow ===

impl<'a> OnWindow<'a> {
    #[inline]
    fn slot(self, bucket: u64) -> &'a Word<Mark> {
        // SAFETY: I6: the mask is the ring's length less one.
        unsafe { self.state.slot(bucket & self.mask) }
    }

    /// Permits that count in `bucket` (at least the state's) for a rule with this look-back. `None`: the state has
    /// moved on.
    #[inline]
    fn used(self, seen: Mark, bucket: u64, back: u64) -> Option<u64> {
        let start = bucket.saturating_sub(back);
        if start > self.bucket(seen) {
            return Some(0); // Nothing was admitted since.
        }
        let slot = self.slot(start).load(Acquire); // O2
        match self.bucket(slot).cmp(&start) {
            Less => Some(0), // I3: passed over, and not yet filled.
            Equal => Some(self.split.rest(seen.0.wrapping_sub(slot.0))),
            Greater => None,
        }
    }

    /// Whether `cost` more permits keep every rule in `bucket`. `None`: the state has moved on.
    #[inline]
    fn fits(self, seen: Mark, bucket: u64, cost: u64) -> Option<bool> {
        for (rule, &back) in self.rules.iter().zip(&self.backs) {
            if self.used(seen, bucket, back)? > rule.limit - cost {
                return Some(false);
            }
        }
        Some(true)
    }

    /// One attempt; `None` if another caller got in between.
    #[inline]
    fn attempt(self, cost: u64, now: Nanos) -> Option<bool> {
        self.attempt_in(cost, now).map(|bucket| bucket.is_some())
    }

    /// Takes as [`History::take`] does, and tells in which bucket.
    fn take_in(self, cost: u64, now: Nanos) -> Option<u64> {
        let retries = Retries::new();
        loop {
            if let Some(bucket) = self.attempt_in(cost, now) {
                return bucket;
            }
            retries.again();
        }
    }

    /// Takes permits back that were taken in the newest bucket.
    fn give_back(self, permit: Permit) -> Result<(), Lapsed> {
        let Permit { cost, until: bucket, .. } = permit;
        let retries = Retries::new();
        loop {
            let seen = self.state.head().load(Acquire); // O1
            let start = self.slot(bucket).load(Acquire); // O2
            // No more than was taken since the bucket's start, so that the total never falls below it.
            let is_newest =
                self.bucket(seen) == bucket && self.bucket(start) == bucket && !self.is_turning(seen);
            if !is_newest || self.split.rest(seen.0.wrapping_sub(start.0)) < cost {
                return Err(Lapsed::Passed);
            }
            let next = Mark(seen.0.wrapping_sub(self.split.in_place(cost)));
            if self.state.head().compare_exchange(seen, next, Release, Relaxed).is_ok() {
                return Ok(()); // O3, L1
            }
            retries.again();
        }
    }

    /// One attempt: the bucket admitted in, if any. `None` if another caller got in between.
    #[inline]
    fn attempt_in(self, cost: u64, now: Nanos) -> Option<Option<u64>> {
        let state = self.state.head();
        let seen = state.load(Acquire); // O1, L2
        let bucket = self.split.newest(self.bucket(seen), now);
        if !self.fits(seen, bucket, cost)? {
            return Some(None);
        }
        let seen = self.settle(seen, bucket)?;
        let next = self.moved_to(bucket, seen).0.wrapping_add(self.split.in_place(cost));
        state.compare_exchange(seen, Mark(next), Release, Relaxed).ok()?; // O3, L1
        Some(Some(bucket))
    }

    #[inline(never)]
    fn take_slow(self, now: Nanos, cost: u64) -> bool {
        self.attempt(cost, now).unwrap_or_else(|| self.contend(now, cost))
    }

    /// Attempts, after one that another caller got into, until one is undisturbed.
    #[cold]
    #[inline(never)]
    fn contend(self, now: Nanos, cost: u64) -> bool {
        let retries = Retries::new();
        loop {
            retries.again();
            if let Some(admitted) = self.attempt(cost, now) {
                return admitted;
            }
        }
    }

    /// Makes the state ready to admit in `bucket` (at least its own) by its next CAS: there, with every start total
    /// in its slot. `None`: the state moved.
    #[inline]
    fn settle(self, mut seen: Mark, bucket: u64) -> Option<Mark> {
        let newest = self.bucket(seen);
        if self.is_turning(seen) {
            self.fill(seen, self.first_unfilled(newest));
        }
        if bucket > newest {
            let turning = Mark(self.moved_to(bucket, seen).0 | self.split.flag());
            self.state.head().compare_exchange(seen, turning, Release, Relaxed).ok()?; // O3
            self.fill(turning, newest + 1);
            seen = turning;
        }
        Some(seen)
    }

    /// The first bucket whose start total a turn to `newest` has yet to write.
    #[cold]
    fn first_unfilled(self, newest: u64) -> u64 {
        let reached = newest.saturating_sub(self.reach);
        let unfilled = |passed| self.bucket(self.slot(passed).load(Acquire)) < passed; // O2
        let mut first = newest + 1;
        while first > reached && first > 1 && unfilled(first - 1) {
            first -= 1;
        }
        first
    }

    /// Writes the start totals of a turn, from bucket `first` up: in ascending order, so that `first_unfilled` meets
    /// every gap.
    fn fill(self, turning: Mark, first: u64) {
        let newest = self.bucket(turning);
        for passed in first.max(newest.saturating_sub(self.reach))..=newest {
            let start = Mark(self.moved_to(newest, turning).0 - newest + passed);
            let slot = self.slot(passed);
            let old = slot.load(Acquire); // O2
            if self.bucket(old) < passed {
                // Beaten: somebody wrote this very value, or the state has moved on and the CAS of the state will fail.
                let _ = slot.compare_exchange(old, start, Release, Relaxed); // O4
            }
        }
    }
}

impl<'w> History for OnWindow<'w> {
    type Limits = WindowConfig;
    type Look<'a>
        = WindowLook<'w>
    where
        Self: 'a;

    fn limits(&self) -> &WindowConfig {
        self.config
    }

    /// The state's own bucket and the first rule: what most calls ask, by arithmetic on whole words. The order of
    /// the questions is that of their cost to a refusal.
    #[inline(always)]
    fn glance(&self, cost: u64, now: Nanos) -> Option<bool> {
        let state = self.state.head();
        let seen = state.load(Acquire); // O1, L2
        let bucket = self.split.index(seen.0);
        if !self.split.ends_after(bucket, now) {
            return None;
        }
        let room_since = |first, passed| {
            let start = self.slot(first).load(Acquire); // O2
            self.first_room.wrapping_add(start.0).wrapping_add(passed).wrapping_sub(seen.0)
        };
        let (first, is_before_all) = bucket.overflowing_sub(self.backs[0]);
        let room = if is_before_all {
            cold_path();
            room_since(0, first) // It looks back no further than to bucket 0: so many buckets less.
        } else {
            room_since(first, 0)
        };
        if room == 0 && cost > 0 {
            return Some(false); // The bucket looked for lies there, and leaves nothing.
        }
        if !self.split.is_whole(room) {
            return None; // Another bucket lies there, or the state is turning.
        }
        let cost_in_place = self.split.in_place(cost); // One too large for the word is above the ceiling, too.
        if cost > 1 && room < cost_in_place {
            return Some(false);
        }
        // One compare for both ends: 0 wraps to the top.
        if now.as_nanos() >= self.first_until || cost != 1 && cost.wrapping_sub(1) >= self.ceiling {
            return None;
        }
        let next = Mark(seen.0.wrapping_add(cost_in_place));
        match state.compare_exchange(seen, next, Release, Relaxed) {
            Ok(_) => Some(true), // O3, L1
            Err(_) => Some(self.contend(now, cost)),
        }
    }

    #[inline]
    fn take(&self, cost: u64, now: Nanos) -> bool {
        self.take_slow(now, cost)
    }

    fn look(&self, now: Nanos) -> WindowLook<'w> {
        let seen = self.state.head().load(Acquire); // O1, L2
        let bucket = self.split.newest(self.bucket(seen), now);
        WindowLook { window: *self, seen, bucket, now }
    }
}

// === impl WindowLook ===

impl WindowLook<'_> {
    /// How far back `rule` looks.
    fn back(&self, rule: usize) -> u64 {
        self.window.backs.get(rule).copied().unwrap_or_default()
    }

    /// Permits that a call in `bucket` would find charged to `rule`.
    fn used_in(&self, bucket: u64, rule: usize) -> Option<u64> {
        self.window.used(self.seen, bucket, self.back(rule))
    }
}

impl Look for WindowLook<'_> {
    fn at(&self) -> Nanos {
        self.now.max(self.window.split.start_of(self.bucket))
    }

    fn used(&self, rule: usize) -> Option<u64> {
        self.used_in(self.bucket, rule)
    }

    fn passes(&self, rule: usize, capacity: u64, cost: u64) -> Option<bool> {
        Some(self.used_in(self.bucket, rule)? <= capacity - cost)
    }

    /// A binary search over the buckets to come: use only falls. At most log2(reach + 1) + 1 steps.
    fn wait(&self, rule: usize, keep: u64) -> Option<Nanos> {
        let empty = self.window.bucket(self.seen) + self.back(rule) + 1;
        let (mut first, mut end) = (self.bucket, empty.max(self.bucket));
        while first < end {
            let middle = first + (end - first) / 2;
            if self.used_in(middle, rule)? <= keep {
                end = middle;
            } else {
                first = middle + 1;
            }
        }
        Some(self.window.split.start_of(first) - self.at())
    }
}

// === impl WindowBuilder ===

impl WindowBuilder {
    /// Adds a rule: every rule must have room, or nothing is taken from any. Its window must be a multiple of
    /// the bucket's width, which the shortest window sets.
    pub fn rule(mut self, limit: u64, window: Duration) -> Self {
        self.rules.push(Rule::new(limit, window));
        self
    }

    /// Buckets for each shortest window; the default is 10.
    pub fn buckets(mut self, buckets: u64) -> Self {
        self.buckets = buckets;
        self
    }

    /// How far back a rule looks; the default is [`Coverage::Full`].
    pub fn coverage(mut self, coverage: Coverage) -> Self {
        self.coverage = coverage;
        self
    }

    /// Where bucket edges lie: at multiples of the width from this time, which must be below the width. The
    /// default is the clock's zero.
    pub fn phase(mut self, phase: Duration) -> Self {
        self.phase = phase.into();
        self
    }

    /// The largest cost of a call; a call above it is refused with [`Reason::MaxCost`](crate::Reason::MaxCost).
    /// The default is any cost up to the limit.
    pub fn max_cost(mut self, max_cost: u64) -> Self {
        self.max_cost = max_cost;
        self
    }

    /// The longest window that the rules may get while the counter runs ([`Live`](crate::Live)): it sets the memory.
    /// The default is the longest window of the rules.
    pub fn window_max(mut self, window: Duration) -> Self {
        self.window_max = window.into();
        self
    }

    /// The longest ring to build, in buckets of the longest window; the default, 65,536, keeps a slip of the pen
    /// from taking gigabytes.
    pub fn ring_max(mut self, buckets: u64) -> Self {
        self.ring_max = buckets;
        self
    }

    /// Checks everything and takes the memory.
    ///
    /// # Errors
    /// Those of [`config`](WindowBuilder::config), or too little memory.
    pub fn build(self) -> Result<Window, ConfigError> {
        let config = self.config()?;
        Ok(Window { block: Owned::zeroed(config.slots())?, config, resets: 0 })
    }

    /// Checks everything and takes the memory of a counter in so many shards, whose parts of the limit add up to it.
    ///
    /// # Errors
    /// Those of [`build`](WindowBuilder::build), more than one rule, no shard or more than 65,536, or a largest
    /// cost above the smallest part.
    pub fn build_sharded(self, shards: usize) -> Result<Sharded<Window>, ConfigError> {
        Sharded::new(self.config_sharded(shards)?)
    }

    /// Checks everything, for a state in so many shards that lies elsewhere.
    ///
    /// # Errors
    /// Those of [`build_sharded`](WindowBuilder::build_sharded) but for too little memory.
    pub fn config_sharded(self, shards: usize) -> Result<Parted<WindowConfig>, ConfigError> {
        let rule = self.rules.first();
        Parted::new(self.rules, self.max_cost, shards, |limit, max_cost| {
            Self { rules: Rules::one(Rule { limit, ..rule }), max_cost, ..self }.config()
        })
    }

    /// Checks everything, for a state that lies elsewhere.
    ///
    /// # Errors
    /// A window outside 1 ns to [`Nanos::MAX`] or not a multiple of the width, no bucket or more than fit the window or
    /// the ring, a limit too large for the width, a phase not below the width, more than
    /// [`RULES_MAX`](crate::RULES_MAX) rules, or a largest cost of 0.
    pub fn config(self) -> Result<WindowConfig, ConfigError> {
        let rules = self.rules;
        rules.validate()?;
        let windows = || rules.iter().map(|rule| rule.window.as_nanos());
        let shortest = windows().min().unwrap_or(1);
        let longest = windows().max().unwrap_or(1).max(self.window_max.as_nanos());
        let width = shortest.checked_div(self.buckets).and_then(NonZeroU64::new);
        let Some(width) = width else {
            return Err(ConfigError::Buckets { got: self.buckets, min: 1, max: shortest.min(self.ring_max) });
        };
        let exact = shortest.is_multiple_of(self.buckets);
        if let Some(ragged) = windows().find(|window| !exact && *window == shortest || *window % width != 0) {
            let (window, width) = (Duration::from_nanos(ragged), Duration::from_nanos(width.get()));
            return Err(ConfigError::Ragged { window, width });
        }
        let reach = longest / width;
        if reach > self.ring_max {
            return Err(ConfigError::Buckets { got: reach, min: 1, max: self.ring_max });
        }
        let split = Split::new(Nanos::from_nanos(width.get()), self.phase)?.with_flag();
        if self.max_cost == 0 {
            return Err(ConfigError::MaxCost { got: 0, min: 1 });
        }
        let len = (reach + 1).checked_next_power_of_two().unwrap_or(u64::MAX);
        let blank = WindowConfig {
            split,
            mask: len - 1,
            first_room: 0,
            first_until: 0,
            reach,
            short: u64::from(self.coverage == Coverage::Textbook),
            ceiling: 0,
            max_cost: self.max_cost,
            backs: [0; RULES_MAX],
            rules,
        };
        let config = blank.with(rules, split.rest_max())?;
        let is_alone = rules.len() == 1 && config.ceiling > 0;
        Ok(WindowConfig { first_until: if is_alone { Nanos::END } else { 0 }, ..config })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    /// The last bucket holds times out of range, too: a state that stands in it is no reason to take them.
    #[test]
    fn a_time_out_of_range_is_refused_in_the_last_bucket_too() {
        let late = [Nanos::from_nanos(Nanos::MAX.as_nanos() + 1), Nanos::from_nanos(u64::MAX)];
        for rules in [1, 2] {
            let mut builder = Window::builder(5, Duration::from_secs(1));
            for _ in 1..rules {
                builder = builder.rule(9, Duration::from_secs(2));
            }
            let counter = builder.build().unwrap();
            assert!(counter.try_acquire_at(2, Nanos::MAX));
            assert!(counter.config.split.ends_after(counter.config.split.index_of(Nanos::MAX), late[0]));
            for late in late {
                assert!([0, 1, 3, 4].iter().all(|&cost| !counter.try_acquire_at(cost, late)), "{late:?}");
            }
            assert_eq!(counter.usage_at(0, Nanos::MAX), Some(2));
            assert!(counter.try_acquire_at(3, Nanos::MAX));
        }
    }

    /// The total may fill its bits to the last: it wraps past the largest limit, and no use is lost.
    #[test]
    fn a_total_that_wraps_hides_no_use() {
        let max = 1_048_575;
        let counter = Window::builder(max, Duration::from_millis(10)).build().unwrap();
        assert_eq!(counter.config.split.rest_max(), max);
        for turn in 1..5 {
            let now = Nanos::from_millis(20 * turn);
            assert!(counter.try_acquire_at(max - turn, now));
            assert!(!counter.try_acquire_at(turn + 1, now));
            assert_eq!(counter.usage_at(0, now), Some(max - turn));
            assert!(counter.try_acquire_at(turn, now) && !counter.try_acquire_at(1, now));
            assert!(counter.try_acquire_at(0, now));
        }
    }

    /// A cost so large that its place in the word overflows is still too large.
    #[test]
    fn no_cost_is_too_large_to_be_refused() {
        let counter = Window::builder(5, Duration::from_secs(1)).build().unwrap();
        let now = Nanos::from_secs(5);
        assert!(counter.try_acquire_at(1, now));
        for bits in 3..64 {
            assert!(!counter.try_acquire_at(1 << bits, now) && !counter.try_acquire_at((1 << bits) + 1, now));
        }
        assert!(counter.try_acquire_at(4, now));
    }

    #[test]
    fn the_table_of_largest_limits_is_right() {
        let table = [
            (1, 1),
            (1_000, 1_023),
            (1_000_000, 1_048_575),
            (10_000_000, 16_777_215),
            (100_000_000, 134_217_727),
            (1_000_000_000, 1_073_741_823),
            (60_000_000_000, 68_719_476_735),
            (3_600_000_000_000, 4_398_046_511_103),
        ];
        for (width, max) in table {
            let build = |limit| Window::builder(limit, Duration::from_nanos(width)).buckets(1).build();
            assert!(build(max).is_ok(), "{width}");
            assert_eq!(build(max + 1).err(), Some(ConfigError::Limit { got: max + 1, max }));
        }
    }

    /// In the first window, too, one glance is enough in the newest bucket.
    #[test]
    fn a_glance_answers_from_the_clocks_zero_on() {
        for coverage in [Coverage::Full, Coverage::Textbook] {
            let builder = Window::builder(3, Duration::from_nanos(40)).buckets(4).coverage(coverage);
            for bucket in 0..12 {
                let (counter, now) = (builder.build().unwrap(), Nanos::from_nanos(10 * bucket + 7));
                assert!(counter.try_acquire_at(1, now));
                let glance = |cost| counter.on().glance(cost, now);
                assert_eq!(
                    [3, 2, 1, 0].map(glance),
                    [Some(false), Some(true), Some(false), None],
                    "{bucket}"
                );
                assert_eq!(counter.usage_at(0, now), Some(3));
            }
        }
    }

    /// Not even the turn to its bucket.
    #[test]
    fn a_refusal_stores_nothing() {
        let at = Nanos::from_nanos;
        let counter = Window::builder(3, Duration::from_nanos(30)).buckets(3).build().unwrap();
        assert!(counter.try_acquire_at(2, at(45)));
        let state = || counter.on().state.head().load(Acquire);
        let before = state();
        for now in [45, 49, 50, 79] {
            assert!(!counter.try_acquire_at(2, at(now)));
            assert_eq!(state(), before, "{now}");
        }
        assert!(counter.try_acquire_at(2, at(80)));
        assert_ne!(state(), before);
    }

    /// A caller that dies in the middle of a turn, wherever: what it wrote changes no later answer.
    #[test]
    fn a_turn_left_half_way_is_completed() {
        let at = Nanos::from_nanos;
        for filled in 0..=3 {
            let counter = Window::builder(3, Duration::from_nanos(30)).buckets(3).build().unwrap();
            assert!(counter.try_acquire_at(2, at(45)));
            let seen = counter.on().state.head().load(Acquire);
            let turning = Mark(counter.config.moved_to(7, seen).0 | counter.config.split.flag());
            counter.on().state.head().compare_exchange(seen, turning, Release, Relaxed).unwrap();
            for bucket in 5..5 + filled {
                let start = Mark(counter.config.moved_to(bucket, seen).0);
                let slot = counter.on().slot(bucket);
                slot.compare_exchange(slot.load(Acquire), start, Release, Relaxed).unwrap();
            }
            // Bucket 4 counts until bucket 8; the dead caller's bucket is the newest.
            assert_eq!(counter.usage_at(0, at(0)), Some(2));
            assert_eq!(counter.peek_at(2, at(0)).unwrap_err().retry_after(), Some(at(10)));
            assert_eq!(counter.on().state.head().load(Acquire), turning, "a look stores nothing");
            assert!(!counter.try_acquire_at(2, at(75)) && counter.try_acquire_at(1, at(75)));
            assert!(!counter.try_acquire_at(1, at(79)) && counter.try_acquire_at(2, at(80)));
            assert_eq!(counter.usage_at(0, at(80)), Some(3));
        }
    }
}
