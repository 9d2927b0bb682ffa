/* A profiler's signal arrives inside a call, and its handler calls the same limiter. Nobody waits for anybody, and the
 * two together get the limit, exactly. */
#include "program.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define LIMIT 1000
#define T0 (7 * SECOND)
#define INSIDE 200 /* signals that shall arrive inside a call */

static tollgate_limiter_t *volatile limiter;
static tollgate_limiter_t *with_a_clock[2];
static tollgate_shm_t *region; /* whose key, under the same limit, is shared by the two as well */
static volatile uint64_t now;
static volatile sig_atomic_t inside;      /* the interrupted thread is between the start and the end of a call */
static volatile sig_atomic_t interrupted; /* signals that arrived there */
static volatile sig_atomic_t taken;       /* permits given to the handler */
static volatile sig_atomic_t taken_by_key;
static volatile sig_atomic_t done = 1;    /* there is no limiter to call */
static pthread_t worker;

static bool by_key(void) {
    return tollgate_shm_keyed_try_acquire_at(region, "key", 3, 1, now);
}

static void on_profile(int number) {
    (void)number;
    /* The timer of the process picks any of its threads. */
    if (done || !pthread_equal(pthread_self(), worker)) {
        return;
    }
    tollgate_decision_t decision;
    interrupted += inside;
    taken += tollgate_try_acquire_at(limiter, 1, now);
    int status = tollgate_check_at(limiter, 1, now, &decision);
    CHECK(status == TOLLGATE_OK || status == TOLLGATE_REFUSED);
    taken += status == TOLLGATE_OK;
    taken_by_key += by_key();
    tollgate_try_acquire(with_a_clock[0]);
    tollgate_try_acquire(with_a_clock[1]);
}

/* The timer ticks too seldom to hit a call often; this asks for a signal all the time. */
static void *sender(void *argument) {
    (void)argument;
    struct timespec pause = {0, 20000};
    while (!done) {
        CHECK(pthread_kill(worker, SIGPROF) == 0);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Window after window, until enough signals have come. In each the two together get the limit, of a limiter on the heap
 * (with these flags and shards) or in the region, and of a key. */
static void run(uint32_t algorithm, uint32_t flags, uint32_t shards, bool in_region) {
    tollgate_config_t config = program_config(algorithm, LIMIT, SECOND), limit = config;
    config.flags = flags;
    config.shards = shards;
    config.reserved[1] = flags & TOLLGATE_LIVE && algorithm == TOLLGATE_LOG ? LIMIT : 0;
    limit.clock = 0;
    tollgate_shm_config_t shared = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_CALLER, &limit, 1, 1);
    tollgate_limiter_t *made;
    int fd;
    CHECK_EQ(tollgate_shm_create_memfd("signal", &shared, &fd, &region), TOLLGATE_OK);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(in_region ? tollgate_shm_get(region, 0, &made) : tollgate_create(&config, &made), TOLLGATE_OK);
    limiter = made;
    alarm(60); /* a call that waits for what it has interrupted would wait for ever */
    now = T0;
    interrupted = taken = taken_by_key = done = 0;
    pthread_t id;
    CHECK(pthread_create(&id, NULL, sender, NULL) == 0);
    uint64_t admitted = 0, admitted_by_key = 0, windows = 0;
    for (; interrupted < INSIDE || taken < INSIDE; windows++) {
        bool admit;
        do {
            inside = 1;
            admit = tollgate_try_acquire_at(limiter, 1, now);
            tollgate_try_acquire(with_a_clock[0]);
            tollgate_try_acquire(with_a_clock[1]);
            bool key = by_key();
            inside = 0;
            admitted += admit;
            admitted_by_key += key;
            admit |= key;
        } while (admit);
        now += 2 * SECOND;
    }
    done = 1;
    CHECK(pthread_join(id, NULL) == 0);
    while (tollgate_try_acquire_at(limiter, 1, now)) {
        admitted++;
    }
    while (by_key()) {
        admitted_by_key++;
    }
    CHECK_EQ(admitted + (uint64_t)taken, (windows + 1) * LIMIT);
    CHECK_EQ(admitted_by_key + (uint64_t)taken_by_key, (windows + 1) * LIMIT);
    printf("signal: algorithm %u, flags %u, %u shards%s: %d signals inside a call, %d and %d permits to the handler, %llu windows\n",
           algorithm, flags, shards, in_region ? ", in a region" : "", (int)interrupted, (int)taken, (int)taken_by_key, (unsigned long long)windows);
    tollgate_destroy(limiter);
    tollgate_shm_close(region);
}

int main(void) {
    worker = pthread_self();
    tollgate_config_t config = program_config(TOLLGATE_LOG, LIMIT, SECOND);
    config.clock = TOLLGATE_CLOCK_PRECISE;
    with_a_clock[0] = program_create(&config);
    config.clock = TOLLGATE_CLOCK_MONOTONIC;
    with_a_clock[1] = program_create(&config);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_profile;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    CHECK(setitimer(ITIMER_PROF, &every, NULL) == 0);
    for (int in_region = 0; in_region < 2; in_region++) {
        run(TOLLGATE_LOG, 0, 0, in_region);
        run(TOLLGATE_WINDOW, 0, 0, in_region);
        run(TOLLGATE_TOKEN_BUCKET, 0, 0, in_region);
    }
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_WINDOW; algorithm++) {
        run(algorithm, TOLLGATE_STATS, 0, false);
        run(algorithm, TOLLGATE_STATS, 2, false);
        run(algorithm, TOLLGATE_STATS | TOLLGATE_LIVE, 0, false);
        run(algorithm, TOLLGATE_STATS | TOLLGATE_LIVE, 2, false);
    }
    tollgate_destroy(with_a_clock[0]);
    tollgate_destroy(with_a_clock[1]);
    return 0;
}
