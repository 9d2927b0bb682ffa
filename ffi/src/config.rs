//! What a caller asks for, and what the core makes of it.

use core::{ptr::NonNull, time::Duration};

#[cfg(feature = "shards")]
use tollgate::Parted;
#[cfg(feature = "std")]
use tollgate::{Compact, CompactBuilder, Sampled, SampledBuilder, Wheel, WheelBuilder};
use tollgate::{
    Config, Coverage, Fixed, FixedBuilder, FixedConfig, Gcra, GcraBuilder, GcraConfig, Log, LogBuilder,
    LogConfig, Pacing, PacingBuilder, RULES_MAX, TwoWindow, TwoWindowBuilder, TwoWindowConfig, Window,
    WindowBuilder, WindowConfig,
};

use crate::status::tollgate_status::{self, *};

/// The most rules of one limiter.
pub const TOLLGATE_MAX_RULES: usize = 8;
/// The size of `tollgate_config_t`, for its `struct_size`.
pub const TOLLGATE_CONFIG_SIZE: u32 = 200;

/// The exact sliding-window log. Rules: 1 to 8. Lock-free; 8 bytes for each permit of the largest limit (at most 2^30).
pub const TOLLGATE_LOG: u32 = 1;
/// The sliding-window counter. Rules: 1 to 8. Lock-free. `buckets`: buckets of the shortest window (default 10); every
/// window must be a multiple of such a bucket. `reserved[0]`: the phase, see `tollgate_config_t`. The limit is at most
/// about the nanoseconds of a bucket: 134,217,727 for a second in 10 buckets; less where windows differ.
pub const TOLLGATE_WINDOW: u32 = 2;
/// The fixed window: up to twice the limit around an edge. One rule. Lock-free. `reserved[0]`: the phase. The limit is at
/// most about twice the nanoseconds of the window: 2,147,483,647 for a second.
pub const TOLLGATE_FIXED: u32 = 3;
/// The estimate from two fixed windows. One rule. Lock-free. `reserved[0]`: the phase. The limit is at most about the
/// square root of twice the nanoseconds of the window: 32,767 for a second, 262,143 for a minute.
pub const TOLLGATE_TWO_WINDOW: u32 = 4;
/// The generic cell rate algorithm: `limit` permits per window, coming back one by one. One rule. Lock-free. `burst`:
/// how many may be taken at once (default: the limit). The limit is at most one permit a nanosecond.
pub const TOLLGATE_GCRA: u32 = 5;
/// The token bucket: GCRA, where `burst` is the capacity.
pub const TOLLGATE_TOKEN_BUCKET: u32 = 5;
/// The leaky bucket as a meter: GCRA, where `burst` is the size of the bucket.
pub const TOLLGATE_LEAKY_BUCKET: u32 = 5;
/// The leaky bucket as a queue: `tollgate_reserve` tells how long to wait. One rule. Lock-free. `burst`: how many may
/// queue, beside the one in service (default: the limit); 0 can not be asked for. The limit is at most one permit a
/// nanosecond. By `tollgate_create` alone.
pub const TOLLGATE_PACING: u32 = 6;
/// The log in 4 bytes a permit, exact to a tick. One rule. TAKES A LOCK. `buckets`: ticks of the window, at most 2^30 - 1,
/// of which the window must be a multiple (default: the finest decimal tick). By `tollgate_create` alone.
pub const TOLLGATE_COMPACT: u32 = 7;
/// The log of every `buckets`-th permit (default: 1 % of the limit). One rule. TAKES A LOCK. With
/// `TOLLGATE_BERNOULLI` each permit is recorded with the probability 1 / `buckets`, from the seed `reserved[0]`.
/// By `tollgate_create` alone.
pub const TOLLGATE_SAMPLED: u32 = 8;
/// The timing wheel. One rule. TAKES A LOCK. `buckets`: slots of the window, of which it must be a multiple
/// (default: the finest decimal width of which 60,000 slots reach over it). By `tollgate_create` alone.
pub const TOLLGATE_WHEEL: u32 = 9;

