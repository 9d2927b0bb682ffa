//! How a limiter comes into being, and how it ends.

use core::{ffi::c_int, ptr::NonNull};

use tollgate::Algorithm;
#[cfg(feature = "heap")]
use {crate::config::Life, tollgate::Live};

use crate::{
    clock,
    config::{Plan, tollgate_config_t},
    handle::{ALIGN, Frozen, Handle, tollgate_limiter_t},
    memory,
    status::{
        code,
        tollgate_status::{self, *},
    },
};

/// Makes a limiter in memory of the library, and puts it in `*out`. It belongs to this process (and to children that it
/// forks, each with its own copy).
///
/// Errors, which leave `*out` alone:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.
/// - TOLLGATE_E_SIZE: `struct_size`.   TOLLGATE_E_INVALID: anything else in the configuration.
/// - TOLLGATE_E_UNSUPPORTED: an algorithm without shards, or whose rules can not change, and was asked for that; an algorithm, a
///   clock, shards or `TOLLGATE_LIVE` in a library that was built without.
/// - TOLLGATE_E_NOMEM.
///
/// Thread-safe.   Allocates.   Blocks: never, but for the first use of `TOLLGATE_CLOCK_PRECISE` or `_COARSE` in a
/// process.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_create(
    config: *const tollgate_config_t,
    out: *mut *mut tollgate_limiter_t,
) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let config = unsafe { read(config) }?;
        let out = place(out)?;
        let handle = create(&config)?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(handle.as_limiter()) };
        Ok(())
    })())
}

/// Ends a limiter that `tollgate_create` made. NULL is allowed; so is a limiter in the caller's memory, to which nothing
/// is done.
///
/// Needs exclusive access: no other call may run or follow.   Frees.   Blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_destroy(limiter: *mut tollgate_limiter_t) {
    let Some(handle) = Handle::of(limiter) else { return };
    let Some(skip) = handle.owned() else { return };
    // SAFETY: the contract of this function.
    unsafe { handle.drop_value() };
    // SAFETY: contract of `free`: the word tells what `zeroed` skipped.
    unsafe { memory::free(handle.memory(), skip) };
}

/// What a limiter in the caller's memory must be aligned to: 128.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_align() -> usize {
    ALIGN
}

/// Tells how many bytes a limiter of this configuration takes in the caller's memory.
///
/// Errors: those of `tollgate_init_in` about the configuration.
///
/// Safe from anywhere.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_size(config: *const tollgate_config_t, out: *mut usize) -> c_int {
    code((|| {
        // SAFETY: the contract of this function.
        let config = unsafe { read(config) }?;
        let out = place(out)?;
        let bytes = with_frozen(&config, |_, frozen| Ok(frozen.bytes()))?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(bytes) };
        Ok(())
    })())
}

/// Makes a limiter in the caller's memory: `len` bytes at `memory`, aligned to `tollgate_align()`, all zeros or holding
/// a limiter of this very configuration, which is then the one. The memory may be shared by processes (`MAP_SHARED`).
/// Any number of threads and processes may call this at once, with the same configuration: they help one another, and a
/// process that dies in the middle leaves work that the next call finishes. There is nothing to destroy: the limiter is
/// the memory, and holds nothing else.
///
/// Errors, which leave `*out` and the memory alone:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of any pointer.
/// - TOLLGATE_E_SIZE: `len` is too little; or `struct_size`.   TOLLGATE_E_INVALID: anything else in the configuration.
/// - TOLLGATE_E_UNSUPPORTED: an algorithm or a flag that lives by `tollgate_create` alone; as `tollgate_create`.
/// - TOLLGATE_E_CLOCK: a clock of one process.
/// - TOLLGATE_E_MAGIC: the memory holds something else.
/// - TOLLGATE_E_LAYOUT: it holds a limiter of another layout.
/// - TOLLGATE_E_CONFIG: it holds, or is about to hold, one of another configuration; or what describes it (768 bytes; with shards more) is not zeros.
/// - TOLLGATE_E_CORRUPT: what follows those is a state that no calls make; or `tollgate_create` made what it holds.
///
/// Cost: reads all of the limiter's memory.
///
/// Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Ordering: what the caller that made it did before
/// is seen by those that find it.   Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_init_in(
    memory: *mut core::ffi::c_void,
    len: usize,
    config: *const tollgate_config_t,
    out: *mut *mut tollgate_limiter_t,
) -> c_int {
    code((|| {
        let handle = handle_in(memory)?;
        // SAFETY: the contract of this function.
        let config = unsafe { read(config) }?;
        let out = place(out)?;
        with_frozen(&config, |plan, frozen| {
            if len < frozen.bytes() {
                return Err(TOLLGATE_E_SIZE);
            }
            if !handle.is_callers() {
                return Err(TOLLGATE_E_CORRUPT);
            }
            // SAFETY: contract of `is_sound`: so long is the memory.
            let is_sound = unsafe { handle.is_sound(plan) };
            handle.settle(frozen, is_sound)
        })?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(handle.as_limiter()) };
        Ok(())
    })())
}

