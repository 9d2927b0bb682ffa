/* Shards: a thread has one of its own, and all of them lie in the limiter's memory, whoever made it. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { THREADS = 8 };

static pthread_barrier_t gate;

static tollgate_config_t of(uint32_t algorithm, uint64_t limit, uint32_t shards) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, limit, SECOND);
    config.shards = shards;
    return config;
}

/* Zeros that processes share. */
static void *mapped(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED);
    return memory;
}

static void *take_one(void *limiter) {
    pthread_barrier_wait(&gate); /* all stacks are there at once */
    EXPECT(tollgate_try_acquire_at(limiter, 1, SECOND));
    pthread_barrier_wait(&gate);
    return NULL;
}

/* How many shards have been written to: they lie behind the description and a line. */
static unsigned touched(const unsigned char *memory, size_t size, unsigned shards) {
    uint32_t header;
    memcpy(&header, memory + 12, sizeof header);
    size_t stride = (size - header - 128) / shards;
    unsigned count = 0;
    for (unsigned shard = 0; shard < shards; shard++) {
        const unsigned char *state = memory + header + 128 + shard * stride;
        bool used = false;
        for (size_t at = 0; at < stride; at++) used |= state[at] != 0;
        count += used;
    }
    return count;
}

/* Threads that call at once begin apart: each at a shard of its own, or, by their stacks, at several. */
static void homes(uint32_t algorithm) {
    tollgate_config_t config = of(algorithm, 100 * THREADS, THREADS);
    tollgate_limiter_t *limiter;
    pthread_t threads[THREADS];
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
    void *memory = mapped(size);
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &limiter));
    EXPECT(touched(memory, size, THREADS) == 0);
    EXPECT(pthread_barrier_init(&gate, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) EXPECT(pthread_create(&threads[i], NULL, take_one, limiter) == 0);
    for (int i = 0; i < THREADS; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
    EXPECT(pthread_barrier_destroy(&gate) == 0);
    EXPECT(touched(memory, size, THREADS) >= (bare() ? 3 : THREADS - 1));
    /* A thread stays where it is. */
    GIVES(TOLLGATE_OK, tollgate_reset(limiter));
    for (int i = 0; i < 50; i++) EXPECT(tollgate_try_acquire_at(limiter, 1, SECOND));
    EXPECT(touched(memory, size, THREADS) == 1);
    munmap(memory, size);
}

/* Processes share them, and one that is killed takes nothing but its own permits. */
static void processes(uint32_t algorithm) {
    tollgate_config_t config = of(algorithm, 90, 4);
    tollgate_limiter_t *limiter, *found;
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
    void *memory = mapped(size);
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &limiter));
    int admitted = 0;
    for (int child = 0; child < 4; child++) {
        fflush(NULL);
        pid_t pid = fork();
        EXPECT(pid >= 0);
        if (pid == 0) {
            int taken = 0;
            GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &found));
            while (taken < 20 && tollgate_try_acquire_at(found, 1, SECOND)) taken++;
            _exit(taken);
        }
        int status = 0;
        EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        admitted += WEXITSTATUS(status);
    }
    EXPECT(admitted == 80);
    while (tollgate_try_acquire_at(limiter, 1, SECOND)) admitted++;
    EXPECT(admitted == 90);
    uint64_t used;
    GIVES(TOLLGATE_OK, tollgate_usage_at(limiter, 0, SECOND, &used));
    EXPECT(used == 90);
    /* One that has no shards, or others, is another one. */
    config.shards = 1;
    GIVES(TOLLGATE_E_CONFIG, tollgate_init_in(memory, size, &config, &found));
    config.shards = 3;
    GIVES(TOLLGATE_E_CONFIG, tollgate_init_in(memory, size, &config, &found));
    for (size_t len = 0; len < size; len += 8) GIVES(TOLLGATE_E_SIZE, tollgate_attach_in(memory, len, &found));
    munmap(memory, size);
}

/* Memory that is cut off is not read beyond its end: there lies a page that can not be. */
static void cut_off(uint32_t algorithm) {
    tollgate_config_t config = of(algorithm, 5, 2);
    tollgate_limiter_t *limiter, *found = NULL;
    size_t size, page = (size_t)sysconf(_SC_PAGESIZE);
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
    unsigned char *whole = mapped(size), *pages = mapped(2 * page);
    GIVES(TOLLGATE_OK, tollgate_init_in(whole, size, &config, &limiter));
    EXPECT(size < page && mprotect(pages + page, page, PROT_NONE) == 0);
    for (size_t len = 0; len < size; len += tollgate_align()) {
        unsigned char *memory = pages + page - len;
        memcpy(memory, whole, len);
        GIVES(TOLLGATE_E_SIZE, tollgate_attach_in(memory, len, &found));
        GIVES(TOLLGATE_E_SIZE, tollgate_init_in(memory, len, &config, &found));
    }
    munmap(whole, size);
    munmap(pages, 2 * page);
}

/* What a part can not bear is never had; what it can, wherever it lies. */
static void costs(void) {
    tollgate_config_t config = of(TOLLGATE_LOG, 10, 4); /* 3, 3, 2, 2 */
    tollgate_limiter_t *limiter;
    tollgate_decision_t decision;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    GIVES(TOLLGATE_NEVER, tollgate_check_at(limiter, 4, SECOND, &decision));
    EXPECT(decision.limit == 10 && decision.remaining == 10);
    for (int i = 0; i < 4; i++) EXPECT(tollgate_try_acquire_at(limiter, 2, SECOND + (uint64_t)i));
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 2, SECOND + 10, &decision));
    EXPECT(decision.remaining == 2 && decision.retry_after_ns > 0 && decision.retry_after_ns < SECOND);
    EXPECT(tollgate_try_acquire_at(limiter, 1, SECOND + 10) && tollgate_try_acquire_at(limiter, 1, SECOND + 10));
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 1, SECOND + 10, &decision));
    EXPECT(decision.remaining == 0 && decision.retry_after_ns == SECOND - 10);
    tollgate_destroy(limiter);
}

/* A library without them says so, of a limiter that another one made as well. */
static void unsupported(uint32_t algorithm) {
    tollgate_config_t config = of(algorithm, 90, 1);
    tollgate_limiter_t *limiter = NULL;
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
    uint32_t *memory = zeros(size);
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &limiter));
    memory[8 + offsetof(tollgate_config_t, shards) / 4] = 2;
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_attach_in(memory, size, &limiter));
    free(memory);
}

int main(void) {
    if (!spreads()) {
        unsupported(TOLLGATE_LOG);
        unsupported(TOLLGATE_WINDOW);
        return 0;
    }
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_WINDOW; algorithm++) {
        homes(algorithm);
        processes(algorithm);
        cut_off(algorithm);
    }
    costs();
    return 0;
}
