//! Which key has which place: a hash table of a fixed size, in rows of seven places.
//!
//! # What
//! A row is eight bytes of tags and its places; a place holds a key and, beside it, the key's state if that is one word. A
//! key lies in the first row with a free place, from the one on that its hash names. Each row that it had to pass counts
//! it, so a look-up ends at the first row that nobody passed. A key that leaves is counted no more and leaves nothing
//! behind: there are no marks to clear, a key never moves, and the table never grows.
//!
//! With keys of 8 bytes and states of one word a row is 120 bytes: a call reads one cache line, or two that adjoin.
//!
//! # State
//! | byte of a row's tags | meaning                                                                   |
//! |----------------------|---------------------------------------------------------------------------|
//! | 0 to 6               | of each place: 0 if it is free, else 8 bits of its key's hash              |
//! | 7                    | keys that passed the row; from 255 on it is not exact, and stays           |
//!
//! # Invariants
//! | id | always                                                                      | kept by                  |
//! |----|-----------------------------------------------------------------------------|--------------------------|
//! | I1 | a place holds a key, and a state, exactly if its tag is not 0                 | `insert`, `remove`       |
//! | I2 | every row from the one that a key's hash names up to its own counts the key   | `insert`, `remove`       |
//! | I3 | a key that comes finds the state beside it all zeros                         | `insert`                 |

use alloc::boxed::Box;
use core::{
    borrow::Borrow,
    mem::{MaybeUninit, needs_drop},
};

use crate::{ConfigError, algorithm::reserve, sync::Word};

/// Places in a row. Under the model one, so that keys pass rows at once.
pub(super) const COLUMNS: usize = if cfg!(tollgate_loom) { 1 } else { 7 };
/// The byte of the tags that counts.
const PASSED: usize = 7;
/// Bytes that a processor fetches at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
/// One more place for each so many, so that rows are seldom passed.
const SPARE: u32 = 12;

/// Keys with their places.
pub(super) struct Places<K> {
    rows: Rows<K>,
    len: u32,
}

/// A place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    row: u32,
    column: u32,
}

/// Where a key's state lies: in this word, or among many at this index.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) index: u32,
    pub(super) word: Option<&'a Word<u64>>,
}

enum Rows<K> {
    /// With a state beside each key.
    Stateful(Box<[Row<K, Word<u64>>]>),
    /// Keys alone.
    Bare(Box<[Row<K, ()>]>),
}

/// A row. `W` lies beside each key.
#[repr(C)]
struct Row<K, W> {
    tags: [u8; 8],
    places: [MaybeUninit<(K, W)>; COLUMNS],
}

/// What lies beside a key.
trait Beside: Default {
    fn word(&self) -> Option<&Word<u64>>;
}

/// The same with rows of either kind.
macro_rules! with {
    ($rows:expr, $it:ident => $answer:expr) => {
        match $rows {
            Rows::Stateful($it) => $answer,
            Rows::Bare($it) => $answer,
        }
    };
}

// === impl Places ===

impl<K> Places<K> {
    /// Places for so many keys, each with a word beside it or not.
    pub(super) fn new(keys: u32, stateful: bool) -> Result<Self, ConfigError> {
        let rows = u64::from(keys).saturating_add((keys / SPARE).into()).div_ceil(COLUMNS as u64);
        let rows = if stateful { Rows::Stateful(new_rows(rows)?) } else { Rows::Bare(new_rows(rows)?) };
        Ok(Self { rows, len: 0 })
    }

    /// Keys.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Places, some of which are never in use.
    pub(super) fn count(&self) -> u32 {
        with!(&self.rows, rows => (rows.len() * COLUMNS) as u32)
    }

    /// Bytes of memory taken.
    pub(super) fn bytes(&self) -> usize {
        with!(&self.rows, rows => size_of_val(&**rows))
    }

    /// The place after this one; the first after the last.
    #[inline]
    pub(super) fn after(&self, place: Place) -> Place {
        if place.column + 1 < COLUMNS as u32 {
            return Place { column: place.column + 1, ..place };
        }
        let rows = with!(&self.rows, rows => rows.len());
        let next = place.row as usize + 1;
        Place { row: if next < rows { next as u32 } else { 0 }, column: 0 }
    }

