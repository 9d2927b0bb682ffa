//! One lock for the forms that say they need one: the system's with `std`, a spin lock without.
//!
//! # Invariants
//! | id | always                                                       | kept by                           |
//! |----|--------------------------------------------------------------|-----------------------------------|
//! | I1 | only the thread that set `held` from 0 to 1 reaches the value | the CAS in `try_hold`, `Guard` unsent |
//!
//! # Memory order
//! | id | site            | order   | pairs with | because                                              |
//! |----|-----------------|---------|------------|------------------------------------------------------|
//! | O1 | CAS that locks  | Acquire | O2         | sees all that the holders before it wrote            |
//! | O2 | CAS that unlocks | Release | O1         | the next holder sees all that this one wrote         |
//! | O3 | CAS that fails  | Relaxed | none       | it only tries again                                  |
//!
//! # Progress
//! Blocking: a thread that stops while it holds the lock stops all others.

#[cfg(not(feature = "std"))]
pub(crate) use spin::{Guard, Lock};
#[cfg(feature = "std")]
pub(crate) use system::{Guard, Lock};

impl<T> core::fmt::Debug for Lock<T> {
    /// Not the value: to print is no reason to wait.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Lock(..)")
    }
}

#[cfg(feature = "std")]
mod system {
    #[cfg(any(test, feature = "shared"))]
    use std::sync::TryLockError;
    use std::sync::{Mutex, PoisonError};

    /// A value that one thread at a time may reach.
    pub(crate) struct Lock<T>(Mutex<T>);

    /// The way to the value; gives the lock back when dropped.
    pub(crate) type Guard<'a, T> = std::sync::MutexGuard<'a, T>;

    // Poison is ignored: what runs under this lock does not panic, and a limiter that fails for ever because
    // one caller died would be the worse answer.
    impl<T> Lock<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> Guard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// `None`: another thread has it. Nobody waits.
        #[cfg(any(test, feature = "shared"))]
        pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(any(test, not(feature = "std")))]
mod spin {
    use core::{
        cell::UnsafeCell,
        marker::PhantomData,
        ops::{Deref, DerefMut},
    };

    use crossbeam_utils::Backoff;

    #[cfg(tollgate_loom)]
    use crate::sync::modelled::{Held, wait};
    use crate::sync::{Acquire, Relaxed, Release, Word};

    /// A value that one thread at a time may reach.
    pub(crate) struct Lock<T> {
        /// 1 while a [`Guard`] lives.
        held: Word<u64>,
        value: UnsafeCell<T>,
        /// Stands for the value where the checker sees it.
        seen: Held,
    }

    // SAFETY: I1: threads reach the value one after the other, which is all that `Send` asks for.
    unsafe impl<T: Send> Sync for Lock<T> {}

    /// The way to the value; gives the lock back when dropped. Neither `Send` nor `Sync`.
    pub(crate) struct Guard<'a, T> {
        lock: &'a Lock<T>,
        unsent: PhantomData<*mut T>,
    }

    /// Nothing, where no checker looks.
    #[cfg(not(tollgate_loom))]
    struct Held;

    #[cfg(not(tollgate_loom))]
    fn wait(backoff: &Backoff) {
        backoff.spin();
    }

    // === impl Held ===

    #[cfg(not(tollgate_loom))]
    impl Held {
        fn new() -> Self {
            Self
        }

        fn touch(&self) {}
    }

    // === impl Lock ===

    impl<T> Lock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self { held: Word::new(0), value: UnsafeCell::new(value), seen: Held::new() }
        }

        pub(crate) fn lock(&self) -> Guard<'_, T> {
            let backoff = Backoff::new();
            while !self.try_hold() {
                wait(&backoff);
            }
            self.guard()
        }

        /// `None`: another thread has it. Nobody waits.
        #[cfg(any(test, tollgate_loom))]
        pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
            self.try_hold().then(|| self.guard())
        }

        /// For who holds it.
        fn guard(&self) -> Guard<'_, T> {
            self.seen.touch();
            Guard { lock: self, unsent: PhantomData }
        }

        fn try_hold(&self) -> bool {
            self.held.compare_exchange_weak(0, 1, Acquire, Relaxed).is_ok() // O1, O3
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.value.get_mut()
        }
    }

    // === impl Guard ===

    impl<T> Deref for Guard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            // SAFETY: I1: this guard lives, so no other thread reaches the value.
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: I1, and this guard is borrowed exclusively.
            unsafe { &mut *self.lock.value.get() }
        }
    }

    impl<T> Drop for Guard<'_, T> {
        fn drop(&mut self) {
            self.lock.seen.touch();
            // Held by this guard, so the exchange succeeds.
            let freed = self.lock.held.compare_exchange(1, 0, Release, Relaxed); // O2, O3
            debug_assert!(freed.is_ok());
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    /// A read and a write apart: any overlap of two holders loses a count.
    macro_rules! counts_exactly {
        ($name:ident, $lock:ty) => {
            #[test]
            fn $name() {
                let mut lock = <$lock>::new(0_u64);
                std::thread::scope(|s| {
                    for _ in 0..4 {
                        s.spawn(|| {
                            for _ in 0..5_000 {
                                let mut guard = lock.lock();
                                let seen = *guard;
                                core::hint::spin_loop();
                                *guard = seen + 1;
                            }
                        });
                    }
                });
                assert_eq!(*lock.get_mut(), 20_000);
            }
        };
    }

    counts_exactly!(system_lock_counts_exactly, super::system::Lock<u64>);
    counts_exactly!(spin_lock_counts_exactly, super::spin::Lock<u64>);

    macro_rules! is_tried {
        ($name:ident, $lock:ty) => {
            #[test]
            fn $name() {
                let lock = <$lock>::new(1_u64);
                let held = lock.try_lock().expect("nobody has it");
                std::thread::scope(|s| {
                    s.spawn(|| assert!(lock.try_lock().is_none()));
                });
                drop(held);
                assert_eq!(lock.try_lock().as_deref(), Some(&1));
            }
        };
    }

    is_tried!(system_lock_is_tried, super::system::Lock<u64>);
    is_tried!(spin_lock_is_tried, super::spin::Lock<u64>);

    #[test]
    fn a_panic_under_the_lock_does_not_lock_out() {
        let lock = super::Lock::new(1);
        let died = std::thread::scope(|s| {
            s.spawn(|| {
                let _guard = lock.lock();
                std::panic::resume_unwind(std::boxed::Box::new(()));
            })
            .join()
        });
        assert!(died.is_err());
        assert_eq!(*lock.lock(), 1);
    }
}
