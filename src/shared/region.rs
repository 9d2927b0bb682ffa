//! A region: how it is made, attached to, and asked.

use core::{fmt, ops::Deref, ptr::NonNull};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    string::String,
};

use rustix::io::Errno;

use super::{
    error::SharedError,
    header::{self, Header, Plan, Sizes},
    keys::Keys,
    mapping::{self, Mapping, Trust},
    rules::{self, Follower, Present, WithRules},
    table::{Bucket, WAYS},
};
use crate::{
    Algorithm, Clock, Config, ConfigError, Decision, Nanos, PlaceError, Rule, Rules, STATE_ALIGN, WhenFull,
    algorithm::ChangingConfig, clock::System, sync::Word,
};

/// States before the buckets: one that is never written, and the one that keys without room share.
const SPARE: u64 = 2;

/// The time that a region's calls carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Time {
    /// `CLOCK_MONOTONIC`.
    #[default]
    Monotonic,
    /// `CLOCK_BOOTTIME`: goes on while the machine sleeps.
    Boot,
    /// One clock of the caller's, the same in all processes.
    Caller,
}

/// Limiters that processes share: see [`shared`](super).
///
/// Any number of threads may use it at once. A child that is forked may go on with it. Dropping it unmaps the memory and leaves
/// the region as it is.
pub struct Region<C: Config> {
    memory: Memory,
    config: C,
    /// What follows the rules in force, if they may change.
    live: Option<Follower<C>>,
    sizes: Sizes,
    secret: [u64; 2],
    when_full: WhenFull,
    time: Time,
}

/// A limiter of a region. Others may use it meanwhile, so it can not be reset.
pub struct Shared<'a, C: Config>(Member<'a, C>);

/// A limiter of a region, which may be reset: [`Region::member`].
pub struct Member<'a, C: Config> {
    region: &'a Region<C>,
    state: NonNull<u8>,
}

/// Makes regions, and attaches to them.
///
/// Whoever attaches gives the same configuration as who made the region: it is compared to the bit.
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct RegionBuilder<C: Config> {
    config: C,
    limiters: u64,
    keys: u64,
    when_full: WhenFull,
    time: Time,
    trust: Trust,
    live: Option<Changes<C>>,
}

/// How rules change.
#[derive(Clone, Copy, Debug)]
struct Changes<C> {
    with_rules: WithRules<C>,
    /// A configuration that accepts every state that any rules leave.
    widest: fn(&C) -> C,
}

/// What is known of a region without its configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The layout's version.
    pub layout: u32,
    /// Bytes of the region.
    pub bytes: u64,
    /// The algorithm: `log`, `window`, `fixed`, `twowin` or `gcra`.
    pub algorithm: String,
    /// The rules in force.
    pub rules: Rules,
    /// Whether they may change.
    pub is_live: bool,
    /// Limiters by index.
    pub limiters: u64,
    /// The most keys that there can be.
    pub key_slots: u64,
    /// What becomes of a key without room; `None`: something that this library does not know.
    pub when_full: Option<WhenFull>,
    /// The clock; `None`: one that this library does not know.
    pub time: Option<Time>,
    /// Whether the region's time is that of this boot and of this process's time namespace, if it is the system's.
    pub is_current: bool,
}

/// Where a region lies.
enum Memory {
    Mapped(Mapping),
    Given(NonNull<u8>),
}

// === impl Region ===

// SAFETY: contract of `Send`: what it points to may be used from any thread (I2).
unsafe impl<C: Config> Send for Region<C> {}
// SAFETY: contract of `Sync`: as above.
unsafe impl<C: Config> Sync for Region<C> {}

impl<C: Config> Region<C> {
    /// Starts regions of limiters of one configuration (`LogBuilder::config` and its like): none yet, and no keys.
    pub fn builder(config: C) -> RegionBuilder<C> {
        let trust = Trust { mode: 0o600, any_owner: false };
        let (when_full, time) = (WhenFull::default(), Time::default());
        RegionBuilder { config, limiters: 0, keys: 0, when_full, time, trust, live: None }
    }

