//! Limiters by key as the core has them, with a key of fixed size, a secret and a clock.
//!
//! # Memory order
//! | id | site         | order   | pairs with | because                     |
//! |----|--------------|---------|------------|-----------------------------|
//! | O1 | every count  | Relaxed | none       | counts, which order nothing |

extern crate alloc;

use alloc::boxed::Box;
use core::{
    hash::{BuildHasher, Hash, Hasher},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use siphasher::{
    sip::SipHasher13,
    sip128::{self, Hasher128},
};
use tollgate::{Class, Decision, Keyed, Nanos, WhenFull};

use super::{
    TOLLGATE_KEY_KEPT, TOLLGATE_KEYED_STATS_SIZE, TOLLGATE_MAX_CLASSES, TOLLGATE_REFUSE_WHEN_FULL,
    tollgate_busy_key_t, tollgate_class_t, tollgate_keyed_config_t, tollgate_keyed_stats_t, tollgate_keyed_t,
};
use crate::{
    clock,
    config::{Plan, TOLLGATE_STATS},
    life::{place, read_plain},
    memory,
    stats::line,
    status::tollgate_status::{self, *},
};

/// Bytes of a longer key that are kept, before its digest.
const HEAD: usize = TOLLGATE_KEY_KEPT - size_of::<u128>();
/// Lines of counts.
const LINES: usize = 16;

/// Limiters by key.
pub(crate) struct Table {
    keyed: Keyed<Asked, Secret>,
    secret: Secret,
    classes: u32,
    clock: u32,
    counts: Option<Box<[Line; LINES]>>,
    /// How far into the allocation this lies.
    skip: usize,
}

/// A key as it is asked for, and kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    form: Form,
    class: u8,
    len: u16,
    bytes: [u8; TOLLGATE_KEY_KEPT],
}

/// What the bytes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    /// The first [`HEAD`], and a digest.
    Digested,
}

/// What keys are hashed with.
#[derive(Clone, Copy)]
struct Secret([u64; 2]);

/// The counts of some threads.
#[derive(Default)]
#[repr(align(128))]
struct Line {
    allowed: AtomicU64,
    refused: AtomicU64,
}

// === impl Table ===

impl Table {
    /// # Safety
    /// There are as many classes as it says.
    pub(crate) unsafe fn create(
        config: &tollgate_keyed_config_t,
    ) -> Result<*mut tollgate_keyed_t, tollgate_status> {
        let valid = config.flags & !(TOLLGATE_STATS | TOLLGATE_REFUSE_WHEN_FULL) == 0
            && (1..=TOLLGATE_MAX_CLASSES).contains(&config.class_count)
            && config.reserved == [0; 4];
        if !valid {
            return Err(TOLLGATE_E_INVALID);
        }
        clock::serves(config.clock, false)?;
        let secret = Secret::new(config.secret)?;
        let classes = place(config.classes.cast_mut())?;
        // SAFETY: the contract of this function.
        let classes = unsafe { core::slice::from_raw_parts(classes.as_ptr(), config.class_count as usize) };
        let (first, others) = classes.split_first().ok_or(TOLLGATE_E_INVALID)?;
        // SAFETY: the contract of this function.
        let mut builder = Keyed::builder_with_hasher(unsafe { class(first) }?, first.keys, secret);
        for other in others {
            // SAFETY: the contract of this function.
            builder = builder.class(unsafe { class(other) }?, other.keys);
        }
        let refuses = config.flags & TOLLGATE_REFUSE_WHEN_FULL != 0;
        builder = builder.when_full(if refuses { WhenFull::Refuse } else { WhenFull::Share });
        let keyed = builder.choose(|key: &Asked| key.class.into()).build()?;
        let (memory, skip) = memory::zeroed(size_of::<Self>(), align_of::<Self>())?;
        let counts = (config.flags & TOLLGATE_STATS != 0).then(Box::default);
        let table = Self { keyed, secret, classes: config.class_count, clock: config.clock, counts, skip };
        // SAFETY: contract of `write`: as large, and aligned.
        unsafe { memory.cast::<Self>().write(table) };
        Ok(memory.as_ptr().cast())
    }

    /// # Safety
    /// NULL, or from `create` and not used any more.
    pub(crate) unsafe fn destroy(keyed: *mut tollgate_keyed_t) {
        let Some(memory) = NonNull::new(keyed.cast::<Self>()) else { return };
        // SAFETY: the contract of this function.
        let table = unsafe { memory.read() };
        // SAFETY: contract of `free`: from `zeroed`, with this skip.
        unsafe { memory::free(memory.cast(), table.skip) };
    }

    /// # Safety
    /// NULL, or from `create` and alive.
    pub(crate) unsafe fn of<'a>(keyed: *const tollgate_keyed_t) -> Result<&'a Self, tollgate_status> {
        // SAFETY: the contract of this function.
        unsafe { keyed.cast::<Self>().as_ref() }.ok_or(TOLLGATE_E_NULL)
    }

    pub(crate) fn now(&self) -> Option<Nanos> {
        clock::read(self.clock)
    }

