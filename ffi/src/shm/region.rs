//! Regions as the core has them, of whichever algorithm.

use core::ptr::NonNull;
use std::{
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

use tollgate::{
    Config, Decision, Nanos, Rule, Rules, WhenFull,
    shared::{Field, Info, Member, Region, RegionBuilder, SharedError, Time},
};

use super::{
    TOLLGATE_ANY_OWNER, TOLLGATE_SHM_INFO_SIZE, TOLLGATE_STALE, tollgate_shm_config_t, tollgate_shm_info_t,
    tollgate_shm_t,
};
use crate::{
    clock::{self, TOLLGATE_CLOCK_BOOTTIME, TOLLGATE_CLOCK_CALLER, TOLLGATE_CLOCK_MONOTONIC},
    config::{
        self, Life, TOLLGATE_FIXED, TOLLGATE_GCRA, TOLLGATE_LIVE, TOLLGATE_LOG, TOLLGATE_TWO_WINDOW,
        TOLLGATE_WINDOW, tollgate_config_t, tollgate_rule_t,
    },
    handle::Handle,
    keyed::TOLLGATE_REFUSE_WHEN_FULL,
    kinds::Named,
    life::{make_far, read_plain},
    status::tollgate_status::{self, *},
};

/// What this process has of a region.
pub(super) struct Shm {
    region: Box<dyn AnyRegion>,
    /// That of its limiters, with the region's clock.
    limit: tollgate_config_t,
}

/// A region of whichever algorithm.
pub(super) trait AnyRegion: Send + Sync {
    /// Limiters by index.
    fn limiters(&self) -> u64;

    /// A limiter of this process on the one at an index.
    ///
    /// # Safety
    /// The region stays where it is, and the limiter is not used any more when it is dropped.
    unsafe fn limiter(&self, index: u64, limit: &tollgate_config_t) -> Result<Handle, tollgate_status>;

    /// The rules in force.
    fn rules(&self) -> Rules;

    /// Replaces them.
    fn set_rules(&self, rules: &[Rule]) -> Result<(), SharedError>;

    /// Takes permits of a key; false without keys.
    fn key_acquires(&self, key: &[u8], cost: u64, now: Nanos) -> bool;

    /// Takes permits of a key, or tells whether it would; `None` without keys.
    fn key_decision(&self, key: &[u8], cost: u64, now: Nanos, takes: bool) -> Option<Decision>;

    /// Permits charged to a rule of a key; `None` without such a rule, with a time out of range, and without keys.
    fn key_usage(&self, key: &[u8], rule: usize, now_ns: u64) -> Option<u64>;

    /// Keys that have a place.
    fn keys_now(&self) -> u64;

    /// The most keys that there can be; 0 without keys.
    fn capacity(&self) -> u64;
}

/// What a caller asks for, checked.
pub(super) struct Plan {
    limit: tollgate_config_t,
    is_live: bool,
    limiters: u64,
    keys: u64,
    when_full: WhenFull,
    time: Time,
    mode: u32,
    any_owner: bool,
}

/// Where a region comes from.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Open(&'a Path),
    Create(&'a Path),
    Attach(&'a Path),
    Descriptor(BorrowedFd<'a>),
    Memfd(&'a str),
    Memory(NonNull<[u8]>),
}

/// A region, and its descriptor if it has a new one.
type Made = (Box<dyn AnyRegion>, Option<OwnedFd>);

/// What makes regions of one algorithm or another.
trait AnyBuilder {
    fn bytes(&self) -> Result<usize, SharedError>;

    /// # Safety
    /// Of memory: as `RegionBuilder::place` says.
    unsafe fn build(&self, source: Source<'_>) -> Result<Made, SharedError>;
}

// === impl Shm ===

impl Shm {
    pub(super) fn into_raw(self) -> *mut tollgate_shm_t {
        Box::into_raw(Box::new(self)).cast()
    }

    /// # Safety
    /// NULL, or from [`into_raw`](Self::into_raw) and not used any more.
    pub(super) unsafe fn close(shm: *mut tollgate_shm_t) {
        if !shm.is_null() {
            // SAFETY: the contract of this function.
            drop(unsafe { Box::from_raw(shm.cast::<Self>()) });
        }
    }

    /// # Safety
    /// NULL, or from [`into_raw`](Self::into_raw) and alive.
    pub(super) unsafe fn of<'a>(shm: *const tollgate_shm_t) -> Result<&'a Self, tollgate_status> {
        // SAFETY: the contract of this function.
        unsafe { shm.cast::<Self>().as_ref() }.ok_or(TOLLGATE_E_NULL)
    }

    pub(super) fn region(&self) -> &dyn AnyRegion {
        &*self.region
    }

    /// The region, if it has keys.
    pub(super) fn keyed(&self) -> Result<&dyn AnyRegion, tollgate_status> {
        if self.region.capacity() > 0 { Ok(self.region()) } else { Err(TOLLGATE_E_UNSUPPORTED) }
    }

    /// A limiter of this process on the one at an index.
    pub(super) fn limiter(&self, index: u64) -> Result<Handle, tollgate_status> {
        // SAFETY: it is boxed; and contract of `tollgate_shm_close`.
        unsafe { self.region.limiter(index, &self.limit) }
    }

    pub(super) fn now(&self) -> Option<Nanos> {
        clock::read(self.limit.clock)
    }
}

// === impl AnyRegion ===

impl<C: Config + Named> AnyRegion for Region<C> {
    fn limiters(&self) -> u64 {
        self.limiters()
    }

    unsafe fn limiter(&self, index: u64, limit: &tollgate_config_t) -> Result<Handle, tollgate_status> {
        // SAFETY: contract of `tollgate_reset`: it has the limiter alone.
        let member = unsafe { self.member(index) }.ok_or(TOLLGATE_E_INVALID)?;
        // SAFETY: contract of `transmute`: the same type; and not used for longer, by that of this function.
        make_far(limit, unsafe { core::mem::transmute::<Member<'_, C>, Member<'static, C>>(member) })
    }

    fn rules(&self) -> Rules {
        self.rules()
    }

    fn set_rules(&self, rules: &[Rule]) -> Result<(), SharedError> {
        self.set_rules(rules)
    }

    fn key_acquires(&self, key: &[u8], cost: u64, now: Nanos) -> bool {
        self.keys().is_some_and(|keys| keys.try_acquire_at(key, cost, now))
    }

    fn key_decision(&self, key: &[u8], cost: u64, now: Nanos, takes: bool) -> Option<Decision> {
        let keys = self.keys()?;
        Some(if takes { keys.check_at(key, cost, now) } else { keys.peek_at(key, cost, now) })
    }

    fn key_usage(&self, key: &[u8], rule: usize, now_ns: u64) -> Option<u64> {
        self.keys()?.usage_at(key, rule, Nanos::from_nanos(now_ns))
    }

    fn keys_now(&self) -> u64 {
        self.keys().map_or(0, |keys| keys.len())
    }

    fn capacity(&self) -> u64 {
        self.keys().map_or(0, |keys| keys.capacity())
    }
}

// === impl Plan ===

impl Plan {
    /// # Safety
    /// The limit can be read, as `life::read` says.
    pub(super) unsafe fn new(config: &tollgate_shm_config_t) -> Result<Self, tollgate_status> {
        let flags = TOLLGATE_REFUSE_WHEN_FULL | TOLLGATE_ANY_OWNER | TOLLGATE_LIVE;
        if config.flags & !flags != 0 || config.mode & !0o777 != 0 || config.reserved != [0; 4] {
            return Err(TOLLGATE_E_INVALID);
        }
        clock::serves(config.clock, true)?;
        // SAFETY: the contract of this function.
        let limit = unsafe { read_plain(config.limit) }?;
        let refuses = config.flags & TOLLGATE_REFUSE_WHEN_FULL != 0;
        Ok(Self {
            limit: tollgate_config_t { clock: config.clock, ..limit },
            is_live: config.flags & TOLLGATE_LIVE != 0,
            limiters: config.limiters,
            keys: config.keys,
            when_full: if refuses { WhenFull::Refuse } else { WhenFull::Share },
            time: TIMES.iter().find(|it| it.0 == config.clock).ok_or(TOLLGATE_E_INVALID)?.1,
            mode: if config.mode == 0 { 0o600 } else { config.mode },
            any_owner: config.flags & TOLLGATE_ANY_OWNER != 0,
        })
    }

    /// Bytes of the region.
    pub(super) fn bytes(&self) -> Result<usize, tollgate_status> {
        Ok(self.with(|builder| builder.bytes())??)
    }

    /// The region, and its descriptor if it has a new one.
    ///
    /// # Safety
    /// Of memory: as `RegionBuilder::place` says.
    pub(super) unsafe fn make(&self, source: Source<'_>) -> Result<(Shm, Option<OwnedFd>), tollgate_status> {
        // SAFETY: the contract of this function.
        let (region, descriptor) = self.with(|builder| unsafe { builder.build(source) })??;
        Ok((Shm { region, limit: self.limit }, descriptor))
    }

    /// Asks the builder of the core.
    fn with<R>(&self, ask: impl FnOnce(&dyn AnyBuilder) -> R) -> Result<R, tollgate_status> {
        let live = if self.is_live { TOLLGATE_LIVE } else { 0 };
        let limit = tollgate_config_t { flags: self.limit.flags | live, ..self.limit };
        Ok(match limit.plan()? {
            config::Plan::Live(Life::Log(log)) => ask(&self.builder(log.config()?).live()),
            config::Plan::Live(Life::Window(window)) => ask(&self.builder(window.config()?).live()),
            config::Plan::Live(Life::Fixed(fixed)) => ask(&self.builder(fixed.config()?).live()),
            config::Plan::Live(Life::TwoWindow(two)) => ask(&self.builder(two.config()?).live()),
            config::Plan::Log(config) => ask(&self.builder(config)),
            config::Plan::Window(config) => ask(&self.builder(config)),
            config::Plan::Fixed(config) => ask(&self.builder(config)),
            config::Plan::TwoWindow(config) => ask(&self.builder(config)),
            config::Plan::Gcra(config) => ask(&self.builder(config)),
            _ => return Err(TOLLGATE_E_UNSUPPORTED),
        })
    }

    fn builder<C: Config>(&self, config: C) -> RegionBuilder<C> {
        let Self { limiters, keys, when_full, time, mode, any_owner, .. } = *self;
        let start = Region::builder(config).limiters(limiters).keys(keys);
        let start = start.when_full(when_full).time(time).mode(mode);
        if any_owner { start.any_owner() } else { start }
    }
}

// === impl AnyBuilder ===

impl<C: Config + Named> AnyBuilder for RegionBuilder<C> {
    fn bytes(&self) -> Result<usize, SharedError> {
        self.bytes()
    }

    unsafe fn build(&self, source: Source<'_>) -> Result<Made, SharedError> {
        let region = match source {
            Source::Open(path) => self.open(path),
            Source::Create(path) => self.create(path),
            Source::Attach(path) => self.attach(path),
            Source::Descriptor(descriptor) => self.attach_fd(descriptor),
            Source::Memfd(name) => {
                let (region, descriptor) = self.memfd(name)?;
                return Ok((Box::new(region), Some(descriptor)));
            }
            // SAFETY: the contract of this function.
            Source::Memory(memory) => unsafe { self.place(memory) },
        }?;
        Ok((Box::new(region), None))
    }
}

// === what C is told ===

const TIMES: [(u32, Time); 3] = [
    (TOLLGATE_CLOCK_MONOTONIC, Time::Monotonic),
    (TOLLGATE_CLOCK_BOOTTIME, Time::Boot),
    (TOLLGATE_CLOCK_CALLER, Time::Caller),
];

const ALGORITHMS: [(&str, u32); 5] = [
    ("log", TOLLGATE_LOG),
    ("window", TOLLGATE_WINDOW),
    ("fixed", TOLLGATE_FIXED),
    ("twowin", TOLLGATE_TWO_WINDOW),
    ("gcra", TOLLGATE_GCRA),
];

/// What is known of a region, for C.
pub(super) fn told(info: &Info) -> tollgate_shm_info_t {
    let flag = |is, flag| if is { flag } else { 0 };
    let rule = |at| {
        info.rules
            .get(at)
            .map(|it: &Rule| tollgate_rule_t { limit: it.limit, window_ns: it.window.as_nanos() })
    };
    tollgate_shm_info_t {
        struct_size: TOLLGATE_SHM_INFO_SIZE,
        layout_version: info.layout,
        algorithm: ALGORITHMS.iter().find(|it| it.0 == info.algorithm).map_or(0, |it| it.1),
        clock: TIMES.iter().find(|it| Some(it.1) == info.time).map_or(0, |it| it.0),
        flags: flag(info.when_full == Some(WhenFull::Refuse), TOLLGATE_REFUSE_WHEN_FULL)
            | flag(info.is_live, TOLLGATE_LIVE)
            | flag(!info.is_current, TOLLGATE_STALE),
        rule_count: info.rules.len() as u32,
        bytes: info.bytes,
        limiters: info.limiters,
        capacity: info.key_slots,
        rules: core::array::from_fn(|at| rule(at).unwrap_or_default()),
        reserved: [0; 4],
    }
}

impl From<SharedError> for tollgate_status {
    fn from(error: SharedError) -> Self {
        match error {
            SharedError::Config(error) => error.into(),
            SharedError::System { errno, .. } => refused_by_system(errno),
            SharedError::Memory(tollgate::PlaceError::Unaligned { .. }) => TOLLGATE_E_ALIGN,
            SharedError::Memory(_) | SharedError::Size { .. } => TOLLGATE_E_SIZE,
            SharedError::NotReady => TOLLGATE_E_NOT_READY,
            SharedError::NotLive => TOLLGATE_E_UNSUPPORTED,
            SharedError::Magic { .. } => TOLLGATE_E_MAGIC,
            SharedError::Layout { .. } | SharedError::Differs { field: Field::Layout, .. } => {
                TOLLGATE_E_LAYOUT
            }
            SharedError::Differs { field: Field::Boot, .. } => TOLLGATE_E_CLOCK,
            SharedError::Differs { .. } | SharedError::Foreign => TOLLGATE_E_CONFIG,
            SharedError::Permission { .. } | SharedError::NotAFile { .. } | SharedError::Unsealed => {
                TOLLGATE_E_UNTRUSTED
            }
            _ => TOLLGATE_E_CORRUPT,
        }
    }
}

/// Leaves the number of a system call's error where C looks for it.
pub(super) fn refused_by_system(errno: i32) -> tollgate_status {
    // SAFETY: contract of `__errno_location`: none.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: contract of `write`: this thread's.
    unsafe { place.write(errno) };
    TOLLGATE_E_SYS
}
