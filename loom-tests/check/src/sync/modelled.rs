//! The checker's types, traced.
//!
//! While only one thread runs (before the others start and after they are done) an access goes to the word directly
//! instead of through loom's scheduler: same values, no branches, and no store history used up.

use std::{cell, panic::Location, sync::atomic::Ordering};

pub use crate::rt::sync::Arc;

use super::AtomicExt;
#[cfg(tollgate_shuttle)]
use crate::rt::sync::WithMut as _;
use crate::{
    rt,
    trace::{self, Effect, Op},
};

macro_rules! atomic {
    ($(#[$meta:meta])* $name:ident: $value:ty) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name {
            inner: cell::UnsafeCell<rt::sync::atomic::$name>,
            word: u32,
        }

        // SAFETY: contract of `Sync`: all model threads run on one OS thread, and the only `&mut` made from `&self`
        // (in `alone`) ends before the model can switch threads.
        unsafe impl Sync for $name {}

        impl $name {
            /// A word that holds `value`.
            #[track_caller]
            pub fn new(value: $value) -> Self {
                let word = trace::new_word(Some(value as u64));
                Self { inner: cell::UnsafeCell::new(rt::sync::atomic::$name::new(value)), word }
            }

            /// The value, for good.
            #[track_caller]
            pub fn into_inner(mut self) -> $value {
                self.with_mut(|value| *value)
            }

            fn inner(&self) -> &rt::sync::atomic::$name {
                // SAFETY: contract of `UnsafeCell`: the `&mut` in `alone` never lives across a call of this.
                unsafe { &*self.inner.get() }
            }

            fn alone<R>(&self, f: impl FnOnce(&mut $value) -> R) -> R {
                // SAFETY: contract of `UnsafeCell`: called only while one model thread runs; `f` touches the value
                // alone, so no other reference to the word exists meanwhile.
                unsafe { &mut *self.inner.get() }.with_mut(f)
            }

            /// Reads.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let site = Location::caller();
                trace::access(site, self.word, Op::Load, order, None, <$value>::default(), |how| {
                    let value = match how {
                        Some((order, _)) => self.inner().load(order),
                        None => self.alone(|value| *value),
                    };
                    (value, Effect::read(value as u64))
                })
            }

            /// Writes.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let site = Location::caller();
                trace::access(site, self.word, Op::Store, order, None, (), |how| {
                    match how {
                        Some((order, _)) => self.inner().store(value, order),
                        None => self.alone(|word| *word = value),
                    }
                    ((), Effect::wrote(value as u64))
                })
            }

            /// Writes and returns the value before.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let site = Location::caller();
                trace::access(site, self.word, Op::Swap, order, None, <$value>::default(), |how| {
                    let old = match how {
                        Some((order, _)) => self.inner().swap(value, order),
                        None => self.alone(|word| std::mem::replace(word, value)),
                    };
                    (old, Effect::read(old as u64).and_wrote(value as u64))
                })
            }

            /// Writes `new` if the word holds `current`.
            ///
            /// # Errors
            /// The value found.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let site = Location::caller();
                trace::access(site, self.word, Op::CompareExchange, success, Some(failure), Ok(current), |how| {
                    let result = match how {
                        Some((success, failure)) => self.inner().compare_exchange(current, new, success, failure),
                        None => self.alone(|word| {
                            if *word != current {
                                return Err(*word);
                            }
                            *word = new;
                            Ok(current)
                        }),
                    };
                    let effect = match result {
                        Ok(old) => Effect::read(old as u64).and_wrote(new as u64),
                        Err(found) => Effect::read(found as u64),
                    };
                    (result, effect.expecting(current as u64, new as u64))
                })
            }

            /// As [`compare_exchange`](Self::compare_exchange): the model never fails spuriously.
            ///
            /// # Errors
            /// The value found.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Applies `f` by compare-and-swap until it gives `None` or nobody came in between.
            ///
            /// # Errors
            /// The value for which `f` gave `None`.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut old = self.load(fetch);
                while let Some(new) = f(old) {
                    match self.compare_exchange(old, new, set, fetch) {
                        Ok(old) => return Ok(old),
                        Err(found) => old = found,
                    }
                }
                Err(old)
            }
        }

        impl AtomicExt for $name {
            type Value = $value;

            fn named(self, name: &'static str) -> Self {
                trace::name_word(self.word, name);
                self
            }

            #[track_caller]
            fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                if std::thread::panicking() {
                    return f(&mut <$value>::default());
                }
                self.inner.get_mut().with_mut(f)
            }
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }
    };
}

