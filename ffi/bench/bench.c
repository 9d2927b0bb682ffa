/* What a call from C costs, beside the same call inlined into Rust, an empty call into the same library, and the log that
 * people write in C: times in a ring under a pthread mutex.
 *
 * Time is passed in and one thread calls. Rows take turns, so what else the machine does strikes all alike; what is
 * printed are medians of the rounds' times and ratios. Every round asserts that its calls went the way the row names.
 * Usage: bench NAME [ROUNDS [CALLS]], where NAME says how the library was linked. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tollgate/tollgate.h>

#define SECOND UINT64_C(1000000000)
#define START (1000 * SECOND)
#define ROUNDS_MAX 1001

/* Calls a limiter (or what stands in for one) once for every step of time: the number admitted. */
typedef uint64_t calls_fn(void *subject, uint64_t count, uint64_t now_ns, uint64_t step_ns);

/* The same limiters and loops in Rust: inlined/src/lib.rs. */
void *inlined_log(uint64_t limit, uint64_t window_ns, uint64_t max_cost);
void *inlined_window(uint64_t limit, uint64_t window_ns, uint64_t max_cost);
calls_fn inlined_log_calls, inlined_window_calls;

/* A row: calls of one kind, which are all admitted or all refused. */
struct row {
    calls_fn *calls;
    void *subject;
    uint64_t now_ns;
    uint64_t step_ns;
    bool admits;
    double ns[ROUNDS_MAX];
};

/* A limiter to compare: from the library, and inlined. */
struct kind {
    const char *name;
    uint32_t algorithm;
    uint32_t max_cost;
    uint64_t limit; /* where calls are admitted */
    void *(*inlined)(uint64_t limit, uint64_t window_ns, uint64_t max_cost);
    calls_fn *inlined_calls;
    /* What an admission from C may cost: so many times so many CASes, and 3 ns. */
    double times;
    int floor;
};

enum { EMPTY, CAS, TWO_CAS, FLOORS };
enum { MUTEXED_ADMITTED, MUTEXED_REFUSED, MUTEXED };
enum { ADMITTED, ADMITTED_INLINED, REFUSED, REFUSED_INLINED, WAYS };

/* A counter's limit is large where it admits, so that nearly all calls fall into its newest bucket, as they do where
 * millions are checked. */
static const struct kind kinds[] = {
    {"log", TOLLGATE_LOG, 0, 1000, inlined_log, inlined_log_calls, 1.5, TWO_CAS},
    {"log of single permits", TOLLGATE_LOG, 1, 1000, inlined_log, inlined_log_calls, 1.5, TWO_CAS},
    {"counter", TOLLGATE_WINDOW, 0, 100000000, inlined_window, inlined_window_calls, 1.6, CAS},
};
#define KINDS (sizeof kinds / sizeof *kinds)
#define LIMIT_REFUSED 1000

/* Hides from the compiler what a value is. */
#define OPAQUE(value) __asm__ volatile("" : "+r"(value))

static uint64_t empty_calls(void *subject, uint64_t count, uint64_t now_ns, uint64_t step_ns) {
    (void)subject, (void)now_ns, (void)step_ns;
    uint64_t returned = 0;
    for (uint64_t i = 0; i < count; i++) {
        returned += tollgate_abi_version() == TOLLGATE_ABI_VERSION;
    }
    return returned;
}

static bool cas(_Atomic uint64_t *word) {
    uint64_t seen = atomic_load_explicit(word, memory_order_acquire);
    return atomic_compare_exchange_strong_explicit(word, &seen, seen + 1, memory_order_acq_rel, memory_order_relaxed);
}

static uint64_t cas_calls(void *subject, uint64_t count, uint64_t now_ns, uint64_t step_ns) {
    (void)now_ns, (void)step_ns;
    uint64_t done = 0;
    for (uint64_t i = 0; i < count; i++) {
        OPAQUE(subject);
        done += cas(subject);
    }
    return done;
}

static uint64_t two_cas_calls(void *subject, uint64_t count, uint64_t now_ns, uint64_t step_ns) {
    (void)now_ns, (void)step_ns;
    uint64_t done = 0;
    for (uint64_t i = 0; i < count; i++) {
        OPAQUE(subject);
        done += cas(subject) && cas(subject);
    }
    return done;
}

