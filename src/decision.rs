//! The one answer of every algorithm, and how it is read off a history.
//!
//! An algorithm only says how much of each rule is used and when that use will have fallen to a given level
//! ([`Look`]). Everything a caller is told follows from those two, here and nowhere else.

use core::fmt;

use crate::{Nanos, Rule};

/// The answer to one call: what was left when it was admitted, or why it was refused.
pub type Decision = Result<Quota, Denied>;

/// What was left of a limit at the moment of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Quota {
    /// The rule that these figures speak of, by its place in the configuration: the one that refused, else
    /// the one with the least left (the first listed of equals).
    pub rule: usize,
    /// The limit of that rule.
    pub limit: u64,
    /// Permits that could still be had at once: the least over all rules.
    pub remaining: u64,
    /// How long until `remaining` grows if nobody else comes; zero when it can not grow.
    pub next_after: Nanos,
    /// How long until nothing is charged to any rule if nobody else comes.
    pub reset_after: Nanos,
    /// The time judged: the caller's, or the newest recorded one if that is later. The spans count from it.
    pub at: Nanos,
}

/// A refusal: an outcome with a wait, not a fault. It changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Denied {
    /// Why.
    pub reason: Reason,
    /// What was left.
    pub quota: Quota,
}

/// Why a call was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Too few permits are free now.
    Limit {
        /// The shortest wait, from the time judged, after which the same call would pass if nobody else
        /// came. Never zero.
        retry_after: Nanos,
    },
    /// The cost is above the limit: waiting can not help.
    Never,
    /// The cost is above the largest one that this limiter was built for.
    MaxCost {
        /// The largest cost.
        max: u64,
    },
    /// The time was above [`Nanos::MAX`].
    TimeOutOfRange,
    /// The key is new, and as many keys as there is room for are in use.
    Full {
        /// When it is worth asking again: the shortest wait, of the keys looked at, until one of them is idle if
        /// nobody else comes. Never zero.
        retry_after: Nanos,
    },
}

/// A consistent look at a history at one time judged. `None`: the history has moved on, look again.
pub(crate) trait Look {
    /// The time judged.
    fn at(&self) -> Nanos;
    /// Permits charged to `rule`.
    fn used(&self, rule: usize) -> Option<u64>;
    /// The shortest wait after which at most `keep` permits are charged to `rule` if nobody else comes.
    fn wait(&self, rule: usize, keep: u64) -> Option<Nanos>;
    /// Permits of `capacity` that are free under `rule`.
    fn left(&self, rule: usize, capacity: u64) -> Option<u64> {
        Some(capacity.saturating_sub(self.used(rule)?))
    }
    /// The shortest wait after which `free` permits (at most `capacity`) are free under `rule`.
    fn wait_to_free(&self, rule: usize, capacity: u64, free: u64) -> Option<Nanos> {
        self.wait(rule, capacity - free)
    }
    /// The shortest wait after which a call of `cost` (at most `capacity`) passes under `rule`.
    fn wait_to_pass(&self, rule: usize, capacity: u64, cost: u64) -> Option<Nanos> {
        self.wait_to_free(rule, capacity, cost)
    }
    /// Whether a call of `cost` (at most `capacity`) passes under `rule`.
    fn passes(&self, rule: usize, capacity: u64, cost: u64) -> Option<bool> {
        Some(self.wait_to_pass(rule, capacity, cost)? == Nanos::ZERO)
    }
}

/// What a configuration tells without its history.
pub(crate) trait Limits {
    /// The rules, in the order given.
    fn rules(&self) -> &[Rule];
    /// The most that `rule` can ever hold: its limit, or its burst.
    fn capacity(&self, rule: usize) -> u64 {
        self.rules().get(rule).map_or(0, |rule| rule.limit)
    }
    /// The largest cost that can ever pass under `rule`.
    fn passable(&self, rule: usize) -> u64 {
        self.capacity(rule)
    }
    /// The largest cost declared.
    fn max_cost(&self) -> u64;
    /// The largest cost that can be taken: the least of all that can pass and the largest cost declared.
    fn ceiling(&self) -> u64;
}

