//! An algorithm in two parts: its configuration, which never changes, and its state, which may lie anywhere.
//!
//! The types that own both ([`Log`](crate::Log) and its like) are made of these parts. Whoever keeps many states
//! under one configuration, or a state in memory of its own (of a C caller, of several processes), uses the parts.

use core::ops::Deref;
#[cfg(not(tollgate_loom))]
use core::ptr::NonNull;

use bytemuck::Pod;

use crate::{
    Algorithm, ConfigError, Rules,
    block::{self, At, Zeroed},
    decision::{History, Limits},
    live::Settings,
};
#[cfg(not(tollgate_loom))]
use crate::{Decision, Nanos, Rule, decision};

/// What a state is aligned to.
#[cfg(not(tollgate_loom))]
pub const STATE_ALIGN: usize = block::LINE;

/// The configuration of an algorithm without its state: plain words, without pointers or padding.
///
/// A builder makes it, having checked everything (`LogBuilder::config` and its like). It says how many bytes the
/// state takes, and answers for any state that lies where the caller says. A state is
/// [`state_bytes`](Config::state_bytes) bytes, aligned to [`STATE_ALIGN`]; all zeros, it has admitted nothing. There
/// is nothing to initialise or to recover, and no address in it: processes may share one.
///
/// The answers, and what may be called at once, are those of [`Algorithm`](crate::Algorithm).
///
/// The configurations of this crate alone implement it, so code for any of them may rely on all this:
/// ```compile_fail,E0277
/// # use std::ptr::NonNull;
/// # use tollgate::{Config, Decision, Nanos, Rule};
/// #[derive(Clone, Copy)]
/// struct Mine;
/// impl Config for Mine {
///     # fn rules(&self) -> &[Rule] { &[] }
///     fn state_bytes(&self) -> usize { 0 }
///     // ...
///     # fn words(&self) -> &[u64] { &[] }
///     # unsafe fn try_acquire_at(&self, _: NonNull<u8>, _: u64, _: Nanos) -> bool { true }
///     # unsafe fn check_at(&self, _: NonNull<u8>, _: u64, _: Nanos) -> Decision { unreachable!() }
///     # unsafe fn peek_at(&self, _: NonNull<u8>, _: u64, _: Nanos) -> Decision { unreachable!() }
///     # unsafe fn usage_at(&self, _: NonNull<u8>, _: usize, _: Nanos) -> Option<u64> { None }
///     # unsafe fn reset(&self, _: NonNull<u8>) {}
/// }
/// ```
///
/// # Safety
/// To call the `unsafe` methods: for as long as the call takes, `state` points to `state_bytes` readable and writable
/// bytes, aligned to [`STATE_ALIGN`], which were zero once and since then were changed by calls with equal
/// configurations alone.
///
/// # Examples
/// ```
/// use std::{alloc, ptr::NonNull, time::Duration};
/// use tollgate::{Config, Nanos, STATE_ALIGN, Window};
///
/// let config = Window::builder(3, Duration::from_secs(1)).config()?;
/// let layout = alloc::Layout::from_size_align(config.state_bytes(), STATE_ALIGN).unwrap();
/// let state = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).expect("memory");
///
/// let now = Nanos::from_secs(7);
/// assert!(unsafe { config.try_acquire_at(state, 3, now) });
/// assert!(!unsafe { config.try_acquire_at(state, 1, now) });
/// unsafe { alloc::dealloc(state.as_ptr(), layout) };
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
#[cfg(not(tollgate_loom))]
pub trait Config: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The rules, in the order given.
    fn rules(&self) -> &[Rule];

    /// Bytes of a state.
    fn state_bytes(&self) -> usize;

    /// Whether what lies at `state`, from wherever it came, is a state: calls stay inside of it and come to an end. Others
    /// may use it meanwhile.
    ///
    /// # Cost
    /// Reads all of it.
    ///
    /// # Safety
    /// `state` points to as many readable bytes, as aligned, as [`Config`] says.
    unsafe fn accepts(&self, state: NonNull<u8>) -> bool;

    /// The configuration as the words it is made of: equal ones have equal words.
    fn words(&self) -> &[u64];

    /// Takes `cost` permits at `now`, all or nothing: [`Algorithm::try_acquire_at`](crate::Algorithm::try_acquire_at).
    ///
    /// # Safety
    /// `state` is as [`Config`] says.
    unsafe fn try_acquire_at(&self, state: NonNull<u8>, cost: u64, now: Nanos) -> bool;

    /// Takes `cost` permits at `now`, and tells what is left or how long to wait:
    /// [`Algorithm::check_at`](crate::Algorithm::check_at).
    ///
    /// # Errors
    /// [`Denied`](crate::Denied), which changed nothing.
    ///
    /// # Safety
    /// `state` is as [`Config`] says.
    unsafe fn check_at(&self, state: NonNull<u8>, cost: u64, now: Nanos) -> Decision;

    /// Tells whether `check_at` would admit, and stores nothing: where atomic loads only load (on
    /// x86-64 and AArch64, say) the state may be read-only memory.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied).
    ///
    /// # Safety
    /// `state` is as [`Config`] says.
    unsafe fn peek_at(&self, state: NonNull<u8>, cost: u64, now: Nanos) -> Decision;

    /// Permits charged to `rule` at `now`; `None` without such a rule or with a time out of range.
    ///
    /// # Safety
    /// `state` is as [`Config`] says.
    unsafe fn usage_at(&self, state: NonNull<u8>, rule: usize, now: Nanos) -> Option<u64>;

    /// Forgets every admission: makes the state zero.
    ///
    /// # Safety
    /// `state` is as [`Config`] says, and nobody else uses it meanwhile.
    unsafe fn reset(&self, state: NonNull<u8>);
}

