use std::time::Duration;
use tollgate::{ConfigError, Limiter, Precise, Window};

/// 3,000 per 10s, for each key (client).
pub fn limiter() -> Result<Limiter<Window, Precise>, ConfigError> {
    let window = Duration::from_nanos(10_000_000_000);
    Ok(Limiter::precise(Window::builder(3_000, window).buckets(50).build()?))
}
