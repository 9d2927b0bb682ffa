//! The words before a region's states: what two processes must agree on.
//!
//! # State
//! Words, in the order of the machine. The first 0x80 bytes keep their meaning in every layout.
//!
//! | bytes         | what                                                                             |
//! |---------------|----------------------------------------------------------------------------------|
//! | 0x000         | magic, written last; 0 = not ready                                               |
//! | 0x008         | layout version, and size of this header above it                                 |
//! | 0x010         | digest of the layout: sizes and alignments of everything that follows             |
//! | 0x018         | seal: a digest of all words but this and the magic                               |
//! | 0x020         | bytes of the region                                                              |
//! | 0x028         | limiters by index                                                                |
//! | 0x030         | buckets of keys                                                                  |
//! | 0x038         | bytes from one state to the next                                                 |
//! | 0x040         | the algorithm's name                                                             |
//! | 0x048         | clock, and above it what becomes of a key without room                            |
//! | 0x050, 0x058  | the boot whose time it is; 0 under the caller's time                              |
//! | 0x060         | the time namespace likewise                                                      |
//! | 0x068, 0x070  | secret of the hash of keys, random; put first                                     |
//! | 0x078         | words of the configuration                                                       |
//! | 0x080 - 0x107 | the rules; of a region whose rules may change, those to begin with                |
//! | 0x108         | bytes of the rules in force, which lie behind this header; 0 if rules do not change |
//! | 0x110 ...     | the configuration, as `Config::words` gives it; zeros up to 0x400                 |
//!
//! # Invariants
//! | id | always                                                                    | kept by           |
//! |----|---------------------------------------------------------------------------|-------------------|
//! | I1 | once the magic is there, no word of the header is ever written              | `settle`          |
//! | I2 | one flipped bit is noticed: of magic and layout as such, of all others by the seal | `Header::checked` |
//! | I3 | nothing read from a header is used but to compare it, and the secret        | `Plan`            |
//!
//! I1 holds however many make one region at once, and wherever one of them dies: each word is put by a CAS from 0 to a value
//! that all of them know. The secret, which each would choose otherwise, comes first: who finds it put takes that. Then the
//! seal, so that who has another configuration stops there; then the others in any order, and the magic last.
//! Whoever finds words put and no magic finishes. Zeros are not written, states are not touched.
//!
//! # Memory order
//! | id | site             | order   | pairs with | because                                                   |
//! |----|------------------|---------|------------|-----------------------------------------------------------|
//! | O1 | magic, CAS       | Release | O2         | publishes every word of the header                        |
//! | O2 | magic, load      | Acquire | O1         | whoever sees it sees all others (I1)                       |
//! | O3 | words, load, CAS | AcqRel  | itself     | whoever finds a word that another put may publish it, too  |
//! | O4 | words, load      | Relaxed | none       | after O2, or only compared                                 |

use super::{
    error::{Field, SharedError},
    rules::Present,
    table::{Bucket, WAYS},
};
use crate::{
    Config, RULES_MAX, Rule, Rules, STATE_ALIGN,
    sync::{AcqRel, Acquire, Relaxed, Release, Word},
};

/// Bytes of a header.
pub(super) const BYTES: usize = 0x400;
const WORDS: usize = BYTES / 8;

/// Bytes of this layout.
pub(super) const VERSION: u32 = 2;
const MAGIC: u64 = u64::from_le_bytes(*b"tollgshm");

const MAGIC_AT: usize = 0;
const LAYOUT_AT: usize = 1;
const DIGEST_AT: usize = 2;
const SEAL_AT: usize = 3;
const BYTES_AT: usize = 4;
const LIMITERS_AT: usize = 5;
const BUCKETS_AT: usize = 6;
const STRIDE_AT: usize = 7;
const NAME_AT: usize = 8;
const KINDS_AT: usize = 9;
const BOOT_AT: usize = 10;
const NAMESPACE_AT: usize = 12;
const SECRET_AT: usize = 13;
const CONFIG_WORDS_AT: usize = 15;
const RULES_AT: usize = 16;
const LIVE_AT: usize = 33;
const CONFIG_AT: usize = 34;

const _: () = assert!(RULES_AT + 1 + 2 * RULES_MAX <= LIVE_AT && size_of::<Bucket>() == STATE_ALIGN);

/// A copy of a header.
#[derive(Clone, Copy)]
pub(super) struct Header([u64; WORDS]);

/// What a region is made for: every word of its header but magic, seal and secret.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    words: Header,
}

/// What a region's time counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Epoch {
    pub(super) boot: [u64; 2],
    pub(super) namespace: u64,
}

