/* Every function, with every status that its description names. */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

typedef tollgate_config_t config_t;
typedef tollgate_limiter_t limiter_t;

static config_t of(uint32_t algorithm, uint64_t limit) {
    config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, limit, SECOND);
    return config;
}

/* Somewhere no object of these types may lie. */
static void *askew(void *memory) {
    return (char *)memory + 1;
}

static bool has_name(int status, const char *name) {
    return strcmp(tollgate_status_name(status), name) == 0;
}

static void texts(void) {
    int statuses = 0;
    for (int status = -100; status <= 100; status++) {
        EXPECT(tollgate_strerror(status) && *tollgate_strerror(status));
        bool unknown = has_name(status, "TOLLGATE_UNKNOWN");
        EXPECT(unknown == (strcmp(tollgate_strerror(status), "unknown status") == 0));
        statuses += !unknown;
    }
    EXPECT(statuses == 18);
    EXPECT(has_name(INT32_MIN, "TOLLGATE_UNKNOWN") && has_name(INT32_MAX, "TOLLGATE_UNKNOWN"));
#define NAMED(status) EXPECT(has_name(status, #status))
    NAMED(TOLLGATE_OK);
    NAMED(TOLLGATE_REFUSED);
    NAMED(TOLLGATE_NEVER);
    NAMED(TOLLGATE_E_NULL);
    NAMED(TOLLGATE_E_INVALID);
    NAMED(TOLLGATE_E_SIZE);
    NAMED(TOLLGATE_E_ALIGN);
    NAMED(TOLLGATE_E_NOMEM);
    NAMED(TOLLGATE_E_SYS);
    NAMED(TOLLGATE_E_NOT_READY);
    NAMED(TOLLGATE_E_MAGIC);
    NAMED(TOLLGATE_E_LAYOUT);
    NAMED(TOLLGATE_E_CORRUPT);
    NAMED(TOLLGATE_E_CONFIG);
    NAMED(TOLLGATE_E_CLOCK);
    NAMED(TOLLGATE_E_EXISTS);
    NAMED(TOLLGATE_E_UNTRUSTED);
    NAMED(TOLLGATE_E_UNSUPPORTED);
}

/* What is wrong with a configuration is found by all three that take one. */
#define WRONG(status, config) \
    do { \
        limiter_t *limiter_ = NULL; \
        size_t size_ = 7; \
        GIVES(status, tollgate_create(config, &limiter_)); \
        GIVES(status, tollgate_size(config, &size_)); \
        GIVES(status, tollgate_init_in(memory, bytes, config, &limiter_)); \
        EXPECT(limiter_ == NULL && size_ == 7); \
    } while (0)

