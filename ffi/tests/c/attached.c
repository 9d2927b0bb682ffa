/* Attaching and initialising look at the state as well. A state that calls have made is found good, at any time, while
 * they make it; one that is found good comes to an end with every call, whatever wrote it. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

enum { ROUNDS = 2000 };

static uint64_t seed = 1;

static uint64_t below(uint64_t bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 20) % bound;
}

static tollgate_limiter_t *limiter;
static volatile bool over;

/* Time goes on by itself, a little differently for each thread, and jumps ahead now and then. */
static void *acquire(void *index) {
    uint64_t now = 1, mine = (uint64_t)(size_t)index;
    for (uint64_t call = 0; !over; call++) {
        now += call % 7 * 10 + mine;
        if (call % 100000 == 0) now += SECOND << (call / 100000 % 20);
        tollgate_try_acquire_at(limiter, 1 + call % 5 / 4, now);
    }
    return NULL;
}

static void while_others_acquire(const tollgate_config_t *config) {
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_size(config, &size));
    void *memory = zeros(size);
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, config, &limiter));
    pthread_t threads[3];
    over = false;
    for (size_t i = 0; i < 3; i++) EXPECT(pthread_create(&threads[i], NULL, acquire, (void *)i) == 0);
    for (int look = 0; look < 2000; look++) {
        tollgate_limiter_t *found;
        GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &found));
        GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, config, &found));
    }
    over = true;
    for (size_t i = 0; i < 3; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
    free(memory);
}

static void call_all(tollgate_limiter_t *it, uint64_t now) {
    for (uint64_t n = 0; n < 4; n++) {
        uint64_t used;
        tollgate_decision_t decision;
        EXPECT(tollgate_peek_at(it, n, now, &decision) >= 0);
        tollgate_try_acquire_at(it, n, now);
        EXPECT(tollgate_check_at(it, n, now + n, &decision) >= 0);
        GIVES(TOLLGATE_OK, tollgate_usage_at(it, 0, now, &used));
    }
}

/* What is good may say anything, and does so. */
static void scribbled(const tollgate_config_t *config) {
    size_t size, accepted = 0;
    GIVES(TOLLGATE_OK, tollgate_size(config, &size));
    uint64_t *memory = zeros(size), *kept = zeros(size);
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, config, &limiter));
    size_t described = memory[1] >> 32;
    EXPECT(config->shards ? described > 0x300 : described == 0x300);
    size_t words = (size - described) / 8;
    for (int round = 0; round < ROUNDS; round++) {
        memset(memory, 0, size);
        GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, config, &limiter));
        for (uint64_t call = below(12); call > 0; call--) tollgate_try_acquire_at(limiter, 1 + below(2), below(5) * SECOND / 4);
        uint64_t scribbles = round % 3 == 0 ? words : 1 + below(3);
        for (uint64_t i = 0; i < scribbles; i++) {
            uint64_t at = described / 8 + (scribbles == words ? i : below(words));
            if (i < 2 && below(2)) at = described / 8 + below(3);
            uint64_t bits = below(1ull << 44) << below(21);
            memory[at] = below(2) ? bits : memory[at] ^ 1ull << below(64);
        }
        memcpy(kept, memory, size);
        tollgate_limiter_t *found = NULL;
        int status = tollgate_attach_in(memory, size, &found);
        EXPECT(memcmp(kept, memory, size) == 0);
        if (status != TOLLGATE_OK) {
            GIVES(TOLLGATE_E_CORRUPT, status);
            GIVES(TOLLGATE_E_CORRUPT, tollgate_init_in(memory, size, config, &found));
            /* Nor does a limiter begin around it. */
            memset(memory, 0, described);
            GIVES(TOLLGATE_E_CORRUPT, tollgate_init_in(memory, size, config, &found));
            EXPECT(!found && memory[0] == 0 && memcmp(memory, memory + 1, described - 8) == 0);
            continue;
        }
        accepted++;
        call_all(found, below(8) * SECOND / 4);
        call_all(found, SECOND << below(32));
        GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &found));
    }
    EXPECT(accepted > 0 && accepted < ROUNDS);
    free(memory);
    free(kept);
}

int main(void) {
    alarm(300); /* a call without end */
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_WINDOW; algorithm++) {
        tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, 7, SECOND);
        if (!spreads()) break;
        config.shards = 3;
        scribbled(&config);
        config.rules[0].window_ns = 2000;
        config.rules[0].limit = 3;
        config.shards = 2;
        while_others_acquire(&config);
    }
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_GCRA; algorithm++) {
        for (uint32_t max_cost = 0; max_cost < 2; max_cost++) {
            for (uint64_t limit = 1; limit < 30; limit = 3 * limit + 1) {
                tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, limit, SECOND);
                config.max_cost = max_cost;
                scribbled(&config);
                config.rules[0].window_ns = 2000; /* so that all is overwritten all the time */
                if (algorithm == TOLLGATE_WINDOW && limit > 3) continue;
                while_others_acquire(&config);
            }
        }
    }
    return 0;
}