/// `TOLLGATE_WINDOW`: look back `buckets` buckets and not one more. No permit comes back late, but a window may hold
/// the admissions of one bucket more than the limit.
pub const TOLLGATE_TEXTBOOK_COVERAGE: u32 = 1;
/// Count what `tollgate_stats` tells. Costs up to three more atomic operations a call.
pub const TOLLGATE_STATS: u32 = 2;
/// `TOLLGATE_SAMPLED`: choose by chance.
pub const TOLLGATE_BERNOULLI: u32 = 4;
/// `TOLLGATE_LOG`, `_WINDOW`, `_FIXED`, `_TWO_WINDOW`, `_COMPACT`: `tollgate_set_rules` may change the rules; `TOLLGATE_GCRA`:
/// `tollgate_set_rate_at` the rate and the burst. `reserved[1]` says how far:
/// see `tollgate_config_t`. A call copies 6 to 55 words more. By `tollgate_create`; of regions in
/// `tollgate_shm_config_t`, for `tollgate_shm_set_rules`.
pub const TOLLGATE_LIVE: u32 = 8;

/// At most `limit` permits in any `window_ns` nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct tollgate_rule_t {
    /// Permits per window; 0 refuses every cost above 0.
    pub limit: u64,
    /// 1 to 2^62 - 1.
    pub window_ns: u64,
}

/// What a limiter is to be. Begin with `TOLLGATE_CONFIG_INIT`, or with zeros and `struct_size`. In every field but
/// those of rules, 0 means the default; fields that an algorithm does not use must be 0.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct tollgate_config_t {
    /// `TOLLGATE_CONFIG_SIZE`.
    pub struct_size: u32,
    /// `TOLLGATE_LOG` and its like; there is no default.
    pub algorithm: u32,
    /// How many of `rules` count, from the first; the others must be 0.
    pub rule_count: u32,
    /// See the algorithm.
    pub buckets: u32,
    /// `TOLLGATE_CLOCK_PRECISE` and its like; there is no default.
    pub clock: u32,
    /// A sum of `TOLLGATE_TEXTBOOK_COVERAGE`, `TOLLGATE_STATS`, `TOLLGATE_BERNOULLI`, `TOLLGATE_LIVE`.
    pub flags: u32,
    /// `TOLLGATE_LOG` and `_WINDOW` of one rule: over how many shards the limit is spread, so that threads do not meet on one
    /// cache line: as many as threads call at once, at most 65,536. A thread begins at a shard of its own and is refused
    /// only after all have refused. 0 and 1: not spread. The largest cost is the smallest part above 0. A library that was
    /// built without shards answers `TOLLGATE_E_UNSUPPORTED` to more.
    pub shards: u32,
    /// The largest cost of a call. Default: any cost up to the limit (the burst). `TOLLGATE_LOG` is faster with 1.
    pub max_cost: u32,
    /// See the algorithm.
    pub burst: u64,
    /// The rules: all must have room, or nothing is taken from any.
    pub rules: [tollgate_rule_t; TOLLGATE_MAX_RULES],
    /// `reserved[0]`: for `TOLLGATE_WINDOW`, `_FIXED` and `_TWO_WINDOW` the phase in nanoseconds, below the width of a
    /// bucket (the window), by which edges are shifted; for `TOLLGATE_SAMPLED` with `TOLLGATE_BERNOULLI` the seed.
    /// `reserved[1]`, with `TOLLGATE_LIVE`: for `TOLLGATE_LOG` and `_COMPACT` the largest limit that it may ever get, which sets its
    /// memory (default: the largest now; needed with shards); for `TOLLGATE_WINDOW` the longest window in nanoseconds (default: the
    /// longest now); for `TOLLGATE_GCRA` the largest limit per its window (default: that now). Else, and the other two: 0.
    pub reserved: [u64; 4],
}

/// The words that a configuration is made of.
pub(crate) const CONFIG_WORDS: usize = size_of::<tollgate_config_t>() / 8;

const _: () = assert!(size_of::<tollgate_config_t>() == TOLLGATE_CONFIG_SIZE as usize);
const _: () = assert!(TOLLGATE_MAX_RULES == RULES_MAX);

/// What the core makes of a configuration: a configuration of its own, whose state lies where we say, or a builder of
/// something that keeps its own memory.
#[cfg_attr(
    feature = "shards",
    expect(clippy::large_enum_variant, reason = "it lies on the stack, for as long as a limiter is made")
)]
pub(crate) enum Plan {
    Log(LogConfig),
    Window(WindowConfig),
    Fixed(FixedConfig),
    TwoWindow(TwoWindowConfig),
    Gcra(GcraConfig),
    #[cfg(feature = "shards")]
    ShardedLog(Parted<LogConfig>),
    #[cfg(feature = "shards")]
    ShardedWindow(Parted<WindowConfig>),
    Pacing(PacingBuilder),
    #[cfg(any(feature = "heap", feature = "shm"))]
    Live(Life),
    #[cfg(feature = "std")]
    Compact(CompactBuilder),
    #[cfg(feature = "std")]
    Sampled(SampledBuilder),
    #[cfg(feature = "std")]
    Wheel(WheelBuilder),
}

