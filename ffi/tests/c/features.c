/* Says which features the library was built with. */
#include "expect.h"

/* A library without regions has none of their functions. */
#pragma weak tollgate_shm_open

int main(void) {
    printf("%s%s%s%s\n", bare() ? "" : "std ", lives() ? "heap " : "", spreads() ? "shards " : "",
           tollgate_shm_open ? "shm" : "");
    return 0;
}
