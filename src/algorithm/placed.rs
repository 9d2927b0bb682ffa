//! A limiter whose state lies in memory that others keep.

use core::{fmt, marker::PhantomData, ptr::NonNull};

use crate::{Algorithm, Config, Decision, Nanos, Rules, STATE_ALIGN};

/// A limiter made of a configuration and a state in given memory: that of a caller, of a mapping, of an arena.
///
/// It answers as the type that owns both ([`Log`](crate::Log) and its like), and is two pointers: it may be made for each
/// call. Dropping it leaves the state as it is, for the next to go on with.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Algorithm, Config, Log, Nanos, Placed, STATE_ALIGN};
///
/// let config = Log::builder(3, Duration::from_secs(1)).config()?;
/// let mut memory = vec![0; config.state_bytes() + STATE_ALIGN];
/// let skip = memory.as_ptr().align_offset(STATE_ALIGN);
///
/// let now = Nanos::from_secs(7);
/// let log = Placed::new(&config, &mut memory[skip..])?;
/// assert!(log.try_acquire_at(2, now));
///
/// let again = Placed::new(&config, &mut memory[skip..])?;
/// assert_eq!(again.usage_at(0, now), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Placed<'a, C: Config> {
    config: &'a C,
    state: NonNull<u8>,
    lives: PhantomData<&'a [u64]>,
}

/// Why a limiter was not placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PlaceError {
    /// The memory is smaller than a state.
    Short {
        /// Its bytes.
        got: usize,
        /// The bytes of a state.
        min: usize,
    },
    /// The memory does not begin where a state may.
    Unaligned {
        /// The bytes by which it begins too late.
        past: usize,
        /// What a state is aligned to.
        align: usize,
    },
    /// The memory holds what no calls leave behind.
    Foreign,
}

// === impl Placed ===

// SAFETY: contract of `Send`: a state may be used from any thread, and nobody changes the configuration.
unsafe impl<C: Config> Send for Placed<'_, C> {}
// SAFETY: contract of `Sync`: as above.
unsafe impl<C: Config> Sync for Placed<'_, C> {}

impl<'a, C: Config> Placed<'a, C> {
    /// The limiter in this memory: zeros, which are a new one, or what calls with an equal configuration have left.
    ///
    /// # Errors
    /// Memory that is too small, not aligned to [`STATE_ALIGN`], or holds anything else. It is then as it was.
    ///
    /// # Cost
    /// Reads the whole state.
    pub fn new(config: &'a C, memory: &'a mut [u8]) -> Result<Self, PlaceError> {
        let (got, min) = (memory.len(), config.state_bytes());
        if got < min {
            return Err(PlaceError::Short { got, min });
        }
        let state = NonNull::from(memory).cast::<u8>();
        let past = state.addr().get() % STATE_ALIGN;
        if past != 0 {
            return Err(PlaceError::Unaligned { past, align: STATE_ALIGN });
        }
        // SAFETY: contract of `accepts`: so many bytes, so aligned, for `'a` nobody else's.
        if unsafe { config.accepts(state) } {
            Ok(Self { config, state, lives: PhantomData })
        } else {
            Err(PlaceError::Foreign)
        }
    }

    /// The limiter in memory that others may use meanwhile, as for the other threads or processes that share it.
    ///
    /// # Safety
    /// For `'a`, `state` is as [`Config`] says; and nobody else uses it during [`reset`](Algorithm::reset).
    #[inline(always)]
    pub const unsafe fn at(config: &'a C, state: NonNull<u8>) -> Self {
        Self { config, state, lives: PhantomData }
    }
}

// In every method the state is as `Config` says: by the checks of `new`, or by the contract of `at`.
impl<C: Config> Algorithm for Placed<'_, C> {
    #[inline(always)]
    fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool {
        // SAFETY: contract of `Config`.
        unsafe { self.config.try_acquire_at(self.state, cost, now) }
    }

    fn check_at(&self, cost: u64, now: Nanos) -> Decision {
        // SAFETY: contract of `Config`.
        unsafe { self.config.check_at(self.state, cost, now) }
    }

    fn peek_at(&self, cost: u64, now: Nanos) -> Decision {
        // SAFETY: contract of `Config`.
        unsafe { self.config.peek_at(self.state, cost, now) }
    }

    fn usage_at(&self, rule: usize, now: Nanos) -> Option<u64> {
        // SAFETY: contract of `Config`.
        unsafe { self.config.usage_at(self.state, rule, now) }
    }

    fn rules(&self) -> Rules {
        Rules::of(self.config.rules())
    }

    fn state_bytes(&self) -> usize {
        self.config.state_bytes()
    }

    fn reset(&mut self) {
        // SAFETY: contract of `Config`, and borrowed exclusively.
        unsafe { self.config.reset(self.state) }
    }
}

impl<C: Config> fmt::Debug for Placed<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placed").field("rules", &self.config.rules()).finish_non_exhaustive()
    }
}

// === impl PlaceError ===

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { got, min } => write!(f, "{got} bytes are too few for a state of {min}"),
            Self::Unaligned { past, align } => {
                write!(f, "memory begins {past} bytes past a multiple of {align}")
            }
            Self::Foreign => write!(f, "memory holds something else than a state"),
        }
    }
}

impl core::error::Error for PlaceError {}
