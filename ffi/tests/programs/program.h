/* What the test programs share: a check that cannot be compiled out, a configuration, a gate for threads. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tollgate/tollgate.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* Names both values when they differ. */
#define CHECK_EQ(left, right) \
    do { \
        long long left_ = (long long)(left), right_ = (long long)(right); \
        if (left_ != right_) { \
            fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", __FILE__, __LINE__, #left, left_, #right, right_); \
            exit(1); \
        } \
    } while (0)

#define SECOND UINT64_C(1000000000)
#define THREADS_MAX 8

/* One rule, the caller's time, every other field its default. */
static inline tollgate_config_t program_config(uint32_t algorithm, uint64_t limit, uint64_t window_ns) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, limit, window_ns);
    return config;
}

static inline tollgate_limiter_t *program_create(const tollgate_config_t *config) {
    tollgate_limiter_t *limiter = NULL;
    CHECK_EQ(tollgate_create(config, &limiter), TOLLGATE_OK);
    CHECK(limiter != NULL);
    return limiter;
}

/* Time as a clock of the machine tells it. */
static inline uint64_t program_now(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* The same numbers from the same seed, so that a failure comes back. */
static inline uint64_t program_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* How many rounds: the first argument, or what the program thinks right. Under valgrind it is asked for fewer. */
static inline unsigned program_rounds(int argc, char **argv, unsigned usual) {
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : usual;
    CHECK(rounds > 0);
    return rounds;
}

#endif
