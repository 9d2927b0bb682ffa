/* Limiters by key: every status of every function, keys of every length, classes, and memory that stays as it is. */
#include <string.h>

#include "allocations.h"

typedef tollgate_config_t config_t;
typedef tollgate_keyed_t keyed_t;

enum { BUSY = 5 };

static config_t of(uint32_t algorithm, uint64_t limit) {
    config_t config = TOLLGATE_CONFIG_INIT(algorithm, 0, limit, SECOND);
    return config;
}

static tollgate_keyed_config_t with(const tollgate_class_t *classes, uint32_t count) {
    tollgate_keyed_config_t config;
    memset(&config, 0, sizeof config);
    config.struct_size = TOLLGATE_KEYED_CONFIG_SIZE;
    config.clock = TOLLGATE_CLOCK_CALLER;
    config.class_count = count;
    config.classes = classes;
    config.secret[0] = 7;
    return config;
}

static keyed_t *make(const config_t *limit, uint64_t keys, uint32_t flags) {
    tollgate_class_t class_ = {limit, keys};
    tollgate_keyed_config_t config = with(&class_, 1);
    keyed_t *keyed = NULL;
    config.flags = flags;
    GIVES(TOLLGATE_OK, tollgate_keyed_create(&config, &keyed));
    return keyed;
}

static tollgate_keyed_stats_t stats_of(const keyed_t *keyed) {
    tollgate_keyed_stats_t stats;
    stats.struct_size = TOLLGATE_KEYED_STATS_SIZE;
    GIVES(TOLLGATE_OK, tollgate_keyed_stats(keyed, &stats));
    return stats;
}

static bool take(keyed_t *keyed, const char *key, uint64_t now) {
    return tollgate_keyed_try_acquire_at(keyed, 0, key, strlen(key), 1, now);
}

static void configurations(void) {
    config_t log = of(TOLLGATE_LOG, 5);
    tollgate_class_t classes[2] = {{&log, 10}, {NULL, 0}}, askew_classes[3];
    tollgate_keyed_config_t config = with(classes, 2), askew_config[2];
    keyed_t *keyed = NULL, *two[2] = {NULL, NULL};
#define WRONG(status, change) \
    do { \
        tollgate_keyed_config_t c = with(classes, 2); \
        log = of(TOLLGATE_LOG, 5); \
        classes[0].limit = &log; \
        classes[0].keys = 10; \
        change; \
        GIVES(status, tollgate_keyed_create(&c, &keyed)); \
        EXPECT(keyed == NULL); \
    } while (0)
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_create(NULL, &keyed));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_create(&config, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_keyed_create((tollgate_keyed_config_t *)((char *)askew_config + 1), &keyed));
    GIVES(TOLLGATE_E_ALIGN, tollgate_keyed_create(&config, (keyed_t **)(void *)((char *)two + 1)));
    WRONG(TOLLGATE_E_SIZE, c.struct_size = 0);
    WRONG(TOLLGATE_E_SIZE, c.struct_size += 1);
    WRONG(TOLLGATE_E_NULL, c.classes = NULL);
    WRONG(TOLLGATE_E_ALIGN, c.classes = (tollgate_class_t *)((char *)askew_classes + 1));
    WRONG(TOLLGATE_E_INVALID, c.class_count = 0);
    WRONG(TOLLGATE_E_INVALID, c.class_count = TOLLGATE_MAX_CLASSES + 1);
    WRONG(TOLLGATE_E_INVALID, c.clock = 0);
    WRONG(TOLLGATE_E_INVALID, c.clock = 6);
    for (int bit = 0; bit < 32; bit++) {
        if (1u << bit != TOLLGATE_STATS && 1u << bit != TOLLGATE_REFUSE_WHEN_FULL) WRONG(TOLLGATE_E_INVALID, c.flags = 1u << bit);
    }
    for (int word = 0; word < 4; word++) WRONG(TOLLGATE_E_INVALID, c.reserved[word] = 1);
    WRONG(TOLLGATE_E_INVALID, classes[0].keys = 0);
    WRONG(TOLLGATE_E_INVALID, (classes[0].limit = NULL));
    WRONG(TOLLGATE_E_ALIGN, classes[0].limit = (config_t *)((char *)&log + 1));
    WRONG(TOLLGATE_E_SIZE, log.struct_size = 1);
    WRONG(TOLLGATE_E_INVALID, log.algorithm = 0);
    WRONG(TOLLGATE_E_INVALID, log.rules[0].window_ns = 0);
    WRONG(TOLLGATE_E_INVALID, log.clock = TOLLGATE_CLOCK_CALLER);
    WRONG(TOLLGATE_E_INVALID, log.shards = 2);
    WRONG(TOLLGATE_E_INVALID, log.flags = TOLLGATE_STATS);
    WRONG(TOLLGATE_E_INVALID, log.flags = TOLLGATE_LIVE);
    WRONG(TOLLGATE_E_UNSUPPORTED, log.algorithm = TOLLGATE_PACING);
    WRONG(TOLLGATE_E_UNSUPPORTED, log.algorithm = TOLLGATE_COMPACT);
    WRONG(TOLLGATE_E_NOMEM, classes[0].keys = UINT64_MAX / 64);
    if (bare()) WRONG(TOLLGATE_E_INVALID, c.secret[0] = 0);
    tollgate_keyed_destroy(NULL);
}