/// Finds the limiter that `tollgate_init_in` made in the caller's memory, here or in another process, and checks it
/// through and through. It writes nothing.
///
/// Errors, which leave `*out` alone:
/// - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.
/// - TOLLGATE_E_SIZE: `len` is less than the limiter takes.
/// - TOLLGATE_E_NOT_READY: nobody has made it, or not all of it yet.
/// - TOLLGATE_E_MAGIC: something else is there.   TOLLGATE_E_LAYOUT: a limiter of another layout.
/// - TOLLGATE_E_CORRUPT: a limiter that contradicts itself, or a state that no calls make. Memory is trusted from here on.
/// - TOLLGATE_E_UNSUPPORTED: a clock, or shards, that this library was built without.
///
/// Cost: reads all of the limiter's memory.
///
/// Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Ordering: as `tollgate_init_in`.
/// Allocates, blocks: never.   Since ABI 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_attach_in(
    memory: *mut core::ffi::c_void,
    len: usize,
    out: *mut *mut tollgate_limiter_t,
) -> c_int {
    code((|| {
        let handle = handle_in(memory)?;
        let out = place(out)?;
        if len < Handle::least_bytes() {
            return Err(TOLLGATE_E_SIZE);
        }
        handle.validate(len)?;
        // SAFETY: the contract of this function: writable.
        unsafe { out.write(handle.as_limiter()) };
        Ok(())
    })())
}

/// Where a result may be written.
pub(crate) fn place<T>(out: *mut T) -> Result<NonNull<T>, tollgate_status> {
    let out = NonNull::new(out).ok_or(TOLLGATE_E_NULL)?;
    if out.is_aligned() { Ok(out) } else { Err(TOLLGATE_E_ALIGN) }
}

/// The memory that a caller gives for a limiter.
fn handle_in(memory: *mut core::ffi::c_void) -> Result<Handle, tollgate_status> {
    let memory = NonNull::new(memory.cast::<u8>()).ok_or(TOLLGATE_E_NULL)?;
    if memory.addr().get().is_multiple_of(ALIGN) { Ok(Handle::at(memory)) } else { Err(TOLLGATE_E_ALIGN) }
}

/// The configuration that a caller passed.
///
/// # Safety
/// If it is not NULL and aligned, its first field can be read, and all of it if that field says so.
pub(crate) unsafe fn read(config: *const tollgate_config_t) -> Result<tollgate_config_t, tollgate_status> {
    let config = place(config.cast_mut())?;
    // SAFETY: the contract of this function.
    let size = unsafe { config.cast::<u32>().read() };
    if size != crate::config::TOLLGATE_CONFIG_SIZE {
        return Err(TOLLGATE_E_SIZE);
    }
    // SAFETY: the contract of this function.
    Ok(unsafe { config.read() })
}

/// The limit of many limiters, which have clock and flags together.
///
/// # Safety
/// As [`read`].
#[cfg(any(feature = "heap", feature = "shm"))]
pub(crate) unsafe fn read_plain(
    limit: *const tollgate_config_t,
) -> Result<tollgate_config_t, tollgate_status> {
    // SAFETY: the contract of this function.
    let config = unsafe { read(limit) }?;
    let is_plain = config.clock == 0
        && config.shards == 0
        && config.flags & !crate::config::TOLLGATE_TEXTBOOK_COVERAGE == 0;
    if is_plain { Ok(config) } else { Err(TOLLGATE_E_INVALID) }
}