    /// The limiter at an index; `None` if there are not so many.
    #[inline]
    pub fn limiter(&self, index: u64) -> Option<Shared<'_, C>> {
        // SAFETY: contract of `member`: who holds it can not reset it.
        unsafe { self.member(index) }.map(Shared)
    }

    /// The same, with [`reset`](crate::Algorithm::reset).
    ///
    /// # Safety
    /// No process uses that limiter during a reset.
    #[inline]
    pub unsafe fn member(&self, index: u64) -> Option<Member<'_, C>> {
        (index < self.sizes.limiters).then(|| Member { region: self, state: self.state(index) })
    }

    /// Limiters by index.
    pub fn limiters(&self) -> u64 {
        self.sizes.limiters
    }

    /// The limiters by key; `None` if the region has no room for keys.
    pub fn keys(&self) -> Option<Keys<'_, C>> {
        (self.sizes.buckets > 0).then(|| Keys::new(self))
    }

    /// The region's clock; `None` under the caller's time.
    pub fn clock(&self) -> Option<System> {
        self.time.clock()
    }

    /// The time on the region's clock; `None` under the caller's time.
    #[inline]
    pub fn now(&self) -> Option<Nanos> {
        Some(self.clock()?.now())
    }

    /// The configuration; of a region whose rules may change, the one to begin with.
    pub fn config(&self) -> &C {
        &self.config
    }

    /// The rules in force.
    pub fn rules(&self) -> Rules {
        self.ask(|config| Rules::of(config.rules()))
    }

    /// Replaces the rules of a region that was made [`live`](RegionBuilder::live), for all its limiters and keys: all of
    /// them, by these.
    ///
    /// Use so far is kept, as far as the rules before still charged it; a longer window may charge a key for what the keys before it took
    /// of its place ([`Keys`]). A call that overlaps the change is judged by the old rules
    /// or by the new, whole; whatever call begins later, in any process, by the new. Any number of processes may do this at once,
    /// and each may die inside of it: then the rules are the old or the new.
    ///
    /// # Errors
    /// [`SharedError::Config`]: rules that these limiters can not be given, by the table at [`Live`](crate::Live);
    /// [`SharedError::NotLive`]. Nothing has changed.
    ///
    /// # Cost
    /// Three atomic operations for each of 5 words with one rule, and of 4 more with each further one. It begins again when another
    /// change is begun meanwhile, and waits for nobody.
    pub fn set_rules(&self, rules: &[Rule]) -> Result<(), SharedError> {
        let live = self.live.as_ref().ok_or(SharedError::NotLive)?;
        let rules = Rules::of(rules);
        live.derived(rules)?;
        self.present().set(&rules::halves(&rules));
        Ok(())
    }

    /// Asks by the present configuration.
    #[inline(always)]
    pub(super) fn ask<R>(&self, ask: impl FnOnce(&C) -> R) -> R {
        match &self.live {
            None => ask(&self.config),
            Some(live) => live.ask(self.present(), ask),
        }
    }

    /// The rules in force, of a region that has some.
    #[inline(always)]
    fn present(&self) -> &Present {
        debug_assert!(self.sizes.live > 0, "I1");
        // SAFETY: I1, I2: they lie there, and words may have any bits.
        unsafe { self.sizes.present(self.memory.start()).as_ref() }
    }

    /// Bytes of the region.
    pub fn bytes(&self) -> usize {
        self.sizes.bytes
    }

    pub(super) fn secret(&self) -> [u64; 2] {
        self.secret
    }

    pub(super) fn when_full(&self) -> WhenFull {
        self.when_full
    }

    pub(super) fn buckets(&self) -> u64 {
        self.sizes.buckets
    }

    pub(super) fn stride(&self) -> usize {
        self.sizes.stride
    }

    /// A state before the buckets: below the limiters and the [`SPARE`].
    pub(super) fn state(&self, index: u64) -> NonNull<u8> {
        self.sizes.state(self.memory.start(), index)
    }

    /// A bucket, and the first of the states of its ways.
    pub(super) fn bucket(&self, index: u64) -> (&Bucket, NonNull<u8>) {
        let bucket = self.sizes.bucket(self.memory.start(), index);
        // SAFETY: I1: a bucket begins with its words.
        let states = unsafe { bucket.add(size_of::<Bucket>()) };
        // SAFETY: I1, I2: words of any bits.
        (unsafe { bucket.cast::<Bucket>().as_ref() }, states)
    }
}

impl<C: Config> fmt::Debug for Region<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("sizes", &self.sizes).field("time", &self.time).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl<'a, C: Config> Deref for Shared<'a, C> {
    type Target = Member<'a, C>;

    #[inline(always)]
    fn deref(&self) -> &Member<'a, C> {
        &self.0
    }
}

// === impl Member ===

// SAFETY: contract of `Send`: a state may be used from any thread (I2).
unsafe impl<C: Config> Send for Member<'_, C> {}
// SAFETY: contract of `Sync`: as above.
unsafe impl<C: Config> Sync for Member<'_, C> {}