/* Nothing, or a key, or a class that is not there. */
static void arguments(void) {
    config_t log = of(TOLLGATE_LOG, 5);
    keyed_t *keyed = make(&log, 10, 0);
    tollgate_decision_t decision, blank;
    tollgate_busy_key_t busy[2];
    tollgate_keyed_stats_t stats;
    uint64_t used = 99, pair[2];
    size_t found = 99, sizes[2];
    memset(&blank, 0x5a, sizeof blank);
    decision = blank;
    /* A key of 2^63 bytes is not read. */
#define REFUSED(status, it, class_, key, len, now) \
    do { \
        EXPECT(!tollgate_keyed_try_acquire(it, class_, key, len, 1)); \
        EXPECT(!tollgate_keyed_try_acquire_at(it, class_, key, len, 1, now)); \
        GIVES(status, tollgate_keyed_check_at(it, class_, key, len, 1, now, &decision)); \
        GIVES(status, tollgate_keyed_peek_at(it, class_, key, len, 1, now, &decision)); \
        GIVES(status, tollgate_keyed_usage_at(it, class_, key, len, 0, now, &used)); \
        EXPECT(!tollgate_keyed_remove(it, class_, key, len)); \
        EXPECT(memcmp(&decision, &blank, sizeof blank) == 0 && used == 99 && tollgate_keyed_len(it) == 0); \
    } while (0)
    REFUSED(TOLLGATE_E_NULL, NULL, 0, "a", 1, 5);
    REFUSED(TOLLGATE_E_NULL, keyed, 0, NULL, 1, 5);
    REFUSED(TOLLGATE_E_NULL, keyed, 0, NULL, 0, 5);
    REFUSED(TOLLGATE_E_INVALID, keyed, 1, "a", 1, 5);
    REFUSED(TOLLGATE_E_INVALID, keyed, 256, "a", 1, 5);
    REFUSED(TOLLGATE_E_INVALID, keyed, UINT32_MAX, "a", 1, 5);
    REFUSED(TOLLGATE_E_INVALID, keyed, 0, "a", TOLLGATE_KEY_MAX + 1, 5);
    REFUSED(TOLLGATE_E_INVALID, keyed, 0, "a", (size_t)1 << 63, 5);
    REFUSED(TOLLGATE_E_INVALID, keyed, 0, "a", SIZE_MAX, 5);
    REFUSED(TOLLGATE_E_INVALID, keyed, 0, "a", 1, 1ull << 62);
    REFUSED(TOLLGATE_E_INVALID, keyed, 0, "a", 1, UINT64_MAX);
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_check(NULL, 0, "a", 1, 1, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_peek(keyed, 0, NULL, 1, 1, &decision));
    GIVES(TOLLGATE_E_CLOCK, tollgate_keyed_check(keyed, 0, "a", 1, 1, &decision));
    GIVES(TOLLGATE_E_CLOCK, tollgate_keyed_peek(keyed, 0, "a", 1, 1, &decision));
    EXPECT(!tollgate_keyed_try_acquire(keyed, 0, "a", 1, 0));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_usage_at(keyed, 0, "a", 1, 0, 5, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_keyed_usage_at(keyed, 0, "a", 1, 0, 5, (uint64_t *)(void *)((char *)pair + 1)));
    GIVES(TOLLGATE_E_INVALID, tollgate_keyed_usage_at(keyed, 0, "a", 1, 1, 5, &used));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_busiest_at(NULL, 5, busy, 2, &found));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_busiest_at(keyed, 5, NULL, 2, &found));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_busiest_at(keyed, 5, busy, 2, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_keyed_busiest_at(keyed, 5, (tollgate_busy_key_t *)(void *)((char *)busy + 1), 1, &found));
    GIVES(TOLLGATE_E_ALIGN, tollgate_keyed_busiest_at(keyed, 5, busy, 1, (size_t *)(void *)((char *)sizes + 1)));
    GIVES(TOLLGATE_E_INVALID, tollgate_keyed_busiest_at(keyed, 1ull << 62, busy, 2, &found));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_stats(NULL, &stats));
    GIVES(TOLLGATE_E_NULL, tollgate_keyed_stats(keyed, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_keyed_stats(keyed, (tollgate_keyed_stats_t *)(void *)((char *)pair + 1)));
    stats.struct_size = 0;
    GIVES(TOLLGATE_E_SIZE, tollgate_keyed_stats(keyed, &stats));
    EXPECT(used == 99 && found == 99 && tollgate_keyed_len(NULL) == 0);
    tollgate_keyed_destroy(keyed);
}

