//! A limiter as one piece of memory.
//!
//! # State
//! | bytes           | what                                                                                    |
//! |-----------------|-----------------------------------------------------------------------------------------|
//! | 0x000           | magic, written last; 0 = not ready                                                      |
//! | 0x008           | layout version, and size of this header above it                                        |
//! | 0x010           | bytes of the whole limiter                                                              |
//! | 0x018           | seal: a digest of all words below, and of the two above; written first                  |
//! | 0x020 ... 0x0e8 | the configuration as the caller gave it                                                 |
//! | 0x0f8           | 0, or in memory of our own: 1 + how far into the allocation the limiter begins           |
//! | 0x100           | algorithm and statistics flag, clock above: what a call asks first                      |
//! | 0x108           | 0, or in memory of our own: the clock of this process                                   |
//! | 0x110 ...       | the core's configuration, derived from the caller's: words without pointers             |
//! | 0x300 ...       | the core's state, which begins as zeros (or, in memory of our own, what owns one, or the address of one in a region) |
//! | the last lines  | statistics, if asked for: one for each shard                                            |
//!
//! Of shards the core's configuration is larger, and the state begins at the first line behind it: `state_at`. The word at
//! 0x008 says where.
//!
//! # Invariants
//! | id | always                                                                     | kept by            |
//! |----|----------------------------------------------------------------------------|--------------------|
//! | I1 | once the magic is there, nothing before the state is ever written           | `settle`           |
//! | I2 | what lies at 0x110 is the core's configuration that the tag names, and a state of it at `state_at` | `settle`, `attach` |
//! | I3 | a limiter lies, aligned, in as much memory as its third word says           | `life.rs`          |
//!
//! I1 holds however many initialise at once, and wherever one of them dies: each word is put by a CAS from 0 to a value
//! that all of them know, so whoever comes late finds it there and writes nothing; zeros are not written; and who has
//! another configuration stops at the seal. The state is not touched: zeros are a fresh one. It is looked at before the
//! first word is put, so that a limiter never stands around a state that calls would not come back from.
//!
//! # Memory order
//! | id | site              | order   | pairs with | because                                                    |
//! |----|-------------------|---------|------------|------------------------------------------------------------|
//! | O1 | magic, CAS        | Release | O2         | publishes every word before the state                      |
//! | O2 | magic, load       | Acquire | O1         | whoever sees it may read them as plain memory (I1)          |
//! | O3 | words, load, CAS  | AcqRel  | itself     | whoever finds a word that another put may publish it, too   |
//! | O4 | the words, load   | Relaxed | none       | after O2, or only compared                                  |
//!
//! A caller of the hot path was handed the limiter by one that saw the magic, so it need not look for it.

