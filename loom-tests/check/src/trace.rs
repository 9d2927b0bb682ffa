//! What happened in one execution: the accesses of each thread, the calls they belong to, and the memory orders they
//! used. The machinery that fills it exists only under the model.

use std::{fmt, sync::atomic::Ordering};

#[cfg(tollgate_loom)]
mod ghost;
#[cfg(tollgate_loom)]
mod happens;
#[cfg(tollgate_loom)]
mod shadow;
#[cfg(tollgate_loom)]
mod torn;
#[cfg(tollgate_loom)]
pub(crate) use ghost::{
    Ghost, Mode, Unwound, access, fence, name_word, new_word, park, plain, reset, unpark, unpark_if_over,
    wait, with,
};

/// A place in the source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Site {
    /// The file, as the compiler was given it.
    pub file: &'static str,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Op {
    Load,
    Store,
    Swap,
    CompareExchange,
    FetchAdd,
    FetchSub,
    FetchMax,
    FetchMin,
    FetchAnd,
    FetchOr,
    FetchXor,
    Fence,
    /// Takes a lock, if nobody holds it.
    Lock,
    /// Gives a lock back.
    Unlock,
    /// Of memory that is not atomic.
    Read,
    /// Of memory that is not atomic.
    Write,
    /// A spin hint.
    Wait,
}

/// One access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Who: 0 before and after the threads, else the thread's place in the scenario, from 1; the clock comes last.
    pub thread: usize,
    /// Where.
    pub site: Site,
    /// The word, by number in order of creation; `None` for fences and hints.
    pub word: Option<u32>,
    /// What.
    pub op: Op,
    /// The memory order in force, weakened or not.
    pub order: Option<Ordering>,
    /// The order of the failing case of a compare-and-swap.
    pub failure: Option<Ordering>,
    /// The values seen and left.
    pub effect: Effect,
}

/// The values of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effect {
    /// The value read.
    pub read: Option<u64>,
    /// The value written.
    pub wrote: Option<u64>,
    /// What a compare-and-swap expected and would have written.
    pub wanted: Option<(u64, u64)>,
}

/// One line of an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A call begins; its place among the records.
    Begin(usize),
    /// An access.
    Access(Access),
    /// A call returned.
    End(usize),
    /// A thread is frozen for good.
    Frozen(usize),
}

/// An access site with the orders written there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SiteOrder {
    /// Where.
    pub site: Site,
    /// What.
    pub op: Op,
    /// The order written.
    pub order: Ordering,
    /// The order written for the failing case.
    pub failure: Option<Ordering>,
}

/// One memory order made weaker than the source says, for one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weakening {
    /// `file:line:column`, as [`Site`] displays it; the file may be shortened to its last parts.
    pub site: String,
    /// Whether the order of the failing case is meant.
    pub failure: bool,
    /// The order to use instead; `None` drops a fence.
    pub to: Option<Ordering>,
}

// === impl Site ===

impl Site {
    /// The file's name and line.
    pub fn short(&self) -> String {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(self.file);
        format!("{name}:{}", self.line)
    }