static void answers(void) {
    config_t log = of(TOLLGATE_LOG, 5);
    log.max_cost = 4;
    keyed_t *keyed = make(&log, 10, TOLLGATE_STATS);
    tollgate_decision_t decision;
    uint64_t used;
    GIVES(TOLLGATE_OK, tollgate_keyed_peek_at(keyed, 0, "a", 1, 3, SECOND, &decision));
    EXPECT(decision.allowed == 1 && decision.remaining == 5 && tollgate_keyed_len(keyed) == 0);
    GIVES(TOLLGATE_OK, tollgate_keyed_check_at(keyed, 0, "a", 1, 3, SECOND, &decision));
    EXPECT(decision.allowed == 1 && decision.limit == 5 && decision.remaining == 2 && decision.now_ns == SECOND);
    GIVES(TOLLGATE_REFUSED, tollgate_keyed_check_at(keyed, 0, "a", 1, 3, SECOND + 10, &decision));
    EXPECT(decision.reason == TOLLGATE_REASON_LIMIT && decision.retry_after_ns == SECOND - 10);
    GIVES(TOLLGATE_NEVER, tollgate_keyed_check_at(keyed, 0, "a", 1, 6, SECOND, &decision));
    EXPECT(decision.reason == TOLLGATE_REASON_ABOVE_LIMIT && decision.retry_after_ns == UINT64_MAX);
    GIVES(TOLLGATE_NEVER, tollgate_keyed_check_at(keyed, 0, "new", 3, 5, SECOND, &decision));
    EXPECT(decision.reason == TOLLGATE_REASON_ABOVE_MAX_COST && tollgate_keyed_len(keyed) == 1);
    GIVES(TOLLGATE_OK, tollgate_keyed_check_at(keyed, 0, "a", 1, 2, SECOND, NULL));
    EXPECT(!take(keyed, "a", SECOND) && take(keyed, "b", SECOND));
    GIVES(TOLLGATE_OK, tollgate_keyed_usage_at(keyed, 0, "a", 1, 0, SECOND, &used));
    EXPECT(used == 5 && tollgate_keyed_len(keyed) == 2);
    tollgate_keyed_stats_t stats = stats_of(keyed);
    EXPECT(stats.keys == 2 && stats.capacity >= 10 && stats.bytes > 10 * 8 * 5 && stats.evictions == 0);
    EXPECT(stats.allowed == 3 && stats.refused == 4 && stats.flags == 0 && stats.reserved[0] == 0);
    /* One key is forgiven, the other is not. */
    EXPECT(tollgate_keyed_remove(keyed, 0, "a", 1) && !tollgate_keyed_remove(keyed, 0, "a", 1));
    GIVES(TOLLGATE_OK, tollgate_keyed_usage_at(keyed, 0, "a", 1, 0, SECOND, &used));
    EXPECT(used == 0);
    GIVES(TOLLGATE_OK, tollgate_keyed_usage_at(keyed, 0, "b", 1, 0, SECOND, &used));
    EXPECT(used == 1 && tollgate_keyed_len(keyed) == 1);
    tollgate_keyed_destroy(keyed);

    if (!bare()) {
        tollgate_class_t class_ = {&log, 10};
        tollgate_keyed_config_t config = with(&class_, 1);
        log.rules[0].window_ns = 3600 * SECOND;
        config.secret[0] = 0; /* drawn */
        for (config.clock = TOLLGATE_CLOCK_PRECISE; config.clock < TOLLGATE_CLOCK_CALLER; config.clock++) {
            GIVES(TOLLGATE_OK, tollgate_keyed_create(&config, &keyed));
            EXPECT(tollgate_keyed_try_acquire(keyed, 0, "a", 1, 4) && !tollgate_keyed_try_acquire(keyed, 0, "a", 1, 2));
            GIVES(TOLLGATE_OK, tollgate_keyed_check(keyed, 0, "a", 1, 1, NULL));
            GIVES(TOLLGATE_REFUSED, tollgate_keyed_peek(keyed, 0, "a", 1, 1, NULL));
            EXPECT(stats_of(keyed).allowed == 0); /* not asked for */
            tollgate_keyed_destroy(keyed);
        }
    }
}