/// What an algorithm adds to a [`Look`] so that any caller's question can be answered.
pub(crate) trait History {
    /// Its configuration.
    type Limits: Limits;
    /// Its look.
    type Look<'a>: Look
    where
        Self: 'a;
    /// The configuration.
    fn limits(&self) -> &Self::Limits;
    /// Takes `cost` permits at `now`, or changes nothing, if one look settles it. Neither is checked before, so
    /// what refuses may come before what checks them, and costs nothing more.
    #[inline(always)]
    fn glance(&self, _cost: u64, _now: Nanos) -> Option<bool> {
        None
    }
    /// Takes `cost` permits (1 to the least capacity and largest cost) at `now` (in range), or changes nothing.
    fn take(&self, cost: u64, now: Nanos) -> bool;
    /// Looks at the history as a call at `now` (in range) would judge it. Stores nothing.
    fn look(&self, now: Nanos) -> Self::Look<'_>;
    /// Whether nothing is charged to any rule at `now` (in range), so that it decides like a new one.
    #[cfg(feature = "keyed")]
    fn is_idle(&self, now: Nanos) -> bool
    where
        Self: Sized,
    {
        idle_after(self, now) == Nanos::ZERO
    }
}

// === impl Quota ===

impl Quota {
    /// All of `limit` left at `at`, for a limiter outside this crate to fill in.
    ///
    /// # Examples
    /// ```
    /// use tollgate::{Nanos, Quota};
    ///
    /// let mut quota = Quota::new(10, Nanos::from_secs(7));
    /// quota.remaining = 3;
    /// assert_eq!((quota.limit, quota.rule, quota.reset_after), (10, 0, Nanos::ZERO));
    /// ```
    pub const fn new(limit: u64, at: Nanos) -> Self {
        let none = Nanos::ZERO;
        Self { rule: 0, limit, remaining: limit, next_after: none, reset_after: none, at }
    }
}

// === impl Denied ===

impl Denied {
    /// A refusal for `reason` with these figures.
    pub const fn new(reason: Reason, quota: Quota) -> Self {
        Self { reason, quota }
    }

    /// The shortest wait after which the same call would pass if nobody else came; `None` if it never would.
    pub fn retry_after(&self) -> Option<Nanos> {
        match self.reason {
            Reason::Limit { retry_after } | Reason::Full { retry_after } => Some(retry_after),
            _ => None,
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Limit { retry_after } => {
                write!(f, "limit {} reached, retry after {retry_after:?}", self.quota.limit)
            }
            Reason::Never => write!(f, "cost above the limit {}", self.quota.limit),
            Reason::MaxCost { max } => write!(f, "cost above the largest cost {max}"),
            Reason::TimeOutOfRange => {
                write!(f, "time {:?} is above {:?}", self.quota.at, Nanos::MAX)
            }
            Reason::Full { retry_after } => {
                write!(f, "no room for another key, retry after {retry_after:?}")
            }
        }
    }
}

impl core::error::Error for Denied {}

// === answers ===

/// Takes `cost` permits, yes or no. Inlined, so that to check a cost that the caller knows takes no instruction.
#[inline(always)]
pub(crate) fn try_acquire<H: History>(history: &H, cost: u64, now: Nanos) -> bool {
    match history.glance(cost, now) {
        Some(answer) => answer,
        None => take_if_ordinary(history, cost, now),
    }
}

/// What a glance does not settle.
#[inline]
pub(crate) fn take_if_ordinary<H: History>(history: &H, cost: u64, now: Nanos) -> bool {
    if !now.in_range() {
        return false;
    }
    // One compare for both ends: 0 wraps to the top.
    if cost.wrapping_sub(1) >= history.limits().ceiling() {
        return cost == 0;
    }
    history.take(cost, now)
}

/// Takes `cost` permits and tells what is left, or tells why not.
pub(crate) fn check<H: History>(history: &H, cost: u64, now: Nanos) -> Decision {
    if !is_ordinary(history.limits(), cost, now) {
        return unasked(history, cost, now);
    }
    // Lock-free: a round is lost only to another caller that was admitted meanwhile.
    loop {
        let admitted = history.take(cost, now);
        let decision = judge(history, if admitted { 0 } else { cost }, now);
        // Refused; if the permit came free before the wait was read, this call takes it after all.
        if admitted || decision.is_err() {
            return decision;
        }
    }
}

/// Tells whether [`check`] would admit, with the figures of now, and changes nothing.
pub(crate) fn peek<H: History>(history: &H, cost: u64, now: Nanos) -> Decision {
    if is_ordinary(history.limits(), cost, now) {
        judge(history, cost, now)
    } else {
        unasked(history, cost, now)
    }
}

/// Whether [`try_acquire`] would admit. Without figures, so cheaper than [`peek`].
pub(crate) fn has_room<H: History>(history: &H, cost: u64, now: Nanos) -> bool {
    let limits = history.limits();
    if !is_ordinary(limits, cost, now) {
        return now.in_range() && cost == 0;
    }
    loop {
        let look = history.look(now);
        let mut rules = 0..limits.rules().len();
        let all =
            rules.try_fold(true, |all, rule| Some(all && look.passes(rule, limits.capacity(rule), cost)?));
        if let Some(all) = all {
            return all;
        }
    }
}