/// Hands out the plan and the words of a limiter in the caller's memory.
fn with_frozen<R>(
    config: &tollgate_config_t,
    use_it: impl FnOnce(&Plan, &Frozen<'_>) -> Result<R, tollgate_status>,
) -> Result<R, tollgate_status> {
    let plan = config.plan()?;
    let (derived, state_bytes) = plan.placed().ok_or(TOLLGATE_E_UNSUPPORTED)?;
    clock::serves(config.clock, true)?;
    use_it(&plan, &Frozen::new(config, derived, state_bytes).ok_or(TOLLGATE_E_NOMEM)?)
}

fn create(config: &tollgate_config_t) -> Result<Handle, tollgate_status> {
    let plan = config.plan()?;
    clock::serves(config.clock, false)?;
    match plan {
        #[cfg(feature = "std")]
        Plan::Compact(builder) => make_of(config, builder.build()?),
        #[cfg(feature = "std")]
        Plan::Sampled(builder) => make_of(config, builder.build()?),
        #[cfg(feature = "std")]
        Plan::Wheel(builder) => make_of(config, builder.build()?),
        Plan::Pacing(builder) => make_of(config, builder.build()?),
        #[cfg(feature = "heap")]
        Plan::Live(life) => make_live(config, life),
        _ => {
            let (derived, state_bytes) = plan.placed().ok_or(TOLLGATE_E_UNSUPPORTED)?;
            make(config, derived, state_bytes)
        }
    }
}

/// Makes a limiter whose rules may change.
#[cfg(feature = "heap")]
fn make_live(config: &tollgate_config_t, life: Life) -> Result<Handle, tollgate_status> {
    #[cfg(feature = "shards")]
    let shards = config.shards as usize;
    match life {
        Life::Log(builder) => make_of(config, Live::new(builder.build()?)?),
        Life::Window(builder) => make_of(config, Live::new(builder.build()?)?),
        #[cfg(feature = "shards")]
        Life::ShardedLog(builder) => make_of(config, Live::new(builder.build_sharded(shards)?)?),
        #[cfg(feature = "shards")]
        Life::ShardedWindow(builder) => make_of(config, Live::new(builder.build_sharded(shards)?)?),
        Life::Fixed(builder) => make_of(config, Live::new(builder.build()?)?),
        Life::TwoWindow(builder) => make_of(config, Live::new(builder.build()?)?),
        Life::Gcra(builder) => make_of(config, Live::new(builder.build()?)?),
        #[cfg(feature = "std")]
        Life::Compact(builder) => make_of(config, Live::new(builder.build()?)?),
    }
}

/// Makes a limiter around what keeps its own memory.
fn make_of<A: Algorithm>(config: &tollgate_config_t, value: A) -> Result<Handle, tollgate_status> {
    let handle = make(config, &[], size_of::<A>())?;
    // SAFETY: contract of `put_value`: `make` was told its size.
    unsafe { handle.put_value(value) };
    Ok(handle)
}

/// Makes a limiter in memory of our own, around a state of zeros; nobody else knows of it yet. Once, not in each place.
#[inline(never)]
fn make(config: &tollgate_config_t, derived: &[u64], state_bytes: usize) -> Result<Handle, tollgate_status> {
    let frozen = Frozen::new(config, derived, state_bytes).ok_or(TOLLGATE_E_NOMEM)?;
    put(config, &frozen)
}

/// Puts a limiter in memory of our own.
fn put(config: &tollgate_config_t, frozen: &Frozen<'_>) -> Result<Handle, tollgate_status> {
    let (memory, skip) = memory::zeroed(frozen.bytes(), ALIGN)?;
    let handle = Handle::at(memory);
    handle.own(skip);
    clock::prepare(handle, config.clock);
    handle.settle(frozen, true)?; // Can not fail: zeros.
    Ok(handle)
}

/// Makes a limiter of this process around one whose state lies in a region.
#[cfg(feature = "shm")]
pub(crate) fn make_far<C: tollgate::Config>(
    config: &tollgate_config_t,
    member: tollgate::shared::Member<'static, C>,
) -> Result<Handle, tollgate_status> {
    let frozen = Frozen::new(config, &[], size_of_val(&member)).ok_or(TOLLGATE_E_NOMEM)?;
    let handle = put(config, &frozen.far())?;
    // SAFETY: contract of `put_value`: `Frozen` was told its size.
    unsafe { handle.put_value(member) };
    Ok(handle)
}
