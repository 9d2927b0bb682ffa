/* What only looks works on memory that can only be read, refusals included: nothing is stored. */
#include <sys/mman.h>

#include "expect.h"

int main(void) {
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_GCRA; algorithm++) {
        for (uint32_t max_cost = 0; max_cost < 2; max_cost++) {
            tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, 3, SECOND), got;
            config.max_cost = max_cost;
            size_t size;
            GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
            void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            EXPECT(memory != MAP_FAILED);
            tollgate_limiter_t *limiter, *found;
            GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &limiter));
            for (int i = 0; i < 3; i++) EXPECT(tollgate_try_acquire_at(limiter, 1, SECOND));
            EXPECT(mprotect(memory, size, PROT_READ) == 0);

            tollgate_decision_t decision;
            uint64_t used;
            GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &found));
            GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &found));
            GIVES(TOLLGATE_OK, tollgate_usage_at(found, 0, SECOND, &used));
            EXPECT(used == 3);
            GIVES(TOLLGATE_OK, tollgate_peek_at(found, 1, 9 * SECOND, &decision));
            EXPECT(decision.remaining == 3);
            got.struct_size = TOLLGATE_CONFIG_SIZE;
            GIVES(TOLLGATE_OK, tollgate_get_config(found, &got));
            EXPECT(!tollgate_try_acquire_at(found, 1, SECOND) && tollgate_try_acquire_at(found, 0, SECOND));
            GIVES(TOLLGATE_REFUSED, tollgate_check_at(found, 1, SECOND, &decision));
            GIVES(TOLLGATE_NEVER, tollgate_check_at(found, 4, SECOND, &decision));
            EXPECT(munmap(memory, size) == 0);
        }
    }
    return 0;
}
