/* F101: memory of every length around the right one: too little is an error, and nothing past the end is touched, by
 * making a limiter or by using all of it. What was made by one side is freed by that side. */
#include <string.h>

#include "expect.h"

enum { GUARD = 4096 };

static void lengths(const tollgate_config_t *config) {
    size_t size, align = tollgate_align();
    GIVES(TOLLGATE_OK, tollgate_size(config, &size));
    /* What the README says: a header and a head, the slots, the statistics. */
    uint64_t slots = config->algorithm == TOLLGATE_LOG ? config->rules[0].limit : config->algorithm == TOLLGATE_WINDOW ? 16 : 0;
    EXPECT(size == 896 + (8 * slots + 127) / 128 * 128 + (config->flags ? 128 : 0));
    const size_t tried[] = {0, 1, align - 1, size / 2, size - 1, size, size + 1, size + align};
    unsigned char *memory = zeros(size + GUARD);
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        memset(memory, 0, size);
        memset(memory + size, 0xa5, GUARD);
        tollgate_limiter_t *limiter = NULL;
        if (tried[i] < size) {
            GIVES(TOLLGATE_E_SIZE, tollgate_init_in(memory, tried[i], config, &limiter));
            EXPECT(limiter == NULL);
            for (size_t at = 0; at < size; at++) EXPECT(memory[at] == 0);
        } else {
            GIVES(TOLLGATE_OK, tollgate_init_in(memory, tried[i], config, &limiter));
            for (uint64_t call = 0; call < 20000; call++) {
                tollgate_decision_t decision;
                tollgate_try_acquire_at(limiter, 1 + call % 3, call * call * 1009);
                if (call % 16 == 0) EXPECT(tollgate_check_at(limiter, 1, call * call * 1009, &decision) >= 0);
            }
            GIVES(TOLLGATE_OK, tollgate_reset(limiter));
            EXPECT(tollgate_try_acquire_at(limiter, 1, 0));
        }
        for (size_t at = size; at < size + GUARD; at++) EXPECT(memory[at] == 0xa5);
    }
    free(memory);
}

int main(void) {
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_GCRA; algorithm++) {
        for (uint64_t limit = 1; limit < 5000; limit = limit * 3 + 1) {
            for (uint32_t flags = 0; flags <= TOLLGATE_STATS; flags += TOLLGATE_STATS) {
                tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, limit, SECOND);
                config.flags = flags;
                lengths(&config);
                config.max_cost = 1;
                lengths(&config);
            }
        }
    }
    return 0;
}
