/* What the programs assert with: the line and both values, then the end. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <tollgate/tollgate.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* That a call returns this status. */
#define GIVES(status, call) \
    do { \
        int found_ = (call); \
        if (found_ != (status)) { \
            fprintf(stderr, "%s:%d: %s gives %s, not %s\n", __FILE__, __LINE__, #call, \
                    tollgate_status_name(found_), #status); \
            exit(1); \
        } \
        given(status); \
    } while (0)

/* The statuses seen so far. */
static unsigned long seen_;

static inline void given(int status) {
    seen_ |= 1ul << (status + 20);
}

static const uint64_t SECOND = 1000000000;

/* Whether the library was built without clocks. */
static inline bool bare(void) {
    return tollgate_now_ns(TOLLGATE_CLOCK_PRECISE) == UINT64_MAX;
}

/* Whether the library was built with what takes memory in pieces: rules that change, and limiters by key. */
static inline bool lives(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_FIXED, TOLLGATE_CLOCK_CALLER, 1, SECOND);
    tollgate_limiter_t *limiter;
    config.flags = TOLLGATE_LIVE;
    if (tollgate_create(&config, &limiter) != TOLLGATE_OK) return false;
    tollgate_destroy(limiter);
    return true;
}

/* Whether the library was built with shards. */
static inline bool spreads(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_CALLER, 2, SECOND);
    size_t size;
    config.shards = 2;
    return tollgate_size(&config, &size) == TOLLGATE_OK;
}

/* Zeroed memory for a limiter. */
static inline void *zeros(size_t bytes) {
    void *memory = NULL;
    EXPECT(posix_memalign(&memory, tollgate_align(), bytes) == 0);
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)memory)[i] = 0;
    return memory;
}

#endif