#[cfg(not(tollgate_loom))]
mod sealed {
    use super::{History, On};
    #[cfg(feature = "keyed")]
    use crate::{Nanos, algorithm::config::NonNull};

    /// What `unsafe` code trusts, nobody else can promise.
    #[expect(private_bounds, reason = "sealed")]
    pub trait Sealed: super::Settings {
        /// The algorithm's name in memory that outlives a process.
        #[cfg_attr(not(feature = "shared"), allow(dead_code))]
        const NAME: [u8; 8];

        /// Bytes that calls stay inside of, whatever bits the state holds or is given meanwhile: at least those of a state.
        #[cfg_attr(not(feature = "shared"), allow(dead_code))]
        fn reach_bytes(&self) -> usize;

        /// The largest cost that can be taken.
        #[cfg_attr(not(feature = "shared"), allow(dead_code))]
        fn cost_max(&self) -> u64;

        /// How long after `now` (in range) nothing is charged to the state if nobody comes.
        ///
        /// # Safety
        /// `state` is as [`Config`](super::Config) says.
        #[cfg(feature = "keyed")]
        #[cfg_attr(not(feature = "shared"), allow(dead_code))]
        unsafe fn idle_after(&self, state: NonNull<u8>, now: Nanos) -> Nanos;
    }

    impl<C: super::Parts + 'static> Sealed for C
    where
        for<'a> On<'a, C>: History,
    {
        const NAME: [u8; 8] = C::NAME;

        fn reach_bytes(&self) -> usize {
            super::block::bytes::<C::Heads, C::Slot>(self.reach())
        }

        fn cost_max(&self) -> u64 {
            self.ceiling()
        }

        #[cfg(feature = "keyed")]
        unsafe fn idle_after(&self, state: NonNull<u8>, now: Nanos) -> Nanos {
            // SAFETY: the contract of this function.
            crate::decision::idle_after(&unsafe { On::at(self, state) }, now)
        }
    }
}

/// What a configuration tells of its states.
pub(crate) trait Parts: Limits + Settings {
    /// The algorithm's name, which never changes, filled with zeros.
    #[cfg_attr(any(tollgate_loom, not(feature = "shared")), allow(dead_code))]
    const NAME: [u8; 8];
    /// The words before the ring.
    type Heads: Zeroed;
    /// A slot of the ring.
    type Slot: Pod + Send;

    /// Slots in the ring.
    fn slots(&self) -> u64 {
        0
    }

    /// Slots that calls may touch, whatever the words hold: those of the ring, and what a masked index can name beyond.
    #[cfg_attr(any(tollgate_loom, not(feature = "shared")), allow(dead_code))]
    fn reach(&self) -> u64 {
        self.slots()
    }

    /// Whether the words there, of any bits, are a state. (No model's state comes from elsewhere.)
    #[cfg_attr(tollgate_loom, allow(dead_code))]
    fn accepts(on: On<'_, Self>) -> bool;

    /// Bytes of a state.
    fn bytes(&self) -> usize {
        block::bytes::<Self::Heads, Self::Slot>(self.slots())
    }
}

/// An algorithm that owns a configuration and a state of it.
pub(crate) trait InParts: Algorithm {
    /// Its configuration.
    type Config: Parts + Copy;