/// A limiter whose rules are to change.
#[cfg(any(feature = "heap", feature = "shm"))]
pub(crate) enum Life {
    Log(LogBuilder),
    Window(WindowBuilder),
    #[cfg(all(feature = "heap", feature = "shards"))]
    ShardedLog(LogBuilder),
    #[cfg(all(feature = "heap", feature = "shards"))]
    ShardedWindow(WindowBuilder),
    Fixed(FixedBuilder),
    TwoWindow(TwoWindowBuilder),
    #[cfg(feature = "heap")]
    Gcra(GcraBuilder),
    #[cfg(all(feature = "heap", feature = "std"))]
    Compact(CompactBuilder),
}

/// In the number of a form: it has shards.
pub(crate) const SHARDED: u32 = 1 << 30;
/// In the number of a form: its rules may change.
pub(crate) const LIVE: u32 = 1 << 29;

/// In the number of a form: its state lies in a region.
#[cfg(feature = "shm")]
pub(crate) const FAR: u32 = 1 << 28;

/// Asks what the core made of a configuration, if its state lies where we say.
macro_rules! placed {
    ($plan:expr, $config:ident => $answer:expr, $else:expr) => {
        match $plan {
            Self::Log($config) => $answer,
            Self::Window($config) => $answer,
            Self::Fixed($config) => $answer,
            Self::TwoWindow($config) => $answer,
            Self::Gcra($config) => $answer,
            #[cfg(feature = "shards")]
            Self::ShardedLog($config) => $answer,
            #[cfg(feature = "shards")]
            Self::ShardedWindow($config) => $answer,
            _ => $else,
        }
    };
}

// === impl tollgate_config_t ===

impl tollgate_config_t {
    /// As the words of a handle.
    pub(crate) fn words(&self) -> [u64; CONFIG_WORDS] {
        // SAFETY: contract of `transmute`: words and halves of words, without padding.
        unsafe { core::mem::transmute::<Self, [u64; CONFIG_WORDS]>(*self) }
    }

    /// From the words of a handle.
    pub(crate) fn from_words(words: [u64; CONFIG_WORDS]) -> Self {
        // SAFETY: contract of `transmute`: any bits are a configuration, if not a valid one.
        unsafe { core::mem::transmute::<[u64; CONFIG_WORDS], Self>(words) }
    }

    /// Whether `tollgate_stats` is to count.
    pub(crate) fn counts(&self) -> bool {
        self.flags & TOLLGATE_STATS != 0
    }

    /// Whether the limit is spread.
    pub(crate) fn is_sharded(&self) -> bool {
        self.shards > 1
    }

    fn is_live(&self) -> bool {
        self.flags & TOLLGATE_LIVE != 0
    }

    /// The number of what a limiter of this configuration holds.
    pub(crate) fn form(&self) -> u32 {
        let is = |holds, bit| if holds { bit } else { 0 };
        self.algorithm | is(self.is_sharded(), SHARDED) | is(self.is_live(), LIVE)
    }

