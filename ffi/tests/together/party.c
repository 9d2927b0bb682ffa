/* A process that takes what it can from a region, until it is killed: party REGION LIMIT WINDOW_NS KEYS JOURNAL
 *
 * Each admission is appended to the journal as four words: the subject (0: the limiter by index, else the key of that number, in
 * digits), and the times before the call and of the decision, between which it was admitted; and a zero, since a
 * write that reaches over two pages may be killed between them. party.rs does the same. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tollgate/tollgate.h>

static void must(int status, const char *what) {
    if (status != TOLLGATE_OK) {
        fprintf(stderr, "party.c: %s: %s\n", what, tollgate_strerror(status));
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        return fprintf(stderr, "usage: party REGION LIMIT WINDOW_NS KEYS JOURNAL\n"), 2;
    }
    uint64_t keys = strtoull(argv[4], NULL, 10);
    tollgate_config_t limit =
        TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, 0, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    tollgate_shm_config_t config = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_MONOTONIC, &limit, 1, keys);
    config.flags = TOLLGATE_REFUSE_WHEN_FULL;
    tollgate_shm_t *region;
    tollgate_limiter_t *limiter;
    must(tollgate_shm_open(argv[1], &config, &region), "open");
    must(tollgate_shm_get(region, 0, &limiter), "get");
    int journal = open(argv[5], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (journal < 0) {
        return perror(argv[5]), 1;
    }
    for (uint64_t random = (uint64_t)getpid() << 32 | 1;;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t subject = (random >> 33) % (keys + 1), before = tollgate_now_ns(TOLLGATE_CLOCK_MONOTONIC);
        tollgate_decision_t decision;
        char key[24];
        size_t len = (size_t)snprintf(key, sizeof key, "%" PRIu64, subject);
        int status = subject == 0 ? tollgate_check(limiter, 1, &decision)
                                  : tollgate_shm_keyed_check(region, key, len, 1, &decision);
        if (status < TOLLGATE_OK) {
            must(status, "check");
        }
        uint64_t entry[] = {subject, before, decision.now_ns, 0};
        if (status == TOLLGATE_OK && write(journal, entry, sizeof entry) != sizeof entry) {
            return perror("write"), 1;
        }
    }
}
