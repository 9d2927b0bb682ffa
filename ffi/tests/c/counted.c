/* Statistics count what they say, for every algorithm, and cost nothing in memory where they are off. */
#include <pthread.h>
#include <string.h>

#include "expect.h"

static void counts(uint32_t algorithm, uint32_t shards) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, 4, SECOND);
    tollgate_limiter_t *limiter;
    tollgate_stats_t stats;
    size_t with = 0, without = 0;
    config.shards = shards;
    if (algorithm <= TOLLGATE_GCRA) {
        GIVES(TOLLGATE_OK, tollgate_size(&config, &without));
        config.flags = TOLLGATE_STATS;
        GIVES(TOLLGATE_OK, tollgate_size(&config, &with));
        EXPECT(with == without + 128 * (shards ? shards : 1));
    }
    config.flags = TOLLGATE_STATS;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    stats.struct_size = TOLLGATE_STATS_SIZE;
    GIVES(TOLLGATE_OK, tollgate_stats(limiter, &stats));
    EXPECT(stats.allowed == 0 && stats.refused == 0 && stats.clock_regressions == 0 && stats.flags == 0);

    uint64_t allowed = 0, refused = 0;
    for (int i = 0; i < 10; i++) *(tollgate_try_acquire_at(limiter, 1, 50) ? &allowed : &refused) += 1;
    for (int i = 0; i < 3; i++) *(tollgate_check_at(limiter, 1, 50, NULL) == TOLLGATE_OK ? &allowed : &refused) += 1;
    *(tollgate_try_acquire_at(limiter, 1, 49) ? &allowed : &refused) += 1;
    *(tollgate_check_at(limiter, 99, 48, NULL) == TOLLGATE_OK ? &allowed : &refused) += 1;
    EXPECT(allowed >= 1 && refused >= 8);
    /* Neither of these is counted. */
    EXPECT(tollgate_try_acquire_at(limiter, 0, 1));
    EXPECT(!tollgate_try_acquire_at(limiter, 1, UINT64_MAX));
    EXPECT(tollgate_check_at(limiter, 0, 1, NULL) == TOLLGATE_OK);
    EXPECT(tollgate_check_at(limiter, 1, UINT64_MAX, NULL) == TOLLGATE_E_INVALID);
    EXPECT(tollgate_peek_at(limiter, 1, 1, NULL) >= 0);
    EXPECT(!tollgate_try_acquire(limiter));
    GIVES(TOLLGATE_OK, tollgate_stats(limiter, &stats));
    EXPECT(stats.allowed == allowed && stats.refused == refused && stats.clock_regressions == 2);
    EXPECT(stats.permits == allowed && stats.refused_by[0] == refused && stats.refused_by[1] == 0);

    /* A reset forgets the newest time, not what was counted. */
    GIVES(TOLLGATE_OK, tollgate_reset(limiter));
    EXPECT(tollgate_try_acquire_at(limiter, 1, 2));
    GIVES(TOLLGATE_OK, tollgate_stats(limiter, &stats));
    EXPECT(stats.allowed == allowed + 1 && stats.refused == refused && stats.clock_regressions == 2);
    EXPECT(stats.struct_size == TOLLGATE_STATS_SIZE && stats.reserved[0] == 0 && stats.reserved[1] == 0);
    EXPECT(stats.contention_retries == 0); /* Nobody else called. */
    tollgate_destroy(limiter);
}

/* Each rule is told what it refused, and no rule what is above the largest cost. */
static void by_rule(uint32_t algorithm) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, 3, SECOND);
    tollgate_limiter_t *limiter;
    tollgate_stats_t stats;
    config.rule_count = 2;
    config.rules[1].limit = 5;
    config.rules[1].window_ns = 10 * SECOND;
    config.max_cost = 2;
    config.flags = TOLLGATE_STATS;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    EXPECT(tollgate_try_acquire_at(limiter, 2, SECOND) && tollgate_try_acquire_at(limiter, 1, SECOND));
    EXPECT(!tollgate_try_acquire_at(limiter, 1, SECOND) && !tollgate_try_acquire_at(limiter, 2, SECOND)); /* rule 0 */
    EXPECT(tollgate_try_acquire_at(limiter, 2, 4 * SECOND));
    EXPECT(!tollgate_try_acquire_at(limiter, 1, 6 * SECOND)); /* rule 1 */
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 2, 6 * SECOND, NULL)); /* rule 1 */
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 1, 6 * SECOND, NULL)); /* rule 1 */
    EXPECT(!tollgate_try_acquire_at(limiter, 3, 6 * SECOND)); /* the largest cost */
    GIVES(TOLLGATE_NEVER, tollgate_check_at(limiter, 4, 6 * SECOND, NULL)); /* above rule 0 */
    stats.struct_size = TOLLGATE_STATS_SIZE;
    GIVES(TOLLGATE_OK, tollgate_stats(limiter, &stats));
    EXPECT(stats.allowed == 3 && stats.permits == 5 && stats.refused == 7);
    EXPECT(stats.refused_by[0] == 3 && stats.refused_by[1] == 3 && stats.refused_by[2] == 0);
    tollgate_destroy(limiter);
}

static void *hammer(void *limiter) {
    for (int i = 0; i < 100000; i++) EXPECT(tollgate_try_acquire_at(limiter, 1, 50));
    return NULL;
}

/* Threads that take from one word lose to each other now and then, and that is counted; all the same nothing else is lost. */
static void contended(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_WINDOW, TOLLGATE_CLOCK_CALLER, 4000000, SECOND);
    config.flags = TOLLGATE_STATS;
    uint64_t rounds = 0;
    for (uint64_t retries = 0; retries == 0; rounds++) {
        EXPECT(rounds < 1000);
        tollgate_limiter_t *limiter;
        tollgate_stats_t stats;
        pthread_t threads[2];
        GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
        for (int i = 0; i < 2; i++) EXPECT(pthread_create(&threads[i], NULL, hammer, limiter) == 0);
        for (int i = 0; i < 2; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
        stats.struct_size = TOLLGATE_STATS_SIZE;
        GIVES(TOLLGATE_OK, tollgate_stats(limiter, &stats));
        EXPECT(stats.allowed == 200000 && stats.permits == 200000 && stats.refused == 0);
        retries = stats.contention_retries;
        tollgate_destroy(limiter);
        if (bare()) {
            EXPECT(retries == 0);
            break;
        }
    }
}

int main(void) {
    contended();
    by_rule(TOLLGATE_LOG);
    by_rule(TOLLGATE_WINDOW);
    for (uint32_t shards = 2; shards <= 4 && spreads(); shards++) {
        counts(TOLLGATE_LOG, shards);
        counts(TOLLGATE_WINDOW, shards);
    }
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_WHEEL; algorithm++) {
        if (algorithm <= TOLLGATE_PACING || !bare()) counts(algorithm, 0);
    }
    return 0;
}