use core::{
    mem::offset_of,
    ptr::NonNull,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

#[cfg(feature = "shards")]
use tollgate::Parted;
#[cfg(all(feature = "heap", feature = "shards"))]
use tollgate::Sharded;
#[cfg(feature = "shm")]
use tollgate::shared::Member;
use tollgate::{
    Algorithm, Config, FixedConfig, GcraConfig, LogConfig, Nanos, Pacing, Placed, STATE_ALIGN,
    TwoWindowConfig, WindowConfig,
};
#[cfg(feature = "std")]
use tollgate::{Compact, Sampled, Wheel};
#[cfg(feature = "heap")]
use tollgate::{Fixed, Gcra, Live, Log, TwoWindow, Window};

use crate::{
    config::{CONFIG_WORDS, Plan, stats_lines, tollgate_config_t},
    kinds::{Named, Rewritable},
    status::tollgate_status::{self, *},
    version::TOLLGATE_LAYOUT_VERSION,
};

/// A limiter. Its memory is the caller's (`tollgate_init_in`) or the library's (`tollgate_create`).
pub struct tollgate_limiter_t {
    _private: [u8; 0],
}

/// What every limiter is aligned to.
pub(crate) const ALIGN: usize = STATE_ALIGN;

const MAGIC: u64 = u64::from_le_bytes(*b"TOLLGATE");

const MAGIC_AT: usize = 0x00;
const LAYOUT_AT: usize = 0x08;
const BYTES_AT: usize = 0x10;
const SEAL_AT: usize = 0x18;
const CONFIG_AT: usize = 0x20;
const HEADER_END: usize = CONFIG_AT + 8 * CONFIG_WORDS;
const OWNED_AT: usize = 0xf8;
const TAG_AT: usize = 0x100;
const CLOCK_AT: usize = 0x108;
const DERIVED_AT: usize = 0x110;
/// Where most states begin, and none before.
const STATE_AT: usize = 0x300;

/// In a tag: the statistics count.
const COUNTS: u32 = 1 << 31;

const _: () = assert!(HEADER_END <= OWNED_AT && STATE_AT.is_multiple_of(ALIGN));

/// Where a state begins, behind a derived configuration of so many bytes.
const fn state_at(derived: usize) -> usize {
    let end = (DERIVED_AT + derived).next_multiple_of(ALIGN);
    if end > STATE_AT { end } else { STATE_AT }
}

/// A limiter's memory (I3).
#[derive(Clone, Copy)]
pub(crate) struct Handle(NonNull<u8>);

/// Every word before a limiter's state, none of which ever changes.
pub(crate) struct Frozen<'a> {
    layout: u64,
    bytes: u64,
    config: [u64; CONFIG_WORDS],
    tag: u64,
    derived: &'a [u64],
}

// === impl Frozen ===

impl<'a> Frozen<'a> {
    /// Those of a limiter with this configuration, from which the core derived those words and a state of so many
    /// bytes. `None`: no memory is that large.
    pub(crate) fn new(config: &tollgate_config_t, derived: &'a [u64], state_bytes: usize) -> Option<Self> {
        let (stats, counts) =
            if config.counts() { (stats_lines(config.shards) * ALIGN, COUNTS) } else { (0, 0) };
        let header = state_at(size_of_val(derived));
        let bytes = header.checked_add(state_bytes)?.checked_next_multiple_of(ALIGN)?.checked_add(stats)?;
        let tag = u64::from(config.form() | counts) | u64::from(config.clock) << 32;
        let layout = u64::from(TOLLGATE_LAYOUT_VERSION) | (header as u64) << 32;
        Some(Self { layout, bytes: bytes as u64, config: config.words(), tag, derived })
    }

    /// The same of a limiter that has the address of its state in place of one.
    #[cfg(feature = "shm")]
    pub(crate) fn far(mut self) -> Self {
        self.tag |= u64::from(crate::config::FAR);
        self
    }

    /// Bytes before the state.
    fn header(&self) -> usize {
        (self.layout >> 32) as usize
    }

    /// Bytes of the limiter.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// The word at `at`.
    #[inline(never)]
    fn word(&self, at: usize) -> u64 {
        let of = |list: &[u64], start: usize| list.get(at.checked_sub(start)? / 8).copied();
        match at {
            LAYOUT_AT => self.layout,
            BYTES_AT => self.bytes,
            TAG_AT => self.tag,
            _ => of(&self.config, CONFIG_AT).or_else(|| of(self.derived, DERIVED_AT)).unwrap_or(0),
        }
    }

    /// All words, with where they lie: but for magic and seal, and for those of memory of our own.
    fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        let others = |at: &usize| ![MAGIC_AT, SEAL_AT, OWNED_AT, CLOCK_AT].contains(at);
        (0..self.header()).step_by(8).filter(others).map(|at| (at, self.word(at)))
    }

    /// A digest of the words, never 0. That of another configuration is another, but for one in 2^63.
    #[inline(never)]
    fn seal(&self) -> u64 {
        let digest = self.words().fold(0, |digest: u64, (_, word)| {
            let mixed = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 32
        });
        digest | 1
    }
}

