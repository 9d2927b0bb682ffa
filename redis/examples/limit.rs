//! A hundred a minute for each user, over all programs that use this server.
use std::time::Duration;
use tollgate_redis::Limiter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = redis::Client::open(std::env::args().nth(1).unwrap_or("redis://127.0.0.1/".into()))?;
    let limiter = Limiter::builder("api", 100, Duration::from_secs(60))
        .build(client.get_connection_manager().await?)?;
    limiter.verify().await?;
    match limiter.check("user-42", 1).await?.decision {
        Ok(quota) => println!("{} left", quota.remaining),
        Err(denied) => println!("429, retry after {:?}", denied.retry_after()),
    }
    Ok(())
}
