/* Two Rust static libraries in one program, each with a standard library of its own. */
#include "program.h"

uint64_t other_sum(uint64_t count);

int main(void) {
    tollgate_config_t config = program_config(TOLLGATE_LOG, 3, SECOND);
    tollgate_limiter_t *limiter = program_create(&config);
    for (int call = 0; call < 5; call++) {
        CHECK_EQ(tollgate_try_acquire_at(limiter, 1, 0), call < 3);
        CHECK_EQ(other_sum(1000), 499500);
    }
    tollgate_destroy(limiter);
    printf("two_libraries: both answer\n");
    return 0;
}