static uint64_t library_calls(void *subject, uint64_t count, uint64_t now_ns, uint64_t step_ns) {
    uint64_t admitted = 0;
    for (uint64_t i = 0; i < count; i++) {
        admitted += tollgate_try_acquire_at(subject, 1, now_ns);
        now_ns += step_ns;
    }
    return admitted;
}

/* The textbook log: what has left the window is removed by every call. */
struct mutexed {
    pthread_mutex_t mutex;
    uint64_t head, count;
    uint64_t times_ns[LIMIT_REFUSED];
};

static bool mutexed_try_acquire_at(struct mutexed *log, uint64_t now_ns) {
    pthread_mutex_lock(&log->mutex);
    while (log->count > 0 && log->times_ns[log->head] + SECOND <= now_ns) {
        log->head = log->head + 1 == LIMIT_REFUSED ? 0 : log->head + 1;
        log->count--;
    }
    bool admits = log->count < LIMIT_REFUSED;
    if (admits) {
        uint64_t tail = log->head + log->count++;
        log->times_ns[tail >= LIMIT_REFUSED ? tail - LIMIT_REFUSED : tail] = now_ns;
    }
    pthread_mutex_unlock(&log->mutex);
    return admits;
}

static uint64_t mutexed_calls(void *subject, uint64_t count, uint64_t now_ns, uint64_t step_ns) {
    uint64_t admitted = 0;
    for (uint64_t i = 0; i < count; i++) {
        OPAQUE(subject);
        admitted += mutexed_try_acquire_at(subject, now_ns);
        now_ns += step_ns;
    }
    return admitted;
}

/* Sleeps to the end of the program: a C library may take a mutex without an atomic while there is one thread alone. */
static void *second_thread(void *unused) {
    for (;;) {
        pause();
    }
    return unused;
}

/* Two words on lines of their own. */
static struct { _Alignas(128) _Atomic uint64_t word; } words[2];

static struct row floors[FLOORS] = {
    [EMPTY] = {.calls = empty_calls, .admits = true},
    [CAS] = {.calls = cas_calls, .subject = &words[0], .admits = true},
    [TWO_CAS] = {.calls = two_cas_calls, .subject = &words[1], .admits = true},
};
static struct row rows[KINDS][WAYS];
static struct mutexed mutexed[MUTEXED] = {{.mutex = PTHREAD_MUTEX_INITIALIZER}, {.mutex = PTHREAD_MUTEX_INITIALIZER}};
static struct row mutexed_rows[MUTEXED] = {
    [MUTEXED_ADMITTED] = {.calls = mutexed_calls, .subject = &mutexed[MUTEXED_ADMITTED], .now_ns = START,
                          .step_ns = 2 * SECOND / LIMIT_REFUSED, .admits = true},
    [MUTEXED_REFUSED] = {.calls = mutexed_calls, .subject = &mutexed[MUTEXED_REFUSED], .now_ns = START},
};

static void fail(const char *name, const char *why) {
    fprintf(stderr, "bench: %s: %s\n", name, why);
    exit(1);
}

/* The limiter of a kind, from the library or inlined. */
static void *make(const struct kind *kind, uint64_t limit, bool inlined) {
    if (inlined) {
        /* In C no largest cost means any up to the limit; in Rust that is said. */
        void *subject = kind->inlined(limit, SECOND, kind->max_cost == 0 ? limit : kind->max_cost);
        if (subject == NULL) {
            fail(kind->name, "the core refuses the configuration");
        }
        return subject;
    }
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(kind->algorithm, TOLLGATE_CLOCK_CALLER, limit, SECOND);
    config.max_cost = kind->max_cost;
    tollgate_limiter_t *limiter = NULL;
    int status = tollgate_create(&config, &limiter);
    if (status != TOLLGATE_OK) {
        fail(kind->name, tollgate_strerror(status));
    }
    return limiter;
}

/* Admitted: calls at half the rate that the limit allows. Refused: calls at one time, before which half the limit was
 * taken long ago, then all of it. */
static struct row row_of(const struct kind *kind, bool admits, bool inlined) {
    uint64_t limit = admits ? kind->limit : LIMIT_REFUSED;
    struct row row = {.calls = inlined ? kind->inlined_calls : library_calls,
                      .subject = make(kind, limit, inlined), .now_ns = START, .admits = admits};
    if (admits) {
        row.step_ns = 2 * SECOND / limit;
    } else if (row.calls(row.subject, limit / 2, START - 2 * SECOND, 0) != limit / 2 ||
               row.calls(row.subject, limit, START, 0) != limit) {
        fail(kind->name, "the limit is not there to be taken");
    }
    return row;
}

