use std::time::Duration;
use tollgate::{ConfigError, Keyed, Limiter, Precise, Window};

/// 3,000 per 10s, for each key (client), with room for 1,402 keys.
pub fn limiter() -> Result<Limiter<Keyed<str>, Precise>, ConfigError> {
    let window = Duration::from_nanos(10_000_000_000);
    let each = Window::builder(3_000, window).buckets(50).config()?;
    Ok(Limiter::precise(Keyed::builder(each, 1_402).build()?))
}