/// The sizes of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    pub(super) bytes: usize,
    /// Of the rules in force; 0 if rules do not change.
    pub(super) live: usize,
    pub(super) limiters: u64,
    pub(super) buckets: u64,
    pub(super) stride: usize,
}

// === impl Header ===

impl Header {
    /// A copy of the words of a region.
    pub(super) fn read(words: &[Word<u64>; WORDS]) -> Result<Self, SharedError> {
        let magic = words[MAGIC_AT].load(Acquire); // O2
        let mut copy = [0; WORDS];
        for (at, word) in copy.iter_mut().zip(words) {
            *at = word.load(Relaxed); // O4
        }
        copy[MAGIC_AT] = magic;
        Self(copy).checked()
    }

    /// A copy that was read as bytes.
    pub(super) fn of(bytes: &[u8; BYTES]) -> Result<Self, SharedError> {
        let (words, _) = bytes.as_chunks::<8>();
        Self(core::array::from_fn(|at| u64::from_ne_bytes(words[at]))).checked()
    }

    /// Itself, if it is the header of a region of this layout (I2).
    fn checked(self) -> Result<Self, SharedError> {
        match self.0[MAGIC_AT] {
            MAGIC => {}
            0 => return Err(SharedError::NotReady),
            got => return Err(SharedError::Magic { got }),
        }
        if self.0[LAYOUT_AT] != LAYOUT {
            return Err(SharedError::Layout { got: self.0[LAYOUT_AT] as u32, expected: VERSION });
        }
        if self.seal() == self.0[SEAL_AT] { Ok(self) } else { Err(SharedError::Corrupt) }
    }

    /// A digest of all words but magic and seal; 1 stands for 0. Each step is a bijection of the digest and one of the word, so two
    /// headers that differ in one word have different ones.
    fn seal(&self) -> u64 {
        let others = self.0.iter().enumerate().filter(|(at, _)| ![MAGIC_AT, SEAL_AT].contains(at));
        others.fold(0, |digest, (_, &word)| mixed(digest, word)).max(1)
    }

    /// What differs from the header that is expected, if anything does.
    fn compare(&self, expected: &Self) -> Result<(), SharedError> {
        let fields = [
            (NAME_AT..NAME_AT + 1, Field::Algorithm),
            (DIGEST_AT..DIGEST_AT + 1, Field::Layout),
            (KINDS_AT..KINDS_AT + 1, Field::Kinds),
            (LIVE_AT..LIVE_AT + 1, Field::Live),
            (BOOT_AT..SECRET_AT, Field::Boot),
            (RULES_AT..LIVE_AT, Field::Rules),
            (CONFIG_WORDS_AT..RULES_AT, Field::Configuration),
            (CONFIG_AT..WORDS, Field::Configuration),
            (LIMITERS_AT..BUCKETS_AT, Field::Limiters),
            (BUCKETS_AT..STRIDE_AT, Field::Keys),
            (BYTES_AT..SECRET_AT, Field::Layout),
        ];
        for (range, field) in fields {
            if let Some(at) = range.clone().find(|&at| self.0[at] != expected.0[at]) {
                return Err(SharedError::Differs { field, got: self.0[at], expected: expected.0[at] });
            }
        }
        Ok(())
    }

    /// The secret of the hash of keys.
    pub(super) fn secret(&self) -> [u64; 2] {
        [self.0[SECRET_AT], self.0[SECRET_AT + 1]]
    }

    /// Sizes as they stand there: to be shown, not used (I3).
    pub(super) fn sizes(&self) -> Sizes {
        let stride = self.0[STRIDE_AT] as usize;
        let (bytes, live) = (self.0[BYTES_AT] as usize, self.0[LIVE_AT] as usize);
        Sizes { bytes, live, limiters: self.0[LIMITERS_AT], buckets: self.0[BUCKETS_AT], stride }
    }

    pub(super) fn version(&self) -> u32 {
        self.0[LAYOUT_AT] as u32
    }

    pub(super) fn name(&self) -> [u8; 8] {
        self.0[NAME_AT].to_le_bytes()
    }

    pub(super) fn kinds(&self) -> (u32, u32) {
        (self.0[KINDS_AT] as u32, (self.0[KINDS_AT] >> 32) as u32)
    }

    pub(super) fn epoch(&self) -> Epoch {
        Epoch { boot: [self.0[BOOT_AT], self.0[BOOT_AT + 1]], namespace: self.0[NAMESPACE_AT] }
    }

