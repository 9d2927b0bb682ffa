/* F100: no result owns anything, so there is nothing to release twice: decisions, statistics and configurations are plain
 * values, texts are static, a limiter in the caller's memory is that memory. What is owned is the limiter that
 * tollgate_create made, and the pointer to it is the caller's to clear. */
#include <string.h>

#include "expect.h"

int main(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_WINDOW, TOLLGATE_CLOCK_CALLER, 2, SECOND);
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
    void *memory = zeros(size);
    tollgate_destroy((tollgate_limiter_t *)memory); /* a zeroed one */
    tollgate_limiter_t *limiter;
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &limiter));
    tollgate_destroy(limiter);
    tollgate_destroy(limiter);
    EXPECT(tollgate_try_acquire_at(limiter, 2, 1)); /* as if nothing had been done: nothing was */

    /* A copy of an answer is an answer. */
    tollgate_decision_t decision, copy;
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 1, 1, &decision));
    copy = decision;
    memset(&decision, 0, sizeof decision);
    EXPECT(copy.retry_after_ns == SECOND + SECOND / 10 - 1);
    EXPECT(tollgate_strerror(-1) == tollgate_strerror(-1));
    free(memory);

    limiter = NULL;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    tollgate_destroy(limiter);
    limiter = NULL;
    tollgate_destroy(limiter);
    return 0;
}
