/* tollgate: a lock-free rate limiter. Made from the sources by cbindgen: change those, not this file.
 *
 * One answer: may this call pass now? A limiter is a handle on one piece of memory, of the library (tollgate_create) or
 * of the caller (tollgate_init_in), which processes may share. A region (tollgate_shm_open) holds many, by index and by key.
 *
 *     tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_MONOTONIC, 100, 1000000000);
 *     tollgate_limiter_t *limiter;
 *     if (tollgate_create(&config, &limiter) != TOLLGATE_OK) return 1;
 *     if (tollgate_try_acquire(limiter)) serve(); else refuse();
 *     tollgate_destroy(limiter);
 *
 * What may run at once on one limiter (- yes, X no):
 *
 *                                            acquire  peek  reset  destroy
 *   try_acquire*, check*, reserve*              -       -     X       X
 *   peek*, usage_at, get_*, stats, set_r*       -       -     X       X
 *   init_in, attach_in                          -       -     X       .
 *   reset                                       X       X     X       X
 *   destroy                                     X       X     X       X
 *
 * Words used below:
 *   thread-safe          from any threads at once, as the table says.
 *   process-safe         from any processes that share the memory, as the table says.
 *   async-signal-safe    from a signal handler, one that interrupts a call on the same limiter, too.
 *   fork-safe            in a child forked at any moment, whatever other threads of the parent were doing.
 *   lock-free            some caller always finishes; one that dies or is stopped in the middle blocks nobody.
 *
 * Every algorithm is all of this but those whose description says TAKES A LOCK: they are thread-safe, and neither
 * fork-safe (if another thread was inside) nor async-signal-safe nor lock-free. So are limiters by key (tollgate_keyed_*),
 * but not those of a region (tollgate_shm_keyed_*), which are all of it.
 * tollgate_set_rules and _rate_at take a lock, which nobody else waits for; tollgate_shm_set_rules takes none.
 *
 * From a signal handler:
 *   may be called        try_acquire*, check*, peek*, reserve*, usage_at, get_*, stats: on a limiter that takes no lock, with any flags
 *                        and shards, in any memory; init_in, attach_in; shm_keyed_*, shm_*_rules, shm_count, shm_size; now_ns
 *                        (see there); size, align, strerror, status_name, and what tells a version.
 *   may not              create, destroy, reset, set_r*, coarse_*, keyed_*, and the other shm_*.
 *   and once before      in each thread whose handlers call, if the library has std and came by dlopen: a call on a limiter with
 *                        TOLLGATE_STATS or shards, outside of any handler. The library keeps a few words for each thread, for which
 *                        the system may take memory when they are first used: in such a call, or in any that loses a race
 *                        to another thread. A library that the program was linked with has them from the start.
 *
 * A time is nanoseconds since any zero, below 2^62. A window is (now - window, now]. */


#ifndef TOLLGATE_H
#define TOLLGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A program built with this header may ask the library: tollgate_version_number() and its like. */
#define TOLLGATE_VERSION_NUMBER \
    (TOLLGATE_VERSION_MAJOR * 1000000 + TOLLGATE_VERSION_MINOR * 1000 + TOLLGATE_VERSION_PATCH)

/* A configuration of one rule: at most limit permits in any window_ns. */
#define TOLLGATE_CONFIG_INIT(algorithm, clock, limit, window_ns) \
    { \
        TOLLGATE_CONFIG_SIZE, algorithm, 1, 0, clock, 0, 0, 0, 0, \
            {{limit, window_ns}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}, {0, 0, 0, 0} \
    }

/* A configuration of a region: so many limiters by index, and room for so many keys, all of one limit (a pointer). */
#define TOLLGATE_SHM_CONFIG_INIT(clock, limit, limiters, keys) \
    {TOLLGATE_SHM_CONFIG_SIZE, clock, 0, 0, limit, limiters, keys, {0, 0, 0, 0}}

#ifndef TOLLGATE_API
#define TOLLGATE_API
#endif

#ifdef __cplusplus
#define TOLLGATE_NOEXCEPT noexcept
#else
#define TOLLGATE_NOEXCEPT
#endif


/**
 * The version of this header, which is that of the package.
 */
#define TOLLGATE_VERSION_MAJOR 0

/**
 * See above.
 */
#define TOLLGATE_VERSION_MINOR 1

/**
 * See above.
 */
#define TOLLGATE_VERSION_PATCH 0

/**
 * The number in `libtollgate.so.0`: any change that breaks a compiled program raises it.
 */
#define TOLLGATE_ABI_VERSION 0

/**
 * The version of a limiter's bytes, for memory that several processes share. One library attaches to the memory
 * of another only if it is the same.
 */
#define TOLLGATE_LAYOUT_VERSION 1

/**
 * The processor's counter, scaled. Of one process: for `tollgate_create` alone. Its first limiter in a process measures
 * the counter, for at most 200 ms.
 */
#define TOLLGATE_CLOCK_PRECISE 1

/**
 * A time that a thread keeps fresh while `tollgate_coarse_start` asks for it, else as `_PRECISE`. Of one process: for
 * `tollgate_create` alone.
 */
#define TOLLGATE_CLOCK_COARSE 2

/**
 * The system's `CLOCK_MONOTONIC`: one clock for all processes.
 */
#define TOLLGATE_CLOCK_MONOTONIC 3

/**
 * The system's `CLOCK_BOOTTIME`, which goes on while the machine sleeps: one clock for all processes. Linux.
 */
#define TOLLGATE_CLOCK_BOOTTIME 4

/**
 * None: callers pass the time, to the functions that end in `_at`.
 */
#define TOLLGATE_CLOCK_CALLER 5

/**
 * The most rules of one limiter.
 */
#define TOLLGATE_MAX_RULES 8

/**
 * The size of `tollgate_config_t`, for its `struct_size`.
 */
#define TOLLGATE_CONFIG_SIZE 200

/**
 * The exact sliding-window log. Rules: 1 to 8. Lock-free; 8 bytes for each permit of the largest limit (at most 2^30).
 */
#define TOLLGATE_LOG 1

/**
 * The sliding-window counter. Rules: 1 to 8. Lock-free. `buckets`: buckets of the shortest window (default 10); every
 * window must be a multiple of such a bucket. `reserved[0]`: the phase, see `tollgate_config_t`. The limit is at most
 * about the nanoseconds of a bucket: 134,217,727 for a second in 10 buckets; less where windows differ.
 */
#define TOLLGATE_WINDOW 2

/**
 * The fixed window: up to twice the limit around an edge. One rule. Lock-free. `reserved[0]`: the phase. The limit is at
 * most about twice the nanoseconds of the window: 2,147,483,647 for a second.
 */
#define TOLLGATE_FIXED 3

/**
 * The estimate from two fixed windows. One rule. Lock-free. `reserved[0]`: the phase. The limit is at most about the
 * square root of twice the nanoseconds of the window: 32,767 for a second, 262,143 for a minute.
 */
#define TOLLGATE_TWO_WINDOW 4

/**
 * The generic cell rate algorithm: `limit` permits per window, coming back one by one. One rule. Lock-free. `burst`:
 * how many may be taken at once (default: the limit). The limit is at most one permit a nanosecond.
 */
#define TOLLGATE_GCRA 5

/**
 * The token bucket: GCRA, where `burst` is the capacity.
 */
#define TOLLGATE_TOKEN_BUCKET 5

/**
 * The leaky bucket as a meter: GCRA, where `burst` is the size of the bucket.
 */
#define TOLLGATE_LEAKY_BUCKET 5

/**
 * The leaky bucket as a queue: `tollgate_reserve` tells how long to wait. One rule. Lock-free. `burst`: how many may
 * queue, beside the one in service (default: the limit); 0 can not be asked for. The limit is at most one permit a
 * nanosecond. By `tollgate_create` alone.
 */
#define TOLLGATE_PACING 6

/**
 * The log in 4 bytes a permit, exact to a tick. One rule. TAKES A LOCK. `buckets`: ticks of the window, at most 2^30 - 1,
 * of which the window must be a multiple (default: the finest decimal tick). By `tollgate_create` alone.
 */
