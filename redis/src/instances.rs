//! How many instances share a limit, and each one's portion of it.

#[cfg(test)]
mod model;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use redis::{RedisError, aio::ConnectionLike};

use crate::{BuildError, script::Script};

/// This instance's number and how many there are: known by configuration, or kept up to date by a [`Heartbeat`].
/// Clones see the same value.
///
/// # Examples
/// ```
/// use tollgate_redis::{Instances, portion};
///
/// // Ten permits over three instances: 4, 3, 3.
/// assert_eq!([0, 1, 2].map(|index| portion(10, index, 3)), [4, 3, 3]);
///
/// let instances = Instances::new(2, 3)?;
/// assert_eq!(instances.get(), (2, 3));
/// # Ok::<(), tollgate_redis::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Instances(Arc<AtomicU64>);

/// What instance `index` of `count` may give of `limit`: an equal part, and the first of them one more until the
/// remainder is dealt out. All portions together are `limit`.
pub const fn portion(limit: u64, index: u32, count: u32) -> u64 {
    let (index, count) = (index as u64, count as u64);
    match limit.checked_div(count) {
        Some(part) => part + (index < limit % count) as u64,
        None => 0,
    }
}

/// The most that instances can give together in any window while their number goes from `from` to `to`: some leave or some
/// join, and each sees it once, at a time of its own.
///
/// An instance gives no more than the larger of its two portions, and one that is not there gives nothing. Who leaves or
/// joins may move the others up or down by a place, so the portions before, largest first, are paired with those after,
/// smallest first: no other pairing gives more. (One that is replaced by another is a departure and an arrival.) At most
/// `u64::MAX`, should it be more.
///
/// # Cost
/// A step for each instance of the larger number.
///
/// # Examples
/// ```
/// use tollgate_redis::change_bound;
///
/// // 4, 3, 3 and nothing before; 2, 2, 3, 3 after.
/// assert_eq!(change_bound(10, 3, 4), 4 + 3 + 3 + 3);
/// assert_eq!(change_bound(10, 4, 3), 3 + 3 + 3 + 4);
/// assert_eq!(change_bound(10, 3, 3), 10);
/// ```
pub const fn change_bound(limit: u64, from: u32, to: u32) -> u64 {
    if from == to {
        return limit;
    }
    let most = if from > to { from } else { to };
    let (mut sum, mut index) = (0u64, 0);
    while index < most {
        let place = most - 1 - index;
        let before = if index < from { portion(limit, index, from) } else { 0 };
        let after = if place < to { portion(limit, place, to) } else { 0 };
        sum = sum.saturating_add(if before > after { before } else { after });
        index += 1;
    }
    sum
}

/// Counts the instances that are alive, in one sorted set on the server: each adds itself every period, and one that was
/// not seen for three periods is counted no more.
///
/// Between two beats an instance may hold an old count; [`change_bound`] says what that can cost. If the server can not be
/// asked, the last count stays.
#[derive(Debug)]
pub struct Heartbeat {
    instances: Instances,
    script: Script,
    key: String,
    id: String,
    period: Duration,
}

/// Beats after which a silent instance is given up.
const MISSED: u32 = 3;

// === impl Instances ===

impl Instances {
    /// Instance `index` (from 0) of `count`.
    ///
    /// # Errors
    /// No instances at all, or an index that is not below their number.
    pub fn new(index: u32, count: u32) -> Result<Self, BuildError> {
        Self::packed(index, count).map(|packed| Self(Arc::new(AtomicU64::new(packed))))
    }

    /// This is the only instance.
    pub fn alone() -> Self {
        Self(Arc::new(AtomicU64::new(1)))
    }

    /// This instance's index and the number of instances.
    pub fn get(&self) -> (u32, u32) {
        let packed = self.0.load(Relaxed);
        ((packed >> 32) as u32, packed as u32)
    }

    /// Changes both at once.
    ///
    /// # Errors
    /// As [`new`](Instances::new).
    pub fn set(&self, index: u32, count: u32) -> Result<(), BuildError> {
        Self::packed(index, count).map(|packed| self.0.store(packed, Relaxed))
    }

    /// This instance's portion of `limit`.
    pub fn portion(&self, limit: u64) -> u64 {
        let (index, count) = self.get();
        portion(limit, index, count)
    }

    fn packed(index: u32, count: u32) -> Result<u64, BuildError> {
        if count == 0 {
            return Err(BuildError::Number { of: "instances", got: 0, min: 1, max: u32::MAX.into() });
        }
        if index >= count {
            let max = u64::from(count) - 1;
            return Err(BuildError::Number { of: "instance index", got: index.into(), min: 0, max });
        }
        Ok(u64::from(index) << 32 | u64::from(count))
    }
}

// === impl Heartbeat ===

impl Heartbeat {
    /// Instance `id` of those that beat on `key`, every `period`. Two instances must not have one id.
    ///
    /// # Errors
    /// A period below 1 ms or above an hour.
    pub fn new(
        instances: &Instances,
        key: impl Into<String>,
        id: impl Into<String>,
        period: Duration,
    ) -> Result<Self, BuildError> {
        let max = Duration::from_secs(3_600);
        if period < Duration::from_millis(1) || period > max {
            return Err(BuildError::Span { of: "heartbeat period", got: period, max });
        }
        let script = Script::new(include_str!("lua/heartbeat.lua"));
        Ok(Self { instances: instances.clone(), script, key: key.into(), id: id.into(), period })
    }

    /// Beats once and takes over the count.
    ///
    /// # Errors
    /// The server's or the connection's; the count stays as it was.
    pub async fn beat<C: ConnectionLike>(&self, connection: &mut C) -> Result<(), RedisError> {
        let life = (self.period * MISSED).as_micros() as u64;
        let (index, count): (u32, u32) = self
            .script
            .run(connection, |command| {
                command.arg(1).arg(&self.key).arg(&self.id).arg(life);
            })
            .await?;
        // The script counts this instance too, so its answer is always valid.
        if let Ok(packed) = Instances::packed(index, count) {
            self.instances.0.store(packed, Relaxed);
        }
        Ok(())
    }

    /// Beats for ever; to be spawned, and aborted when the instance ends. `failed` is told of every beat that failed.
    pub async fn run<C: ConnectionLike>(&self, mut connection: C, mut failed: impl FnMut(RedisError)) {
        let mut tick = tokio::time::interval(self.period);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if let Err(error) = self.beat(&mut connection).await {
                failed(error);
            }
        }
    }

    /// Takes this instance out of the count before it ends.
    ///
    /// # Errors
    /// The server's or the connection's; the instance is then given up after three periods.
    pub async fn leave<C: ConnectionLike>(&self, connection: &mut C) -> Result<(), RedisError> {
        redis::cmd("ZREM").arg(&self.key).arg(&self.id).query_async(connection).await
    }
}
