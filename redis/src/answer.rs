//! What a caller is told.

use tollgate::{Decision, Nanos};

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum By {
    /// The server.
    Redis,
    /// A refusal of the server's that still holds.
    Cache,
    /// Units that the server had set aside for this instance.
    Lease,
    /// The configuration alone: a cost of 0, or one above the limit.
    Rule,
    /// The limiter for this machine's own capacity.
    Capacity,
    /// The coarse limiter before the server, by this instance's own admissions.
    Coarse,
    /// This instance's portion of the limit: in a [`Share`](crate::Share), or because the server could not be asked.
    Local,
    /// Nobody: the server could not be asked, and [`OnFailure::Open`] admits.
    Open,
}

/// What to do when the server can not be asked, or does not answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// Decide by this instance's own admissions and its portion of the limit.
    #[default]
    Local,
    /// Admit. Answers say so ([`By::Open`]) and are counted.
    Open,
    /// Answer [`Unavailable`](crate::Unavailable).
    Closed,
}

/// The core's decision, and who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// What was left, or why not. Times of the server count from 1970; those of this instance, from its start.
    pub decision: Decision,
    /// Who decided.
    pub by: By,
}

/// Yes or no, and the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the units were taken.
    pub admitted: bool,
    /// On a refusal, the shortest wait after which the same call would pass if nobody else came; `None` if it never would.
    pub retry_after: Option<Nanos>,
    /// Who decided.
    pub by: By,
}

/// How many of the units asked for were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// Units taken.
    pub granted: u64,
    /// If not all were taken, the shortest wait until one more fits if nobody else comes; `None` if none ever will.
    pub retry_after: Option<Nanos>,
    /// Who decided.
    pub by: By,
}

/// Units taken, the record of it, and who decided: what every call is answered from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) granted: u64,
    pub(crate) decision: Decision,
    pub(crate) by: By,
}

// === impl By ===

impl By {
    /// All of them, for statistics.
    pub(crate) const ALL: [Self; 8] = [
        Self::Redis,
        Self::Cache,
        Self::Lease,
        Self::Rule,
        Self::Capacity,
        Self::Coarse,
        Self::Local,
        Self::Open,
    ];
}

// === impl Outcome ===

impl Outcome {
    /// A decision on `cost`, all or nothing.
    pub(crate) fn whole(cost: u64, decision: Decision, by: By) -> Self {
        Self { granted: if decision.is_ok() { cost } else { 0 }, decision, by }
    }

    pub(crate) fn answer(self) -> Answer {
        Answer { decision: self.decision, by: self.by }
    }

    pub(crate) fn verdict(self) -> Verdict {
        Verdict { admitted: self.decision.is_ok(), retry_after: self.retry_after(), by: self.by }
    }

    pub(crate) fn grant(self) -> Grant {
        Grant { granted: self.granted, retry_after: self.retry_after(), by: self.by }
    }

    fn retry_after(self) -> Option<Nanos> {
        self.decision.err().and_then(|denied| denied.retry_after())
    }
}
