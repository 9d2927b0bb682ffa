//! Rules that may change, and a limit in parts, each with a history of its own.

use tollgate_check::{Call, Oracle, Question, Verdict};

/// A limit in so many shards, of which each takes a call or nobody does, as `Sharded` documents for times that do not step
/// back; of a cost the tens do not count. One shard may have several rules. A call that overlaps a change of them is judged by
/// either, whole, as `Live` documents.
pub(crate) struct Parted {
    /// `(limit, window)`.
    pub(crate) rules: &'static [(u64, u64)],
    pub(crate) shards: u64,
    /// The width of a bucket: entries are as old as its start.
    pub(crate) width: u64,
    /// Whether a call may be judged at any later time which another call has carried.
    pub(crate) carried: bool,
}

/// All rules so far, and for each shard `(bucket, cost)` of each admission, oldest first.
type Histories = (Vec<Vec<(u64, u64)>>, Vec<Vec<(u64, u64)>>);

// === impl Parted ===

impl Parted {
    /// The part of a limit that a shard has.
    fn part(&self, limit: u64, shard: usize) -> u64 {
        limit / self.shards + u64::from((shard as u64) < limit % self.shards)
    }

    /// The largest cost: the smallest part above 0.
    fn cost_max(&self, limit: u64) -> u64 {
        if limit < self.shards { limit.min(1) } else { limit / self.shards }
    }

    fn fits(&self, rules: &[(u64, u64)], shard: usize, admitted: &[(u64, u64)], cost: u64, at: u64) -> bool {
        rules.iter().all(|&(limit, window)| {
            let inside = admitted.iter().filter(|&(entry, _)| entry + window / self.width > at);
            let used = inside.map(|(_, cost)| cost).sum::<u64>();
            cost <= self.cost_max(limit) && used + cost <= self.part(limit, shard)
        })
    }
}

impl Oracle for Parted {
    type State = Histories;

    fn name(&self) -> String {
        format!("{:?} in {} shards, buckets of {}", self.rules, self.shards, self.width)
    }

    fn start(&self) -> Histories {
        (vec![self.rules.to_vec()], vec![vec![]; self.shards as usize])
    }

    fn outcomes(&self, state: &Histories, question: &Question<'_>) -> Option<Vec<(Verdict, Histories)>> {
        let (rules, shards) = state;
        let (cost, takes) = match *question.call {
            Call::Acquire { cost, .. } => (cost % 10, true),
            Call::Peek { cost, .. } => (cost % 10, false),
            Call::Reconfigure { rules: ref next } => {
                let rules = rules.iter().chain([next]).cloned().collect();
                return Some(vec![(Verdict::Admitted, (rules, shards.clone()))]);
            }
            Call::Refund { .. } => return None,
        };
        let own = question.now / self.width;
        let latest = if self.carried { own.max(question.latest / self.width) } else { own };
        // A call goes on to any later time that it finds recorded. Whoever refuses, or only looks, has found the newest.
        let recorded: Vec<_> = shards.iter().flatten().map(|&(at, _)| at).filter(|&at| at > own).collect();
        let newest = recorded.iter().copied().max().unwrap_or(own);
        let mut outcomes = Vec::new();
        for rules in rules.iter().rev().take(1 + question.overlapped) {
            let fits = |shard, at| self.fits(rules, shard, &shards[shard], cost, at);
            for at in newest..=newest.max(latest) {
                if (0..shards.len()).all(|shard| !fits(shard, at)) {
                    outcomes.push((Verdict::Refused { retry_after: None }, state.clone()));
                } else if !takes {
                    outcomes.push((Verdict::Admitted, state.clone()));
                }
            }
            for at in (own..=latest).chain(recorded.iter().copied()).filter(|_| takes) {
                for (shard, admitted) in shards.iter().enumerate() {
                    let at = at.max(admitted.last().map_or(0, |&(newest, _)| newest));
                    if fits(shard, at) {
                        let mut next = state.clone();
                        next.1[shard].push((at, cost));
                        outcomes.push((Verdict::Admitted, next));
                    }
                }
            }
        }
        Some(outcomes)
    }
}