static void configurations(void *memory, size_t bytes) {
    WRONG(TOLLGATE_E_NULL, NULL);
    config_t config = of(TOLLGATE_LOG, 1);
    WRONG(TOLLGATE_E_ALIGN, (config_t *)askew(&config));
    for (uint32_t size = 0; size < 300; size++) {
        config.struct_size = size;
        if (size != TOLLGATE_CONFIG_SIZE) WRONG(TOLLGATE_E_SIZE, &config);
    }

#define INVALID(algorithm, change) \
    do { \
        config_t c = of(algorithm, 100); \
        change; \
        WRONG(TOLLGATE_E_INVALID, &c); \
    } while (0)
    INVALID(0, (void)0);
    INVALID(10, (void)0);
    INVALID(UINT32_MAX, (void)0);
    INVALID(TOLLGATE_LOG, c.clock = 0);
    INVALID(TOLLGATE_LOG, c.clock = 6);
    INVALID(TOLLGATE_LOG, c.rule_count = 0);
    INVALID(TOLLGATE_LOG, c.rule_count = 9);
    INVALID(TOLLGATE_LOG, c.rule_count = 2); /* a window of 0 */
    INVALID(TOLLGATE_LOG, c.rules[1].limit = 1);
    INVALID(TOLLGATE_LOG, c.rules[7].window_ns = 1);
    INVALID(TOLLGATE_LOG, c.rules[0].window_ns = 0);
    INVALID(TOLLGATE_LOG, c.rules[0].window_ns = 1ull << 62);
    INVALID(TOLLGATE_LOG, c.rules[0].limit = (1 << 30) + 1);
    INVALID(TOLLGATE_LOG, c.rules[0].limit = UINT64_MAX);
    INVALID(TOLLGATE_LOG, c.buckets = 10);
    INVALID(TOLLGATE_LOG, c.burst = 1);
    INVALID(TOLLGATE_LOG, c.flags = TOLLGATE_TEXTBOOK_COVERAGE);
    INVALID(TOLLGATE_LOG, c.flags = TOLLGATE_BERNOULLI);
    for (int bit = 4; bit < 32; bit++) INVALID(TOLLGATE_LOG, c.flags = 1u << bit);
    for (int word = 0; word < 4; word++) INVALID(TOLLGATE_LOG, c.reserved[word] = 1);
    for (int word = 1; word < 4; word++) INVALID(TOLLGATE_WINDOW, c.reserved[word] = 1);
    INVALID(TOLLGATE_WINDOW, c.reserved[0] = SECOND);
    INVALID(TOLLGATE_WINDOW, c.buckets = 3); /* not a divisor */
    INVALID(TOLLGATE_WINDOW, c.buckets = 1000000);
    INVALID(TOLLGATE_WINDOW, c.burst = 1);
    INVALID(TOLLGATE_WINDOW, c.rules[0].limit = UINT64_MAX);
    const uint32_t single[] = {TOLLGATE_FIXED, TOLLGATE_TWO_WINDOW, TOLLGATE_GCRA};
    for (int i = 0; i < 3; i++) {
        INVALID(single[i], (c.rule_count = 2, c.rules[1] = c.rules[0]));
        INVALID(single[i], c.buckets = 1);
        INVALID(single[i], c.rules[0].limit = UINT64_MAX);
    }
    INVALID(TOLLGATE_FIXED, c.reserved[0] = SECOND);
    INVALID(TOLLGATE_GCRA, c.burst = UINT64_MAX);
    INVALID(TOLLGATE_GCRA, c.reserved[0] = 1);

    /* The largest limits that the header names, and one more. */
    const struct { uint32_t algorithm; uint64_t limit, seconds; } largest[] = {
        {TOLLGATE_LOG, 1 << 30, 1},        {TOLLGATE_WINDOW, 134217727, 1},   {TOLLGATE_FIXED, 2147483647, 1},
        {TOLLGATE_TWO_WINDOW, 32767, 1},   {TOLLGATE_TWO_WINDOW, 262143, 60}, {TOLLGATE_GCRA, 1000000000, 1},
    };
    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) {
        size_t bytes_;
        config = of(largest[i].algorithm, largest[i].limit);
        config.rules[0].window_ns *= largest[i].seconds;
        GIVES(TOLLGATE_OK, tollgate_size(&config, &bytes_));
        config.rules[0].limit += 1;
        WRONG(TOLLGATE_E_INVALID, &config);
    }

    /* Shards: of one rule, of two algorithms, and no cost that no shard could bear; or none at all. */
    if (spreads()) {
        INVALID(TOLLGATE_LOG, (c.shards = 2, c.rule_count = 2, c.rules[1] = c.rules[0]));
        INVALID(TOLLGATE_WINDOW, c.shards = 65537);
        INVALID(TOLLGATE_WINDOW, (c.shards = 3, c.max_cost = 34));
    } else {
        for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_WINDOW; algorithm++) {
            config = of(algorithm, 100);
            config.shards = 2;
            WRONG(TOLLGATE_E_UNSUPPORTED, &config);
        }
    }
    const uint32_t whole[] = {TOLLGATE_FIXED, TOLLGATE_TWO_WINDOW, TOLLGATE_GCRA, TOLLGATE_PACING};
    for (int i = 0; i < 4; i++) {
        config = of(whole[i], 100);
        config.shards = 2;
        WRONG(TOLLGATE_E_UNSUPPORTED, &config);
    }
    config = of(TOLLGATE_LOG, 1);
    config.shards = 1;
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));

    GIVES(TOLLGATE_E_NULL, tollgate_create(&config, NULL));
    GIVES(TOLLGATE_E_NULL, tollgate_size(&config, NULL));
    GIVES(TOLLGATE_E_NULL, tollgate_init_in(memory, bytes, &config, NULL));
    limiter_t *two[2] = {NULL, NULL};
    GIVES(TOLLGATE_E_ALIGN, tollgate_create(&config, (limiter_t **)askew(two)));
    GIVES(TOLLGATE_E_ALIGN, tollgate_size(&config, (size_t *)askew(two)));
    GIVES(TOLLGATE_E_ALIGN, tollgate_init_in(memory, bytes, &config, (limiter_t **)askew(two)));
    EXPECT(two[0] == NULL && two[1] == NULL);
}

