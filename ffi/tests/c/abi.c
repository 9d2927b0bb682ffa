/* Sizes, offsets and numbers, as the Rust side asserts them. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <tollgate/tollgate.h>
#include <tollgate/tollgate.h> /* twice on purpose */

#include "expect.h"

/* C99 has no _Static_assert. */
#define IS(name, condition) typedef char name[(condition) ? 1 : -1]
#define AT(type, field, at) IS(type##_##field, offsetof(type, field) == (at))

IS(rule_size, sizeof(tollgate_rule_t) == 16);
AT(tollgate_rule_t, limit, 0);
AT(tollgate_rule_t, window_ns, 8);

IS(config_size, sizeof(tollgate_config_t) == 200 && TOLLGATE_CONFIG_SIZE == 200 && TOLLGATE_MAX_RULES == 8);
AT(tollgate_config_t, struct_size, 0);
AT(tollgate_config_t, algorithm, 4);
AT(tollgate_config_t, rule_count, 8);
AT(tollgate_config_t, buckets, 12);
AT(tollgate_config_t, clock, 16);
AT(tollgate_config_t, flags, 20);
AT(tollgate_config_t, shards, 24);
AT(tollgate_config_t, max_cost, 28);
AT(tollgate_config_t, burst, 32);
AT(tollgate_config_t, rules, 40);
AT(tollgate_config_t, reserved, 168);

IS(decision_size, sizeof(tollgate_decision_t) == 64);
AT(tollgate_decision_t, allowed, 0);
AT(tollgate_decision_t, reason, 4);
AT(tollgate_decision_t, rule, 8);
AT(tollgate_decision_t, reserved, 12);
AT(tollgate_decision_t, limit, 16);
AT(tollgate_decision_t, remaining, 24);
AT(tollgate_decision_t, retry_after_ns, 32);
AT(tollgate_decision_t, next_after_ns, 40);
AT(tollgate_decision_t, reset_after_ns, 48);
AT(tollgate_decision_t, now_ns, 56);

IS(stats_size, sizeof(tollgate_stats_t) == 128 && TOLLGATE_STATS_SIZE == 128);
AT(tollgate_stats_t, struct_size, 0);
AT(tollgate_stats_t, flags, 4);
AT(tollgate_stats_t, allowed, 8);
AT(tollgate_stats_t, refused, 16);
AT(tollgate_stats_t, clock_regressions, 24);
AT(tollgate_stats_t, permits, 32);
AT(tollgate_stats_t, refused_by, 40);
AT(tollgate_stats_t, contention_retries, 104);
AT(tollgate_stats_t, reserved, 112);

IS(shm_config_size, sizeof(tollgate_shm_config_t) == 72 && TOLLGATE_SHM_CONFIG_SIZE == 72);
AT(tollgate_shm_config_t, struct_size, 0);
AT(tollgate_shm_config_t, clock, 4);
AT(tollgate_shm_config_t, flags, 8);
AT(tollgate_shm_config_t, mode, 12);
AT(tollgate_shm_config_t, limit, 16);
AT(tollgate_shm_config_t, limiters, 24);
AT(tollgate_shm_config_t, keys, 32);
AT(tollgate_shm_config_t, reserved, 40);

IS(shm_info_size, sizeof(tollgate_shm_info_t) == 208 && TOLLGATE_SHM_INFO_SIZE == 208);
AT(tollgate_shm_info_t, struct_size, 0);
AT(tollgate_shm_info_t, layout_version, 4);
AT(tollgate_shm_info_t, algorithm, 8);
AT(tollgate_shm_info_t, clock, 12);
AT(tollgate_shm_info_t, flags, 16);
AT(tollgate_shm_info_t, rule_count, 20);
AT(tollgate_shm_info_t, bytes, 24);
AT(tollgate_shm_info_t, limiters, 32);
AT(tollgate_shm_info_t, capacity, 40);
AT(tollgate_shm_info_t, rules, 48);
AT(tollgate_shm_info_t, reserved, 176);

IS(algorithms, TOLLGATE_LOG == 1 && TOLLGATE_WINDOW == 2 && TOLLGATE_FIXED == 3 && TOLLGATE_TWO_WINDOW == 4 &&
                   TOLLGATE_GCRA == 5 && TOLLGATE_TOKEN_BUCKET == 5 && TOLLGATE_LEAKY_BUCKET == 5 &&
                   TOLLGATE_PACING == 6 && TOLLGATE_COMPACT == 7 && TOLLGATE_SAMPLED == 8 && TOLLGATE_WHEEL == 9);
IS(clocks, TOLLGATE_CLOCK_PRECISE == 1 && TOLLGATE_CLOCK_COARSE == 2 && TOLLGATE_CLOCK_MONOTONIC == 3 &&
               TOLLGATE_CLOCK_BOOTTIME == 4 && TOLLGATE_CLOCK_CALLER == 5);
IS(flags, TOLLGATE_TEXTBOOK_COVERAGE == 1 && TOLLGATE_STATS == 2 && TOLLGATE_BERNOULLI == 4 && TOLLGATE_LIVE == 8 &&
              TOLLGATE_REFUSE_WHEN_FULL == 16 && TOLLGATE_ANY_OWNER == 32 && TOLLGATE_STALE == 64);
IS(reasons, TOLLGATE_REASON_NONE == 0 && TOLLGATE_REASON_LIMIT == 1 && TOLLGATE_REASON_ABOVE_LIMIT == 2 &&
                TOLLGATE_REASON_ABOVE_MAX_COST == 3);
IS(outcomes, TOLLGATE_OK == 0 && TOLLGATE_REFUSED == 1 && TOLLGATE_NEVER == 2);
IS(errors, TOLLGATE_E_NULL == -1 && TOLLGATE_E_INVALID == -2 && TOLLGATE_E_SIZE == -3 && TOLLGATE_E_ALIGN == -4 &&
               TOLLGATE_E_NOMEM == -5 && TOLLGATE_E_SYS == -6 && TOLLGATE_E_NOT_READY == -10 &&
               TOLLGATE_E_MAGIC == -11 && TOLLGATE_E_LAYOUT == -12 && TOLLGATE_E_CORRUPT == -13 &&
               TOLLGATE_E_CONFIG == -14 && TOLLGATE_E_CLOCK == -15 && TOLLGATE_E_EXISTS == -16 &&
               TOLLGATE_E_UNTRUSTED == -17 && TOLLGATE_E_UNSUPPORTED == -19);

int main(void) {
    EXPECT(tollgate_version_number() == TOLLGATE_VERSION_NUMBER);
    EXPECT(tollgate_abi_version() == TOLLGATE_ABI_VERSION);
    EXPECT(tollgate_layout_version() == TOLLGATE_LAYOUT_VERSION);
    EXPECT(tollgate_align() == 128);
    /* A patch changes the number. */
    EXPECT(TOLLGATE_VERSION_NUMBER % 1000 == TOLLGATE_VERSION_PATCH);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", TOLLGATE_VERSION_MAJOR, TOLLGATE_VERSION_MINOR, TOLLGATE_VERSION_PATCH);
    EXPECT(strcmp(version, tollgate_version_string()) == 0);
    puts(tollgate_version_string());
    return 0;
}