// === impl Handle ===

impl Handle {
    /// The limiter that a caller of the hot path passed.
    #[inline(always)]
    pub(crate) fn of(limiter: *const tollgate_limiter_t) -> Option<Self> {
        NonNull::new(limiter.cast_mut().cast()).map(Self)
    }

    /// The limiter that any other caller passed.
    ///
    /// # Safety
    /// If it is not NULL and aligned, at least a header can be read there.
    pub(crate) unsafe fn checked(limiter: *const tollgate_limiter_t) -> Result<Self, tollgate_status> {
        let handle = Self::of(limiter).ok_or(TOLLGATE_E_NULL)?;
        if !handle.0.addr().get().is_multiple_of(ALIGN) {
            return Err(TOLLGATE_E_ALIGN);
        }
        handle.is_ready()?;
        Ok(handle)
    }

    /// The memory in which a limiter is, or is to be.
    pub(crate) fn at(memory: NonNull<u8>) -> Self {
        Self(memory)
    }

    pub(crate) fn as_limiter(self) -> *mut tollgate_limiter_t {
        self.0.as_ptr().cast()
    }

    pub(crate) fn memory(self) -> NonNull<u8> {
        self.0
    }

    /// The least bytes of any limiter.
    pub(crate) const fn least_bytes() -> usize {
        STATE_AT
    }

    #[inline(always)]
    fn word<'a>(self, at: usize) -> &'a AtomicU64 {
        // SAFETY: I3: so far into a limiter.
        let word = unsafe { self.0.add(at) };
        // SAFETY: I3: aligned, and an atomic may be made of any bits.
        unsafe { word.cast::<AtomicU64>().as_ref() }
    }

    /// Whether the magic is there.
    pub(crate) fn is_ready(self) -> Result<(), tollgate_status> {
        match self.word(MAGIC_AT).load(Acquire) {
            // O2
            MAGIC => Ok(()),
            0 => Err(TOLLGATE_E_NOT_READY),
            _ => Err(TOLLGATE_E_MAGIC),
        }
    }

    /// Puts a word, or finds it put: whoever comes late does not even try to write.
    fn put(self, at: usize, value: u64) -> Result<(), tollgate_status> {
        let word = self.word(at);
        let mut found = word.load(Acquire); // O3
        if found == 0 && value != 0 {
            found = word.compare_exchange(0, value, AcqRel, Acquire).map_or_else(|found| found, |_| value); // O3
        }
        if found == value { Ok(()) } else { Err(TOLLGATE_E_CONFIG) }
    }

    /// Whether a word is still to be put, or is.
    fn may_put(self, at: usize, value: u64) -> bool {
        [0, value].contains(&self.word(at).load(Relaxed)) // O4
    }

    /// Makes a limiter of zeros, or finishes what others began (I1), around a state that was looked at before: `is_sound`
    /// if calls may use it.
    pub(crate) fn settle(self, frozen: &Frozen<'_>, is_sound: bool) -> Result<(), tollgate_status> {
        let is_made = match self.is_ready() {
            Err(TOLLGATE_E_NOT_READY) => false,
            other => other.and_then(|()| self.holds(frozen)).map(|()| true)?,
        };
        if !is_sound {
            return Err(TOLLGATE_E_CORRUPT);
        }
        if is_made {
            return Ok(());
        }
        // What is in the way is seen before anything is written.
        if !frozen.words().all(|(at, word)| self.may_put(at, word)) {
            return Err(TOLLGATE_E_CONFIG);
        }
        self.put(SEAL_AT, frozen.seal())?;
        frozen.words().try_for_each(|(at, word)| self.put(at, word))?;
        // Beaten: another published the same words.
        let _ = self.word(MAGIC_AT).compare_exchange(0, MAGIC, Release, Relaxed); // O1
        Ok(())
    }