    /// Whether `text` names this site.
    #[cfg_attr(not(tollgate_loom), allow(dead_code))]
    fn is(&self, text: &str) -> bool {
        let mut parts = text.rsplitn(3, ':');
        let (column, line) = (parts.next(), parts.next());
        column.is_some_and(|c| c.parse() == Ok(self.column))
            && line.is_some_and(|l| l.parse() == Ok(self.line))
            && parts
                .next()
                .and_then(|file| self.file.strip_suffix(file))
                .is_some_and(|folder| folder.is_empty() || folder.ends_with(['/', '\\']))
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

// === impl Effect ===

#[cfg_attr(not(tollgate_loom), allow(dead_code))]
impl Effect {
    pub(crate) fn read(value: u64) -> Effect {
        Effect { read: Some(value), ..Effect::default() }
    }

    pub(crate) fn wrote(value: u64) -> Effect {
        Effect { wrote: Some(value), ..Effect::default() }
    }

    pub(crate) fn and_wrote(self, value: u64) -> Effect {
        Effect { wrote: Some(value), ..self }
    }

    pub(crate) fn expecting(self, current: u64, new: u64) -> Effect {
        Effect { wanted: Some((current, new)), ..self }
    }
}

// === impl SiteOrder ===

impl SiteOrder {
    /// Every single order weaker than those written here.
    pub fn weakenings(&self) -> Vec<Weakening> {
        use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        let weaker: &[Option<Ordering>] = match (self.op, self.order) {
            (Op::Fence, SeqCst) => &[Some(AcqRel), Some(Acquire), Some(Release), None],
            (Op::Fence, AcqRel) => &[Some(Acquire), Some(Release), None],
            (Op::Fence, _) => &[None],
            (Op::Lock | Op::Unlock, _) => &[],
            (Op::Load, SeqCst) => &[Some(Acquire), Some(Relaxed)],
            (Op::Store, SeqCst) => &[Some(Release), Some(Relaxed)],
            (_, SeqCst) => &[Some(AcqRel), Some(Acquire), Some(Release), Some(Relaxed)],
            (_, AcqRel) => &[Some(Acquire), Some(Release), Some(Relaxed)],
            (_, Acquire | Release) => &[Some(Relaxed)],
            _ => &[],
        };
        let weaker_failure: &[Option<Ordering>] = match self.failure {
            Some(SeqCst) => &[Some(Acquire), Some(Relaxed)],
            Some(Acquire) => &[Some(Relaxed)],
            _ => &[],
        };
        let weakening =
            |failure, &to: &Option<Ordering>| Weakening { site: self.site.to_string(), failure, to };
        let success = weaker.iter().map(|to| weakening(false, to));
        success.chain(weaker_failure.iter().map(|to| weakening(true, to))).collect()
    }
}

impl fmt::Display for SiteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.site, self.op.name(), self.order)?;
        self.failure.map_or(Ok(()), |failure| write!(f, "/{failure:?}"))
    }
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slot = if self.failure { " on failure" } else { "" };
        match self.to {
            Some(to) => write!(f, "{}{slot} -> {to:?}", self.site),
            None => write!(f, "{} -> none", self.site),
        }
    }
}

impl Op {
    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Op::Load => "load",
            Op::Store => "store",
            Op::Swap => "swap",
            Op::CompareExchange => "cas",
            Op::FetchAdd => "fetch_add",
            Op::FetchSub => "fetch_sub",
            Op::FetchMax => "fetch_max",
            Op::FetchMin => "fetch_min",
            Op::FetchAnd => "fetch_and",
            Op::FetchOr => "fetch_or",
            Op::FetchXor => "fetch_xor",
            Op::Fence => "fence",
            Op::Lock => "lock",
            Op::Unlock => "unlock",
            Op::Read => "plain read",
            Op::Write => "plain write",
            Op::Wait => "spin hint",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_named_by_the_end_of_its_file() {
        let site = Site { file: "src/log/ring.rs", line: 30, column: 9 };
        assert!(site.is("src/log/ring.rs:30:9") && site.is("ring.rs:30:9"));
        assert!(
            !site.is("ring.rs:30:8")
                && !site.is("ring.rs:3:9")
                && !site.is("head.rs:30:9")
                && !site.is("30:9")
        );
    }

    #[test]
    fn every_single_weakening_of_a_cas() {
        let site = Site { file: "a.rs", line: 1, column: 2 };
        let cas = SiteOrder {
            site,
            op: Op::CompareExchange,
            order: Ordering::AcqRel,
            failure: Some(Ordering::Acquire),
        };
        let all: Vec<_> = cas.weakenings().iter().map(ToString::to_string).collect();
        assert_eq!(
            all,
            [
                "a.rs:1:2 -> Acquire",
                "a.rs:1:2 -> Release",
                "a.rs:1:2 -> Relaxed",
                "a.rs:1:2 on failure -> Relaxed"
            ]
        );
    }
}
