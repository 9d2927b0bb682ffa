/* The library is loaded, used and unloaded again and again, and once while threads that have used it still live.
 * Usage: unload LIBRARY [ROUNDS] */
#include "program.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

/* The functions by name: this program is not linked with the library. */
struct library {
    void *handle;
    __typeof__(&tollgate_create) create;
    __typeof__(&tollgate_destroy) destroy;
    __typeof__(&tollgate_try_acquire) try_acquire;
    __typeof__(&tollgate_check) check;
    __typeof__(&tollgate_coarse_start) coarse_start;
    __typeof__(&tollgate_coarse_stop) coarse_stop;
};

/* A thread that uses the limiter and lives until it is told to go. */
struct user {
    const struct library *library;
    tollgate_limiter_t *limiter;
    pthread_barrier_t *used;
    pthread_barrier_t *leave;
};

static void *symbol(void *handle, const char *name) {
    void *address = dlsym(handle, name);
    if (address == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return address;
}

/* POSIX lets a data pointer be a function's; ISO C has no cast for it. */
#define LOAD(library, name) \
    do { \
        void *address_ = symbol((library)->handle, "tollgate_" #name); \
        memcpy(&(library)->name, &address_, sizeof address_); \
    } while (0)

static struct library load(const char *path) {
    struct library library;
    library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library.handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    LOAD(&library, create);
    LOAD(&library, destroy);
    LOAD(&library, try_acquire);
    LOAD(&library, check);
    LOAD(&library, coarse_start);
    LOAD(&library, coarse_stop);
    return library;
}

static tollgate_limiter_t *limiter_of(const struct library *library, uint32_t clock) {
    tollgate_config_t config = program_config(TOLLGATE_LOG, 100, SECOND);
    config.clock = clock;
    tollgate_limiter_t *limiter = NULL;
    CHECK_EQ(library->create(&config, &limiter), TOLLGATE_OK);
    return limiter;
}

static void *use(void *argument) {
    struct user *user = argument;
    CHECK(user->library->check(user->limiter, 1, NULL) == TOLLGATE_OK);
    if (user->used != NULL) {
        pthread_barrier_wait(user->used);
        pthread_barrier_wait(user->leave); /* by now the library is gone */
    }
    return NULL;
}

/* A fork runs the handlers that a library has registered: none may be left of one that is gone. */
static void fork_once(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void again_and_again(const char *path, unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++) {
        struct library library = load(path);
        tollgate_limiter_t *limiter = limiter_of(&library, TOLLGATE_CLOCK_MONOTONIC);
        CHECK(library.try_acquire(limiter));
        library.destroy(limiter);
        CHECK(dlclose(library.handle) == 0);
        if (round % 16 == 0) {
            fork_once();
        }
    }
    CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL); /* it was gone, each time */
}

/* The coarse clock has a thread and a handler for forks: both must be gone before the library is. */
static void with_the_clocks_thread(const char *path) {
    struct library library = load(path);
    tollgate_coarse_t *coarse = NULL;
    CHECK_EQ(library.coarse_start(1000000, &coarse), TOLLGATE_OK);
    tollgate_limiter_t *limiter = limiter_of(&library, TOLLGATE_CLOCK_COARSE);
    CHECK(library.try_acquire(limiter));
    library.destroy(limiter);
    library.coarse_stop(coarse);
    CHECK(dlclose(library.handle) == 0);
    fork_once();
}

static void while_threads_live(const char *path, uint32_t clock) {
    struct library library = load(path);
    tollgate_limiter_t *limiter = limiter_of(&library, clock);
    pthread_barrier_t used, leave;
    pthread_t ids[THREADS];
    struct user users[THREADS];
    CHECK(pthread_barrier_init(&used, NULL, THREADS / 2 + 1) == 0);
    CHECK(pthread_barrier_init(&leave, NULL, THREADS / 2 + 1) == 0);
    for (int i = 0; i < THREADS; i++) {
        bool stays = i >= THREADS / 2;
        users[i] = (struct user){&library, limiter, stays ? &used : NULL, stays ? &leave : NULL};
        CHECK(pthread_create(&ids[i], NULL, use, &users[i]) == 0);
    }
    for (int i = 0; i < THREADS / 2; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
    }
    pthread_barrier_wait(&used);
    library.destroy(limiter);
    CHECK(dlclose(library.handle) == 0);
    pthread_barrier_wait(&leave);
    for (int i = THREADS / 2; i < THREADS; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
    }
    fork_once();
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    unsigned rounds = program_rounds(argc - 1, argv + 1, 200);
    again_and_again(argv[1], rounds);
    for (unsigned round = 0; round < rounds / 10; round++) {
        while_threads_live(argv[1], TOLLGATE_CLOCK_MONOTONIC);
    }
    while_threads_live(argv[1], TOLLGATE_CLOCK_PRECISE);
    for (unsigned round = 0; round < 3; round++) {
        with_the_clocks_thread(argv[1]);
    }
    printf("unload: %u rounds\n", rounds);
    return 0;
}
