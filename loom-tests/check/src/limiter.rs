//! What is checked: a limiter, the calls made on it, and what it may answer.

use std::fmt;

/// A rate limiter under check. Times are any integers that only the scenario gives meaning to.
///
/// Implement it for your limiter, or for a wrapper around it. Only [`try_acquire`](Limiter::try_acquire) is
/// needed; the others answer `None` as long as the limiter does not offer them.
pub trait Limiter: Send + Sync + 'static {
    /// Takes `cost` permits at time `now`, all or nothing.
    fn try_acquire(&self, cost: u64, now: u64) -> Verdict;

    /// Tells what [`try_acquire`](Limiter::try_acquire) would answer, and changes nothing.
    fn peek(&self, cost: u64, now: u64) -> Option<Verdict> {
        let _ = (cost, now);
        None
    }

    /// Gives back `cost` permits of an admission recorded at `now`; [`Verdict::Admitted`] if it did.
    fn refund(&self, cost: u64, now: u64) -> Option<Verdict> {
        let _ = (cost, now);
        None
    }

    /// Replaces the rules, `(limit, window)` each; [`Verdict::Admitted`] if it did.
    fn reconfigure(&self, rules: &[(u64, u64)]) -> Option<Verdict> {
        let _ = rules;
        None
    }
}

/// The answer to a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The permits were taken.
    Admitted,
    /// No room now.
    Refused {
        /// The shortest wait, counted from the time judged, after which the same call would pass if nobody else
        /// came. `None` if the limiter does not say: then nothing is checked about it.
        retry_after: Option<u64>,
    },
    /// The cost can never be had. A refusal that does not tell a wait will do as well.
    Never,
}

/// One call of a scenario.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// [`Limiter::try_acquire`].
    Acquire {
        /// Permits asked for.
        cost: u64,
        /// At what time.
        now: When,
    },
    /// [`Limiter::peek`].
    Peek {
        /// Permits asked for.
        cost: u64,
        /// At what time.
        now: When,
    },
    /// [`Limiter::refund`].
    Refund {
        /// Permits given back.
        cost: u64,
        /// The time of the admission they came from.
        now: When,
    },
    /// [`Limiter::reconfigure`].
    Reconfigure {
        /// The new rules, `(limit, window)` each.
        rules: Vec<(u64, u64)>,
    },
}

/// Where a call has its time from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// This time.
    At(u64),
    /// The scenario's clock, by reading which the call begins; see [`Scenario::clock`](crate::Scenario::clock).
    Clock,
}

/// A call of [`Limiter::try_acquire`] at a fixed time.
pub fn acquire(cost: u64, now: u64) -> Call {
    Call::Acquire { cost, now: When::At(now) }
}

/// A call of [`Limiter::try_acquire`] at the time that the scenario's clock shows.
pub fn acquire_by_clock(cost: u64) -> Call {
    Call::Acquire { cost, now: When::Clock }
}

/// A call of [`Limiter::peek`] at a fixed time.
pub fn peek(cost: u64, now: u64) -> Call {
    Call::Peek { cost, now: When::At(now) }
}

/// A call of [`Limiter::refund`] of permits that were taken at `now`.
pub fn refund(cost: u64, now: u64) -> Call {
    Call::Refund { cost, now: When::At(now) }
}

/// A call of [`Limiter::reconfigure`].
pub fn reconfigure(rules: &[(u64, u64)]) -> Call {
    Call::Reconfigure { rules: rules.to_vec() }
}

// === impl Verdict ===

impl Verdict {
    /// Whether the permits were taken.
    pub fn is_admitted(self) -> bool {
        self == Verdict::Admitted
    }

    /// [`Verdict::Admitted`] or a refusal that says nothing about the wait.
    pub fn yes_or_no(admitted: bool) -> Verdict {
        if admitted { Verdict::Admitted } else { Verdict::Refused { retry_after: None } }
    }

    /// Whether this answer is what an oracle allows: a wait that either of them leaves out is not compared, and who
    /// leaves it out need not say *never*.
    pub(crate) fn agrees(self, allowed: Verdict) -> bool {
        match (self, allowed) {
            (Verdict::Refused { retry_after: Some(a) }, Verdict::Refused { retry_after: Some(b) }) => a == b,
            (Verdict::Refused { .. }, Verdict::Refused { .. }) => true,
            (Verdict::Refused { retry_after: None }, Verdict::Never) => true,
            (a, b) => a == b,
        }
    }

    pub(crate) fn without_wait(self) -> Verdict {
        match self {
            Verdict::Refused { .. } => Verdict::Refused { retry_after: None },
            other => other,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Admitted => f.write_str("admitted"),
            Verdict::Refused { retry_after: None } => f.write_str("refused"),
            Verdict::Refused { retry_after: Some(wait) } => write!(f, "refused, retry after {wait}"),
            Verdict::Never => f.write_str("never"),
        }
    }
}

// === impl Call ===

impl Call {
    pub(crate) fn when(&self) -> Option<When> {
        match *self {
            Call::Acquire { now, .. } | Call::Peek { now, .. } | Call::Refund { now, .. } => Some(now),
            Call::Reconfigure { .. } => None,
        }
    }

    /// Makes the call at `now`; `None` if the limiter does not offer it.
    pub(crate) fn make(&self, limiter: &dyn Limiter, now: u64) -> Option<Verdict> {
        match self {
            Call::Acquire { cost, .. } => Some(limiter.try_acquire(*cost, now)),
            Call::Peek { cost, .. } => limiter.peek(*cost, now),
            Call::Refund { cost, .. } => limiter.refund(*cost, now),
            Call::Reconfigure { rules } => limiter.reconfigure(rules),
        }
    }

    /// The call in words, at the time it was made.
    pub(crate) fn at(&self, now: u64) -> String {
        match self {
            Call::Acquire { cost, .. } => format!("acquire({cost}, t={now})"),
            Call::Peek { cost, .. } => format!("peek({cost}, t={now})"),
            Call::Refund { cost, .. } => format!("refund({cost}, t={now})"),
            Call::Reconfigure { rules } => format!("reconfigure({rules:?})"),
        }
    }
}