/* Keys are bytes with a length: whatever differs is another key, however long. */
static void keys(void) {
    enum { LONGEST = 300 };
    config_t log = of(TOLLGATE_LOG, 1);
    keyed_t *keyed = make(&log, 100000, 0);
    unsigned char key[LONGEST];
    uint64_t made = 0;
    for (int byte = 0; byte < 2; byte++) {
        for (size_t len = byte; len <= LONGEST; len++) {
            memset(key, byte ? 0xff : 0, sizeof key);
            EXPECT(tollgate_keyed_try_acquire_at(keyed, 0, key, len, 1, SECOND));
            EXPECT(!tollgate_keyed_try_acquire_at(keyed, 0, key, len, 1, SECOND));
            made++;
            for (size_t at = 0; at < len; at += 1 + len / 50) { /* one bit */
                key[at] ^= 0x10;
                EXPECT(tollgate_keyed_try_acquire_at(keyed, 0, key, len, 1, SECOND));
                EXPECT(!tollgate_keyed_try_acquire_at(keyed, 0, key, len, 1, SECOND));
                key[at] ^= 0x10;
                made++;
            }
        }
    }
    EXPECT(tollgate_keyed_len(keyed) == made);
    static char longest[TOLLGATE_KEY_MAX];
    EXPECT(tollgate_keyed_try_acquire_at(keyed, 0, longest, sizeof longest, 1, SECOND));
    longest[sizeof longest - 1] = 1;
    EXPECT(tollgate_keyed_try_acquire_at(keyed, 0, longest, sizeof longest, 1, SECOND));
    EXPECT(!tollgate_keyed_try_acquire_at(keyed, 0, longest, sizeof longest, 1, SECOND));
    tollgate_keyed_destroy(keyed);
}