    /// The place of a key, and where its state lies.
    #[inline(always)]
    pub(super) fn find<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<(Place, Spot<'_>)>
    where
        K: Borrow<Q>,
    {
        with!(&self.rows, rows => find(rows, hash, |it| it.borrow() == key))
    }

    /// The key at a place, if it is taken, and where its state lies.
    #[inline(always)]
    pub(super) fn at(&self, place: Place) -> Option<(&K, Spot<'_>)> {
        with!(&self.rows, rows => rows[place.row as usize].at(place))
    }

    /// Asks for the cache lines of a place's row, which will be looked at.
    #[inline(always)]
    pub(super) fn ask_for_row(&self, place: Place) {
        with!(&self.rows, rows => ask_for(rows, place.row as usize));
    }

    /// Places from one on, round and round.
    pub(super) fn from(&self, place: Place) -> impl Iterator<Item = Place> {
        core::iter::successors(Some(place), |&place| Some(self.after(place)))
    }

    /// The first key at a place of this row, from this one on, whose state lies at such a spot.
    #[inline(always)]
    pub(super) fn first_in_row(&self, from: Place, is: impl Fn(Spot<'_>) -> bool) -> Option<(Place, &K)> {
        with!(&self.rows, rows => {
            let row = &rows[from.row as usize];
            let mut places = (from.column..COLUMNS as u32).map(|column| Place { column, ..from });
            places.find_map(|place| row.at(place).filter(|(_, spot)| is(*spot)).map(|(key, _)| (place, key)))
        })
    }

    /// All keys, with their places, and where their states lie.
    pub(super) fn keys(&self) -> impl Iterator<Item = (Place, &K, Spot<'_>)> {
        let places = self.from(Place::FIRST).take(self.count() as usize);
        places.filter_map(|place| self.at(place).map(|(key, spot)| (place, key, spot)))
    }

    /// Gives a key a place, and tells where its state lies. There must be a free place.
    pub(super) fn insert(&mut self, hash: u64, key: K) -> Spot<'_> {
        self.len += 1;
        with!(&mut self.rows, rows => insert(rows, hash, key))
    }

    /// Takes its place from the key with this hash, and the key from the place.
    pub(super) fn remove(&mut self, place: Place, hash: u64) -> Option<K> {
        let key = with!(&mut self.rows, rows => remove(rows, place, hash));
        self.len -= u32::from(key.is_some());
        key
    }
}

// === impl Place ===

impl Place {
    pub(super) const FIRST: Self = Self { row: 0, column: 0 };

    pub(super) fn is_first_in_row(self) -> bool {
        self.column == 0
    }

    pub(super) fn last_in_row(self) -> Self {
        Self { column: COLUMNS as u32 - 1, ..self }
    }

    #[inline(always)]
    fn spot<W: Beside>(self, beside: &W) -> Spot<'_> {
        Spot { index: self.row * COLUMNS as u32 + self.column, word: beside.word() }
    }
}

// === rows ===

fn new_rows<K, W>(count: u64) -> Result<Box<[Row<K, W>]>, ConfigError> {
    let mut rows = reserve(count)?;
    rows.extend((0..count).map(|_| Row { tags: [0; 8], places: [const { MaybeUninit::uninit() }; COLUMNS] }));
    Ok(rows.into_boxed_slice())
}

/// The row that a hash names, by bits that the shard does not use.
fn home(hash: u64, rows: usize) -> usize {
    ((u64::from(hash as u32) * rows as u64) >> u32::BITS) as usize
}

/// The tag of a hash, by bits that neither shard nor row use.
fn tag(hash: u64) -> u8 {
    (hash >> 56) as u8 | 1
}

/// Asks for the cache lines of a row at once, which come one after the other else: the line of a key's place is known when
/// that of the tags is there. A hint; of rows that are many lines only the first and the last are asked for.
#[inline(always)]
fn ask_for<T>(rows: &[T], row: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(row) = rows.get(row) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = (&raw const *row).cast::<i8>();
        for byte in [0, LINE.min(size_of::<T>() - 1), size_of::<T>() - 1] {
            // SAFETY: contract of `_mm_prefetch`: reads nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(byte)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (rows, row);
}

#[inline(always)]
fn find<K, W: Beside>(rows: &[Row<K, W>], hash: u64, is: impl Fn(&K) -> bool) -> Option<(Place, Spot<'_>)> {
    let (mut row, tag) = (home(hash, rows.len()), tag(hash));
    ask_for(rows, row);
    // All rows at most: no key lies further away than once round.
    for _ in 0..rows.len() {
        let at = &rows[row];
        for column in at.tagged(tag) {
            let place = Place { row: row as u32, column };
            if let Some((key, spot)) = at.at(place)
                && is(key)
            {
                return Some((place, spot));
            }
        }
        if at.tags[PASSED] == 0 {
            break; // I2
        }
        row = if row + 1 < rows.len() { row + 1 } else { 0 };
    }
    None
}

fn insert<K, W: Beside>(rows: &mut [Row<K, W>], hash: u64, key: K) -> Spot<'_> {
    let mut row = home(hash, rows.len());
    let column = loop {
        let at = &mut rows[row];
        if let Some(column) = at.tagged(0).next() {
            break column;
        }
        at.tags[PASSED] = at.tags[PASSED].saturating_add(1); // I2
        row = if row + 1 < rows.len() { row + 1 } else { 0 };
    };
    let at = &mut rows[row];
    let (_, beside) = at.places[column as usize].write((key, W::default())); // I3
    at.tags[column as usize] = tag(hash); // I1
    Place { row: row as u32, column }.spot(beside)
}

fn remove<K, W>(rows: &mut [Row<K, W>], place: Place, hash: u64) -> Option<K> {
    let mut row = home(hash, rows.len());
    let (key, _) = rows[place.row as usize].take(place.column)?;
    while row != place.row as usize {
        let passed = &mut rows[row].tags[PASSED];
        if (1..u8::MAX).contains(passed) {
            *passed -= 1; // I2
        }
        row = if row + 1 < rows.len() { row + 1 } else { 0 };
    }
    Some(key)
}