impl<C: Config> Algorithm for Member<'_, C> {
    #[inline(always)]
    fn try_acquire_at(&self, cost: u64, now: Nanos) -> bool {
        // SAFETY: I1, I3.
        self.region.ask(|config| unsafe { config.try_acquire_at(self.state, cost, now) })
    }

    fn check_at(&self, cost: u64, now: Nanos) -> Decision {
        // SAFETY: I1, I3.
        self.region.ask(|config| unsafe { config.check_at(self.state, cost, now) })
    }

    fn peek_at(&self, cost: u64, now: Nanos) -> Decision {
        // SAFETY: I1, I3.
        self.region.ask(|config| unsafe { config.peek_at(self.state, cost, now) })
    }

    fn usage_at(&self, rule: usize, now: Nanos) -> Option<u64> {
        // SAFETY: I1, I3.
        self.region.ask(|config| unsafe { config.usage_at(self.state, rule, now) })
    }

    /// The rules in force.
    fn rules(&self) -> Rules {
        self.region.rules()
    }

    fn state_bytes(&self) -> usize {
        self.region.config.state_bytes()
    }

    /// Forgets every admission. The rules stay as they are.
    fn reset(&mut self) {
        // SAFETY: I1, I3; nobody else, by the contract of `member`.
        unsafe { self.region.config.reset(self.state) }
    }
}

impl<C: Config> fmt::Debug for Member<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("rules", &self.rules()).finish_non_exhaustive()
    }
}

// === impl Memory ===

impl Memory {
    fn start(&self) -> NonNull<u8> {
        match self {
            Self::Mapped(mapping) => mapping.memory(),
            Self::Given(memory) => *memory,
        }
    }
}

// === impl Sizes ===

impl Sizes {
    /// Those of a region for so many limiters, and room for so many keys in use. `None`: no memory is that large.
    fn new<C: Config>(config: &C, limiters: u64, keys: u64, is_live: bool) -> Option<Self> {
        let stride = config.reach_bytes().checked_next_multiple_of(STATE_ALIGN)?;
        // Twice as many ways as keys: `Keys` tells how often a bucket is full all the same.
        let buckets = keys.checked_mul(2)?.div_ceil(WAYS as u64);
        let spare = if buckets > 0 { SPARE } else { 0 };
        let states = usize::try_from(limiters.checked_add(spare)?).ok()?.checked_mul(stride)?;
        let bucket = stride.checked_mul(WAYS)?.checked_add(size_of::<Bucket>())?;
        let table = usize::try_from(buckets).ok()?.checked_mul(bucket)?;
        let live = if is_live { size_of::<Present>().next_multiple_of(STATE_ALIGN) } else { 0 };
        let bytes = (header::BYTES + live).checked_add(states)?.checked_add(table)?;
        isize::try_from(bytes).ok()?;
        Some(Self { bytes, live, limiters, buckets, stride })
    }

    /// States before the buckets.
    fn states(&self) -> u64 {
        self.limiters + if self.buckets > 0 { SPARE } else { 0 }
    }

    fn present(&self, memory: NonNull<u8>) -> NonNull<Present> {
        // SAFETY: I1: the rules in force, or else states, lie behind the header.
        unsafe { memory.add(header::BYTES) }.cast()
    }

    fn state(&self, memory: NonNull<u8>, index: u64) -> NonNull<u8> {
        debug_assert!(index < self.states(), "I1");
        // SAFETY: I1: states lie behind the header and the rules in force.
        unsafe { memory.add(header::BYTES + self.live + index as usize * self.stride) }
    }

    fn bucket(&self, memory: NonNull<u8>, index: u64) -> NonNull<u8> {
        debug_assert!(index < self.buckets, "I1");
        let bytes = size_of::<Bucket>() + WAYS * self.stride;
        // SAFETY: I1: buckets lie behind the states.
        unsafe { self.state(memory, 0).add(self.states() as usize * self.stride + index as usize * bytes) }
    }

    /// Every state there is.
    fn all_states(&self, memory: NonNull<u8>) -> impl Iterator<Item = NonNull<u8>> {
        let (sizes, ways) = (*self, WAYS * self.stride);
        let of_bucket = move |bucket| {
            let of_way = move |at: usize| {
                // SAFETY: I1: the states of a bucket lie behind its words.
                unsafe { sizes.bucket(memory, bucket).add(size_of::<Bucket>() + at) }
            };
            (0..ways).step_by(sizes.stride).map(of_way)
        };
        (0..sizes.states())
            .map(move |index| sizes.state(memory, index))
            .chain((0..sizes.buckets).flat_map(of_bucket))
    }
}

