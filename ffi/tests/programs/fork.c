/* fork while other threads acquire. A child has the one thread that forked: nothing that another one held may be
 * missing to it, nor the thread that keeps the coarse clock. In shared memory parent and children together get the
 * limit, exactly. */
#include "program.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT 300000
#define T0 (7 * SECOND)
#define THREADS 3

/* What the processes share, beside the limiter. */
struct shared {
    atomic_uint_fast64_t admitted;
};

static struct shared *shared;
static tollgate_limiter_t *in_shared_memory;
static tollgate_limiter_t *on_the_heap;
static const uint32_t clocks[] = {TOLLGATE_CLOCK_PRECISE, TOLLGATE_CLOCK_COARSE, TOLLGATE_CLOCK_MONOTONIC,
                                  TOLLGATE_CLOCK_BOOTTIME};
#define CLOCKS (sizeof clocks / sizeof *clocks)
static tollgate_limiter_t *with_a_clock[CLOCKS];
static atomic_bool stop;

static void *acquire(void *argument) {
    (void)argument;
    while (!atomic_load(&stop)) {
        if (tollgate_try_acquire_at(in_shared_memory, 1, T0)) {
            atomic_fetch_add(&shared->admitted, 1);
        }
        tollgate_try_acquire_at(on_the_heap, 1, T0);
        for (size_t i = 0; i < CLOCKS; i++) {
            tollgate_try_acquire(with_a_clock[i]);
        }
    }
    return NULL;
}

/* In the child: every limiter answers, and its own copy of the heap's gives no more than was left in it. */
static int child(void) {
    alarm(20); /* a call that waits for a thread which is not here would wait for ever */
    for (unsigned call = 0; call < 500; call++) {
        if (tollgate_try_acquire_at(in_shared_memory, 1, T0)) {
            atomic_fetch_add(&shared->admitted, 1);
        }
    }
    uint64_t used = 0, drained = 0;
    CHECK_EQ(tollgate_usage_at(on_the_heap, 0, T0, &used), TOLLGATE_OK);
    while (tollgate_try_acquire_at(on_the_heap, 1, T0)) {
        drained++;
    }
    CHECK_EQ(used + drained, LIMIT);
    struct timespec pause = {0, 2000000};
    uint64_t before[CLOCKS];
    for (size_t i = 0; i < CLOCKS; i++) {
        CHECK(tollgate_check(with_a_clock[i], 1, NULL) >= TOLLGATE_OK);
        before[i] = tollgate_now_ns(clocks[i]);
    }
    nanosleep(&pause, NULL);
    for (size_t i = 0; i < CLOCKS; i++) {
        CHECK(tollgate_now_ns(clocks[i]) - before[i] >= 1000000); /* it goes on */
    }
    return 0;
}

int main(int argc, char **argv) {
    unsigned children = program_rounds(argc, argv, 60);
    tollgate_config_t config = program_config(TOLLGATE_LOG, LIMIT, SECOND);
    on_the_heap = program_create(&config);
    tollgate_coarse_t *coarse = NULL;
    CHECK_EQ(tollgate_coarse_start(100000, &coarse), TOLLGATE_OK);
    for (size_t i = 0; i < CLOCKS; i++) {
        config.clock = clocks[i];
        with_a_clock[i] = program_create(&config);
    }
    config.clock = TOLLGATE_CLOCK_CALLER;
    size_t length = 0;
    CHECK_EQ(tollgate_size(&config, &length), TOLLGATE_OK);
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && shared != MAP_FAILED);
    CHECK_EQ(tollgate_init_in(memory, length, &config, &in_shared_memory), TOLLGATE_OK);

    pthread_t ids[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&ids[i], NULL, acquire, NULL) == 0);
    }
    for (unsigned i = 0; i < children; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            _exit(child());
        }
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 0);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
    }
    uint64_t left = 0;
    while (tollgate_try_acquire_at(in_shared_memory, 1, T0)) {
        left++;
    }
    CHECK_EQ(atomic_load(&shared->admitted) + left, LIMIT);
    tollgate_destroy(on_the_heap);
    for (size_t i = 0; i < CLOCKS; i++) {
        tollgate_destroy(with_a_clock[i]);
    }
    tollgate_coarse_stop(coarse);
    CHECK(munmap(memory, length) == 0);
    printf("fork: %u children\n", children);
    return 0;
}
