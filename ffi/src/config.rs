//! What a caller asks for, and what the core makes of it.

use core::{ptr::NonNull, time::Duration};

#[cfg(feature = "std")]
use tollgate::{Compact, CompactBuilder, Sampled, SampledBuilder, Wheel, WheelBuilder};
use tollgate::{
    Config, Coverage, Fixed, FixedConfig, Gcra, GcraConfig, Log, LogConfig, Pacing, PacingBuilder, RULES_MAX,
    TwoWindow, TwoWindowConfig, Window, WindowConfig,
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
    /// A sum of `TOLLGATE_TEXTBOOK_COVERAGE`, `TOLLGATE_STATS`, `TOLLGATE_BERNOULLI`.
    pub flags: u32,
    /// 0 or 1; more are not supported yet.
    pub shards: u32,
    /// The largest cost of a call. Default: any cost up to the limit (the burst). `TOLLGATE_LOG` is faster with 1.
    pub max_cost: u32,
    /// See the algorithm.
    pub burst: u64,
    /// The rules: all must have room, or nothing is taken from any.
    pub rules: [tollgate_rule_t; TOLLGATE_MAX_RULES],
    /// `reserved[0]`: for `TOLLGATE_WINDOW`, `_FIXED` and `_TWO_WINDOW` the phase in nanoseconds, below the width of a
    /// bucket (the window), by which edges are shifted; for `TOLLGATE_SAMPLED` with `TOLLGATE_BERNOULLI` the seed.
    /// Else, and the other three: 0.
    pub reserved: [u64; 4],
}

/// The words that a configuration is made of.
pub(crate) const CONFIG_WORDS: usize = size_of::<tollgate_config_t>() / 8;

const _: () = assert!(size_of::<tollgate_config_t>() == TOLLGATE_CONFIG_SIZE as usize);
const _: () = assert!(TOLLGATE_MAX_RULES == RULES_MAX);

/// What the core makes of a configuration: a configuration of its own, whose state lies where we say, or a builder of
/// something that keeps its own memory.
pub(crate) enum Plan {
    Log(LogConfig),
    Window(WindowConfig),
    Fixed(FixedConfig),
    TwoWindow(TwoWindowConfig),
    Gcra(GcraConfig),
    Pacing(PacingBuilder),
    #[cfg(feature = "std")]
    Compact(CompactBuilder),
    #[cfg(feature = "std")]
    Sampled(SampledBuilder),
    #[cfg(feature = "std")]
    Wheel(WheelBuilder),
}

/// Asks what the core made of a configuration, if its state lies where we say.
macro_rules! placed {
    ($plan:expr, $config:ident => $answer:expr, $else:expr) => {
        match $plan {
            Self::Log($config) => $answer,
            Self::Window($config) => $answer,
            Self::Fixed($config) => $answer,
            Self::TwoWindow($config) => $answer,
            Self::Gcra($config) => $answer,
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

    /// Checks everything but the clock.
    pub(crate) fn plan(&self) -> Result<Plan, tollgate_status> {
        if self.struct_size != TOLLGATE_CONFIG_SIZE {
            return Err(TOLLGATE_E_SIZE);
        }
        if self.shards > 1 {
            return Err(TOLLGATE_E_UNSUPPORTED);
        }
        self.validate()?;
        let (first, cost) = (self.rules[0], if self.max_cost == 0 { u64::MAX } else { self.max_cost.into() });
        let (limit, window, phase) = (first.limit, span(first.window_ns), span(self.reserved[0]));
        Ok(match self.algorithm {
            TOLLGATE_LOG => {
                let start = Log::builder(limit, window).max_cost(cost);
                Plan::Log(
                    self.further_rules().fold(start, |b, r| b.rule(r.limit, span(r.window_ns))).config()?,
                )
            }
            TOLLGATE_WINDOW => {
                let mut start = Window::builder(limit, window).max_cost(cost).phase(phase);
                if self.buckets > 0 {
                    start = start.buckets(self.buckets.into());
                }
                if self.flags & TOLLGATE_TEXTBOOK_COVERAGE != 0 {
                    start = start.coverage(Coverage::Textbook);
                }
                Plan::Window(
                    self.further_rules().fold(start, |b, r| b.rule(r.limit, span(r.window_ns))).config()?,
                )
            }
            TOLLGATE_FIXED => {
                Plan::Fixed(Fixed::builder(limit, window).max_cost(cost).phase(phase).config()?)
            }
            TOLLGATE_TWO_WINDOW => {
                Plan::TwoWindow(TwoWindow::builder(limit, window).max_cost(cost).phase(phase).config()?)
            }
            TOLLGATE_GCRA => {
                let start = Gcra::builder(limit, window).max_cost(cost);
                Plan::Gcra(if self.burst > 0 { start.burst(self.burst) } else { start }.config()?)
            }
            TOLLGATE_PACING => {
                let start = Pacing::builder(limit, window).max_cost(cost);
                Plan::Pacing(if self.burst > 0 { start.queue(self.burst) } else { start })
            }
            #[cfg(feature = "std")]
            TOLLGATE_COMPACT => {
                let start = Compact::builder(limit, window).max_cost(cost);
                Plan::Compact(match self.part()? {
                    Some(tick) => start.tick(tick),
                    None => start,
                })
            }
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

    /// Checks what the algorithm does not use, and the number of rules.
    fn validate(&self) -> Result<(), tollgate_status> {
        let is = |algorithms: &[u32]| algorithms.contains(&self.algorithm);
        let mut flags = TOLLGATE_STATS;
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
            && self.reserved[1..] == [0; 3];
        if valid { Ok(()) } else { Err(TOLLGATE_E_INVALID) }
    }

    /// The rules after the first.
    fn further_rules(&self) -> impl Iterator<Item = &tollgate_rule_t> {
        self.rules.iter().take(self.rule_count as usize).skip(1)
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

fn span(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

// === impl Plan ===

impl Plan {
    /// What the core made of the configuration, and how many bytes a state takes; nothing for what keeps its own memory.
    pub(crate) fn placed(&self) -> Option<(&[u64], usize)> {
        placed!(self, config => Some((config.words(), config.state_bytes())), None)
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
