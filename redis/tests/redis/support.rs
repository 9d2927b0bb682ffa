//! What the tests share: a small generator of random numbers.

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// One time in `n`.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tollgate_redis::{Builder, Limiter};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A reconnecting connection to a server that need not be there yet.
pub(crate) fn manager(url: &str) -> ConnectionManager {
    // The deadline under test is the limiter's; the client's own must not come before it on a busy machine.
    let config = ConnectionManagerConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
    ConnectionManager::new_lazy_with_config(redis::Client::open(url).unwrap(), config).unwrap()
}

/// For tests about answers, not about time: nothing stands in for the server, and a busy machine is no failure.
pub(crate) fn patient(builder: Builder) -> Builder {
    builder.deadline(Duration::from_secs(20)).on_failure(tollgate_redis::OnFailure::Closed)
}

/// A name for a rule kept by `store`.
pub(crate) fn name(store: tollgate_redis::Store) -> String {
    format!("{store:?}").replace(['{', '}', ' '], "")
}

/// How many of `calls` by turns are admitted.
pub(crate) async fn admitted(limiter: &Limiter<ConnectionManager>, id: &str, calls: usize) -> usize {
    let mut admitted = 0;
    for _ in 0..calls {
        admitted += usize::from(limiter.try_acquire(id, 1).await.unwrap().admitted);
    }
    admitted
}