#define TOLLGATE_COMPACT 7

/**
 * The log of every `buckets`-th permit (default: 1 % of the limit). One rule. TAKES A LOCK. With
 * `TOLLGATE_BERNOULLI` each permit is recorded with the probability 1 / `buckets`, from the seed `reserved[0]`.
 * By `tollgate_create` alone.
 */
#define TOLLGATE_SAMPLED 8

/**
 * The timing wheel. One rule. TAKES A LOCK. `buckets`: slots of the window, of which it must be a multiple
 * (default: the finest decimal width of which 60,000 slots reach over it). By `tollgate_create` alone.
 */
#define TOLLGATE_WHEEL 9

/**
 * `TOLLGATE_WINDOW`: look back `buckets` buckets and not one more. No permit comes back late, but a window may hold
 * the admissions of one bucket more than the limit.
 */
#define TOLLGATE_TEXTBOOK_COVERAGE 1

/**
 * Count what `tollgate_stats` tells. Costs up to three more atomic operations a call.
 */
#define TOLLGATE_STATS 2

/**
 * `TOLLGATE_SAMPLED`: choose by chance.
 */
#define TOLLGATE_BERNOULLI 4

/**
 * `TOLLGATE_LOG`, `_WINDOW`, `_FIXED`, `_TWO_WINDOW`, `_COMPACT`: `tollgate_set_rules` may change the rules; `TOLLGATE_GCRA`:
 * `tollgate_set_rate_at` the rate and the burst. `reserved[1]` says how far:
 * see `tollgate_config_t`. A call copies 6 to 55 words more. By `tollgate_create`; of regions in
 * `tollgate_shm_config_t`, for `tollgate_shm_set_rules`.
 */
#define TOLLGATE_LIVE 8

/**
 * Admitted.
 */
#define TOLLGATE_REASON_NONE 0

/**
 * Too few permits are free now.
 */
#define TOLLGATE_REASON_LIMIT 1

/**
 * The cost is above the limit (the burst).
 */
#define TOLLGATE_REASON_ABOVE_LIMIT 2

/**
 * The cost is above the largest cost.
 */
#define TOLLGATE_REASON_ABOVE_MAX_COST 3

/**
 * There is no room for another key.
 */
#define TOLLGATE_REASON_FULL 4

/**
 * The size of `tollgate_stats_t`, for its `struct_size`.
 */
#define TOLLGATE_STATS_SIZE 128

/**
 * The size of `tollgate_keyed_config_t`, for its `struct_size`.
 */
#define TOLLGATE_KEYED_CONFIG_SIZE 72

/**
 * The size of `tollgate_keyed_stats_t`, for its `struct_size`.
 */
#define TOLLGATE_KEYED_STATS_SIZE 80

/**
 * The most classes.
 */
#define TOLLGATE_MAX_CLASSES 256

/**
 * The longest key, in bytes.
 */
#define TOLLGATE_KEY_MAX 65535

/**
 * Bytes that are kept of a key, for its life. A longer one is kept as its first 28 bytes and a digest of 128 bits of all of
 * it under the secret: two such keys are taken for one with a probability of 2^-128.
 */
#define TOLLGATE_KEY_KEPT 44

/**
 * Refuse a new key for which there is no room. Without it such keys share one more limiter of their class: strangers in a
 * flood keep each other out, and nobody else. (A key that gets a place of its own later has its whole quota there.)
 */
#define TOLLGATE_REFUSE_WHEN_FULL 16

/**
 * The size of `tollgate_shm_config_t`, for its `struct_size`.
 */
#define TOLLGATE_SHM_CONFIG_SIZE 72

/**
 * The size of `tollgate_shm_info_t`, for its `struct_size`.
 */
#define TOLLGATE_SHM_INFO_SIZE 208

/**
 * Trust files of any user. Without it they must be this process's.
 */
#define TOLLGATE_ANY_OWNER 32

/**
 * Of a region that was looked at: its times are those of another boot or time namespace. No process here can have it.
 */
#define TOLLGATE_STALE 64

/**
 * What functions that return `int` return. 0 is success, in a check: ADMITTED. Positive: an outcome. Negative: an
 * error, which changed nothing. Numbers are never used again for anything else; -18 is kept for later.
 */
typedef enum tollgate_status {
    /**
     * Done; in a check: admitted.
     */
    TOLLGATE_OK = 0,
    /**
     * Refused: too few permits are free now. The decision says when to come again.
     */
    TOLLGATE_REFUSED = 1,
    /**
     * Refused, and waiting can not help: the cost is above the limit, the burst, or the largest cost.
     */
    TOLLGATE_NEVER = 2,
    /**
     * A pointer that must not be NULL was.
     */
    TOLLGATE_E_NULL = -1,
    /**
     * An argument or a field of the configuration was out of range, or a reserved one not 0.
     */
    TOLLGATE_E_INVALID = -2,
    /**
     * The memory was too short, or `struct_size` is not one that this library knows.
     */
    TOLLGATE_E_SIZE = -3,
    /**
     * The memory was not aligned to `tollgate_align()`.
     */
    TOLLGATE_E_ALIGN = -4,
    /**
     * There was not that much memory.
     */
    TOLLGATE_E_NOMEM = -5,
    /**
     * The system refused: a thread, or a file or memory for a region. Then `errno` is what its call set.
     */
    TOLLGATE_E_SYS = -6,
    /**
     * Nobody has initialised this memory, or not all of it yet.
     */
    TOLLGATE_E_NOT_READY = -10,
    /**
     * This memory holds something else.
     */
    TOLLGATE_E_MAGIC = -11,
    /**
     * This memory holds a limiter of another layout version.
     */
    TOLLGATE_E_LAYOUT = -12,
    /**
     * What this memory says of its limiter contradicts itself.
     */
    TOLLGATE_E_CORRUPT = -13,
    /**
     * This memory holds, or is about to hold, a limiter of another configuration.
     */
    TOLLGATE_E_CONFIG = -14,
    /**
     * The clock does not serve here: the limiter has none and was not told the time; it is not one that processes
     * share; or the coarse clock was inherited from a parent process.
     */
    TOLLGATE_E_CLOCK = -15,
    /**
     * The coarse clock runs already, at a coarser resolution.
     */
    TOLLGATE_E_EXISTS = -16,
    /**
     * The file is not trusted: another user's, writable by others, no file at all, or one that could be cut short.
     */
    TOLLGATE_E_UNTRUSTED = -17,
    /**
     * This library, algorithm or machine can not do that.
     */
    TOLLGATE_E_UNSUPPORTED = -19,
} tollgate_status;

/**
 * Keeps the coarse clock fresh.
 */
typedef struct tollgate_coarse_t tollgate_coarse_t;

/**
 * Limiters by key. Each key has a history of its own; all keys of a class have the same limits.
 *
 * Memory is taken by `tollgate_keyed_create` and does not grow: a call allocates nothing, whatever keys come. A key takes
 * its place with its first admission, and leaves it when a later call, of whatever key, finds that nothing is charged to it
 * any more. Only such keys leave, one at most in a call: no key comes back with a fresh quota before its time. There is no
 * thread, and no sweep.
 *
 * TAKES A LOCK, one of many: that of the keys that fall together by a hash under the secret, for the time of a look-up. So
 * it is thread-safe, and neither async-signal-safe nor lock-free; in a forked child, which has a copy, a key may block for
 * ever if another thread of the parent was inside. Processes do not share it. What may run at once: everything but
 * `tollgate_keyed_destroy`.
 */
typedef struct tollgate_keyed_t tollgate_keyed_t;

/**
 * A limiter. Its memory is the caller's (`tollgate_init_in`) or the library's (`tollgate_create`).
 */
typedef struct tollgate_limiter_t tollgate_limiter_t;

