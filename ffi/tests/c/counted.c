/* Statistics count what they say, for every algorithm, and cost nothing in memory where they are off. */
#include <string.h>

#include "expect.h"

static void counts(uint32_t algorithm) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, 4, SECOND);
    tollgate_limiter_t *limiter;
    tollgate_stats_t stats;
    size_t with = 0, without = 0;
    if (algorithm <= TOLLGATE_GCRA) {
        GIVES(TOLLGATE_OK, tollgate_size(&config, &without));
        config.flags = TOLLGATE_STATS;
        GIVES(TOLLGATE_OK, tollgate_size(&config, &with));
        EXPECT(with == without + 128);
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

    /* A reset forgets the newest time, not what was counted. */
    GIVES(TOLLGATE_OK, tollgate_reset(limiter));
    EXPECT(tollgate_try_acquire_at(limiter, 1, 2));
    GIVES(TOLLGATE_OK, tollgate_stats(limiter, &stats));
    EXPECT(stats.allowed == allowed + 1 && stats.refused == refused && stats.clock_regressions == 2);
    EXPECT(stats.struct_size == TOLLGATE_STATS_SIZE && stats.reserved[0] == 0 && stats.reserved[2] == 0);
    tollgate_destroy(limiter);
}

int main(void) {
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_WHEEL; algorithm++) {
        if (algorithm <= TOLLGATE_PACING || !bare()) counts(algorithm);
    }
    return 0;
}
