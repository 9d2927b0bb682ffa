//! The algorithms by name, and how each is built from what the user asked for.

use std::{fmt, time::Duration};

use clap::{ValueEnum, builder::PossibleValue};
use tollgate::{
    Algorithm, Compact, ConfigError, Fixed, LeakyBucket, Log, Nanos, Pacing, Rule, Sampled, TokenBucket,
    TwoWindow, Wheel, Window,
};

/// Places tried for the bucket edges, evenly spread over one bucket.
pub(crate) const PHASES: u32 = 4;

/// Buckets per window, when nobody says.
const BUCKETS: u64 = 10;

/// An algorithm of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Log,
    Window,
    Compact,
    Fixed,
    TwoWindow,
    Token,
    Leaky,
    Paced,
    Sampled,
    Wheel,
}

/// What `--algorithm` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    All,
    One(Name),
}

/// What every limiter is built from.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// At least one.
    pub(crate) rules: Vec<Rule>,
    /// `None`: [`BUCKETS`].
    pub(crate) buckets: Option<u64>,
    /// `None`: the limit.
    pub(crate) burst: Option<u64>,
}

/// Why there is no such limiter.
#[derive(Debug, PartialEq)]
pub(crate) enum Unfit {
    /// It takes one rule, and there are that many.
    OneRule(usize),
    /// The library refused the configuration because the shortest of the windows, or another one, is not made of
    /// whole buckets.
    Ragged { why: ConfigError, buckets: u64, shortest: Nanos },
    /// The library refused the configuration.
    Config(ConfigError),
}

/// A limiter of one key.
pub(crate) enum Limiter {
    /// Answers yes or no.
    Gate(Box<dyn Algorithm>),
    /// Answers how long to wait.
    Queue(Box<Pacing>),
}

// === impl Name ===

impl Name {
    /// Every algorithm, in the order of the table.
    pub(crate) const ALL: [Self; 10] = [
        Self::Log,
        Self::Window,
        Self::Compact,
        Self::Fixed,
        Self::TwoWindow,
        Self::Token,
        Self::Leaky,
        Self::Paced,
        Self::Sampled,
        Self::Wheel,
    ];

    /// The name in options, tables and JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Window => "window",
            Self::Compact => "compact",
            Self::Fixed => "fixed",
            Self::TwoWindow => "two-window",
            Self::Token => "token",
            Self::Leaky => "leaky",
            Self::Paced => "paced",
            Self::Sampled => "sampled",
            Self::Wheel => "wheel",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Log => "exact sliding window: the time of each admission (several rules)",
            Self::Window => "sliding window of --buckets buckets, never over the limit (several rules)",
            Self::Compact => "exact log at 4 bytes an entry, to its tick",
            Self::Fixed => "fixed window: up to twice the limit around an edge",
            Self::TwoWindow => "sliding estimate from two fixed windows",
            Self::Token => "token bucket of --burst tokens (GCRA)",
            Self::Leaky => "leaky bucket as a meter: decides as the token bucket",
            Self::Paced => "leaky bucket as a queue of --burst places: admits later, drops when full",
            Self::Sampled => "log of every m-th admission, m = 1 % of the limit",
            Self::Wheel => "hierarchical timing wheel",
        }
    }

    /// Whether it takes more than one rule.
    fn takes_rules(self) -> bool {
        matches!(self, Self::Log | Self::Window)
    }

    /// Whether its answers depend on where its bucket edges fall.
    pub(crate) fn has_edges(self) -> bool {
        matches!(self, Self::Window | Self::Fixed | Self::TwoWindow)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Choice ===

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        const CHOICES: [Choice; 11] = {
            let mut choices = [Choice::All; 11];
            let mut i = 0;
            while i < Name::ALL.len() {
                choices[i + 1] = Choice::One(Name::ALL[i]);
                i += 1;
            }
            choices
        };
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::All => PossibleValue::new("all").help("all that take the rules given"),
            Self::One(name) => PossibleValue::new(name.as_str()).help(name.help()),
        })
    }
}

// === impl Settings ===

impl Settings {
    /// One rule, everything else as usual but perhaps the buckets.
    pub(crate) fn single(limit: u64, window_ns: u64, buckets: Option<u64>) -> Self {
        let rule = Rule::new(limit, Nanos::from_nanos(window_ns).into());
        Self { rules: vec![rule], buckets, burst: None }
    }

