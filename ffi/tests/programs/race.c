/* A canary for ThreadSanitizer: one thread writes plainly where the library reads, so that a race must be reported,
 * one side of which lies in the library. */
#include "program.h"

static tollgate_config_t config;
static pthread_barrier_t gate;

static void *write_config(void *argument) {
    (void)argument;
    pthread_barrier_wait(&gate);
    config.rules[0].limit++;
    return NULL;
}

int main(void) {
    size_t size;
    pthread_t id;
    config = program_config(TOLLGATE_LOG, 100, SECOND);
    CHECK(pthread_barrier_init(&gate, NULL, 2) == 0);
    CHECK(pthread_create(&id, NULL, write_config, NULL) == 0);
    pthread_barrier_wait(&gate);
    CHECK_EQ(tollgate_size(&config, &size), TOLLGATE_OK);
    CHECK(pthread_join(id, NULL) == 0);
    return 0;
}
