//! Limiters by key in a library without them: there are none.

use tollgate::{Decision, Nanos};

use super::{tollgate_busy_key_t, tollgate_keyed_config_t, tollgate_keyed_stats_t, tollgate_keyed_t};
use crate::status::tollgate_status::{self, *};

/// Limiters by key.
pub(crate) enum Table {}

/// A key.
pub(crate) enum Asked {}

impl Table {
    pub(crate) unsafe fn create(
        _config: &tollgate_keyed_config_t,
    ) -> Result<*mut tollgate_keyed_t, tollgate_status> {
        Err(TOLLGATE_E_UNSUPPORTED)
    }

    pub(crate) unsafe fn destroy(_keyed: *mut tollgate_keyed_t) {}

    pub(crate) unsafe fn of<'a>(keyed: *const tollgate_keyed_t) -> Result<&'a Self, tollgate_status> {
        Err(if keyed.is_null() { TOLLGATE_E_NULL } else { TOLLGATE_E_UNSUPPORTED })
    }

    pub(crate) fn now(&self) -> Option<Nanos> {
        match *self {}
    }

    pub(crate) fn key(&self, _class: u32, _bytes: &[u8]) -> Option<Asked> {
        match *self {}
    }

    pub(crate) fn try_acquire(&self, _key: &Asked, _cost: u64, _now: Nanos) -> bool {
        match *self {}
    }

    pub(crate) fn check(&self, _key: &Asked, _cost: u64, _now: Nanos) -> Decision {
        match *self {}
    }

    pub(crate) fn peek(&self, _key: &Asked, _cost: u64, _now: Nanos) -> Decision {
        match *self {}
    }

    pub(crate) fn usage(&self, _key: &Asked, _rule: usize, _now_ns: u64) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn remove(&self, _key: &Asked) -> bool {
        match *self {}
    }

    pub(crate) fn keys(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn busiest(
        &self,
        _room: usize,
        _now_ns: u64,
        _tell: &mut dyn FnMut(tollgate_busy_key_t),
    ) -> Result<(), tollgate_status> {
        match *self {}
    }

    pub(crate) fn stats(&self) -> tollgate_keyed_stats_t {
        match *self {}
    }
}
