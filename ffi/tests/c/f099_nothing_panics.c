/* F099: the ends of every range, in every combination that a field has: a status or a refusal each time, and the limiter
 * works on. (Were there a panic left, it would end this process: nothing unwinds out of the library.) */
#include "expect.h"

static const uint64_t ends[] = {0, 1, 2, 1000, 1ull << 30, (1ull << 31) - 1, 1ull << 32, (1ull << 62) - 1, 1ull << 62,
                                1ull << 63, UINT64_MAX - 1, UINT64_MAX};
enum { ENDS = sizeof ends / sizeof *ends };

/* Every call at every end of time and cost: wild calls leave no trace that a sane one could not bear. */
static void call_all(tollgate_limiter_t *limiter) {
    for (int i = 0; i < ENDS; i++) {
        for (int j = 0; j < ENDS; j++) {
            uint64_t n = ends[i], now = ends[j], word;
            tollgate_decision_t decision;
            bool in_range = now < 1ull << 62;
            bool admitted = tollgate_try_acquire_at(limiter, n, now);
            EXPECT(in_range ? n > 0 || admitted : !admitted);
            int status = tollgate_check_at(limiter, n, now, &decision);
            EXPECT(in_range ? status >= 0 : status == TOLLGATE_E_INVALID);
            EXPECT(status < 0 || decision.allowed == (status == TOLLGATE_OK));
            status = tollgate_peek_at(limiter, n, now, &decision);
            EXPECT(in_range ? status >= 0 : status == TOLLGATE_E_INVALID);
            status = tollgate_usage_at(limiter, (uint32_t)i, now, &word);
            EXPECT(status == (in_range && i == 0 ? TOLLGATE_OK : TOLLGATE_E_INVALID));
            status = tollgate_reserve_at(limiter, n, now, &word);
            EXPECT(status >= 0 || status == TOLLGATE_E_UNSUPPORTED || !in_range);
        }
    }
    GIVES(TOLLGATE_OK, tollgate_reset(limiter));
    EXPECT(tollgate_try_acquire_at(limiter, 0, 5));
}

/* A limiter of these ends, if there is one: then every call. */
static void try_all(uint32_t algorithm, uint64_t limit, uint64_t window, uint64_t parts, uint64_t max_cost) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, limit, window);
    bool is_rate = algorithm == TOLLGATE_GCRA || algorithm == TOLLGATE_PACING;
    config.burst = is_rate ? parts : 0;
    config.buckets = is_rate ? 0 : (uint32_t)parts;
    config.max_cost = (uint32_t)max_cost;
    tollgate_limiter_t *limiter = NULL;
    size_t size = 0;
    int sized = tollgate_size(&config, &size);
    EXPECT(sized == TOLLGATE_OK || sized == TOLLGATE_E_INVALID || sized == TOLLGATE_E_UNSUPPORTED);
    int status = tollgate_create(&config, &limiter);
    EXPECT(status == TOLLGATE_OK ? limiter != NULL : status < 0 && limiter == NULL);
    if (status == TOLLGATE_OK) {
        /* Not what would write down a thousand million permits. */
        bool keeps_all = algorithm == TOLLGATE_LOG || algorithm >= TOLLGATE_COMPACT;
        if (!keeps_all || limit <= 1000 || limit >= 1ull << 62) call_all(limiter);
        tollgate_destroy(limiter);
    }
}

int main(void) {
    for (uint32_t algorithm = 0; algorithm <= 10; algorithm++) {
        for (int i = 0; i < ENDS; i++) {
            for (int j = 0; j < ENDS; j++) {
                try_all(algorithm, ends[i], ends[j], 0, ends[(i + j) % ENDS]);
                try_all(algorithm, ends[i], ends[j], 1 + (uint64_t)i, 0);
                try_all(algorithm, ends[i], ends[j], ends[(2 * i + j) % ENDS], 1);
            }
        }
    }
    /* Every value of a field that names something. */
    for (int bit = 0; bit < 32; bit++) {
        tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, 1u << bit, 1, SECOND);
        tollgate_limiter_t *limiter = NULL;
        if (tollgate_create(&config, &limiter) == TOLLGATE_OK) tollgate_destroy(limiter);
        EXPECT(tollgate_strerror(1 << bit % 31) && tollgate_status_name(-(1 << bit % 31)));
    }
    return 0;
}