/* The clocks of one process, and what lives by tollgate_create alone. */
static void one_process(void *memory, size_t bytes) {
    size_t size;
    limiter_t *limiter = NULL;
    for (uint32_t clock = TOLLGATE_CLOCK_PRECISE; clock <= TOLLGATE_CLOCK_CALLER; clock++) {
        config_t config = of(TOLLGATE_WINDOW, 1);
        config.clock = clock;
        int created = clock == TOLLGATE_CLOCK_CALLER || !bare() ? TOLLGATE_OK : TOLLGATE_E_UNSUPPORTED;
        int placed = clock <= TOLLGATE_CLOCK_COARSE ? TOLLGATE_E_CLOCK : created;
        GIVES(placed, tollgate_size(&config, &size));
        if (placed != TOLLGATE_OK) GIVES(placed, tollgate_init_in(memory, bytes, &config, &limiter));
        GIVES(created, tollgate_create(&config, &limiter));
        EXPECT((tollgate_now_ns(clock) == UINT64_MAX) == (clock == TOLLGATE_CLOCK_CALLER || bare()));
        if (created == TOLLGATE_OK) {
            EXPECT(tollgate_try_acquire(limiter) == (clock != TOLLGATE_CLOCK_CALLER));
            tollgate_destroy(limiter);
        }
    }
    EXPECT(tollgate_now_ns(0) == UINT64_MAX && tollgate_now_ns(99) == UINT64_MAX);

    for (uint32_t algorithm = TOLLGATE_PACING; algorithm <= TOLLGATE_WHEEL; algorithm++) {
        config_t config = of(algorithm, 100);
        bool here = algorithm == TOLLGATE_PACING || !bare();
        GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_size(&config, &size));
        GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_init_in(memory, bytes, &config, &limiter));
        GIVES(here ? TOLLGATE_OK : TOLLGATE_E_UNSUPPORTED, tollgate_create(&config, &limiter));
        if (!here) continue;
        EXPECT(tollgate_try_acquire_at(limiter, 1, SECOND));
        tollgate_destroy(limiter);
        /* What a builder refuses while it builds. */
        config.rules[0].window_ns = 0;
        GIVES(TOLLGATE_E_INVALID, tollgate_create(&config, &limiter));
        config.rules[0].window_ns = SECOND;
        config.reserved[0] = 1;
        GIVES(TOLLGATE_E_INVALID, tollgate_create(&config, &limiter));
        config.reserved[0] = 0;
        config.buckets = 7; /* not a divisor; of SAMPLED, every 7th */
        bool ticks = algorithm == TOLLGATE_COMPACT || algorithm == TOLLGATE_WHEEL || algorithm == TOLLGATE_PACING;
        GIVES(ticks ? TOLLGATE_E_INVALID : TOLLGATE_OK, tollgate_create(&config, &limiter));
        if (!ticks) tollgate_destroy(limiter);
    }
}

static void no_memory(void) {
    limiter_t *limiter = NULL;
    if (!bare()) {
        config_t config = of(TOLLGATE_COMPACT, UINT64_MAX / 8);
        GIVES(TOLLGATE_E_NOMEM, tollgate_create(&config, &limiter));
    }
    config_t config = of(TOLLGATE_LOG, 1 << 30);
    struct rlimit old, little = {1 << 30, 1 << 30};
    EXPECT(getrlimit(RLIMIT_AS, &old) == 0);
    little.rlim_max = old.rlim_max;
    EXPECT(setrlimit(RLIMIT_AS, &little) == 0);
    GIVES(TOLLGATE_E_NOMEM, tollgate_create(&config, &limiter));
    EXPECT(setrlimit(RLIMIT_AS, &old) == 0 && limiter == NULL);
}

/* Whether a child that runs this ends well. */
#define IN_CHILD(...) \
    do { \
        fflush(NULL); \
        pid_t child_ = fork(); \
        EXPECT(child_ >= 0); \
        if (child_ == 0) { \
            __VA_ARGS__; \
            _exit(0); \
        } \
        int status_ = 0; \
        EXPECT(waitpid(child_, &status_, 0) == child_); \
        EXPECT(WIFEXITED(status_) && WEXITSTATUS(status_) == 0); \
    } while (0)