    /// The rules to begin with.
    pub(super) fn rules(&self) -> Rules {
        let len = (self.0[RULES_AT] as usize).min(RULES_MAX);
        let (pairs, _) = self.0[RULES_AT + 1..LIVE_AT].as_chunks::<2>();
        let rules: [Rule; RULES_MAX] = core::array::from_fn(|at| Rule {
            limit: pairs[at][0],
            window: crate::Nanos::from_nanos(pairs[at][1]),
        });
        Rules::of(&rules[..len])
    }
}

const LAYOUT: u64 = VERSION as u64 | (BYTES as u64) << 32;

/// One more word in a digest.
const fn mixed(digest: u64, word: u64) -> u64 {
    let mixed = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// A digest of how states and buckets lie.
const fn layout_of<C>() -> u64 {
    let (bucket, rules) = (size_of::<Bucket>(), size_of::<Present>());
    let sizes = [STATE_ALIGN, bucket, WAYS, RULES_MAX, rules, size_of::<C>(), align_of::<C>()];
    let (mut digest, mut at) = (0, 0);
    while at < sizes.len() {
        digest = mixed(digest, sizes[at] as u64);
        at += 1;
    }
    digest
}

// === impl Plan ===

impl Plan {
    pub(super) fn new<C: Config>(config: &C, sizes: Sizes, kinds: (u32, u32), epoch: Epoch) -> Self {
        const { assert!(CONFIG_AT + size_of::<C>() / 8 <= WORDS) };
        let mut words = [0; WORDS];
        words[LAYOUT_AT] = LAYOUT;
        words[DIGEST_AT] = layout_of::<C>();
        words[BYTES_AT] = sizes.bytes as u64;
        words[LIMITERS_AT] = sizes.limiters;
        words[BUCKETS_AT] = sizes.buckets;
        words[STRIDE_AT] = sizes.stride as u64;
        words[LIVE_AT] = sizes.live as u64;
        words[NAME_AT] = u64::from_le_bytes(C::NAME);
        words[KINDS_AT] = u64::from(kinds.0) | u64::from(kinds.1) << 32;
        words[BOOT_AT..NAMESPACE_AT].copy_from_slice(&epoch.boot);
        words[NAMESPACE_AT] = epoch.namespace;
        words[CONFIG_WORDS_AT] = config.words().len() as u64;
        words[RULES_AT] = config.rules().len() as u64;
        for (at, rule) in config.rules().iter().enumerate() {
            words[RULES_AT + 1 + 2 * at] = rule.limit;
            words[RULES_AT + 2 + 2 * at] = rule.window.as_nanos();
        }
        for (at, &word) in words[CONFIG_AT..].iter_mut().zip(config.words()) {
            *at = word;
        }
        Self { words: Header(words) }
    }

    /// What differs in a region of another plan, if anything does.
    pub(super) fn compare(&self, found: &Header) -> Result<(), SharedError> {
        found.compare(&self.words)
    }

    /// Whether a region is of this plan: its secret.
    pub(super) fn attach(&self, words: &[Word<u64>; WORDS]) -> Result<[u64; 2], SharedError> {
        let found = Header::read(words)?;
        found.compare(&self.words)?;
        Ok(found.secret())
    }

    /// Makes a region's header of zeros, or finishes what others began (I1).
    pub(super) fn settle(
        &self,
        words: &[Word<u64>; WORDS],
        random: [u64; 2],
    ) -> Result<[u64; 2], SharedError> {
        match self.attach(words) {
            Err(SharedError::NotReady) => {}
            other => return other,
        }
        // What is in the way is seen before anything is written.
        let own = |at: &usize| ![MAGIC_AT, SEAL_AT, SECRET_AT, SECRET_AT + 1].contains(at);
        for at in (0..WORDS).filter(own) {
            let found = words[at].load(Relaxed); // O4
            if found != 0 && found != self.words.0[at] {
                return Err(SharedError::Foreign);
            }
        }
        let mut all = self.words;
        for (at, random) in (SECRET_AT..).zip(random) {
            all.0[at] = put(&words[at], random | 1);
        }
        all.0[SEAL_AT] = all.seal();
        for at in core::iter::once(SEAL_AT).chain((0..WORDS).filter(own)) {
            if put(&words[at], all.0[at]) != all.0[at] {
                return Err(SharedError::Foreign);
            }
        }
        // Beaten: another published the same words.
        let _ = words[MAGIC_AT].compare_exchange(0, MAGIC, Release, Relaxed); // O1
        Ok(all.secret())
    }
}

/// Puts a word, or finds one put: what stands there now.
fn put(word: &Word<u64>, value: u64) -> u64 {
    let found = word.load(Acquire); // O3
    if found != 0 || value == 0 {
        return found;
    }
    word.compare_exchange(0, value, AcqRel, Acquire).map_or_else(|found| found, |_| value) // O3
}