static void busiest(void) {
    config_t log = of(TOLLGATE_LOG, 1000);
    log.max_cost = 1000;
    keyed_t *keyed = make(&log, 100, 0);
    char key[100];
    tollgate_busy_key_t found[BUSY + 1];
    size_t count = 99;
    GIVES(TOLLGATE_OK, tollgate_keyed_busiest_at(keyed, SECOND, found, BUSY, &count));
    EXPECT(count == 0);
    for (int len = 1; len <= 60; len++) {
        memset(key, 'a' + len % 26, sizeof key);
        EXPECT(tollgate_keyed_try_acquire_at(keyed, 0, key, (size_t)len, (uint64_t)len, SECOND));
    }
    memset(found, 0x5a, sizeof found);
    GIVES(TOLLGATE_OK, tollgate_keyed_busiest_at(keyed, SECOND, found, BUSY, &count));
    EXPECT(count == BUSY && found[BUSY].used == 0x5a5a5a5a5a5a5a5a);
    for (int i = 0; i < BUSY; i++) {
        EXPECT(found[i].used == 60 - (uint64_t)i && found[i].len == found[i].used && found[i].class_index == 0);
        for (int at = 0; at < TOLLGATE_KEY_KEPT; at++) {
            EXPECT(found[i].key[at] == (at < 28 ? 'a' + found[i].len % 26 : 0));
        }
    }
    GIVES(TOLLGATE_OK, tollgate_keyed_busiest_at(keyed, SECOND, found, 0, &count));
    EXPECT(count == 0);
    memset(key, 'x', sizeof key);
    EXPECT(tollgate_keyed_try_acquire_at(keyed, 0, key, 44, 900, SECOND));
    GIVES(TOLLGATE_OK, tollgate_keyed_busiest_at(keyed, SECOND, found, 1, &count));
    EXPECT(count == 1 && found[0].used == 900 && found[0].len == 44 && memcmp(found[0].key, key, 44) == 0);
    tollgate_keyed_destroy(keyed);
}

/* A log for some, a counter for everybody else, nothing for probes: a key has a history in each. */
static void classes(void) {
    config_t everybody = of(TOLLGATE_WINDOW, 2), some = of(TOLLGATE_LOG, 4), rates[3];
    rates[0] = of(TOLLGATE_GCRA, 3);
    rates[1] = of(TOLLGATE_FIXED, 5);
    rates[2] = of(TOLLGATE_TWO_WINDOW, 6);
    tollgate_class_t list[6] = {{&everybody, 100}, {&some, 10}, {NULL, 0}, {&rates[0], 10}, {&rates[1], 10}, {&rates[2], 10}};
    const uint64_t limits[6] = {2, 4, UINT64_MAX, 3, 5, 6};
    tollgate_keyed_config_t config = with(list, 6);
    keyed_t *keyed;
    tollgate_decision_t decision;
    uint64_t used = 99;
    GIVES(TOLLGATE_OK, tollgate_keyed_create(&config, &keyed));
    memset(list, 0, sizeof list); /* read by create alone */
    memset(&everybody, 0, sizeof everybody);
    for (uint32_t class_ = 0; class_ < 6; class_++) {
        uint64_t admitted = 0;
        GIVES(TOLLGATE_OK, tollgate_keyed_peek_at(keyed, class_, "a", 1, 1, SECOND, &decision));
        EXPECT(decision.limit == limits[class_] && decision.remaining == limits[class_]);
        for (int i = 0; i < 100; i++) admitted += tollgate_keyed_try_acquire_at(keyed, class_, "a", 1, 1, SECOND);
        EXPECT(admitted == (class_ == 2 ? 100 : limits[class_]));
    }
    EXPECT(tollgate_keyed_len(keyed) == 5);
    GIVES(TOLLGATE_E_INVALID, tollgate_keyed_usage_at(keyed, 2, "a", 1, 0, SECOND, &used));
    EXPECT(tollgate_keyed_remove(keyed, 1, "a", 1) && !tollgate_keyed_remove(keyed, 2, "a", 1));
    EXPECT(tollgate_keyed_len(keyed) == 4 && used == 99);
    tollgate_keyed_destroy(keyed);

    tollgate_class_t many[TOLLGATE_MAX_CLASSES];
    for (uint32_t i = 0; i < TOLLGATE_MAX_CLASSES; i++) {
        many[i].limit = &some;
        many[i].keys = 1;
    }
    config = with(many, TOLLGATE_MAX_CLASSES);
    GIVES(TOLLGATE_OK, tollgate_keyed_create(&config, &keyed));
    for (uint32_t i = 0; i < TOLLGATE_MAX_CLASSES; i++) {
        EXPECT(tollgate_keyed_try_acquire_at(keyed, i, "a", 1, 4, SECOND));
        EXPECT(!tollgate_keyed_try_acquire_at(keyed, i, "a", 1, 1, SECOND));
    }
    tollgate_keyed_destroy(keyed);
}

