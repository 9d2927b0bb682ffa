/* F102: the library is unloaded while threads that used it live on. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "expect.h"

/* By data pointers: ISO C has no conversion from one to a function. */
#define FIND(name) \
    do { \
        *(void **)(&name##_) = dlsym(library, "tollgate_" #name); \
        EXPECT(name##_ != NULL); \
    } while (0)

static int (*create_)(const tollgate_config_t *, tollgate_limiter_t **);
static void (*destroy_)(tollgate_limiter_t *);
static bool (*try_acquire_)(tollgate_limiter_t *);
static bool (*try_acquire_at_)(tollgate_limiter_t *, uint64_t, uint64_t);

static tollgate_limiter_t *limiter;
static pthread_barrier_t used, unloaded;

static void *use(void *stays) {
    for (uint64_t now = 0; now < 1000; now++) {
        try_acquire_at_(limiter, 1, now);
        try_acquire_(limiter);
    }
    pthread_barrier_wait(&used);
    if (stays) pthread_barrier_wait(&unloaded);
    return NULL; /* and now its thread-local destructors */
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    for (int round = 0; round < 20; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        EXPECT(library);
        FIND(create);
        FIND(destroy);
        FIND(try_acquire);
        FIND(try_acquire_at);
        tollgate_config_t config = TOLLGATE_CONFIG_INIT(
            TOLLGATE_LOG, bare() ? TOLLGATE_CLOCK_CALLER : TOLLGATE_CLOCK_PRECISE, 100, SECOND);
        EXPECT(create_(&config, &limiter) == TOLLGATE_OK);
        EXPECT(pthread_barrier_init(&used, NULL, 5) == 0 && pthread_barrier_init(&unloaded, NULL, 3) == 0);
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) EXPECT(pthread_create(&threads[i], NULL, use, i < 2 ? NULL : threads) == 0);
        pthread_barrier_wait(&used);
        for (int i = 0; i < 2; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
        destroy_(limiter);
        EXPECT(dlclose(library) == 0);
        pthread_barrier_wait(&unloaded);
        for (int i = 2; i < 4; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    return 0;
}