    /// Whether a limiter that is ready is laid out as this library lays it out.
    fn is_our_layout(self) -> Result<(), tollgate_status> {
        let version = self.word(LAYOUT_AT).load(Relaxed) as u32; // O4
        if version == TOLLGATE_LAYOUT_VERSION { Ok(()) } else { Err(TOLLGATE_E_LAYOUT) }
    }

    /// Whether a limiter that is ready has these words.
    fn holds(self, frozen: &Frozen<'_>) -> Result<(), tollgate_status> {
        self.is_our_layout()?;
        let same = self.word(SEAL_AT).load(Relaxed) == frozen.seal() // O4
            && frozen.words().all(|(at, word)| self.word(at).load(Relaxed) == word); // O4
        if same { Ok(()) } else { Err(TOLLGATE_E_CONFIG) }
    }

    /// Whether what is in the caller's memory, of `len` bytes, is a limiter through and through.
    pub(crate) fn validate(self, len: usize) -> Result<(), tollgate_status> {
        self.is_ready()?;
        self.is_our_layout()?;
        let config = self.config();
        let plan = config.plan().map_err(|status| match status {
            TOLLGATE_E_UNSUPPORTED if config.is_sharded() && !cfg!(feature = "shards") => status,
            _ => TOLLGATE_E_CORRUPT,
        })?;
        crate::clock::serves(config.clock, true).map_err(|status| match status {
            TOLLGATE_E_UNSUPPORTED => status,
            _ => TOLLGATE_E_CORRUPT,
        })?;
        let (derived, state_bytes) = plan.placed().ok_or(TOLLGATE_E_CORRUPT)?;
        let frozen = Frozen::new(&config, derived, state_bytes).ok_or(TOLLGATE_E_CORRUPT)?;
        if frozen.header() > len {
            return Err(TOLLGATE_E_SIZE); // Before more of it is read.
        }
        if !self.is_callers() || self.holds(&frozen).is_err() {
            return Err(TOLLGATE_E_CORRUPT);
        }
        if frozen.bytes() > len {
            return Err(TOLLGATE_E_SIZE);
        }
        // SAFETY: the contract of this function, and so long is the memory.
        if unsafe { self.is_sound(&plan) } { Ok(()) } else { Err(TOLLGATE_E_CORRUPT) }
    }

    /// Whether the state, from wherever it came, would keep a call inside of it.
    ///
    /// # Safety
    /// A state of this plan has room in the memory.
    #[inline(never)]
    pub(crate) unsafe fn is_sound(self, plan: &Plan) -> bool {
        // SAFETY: the contract of this function.
        unsafe { plan.accepts(self.state_behind(plan.derived_bytes())) }
    }

    /// Whether the words of memory of our own are 0, as in any other.
    pub(crate) fn is_callers(self) -> bool {
        [OWNED_AT, CLOCK_AT].iter().all(|&at| self.word(at).load(Relaxed) == 0) // O4
    }

    /// The configuration as the caller gave it.
    #[inline(never)]
    pub(crate) fn config(self) -> tollgate_config_t {
        let mut words = [0; CONFIG_WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.word(CONFIG_AT + 8 * i).load(Relaxed); // O4
        }
        tollgate_config_t::from_words(words)
    }

    /// Marks memory of our own, before the limiter is made there.
    pub(crate) fn own(self, skip: usize) {
        self.word(OWNED_AT).store(skip as u64 + 1, Relaxed); // O4: nobody else knows of it.
    }

    /// How far into the allocation it begins; nothing if the memory is the caller's.
    pub(crate) fn owned(self) -> Option<usize> {
        (self.word(OWNED_AT).load(Relaxed) as usize).checked_sub(1) // O4
    }