    /// Its configuration.
    fn config(&self) -> &Self::Config;

    /// Its state.
    fn state(&self) -> StateOf<'_, Self>;

    /// The history of a state under a configuration.
    fn on_state<'a>(
        config: &'a Self::Config,
        state: StateOf<'a, Self>,
    ) -> impl History<Limits = Self::Config> + Copy;
}

/// A configuration whose rules may be others while its states stay as they are.
pub(crate) trait WithRules: Parts + Copy {
    /// The same with other rules, for any state that this one or another such has left.
    fn with_rules(&self, rules: Rules) -> Result<Self, ConfigError>;

    /// The same with such limits that it accepts every state that any of them have left.
    #[cfg_attr(any(tollgate_loom, not(feature = "shared")), allow(dead_code))]
    fn widest(&self) -> Self {
        *self
    }
}

/// A configuration of a region whose rules may change while it is in use: [`LogConfig`](crate::LogConfig),
/// [`WindowConfig`](crate::WindowConfig), [`FixedConfig`](crate::FixedConfig) and [`TwoWindowConfig`](crate::TwoWindowConfig).
#[cfg(feature = "shared")]
#[expect(private_bounds, reason = "sealed")]
pub trait ChangingConfig: Config + WithRules {}

#[cfg(feature = "shared")]
impl<C: Config + WithRules> ChangingConfig for C {}

/// Where a state of an algorithm lies.
pub(crate) type StateOf<'a, A> =
    At<'a, <<A as InParts>::Config as Parts>::Heads, <<A as InParts>::Config as Parts>::Slot>;

/// A configuration together with a state of it: a history.
pub(crate) struct On<'a, C: Parts> {
    pub(crate) config: &'a C,
    pub(crate) state: At<'a, C::Heads, C::Slot>,
}

// === impl On ===

#[cfg(not(tollgate_loom))]
impl<'a, C: Parts> On<'a, C> {
    /// The history of the state that lies at `memory`.
    ///
    /// # Safety
    /// For `'a`, a state of this configuration lies there.
    #[inline(always)]
    unsafe fn at(config: &'a C, memory: NonNull<u8>) -> Self {
        // SAFETY: the contract of this function.
        Self { config, state: unsafe { At::new(memory) } }
    }
}

impl<C: Parts> Clone for On<'_, C> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Parts> Copy for On<'_, C> {}

impl<C: Parts> Deref for On<'_, C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        self.config
    }
}

// === impl Config ===

#[cfg(not(tollgate_loom))]
impl<C: Parts + 'static> Config for C
where
    for<'a> On<'a, C>: History,
{
    fn rules(&self) -> &[Rule] {
        Limits::rules(self)
    }

    fn state_bytes(&self) -> usize {
        self.bytes()
    }

    unsafe fn accepts(&self, state: NonNull<u8>) -> bool {
        // SAFETY: the contract of this function.
        C::accepts(unsafe { On::at(self, state) })
    }

    fn words(&self) -> &[u64] {
        bytemuck::cast_slice(core::slice::from_ref(self))
    }

    #[inline(always)]
    unsafe fn try_acquire_at(&self, state: NonNull<u8>, cost: u64, now: Nanos) -> bool {
        // SAFETY: the contract of this function.
        decision::try_acquire(&unsafe { On::at(self, state) }, cost, now)
    }

    unsafe fn check_at(&self, state: NonNull<u8>, cost: u64, now: Nanos) -> Decision {
        // SAFETY: the contract of this function.
        decision::check(&unsafe { On::at(self, state) }, cost, now)
    }

    unsafe fn peek_at(&self, state: NonNull<u8>, cost: u64, now: Nanos) -> Decision {
        // SAFETY: the contract of this function.
        decision::peek(&unsafe { On::at(self, state) }, cost, now)
    }

    unsafe fn usage_at(&self, state: NonNull<u8>, rule: usize, now: Nanos) -> Option<u64> {
        // SAFETY: the contract of this function.
        decision::usage(&unsafe { On::at(self, state) }, rule, now)
    }

    unsafe fn reset(&self, state: NonNull<u8>) {
        // SAFETY: the contract of this function.
        let on = unsafe { On::at(self, state) };
        // SAFETY: the contract of this function.
        unsafe { on.state.clear(self.slots()) }
    }
}
