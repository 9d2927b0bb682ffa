/* Many initialise one piece of memory at once. With one configuration all are given the same limiter, and no permit is
 * given back by one that comes late; with two, those of one are, and the others are told. */
#include <pthread.h>
#include <string.h>

#include "expect.h"

enum { THREADS = 4, ROUNDS = 2000 };

static tollgate_config_t configs[2];
static void *memory;
static size_t size;
static bool two_kinds;
static pthread_barrier_t begin, end;
static int statuses[THREADS];
static unsigned admitted[THREADS];

static void *initialise(void *index) {
    size_t me = (size_t)index;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&begin);
        tollgate_limiter_t *limiter = NULL;
        /* What can be attached to at all is whole. */
        for (int look = 0; look < 40; look++) {
            int found = tollgate_attach_in(memory, size, &limiter);
            EXPECT(found == TOLLGATE_OK || found == TOLLGATE_E_NOT_READY);
            if (me < THREADS / 2) break;
        }
        limiter = NULL;
        statuses[me] = tollgate_init_in(memory, size, &configs[two_kinds ? me % 2 : 0], &limiter);
        admitted[me] = 0;
        while (limiter && tollgate_try_acquire_at(limiter, 1, 1)) admitted[me]++;
        pthread_barrier_wait(&end);
    }
    return NULL;
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_CALLER, 20, SECOND);
        configs[i] = config;
    }
    configs[1].rules[0].limit = 19;
    GIVES(TOLLGATE_OK, tollgate_size(&configs[0], &size));
    memory = zeros(size);
    for (int kinds = 1; kinds <= 2; kinds++) {
        two_kinds = kinds == 2;
        EXPECT(pthread_barrier_init(&begin, NULL, THREADS + 1) == 0);
        EXPECT(pthread_barrier_init(&end, NULL, THREADS + 1) == 0);
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) EXPECT(pthread_create(&threads[i], NULL, initialise, (void *)i) == 0);
        for (int round = 0; round < ROUNDS; round++) {
            memset(memory, 0, size);
            pthread_barrier_wait(&begin);
            pthread_barrier_wait(&end);
            unsigned total = 0;
            int won = two_kinds && statuses[0] == TOLLGATE_E_CONFIG;
            for (int i = 0; i < THREADS; i++) {
                total += admitted[i];
                EXPECT(statuses[i] == (two_kinds && i % 2 != won ? TOLLGATE_E_CONFIG : TOLLGATE_OK));
            }
            EXPECT(total == (won ? 19u : 20u));
            tollgate_limiter_t *limiter;
            GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &limiter));
        }
        for (int i = 0; i < THREADS; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
    }

    /* Whatever words an initialiser that died has put, the next one finishes, and writes nothing twice. */
    tollgate_limiter_t *limiter;
    memset(memory, 0, size);
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &configs[0], &limiter));
    EXPECT(tollgate_try_acquire_at(limiter, 5, 1));
    uint64_t *words = memory, whole[0x300 / 8];
    memcpy(whole, memory, sizeof whole);
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        for (size_t at = 0; at < sizeof whole / 8; at++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bool put = at > 0 && seed >> 63;
            words[at] = put ? whole[at] : 0;
        }
        GIVES(TOLLGATE_E_NOT_READY, tollgate_attach_in(memory, size, &limiter));
        GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &configs[0], &limiter));
        EXPECT(memcmp(whole, memory, sizeof whole) == 0);
    }
    uint64_t used;
    GIVES(TOLLGATE_OK, tollgate_usage_at(limiter, 0, 1, &used));
    EXPECT(used == 5);

    /* But not if it was another configuration, in whichever words that differs: 0 here, or 0 there. */
    configs[1] = configs[0];
    configs[1].max_cost = 20;
    uint64_t before[0x300 / 8];
    for (int first = 0; first < 2; first++) {
        memset(memory, 0, size);
        GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &configs[first], &limiter));
        memcpy(whole, memory, sizeof whole);
        for (int round = 0; round < 1000; round++) {
            for (size_t at = 0; at < sizeof whole / 8; at++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                words[at] = at == 3 || (at > 0 && seed >> 63) ? whole[at] : 0; /* the seal is put first */
            }
            memcpy(before, memory, sizeof before);
            GIVES(TOLLGATE_E_CONFIG, tollgate_init_in(memory, size, &configs[1 - first], &limiter));
            EXPECT(memcmp(before, memory, sizeof before) == 0);
        }
    }

    /* Nor in memory that is not zeros, wherever it is not. */
    for (size_t at = 0; at < sizeof whole / 8; at++) {
        memset(memory, 0, size);
        words[at] = 0x1234567890;
        memcpy(before, memory, sizeof before);
        limiter = NULL;
        EXPECT(tollgate_init_in(memory, size, &configs[0], &limiter) < 0 && !limiter);
        EXPECT(memcmp(before, memory, sizeof before) == 0);
    }
    free(memory);
    return 0;
}