static void coarse(void) {
    tollgate_coarse_t *one = NULL, *two = NULL, *pair[2] = {NULL, NULL};
    GIVES(TOLLGATE_E_NULL, tollgate_coarse_start(SECOND, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_coarse_start(SECOND, (tollgate_coarse_t **)askew(pair)));
    tollgate_coarse_stop(NULL);
    if (bare()) {
        GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_coarse_start(SECOND, &one));
        return;
    }
    GIVES(TOLLGATE_E_INVALID, tollgate_coarse_start(0, &one));
    GIVES(TOLLGATE_E_INVALID, tollgate_coarse_start(999, &one));
    GIVES(TOLLGATE_E_INVALID, tollgate_coarse_start(SECOND + 1, &one));
    /* No thread where there is no room for its stack. */
    IN_CHILD({
        struct rlimit none = {0, 0};
        EXPECT(setrlimit(RLIMIT_AS, &none) == 0);
        GIVES(TOLLGATE_E_SYS, tollgate_coarse_start(1000000, &one));
    });
    given(TOLLGATE_E_SYS);
    GIVES(TOLLGATE_OK, tollgate_coarse_start(1000000, &one));
    GIVES(TOLLGATE_E_EXISTS, tollgate_coarse_start(1000, &two));
    EXPECT(two == NULL);
    IN_CHILD(GIVES(TOLLGATE_E_CLOCK, tollgate_coarse_start(1000000, &two)); tollgate_coarse_stop(one));
    GIVES(TOLLGATE_OK, tollgate_coarse_start(2000000, &two));
    tollgate_coarse_stop(one);
    uint64_t before = tollgate_now_ns(TOLLGATE_CLOCK_COARSE);
    EXPECT(before > 0 && before <= tollgate_now_ns(TOLLGATE_CLOCK_COARSE));
    tollgate_coarse_stop(two);
    GIVES(TOLLGATE_OK, tollgate_coarse_start(1000, &one));
    tollgate_coarse_stop(one);
}

static void placed(void *memory, size_t bytes) {
    config_t config = of(TOLLGATE_LOG, 3);
    size_t size;
    limiter_t *limiter = NULL, *found = NULL;
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
    EXPECT(size <= bytes && size % tollgate_align() == 0);
    uint64_t *words = memory;

    GIVES(TOLLGATE_E_NULL, tollgate_init_in(NULL, size, &config, &limiter));
    GIVES(TOLLGATE_E_NULL, tollgate_attach_in(NULL, size, &limiter));
    GIVES(TOLLGATE_E_NULL, tollgate_attach_in(memory, size, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_attach_in(memory, size, (limiter_t **)askew(words + 90)));
    for (size_t off = 1; off < tollgate_align(); off++) {
        GIVES(TOLLGATE_E_ALIGN, tollgate_init_in((char *)memory + off, size, &config, &limiter));
        GIVES(TOLLGATE_E_ALIGN, tollgate_attach_in((char *)memory + off, size, &limiter));
        GIVES(TOLLGATE_E_ALIGN, tollgate_reset((limiter_t *)(void *)((char *)memory + off)));
    }
    GIVES(TOLLGATE_E_NOT_READY, tollgate_attach_in(memory, size, &limiter));
    words[0] = 1;
    GIVES(TOLLGATE_E_MAGIC, tollgate_attach_in(memory, size, &limiter));
    GIVES(TOLLGATE_E_MAGIC, tollgate_init_in(memory, size, &config, &limiter));
    words[0] = 0;
    words[31] = 1;
    GIVES(TOLLGATE_E_CORRUPT, tollgate_init_in(memory, size, &config, &limiter));
    words[31] = 0;
    words[4] = 1; /* somebody else's word */
    GIVES(TOLLGATE_E_CONFIG, tollgate_init_in(memory, size, &config, &limiter));
    memset(memory, 0, bytes);
    EXPECT(limiter == NULL);

    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &limiter));
    EXPECT((void *)limiter == memory);
    EXPECT(tollgate_try_acquire_at(limiter, 2, SECOND));
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, bytes, &config, &found));
    EXPECT(found == limiter && !tollgate_try_acquire_at(found, 2, SECOND));
    found = NULL;
    GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &found));
    EXPECT(found == limiter && tollgate_try_acquire_at(found, 1, SECOND));
    GIVES(TOLLGATE_E_SIZE, tollgate_init_in(memory, size - 1, &config, &found));
    for (size_t len = 0; len < size; len++) GIVES(TOLLGATE_E_SIZE, tollgate_attach_in(memory, len, &found));

    config_t other = of(TOLLGATE_LOG, 2);
    GIVES(TOLLGATE_E_CONFIG, tollgate_init_in(memory, size, &other, &found));
    words[1] += 1;
    GIVES(TOLLGATE_E_LAYOUT, tollgate_attach_in(memory, size, &found));
    GIVES(TOLLGATE_E_LAYOUT, tollgate_init_in(memory, size, &config, &found));
    words[1] -= 1;
    words[2] += 1;
    GIVES(TOLLGATE_E_CORRUPT, tollgate_attach_in(memory, size, &found));
    GIVES(TOLLGATE_E_CONFIG, tollgate_init_in(memory, size, &config, &found));
    words[2] -= 1;
    GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &found));
    tollgate_destroy(limiter); /* does nothing */
    GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &found));
    memset(memory, 0, bytes);

    /* A limiter of this process is nothing to attach to. */
    limiter_t *created;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &created));
    GIVES(TOLLGATE_E_CORRUPT, tollgate_attach_in(created, size, &found));
    GIVES(TOLLGATE_E_CORRUPT, tollgate_init_in(created, size, &config, &found));
    tollgate_destroy(created);
}