// === impl Row ===

impl<K, W> Row<K, W> {
    /// The places with this tag: all eight tags are compared at once.
    #[inline(always)]
    fn tagged(&self, tag: u8) -> impl Iterator<Item = u32> + use<K, W> {
        const ONES: u64 = u64::from_le_bytes([1; 8]);
        const LOW: u64 = 0x7f * ONES;
        const TOPS: u64 = !LOW & (u64::MAX >> (64 - 8 * COLUMNS));
        let unlike = u64::from_le_bytes(self.tags) ^ (u64::from(tag) * ONES);
        // The top bit of each byte that is zero, and of no other: no sum of seven bits carries into the next byte.
        let mut alike = !(((unlike & LOW) + LOW) | unlike) & TOPS;
        core::iter::from_fn(move || {
            let first = (alike != 0).then(|| alike.trailing_zeros() / 8);
            alike &= alike.wrapping_sub(1);
            first
        })
    }

    /// What a place of this row holds.
    #[inline(always)]
    fn at(&self, place: Place) -> Option<(&K, Spot<'_>)>
    where
        W: Beside,
    {
        let column = place.column as usize;
        if self.tags[column] == 0 {
            return None;
        }
        // SAFETY: I1.
        let (key, beside) = unsafe { self.places[column].assume_init_ref() };
        Some((key, place.spot(beside)))
    }

    /// Takes out what a place holds.
    fn take(&mut self, column: u32) -> Option<(K, W)> {
        let column = column as usize;
        if core::mem::take(&mut self.tags[column]) == 0 {
            return None;
        }
        // SAFETY: I1: it held a key until now, and its tag is 0 now.
        Some(unsafe { self.places[column].assume_init_read() })
    }
}

impl<K, W> Drop for Row<K, W> {
    fn drop(&mut self) {
        if needs_drop::<(K, W)>() {
            (0..COLUMNS as u32).for_each(|column| drop(self.take(column)));
        }
    }
}

// === impl Beside ===

impl Beside for Word<u64> {
    #[inline(always)]
    fn word(&self) -> Option<&Word<u64>> {
        Some(self)
    }
}

impl Beside for () {
    #[inline(always)]
    fn word(&self) -> Option<&Word<u64>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeMap, rc::Rc};

    use super::*;
    use crate::sync::Relaxed;

    /// A key that tells whether it was dropped.
    struct Key(u64, #[expect(dead_code, reason = "its drop tells")] Rc<()>);

    impl Borrow<u64> for Key {
        fn borrow(&self) -> &u64 {
            &self.0
        }
    }

    /// Hashes that fall together: few rows, few tags.
    fn hash(key: u64) -> u64 {
        (key % 5) << 29 | (key % 3) << 57
    }

    fn passed<K>(places: &Places<K>) -> u32 {
        with!(&places.rows, rows => rows.iter().map(|row| u32::from(row.tags[PASSED])).sum())
    }

    /// Keys come and go at random and are found wherever they are, each with the state that it left; nobody is dropped
    /// twice, or not at all, and when all have gone no row remembers any.
    #[test]
    fn keys_are_found_while_others_come_and_go() {
        for (room, stateful) in [(1, true), (7, false), (20, true), (84, true), (84, false)] {
            let (mut places, mut held, mut random) =
                (Places::<Key>::new(room, stateful).unwrap(), BTreeMap::new(), 1_u64);
            let witness = Rc::new(());
            for _ in 0..20_000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let key = (random >> 40) % 200;
                let found = places.find(hash(key), &key).map(|(place, spot)| (place, spot.index));
                assert_eq!(found, held.get(&key).copied(), "{key}");
                if let Some((place, _)) = found {
                    let (it, spot) = places.at(place).unwrap();
                    assert_eq!(
                        (it.0, spot.word.map(|word| word.load(Relaxed))),
                        (key, stateful.then_some(key))
                    );
                    assert!(places.remove(place, hash(key)).is_some_and(|it| it.0 == key));
                    held.remove(&key);
                } else if held.len() < room as usize {
                    let spot = places.insert(hash(key), Key(key, Rc::clone(&witness)));
                    assert_eq!(spot.word.map(|word| word.load(Relaxed)), stateful.then_some(0));
                    spot.word.inspect(|word| word.store(key, Relaxed));
                    let (place, spot) = places.find(hash(key), &key).unwrap();
                    held.insert(key, (place, spot.index));
                }
                assert_eq!((places.len() as usize, places.keys().count()), (held.len(), held.len()));
                assert_eq!(Rc::strong_count(&witness), held.len() + 1);
            }
            for (key, (place, _)) in held {
                assert!(places.remove(place, hash(key)).is_some());
            }
            assert_eq!((places.len(), passed(&places)), (0, 0));
            places.insert(hash(1), Key(1, Rc::clone(&witness)));
            drop(places);
            assert_eq!(Rc::strong_count(&witness), 1);
        }
    }
}
