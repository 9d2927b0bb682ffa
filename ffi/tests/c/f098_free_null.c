/* F098: freeing NULL does nothing; every other function with a NULL, one at a time, says so and writes nothing. (The
 * functions with all their other statuses: statuses.c.) */
#include <string.h>

#include "expect.h"

int main(void) {
    tollgate_destroy(NULL);
    tollgate_coarse_stop(NULL);

    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_CALLER, 1, SECOND), got;
    tollgate_limiter_t *limiter, *untouched = (tollgate_limiter_t *)&config;
    size_t size = 7;
    GIVES(TOLLGATE_E_NULL, tollgate_create(NULL, &untouched));
    GIVES(TOLLGATE_E_NULL, tollgate_create(&config, NULL));
    GIVES(TOLLGATE_E_NULL, tollgate_size(NULL, &size));
    GIVES(TOLLGATE_E_NULL, tollgate_size(&config, NULL));
    GIVES(TOLLGATE_E_NULL, tollgate_init_in(NULL, 1 << 20, &config, &untouched));
    GIVES(TOLLGATE_E_NULL, tollgate_attach_in(NULL, 1 << 20, &untouched));
    EXPECT(size == 7 && untouched == (tollgate_limiter_t *)&config);

    tollgate_decision_t decision, blank;
    memset(&blank, 0x33, sizeof blank);
    decision = blank;
    uint64_t word = 7;
    tollgate_stats_t stats = {TOLLGATE_STATS_SIZE, 0, 7, 7, 7, 7, {7}, 7, {0, 0}};
    EXPECT(!tollgate_try_acquire(NULL) && !tollgate_try_acquire_n(NULL, 0) && !tollgate_try_acquire_at(NULL, 0, 0));
    GIVES(TOLLGATE_E_NULL, tollgate_check(NULL, 0, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_check_at(NULL, 0, 0, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_peek(NULL, 0, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_peek_at(NULL, 0, 0, &decision));
    GIVES(TOLLGATE_E_NULL, tollgate_reserve(NULL, 0, &word));
    GIVES(TOLLGATE_E_NULL, tollgate_reserve_at(NULL, 0, 0, &word));
    GIVES(TOLLGATE_E_NULL, tollgate_usage_at(NULL, 0, 0, &word));
    GIVES(TOLLGATE_E_NULL, tollgate_stats(NULL, &stats));
    GIVES(TOLLGATE_E_NULL, tollgate_reset(NULL));
    tollgate_rule_t rule = {7, 7};
    uint32_t count = 7;
    GIVES(TOLLGATE_E_NULL, tollgate_set_rules(NULL, &rule, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_set_rate_at(NULL, &rule, 1, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_get_rules(NULL, &rule, &count));
    EXPECT(rule.limit == 7 && count == 7);
    memset(&got, 0x33, sizeof got);
    tollgate_config_t before = got;
    GIVES(TOLLGATE_E_NULL, tollgate_get_config(NULL, &got));
    EXPECT(memcmp(&decision, &blank, sizeof blank) == 0 && memcmp(&got, &before, sizeof got) == 0);
    EXPECT(word == 7 && stats.allowed == 7 && stats.refused == 7 && stats.clock_regressions == 7);

    /* A decision may be NULL: then the status is the answer. */
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    GIVES(TOLLGATE_OK, tollgate_peek_at(limiter, 1, 0, NULL));
    GIVES(TOLLGATE_OK, tollgate_check_at(limiter, 1, 0, NULL));
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 1, 0, NULL));
    tollgate_destroy(limiter);
    return 0;
}