/**
 * A region: limiters by index, and limiters by key, that processes share. Linux; in a library that was built without it (the
 * feature `shm`) there is none of its functions.
 *
 * It is a file, anonymous memory behind a descriptor, or memory of the caller's. There is no pointer, lock, owner or process id in
 * it, and zeros are fresh limiters: a process may be killed at any instruction, loses at most the permits of the call that it was in,
 * and there is nothing to recover. Whoever comes to it gives the same configuration as who made it, which is compared to the
 * bit. Programs in Rust (`tollgate::shared`) and in C share one region.
 *
 * What is made of it (`tollgate_shm_t`, and the limiters of `tollgate_shm_get`) is of this process, and of children that it
 * forks. What may run at once: everything but `tollgate_shm_close`.
 *
 * A region whose bytes come from somebody hostile can decide wrongly. No call reads or writes outside of it, whatever the bytes
 * are, also those that others change meanwhile; who can write to it can make calls wait. A file that somebody cuts short kills
 * whoever touches what is missing (SIGBUS): its folder must be trusted. Anonymous memory is sealed against that.
 */
typedef struct tollgate_shm_t tollgate_shm_t;

/**
 * At most `limit` permits in any `window_ns` nanoseconds.
 */
typedef struct tollgate_rule_t {
    /**
     * Permits per window; 0 refuses every cost above 0.
     */
    uint64_t limit;
    /**
     * 1 to 2^62 - 1.
     */
    uint64_t window_ns;
} tollgate_rule_t;

/**
 * What a limiter is to be. Begin with `TOLLGATE_CONFIG_INIT`, or with zeros and `struct_size`. In every field but
 * those of rules, 0 means the default; fields that an algorithm does not use must be 0.
 */
typedef struct tollgate_config_t {
    /**
     * `TOLLGATE_CONFIG_SIZE`.
     */
    uint32_t struct_size;
    /**
     * `TOLLGATE_LOG` and its like; there is no default.
     */
    uint32_t algorithm;
    /**
     * How many of `rules` count, from the first; the others must be 0.
     */
    uint32_t rule_count;
    /**
     * See the algorithm.
     */
    uint32_t buckets;
    /**
     * `TOLLGATE_CLOCK_PRECISE` and its like; there is no default.
     */
    uint32_t clock;
    /**
     * A sum of `TOLLGATE_TEXTBOOK_COVERAGE`, `TOLLGATE_STATS`, `TOLLGATE_BERNOULLI`, `TOLLGATE_LIVE`.
     */
    uint32_t flags;
    /**
     * `TOLLGATE_LOG` and `_WINDOW` of one rule: over how many shards the limit is spread, so that threads do not meet on one
     * cache line: as many as threads call at once, at most 65,536. A thread begins at a shard of its own and is refused
     * only after all have refused. 0 and 1: not spread. The largest cost is the smallest part above 0. A library that was
     * built without shards answers `TOLLGATE_E_UNSUPPORTED` to more.
     */
    uint32_t shards;
    /**
     * The largest cost of a call. Default: any cost up to the limit (the burst). `TOLLGATE_LOG` is faster with 1.
     */
    uint32_t max_cost;
    /**
     * See the algorithm.
     */
    uint64_t burst;
    /**
     * The rules: all must have room, or nothing is taken from any.
     */
    struct tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    /**
     * `reserved[0]`: for `TOLLGATE_WINDOW`, `_FIXED` and `_TWO_WINDOW` the phase in nanoseconds, below the width of a
     * bucket (the window), by which edges are shifted; for `TOLLGATE_SAMPLED` with `TOLLGATE_BERNOULLI` the seed.
     * `reserved[1]`, with `TOLLGATE_LIVE`: for `TOLLGATE_LOG` and `_COMPACT` the largest limit that it may ever get, which sets its
     * memory (default: the largest now; needed with shards); for `TOLLGATE_WINDOW` the longest window in nanoseconds (default: the
     * longest now); for `TOLLGATE_GCRA` the largest limit per its window (default: that now). Else, and the other two: 0.
     */
    uint64_t reserved[4];
} tollgate_config_t;

/**
 * The answer to one call. All spans count from `now_ns`.
 */
typedef struct tollgate_decision_t {
    /**
     * 1 if admitted, else 0.
     */
    uint32_t allowed;
    /**
     * `TOLLGATE_REASON_NONE` and its like.
     */
    uint32_t reason;
    /**
     * The rule that these figures speak of, counted from 0: the one that refused, else that with the least left.
     */
    uint32_t rule;
    /**
     * 0.
     */
    uint32_t reserved;
    /**
     * The limit of that rule (the burst).
     */
    uint64_t limit;
    /**
     * Permits that could still be had at once: the least over all rules.
     */
    uint64_t remaining;
    /**
     * How long until the same call would pass if nobody else came: 0 if it was admitted, `UINT64_MAX` for never.
     */
    uint64_t retry_after_ns;
    /**
     * How long until `remaining` grows if nobody else comes; 0 when it can not grow.
     */
    uint64_t next_after_ns;
    /**
     * How long until nothing is charged to any rule if nobody else comes.
     */
    uint64_t reset_after_ns;
    /**
     * The time judged: the caller's, or the newest recorded one if that is later.
     */
    uint64_t now_ns;
} tollgate_decision_t;

/**
 * What was counted since the limiter was made. Each figure only grows; together they are not of one moment.
 */
typedef struct tollgate_stats_t {
    /**
     * `TOLLGATE_STATS_SIZE`, set by the caller.
     */
    uint32_t struct_size;
    /**
     * 0.
     */
    uint32_t flags;
    /**
     * Calls admitted; those of cost 0 are not counted.
     */
    uint64_t allowed;
    /**
     * Calls refused; errors are not counted.
     */
    uint64_t refused;
    /**
     * Calls whose time was older than that of an earlier one (with shards: of one counted on the same line).
     */
    uint64_t clock_regressions;
    /**
     * Permits that the admitted calls took.
     */
    uint64_t permits;
    /**
     * Calls that each rule refused, a cost above its limit among them. What these lack of `refused` was above the largest cost.
     */
    uint64_t refused_by[TOLLGATE_MAX_RULES];
    /**
     * Tries that calls lost to another caller, and made again: what contention costs. 0 in a library built without std, which has no
     * way to count them.
     */
    uint64_t contention_retries;
    /**
     * 0.
     */
    uint64_t reserved[2];
} tollgate_stats_t;

/**
 * A class of keys.
 */
typedef struct tollgate_class_t {
    /**
     * What each key is allowed: `TOLLGATE_LOG`, `_WINDOW`, `_FIXED`, `_TWO_WINDOW` or `_GCRA`, with `clock`, `shards` and
     * `flags` 0 (but for `TOLLGATE_TEXTBOOK_COVERAGE`). NULL: no limit, and nothing is kept. Read by `tollgate_keyed_create`
     * alone.
     */
    const struct tollgate_config_t *limit;
    /**
     * How many keys there is room for, 1 at least; without a limit 0.
     */
    uint64_t keys;
} tollgate_class_t;

/**
 * What limiters by key are to be. Begin with zeros and `struct_size`.
 */
typedef struct tollgate_keyed_config_t {
    /**
     * `TOLLGATE_KEYED_CONFIG_SIZE`.
     */
    uint32_t struct_size;
    /**
     * `TOLLGATE_CLOCK_PRECISE` and its like; there is no default.
     */
    uint32_t clock;
    /**
     * A sum of `TOLLGATE_STATS`, `TOLLGATE_REFUSE_WHEN_FULL`.
     */
    uint32_t flags;
    /**
     * How many classes there are at `classes`: 1 to `TOLLGATE_MAX_CLASSES`.
     */
    uint32_t class_count;
    /**
     * The classes. A call names one by its number, from 0. A key that is asked for in two classes has a history in each.
     */
    const struct tollgate_class_t *classes;
    /**
     * What keys are hashed with: strangers must not know it. Both 0: drawn from the system (not in a library built without
     * clocks, which has no source: TOLLGATE_E_INVALID).
     */
    uint64_t secret[2];
    /**
     * 0.
     */
    uint64_t reserved[4];
} tollgate_keyed_config_t;

/**
 * A key that is busy.
 */