    /// A new limiter, its bucket edges moved by `phase` of [`PHASES`] parts of a bucket.
    ///
    /// # Errors
    /// [`Unfit`] if the algorithm does not take these settings.
    pub(crate) fn build(&self, name: Name, phase: u32) -> Result<Limiter, Unfit> {
        if self.rules.len() > 1 && !name.takes_rules() {
            return Err(Unfit::OneRule(self.rules.len()));
        }
        let Rule { limit, window } = self.rules[0];
        let more = || self.rules[1..].iter().map(|rule| (rule.limit, Duration::from(rule.window)));
        let window = Duration::from(window);
        let burst = self.burst.unwrap_or(limit);
        Ok(match name {
            Name::Log => {
                // A request is one permit, and a log that knows this is the faster one.
                let builder = Log::builder(limit, window).max_cost(1);
                let log = more().fold(builder, |log, (l, w)| log.rule(l, w));
                Limiter::Gate(Box::new(log.build()?))
            }
            Name::Window => {
                let shortest = self.rules.iter().map(|rule| rule.window).min().unwrap_or(Nanos::ZERO);
                let buckets = self.buckets.unwrap_or(BUCKETS);
                let width = shortest.as_nanos() / buckets.max(1);
                let builder = Window::builder(limit, window).buckets(buckets).phase(part(width, phase));
                let counter = more().fold(builder, |counter, (l, w)| counter.rule(l, w));
                Limiter::Gate(Box::new(counter.build().map_err(|why| match why {
                    ConfigError::Ragged { .. } => Unfit::Ragged { why, buckets, shortest },
                    why => Unfit::Config(why),
                })?))
            }
            Name::Compact => Limiter::Gate(Box::new(Compact::builder(limit, window).build()?)),
            Name::Fixed => {
                let phase = part(Nanos::from(window).as_nanos(), phase);
                Limiter::Gate(Box::new(Fixed::builder(limit, window).phase(phase).build()?))
            }
            Name::TwoWindow => {
                let phase = part(Nanos::from(window).as_nanos(), phase);
                Limiter::Gate(Box::new(TwoWindow::builder(limit, window).phase(phase).build()?))
            }
            Name::Token => Limiter::Gate(Box::new(TokenBucket::builder(limit, window).burst(burst).build()?)),
            Name::Leaky => Limiter::Gate(Box::new(LeakyBucket::builder(limit, window).burst(burst).build()?)),
            Name::Paced => Limiter::Queue(Box::new(Pacing::builder(limit, window).queue(burst).build()?)),
            Name::Sampled => {
                let every = (limit / 100).max(1);
                Limiter::Gate(Box::new(Sampled::builder(limit, window).every(every).build()?))
            }
            Name::Wheel => Limiter::Gate(Box::new(Wheel::builder(limit, window).build()?)),
        })
    }

    /// The option that was given the value to blame.
    pub(crate) fn to_blame(&self, unfit: &Unfit) -> Option<&'static str> {
        match *unfit {
            Unfit::Config(ConfigError::Buckets { got, .. }) if self.buckets == Some(got) => Some("--buckets"),
            Unfit::Config(ConfigError::Burst { got, .. }) if self.burst == Some(got) => Some("--burst"),
            _ => None,
        }
    }
}

/// `phase` of [`PHASES`] parts of `width` nanoseconds.
fn part(width: u64, phase: u32) -> Duration {
    Duration::from_nanos((u128::from(width) * u128::from(phase) / u128::from(PHASES)) as u64)
}

// === impl Unfit ===

impl From<ConfigError> for Unfit {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneRule(given) => write!(f, "takes one rule, and {given} are given"),
            Self::Ragged { why, buckets, shortest } => {
                write!(f, "{why}, one of {buckets} buckets of {:?}", Duration::from(*shortest))
            }
            Self::Config(error) => write!(f, "{error}"),
        }
    }
}

// === impl Limiter ===

impl Limiter {
    /// Asks for a permit: whether it is admitted, now or out of the queue.
    #[inline]
    pub(crate) fn admits_at(&self, now: Nanos) -> bool {
        match self {
            Self::Gate(gate) => gate.try_acquire_at(1, now),
            Self::Queue(queue) => queue.reserve_at(1, now).is_ok(),
        }
    }

    /// Asks for a permit: between which times it was recorded, or `None` if it is refused. A queue's may lie ahead.
    pub(crate) fn admitted_at(&self, now: Nanos) -> Option<(Nanos, Nanos)> {
        match self {
            Self::Gate(gate) => gate.check_at(1, now).ok().map(|quota| (now, quota.at)),
            Self::Queue(queue) => {
                queue.reserve_at(1, now).ok().map(|reservation| (reservation.start(), reservation.start()))
            }
        }
    }

    /// Bytes of its state; the configuration, the same for every key, apart.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Gate(gate) => gate.state_bytes(),
            Self::Queue(queue) => queue.state_bytes(),
        }
    }
}