// === impl Time ===

impl Time {
    fn clock(self) -> Option<System> {
        match self {
            Self::Monotonic => Some(System::monotonic()),
            Self::Boot => Some(System::boot()),
            Self::Caller => None,
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Monotonic => 0,
            Self::Boot => 1,
            Self::Caller => 2,
        }
    }

    fn epoch(self) -> Result<header::Epoch, SharedError> {
        if self == Self::Caller { Ok(header::Epoch::default()) } else { mapping::epoch() }
    }
}

fn number(when_full: WhenFull) -> u32 {
    match when_full {
        WhenFull::Share => 0,
        WhenFull::Refuse => 1,
    }
}

// === impl RegionBuilder ===

impl<C: Config> RegionBuilder<C> {
    /// So many limiters by index.
    pub fn limiters(mut self, limiters: u64) -> Self {
        self.limiters = limiters;
        self
    }

    /// A table of limiters by key, with room for so many keys in use: [`Keys`].
    pub fn keys(mut self, keys: u64) -> Self {
        self.keys = keys;
        self
    }

    /// What becomes of a new key without room.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// The clock; the default is `CLOCK_MONOTONIC`.
    pub fn time(mut self, time: Time) -> Self {
        self.time = time;
        self
    }

    /// The mode of files made, whatever the umask; of those attached to, what others may have the right to write. The default is 0600.
    pub fn mode(mut self, mode: u32) -> Self {
        self.trust.mode = mode & 0o777;
        self
    }

    /// Trusts files of any user.
    pub fn any_owner(mut self) -> Self {
        self.trust.any_owner = true;
        self
    }

    /// Lets the rules change while the region is in use: [`Region::set_rules`]. All who attach must say so.
    ///
    /// The configuration's own rules are those to begin with. What others may come is said at [`Live`](crate::Live): a log's
    /// `capacity` and a counter's `window_max` set how far. Where its own rules are not among them (a counter's limit above half of its
    /// range), nothing is made or attached to.
    ///
    /// # Cost
    /// 640 bytes of the region. A call copies what it needs of its settings: 8 to 19 loads of words that are seldom written, with one
    /// rule. The first call after a change derives them anew.
    pub fn live(mut self) -> Self
    where
        C: ChangingConfig,
    {
        self.live = Some(Changes { with_rules: C::with_rules, widest: C::widest });
        self
    }

    /// Bytes of the region.
    ///
    /// # Errors
    /// No memory is that large, or rules that are not among those that [`live`](Self::live) allows.
    pub fn bytes(&self) -> Result<usize, SharedError> {
        Ok(self.sizes()?.bytes)
    }