typedef struct tollgate_busy_key_t {
    /**
     * Permits charged to the first rule.
     */
    uint64_t used;
    /**
     * The key's length.
     */
    uint32_t len;
    /**
     * Its class.
     */
    uint32_t class_index;
    /**
     * Its bytes, up to `TOLLGATE_KEY_KEPT`; of a longer key the first 28. Behind them zeros.
     */
    uint8_t key[TOLLGATE_KEY_KEPT];
    /**
     * 0.
     */
    uint32_t reserved;
} tollgate_busy_key_t;

/**
 * What there is, and what was counted. Set `struct_size` before.
 */
typedef struct tollgate_keyed_stats_t {
    /**
     * `TOLLGATE_KEYED_STATS_SIZE`, set by the caller.
     */
    uint32_t struct_size;
    /**
     * 0.
     */
    uint32_t flags;
    /**
     * Keys that have a place now, those that are idle but have not left yet among them.
     */
    uint64_t keys;
    /**
     * The most that `keys` can be: at least what was asked for.
     */
    uint64_t capacity;
    /**
     * Bytes that were taken for keys and histories.
     */
    uint64_t bytes;
    /**
     * Keys that have left because they were idle.
     */
    uint64_t evictions;
    /**
     * Calls admitted, with `TOLLGATE_STATS`, else 0; those of cost 0 are not counted.
     */
    uint64_t allowed;
    /**
     * Calls refused, with `TOLLGATE_STATS`, else 0; errors are not counted.
     */
    uint64_t refused;
    /**
     * 0.
     */
    uint64_t reserved[3];
} tollgate_keyed_stats_t;

/**
 * What a region is to be. Begin with zeros and `struct_size`.
 */
typedef struct tollgate_shm_config_t {
    /**
     * `TOLLGATE_SHM_CONFIG_SIZE`.
     */
    uint32_t struct_size;
    /**
     * `TOLLGATE_CLOCK_MONOTONIC`, `_BOOTTIME` or `_CALLER` (all processes then pass times of one clock); there is no default.
     */
    uint32_t clock;
    /**
     * A sum of `TOLLGATE_REFUSE_WHEN_FULL`, `TOLLGATE_ANY_OWNER`, `TOLLGATE_LIVE`: the rules may change, by
     * `tollgate_shm_set_rules`, but for `TOLLGATE_GCRA`.
     */
    uint32_t flags;
    /**
     * The mode of files made, whatever the umask; of those that exist, what others may have the right to write. 0: 0600.
     */
    uint32_t mode;
    /**
     * What each limiter, and each key, is allowed: `TOLLGATE_LOG`, `_WINDOW`, `_FIXED`, `_TWO_WINDOW` or `_GCRA`, with `clock`,
     * `shards` and `flags` 0 (but for `TOLLGATE_TEXTBOOK_COVERAGE`); `reserved[1]` is for `TOLLGATE_LIVE` here as there.
     * Read by the call alone.
     */
    const struct tollgate_config_t *limit;
    /**
     * How many limiters by index.
     */
    uint64_t limiters;
    /**
     * For how many keys in use there is room; 0: no keys.
     */
    uint64_t keys;
    /**
     * 0.
     */
    uint64_t reserved[4];
} tollgate_shm_config_t;

/**
 * What is known of a region without its configuration. Set `struct_size` before.
 */
typedef struct tollgate_shm_info_t {
    /**
     * `TOLLGATE_SHM_INFO_SIZE`, set by the caller.
     */
    uint32_t struct_size;
    /**
     * The version of its layout.
     */
    uint32_t layout_version;
    /**
     * `TOLLGATE_LOG` and its like; 0: one that this library does not know.
     */
    uint32_t algorithm;
    /**
     * `TOLLGATE_CLOCK_MONOTONIC` and its like; 0: one that this library does not know.
     */
    uint32_t clock;
    /**
     * A sum of `TOLLGATE_REFUSE_WHEN_FULL`, `TOLLGATE_STALE`, `TOLLGATE_LIVE`.
     */
    uint32_t flags;
    /**
     * How many of `rules` there are.
     */
    uint32_t rule_count;
    /**
     * Bytes of the region.
     */
    uint64_t bytes;
    /**
     * Limiters by index.
     */
    uint64_t limiters;
    /**
     * The most keys that there can be: at least twice what was asked for.
     */
    uint64_t capacity;
    /**
     * The rules in force.
     */
    struct tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    /**
     * 0.
     */
    uint64_t reserved[4];
} tollgate_shm_info_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, to be compared with `TOLLGATE_VERSION_NUMBER`, that of the header.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API uint32_t tollgate_version_number(void) TOLLGATE_NOEXCEPT;

/**
 * The version of the library as text, such as "0.1.0": static, never NULL.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API const char *tollgate_version_string(void) TOLLGATE_NOEXCEPT;

/**
 * The ABI version of the library, to be compared with `TOLLGATE_ABI_VERSION`.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API uint32_t tollgate_abi_version(void) TOLLGATE_NOEXCEPT;

/**
 * The layout version of the library, to be compared with `TOLLGATE_LAYOUT_VERSION`.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API uint32_t tollgate_layout_version(void) TOLLGATE_NOEXCEPT;

/**
 * The meaning of any status, or of any other number: static, never NULL.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API const char *tollgate_strerror(int status) TOLLGATE_NOEXCEPT;

/**
 * The name of a status, such as "TOLLGATE_E_NULL", or "TOLLGATE_UNKNOWN": static, never NULL.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API const char *tollgate_status_name(int status) TOLLGATE_NOEXCEPT;

/**
 * The time of a clock now, or `UINT64_MAX`, a time at which nothing is admitted, if there is none. Times of
 * `TOLLGATE_CLOCK_PRECISE` and `_COARSE` compare within one process, those of others in all.
 *
 * Thread-safe, async-signal-safe (`_PRECISE` and `_COARSE` after the first use).   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
uint64_t tollgate_now_ns(uint32_t clock)
TOLLGATE_NOEXCEPT;

/**
 * Starts to keep the coarse clock fresh, every `resolution_ns` (1,000 to 1,000,000,000): until all of `*out` are
 * stopped. The first starts a thread, later ones share it; a call may take a millisecond.
 *
 * Errors:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of `out`.
 * - TOLLGATE_E_INVALID: the resolution.
 * - TOLLGATE_E_EXISTS: runs already, at a coarser resolution.
 * - TOLLGATE_E_CLOCK: in a child forked while it ran.
 * - TOLLGATE_E_SYS: no thread.   TOLLGATE_E_NOMEM.
 * - TOLLGATE_E_UNSUPPORTED: the library was built without clocks.
 *
 * Thread-safe.   Allocates.   Blocks: takes a lock.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_coarse_start(uint64_t resolution_ns,
                          struct tollgate_coarse_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Ends what `tollgate_coarse_start` began; the last one waits for the thread to end, about one resolution. NULL is
 * allowed. Exactly once for each start.
 *
 * Thread-safe.   Frees.   Blocks: takes a lock.   Since ABI 0.
 */
TOLLGATE_API
void tollgate_coarse_stop(struct tollgate_coarse_t *coarse)
TOLLGATE_NOEXCEPT;

/**
 * Makes a limiter in memory of the library, and puts it in `*out`. It belongs to this process (and to children that it
 * forks, each with its own copy).
 *
 * Errors, which leave `*out` alone:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.
 * - TOLLGATE_E_SIZE: `struct_size`.   TOLLGATE_E_INVALID: anything else in the configuration.
 * - TOLLGATE_E_UNSUPPORTED: an algorithm without shards, or whose rules can not change, and was asked for that; an algorithm, a
 *   clock, shards or `TOLLGATE_LIVE` in a library that was built without.
 * - TOLLGATE_E_NOMEM.
 *
 * Thread-safe.   Allocates.   Blocks: never, but for the first use of `TOLLGATE_CLOCK_PRECISE` or `_COARSE` in a
 * process.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_create(const struct tollgate_config_t *config,
                    struct tollgate_limiter_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Ends a limiter that `tollgate_create` made. NULL is allowed; so is a limiter in the caller's memory, to which nothing
 * is done.
 *
 * Needs exclusive access: no other call may run or follow.   Frees.   Blocks: never.   Since ABI 0.
 */
