/* A canary for ThreadSanitizer: `tollgate_reset` needs exclusive access, and here it does not have it. The race, both
 * sides of which lie in the library, must be reported. */
#include "program.h"

#define T0 (7 * SECOND)

static tollgate_limiter_t *limiter;
static pthread_barrier_t gate;

static void *reset(void *argument) {
    (void)argument;
    pthread_barrier_wait(&gate);
    CHECK_EQ(tollgate_reset(limiter), TOLLGATE_OK);
    return NULL;
}

int main(void) {
    pthread_t id;
    tollgate_config_t config = program_config(TOLLGATE_LOG, 100, SECOND);
    limiter = program_create(&config);
    CHECK(pthread_barrier_init(&gate, NULL, 2) == 0);
    CHECK(pthread_create(&id, NULL, reset, NULL) == 0);
    pthread_barrier_wait(&gate);
    tollgate_try_acquire_at(limiter, 1, T0);
    CHECK(pthread_join(id, NULL) == 0);
    tollgate_destroy(limiter);
    return 0;
}