static void hot(void) {
    config_t config = of(TOLLGATE_LOG, 5);
    config.max_cost = 4;
    limiter_t *limiter;
    tollgate_decision_t decision, blank;
    memset(&blank, 0x5a, sizeof blank);
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    const uint64_t late = 1ull << 62;

    EXPECT(!tollgate_try_acquire(NULL) && !tollgate_try_acquire_n(NULL, 0) && !tollgate_try_acquire_at(NULL, 0, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_check(NULL, 1, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_check_at(NULL, 1, 1, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_peek(NULL, 1, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_peek_at(NULL, 1, 1, &decision));

    /* No clock: not for 0 permits either, and nothing is written. */
    decision = blank;
    EXPECT(!tollgate_try_acquire(limiter) && !tollgate_try_acquire_n(limiter, 1) && !tollgate_try_acquire_n(limiter, 0));
    GIVES(TOLLGATE_E_CLOCK, tollgate_check(limiter, 0, &decision));
    GIVES(TOLLGATE_E_CLOCK, tollgate_peek(limiter, 0, &decision));
    GIVES(TOLLGATE_E_INVALID, tollgate_check_at(limiter, 1, late, &decision));
    GIVES(TOLLGATE_E_INVALID, tollgate_check_at(limiter, 0, UINT64_MAX, &decision));
    GIVES(TOLLGATE_E_INVALID, tollgate_peek_at(limiter, 1, late, &decision));
    EXPECT(memcmp(&decision, &blank, sizeof blank) == 0);
    EXPECT(!tollgate_try_acquire_at(limiter, 1, late) && !tollgate_try_acquire_at(limiter, 0, late));

    GIVES(TOLLGATE_OK, tollgate_peek_at(limiter, 3, 10, &decision));
    EXPECT(decision.allowed == 1 && decision.remaining == 5 && decision.reset_after_ns == 0);
    GIVES(TOLLGATE_OK, tollgate_check_at(limiter, 3, 10, &decision));
    EXPECT(decision.allowed == 1 && decision.reason == TOLLGATE_REASON_NONE && decision.rule == 0);
    EXPECT(decision.limit == 5 && decision.remaining == 2 && decision.retry_after_ns == 0);
    EXPECT(decision.next_after_ns == SECOND && decision.reset_after_ns == SECOND && decision.now_ns == 10);
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 3, 15, &decision));
    EXPECT(decision.allowed == 0 && decision.reason == TOLLGATE_REASON_LIMIT && decision.remaining == 2);
    EXPECT(decision.retry_after_ns == SECOND - 5 && decision.reserved == 0);
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 3, 15, NULL));
    GIVES(TOLLGATE_REFUSED, tollgate_peek_at(limiter, 3, 15, NULL));
    GIVES(TOLLGATE_NEVER, tollgate_check_at(limiter, 6, 15, &decision));
    EXPECT(decision.reason == TOLLGATE_REASON_ABOVE_LIMIT && decision.retry_after_ns == UINT64_MAX);
    GIVES(TOLLGATE_NEVER, tollgate_peek_at(limiter, 5, 15, &decision));
    EXPECT(decision.reason == TOLLGATE_REASON_ABOVE_MAX_COST && decision.retry_after_ns == UINT64_MAX);
    EXPECT(!tollgate_try_acquire_at(limiter, 6, 15) && tollgate_try_acquire_at(limiter, 0, 15));
    GIVES(TOLLGATE_OK, tollgate_check_at(limiter, 0, 15, NULL));
    EXPECT(tollgate_try_acquire_at(limiter, 2, 15) && !tollgate_try_acquire_at(limiter, 1, 15));

    uint64_t wait = 7;
    GIVES(TOLLGATE_E_NULL, tollgate_reserve(NULL, 1, &wait));
    GIVES(TOLLGATE_E_NULL, tollgate_reserve(limiter, 1, NULL));
    GIVES(TOLLGATE_E_NULL, tollgate_reserve_at(NULL, 1, 1, &wait));
    GIVES(TOLLGATE_E_NULL, tollgate_reserve_at(limiter, 1, 1, NULL));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_reserve(limiter, 1, &wait));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_reserve_at(limiter, 1, 1, &wait));
    tollgate_destroy(limiter);

    config = of(TOLLGATE_PACING, 2);
    config.burst = 2;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    GIVES(TOLLGATE_E_CLOCK, tollgate_reserve(limiter, 1, &wait));
    GIVES(TOLLGATE_E_INVALID, tollgate_reserve_at(limiter, 1, late, &wait));
    EXPECT(wait == 7);
    for (uint64_t place = 0; place < 3; place++) {
        GIVES(TOLLGATE_OK, tollgate_reserve_at(limiter, 1, SECOND, &wait));
        EXPECT(wait == place * SECOND / 2);
    }
    GIVES(TOLLGATE_REFUSED, tollgate_reserve_at(limiter, 1, SECOND, &wait));
    EXPECT(wait == SECOND / 2);
    GIVES(TOLLGATE_NEVER, tollgate_reserve_at(limiter, 4, SECOND, &wait));
    EXPECT(wait == UINT64_MAX);
    EXPECT(!tollgate_try_acquire_at(limiter, 1, SECOND));
    tollgate_destroy(limiter);

    if (!bare()) {
        config = of(TOLLGATE_PACING, 2);
        config.clock = TOLLGATE_CLOCK_PRECISE;
        GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
        GIVES(TOLLGATE_OK, tollgate_reserve(limiter, 1, &wait));
        EXPECT(wait == 0);
        tollgate_destroy(limiter);

        config = of(TOLLGATE_LOG, 3);
        config.clock = TOLLGATE_CLOCK_MONOTONIC;
        config.rules[0].window_ns = 3600 * SECOND;
        GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
        EXPECT(tollgate_try_acquire(limiter) && tollgate_try_acquire_n(limiter, 0));
        GIVES(TOLLGATE_OK, tollgate_peek(limiter, 2, &decision));
        GIVES(TOLLGATE_OK, tollgate_check(limiter, 2, &decision));
        EXPECT(decision.now_ns <= tollgate_now_ns(TOLLGATE_CLOCK_MONOTONIC));
        GIVES(TOLLGATE_REFUSED, tollgate_check(limiter, 2, NULL));
        GIVES(TOLLGATE_NEVER, tollgate_peek(limiter, 4, NULL));
        EXPECT(!tollgate_try_acquire_n(limiter, 1));
        tollgate_destroy(limiter);
    }
}