TOLLGATE_API
void tollgate_destroy(struct tollgate_limiter_t *limiter)
TOLLGATE_NOEXCEPT;

/**
 * What a limiter in the caller's memory must be aligned to: 128.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API size_t tollgate_align(void) TOLLGATE_NOEXCEPT;

/**
 * Tells how many bytes a limiter of this configuration takes in the caller's memory.
 *
 * Errors: those of `tollgate_init_in` about the configuration.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API int tollgate_size(const struct tollgate_config_t *config, size_t *out) TOLLGATE_NOEXCEPT;

/**
 * Makes a limiter in the caller's memory: `len` bytes at `memory`, aligned to `tollgate_align()`, all zeros or holding
 * a limiter of this very configuration, which is then the one. The memory may be shared by processes (`MAP_SHARED`).
 * Any number of threads and processes may call this at once, with the same configuration: they help one another, and a
 * process that dies in the middle leaves work that the next call finishes. There is nothing to destroy: the limiter is
 * the memory, and holds nothing else.
 *
 * Errors, which leave `*out` and the memory alone:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of any pointer.
 * - TOLLGATE_E_SIZE: `len` is too little; or `struct_size`.   TOLLGATE_E_INVALID: anything else in the configuration.
 * - TOLLGATE_E_UNSUPPORTED: an algorithm or a flag that lives by `tollgate_create` alone; as `tollgate_create`.
 * - TOLLGATE_E_CLOCK: a clock of one process.
 * - TOLLGATE_E_MAGIC: the memory holds something else.
 * - TOLLGATE_E_LAYOUT: it holds a limiter of another layout.
 * - TOLLGATE_E_CONFIG: it holds, or is about to hold, one of another configuration; or what describes it (768 bytes; with shards more) is not zeros.
 * - TOLLGATE_E_CORRUPT: what follows those is a state that no calls make; or `tollgate_create` made what it holds.
 *
 * Cost: reads all of the limiter's memory.
 *
 * Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Ordering: what the caller that made it did before
 * is seen by those that find it.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_init_in(void *memory,
                     size_t len,
                     const struct tollgate_config_t *config,
                     struct tollgate_limiter_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Finds the limiter that `tollgate_init_in` made in the caller's memory, here or in another process, and checks it
 * through and through. It writes nothing.
 *
 * Errors, which leave `*out` alone:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.
 * - TOLLGATE_E_SIZE: `len` is less than the limiter takes.
 * - TOLLGATE_E_NOT_READY: nobody has made it, or not all of it yet.
 * - TOLLGATE_E_MAGIC: something else is there.   TOLLGATE_E_LAYOUT: a limiter of another layout.
 * - TOLLGATE_E_CORRUPT: a limiter that contradicts itself, or a state that no calls make. Memory is trusted from here on.
 * - TOLLGATE_E_UNSUPPORTED: a clock, or shards, that this library was built without.
 *
 * Cost: reads all of the limiter's memory.
 *
 * Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Ordering: as `tollgate_init_in`.
 * Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_attach_in(void *memory,
                       size_t len,
                       struct tollgate_limiter_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Takes one permit now. False if it was refused, if the limiter has no clock, and for NULL.
 *
 * Effect: at one instant inside the call; a refusal changes nothing.   Ordering: none for your own data.
 * Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API bool tollgate_try_acquire(struct tollgate_limiter_t *limiter) TOLLGATE_NOEXCEPT;

/**
 * Takes `n` permits now, all or nothing; 0 are always had.
 *
 * As `tollgate_try_acquire`; false for an `n` that can never be had, too.
 */
TOLLGATE_API bool tollgate_try_acquire_n(struct tollgate_limiter_t *limiter, uint64_t n) TOLLGATE_NOEXCEPT;

/**
 * Takes `n` permits at `now_ns`, all or nothing; 0 are always had.
 *
 * The time is in nanoseconds since any zero, below 2^62; above it is out of range and false. An older time than the
 * newest recorded one is judged at that one, as exactly as the algorithm knows it. For any `clock` of the limiter.
 *
 * As `tollgate_try_acquire`.
 */
TOLLGATE_API
bool tollgate_try_acquire_at(struct tollgate_limiter_t *limiter,
                             uint64_t n,
                             uint64_t now_ns)
TOLLGATE_NOEXCEPT;

/**
 * Takes `n` permits now, all or nothing, and tells what is left, or how long to wait.
 *
 * RETURNS 0 WHEN ADMITTED: write `if (tollgate_check(l, n, &d) != TOLLGATE_OK) refuse();`, which refuses on errors
 * as well.
 *
 * Returns: TOLLGATE_OK, TOLLGATE_REFUSED, TOLLGATE_NEVER; `*out`, which may be NULL, is then written.
 * Errors, which write nothing: TOLLGATE_E_NULL: `limiter`.   TOLLGATE_E_CLOCK: the limiter has no clock.
 *
 * Effect: at one instant inside the call; a refusal changes nothing. The figures are exact if nobody else calls, else
 * true of an instant inside the call, after the effect.   Ordering: none for your own data.
 * Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_check(struct tollgate_limiter_t *limiter,
                   uint64_t n,
                   struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`.
 *
 * Errors: TOLLGATE_E_NULL: `limiter`.   TOLLGATE_E_INVALID: the time is not below 2^62.
 */