/* Strangers without end: no call allocates, and what is there stays below the room. */
static void hostile_keys(void) {
    config_t log = of(TOLLGATE_LOG, 5);
    for (uint32_t flags = 0; flags <= TOLLGATE_REFUSE_WHEN_FULL; flags += TOLLGATE_REFUSE_WHEN_FULL) {
        keyed_t *keyed = make(&log, 10000, flags);
        uint64_t capacity = stats_of(keyed).capacity, bytes = stats_of(keyed).bytes, full = 0;
        unsigned long before = asked;
        for (uint64_t i = 0; i < 200000; i++) {
            tollgate_decision_t decision;
            uint64_t now = SECOND + i * 50000; /* 20,000 a second */
            int status = tollgate_keyed_check_at(keyed, 0, &i, sizeof i, 1, now, &decision);
            full += status == TOLLGATE_REFUSED && decision.reason == TOLLGATE_REASON_FULL;
            EXPECT(status >= 0 && (status == TOLLGATE_OK || decision.retry_after_ns > 0));
            /* Honest keys were there before. */
            if (i % 4000 == 0) EXPECT(take(keyed, "honest", now));
        }
        EXPECT(asked == before);
        tollgate_keyed_stats_t stats = stats_of(keyed);
        EXPECT(stats.keys <= capacity && stats.keys > 9000 && stats.bytes == bytes && stats.evictions > 80000);
        EXPECT((full > 20000) == (flags != 0));
        tollgate_keyed_destroy(keyed);
    }
}

/* The numbers of the README. */
static void bytes_per_key(void) {
    const uint64_t million = 1000000;
    config_t log = of(TOLLGATE_LOG, 5), bucket = of(TOLLGATE_TOKEN_BUCKET, 5);
    log.rules[0].window_ns = bucket.rules[0].window_ns = 10 * SECOND;
    keyed_t *logs = make(&log, million, 0), *buckets = make(&bucket, million, 0);
    EXPECT(stats_of(logs).bytes / million == 150 && stats_of(buckets).bytes / million == 63);
    tollgate_keyed_destroy(logs);
    tollgate_keyed_destroy(buckets);
}

int main(void) {
    if (!lives()) {
        config_t log = of(TOLLGATE_LOG, 5);
        tollgate_class_t class_ = {&log, 10};
        tollgate_keyed_config_t config = with(&class_, 1);
        keyed_t *keyed = NULL;
        GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_keyed_create(&config, &keyed));
        EXPECT(!keyed && !tollgate_keyed_try_acquire_at(NULL, 0, "a", 1, 1, 1));
        GIVES(TOLLGATE_E_NULL, tollgate_keyed_check_at(NULL, 0, "a", 1, 1, 1, NULL));
        tollgate_keyed_destroy(NULL);
        return 0;
    }
    configurations();
    arguments();
    answers();
    keys();
    busiest();
    classes();
    hostile_keys();
    bytes_per_key();
    return 0;
}
