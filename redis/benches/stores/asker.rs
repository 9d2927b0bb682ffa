//! Who asks: a connection, a limit, and the way it is kept.

use redis::aio::MultiplexedConnection;
use tollgate::{Nanos, Rule};
use tollgate_redis::{Call, Mode, Report, Scripted, Store};

/// The sorted set as tutorials have it, with members made unique by the caller: the baseline of all ratios.
const TEXTBOOK: &str = "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
local units = tonumber(ARGV[3])
if redis.call('ZCARD', KEYS[1]) + units > tonumber(ARGV[1]) then return 0 end
for i = 1, units do redis.call('ZADD', KEYS[1], now, ARGV[4] .. ':' .. i) end
redis.call('PEXPIRE', KEYS[1], math.ceil(tonumber(ARGV[2]) / 1000)) return units";

/// How a limit is kept: by a store of ours, or by the textbook's script.
#[derive(Clone, Copy)]
pub(crate) enum Kept {
    Ours(Store),
    /// The same, and the answer tells what is left.
    Told(Store),
    Textbook,
}

pub(crate) const KEPT: [(&str, Kept); 7] = [
    ("textbook set", Kept::Textbook),
    ("zset", Kept::Ours(Store::Zset)),
    ("ring", Kept::Ours(Store::Ring)),
    ("counter", Kept::Ours(Store::Counter { buckets: 16 })),
    ("gcra", Kept::Ours(Store::Gcra { burst: None })),
    ("zset, check", Kept::Told(Store::Zset)),
    ("ring, check", Kept::Told(Store::Ring)),
];

pub(crate) struct Asker {
    connection: MultiplexedConnection,
    kept: Kept,
    scripted: Scripted,
    textbook: redis::Script,
    rule: Rule,
    key: Vec<u8>,
    name: String,
    calls: u64,
}

impl Asker {
    pub(crate) fn new(connection: MultiplexedConnection, kept: Kept, rule: Rule, name: String) -> Self {
        Self::on(connection, kept, rule, name, "key")
    }

    /// On a key of this name.
    pub(crate) fn on(
        connection: MultiplexedConnection,
        kept: Kept,
        rule: Rule,
        name: String,
        key: &str,
    ) -> Self {
        let store = match kept {
            Kept::Ours(store) | Kept::Told(store) => store,
            Kept::Textbook => Store::Ring,
        };
        let (scripted, textbook) = (Scripted::new(store), redis::Script::new(TEXTBOOK));
        Self { connection, kept, scripted, textbook, rule, key: key.as_bytes().to_vec(), name, calls: 0 }
    }

    pub(crate) async fn admitted(&mut self, units: u64) -> bool {
        match self.kept {
            Kept::Ours(_) | Kept::Told(_) => {
                let told = matches!(self.kept, Kept::Told(_));
                let report = if told { Report::Figures } else { Report::Nothing };
                let call = Call { mode: Mode::Take, cost: units, report, hold: Nanos::ZERO, now: None };
                let keys = std::slice::from_ref(&self.key);
                self.scripted.call(&mut self.connection, keys, &[self.rule], call).await.unwrap().granted
                    == units
            }
            Kept::Textbook => {
                self.calls += 1;
                let member = format!("{}:{}", self.name, self.calls);
                let mut call = self.textbook.key(self.key.as_slice());
                call.arg(self.rule.limit).arg(self.rule.window.as_nanos() / 1_000).arg(units).arg(member);
                call.invoke_async::<u64>(&mut self.connection).await.unwrap() == units
            }
        }
    }
}
