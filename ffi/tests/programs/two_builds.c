/* A limiter that the library with clocks made is one to the library without, and the other way round; but for a clock.
 * The library without may lack shards, too, and says so of a limiter that has some.
 * Usage: two_builds WITH_CLOCKS WITHOUT [shards] */
#include "program.h"

#include <dlfcn.h>

/* The functions of one library by name, since both define the same. */
struct library {
    __typeof__(&tollgate_init_in) init_in;
    __typeof__(&tollgate_attach_in) attach_in;
    __typeof__(&tollgate_try_acquire_at) try_acquire_at;
};

static void *symbol(void *handle, const char *name) {
    void *address = dlsym(handle, name);
    CHECK(address != NULL);
    return address;
}

static struct library load(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(handle != NULL);
    void *found[] = {symbol(handle, "tollgate_init_in"), symbol(handle, "tollgate_attach_in"),
                     symbol(handle, "tollgate_try_acquire_at")};
    struct library library;
    memcpy(&library, found, sizeof library); /* ISO C has no cast for it */
    return library;
}

int main(int argc, char **argv) {
    CHECK(argc == 3 || (argc == 4 && strcmp(argv[3], "shards") == 0));
    const bool spread = argc == 4;
    enum { BYTES = 4096 };
    struct library both[] = {load(argv[1]), load(argv[2])};
    void *memory = NULL;
    CHECK(posix_memalign(&memory, 128, BYTES) == 0);
    tollgate_limiter_t *limiter = NULL;
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_GCRA; algorithm++) {
        for (int maker = 0; maker < 4; maker++) {
            const struct library *one = &both[maker % 2], *other = &both[1 - maker % 2];
            tollgate_config_t config = program_config(algorithm, 2, SECOND);
            config.shards = spread && maker >= 2 && algorithm <= TOLLGATE_WINDOW ? 2 : 0;
            config.flags = maker >= 2 ? TOLLGATE_STATS : 0;
            memset(memory, 0, BYTES);
            CHECK_EQ(one->init_in(memory, BYTES, &config, &limiter), TOLLGATE_OK);
            CHECK(one->try_acquire_at(limiter, 1, SECOND));
            CHECK_EQ(other->attach_in(memory, BYTES, &limiter), TOLLGATE_OK);
            CHECK_EQ(other->init_in(memory, BYTES, &config, &limiter), TOLLGATE_OK);
            CHECK(other->try_acquire_at(limiter, 1, SECOND) && !one->try_acquire_at(limiter, 1, SECOND));
        }
    }
    tollgate_config_t config = program_config(TOLLGATE_LOG, 2, SECOND);
    if (!spread) {
        config.shards = 2;
        memset(memory, 0, BYTES);
        CHECK_EQ(both[0].init_in(memory, BYTES, &config, &limiter), TOLLGATE_OK);
        CHECK_EQ(both[1].attach_in(memory, BYTES, &limiter), TOLLGATE_E_UNSUPPORTED);
        CHECK_EQ(both[1].init_in(memory, BYTES, &config, &limiter), TOLLGATE_E_UNSUPPORTED);
        config.shards = 0;
    }
    config.clock = TOLLGATE_CLOCK_MONOTONIC;
    memset(memory, 0, BYTES);
    CHECK_EQ(both[0].init_in(memory, BYTES, &config, &limiter), TOLLGATE_OK);
    CHECK_EQ(both[1].attach_in(memory, BYTES, &limiter), TOLLGATE_E_UNSUPPORTED);
    CHECK_EQ(both[1].init_in(memory, BYTES, &config, &limiter), TOLLGATE_E_UNSUPPORTED);
    free(memory);
    return 0;
}