    /// Checks everything but the clock.
    pub(crate) fn plan(&self) -> Result<Plan, tollgate_status> {
        if self.struct_size != TOLLGATE_CONFIG_SIZE {
            return Err(TOLLGATE_E_SIZE);
        }
        self.validate()?;
        if self.is_live() {
            return self.live_plan();
        }
        let (limit, window, cost) = (self.rules[0].limit, span(self.rules[0].window_ns), self.cost());
        Ok(match self.algorithm {
            #[cfg(feature = "shards")]
            TOLLGATE_LOG if self.is_sharded() => {
                Plan::ShardedLog(self.log().config_sharded(self.shards as usize)?)
            }
            #[cfg(feature = "shards")]
            TOLLGATE_WINDOW if self.is_sharded() => {
                Plan::ShardedWindow(self.window().config_sharded(self.shards as usize)?)
            }
            _ if self.is_sharded() => return Err(TOLLGATE_E_UNSUPPORTED),
            TOLLGATE_LOG => Plan::Log(self.log().config()?),
            TOLLGATE_WINDOW => Plan::Window(self.window().config()?),
            TOLLGATE_FIXED => Plan::Fixed(self.fixed().config()?),
            TOLLGATE_TWO_WINDOW => Plan::TwoWindow(self.two_window().config()?),
            TOLLGATE_GCRA => Plan::Gcra(self.gcra().config()?),
            TOLLGATE_PACING => {
                let start = Pacing::builder(limit, window).max_cost(cost);
                Plan::Pacing(if self.burst > 0 { start.queue(self.burst) } else { start })
            }
            #[cfg(feature = "std")]
            TOLLGATE_COMPACT => Plan::Compact(self.compact()?),
            #[cfg(feature = "std")]
            TOLLGATE_SAMPLED => {
                let start = Sampled::builder(limit, window).max_cost(cost);
                let every = if self.buckets > 0 { self.buckets.into() } else { (limit / 100).max(1) };
                Plan::Sampled(if self.flags & TOLLGATE_BERNOULLI != 0 {
                    start.bernoulli(every, self.reserved[0])
                } else {
                    start.every(every)
                })
            }
            #[cfg(feature = "std")]
            TOLLGATE_WHEEL => {
                let start = Wheel::builder(limit, window).max_cost(cost);
                Plan::Wheel(match self.part()? {
                    Some(slot) => start.geometry(self.buckets.div_ceil(1_000), 1_000, slot),
                    None => start,
                })
            }
            #[cfg(not(feature = "std"))]
            TOLLGATE_COMPACT..=TOLLGATE_WHEEL => return Err(TOLLGATE_E_UNSUPPORTED),
            _ => return Err(TOLLGATE_E_INVALID),
        })
    }

    /// What is to be built if the rules are to change.
    #[cfg(any(feature = "heap", feature = "shm"))]
    fn live_plan(&self) -> Result<Plan, tollgate_status> {
        Ok(Plan::Live(match (self.algorithm, self.is_sharded()) {
            (TOLLGATE_LOG, false) => Life::Log(self.log()),
            #[cfg(all(feature = "heap", feature = "shards"))]
            (TOLLGATE_LOG, true) => Life::ShardedLog(self.log()),
            (TOLLGATE_WINDOW, false) => Life::Window(self.window()),
            #[cfg(all(feature = "heap", feature = "shards"))]
            (TOLLGATE_WINDOW, true) => Life::ShardedWindow(self.window()),
            (TOLLGATE_FIXED, false) => Life::Fixed(self.fixed()),
            (TOLLGATE_TWO_WINDOW, false) => Life::TwoWindow(self.two_window()),
            #[cfg(feature = "heap")]
            (TOLLGATE_GCRA, false) => Life::Gcra(self.gcra()),
            #[cfg(all(feature = "heap", feature = "std"))]
            (TOLLGATE_COMPACT, false) => Life::Compact(self.compact()?),
            _ => return Err(TOLLGATE_E_UNSUPPORTED),
        }))
    }

    #[cfg(not(any(feature = "heap", feature = "shm")))]
    fn live_plan(&self) -> Result<Plan, tollgate_status> {
        Err(TOLLGATE_E_UNSUPPORTED)
    }

    fn log(&self) -> LogBuilder {
        let first = self.rules[0];
        let mut start =
            Log::builder(first.limit, span(first.window_ns)).max_cost(self.cost()).capacity(self.reserved[1]);
        for rule in self.further_rules() {
            start = start.rule(rule.limit, span(rule.window_ns));
        }
        start
    }

    fn window(&self) -> WindowBuilder {
        let first = self.rules[0];
        let mut start =
            Window::builder(first.limit, span(first.window_ns)).max_cost(self.cost()).phase(self.phase());
        if self.buckets > 0 {
            start = start.buckets(self.buckets.into());
        }
        if self.flags & TOLLGATE_TEXTBOOK_COVERAGE != 0 {
            start = start.coverage(Coverage::Textbook);
        }
        if self.reserved[1] > 0 {
            start = start.window_max(span(self.reserved[1]));
        }
        for rule in self.further_rules() {
            start = start.rule(rule.limit, span(rule.window_ns));
        }
        start
    }

    fn fixed(&self) -> FixedBuilder {
        let first = self.rules[0];
        Fixed::builder(first.limit, span(first.window_ns)).max_cost(self.cost()).phase(self.phase())
    }

    fn two_window(&self) -> TwoWindowBuilder {
        let first = self.rules[0];
        TwoWindow::builder(first.limit, span(first.window_ns)).max_cost(self.cost()).phase(self.phase())
    }

