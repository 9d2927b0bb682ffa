/* A program that knows tollgate only as it is installed. */
#include <stdio.h>

#include <tollgate/tollgate.h>

int main(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_CALLER, 2, 1000);
    tollgate_limiter_t *limiter;
    int status = tollgate_create(&config, &limiter);
    if (status != TOLLGATE_OK) {
        fprintf(stderr, "consumer: %s\n", tollgate_strerror(status));
        return 1;
    }
    int admitted = 0;
    for (int call = 0; call < 5; call++) {
        admitted += tollgate_try_acquire_at(limiter, 1, 7);
    }
    tollgate_decision_t decision;
    status = tollgate_check_at(limiter, 1, 8, &decision);
    tollgate_destroy(limiter);
    return admitted == 2 && status == TOLLGATE_REFUSED && decision.retry_after_ns == 999 &&
                   tollgate_version_number() == TOLLGATE_VERSION_NUMBER
               ? 0
               : 1;
}
