//! States of one word, judged as a whole and replaced as a whole.
//!
//! # Linearization points
//! L1 admission: the CAS that succeeds. L2 refusal: the read of the word judged.
//!
//! # Memory order
//! | id | site               | order   | pairs with | because                                           |
//! |----|--------------------|---------|------------|---------------------------------------------------|
//! | O1 | first load         | Relaxed | none       | the word is the whole state; coherence shows what happened before the call |
//! | O2 | CAS, both outcomes | Relaxed | none       | updates of one word are in one total order         |
//!
//! Not promised: an admission orders none of the caller's own data.
//!
//! # Progress
//! Lock-free: a CAS beaten by another thread means that thread was admitted.

use super::config::{On, Parts};
use crate::{
    Nanos,
    sync::{Relaxed, Word, lost},
};

/// A configuration of such states.
pub(crate) trait OneWord: Parts<Heads = Word<<Self as Parts>::Slot>> {
    /// The next state if `cost` more permits fit.
    fn admit(&self, state: Self::Slot, cost: u64, now: Nanos) -> Option<Self::Slot>;
}

impl<C: OneWord> On<'_, C> {
    /// Takes `cost` permits at `now`, all or nothing.
    #[inline]
    pub(crate) fn swap(self, cost: u64, now: Nanos) -> bool {
        let seen = self.state.head().load(Relaxed); // O1, L2
        self.attempt(seen, cost, now).unwrap_or_else(|seen| self.contend(seen, cost, now))
    }

    /// One attempt; the word as it is now if another caller got in between.
    #[inline]
    fn attempt(self, seen: C::Slot, cost: u64, now: Nanos) -> Result<bool, C::Slot> {
        let Some(next) = self.config.admit(seen, cost, now) else { return Ok(false) };
        self.state.head().compare_exchange(seen, next, Relaxed, Relaxed).map(|_| true) // O2, L1, L2
    }

    #[cold]
    #[inline(never)]
    fn contend(self, mut seen: C::Slot, cost: u64, now: Nanos) -> bool {
        loop {
            match self.attempt(seen, cost, now) {
                Ok(admitted) => return admitted,
                Err(newer) => {
                    lost();
                    seen = newer;
                }
            }
        }
    }
}