    /// Makes a region in a file that does not exist yet. Nobody ever sees part of it: it is built without a name, in the same
    /// folder, and gets its name when it is done. A creator that dies leaves nothing.
    ///
    /// # Errors
    /// Those of the system: `EEXIST` if there is something of that name, `ENOSPC` if the region has no room (it
    /// is taken at once), `EOPNOTSUPP` on file systems that know no nameless files.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Region<C>, SharedError> {
        let sizes = self.sizes()?;
        let file = mapping::nameless(path.as_ref(), sizes.bytes as u64, self.trust.mode)?;
        let region = self.made(&file, sizes)?;
        mapping::link(file.as_fd(), path.as_ref())?;
        Ok(region)
    }

    /// Attaches to the region in a file. It writes nothing.
    ///
    /// # Errors
    /// Those of the system, `ENOENT` among them; a file that is not trusted; anything but a region of this very configuration, of
    /// this boot and this container's time.
    ///
    /// # Cost
    /// Reads all of it.
    pub fn attach(&self, path: impl AsRef<Path>) -> Result<Region<C>, SharedError> {
        self.attach_fd(mapping::named(path.as_ref())?)
    }

    /// Attaches to the region in a file, or makes it if there is none. Of processes that come at once one makes it, and all
    /// have the same.
    ///
    /// # Errors
    /// Those of [`attach`](Self::attach) and [`create`](Self::create), but for a file that is missing, or is there after all.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Region<C>, SharedError> {
        let path = path.as_ref();
        let is = |error: &SharedError, call, errno: Errno| {
            *error == SharedError::System { call, errno: errno.raw_os_error() }
        };
        // Bounded by how often others remove the file and make it.
        loop {
            match self.attach(path) {
                Err(error) if is(&error, "open", Errno::NOENT) => {}
                other => return other,
            }
            match self.create(path) {
                Err(error) if is(&error, "linkat", Errno::EXIST) => {}
                other => return other,
            }
        }
    }

    /// Makes a region in anonymous memory: the descriptor is for others to attach to, who inherit it or to whom it is sent. It
    /// is closed on `exec`, unless that is changed. Nobody can make the memory shorter.
    ///
    /// # Errors
    /// Those of the system; `ENOMEM` if the machine does not have so much memory. All of it is taken at once: where there is
    /// less left, or less allowed to a container, the system ends processes.
    pub fn memfd(&self, name: &str) -> Result<(Region<C>, OwnedFd), SharedError> {
        let sizes = self.sizes()?;
        let file = mapping::sealed(name, sizes.bytes as u64, self.trust.mode)?;
        Ok((self.made(&file, sizes)?, file))
    }

    /// Attaches to the region behind a descriptor, which may be closed after that. It writes nothing.
    ///
    /// # Errors
    /// As [`attach`](Self::attach); and [`SharedError::Unsealed`] for anonymous memory that could be cut short.
    pub fn attach_fd(&self, file: impl AsFd) -> Result<Region<C>, SharedError> {
        let (file, sizes) = (file.as_fd(), self.sizes()?);
        let plan = self.plan(sizes)?;
        let got = mapping::trusted(file, self.trust)?;
        if got != sizes.bytes as u64 {
            plan.compare(&Header::of(&mapping::first_bytes(file)?)?)?;
            return Err(SharedError::Size { got, expected: sizes.bytes as u64 });
        }
        let memory = Memory::Mapped(Mapping::new(file, sizes.bytes)?);
        let secret = plan.attach(words(memory.start()))?;
        self.look_at_states(memory.start(), sizes)?;
        self.region(memory, sizes, secret)
    }

    /// Makes a region in memory of the caller's, all zeros, or finds the one of this very configuration there. Any number of
    /// processes may do so at once: they help one another, and what one leaves half done when it dies, the next finishes.
    ///
    /// # Errors
    /// Memory that is too small or not aligned to [`STATE_ALIGN`]; a header of anything else; and those of
    /// [`attach`](Self::attach). Nothing of value was written. Behind a header of zeros there must be zeros: anything else is a
    /// [`SharedError::State`], or taken for what was admitted.
    ///
    /// # Cost
    /// Reads all of it.
    ///
    /// # Safety
    /// The memory is readable and writable for as long as the region lives. Whoever else uses it meanwhile does so by regions alone
    /// (or by atomic accesses of words: then calls decide wrongly at worst).
    pub unsafe fn place(&self, memory: NonNull<[u8]>) -> Result<Region<C>, SharedError> {
        let sizes = self.sizes()?;
        let (got, min, start) = (memory.len(), sizes.bytes, memory.cast::<u8>());
        if got < min {
            return Err(SharedError::Memory(PlaceError::Short { got, min }));
        }
        let past = start.addr().get() % STATE_ALIGN;
        if past != 0 {
            return Err(SharedError::Memory(PlaceError::Unaligned { past, align: STATE_ALIGN }));
        }
        let plan = self.plan(sizes)?;
        match plan.attach(words(start)) {
            Ok(_) | Err(SharedError::NotReady) => {}
            Err(other) => return Err(other),
        }
        // Before anything is written: no region stands around states that calls would not come back from.
        self.look_at_states(start, sizes)?;
        let secret = plan.settle(words(start), mapping::random()?)?;
        self.region(Memory::Given(start), sizes, secret)
    }

    /// A region in a new file, which nobody else knows yet.
    fn made(&self, file: &OwnedFd, sizes: Sizes) -> Result<Region<C>, SharedError> {
        let plan = self.plan(sizes)?;
        let memory = Memory::Mapped(Mapping::new(file.as_fd(), sizes.bytes)?);
        let secret = plan.settle(words(memory.start()), mapping::random()?)?;
        self.region(memory, sizes, secret)
    }

    fn region(&self, memory: Memory, sizes: Sizes, secret: [u64; 2]) -> Result<Region<C>, SharedError> {
        let Self { when_full, time, .. } = *self;
        let config = self.first()?;
        let live = self.live.map(|changes| Follower::new(config, changes.with_rules));
        Ok(Region { memory, config, live, sizes, secret, when_full, time })
    }

    /// The configuration to begin with: under rules that may change, as it is among those.
    fn first(&self) -> Result<C, SharedError> {
        match self.live {
            None => Ok(self.config),
            Some(changes) => Ok((changes.with_rules)(&self.config, Rules::of(self.config.rules()))?),
        }
    }

    fn sizes(&self) -> Result<Sizes, SharedError> {
        let too_large = SharedError::Config(ConfigError::Memory { bytes: usize::MAX });
        Sizes::new(&self.first()?, self.limiters, self.keys, self.live.is_some()).ok_or(too_large)
    }

    fn plan(&self, sizes: Sizes) -> Result<Plan, SharedError> {
        let kinds = (self.time.number(), number(self.when_full));
        Ok(Plan::new(&self.first()?, sizes, kinds, self.time.epoch()?))
    }

    /// Whether calls would come back from every state, and by which rules.
    fn look_at_states(&self, memory: NonNull<u8>, sizes: Sizes) -> Result<(), SharedError> {
        let mut config = self.config;
        if let Some(changes) = self.live {
            // SAFETY: I1, I2: they lie there, and words may have any bits.
            let (tag, halves) =
                unsafe { sizes.present(memory).as_ref() }.read().map_err(|_| SharedError::Rules)?;
            if tag != 0 {
                (changes.with_rules)(&config, rules::rules(&halves)).map_err(|_| SharedError::Rules)?;
            }
            config = (changes.widest)(&config);
        }
        for (index, state) in (0..).zip(sizes.all_states(memory)) {
            // SAFETY: contract of `accepts`: I1.
            if !unsafe { config.accepts(state) } {
                return Err(SharedError::State { index });
            }
        }
        Ok(())
    }
}

