use std::time::Duration;
use tollgate::{ConfigError, Keyed, Limiter, Log, Precise};

/// 7 per 1s, for each key (client), with room for 4 keys.
pub fn limiter() -> Result<Limiter<Keyed<str>, Precise>, ConfigError> {
    let window = Duration::from_nanos(1_000_000_000);
    let each = Log::builder(7, window).max_cost(1).config()?;
    Ok(Limiter::precise(Keyed::builder(each, 4).build()?))
}

/// 2,000 per 1s, for all together.
pub fn limiter_for_all() -> Result<Limiter<Log, Precise>, ConfigError> {
    let window = Duration::from_nanos(1_000_000_000);
    Ok(Limiter::precise(Log::builder(2_000, window).max_cost(1).build()?))
}