/* Those that look for the limiter: nothing, a header that is not one, or one that is not ready. */
#define LOOKED_FOR(call) \
    do { \
        limiter_t *it = NULL; \
        GIVES(TOLLGATE_E_NULL, call); \
        it = (limiter_t *)memory; \
        GIVES(TOLLGATE_E_NOT_READY, call); \
        *(uint64_t *)memory = 0x123456789; \
        GIVES(TOLLGATE_E_MAGIC, call); \
        *(uint64_t *)memory = 0; \
        it = (limiter_t *)(void *)((char *)memory + 8); \
        GIVES(TOLLGATE_E_ALIGN, call); \
    } while (0)

static void control(void *memory) {
    config_t config = of(TOLLGATE_LOG, 5), got;
    tollgate_stats_t stats = {TOLLGATE_STATS_SIZE, 0, 0, 0, 0, 0, {0}, 0, {0, 0}};
    uint64_t used = 99, pair[2];
    got.struct_size = TOLLGATE_CONFIG_SIZE;
    LOOKED_FOR(tollgate_reset(it));
    LOOKED_FOR(tollgate_usage_at(it, 0, 1, &used));
    LOOKED_FOR(tollgate_get_config(it, &got));
    LOOKED_FOR(tollgate_stats(it, &stats));

    limiter_t *limiter;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    EXPECT(tollgate_try_acquire_at(limiter, 4, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_usage_at(limiter, 0, 1, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_usage_at(limiter, 0, 1, (uint64_t *)askew(pair)));
    GIVES(TOLLGATE_E_INVALID, tollgate_usage_at(limiter, 1, 1, &used));
    GIVES(TOLLGATE_E_INVALID, tollgate_usage_at(limiter, UINT32_MAX, 1, &used));
    GIVES(TOLLGATE_E_INVALID, tollgate_usage_at(limiter, 0, 1ull << 62, &used));
    EXPECT(used == 99);
    GIVES(TOLLGATE_OK, tollgate_usage_at(limiter, 0, 1, &used));
    EXPECT(used == 4);
    GIVES(TOLLGATE_OK, tollgate_reset(limiter));
    GIVES(TOLLGATE_OK, tollgate_usage_at(limiter, 0, 1, &used));
    EXPECT(used == 0);

    GIVES(TOLLGATE_E_NULL, tollgate_get_config(limiter, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_get_config(limiter, (config_t *)askew(&got)));
    got.struct_size = 0;
    GIVES(TOLLGATE_E_SIZE, tollgate_get_config(limiter, &got));
    got.struct_size = TOLLGATE_CONFIG_SIZE;
    GIVES(TOLLGATE_OK, tollgate_get_config(limiter, &got));
    EXPECT(memcmp(&got, &config, sizeof got) == 0);

    GIVES(TOLLGATE_E_NULL, tollgate_stats(limiter, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_stats(limiter, (tollgate_stats_t *)askew(&stats)));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_stats(limiter, &stats));
    stats.struct_size = TOLLGATE_STATS_SIZE - 1;
    GIVES(TOLLGATE_E_SIZE, tollgate_stats(limiter, &stats));
    tollgate_destroy(limiter);
    tollgate_destroy(NULL);
}

/* Rules that change: what can not is told so, and nothing has changed. */
static void live(void *memory, size_t bytes) {
    tollgate_rule_t rules[TOLLGATE_MAX_RULES + 1] = {{3, SECOND}, {0, 0}, {0, 0}}, got[TOLLGATE_MAX_RULES], two[2];
    uint32_t count = 99, numbers[2];
    size_t size;
    limiter_t *limiter = NULL;
    LOOKED_FOR(tollgate_set_rules(it, rules, 1));
    LOOKED_FOR(tollgate_set_rate_at(it, rules, 1, 1));
    LOOKED_FOR(tollgate_get_rules(it, got, &count));

    config_t config = of(TOLLGATE_LOG, 5);
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_set_rules(limiter, rules, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_set_rules(limiter, NULL, 0));
    GIVES(TOLLGATE_E_ALIGN, tollgate_set_rules(limiter, (tollgate_rule_t *)askew(rules), 1));
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, TOLLGATE_MAX_RULES + 1));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_set_rate_at(limiter, rules, 1, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_set_rate_at(limiter, NULL, 1, 1));
    GIVES(TOLLGATE_E_ALIGN, tollgate_set_rate_at(limiter, (tollgate_rule_t *)askew(rules), 1, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_get_rules(limiter, NULL, &count));
    GIVES(TOLLGATE_E_NULL, tollgate_get_rules(limiter, got, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_get_rules(limiter, (tollgate_rule_t *)askew(two), &count));
    GIVES(TOLLGATE_E_ALIGN, tollgate_get_rules(limiter, got, (uint32_t *)askew(numbers)));
    EXPECT(count == 99);
    GIVES(TOLLGATE_OK, tollgate_get_rules(limiter, got, &count));
    EXPECT(count == 1 && got[0].limit == 5 && got[0].window_ns == SECOND);
    tollgate_destroy(limiter);
    limiter = NULL;

    config.flags = TOLLGATE_LIVE;
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_size(&config, &size));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_init_in(memory, bytes, &config, &limiter));
    for (uint32_t algorithm = TOLLGATE_PACING; algorithm <= TOLLGATE_WHEEL; algorithm++) {
        config.algorithm = algorithm;
        config.reserved[1] = algorithm == TOLLGATE_COMPACT ? 4 : 0; /* less than the limit */
        bool may = algorithm == TOLLGATE_COMPACT && lives() && !bare();
        GIVES(may ? TOLLGATE_E_INVALID : TOLLGATE_E_UNSUPPORTED, tollgate_create(&config, &limiter));
    }
    for (uint32_t algorithm = TOLLGATE_FIXED; algorithm <= TOLLGATE_TWO_WINDOW; algorithm++) {
        config = of(algorithm, 5);
        config.flags = TOLLGATE_LIVE;
        config.shards = 2;
        GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_create(&config, &limiter));
        config.shards = 0;
        config.reserved[1] = 6;
        GIVES(TOLLGATE_E_INVALID, tollgate_create(&config, &limiter));
    }
    config = of(TOLLGATE_LOG, 5);
    config.flags = TOLLGATE_LIVE;
    config.reserved[1] = 4; /* less than the limit */
    GIVES(lives() ? TOLLGATE_E_INVALID : TOLLGATE_E_UNSUPPORTED, tollgate_create(&config, &limiter));
    config.reserved[1] = 1 << 31;
    GIVES(lives() ? TOLLGATE_E_INVALID : TOLLGATE_E_UNSUPPORTED, tollgate_create(&config, &limiter));
    config.reserved[1] = 0;
    config.shards = 2; /* parts of 3 and 2, whose rings differ */
    GIVES(lives() && spreads() ? TOLLGATE_E_INVALID : TOLLGATE_E_UNSUPPORTED, tollgate_create(&config, &limiter));
    config.shards = 0;
    EXPECT(limiter == NULL);
    if (!lives()) {
        GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_create(&config, &limiter));
        return;
    }
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 0));
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 2)); /* a window of 0 */
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, TOLLGATE_MAX_RULES + 1));
    rules[0].limit = 6; /* more than there is memory for */
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 1));
    rules[0].limit = 4;
    rules[0].window_ns = 1ull << 62;
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 1));
    GIVES(TOLLGATE_OK, tollgate_get_rules(limiter, got, &count));
    EXPECT(count == 1 && got[0].limit == 5);
    rules[0].window_ns = 2 * SECOND;
    GIVES(TOLLGATE_OK, tollgate_set_rules(limiter, rules, 1));
    GIVES(TOLLGATE_OK, tollgate_get_rules(limiter, got, &count));
    EXPECT(count == 1 && got[0].limit == 4 && got[0].window_ns == 2 * SECOND);
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_set_rate_at(limiter, rules, 1, 1));
    tollgate_destroy(limiter);

    config = of(TOLLGATE_GCRA, 5);
    config.flags = TOLLGATE_LIVE;
    config.reserved[1] = 4;
    GIVES(TOLLGATE_E_INVALID, tollgate_create(&config, &limiter));
    config.reserved[1] = 6;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    rules[0].limit = 6;
    rules[0].window_ns = SECOND;
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_set_rules(limiter, rules, 1));
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rate_at(limiter, rules, 0, 1));
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rate_at(limiter, rules, 1, 1ull << 62));
    rules[0].limit = 7;
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rate_at(limiter, rules, 1, 1));
    rules[0].limit = 6;
    GIVES(TOLLGATE_OK, tollgate_set_rate_at(limiter, rules, 9, 1));
    GIVES(TOLLGATE_OK, tollgate_get_rules(limiter, got, &count));
    EXPECT(count == 1 && got[0].limit == 6);
    tollgate_destroy(limiter);
}

int main(void) {
    enum { BYTES = 4096 };
    void *memory = zeros(BYTES);
    texts();
    configurations(memory, BYTES);
    one_process(memory, BYTES);
    no_memory();
    placed(memory, BYTES);
    hot();
    control(memory);
    live(memory, BYTES);
    coarse();
    free(memory);

    /* Every status was given. */
    for (int status = -20; status <= 2; status++) {
        bool unknown = has_name(status, "TOLLGATE_UNKNOWN");
        bool of_the_clocks = status == TOLLGATE_E_SYS || status == TOLLGATE_E_EXISTS;
        if (status == TOLLGATE_E_UNTRUSTED) continue; /* of files: shm.c */
        if (!unknown && !(bare() && of_the_clocks)) EXPECT(seen_ & 1ul << (status + 20));
    }
    return 0;
}