    fn gcra(&self) -> GcraBuilder {
        let window = span(self.rules[0].window_ns);
        let mut start = Gcra::builder(self.rules[0].limit, window).max_cost(self.cost());
        if self.burst > 0 {
            start = start.burst(self.burst);
        }
        if self.reserved[1] > 0 { start.rate_max(self.reserved[1], window) } else { start }
    }

    #[cfg(feature = "std")]
    fn compact(&self) -> Result<CompactBuilder, tollgate_status> {
        let first = self.rules[0];
        let mut start = Compact::builder(first.limit, span(first.window_ns)).max_cost(self.cost());
        if let Some(tick) = self.part()? {
            start = start.tick(tick);
        }
        Ok(if self.reserved[1] > 0 { start.capacity(self.reserved[1]) } else { start })
    }

    /// The largest cost.
    fn cost(&self) -> u64 {
        if self.max_cost == 0 { u64::MAX } else { self.max_cost.into() }
    }

    fn phase(&self) -> Duration {
        span(self.reserved[0])
    }

    /// Checks what the algorithm does not use, and the number of rules.
    fn validate(&self) -> Result<(), tollgate_status> {
        let is = |algorithms: &[u32]| algorithms.contains(&self.algorithm);
        let mut flags = TOLLGATE_STATS | TOLLGATE_LIVE;
        if is(&[TOLLGATE_WINDOW]) {
            flags |= TOLLGATE_TEXTBOOK_COVERAGE;
        }
        if is(&[TOLLGATE_SAMPLED]) {
            flags |= TOLLGATE_BERNOULLI;
        }
        let most = if is(&[TOLLGATE_LOG, TOLLGATE_WINDOW]) { TOLLGATE_MAX_RULES as u32 } else { 1 };
        let unused = self.rules.get(self.rule_count as usize..).unwrap_or(&[]);
        let has_word = is(&[TOLLGATE_WINDOW, TOLLGATE_FIXED, TOLLGATE_TWO_WINDOW])
            || self.flags & TOLLGATE_BERNOULLI != 0;
        let valid = self.flags & !flags == 0
            && (1..=most).contains(&self.rule_count)
            && unused.iter().all(|rule| *rule == tollgate_rule_t::default())
            && (self.buckets == 0
                || is(&[TOLLGATE_WINDOW, TOLLGATE_COMPACT, TOLLGATE_SAMPLED, TOLLGATE_WHEEL]))
            && (self.burst == 0 || is(&[TOLLGATE_GCRA, TOLLGATE_PACING]))
            && (self.reserved[0] == 0 || has_word)
            && (self.reserved[1] == 0
                || self.is_live() && is(&[TOLLGATE_LOG, TOLLGATE_WINDOW, TOLLGATE_GCRA, TOLLGATE_COMPACT]))
            && self.reserved[2..] == [0; 2];
        if valid { Ok(()) } else { Err(TOLLGATE_E_INVALID) }
    }

    /// The rules after the first.
    fn further_rules(&self) -> &[tollgate_rule_t] {
        self.rules.get(1..self.rule_count as usize).unwrap_or(&[])
    }

    /// A `buckets`-th of the window, which must be whole.
    #[cfg(feature = "std")]
    fn part(&self) -> Result<Option<Duration>, tollgate_status> {
        let (window, parts) = (self.rules[0].window_ns, u64::from(self.buckets));
        match window.checked_rem(parts) {
            None => Ok(None),
            Some(0) => Ok(Some(span(window / parts))),
            Some(_) => Err(TOLLGATE_E_INVALID),
        }
    }
}

/// Lines of cache that statistics take, so that threads on different shards do not meet there either.
pub(crate) fn stats_lines(shards: u32) -> usize {
    (shards as usize).clamp(1, 64)
}

fn span(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

// === impl Plan ===

impl Plan {
    /// What the core made of the configuration, and how many bytes a state takes; nothing for what keeps its own memory.
    pub(crate) fn placed(&self) -> Option<(&[u64], usize)> {
        placed!(self, config => Some((config.words(), config.state_bytes())), None)
    }

    /// Bytes of what the core made of it.
    pub(crate) fn derived_bytes(&self) -> usize {
        placed!(self, config => size_of_val(config), 0)
    }

    /// Whether what lies at `state`, from wherever it came, would keep a call inside of it.
    ///
    /// # Safety
    /// A state of this configuration has room there.
    pub(crate) unsafe fn accepts(&self, state: NonNull<u8>) -> bool {
        // SAFETY: the contract of this function.
        placed!(self, config => unsafe { config.accepts(state) }, false)
    }
}