    /// Where a clock of this process is kept.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn local_clock<T>(self) -> NonNull<T> {
        const { assert!(size_of::<T>() <= 8 && align_of::<T>() <= 8) };
        // SAFETY: I3: so far into a limiter.
        unsafe { self.0.add(CLOCK_AT) }.cast()
    }

    /// The algorithm, with a flag if its calls are counted, and the clock.
    #[inline(always)]
    fn tag(self) -> (u32, u32) {
        let word = self.word(TAG_AT).load(Relaxed); // O4
        (word as u32, (word >> 32) as u32)
    }

    #[inline(always)]
    pub(crate) fn clock(self) -> u32 {
        self.tag().1
    }

    pub(crate) fn counts(self) -> bool {
        self.tag().0 & COUNTS != 0
    }

    /// Lines of statistics, if they count.
    pub(crate) fn stats_lines(self) -> usize {
        let shards = self.word(CONFIG_AT + offset_of!(tollgate_config_t, shards)).load(Relaxed) as u32; // O4
        stats_lines(shards)
    }

    /// The memory of one thing that is counted, if there are statistics: in each line, the word with that number.
    pub(crate) fn stats_word<'a>(self, line: usize, index: usize) -> &'a AtomicU64 {
        let bytes = self.word(BYTES_AT).load(Relaxed) as usize; // O4
        self.word(bytes - (line + 1) * ALIGN + 8 * index)
    }

    /// The state behind a derived configuration of so many bytes.
    #[inline(always)]
    fn state_behind(self, derived: usize) -> NonNull<u8> {
        // SAFETY: I3: so far into a limiter.
        unsafe { self.0.add(state_at(derived)) }
    }

    /// The parts of a limiter with this tag, if they are of this kind.
    #[inline(always)]
    fn placed<'a, C: Config + Named>(self, tag: u32) -> Option<Placed<'a, C>> {
        const { assert!(align_of::<C>() <= 8) };
        if tag != C::ALGORITHM {
            return None;
        }
        // SAFETY: I3: so far into a limiter.
        let config = unsafe { self.0.add(DERIVED_AT) }.cast::<C>();
        // SAFETY: I1.
        let config = unsafe { config.as_ref() };
        // SAFETY: I2; who resets has it alone.
        Some(unsafe { Placed::at(config, self.state_behind(size_of::<C>())) })
    }

    /// What keeps its own memory in a limiter with this tag, if it is of this kind. It lies where others have their
    /// state.
    fn value<T: Algorithm + Named>(self, tag: u32) -> Option<*mut T> {
        const { assert!(align_of::<T>() <= ALIGN) };
        (tag == T::ALGORITHM).then(|| self.state_behind(0).cast().as_ptr())
    }

    /// Puts what keeps its own memory in memory of our own, before anyone else knows of the limiter.
    ///
    /// # Safety
    /// There is room for it behind the header.
    pub(crate) unsafe fn put_value<T>(self, value: T) {
        // SAFETY: the contract of this function.
        unsafe { self.state_behind(0).cast::<T>().write(value) };
    }

    /// Takes `cost` permits, yes or no. Each algorithm is one jump away, so that it saves the registers that it needs,
    /// and no others.
    #[inline(always)]
    pub(crate) fn try_acquire(self, cost: u64, now: Nanos) -> bool {
        let tag = self.tag().0;
        if let Some(log) = self.placed::<LogConfig>(tag) {
            return try_apart(log, cost, now);
        }
        if let Some(window) = self.placed::<WindowConfig>(tag) {
            return try_apart(window, cost, now);
        }
        self.try_further(cost, now)
    }

    #[inline(never)]
    fn try_further(self, cost: u64, now: Nanos) -> bool {
        let tag = self.tag().0;
        if let Some(gcra) = self.placed::<GcraConfig>(tag) {
            return gcra.try_acquire_at(cost, now);
        }
        #[cfg(feature = "shards")]
        if let Some(log) = self.placed::<Parted<LogConfig>>(tag) {
            return try_apart(log, cost, now);
        }
        #[cfg(feature = "shards")]
        if let Some(window) = self.placed::<Parted<WindowConfig>>(tag) {
            return try_apart(window, cost, now);
        }
        if let Some(fixed) = self.placed::<FixedConfig>(tag) {
            return try_apart(fixed, cost, now);
        }
        if let Some(two_window) = self.placed::<TwoWindowConfig>(tag) {
            return try_apart(two_window, cost, now);
        }
        self.try_other(cost, now)
    }

    /// The same for what is counted, or keeps its own memory.
    #[inline(never)]
    fn try_other(self, cost: u64, now: Nanos) -> bool {
        #[cfg(feature = "shm")]
        if let Some(far) = self.far(self.tag().0) {
            // SAFETY: I2.
            return unsafe { &*far }.try_acquire_at(cost, now);
        }
        self.ask(|it| {
            let lost = crate::stats::lost_before(self);
            let admitted = it.try_acquire_at(cost, now);
            crate::stats::count_bare(self, it, cost, now, lost, admitted);
            admitted
        })
        .unwrap_or(false)
    }

    /// Asks the algorithm of a limiter. `None` if it is none that we know, which no limiter has.
    pub(crate) fn ask<R>(self, question: impl FnOnce(&dyn Algorithm) -> R) -> Option<R> {
        let (mut question, mut answer) = (Some(question), None);
        // SAFETY: contract of `visit`: others share it.
        self.visit(&mut |it| answer = question.take().map(|question| question(unsafe { &*it })));
        answer
    }

    /// Forgets every admission.
    ///
    /// # Safety
    /// Nobody else uses the limiter meanwhile.
    pub(crate) unsafe fn reset(self) {
        // SAFETY: the contract of this function.
        self.visit(&mut |it| unsafe { &mut *it }.reset());
    }

    /// Drops what keeps its own memory.
    ///
    /// # Safety
    /// Nobody uses the limiter any more.
    pub(crate) unsafe fn drop_value(self) {
        // What is made for the visit alone is dropped like anything else: it holds nothing.
        // SAFETY: the contract of this function.
        self.visit(&mut |it| unsafe { it.drop_in_place() });
    }

    /// Hands out the algorithm of a limiter, if it is one that we know: for shared use, or exclusive if the limiter is. Once, not
    /// in each place: the library has a budget.
    #[inline(never)]
    fn visit(self, visit: &mut dyn FnMut(*mut (dyn Algorithm + '_))) {
        let tag = self.tag().0 & !COUNTS;
        if let Some(mut log) = self.placed::<LogConfig>(tag) {
            return visit(&raw mut log);
        }
        if let Some(mut window) = self.placed::<WindowConfig>(tag) {
            return visit(&raw mut window);
        }
        if let Some(mut gcra) = self.placed::<GcraConfig>(tag) {
            return visit(&raw mut gcra);
        }
        if let Some(mut fixed) = self.placed::<FixedConfig>(tag) {
            return visit(&raw mut fixed);
        }
        if let Some(mut two_window) = self.placed::<TwoWindowConfig>(tag) {
            return visit(&raw mut two_window);
        }
        #[cfg(feature = "shards")]
        if let Some(mut log) = self.placed::<Parted<LogConfig>>(tag) {
            return visit(&raw mut log);
        }
        #[cfg(feature = "shards")]
        if let Some(mut window) = self.placed::<Parted<WindowConfig>>(tag) {
            return visit(&raw mut window);
        }
        #[cfg(feature = "shm")]
        if let Some(far) = self.far(tag) {
            return visit(far);
        }
        #[cfg(feature = "heap")]
        if let Some(live) = self.live(tag) {
            return visit(live);
        }
        #[cfg(feature = "std")]
        if let Some(compact) = self.value::<Compact>(tag) {
            return visit(compact);
        }
        #[cfg(feature = "std")]
        if let Some(sampled) = self.value::<Sampled>(tag) {
            return visit(sampled);
        }
        #[cfg(feature = "std")]
        if let Some(wheel) = self.value::<Wheel>(tag) {
            return visit(wheel);
        }
        if let Some(pacing) = self.value::<Pacing>(tag) {
            visit(pacing);
        }
    }

    /// The limiter whose state lies in a region, of one that has this tag.
    #[cfg(feature = "shm")]
    fn far<'a>(self, tag: u32) -> Option<*mut (dyn Algorithm + 'a)> {
        let log = self.value::<Member<'static, LogConfig>>(tag).map(|it| it as *mut (dyn Algorithm + 'a));
        let window = || self.value::<Member<'static, WindowConfig>>(tag).map(|it| it as *mut _);
        let fixed = || self.value::<Member<'static, FixedConfig>>(tag).map(|it| it as *mut _);
        let two_window = || self.value::<Member<'static, TwoWindowConfig>>(tag).map(|it| it as *mut _);
        let gcra = || self.value::<Member<'static, GcraConfig>>(tag).map(|it| it as *mut _);
        log.or_else(window).or_else(fixed).or_else(two_window).or_else(gcra)
    }

    /// The limiter whose rules may change, of one that has this tag.
    #[cfg(feature = "heap")]
    fn live<'a>(self, tag: u32) -> Option<*mut (dyn Rewritable + 'a)> {
        let log = self.value::<Live<Log>>(tag).map(|it| it as *mut (dyn Rewritable + 'a));
        let window = || self.value::<Live<Window>>(tag).map(|it| it as *mut _);
        let fixed = || self.value::<Live<Fixed>>(tag).map(|it| it as *mut _);
        let two_window = || self.value::<Live<TwoWindow>>(tag).map(|it| it as *mut _);
        let gcra = || self.value::<Live<Gcra>>(tag).map(|it| it as *mut _);
        let others = || self.live_shards(tag).or_else(|| self.live_locked(tag));
        log.or_else(window).or_else(fixed).or_else(two_window).or_else(gcra).or_else(others)
    }

    /// The same of those that take a lock.
    #[cfg(all(feature = "heap", feature = "std"))]
    fn live_locked<'a>(self, tag: u32) -> Option<*mut (dyn Rewritable + 'a)> {
        self.value::<Live<Compact>>(tag).map(|it| it as *mut _)
    }

    #[cfg(all(feature = "heap", not(feature = "std")))]
    fn live_locked<'a>(self, _tag: u32) -> Option<*mut (dyn Rewritable + 'a)> {
        None
    }

    /// The same with shards.
    #[cfg(all(feature = "heap", feature = "shards"))]
    fn live_shards<'a>(self, tag: u32) -> Option<*mut (dyn Rewritable + 'a)> {
        let log = self.value::<Live<Sharded<Log>>>(tag).map(|it| it as *mut (dyn Rewritable + 'a));
        log.or_else(|| self.value::<Live<Sharded<Window>>>(tag).map(|it| it as *mut _))
    }

    #[cfg(all(feature = "heap", not(feature = "shards")))]
    fn live_shards<'a>(self, _tag: u32) -> Option<*mut (dyn Rewritable + 'a)> {
        None
    }

    /// The same of this one.
    pub(crate) fn rewritable<'a>(self) -> Option<&'a dyn Rewritable> {
        #[cfg(feature = "heap")]
        // SAFETY: I2.
        return self.live(self.tag().0 & !COUNTS).map(|it| unsafe { &*it });
        #[cfg(not(feature = "heap"))]
        None
    }

    /// The queue of a limiter that is one.
    pub(crate) fn pacing<'a>(self) -> Option<&'a Pacing> {
        // SAFETY: I2.
        self.value::<Pacing>(self.tag().0 & !COUNTS).map(|it| unsafe { &*it })
    }
}

/// [`try_acquire_at`](Algorithm::try_acquire_at), in a function of its own.
#[inline(never)]
fn try_apart<C: Config>(placed: Placed<'_, C>, cost: u64, now: Nanos) -> bool {
    placed.try_acquire_at(cost, now)
}