    /// The key of these bytes; `None`: there is no such class.
    pub(crate) fn key(&self, class: u32, bytes: &[u8]) -> Option<Asked> {
        let class = u8::try_from(class).ok().filter(|_| class < self.classes)?;
        let len = u16::try_from(bytes.len()).ok()?;
        let mut kept = [0; TOLLGATE_KEY_KEPT];
        if let Some(start) = kept.get_mut(..bytes.len()) {
            start.copy_from_slice(bytes);
            return Some(Asked { form: Form::Whole, class, len, bytes: kept });
        }
        let (head, digest) = kept.split_at_mut(HEAD);
        head.copy_from_slice(bytes.get(..HEAD)?);
        digest.copy_from_slice(&self.secret.digest(bytes).to_ne_bytes());
        Some(Asked { form: Form::Digested, class, len, bytes: kept })
    }

    pub(crate) fn try_acquire(&self, key: &Asked, cost: u64, now: Nanos) -> bool {
        let admitted = self.keyed.try_acquire_at(key, cost, now);
        self.count(cost, admitted);
        admitted
    }

    pub(crate) fn check(&self, key: &Asked, cost: u64, now: Nanos) -> Decision {
        let decision = self.keyed.check_at(key, cost, now);
        self.count(cost, decision.is_ok());
        decision
    }

    pub(crate) fn peek(&self, key: &Asked, cost: u64, now: Nanos) -> Decision {
        self.keyed.peek_at(key, cost, now)
    }

    pub(crate) fn usage(&self, key: &Asked, rule: usize, now_ns: u64) -> Option<u64> {
        self.keyed.usage_at(key, rule, Nanos::from_nanos(now_ns))
    }

    pub(crate) fn remove(&self, key: &Asked) -> bool {
        self.keyed.remove(key)
    }

    pub(crate) fn keys(&self) -> u64 {
        self.keyed.len() as u64
    }

    pub(crate) fn busiest(
        &self,
        room: usize,
        now_ns: u64,
        tell: &mut dyn FnMut(tollgate_busy_key_t),
    ) -> Result<(), tollgate_status> {
        let now = Nanos::from_nanos(now_ns);
        if !now.in_range() {
            return Err(TOLLGATE_E_INVALID);
        }
        self.keyed.busiest_at(room, now).into_iter().map(|(key, used)| key.told(used)).for_each(tell);
        Ok(())
    }

    pub(crate) fn stats(&self) -> tollgate_keyed_stats_t {
        let sum = |of: fn(&Line) -> &AtomicU64| {
            let lines = self.counts.iter().flat_map(|lines| lines.iter());
            lines.map(|line| of(line).load(Relaxed)).sum() // O1
        };
        tollgate_keyed_stats_t {
            struct_size: TOLLGATE_KEYED_STATS_SIZE,
            flags: 0,
            keys: self.keys(),
            capacity: self.keyed.capacity(),
            bytes: self.keyed.state_bytes() as u64,
            evictions: self.keyed.evicted(),
            allowed: sum(|line| &line.allowed),
            refused: sum(|line| &line.refused),
            reserved: [0; 3],
        }
    }

    fn count(&self, cost: u64, admitted: bool) {
        if let Some(lines) = &self.counts
            && cost > 0
            && let Some(line) = lines.get(line(LINES))
        {
            let word = if admitted { &line.allowed } else { &line.refused };
            word.fetch_add(1, Relaxed); // O1
        }
    }
}

/// What the keys of a class are allowed.
///
/// # Safety
/// The configuration, if there is one, can be read.
unsafe fn class(class: &tollgate_class_t) -> Result<Class, tollgate_status> {
    if class.limit.is_null() {
        return if class.keys == 0 { Ok(Class::unlimited()) } else { Err(TOLLGATE_E_INVALID) };
    }
    // SAFETY: the contract of this function.
    let config = unsafe { read_plain(class.limit) }?;
    Ok(match config.plan()? {
        Plan::Log(config) => config.into(),
        Plan::Window(config) => config.into(),
        Plan::Fixed(config) => config.into(),
        Plan::TwoWindow(config) => config.into(),
        Plan::Gcra(config) => config.into(),
        _ => return Err(TOLLGATE_E_UNSUPPORTED),
    })
}

// === impl Asked ===

impl Asked {
    /// As C is told of it.
    fn told(&self, used: u64) -> tollgate_busy_key_t {
        let shown = if self.form == Form::Whole { TOLLGATE_KEY_KEPT } else { HEAD };
        let key = core::array::from_fn(|at| if at < shown { self.bytes[at] } else { 0 });
        tollgate_busy_key_t { used, len: self.len.into(), class_index: self.class.into(), key, reserved: 0 }
    }
}

impl Hash for Asked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let kept = usize::from(self.len).min(TOLLGATE_KEY_KEPT);
        state.write(self.bytes.get(..kept).unwrap_or(&self.bytes));
    }
}

// === impl Secret ===

impl Secret {
    fn new(given: [u64; 2]) -> Result<Self, tollgate_status> {
        if given != [0; 2] {
            return Ok(Self(given));
        }
        #[cfg(feature = "std")]
        {
            let system = std::hash::RandomState::new();
            Ok(Self([system.hash_one(0), system.hash_one(1)]))
        }
        #[cfg(not(feature = "std"))]
        Err(TOLLGATE_E_INVALID)
    }

    /// Of a whole key. Under another key than the hashes, so that neither tells anything of the other.
    fn digest(&self, bytes: &[u8]) -> u128 {
        let mut hasher = sip128::SipHasher13::new_with_keys(!self.0[0], !self.0[1]);
        hasher.write(bytes);
        hasher.finish128().as_u128()
    }
}

impl BuildHasher for Secret {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}