macro_rules! fetch {
    ($name:ident: $value:ty; $($(#[$meta:meta])* $fetch:ident $op:ident |$old:ident, $arg:ident| $new:expr;)*) => {
        impl $name {
            $(
                $(#[$meta])*
                #[track_caller]
                pub fn $fetch(&self, $arg: $value, order: Ordering) -> $value {
                    let site = Location::caller();
                    trace::access(site, self.word, Op::$op, order, None, <$value>::default(), |how| {
                        let $old = match how {
                            Some((order, _)) => self.inner().$fetch($arg, order),
                            None => self.alone(|word| {
                                let $old = *word;
                                *word = $new;
                                $old
                            }),
                        };
                        ($old, Effect::read($old as u64).and_wrote($new as u64))
                    })
                }
            )*
        }
    };
}

macro_rules! integer {
    ($(#[$meta:meta])* $name:ident: $value:ty) => {
        atomic!($(#[$meta])* $name: $value);
        fetch! {
            $name: $value;
            /// Adds, wrapping, and returns the value before.
            fetch_add FetchAdd |old, arg| old.wrapping_add(arg);
            /// Subtracts, wrapping, and returns the value before.
            fetch_sub FetchSub |old, arg| old.wrapping_sub(arg);
            /// Takes the larger and returns the value before.
            fetch_max FetchMax |old, arg| old.max(arg);
            /// Takes the smaller and returns the value before.
            fetch_min FetchMin |old, arg| old.min(arg);
            /// Bitwise and; returns the value before.
            fetch_and FetchAnd |old, arg| old & arg;
            /// Bitwise or; returns the value before.
            fetch_or FetchOr |old, arg| old | arg;
            /// Bitwise exclusive or; returns the value before.
            fetch_xor FetchXor |old, arg| old ^ arg;
        }
    };
}

integer!(
    /// A modelled [`std::sync::atomic::AtomicU64`].
    AtomicU64: u64
);
integer!(
    /// A modelled [`std::sync::atomic::AtomicU32`].
    AtomicU32: u32
);
integer!(
    /// A modelled [`std::sync::atomic::AtomicUsize`].
    AtomicUsize: usize
);
impl AtomicU32 {
    /// By which the observer knows this word.
    pub(super) fn number(&self) -> u32 {
        self.word
    }

    /// Replaces the first of two values by the second, if it is there, as a step of another name.
    pub(super) fn step(
        &self,
        site: &'static Location<'static>,
        op: Op,
        (from, to): (u32, u32),
        order: Ordering,
    ) -> bool {
        trace::access(site, self.word, op, order, Some(Ordering::Relaxed), true, |how| {
            let found = match how {
                Some((order, lost)) => {
                    self.inner().compare_exchange(from, to, order, lost).unwrap_or_else(|found| found)
                }
                None => self.alone(|word| {
                    let found = *word;
                    *word = if found == from { to } else { found };
                    found
                }),
            };
            let effect = Effect::read(found.into()).expecting(from.into(), to.into());
            (found == from, if found == from { effect.and_wrote(to.into()) } else { effect })
        })
    }
}

/// A modelled [`std::sync::atomic::AtomicBool`]: 0 and 1 in a word, since loom's gives no exclusive access.
#[derive(Debug, Default)]
pub struct AtomicBool(AtomicU32);

macro_rules! delegate {
    ($($(#[$meta:meta])* $name:ident($($arg:ident),*);)*) => {$(
        $(#[$meta])*
        #[track_caller]
        pub fn $name(&self, $($arg: bool,)* order: Ordering) -> bool {
            self.0.$name($(u32::from($arg),)* order) != 0
        }
    )*};
}

impl AtomicBool {
    /// A word that holds `value`.
    #[track_caller]
    pub fn new(value: bool) -> Self {
        Self(AtomicU32::new(value.into()))
    }

    /// Writes.
    #[track_caller]
    pub fn store(&self, value: bool, order: Ordering) {
        self.0.store(value.into(), order);
    }

    delegate! {
        /// Reads.
        load();
        /// Writes and returns the value before.
        swap(value);
        /// Logical and; returns the value before.
        fetch_and(value);
        /// Logical or; returns the value before.
        fetch_or(value);
        /// Logical exclusive or; returns the value before.
        fetch_xor(value);
    }

    /// Writes `new` if the word holds `current`.
    ///
    /// # Errors
    /// The value found.
    #[track_caller]
    pub fn compare_exchange(
        &self,
        current: bool,
        new: bool,
        success: Ordering,
        failure: Ordering,
    ) -> Result<bool, bool> {
        let result = self.0.compare_exchange(current.into(), new.into(), success, failure);
        result.map(|old| old != 0).map_err(|found| found != 0)
    }

    /// As [`compare_exchange`](Self::compare_exchange): the model never fails spuriously.
    ///
    /// # Errors
    /// The value found.
    #[track_caller]
    pub fn compare_exchange_weak(
        &self,
        current: bool,
        new: bool,
        success: Ordering,
        failure: Ordering,
    ) -> Result<bool, bool> {
        self.compare_exchange(current, new, success, failure)
    }
}

impl AtomicExt for AtomicBool {
    type Value = bool;

    fn named(self, name: &'static str) -> Self {
        Self(self.0.named(name))
    }

    #[track_caller]
    fn with_mut<R>(&mut self, f: impl FnOnce(&mut bool) -> R) -> R {
        self.0.with_mut(|word| {
            let mut value = *word != 0;
            let result = f(&mut value);
            *word = value.into();
            result
        })
    }
}

/// A fence.
#[track_caller]
pub fn fence(order: Ordering) {
    trace::fence(Location::caller(), order);
}

/// Tells that this thread waits for another. The model then lets the others run.
#[track_caller]
pub fn spin_loop() {
    trace::wait(Location::caller());
}

/// As [`spin_loop`].
#[track_caller]
pub fn yield_now() {
    trace::wait(Location::caller());
}

/// A cell whose accesses the model checks for data races.
#[derive(Debug)]
pub struct UnsafeCell<T> {
    inner: rt::cell::UnsafeCell<T>,
    word: u32,
}

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self { inner: rt::cell::UnsafeCell::new(value), word: trace::new_word(None) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }

    /// Hands out a pointer to read through.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        trace::plain(Location::caller(), self.word, Op::Read, || self.inner.with(f))
    }

    /// Hands out a pointer to write through.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        trace::plain(Location::caller(), self.word, Op::Write, || self.inner.with_mut(f))
    }
}
