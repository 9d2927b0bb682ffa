//! One call of a store's script, and its reply.

use redis::{FromRedisValue, ParsingError, RedisError, Value, aio::ConnectionLike};
use tollgate::{Decision, Denied, Nanos, Quota, Reason, Rule};

use crate::{Store, script::Script, store::micros};

/// What to do with the units asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Take all or none.
    Take = 0,
    /// Take as many as fit.
    Part = 1,
    /// Take none, say what [`Take`](Mode::Take) would.
    Peek = 2,
}

/// How much the reply tells beyond units and wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Report {
    /// No more, and unless a part is taken, not even when and by which rule.
    Nothing = 0,
    /// When one unit more will fit.
    Ahead = 1,
    /// Everything that a [`Quota`] holds.
    Figures = 2,
}

/// One call of a store's script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Take, take part, or peek.
    pub mode: Mode,
    /// Units asked for: at most the least capacity of the rules.
    pub cost: u64,
    /// How much to tell.
    pub report: Report,
    /// [`Store::Ring`] only: units are recorded at the time judged plus this, so that they may be spent until then.
    pub hold: Nanos,
    /// The time in place of the server's clock, microseconds used: for tests and replays. Keys then live an hour.
    pub now: Option<Nanos>,
}

/// What the script answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reply {
    /// Units taken (that could be taken, when peeking).
    pub granted: u64,
    /// Zero if all asked for were granted; else how long until they would be (taking part: until one more would).
    pub retry_after: Nanos,
    /// The time judged: since 1970 by the server's clock, never running back for one key. Zero with [`Report::Nothing`]
    /// unless a part is taken.
    pub at: Nanos,
    /// The rule that refused, else the one with the least left (of those figures that were asked for). 0 with
    /// [`Report::Nothing`] unless a part is taken.
    pub rule: usize,
    /// How long until one unit more fits, zero if one fits now; `None` if it was not asked for.
    pub ahead: Option<Nanos>,
    /// Left, until more is left, until nothing is charged; `None` if it was not asked for.
    pub figures: Option<(u64, Nanos, Nanos)>,
}

/// A store's script, ready to be called: the lowest level, one call for one answer, with no deadline and no second tier.
#[derive(Debug, Clone)]
pub struct Scripted {
    store: Store,
    script: Script,
}

// === impl Scripted ===

impl Scripted {
    /// The script of `store`.
    pub fn new(store: Store) -> Self {
        Self { store, script: store.script() }
    }

    /// Judges `call` on one key for each rule, all at one time, and takes from all of them or from none.
    ///
    /// # Errors
    /// The server's or the connection's. Unless it is the server's own, nobody knows whether the call ran.
    /// # Cost
    /// One round trip; one more after the server has forgotten the script.
    pub async fn call<C: ConnectionLike>(
        &self,
        connection: &mut C,
        keys: &[Vec<u8>],
        rules: &[Rule],
        call: Call,
    ) -> Result<Reply, RedisError> {
        let request = self.request(rules, call);
        self.script
            .run(connection, |command| {
                command.arg(keys.len());
                for key in keys {
                    command.arg(key.as_slice());
                }
                command.arg(request.as_slice());
            })
            .await
    }

    /// The script's one argument, as `lua/open.lua` takes it apart.
    fn request(&self, rules: &[Rule], call: Call) -> Vec<u8> {
        let mut request = vec![call.mode as u8, call.report as u8, u8::from(call.now.is_some())];
        let mut add = |figure: u64| request.extend_from_slice(&figure.to_be_bytes());
        [call.cost, micros(call.hold), micros(call.now.unwrap_or_default())].into_iter().for_each(&mut add);
        rules.iter().flat_map(|rule| self.store.figures(*rule)).for_each(add);
        request
    }
}

// === impl Reply ===

impl FromRedisValue for Reply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let us = Nanos::from_micros;
        if let Value::Int(number) = value {
            let (granted, retry) = (number.max(0).unsigned_abs(), number.min(0).unsigned_abs());
            let at = Nanos::ZERO;
            return Ok(Self { granted, retry_after: us(retry), at, rule: 0, ahead: None, figures: None });
        }
        let packed: Vec<u8> = Vec::from_redis_value(value)?;
        let (words, rest) = packed.as_chunks();
        let reply: Vec<u64> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
        let strange = || ParsingError::from(format!("a reply of {} bytes", packed.len()));
        let (&[granted, retry, at, rule], more) = reply.split_first_chunk().ok_or_else(strange)?;
        let (ahead, figures) = match *more {
            _ if !rest.is_empty() => return Err(strange()),
            [] => (None, None),
            [ahead] => (Some(us(ahead)), None),
            [left, next, reset] => {
                (Some(us(if left > 0 { 0 } else { next })), Some((left, us(next), us(reset))))
            }
            _ => return Err(strange()),
        };
        Ok(Self {
            granted,
            retry_after: us(retry),
            at: us(at),
            rule: usize::try_from(rule).map_err(|_| ParsingError::from(format!("rule {rule}")))?,
            ahead,
            figures,
        })
    }
}

impl Reply {
    /// The core's record. Figures that were not asked for are those of the outcome alone: nothing left on a refusal.
    pub fn decision(&self, capacities: &[u64]) -> Decision {
        let mut quota = Quota::new(capacities.get(self.rule).copied().unwrap_or(0), self.at);
        quota.rule = self.rule;
        (quota.remaining, quota.next_after, quota.reset_after) = self.figures.unwrap_or_default();
        if self.retry_after == Nanos::ZERO {
            Ok(quota)
        } else {
            Err(Denied::new(Reason::Limit { retry_after: self.retry_after }, quota))
        }
    }
}
