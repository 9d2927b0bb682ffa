//! A Redis cluster.

use redis::{IntoConnectionInfo, cluster::ClusterClientBuilder};

/// A builder for a client of the cluster that these nodes belong to, which never sends a call twice.
///
/// The client's own default is to repeat a command when a connection breaks, and a check whose reply was lost may have
/// been counted. Redirections are still followed: a node that says MOVED has run nothing, and the limiter asks the right one.
/// Add users, passwords and TLS as you need.
///
/// All limits of one id lie in one slot, so each check is one call to one node. While a slot is being moved, calls for a key
/// that has already left are failures ([`Failure::Server`](crate::Failure::Server)), and the policy decides.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tollgate_redis::{Limiter, cluster_client};
///
/// let client = cluster_client(["redis://10.0.0.1/", "redis://10.0.0.2/"]).build()?;
/// let connection = client.get_async_connection().await?;
/// let limiter = Limiter::builder("api", 100, Duration::from_secs(60)).build(connection)?;
/// # Ok(())
/// # }
/// ```
pub fn cluster_client<T: IntoConnectionInfo>(nodes: impl IntoIterator<Item = T>) -> ClusterClientBuilder {
    ClusterClientBuilder::new(nodes).retries(0)
}