TOLLGATE_API
int tollgate_check_at(struct tollgate_limiter_t *limiter,
                      uint64_t n,
                      uint64_t now_ns,
                      struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Tells what `tollgate_check` would, with the figures of now, and changes nothing: the limiter may be in memory that
 * can only be read.
 *
 * Returns and errors as `tollgate_check`.
 */
TOLLGATE_API
int tollgate_peek(const struct tollgate_limiter_t *limiter,
                  uint64_t n,
                  struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`.
 *
 * Returns and errors as `tollgate_check_at`.
 */
TOLLGATE_API
int tollgate_peek_at(const struct tollgate_limiter_t *limiter,
                     uint64_t n,
                     uint64_t now_ns,
                     struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Takes a place for `n` permits in the queue of a `TOLLGATE_PACING` limiter, and tells how long to wait for its
 * start: 0 if at once. The place is taken; whoever does not want to wait so long asks `tollgate_peek` before.
 *
 * Returns: TOLLGATE_OK; TOLLGATE_REFUSED if the queue is full, TOLLGATE_NEVER if it is never long enough, both with
 * the wait after which the same call would get a place, `UINT64_MAX` for never.
 * Errors, which write nothing: TOLLGATE_E_NULL: `limiter` or `wait_ns`.   TOLLGATE_E_CLOCK: the limiter has no clock.
 * TOLLGATE_E_UNSUPPORTED: the limiter is no queue.
 *
 * Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_reserve(struct tollgate_limiter_t *limiter,
                     uint64_t n,
                     uint64_t *wait_ns)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`.
 *
 * Errors: as `tollgate_reserve`, but TOLLGATE_E_INVALID for a time not below 2^62 instead of TOLLGATE_E_CLOCK.
 */
TOLLGATE_API
int tollgate_reserve_at(struct tollgate_limiter_t *limiter,
                        uint64_t n,
                        uint64_t now_ns,
                        uint64_t *wait_ns)
TOLLGATE_NOEXCEPT;

/**
 * Forgets every admission: the limiter is as new. Statistics go on.
 *
 * Errors: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of `limiter`.   TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: no limiter is there.
 *
 * Needs exclusive access: no other call may run meanwhile.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_reset(struct tollgate_limiter_t *limiter)
TOLLGATE_NOEXCEPT;

/**
 * Tells how many permits are charged to a rule (counted from 0) at `now_ns`.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
 * `tollgate_reset`, and of `used`.   TOLLGATE_E_INVALID: no such rule, or a time not below 2^62.
 *
 * Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_usage_at(const struct tollgate_limiter_t *limiter,
                      uint32_t rule,
                      uint64_t now_ns,
                      uint64_t *used)
TOLLGATE_NOEXCEPT;

/**
 * Replaces the rules of a limiter that was made with `TOLLGATE_LIVE`: all of them, by the `count` rules at `rules`. Permits
 * taken so far stay taken. A call that overlaps this is judged by the old rules or by the new, whole; one that begins later
 * by the new. A limit of 0 refuses every cost above 0 until it is raised again. After a lowering nothing is admitted until
 * the use has fallen below the new limit (with shards: until it has in some shard).
 *
 * `TOLLGATE_LOG`: any rules, with limits up to `reserved[1]`. `TOLLGATE_WINDOW`: limits of up to half of what the header names,
 * less for windows that are shorter than the longest; windows that are multiples of its bucket, up to `reserved[1]`.
 * With shards: one rule. `TOLLGATE_FIXED`, `_TWO_WINDOW`: the limit. `TOLLGATE_COMPACT`: the limit, up to `reserved[1]`.
 *
 * Errors, which change nothing:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as `tollgate_reset`, and of `rules`.
 * - TOLLGATE_E_INVALID: rules that this limiter can not get; none, or more than `TOLLGATE_MAX_RULES`.
 * - TOLLGATE_E_UNSUPPORTED: the limiter was made without `TOLLGATE_LIVE`, or has a rate.
 *
 * Thread-safe; one change at a time: another waits, no other call does.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_set_rules(struct tollgate_limiter_t *limiter,
                       const struct tollgate_rule_t *rules,
                       uint32_t count)
TOLLGATE_NOEXCEPT;

/**
 * Replaces rate and burst of a `TOLLGATE_GCRA` limiter that was made with `TOLLGATE_LIVE`, from `now_ns` on. The permits owed,
 * which were taken and have not drained, are kept, and drain at the new rate. A limit of 0 refuses every cost above 0 until it
 * is raised again; what is owed drains on as before. A call that overlaps this is judged by the old or by the new, whole; one that begins later by the new.
 *
 * Errors, which change nothing:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as `tollgate_reset`, and of `rate`.
 * - TOLLGATE_E_INVALID: a rate above the largest (`reserved[1]` of its configuration); a burst or a window that no such limiter
 *   has; a time not below 2^62.
 * - TOLLGATE_E_UNSUPPORTED: another algorithm, or made without `TOLLGATE_LIVE`.
 *
 * Thread-safe; one change at a time: another waits, no other call does.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_set_rate_at(struct tollgate_limiter_t *limiter,
                         const struct tollgate_rule_t *rate,
                         uint64_t burst,
                         uint64_t now_ns)
TOLLGATE_NOEXCEPT;

/**
 * Tells the present rules: writes them to `rules`, which has room for `TOLLGATE_MAX_RULES`, and their number to `*count`.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
 * `tollgate_reset`, and of `rules` and `count`.
 *
 * Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_get_rules(const struct tollgate_limiter_t *limiter,
                       struct tollgate_rule_t *rules,
                       uint32_t *count)
TOLLGATE_NOEXCEPT;

/**
 * Tells the configuration that the limiter was made with. Set `out->struct_size` before.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
 * `tollgate_reset`, and of `out`.   TOLLGATE_E_SIZE: `struct_size`.
 *
 * Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_get_config(const struct tollgate_limiter_t *limiter,
                        struct tollgate_config_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Tells what was counted. Set `out->struct_size` before.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN, TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC: as
 * `tollgate_reset`, and of `out`.   TOLLGATE_E_SIZE: `struct_size`.   TOLLGATE_E_UNSUPPORTED: the limiter was made
 * without `TOLLGATE_STATS`.
 *
 * Thread-safe, fork-safe, async-signal-safe.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_stats(const struct tollgate_limiter_t *limiter,
                   struct tollgate_stats_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Makes limiters by key, and puts them in `*out`.
 *
 * Errors, which leave `*out` alone:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of `config`, `classes`, a class's `limit`, `out`.
 * - TOLLGATE_E_SIZE: `struct_size`, of a class's `limit` too.
 * - TOLLGATE_E_INVALID: anything else in the configuration.
 * - TOLLGATE_E_UNSUPPORTED: an algorithm that keys can not have; a library that was built without.
 * - TOLLGATE_E_NOMEM: for the tables; where there is no memory for a small piece the process ends.
 *
 * Thread-safe.   Allocates.   Blocks: as `tollgate_create`.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_keyed_create(const struct tollgate_keyed_config_t *config,
                          struct tollgate_keyed_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Ends limiters by key. NULL is allowed.
 *
 * Needs exclusive access: no other call may run or follow.   Frees.   Since ABI 0.
 */
TOLLGATE_API void tollgate_keyed_destroy(struct tollgate_keyed_t *keyed) TOLLGATE_NOEXCEPT;

/**
 * Takes `n` permits of a key now, all or nothing; 0 are always had. `key` are `len` bytes, of any values; the empty key is
 * one as well. False if it was refused, for NULL (of `key`, too), without such a class, for a key longer than
 * `TOLLGATE_KEY_MAX`, and without a clock.
 *
 * Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
bool tollgate_keyed_try_acquire(struct tollgate_keyed_t *keyed,
                                uint32_t class_index,
                                const void *key,
                                size_t len,
                                uint64_t n)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`, for any `clock`. False for a time not below 2^62 as well.
 */
TOLLGATE_API
bool tollgate_keyed_try_acquire_at(struct tollgate_keyed_t *keyed,
                                   uint32_t class_index,
                                   const void *key,
                                   size_t len,
                                   uint64_t n,
                                   uint64_t now_ns)
TOLLGATE_NOEXCEPT;

/**
 * Takes `n` permits of a key now, all or nothing, and tells what is left, or how long to wait.
 *
 * Returns: TOLLGATE_OK, TOLLGATE_REFUSED, TOLLGATE_NEVER; `*out`, which may be NULL, is then written. A key for which there is
 * no room is TOLLGATE_REFUSED with `TOLLGATE_REASON_FULL`, and with a time at which it is worth asking again.
 * Errors, which write nothing: TOLLGATE_E_NULL: `keyed` or `key`.   TOLLGATE_E_INVALID: the class, or `len`.
 * TOLLGATE_E_CLOCK: there is no clock.
 *
 * Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_keyed_check(struct tollgate_keyed_t *keyed,
                         uint32_t class_index,
                         const void *key,
                         size_t len,
                         uint64_t n,
                         struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`.
 *
 * Errors: as `tollgate_keyed_check`, but TOLLGATE_E_INVALID for a time not below 2^62 instead of TOLLGATE_E_CLOCK.
 */
TOLLGATE_API
int tollgate_keyed_check_at(struct tollgate_keyed_t *keyed,
                            uint32_t class_index,
                            const void *key,
                            size_t len,
                            uint64_t n,
                            uint64_t now_ns,
                            struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Tells what `tollgate_keyed_check` would, with the figures of now, and changes nothing: the key is not made.
 *
 * Returns and errors as `tollgate_keyed_check`.
 */
TOLLGATE_API
int tollgate_keyed_peek(const struct tollgate_keyed_t *keyed,
                        uint32_t class_index,
                        const void *key,
                        size_t len,
                        uint64_t n,
                        struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`.
 *
 * Returns and errors as `tollgate_keyed_check_at`.
 */
TOLLGATE_API
int tollgate_keyed_peek_at(const struct tollgate_keyed_t *keyed,
                           uint32_t class_index,
                           const void *key,
                           size_t len,
                           uint64_t n,
                           uint64_t now_ns,
                           struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Tells how many permits are charged to a rule (counted from 0) of a key at `now_ns`. The key is not made; what it took of a
 * shared limiter is not told apart.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL: `keyed`, `key`, `used`.   TOLLGATE_E_ALIGN: `used`.   TOLLGATE_E_INVALID: no
 * such class, or a key too long; no such rule, or none in a class without limits; a time not below 2^62.
 *
 * Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_keyed_usage_at(const struct tollgate_keyed_t *keyed,
                            uint32_t class_index,
                            const void *key,
                            size_t len,
                            uint32_t rule,
                            uint64_t now_ns,
                            uint64_t *used)
TOLLGATE_NOEXCEPT;

/**
 * Forgives a key of a class: forgets its history. Whether it had one; false for whatever is wrong. To forgive all keys that have
 * used too much, take them from `tollgate_keyed_busiest_at`: no call here walks over keys with a callback.
 *
 * Thread-safe.   Takes a lock: see `tollgate_keyed_t`.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
bool tollgate_keyed_remove(struct tollgate_keyed_t *keyed,
                           uint32_t class_index,
                           const void *key,
                           size_t len)
TOLLGATE_NOEXCEPT;

/**
 * How many keys have a place now; 0 for NULL.
 *
 * Thread-safe.   Takes every lock, one after the other.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API uint64_t tollgate_keyed_len(const struct tollgate_keyed_t *keyed) TOLLGATE_NOEXCEPT;

/**
 * Tells the keys with the most permits charged to their first rule at `now_ns`, the busiest first: at most `room` of them,
 * written to `out`, and their number to `*found`. Each key is as at some moment of its own.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL: `keyed`, `out`, `found`.   TOLLGATE_E_ALIGN: `out`, `found`.
 * TOLLGATE_E_INVALID: a time not below 2^62.
 *
 * Cost: a look at every key: for dashboards.   Thread-safe.   Takes every lock, one after the other.   Allocates.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_keyed_busiest_at(const struct tollgate_keyed_t *keyed,
                              uint64_t now_ns,
                              struct tollgate_busy_key_t *out,
                              size_t room,
                              size_t *found)
TOLLGATE_NOEXCEPT;

/**
 * Tells what there is, and what was counted. Set `out->struct_size` before.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL: `keyed`, `out`.   TOLLGATE_E_ALIGN: `out`.   TOLLGATE_E_SIZE: `struct_size`.
 *
 * Thread-safe.   Takes every lock, one after the other.   Allocates: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_keyed_stats(const struct tollgate_keyed_t *keyed,
                         struct tollgate_keyed_stats_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Attaches to the region in a file, say in /dev/shm, or makes it if there is none, and puts it in `*out`. Of processes that come at
 * once one makes it, and all have the same. Nobody ever sees part of it: it is built without a name and gets it when it is done.
 *
 * Errors, which leave `*out` alone:
 * - TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of any pointer, the configuration's `limit` too.
 * - TOLLGATE_E_SIZE: `struct_size`; or the file has another size than the region.
 * - TOLLGATE_E_INVALID: anything else in the configuration.   TOLLGATE_E_CLOCK: a clock of one process.
 * - TOLLGATE_E_UNSUPPORTED: an algorithm that no region has.   TOLLGATE_E_NOMEM: no memory is that large.
 * - TOLLGATE_E_SYS: the system refused; `errno` says why.
 * - TOLLGATE_E_UNTRUSTED: another user's file, one that others may write to, or no file.
 * - TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC, TOLLGATE_E_CORRUPT: no region is in it, or a broken one.
 * - TOLLGATE_E_LAYOUT: a region of another layout.   TOLLGATE_E_CONFIG: one of another configuration.
 * - TOLLGATE_E_CLOCK: one whose time is of another boot or time namespace.
 *
 * Cost: reads all of the region.
 *
 * Thread-safe, process-safe.   Allocates; where there is no memory for a small piece the process ends.   Blocks: for files.
 * Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_open(const char *path,
                      const struct tollgate_shm_config_t *config,
                      struct tollgate_shm_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Makes a region in a file that does not exist yet, as `tollgate_shm_open` does. Its errors, and TOLLGATE_E_SYS with `EEXIST` if
 * there is something of that name.
 */
TOLLGATE_API
int tollgate_shm_create(const char *path,
                        const struct tollgate_shm_config_t *config,
                        struct tollgate_shm_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Attaches to the region in a file, as `tollgate_shm_open` does, and writes nothing. Its errors, and TOLLGATE_E_SYS with `ENOENT` if
 * there is none.
 */
TOLLGATE_API
int tollgate_shm_attach(const char *path,
                        const struct tollgate_shm_config_t *config,
                        struct tollgate_shm_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Attaches to the region behind a descriptor, which stays the caller's and may be closed after that. It writes nothing.
 *
 * Errors as `tollgate_shm_open`; TOLLGATE_E_SYS with `EBADF` for what is no descriptor; TOLLGATE_E_UNTRUSTED for anonymous memory
 * that could be cut short.
 */
TOLLGATE_API
int tollgate_shm_open_fd(int fd,
                         const struct tollgate_shm_config_t *config,
                         struct tollgate_shm_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Makes a region in anonymous memory that nobody can cut short (a memfd), and puts its descriptor in `*fd`: it is the caller's, to be
 * inherited by children, sent over a socket, or closed. It is closed on `exec`, unless that is changed. `name` is shown in /proc.
 *
 * Errors as `tollgate_shm_open`; TOLLGATE_E_INVALID for a name that is not UTF-8; TOLLGATE_E_SYS with `ENOMEM` if the machine does not
 * have so much memory. They leave `*fd` alone. All of it is taken at once: where there is less left, the system ends processes.
 */
TOLLGATE_API
int tollgate_shm_create_memfd(const char *name,
                              const struct tollgate_shm_config_t *config,
                              int *fd,
                              struct tollgate_shm_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Makes a region in memory of the caller's: `len` bytes at `memory`, aligned to `tollgate_align()`, all zeros, or holding a region of
 * this very configuration, which is then the one. Say a zone of nginx, or memory mapped before forking. Any number of
 * processes may call this at once, with the same configuration: they help one another, and what one leaves half done when it
 * dies, the next finishes. The memory must stay for as long as what is made of it.
 *
 * Errors as `tollgate_shm_open`, of files aside, with TOLLGATE_E_SIZE: `len` is less than `tollgate_shm_size` says; TOLLGATE_E_ALIGN: of
 * the memory too; TOLLGATE_E_CONFIG: its header is neither zeros nor that of such a region, begun or done. Nothing of value was written.
 * Behind a header of zeros there must be zeros: anything else is TOLLGATE_E_CORRUPT, or taken for what was admitted.
 *
 * Cost: reads all of the region.
 *
 * Thread-safe, process-safe, fork-safe, lock-free.   Allocates as `tollgate_shm_open`.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_place(void *memory,
                       size_t len,
                       const struct tollgate_shm_config_t *config,
                       struct tollgate_shm_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Tells how many bytes a region of this configuration takes.
 *
 * Errors: those of `tollgate_shm_open` about the configuration.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API int tollgate_shm_size(const struct tollgate_shm_config_t *config, size_t *out) TOLLGATE_NOEXCEPT;

/**
 * Ends what this process has of a region, which itself stays as it is. NULL is allowed. The limiters of `tollgate_shm_get` must not be
 * used any more; they are still to be destroyed.
 *
 * Needs exclusive access, in this process: no other call may run or follow.   Frees.   Since ABI 0.
 */
TOLLGATE_API
void tollgate_shm_close(struct tollgate_shm_t *shm)
TOLLGATE_NOEXCEPT;

/**
 * Removes the name of a region. Processes that have it go on with it; whoever opens that name makes a new one.
 *
 * Errors: TOLLGATE_E_NULL: `path`.   TOLLGATE_E_SYS: the system refused; `errno` says why.
 *
 * Thread-safe.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_unlink(const char *path)
TOLLGATE_NOEXCEPT;

/**
 * Tells what region is in a file, of whatever configuration. It writes nothing. Set `out->struct_size` before.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.   TOLLGATE_E_SIZE: `struct_size`.
 * TOLLGATE_E_SYS: the system refused; `errno` says why.   TOLLGATE_E_UNTRUSTED: no file.   TOLLGATE_E_NOT_READY, TOLLGATE_E_MAGIC, TOLLGATE_E_LAYOUT,
 * TOLLGATE_E_CORRUPT: as `tollgate_shm_open`.
 *
 * Thread-safe, process-safe.   Allocates.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_inspect(const char *path,
                         struct tollgate_shm_info_t *out)
TOLLGATE_NOEXCEPT;

/**
 * The same of the region behind a descriptor. TOLLGATE_E_SYS with `EBADF` for what is no descriptor.
 */
TOLLGATE_API int tollgate_shm_inspect_fd(int fd, struct tollgate_shm_info_t *out) TOLLGATE_NOEXCEPT;

/**
 * Replaces the rules of a region that was made with `TOLLGATE_LIVE`, for all its limiters and keys: all of them, by the `count` rules at
 * `rules`. Any process of the region may do so, any number of them at once; one that dies inside of it leaves the old rules or the
 * new.
 *
 * Permits taken so far stay taken, as far as the rules before still charged them. When a window is lengthened or a longer rule added, a key
 * may also be charged, for up to that window, for what the keys before it took of its place: a region made from the start with the longer
 * window, its limit as high as the capacity, has no such case. A call that overlaps this is judged by the old rules or by the
 * new, whole; one that begins later, in any process, by the new. What may change is said at `tollgate_set_rules`.
 *
 * Errors, which change nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of either pointer.   TOLLGATE_E_INVALID: rules that these limiters
 * can not get; none, or more than `TOLLGATE_MAX_RULES`.   TOLLGATE_E_UNSUPPORTED: the region was made without `TOLLGATE_LIVE`.
 *
 * Thread-safe, process-safe, fork-safe, async-signal-safe. It begins again when another change is begun meanwhile, and waits for
 * nobody; nobody waits for it.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_set_rules(struct tollgate_shm_t *shm,
                           const struct tollgate_rule_t *rules,
                           uint32_t count)
TOLLGATE_NOEXCEPT;

/**
 * Tells the rules in force: writes them to `rules`, which has room for `TOLLGATE_MAX_RULES`, and their number to `*count`.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL, TOLLGATE_E_ALIGN: of any pointer.
 *
 * Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_get_rules(const struct tollgate_shm_t *shm,
                           struct tollgate_rule_t *rules,
                           uint32_t *count)
TOLLGATE_NOEXCEPT;

/**
 * How many limiters by index there are; 0 for NULL.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API uint64_t tollgate_shm_count(const struct tollgate_shm_t *shm) TOLLGATE_NOEXCEPT;

/**
 * Makes the limiter at an index (from 0) fit for `tollgate_try_acquire` and every other function of a limiter, and puts it in `*out`.
 * It is the caller's, to be destroyed by `tollgate_destroy`, which leaves what lies in the region as it is. Once for each process
 * and index is enough.
 *
 * Its calls are thread-safe, process-safe, fork-safe, async-signal-safe and lock-free, and take a few nanoseconds more than on a
 * limiter of the library's own memory. `tollgate_reset` needs it exclusively, in all processes.
 *
 * Errors, which leave `*out` alone: TOLLGATE_E_NULL: `shm` or `out`.   TOLLGATE_E_ALIGN: `out`.   TOLLGATE_E_INVALID: there are not
 * so many.   TOLLGATE_E_NOMEM.
 *
 * Thread-safe.   Allocates.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_get(const struct tollgate_shm_t *shm,
                     uint64_t index,
                     struct tollgate_limiter_t **out)
TOLLGATE_NOEXCEPT;

/**
 * Takes `n` permits of a key now, all or nothing; 0 are always had. A key is `len` bytes at `key`. False if it was refused, and for
 * whatever is wrong: NULL, a key longer than `TOLLGATE_KEY_MAX`, a region without keys, and without a clock.
 *
 * A key has one of 14 places of its bucket for as long as anything is charged to it. There are twice as many places as keys asked
 * for; a new key whose bucket is full of keys in use shares one more limiter with others like it, or is refused
 * (`TOLLGATE_REFUSE_WHEN_FULL`). A key is known by a keyed hash: two keys in use are taken for one with a probability of 13 in
 * 2^48 for each key.
 *
 * Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
bool tollgate_shm_keyed_try_acquire(struct tollgate_shm_t *shm,
                                    const void *key,
                                    size_t len,
                                    uint64_t n)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`, for any `clock`. False for a time not below 2^62 as well.
 */
TOLLGATE_API
bool tollgate_shm_keyed_try_acquire_at(struct tollgate_shm_t *shm,
                                       const void *key,
                                       size_t len,
                                       uint64_t n,
                                       uint64_t now_ns)
TOLLGATE_NOEXCEPT;

/**
 * Takes `n` permits of a key now, all or nothing, and tells what is left, or how long to wait.
 *
 * Returns: TOLLGATE_OK, TOLLGATE_REFUSED, TOLLGATE_NEVER; `*out`, which may be NULL, is then written. A key for which there is
 * no room is TOLLGATE_REFUSED with `TOLLGATE_REASON_FULL`, and with a time at which it is worth asking again.
 * Errors, which write nothing: TOLLGATE_E_NULL: `shm` or `key`.   TOLLGATE_E_INVALID: `len`.   TOLLGATE_E_UNSUPPORTED: a region
 * without keys.   TOLLGATE_E_CLOCK: there is no clock.
 *
 * Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_keyed_check(struct tollgate_shm_t *shm,
                             const void *key,
                             size_t len,
                             uint64_t n,
                             struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`.
 *
 * Errors: as `tollgate_shm_keyed_check`, but TOLLGATE_E_INVALID for a time not below 2^62 instead of TOLLGATE_E_CLOCK.
 */
TOLLGATE_API
int tollgate_shm_keyed_check_at(struct tollgate_shm_t *shm,
                                const void *key,
                                size_t len,
                                uint64_t n,
                                uint64_t now_ns,
                                struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Tells what `tollgate_shm_keyed_check` would, with the figures of now, and charges nothing: the key is not made.
 *
 * Returns and errors as `tollgate_shm_keyed_check`.
 */
TOLLGATE_API
int tollgate_shm_keyed_peek(const struct tollgate_shm_t *shm,
                            const void *key,
                            size_t len,
                            uint64_t n,
                            struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * The same at `now_ns`.
 *
 * Returns and errors as `tollgate_shm_keyed_check_at`.
 */
TOLLGATE_API
int tollgate_shm_keyed_peek_at(const struct tollgate_shm_t *shm,
                               const void *key,
                               size_t len,
                               uint64_t n,
                               uint64_t now_ns,
                               struct tollgate_decision_t *out)
TOLLGATE_NOEXCEPT;

/**
 * Tells how many permits are charged to a rule (counted from 0) of a key at `now_ns`. The key is not made; what it took of a
 * shared limiter is not told apart.
 *
 * Errors, which write nothing: TOLLGATE_E_NULL: `shm`, `key`, `used`.   TOLLGATE_E_ALIGN: `used`.   TOLLGATE_E_INVALID: a key too
 * long; no such rule; a time not below 2^62.   TOLLGATE_E_UNSUPPORTED: a region without keys.
 *
 * Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Allocates, blocks: never.   Since ABI 0.
 */
TOLLGATE_API
int tollgate_shm_keyed_usage_at(const struct tollgate_shm_t *shm,
                                const void *key,
                                size_t len,
                                uint32_t rule,
                                uint64_t now_ns,
                                uint64_t *used)
TOLLGATE_NOEXCEPT;

/**
 * How many keys have a place now, idle ones among them; 0 for NULL, and without keys.
 *
 * Cost: a look at every bucket.   Thread-safe, process-safe, fork-safe, async-signal-safe, lock-free.   Since ABI 0.
 */
TOLLGATE_API
uint64_t tollgate_shm_keyed_len(const struct tollgate_shm_t *shm)
TOLLGATE_NOEXCEPT;

/**
 * The most keys that there can be: at least twice what was asked for; 0 for NULL, and without keys.
 *
 * Safe from anywhere.   Since ABI 0.
 */
TOLLGATE_API uint64_t tollgate_shm_keyed_capacity(const struct tollgate_shm_t *shm) TOLLGATE_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOLLGATE_H */
