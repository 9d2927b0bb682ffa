/* In a signal handler, in a thread that has called nothing before, the calls that the header allows there ask for no memory:
 * whatever the limiter counts, over how many shards it is spread, and whether its rules may change. In a library that was
 * loaded by dlopen (its path is the argument) a thread does as the header says before. */
#include <dlfcn.h>
#include <string.h>

#include "allocations.h"

enum { BYTES = 1 << 14 };

static tollgate_limiter_t *limiter;
static void *memory;
static tollgate_config_t config;

/* Everything that may be called on a limiter. */
static void all_calls(void) {
    tollgate_decision_t decision;
    tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    tollgate_config_t its;
    tollgate_stats_t stats;
    uint32_t count;
    uint64_t used, wait;
    for (uint64_t now = 1; now < 9; now++) {
        tollgate_try_acquire(limiter);
        tollgate_try_acquire_n(limiter, 2);
        tollgate_try_acquire_at(limiter, 1, now);
        tollgate_check(limiter, 1, &decision);
        tollgate_check_at(limiter, 1, now, &decision);
        tollgate_peek(limiter, 1, &decision);
        tollgate_peek_at(limiter, 1, now, &decision);
        tollgate_reserve(limiter, 1, &wait);
        tollgate_reserve_at(limiter, 1, now, &wait);
    }
    EXPECT(tollgate_usage_at(limiter, 0, 9, &used) == TOLLGATE_OK && tollgate_get_rules(limiter, rules, &count) == TOLLGATE_OK);
    its.struct_size = TOLLGATE_CONFIG_SIZE;
    stats.struct_size = TOLLGATE_STATS_SIZE;
    EXPECT(tollgate_get_config(limiter, &its) == TOLLGATE_OK);
    EXPECT((tollgate_stats(limiter, &stats) == TOLLGATE_OK) == ((config.flags & TOLLGATE_STATS) != 0));
    tollgate_now_ns(TOLLGATE_CLOCK_MONOTONIC);
}

/* A limiter is made, found, and called. */
static void in_memory_of_ours(void) {
    size_t size;
    EXPECT(tollgate_size(&config, &size) == TOLLGATE_OK && size <= BYTES);
    EXPECT(tollgate_init_in(memory, BYTES, &config, &limiter) == TOLLGATE_OK);
    EXPECT(tollgate_attach_in(memory, BYTES, &limiter) == TOLLGATE_OK);
    all_calls();
}

static void of(uint32_t algorithm, uint32_t flags, uint32_t shards) {
    tollgate_config_t one = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, 4, SECOND);
    config = one;
    config.flags = flags;
    config.shards = shards;
    if (!bare()) config.clock = TOLLGATE_CLOCK_MONOTONIC;
    if (flags & TOLLGATE_LIVE && algorithm == TOLLGATE_LOG) config.reserved[1] = 4;
    EXPECT(tollgate_create(&config, &limiter) == TOLLGATE_OK);
    in_a_handler(NULL, all_calls);
    tollgate_destroy(limiter);
    if (flags & TOLLGATE_LIVE || algorithm == TOLLGATE_PACING) return;
    memset(memory, 0, BYTES);
    in_a_handler(NULL, in_memory_of_ours);
}

static void linked(void) {
    memory = zeros(BYTES);
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_PACING; algorithm++) {
        for (uint32_t flags = 0; flags <= TOLLGATE_STATS; flags += TOLLGATE_STATS) {
            of(algorithm, flags, 0);
            if (algorithm <= TOLLGATE_WINDOW && spreads()) of(algorithm, flags, 2);
            if (algorithm == TOLLGATE_PACING || !lives()) continue;
            of(algorithm, flags | TOLLGATE_LIVE, 0);
            if (algorithm <= TOLLGATE_WINDOW && spreads()) of(algorithm, flags | TOLLGATE_LIVE, 2);
        }
    }
    free(memory);
}

/* Of a library that was loaded: a plain limiter, one that counts, and one with shards. */
static tollgate_limiter_t *loaded[3];
static bool (*try_acquire_at_)(tollgate_limiter_t *, uint64_t, uint64_t);

static void loaded_calls(void) {
    for (int i = 0; i < 3; i++) {
        for (uint64_t now = 1; now < 9; now++) {
            if (loaded[i]) try_acquire_at_(loaded[i], 1, now);
        }
    }
}

/* As the header says: a call on a limiter that counts, outside of any handler. */
static void call_once(void) {
    try_acquire_at_(loaded[1], 1, 1);
}

static void by_dlopen(const char *path) {
    int (*create_)(const tollgate_config_t *, tollgate_limiter_t **);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT(library);
    *(void **)&create_ = dlsym(library, "tollgate_create");
    *(void **)&try_acquire_at_ = dlsym(library, "tollgate_try_acquire_at");
    EXPECT(create_ && try_acquire_at_);
    for (int i = 0; i < 3; i++) {
        tollgate_config_t one = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_CALLER, 4, SECOND);
        one.flags = i == 1 ? TOLLGATE_STATS : 0;
        one.shards = i == 2 && spreads() ? 2 : 0;
        EXPECT(create_(&one, &loaded[i]) == TOLLGATE_OK);
    }
    in_a_handler(call_once, loaded_calls);
}

int main(int argc, char **argv) {
    if (argc == 2) by_dlopen(argv[1]);
    else linked();
    return 0;
}