/// The words of a region's header.
fn words<'a>(memory: NonNull<u8>) -> &'a [Word<u64>; header::BYTES / 8] {
    // SAFETY: I1, I2: the callers' memory holds a header at least, aligned, and words may have any bits.
    unsafe { memory.cast().as_ref() }
}

// === looking ===

/// Tells what region is in a file, of whatever configuration. It writes nothing.
///
/// # Errors
/// Those of the system; what is no file; anything but a region of this layout; [`SharedError::Rules`] when no copy of a live
/// region's rules is whole, of a hundred.
pub fn inspect(path: impl AsRef<Path>) -> Result<Info, SharedError> {
    inspect_fd(mapping::readable(path.as_ref())?)
}

/// Tells what region is behind a descriptor: [`inspect`].
///
/// # Errors
/// As [`inspect`].
pub fn inspect_fd(file: impl AsFd) -> Result<Info, SharedError> {
    let header = Header::of(&mapping::first_bytes(file.as_fd())?)?;
    let (time, when_full) = header.kinds();
    let time = [Time::Monotonic, Time::Boot, Time::Caller].into_iter().find(|it| it.number() == time);
    let sizes = header.sizes();
    let is_live = sizes.live > 0;
    let rules = if is_live { rules_in_force(file.as_fd())? } else { None };
    let rules = rules.unwrap_or_else(|| header.rules());
    let algorithm = header.name().into_iter().take_while(|&byte| byte != 0).map(char::from).collect();
    Ok(Info {
        layout: header.version(),
        bytes: sizes.bytes as u64,
        algorithm,
        rules,
        is_live,
        limiters: sizes.limiters,
        key_slots: sizes.buckets.saturating_mul(WAYS as u64),
        when_full: [WhenFull::Share, WhenFull::Refuse].into_iter().find(|&it| number(it) == when_full),
        time,
        is_current: time.unwrap_or_default().epoch()? == header.epoch(),
    })
}

/// The rules that lie behind a header, once there are some.
fn rules_in_force(file: BorrowedFd<'_>) -> Result<Option<Rules>, SharedError> {
    // A copy that was made during a change may not be whole.
    for _ in 0..100 {
        let bytes: [u8; size_of::<Present>()] = mapping::bytes_from(file, header::BYTES as u64)?;
        let (words, _) = bytes.as_chunks::<8>();
        if let Ok((tag, halves)) = Present::of(words.iter().map(|&word| u64::from_ne_bytes(word))).read() {
            return Ok((tag != 0).then(|| rules::rules(&halves)));
        }
    }
    Err(SharedError::Rules)
}

/// Removes the name of a region. Processes that have it go on with it; whoever opens that name makes a new one.
///
/// # Errors
/// Those of the system.
pub fn unlink(path: impl AsRef<Path>) -> Result<(), SharedError> {
    mapping::unlink(path.as_ref())
}