/// Permits charged to `rule` at `now`; `None` without such a rule or with a time out of range.
pub(crate) fn usage<H: History>(history: &H, rule: usize, now: Nanos) -> Option<u64> {
    if !now.in_range() || rule >= history.limits().rules().len() {
        return None;
    }
    loop {
        if let Some(used) = history.look(now).used(rule) {
            return Some(used);
        }
    }
}

/// How long after `now` (in range) nothing is charged to any rule if nobody comes.
#[cfg(feature = "keyed")]
pub(crate) fn idle_after<H: History>(history: &H, now: Nanos) -> Nanos {
    let rules = history.limits().rules().len();
    // Lock-free: a look fails only if somebody was admitted meanwhile.
    loop {
        let look = history.look(now);
        let longest = (0..rules).try_fold(Nanos::ZERO, |most, rule| Some(most.max(look.wait(rule, 0)?)));
        if let Some(wait) = longest {
            return look.at() - now + wait;
        }
    }
}

/// Whether the history must decide: a time in range, and a cost above 0 that can be taken.
#[inline]
fn is_ordinary(limits: &impl Limits, cost: u64, now: Nanos) -> bool {
    // One compare for both ends: 0 wraps to the top.
    now.in_range() && cost.wrapping_sub(1) < limits.ceiling()
}

/// The answer to what is not ordinary, which changes nothing.
#[cold]
#[inline(never)]
fn unasked<H: History>(history: &H, cost: u64, now: Nanos) -> Decision {
    let limits = history.limits();
    let quota = if now.in_range() {
        judge(history, 0, now)?
    } else {
        Quota { remaining: 0, ..Quota::new(limits.capacity(0), now) }
    };
    let rule = (0..limits.rules().len()).find(|&rule| cost > limits.passable(rule));
    let (reason, quota) = match rule {
        _ if !now.in_range() => (Reason::TimeOutOfRange, quota),
        Some(rule) => (Reason::Never, Quota { rule, limit: limits.capacity(rule), ..quota }),
        None if cost > limits.max_cost() => (Reason::MaxCost { max: limits.max_cost() }, quota),
        None => return Ok(quota),
    };
    Err(Denied { reason, quota })
}

/// The verdict on `cost` permits (0, or such that [`is_ordinary`]) at `now` (in range). Once for each history, not in
/// each place: the C library has a budget.
#[inline(never)]
fn judge<H: History>(history: &H, cost: u64, now: Nanos) -> Decision {
    // Lock-free: a look fails only if somebody was admitted meanwhile.
    loop {
        if let Some(decision) = verdict(history.limits(), &history.look(now), cost) {
            return decision;
        }
    }
}

/// The figures of one look. `None`: the history moved on.
fn read_quota(limits: &impl Limits, look: &impl Look) -> Option<Quota> {
    let rules = limits.rules().len();
    let (mut tightest, mut remaining, mut reset_after) = (0, u64::MAX, Nanos::ZERO);
    for rule in 0..rules {
        let left = look.left(rule, limits.capacity(rule))?;
        if left < remaining {
            (tightest, remaining) = (rule, left);
        }
        reset_after = reset_after.max(look.wait(rule, 0)?);
    }
    // The least over the rules grows once each rule that holds it down has let go of one permit more; with one
    // that can not (it holds nothing), it never does.
    let mut next_after = Nanos::ZERO;
    for rule in 0..rules {
        let (capacity, free) = (limits.capacity(rule), remaining.saturating_add(1));
        if free > capacity {
            next_after = Nanos::ZERO;
            break;
        }
        next_after = next_after.max(look.wait_to_free(rule, capacity, free)?);
    }
    let limit = limits.capacity(tightest);
    Some(Quota { rule: tightest, limit, remaining, next_after, reset_after, at: look.at() })
}

/// The verdict of one look on `cost` permits. `None`: the history moved on.
fn verdict(limits: &impl Limits, look: &impl Look, cost: u64) -> Option<Decision> {
    let quota = read_quota(limits, look)?;
    if cost == 0 {
        return Some(Ok(quota));
    }
    let (mut refusing, mut retry_after) = (0, Nanos::ZERO);
    for rule in 0..limits.rules().len() {
        let wait = look.wait_to_pass(rule, limits.capacity(rule), cost)?;
        if wait > retry_after {
            (refusing, retry_after) = (rule, wait);
        }
    }
    Some(if retry_after == Nanos::ZERO {
        Ok(quota)
    } else {
        let quota = Quota { rule: refusing, limit: limits.capacity(refusing), ..quota };
        Err(Denied { reason: Reason::Limit { retry_after }, quota })
    })
}