/* Times a row once. */
static void time_row(const char *name, struct row *row, unsigned round, uint64_t calls) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t admitted = row->calls(row->subject, calls, row->now_ns, row->step_ns);
    clock_gettime(CLOCK_MONOTONIC, &end);
    row->now_ns += calls * row->step_ns;
    if (admitted != (row->admits ? calls : 0)) {
        fail(name, "not the path it names");
    }
    row->ns[round] = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / (double)calls;
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(const double *values, unsigned rounds) {
    static double sorted[ROUNDS_MAX];
    memcpy(sorted, values, rounds * sizeof *sorted);
    qsort(sorted, rounds, sizeof *sorted, by_value);
    return sorted[rounds / 2];
}

/* One line: a call, and the medians of its rounds' ratios to what it may cost. */
static void print_row(const struct kind *kind, const struct row *of_kind, bool admits, unsigned rounds) {
    static double of_rust[ROUNDS_MAX], of_floor[ROUNDS_MAX];
    const struct row *c = &of_kind[admits ? ADMITTED : REFUSED], *rust = c + 1;
    for (unsigned round = 0; round < rounds; round++) {
        of_rust[round] = c->ns[round] / (rust->ns[round] + 1.3 * floors[EMPTY].ns[round]);
        of_floor[round] = c->ns[round] / (kind->times * floors[kind->floor].ns[round] + 3.0);
    }
    printf("| %s, %s | %.2f | %.2f | %.2f | ", kind->name, admits ? "admitted" : "refused", median(c->ns, rounds),
           median(rust->ns, rounds), median(of_rust, rounds));
    printf(admits ? "%.2f |\n" : "|\n", median(of_floor, rounds));
}

int main(int argc, char **argv) {
    const char *linked = argc > 1 ? argv[1] : "library";
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 101;
    uint64_t calls = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
    if (rounds == 0 || rounds > ROUNDS_MAX || calls == 0) {
        fail(linked, "1 to 1001 rounds, 1 call or more");
    }
    for (size_t k = 0; k < KINDS; k++) {
        for (int way = 0; way < WAYS; way++) {
            rows[k][way] = row_of(&kinds[k], way == ADMITTED || way == ADMITTED_INLINED, way % 2 == 1);
        }
    }
    pthread_t second;
    if (pthread_create(&second, NULL, second_thread, NULL) != 0) {
        fail(linked, "no second thread");
    }
    mutexed_calls(&mutexed[MUTEXED_REFUSED], LIMIT_REFUSED, START, 0);
    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < FLOORS; i++) {
            time_row("a floor", &floors[i], round, calls);
        }
        for (size_t k = 0; k < KINDS; k++) {
            for (int way = 0; way < WAYS; way++) {
                time_row(kinds[k].name, &rows[k][way], round, calls);
            }
        }
        for (int i = 0; i < MUTEXED; i++) {
            time_row("the log under a mutex", &mutexed_rows[i], round, calls);
        }
    }
    printf("%s: empty call %.2f ns, CAS %.2f ns, two CAS %.2f ns; medians of %u rounds of %" PRIu64 " calls\n\n", linked,
           median(floors[EMPTY].ns, rounds), median(floors[CAS].ns, rounds), median(floors[TWO_CAS].ns, rounds),
           rounds, calls);
    printf("| call | C ns | inlined ns | x (inlined + 1.3 empty) | x (1.5 two CAS + 3 ns), counter (1.6 CAS + 3 ns) |\n");
    printf("|---|---:|---:|---:|---:|\n");
    for (size_t k = 0; k < KINDS; k++) {
        print_row(&kinds[k], rows[k], true, rounds);
        print_row(&kinds[k], rows[k], false, rounds);
    }
    printf("| log under a pthread mutex, admitted | %.2f | | | |\n", median(mutexed_rows[MUTEXED_ADMITTED].ns, rounds));
    printf("| log under a pthread mutex, refused | %.2f | | | |\n", median(mutexed_rows[MUTEXED_REFUSED].ns, rounds));
    return 0;
}
