/* 2 to 8 threads on one limiter: exact totals, and no window of recorded times over the limit; shards, rules that change
 * meanwhile, and limiters by key.
 *
 * It is run as it is, under AddressSanitizer, UndefinedBehaviorSanitizer, ThreadSanitizer and valgrind.
 * Usage: stress [ROUNDS [tsan]], where the latter leaves out what ThreadSanitizer takes for races: the lock of std, of which
 * there is no copy with instruments, and initializers at once (a compare-and-swap that fails counts there as a write). */
#include "program.h"

#include <sched.h>

#define LIMIT 1000
#define T0 (7 * SECOND)

/* What all threads of a round share. */
struct round {
    tollgate_limiter_t *limiter;
    const tollgate_config_t *config; /* set: the threads find or make the limiter in this memory */
    void *memory;
    size_t length;
    unsigned initializers;
    pthread_barrier_t gate;
    unsigned calls;
    uint64_t cost_max;
};

/* When an admission was recorded: not before the caller's time, and not after the time judged that the answer tells,
 * which is that of an instant after the effect. */
struct span {
    uint64_t from;
    uint64_t to;
};

struct hand {
    struct round *round;
    unsigned index;
    uint64_t seed;
    uint64_t admitted;
    uint64_t refused;
    struct span *spans; /* of single admissions, when the time runs */
};

/* The limiter in the memory of the round: made by the first threads, awaited by the others. A maker lets them go first,
 * so that nothing but the publication orders what they read. */
static tollgate_limiter_t *in_place(const struct round *round, unsigned index) {
    tollgate_limiter_t *limiter = NULL;
    if (index < round->initializers) {
        struct timespec pause = {0, 1000000};
        CHECK_EQ(tollgate_init_in(round->memory, round->length, round->config, &limiter), TOLLGATE_OK);
        nanosleep(&pause, NULL);
        return limiter;
    }
    int status;
    while ((status = tollgate_attach_in(round->memory, round->length, &limiter)) == TOLLGATE_E_NOT_READY) {
        sched_yield();
    }
    CHECK_EQ(status, TOLLGATE_OK);
    return limiter;
}

static void *at_one_instant(void *argument) {
    struct hand *hand = argument;
    struct round *round = hand->round;
    pthread_barrier_wait(&round->gate);
    tollgate_limiter_t *limiter = round->config != NULL ? in_place(round, hand->index) : round->limiter;
    for (unsigned call = 0; call < round->calls; call++) {
        uint64_t cost = 1 + program_random(&hand->seed) % round->cost_max;
        if (tollgate_try_acquire_at(limiter, cost, T0)) {
            hand->admitted += cost;
        } else {
            hand->refused++;
        }
    }
    return NULL;
}

static void *while_time_runs(void *argument) {
    struct hand *hand = argument;
    struct round *round = hand->round;
    pthread_barrier_wait(&round->gate);
    for (unsigned call = 0; call < round->calls; call++) {
        tollgate_decision_t decision;
        uint64_t now = program_now();
        int status = tollgate_check_at(round->limiter, 1, now, &decision);
        CHECK(status == TOLLGATE_OK || status == TOLLGATE_REFUSED);
        CHECK_EQ(decision.allowed, status == TOLLGATE_OK);
        CHECK_EQ(decision.limit, LIMIT);
        CHECK(decision.now_ns >= now);
        if (status == TOLLGATE_OK) {
            CHECK_EQ(decision.retry_after_ns, 0);
            hand->spans[hand->admitted++] = (struct span){now, decision.now_ns};
        } else {
            CHECK(decision.retry_after_ns > 0);
            hand->refused++;
        }
    }
    return NULL;
}

/* Runs the threads to their end and returns the permits that they were given. */
static uint64_t run(struct round *round, unsigned threads, void *(*body)(void *), struct hand *hands) {
    pthread_t ids[THREADS_MAX];
    uint64_t admitted = 0;
    CHECK(pthread_barrier_init(&round->gate, NULL, threads) == 0);
    for (unsigned i = 0; i < threads; i++) {
        hands[i].round = round;
        hands[i].index = i;
        hands[i].seed = 0x9E3779B97F4A7C15u + i;
        hands[i].admitted = hands[i].refused = 0;
        CHECK(pthread_create(&ids[i], NULL, body, &hands[i]) == 0);
    }
    for (unsigned i = 0; i < threads; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
        CHECK_EQ(hands[i].admitted > 0 || hands[i].refused > 0, 1);
        admitted += hands[i].admitted;
    }
    CHECK(pthread_barrier_destroy(&round->gate) == 0);
    return admitted;
}

/* Permits still to be had at T0, one by one. */
static uint64_t drain(tollgate_limiter_t *limiter) {
    uint64_t drained = 0;
    while (tollgate_try_acquire_at(limiter, 1, T0)) {
        drained++;
    }
    return drained;
}

/* All threads together get the limit, not one permit more or fewer, whatever each asks for. */
static void exact_totals(uint32_t algorithm, unsigned threads, uint64_t cost_max, uint32_t shards) {
    tollgate_config_t config = program_config(algorithm, LIMIT, SECOND);
    config.max_cost = (uint32_t)cost_max;
    config.shards = shards;
    config.flags = shards > 1 ? TOLLGATE_STATS : 0;
    struct round round = {.limiter = program_create(&config), .calls = LIMIT, .cost_max = cost_max};
    struct hand hands[THREADS_MAX];
    uint64_t admitted = run(&round, threads, at_one_instant, hands);
    uint64_t left = drain(round.limiter);
    CHECK(left <= shards * (cost_max - 1)); /* no shard had so many */
    CHECK_EQ(admitted + left, LIMIT);
    uint64_t used = 0;
    CHECK_EQ(tollgate_usage_at(round.limiter, 0, T0, &used), TOLLGATE_OK);
    CHECK_EQ(used, LIMIT);
    if (shards > 1) {
        tollgate_stats_t stats = {.struct_size = TOLLGATE_STATS_SIZE};
        CHECK_EQ(tollgate_stats(round.limiter, &stats), TOLLGATE_OK);
        CHECK_EQ(stats.permits, LIMIT);
        CHECK_EQ(stats.allowed + stats.refused, (uint64_t)threads * round.calls + left + 1);
        CHECK_EQ(stats.refused_by[0], stats.refused);
    }
    tollgate_destroy(round.limiter);
}

/* The same in the caller's memory, which so many of the threads initialize at once. */
static void exact_totals_in_place(uint32_t algorithm, unsigned threads, unsigned initializers, uint32_t shards) {
    tollgate_config_t config = program_config(algorithm, LIMIT, SECOND);
    config.shards = shards;
    size_t length = 0;
    CHECK_EQ(tollgate_size(&config, &length), TOLLGATE_OK);
    void *memory = NULL;
    CHECK(posix_memalign(&memory, tollgate_align(), length) == 0);
    memset(memory, 0, length);
    struct round round = {.config = &config, .memory = memory, .length = length, .initializers = initializers,
                          .calls = LIMIT, .cost_max = 1};
    struct hand hands[THREADS_MAX];
    CHECK_EQ(run(&round, threads, at_one_instant, hands), LIMIT);
    tollgate_limiter_t *limiter = NULL;
    CHECK_EQ(tollgate_attach_in(memory, length, &limiter), TOLLGATE_OK);
    CHECK_EQ(drain(limiter), 0);
    free(memory);
}

/* With two rules the tighter one is the limit, and the other is charged the same. */
static void of_two_rules(uint32_t algorithm, unsigned threads) {
    tollgate_config_t config = program_config(algorithm, 2 * LIMIT, 10 * SECOND);
    config.rule_count = 2;
    config.rules[1].limit = LIMIT;
    config.rules[1].window_ns = SECOND;
    struct round round = {.limiter = program_create(&config), .calls = LIMIT, .cost_max = 1};
    struct hand hands[THREADS_MAX];
    CHECK_EQ(run(&round, threads, at_one_instant, hands), LIMIT);
    for (uint32_t rule = 0; rule < 2; rule++) {
        uint64_t used = 0;
        CHECK_EQ(tollgate_usage_at(round.limiter, rule, T0, &used), TOLLGATE_OK);
        CHECK_EQ(used, LIMIT);
    }
    tollgate_destroy(round.limiter);
}

static int by_start(const void *left, const void *right) {
    uint64_t a = ((const struct span *)left)->from, b = ((const struct span *)right)->from;
    return (a > b) - (a < b);
}

/* No window holds more than LIMIT of these, sorted by start. */
static void audit(const struct span *spans, size_t count, uint64_t window_ns) {
    for (size_t first = 0; first + LIMIT < count; first++) {
        uint64_t end = spans[first].from + window_ns;
        size_t surely_inside = 0;
        if (spans[first + LIMIT].from >= end) {
            continue;
        }
        for (size_t i = first; i < count && spans[i].from < end; i++) {
            surely_inside += spans[i].to < end;
        }
        CHECK(surely_inside <= LIMIT);
    }
}

static void no_window_over_the_limit(uint32_t algorithm, unsigned threads, unsigned calls, uint32_t shards) {
    const uint64_t window_ns = 2000000;
    tollgate_config_t config = program_config(algorithm, LIMIT, window_ns);
    config.shards = shards;
    struct round round = {.limiter = program_create(&config), .calls = calls, .cost_max = 1};
    struct hand hands[THREADS_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < threads; i++) {
        hands[i].spans = malloc(calls * sizeof *hands[i].spans);
        CHECK(hands[i].spans != NULL);
    }
    uint64_t admitted = run(&round, threads, while_time_runs, hands);
    struct span *spans = malloc((size_t)admitted * sizeof *spans);
    CHECK(spans != NULL);
    for (unsigned i = 0; i < threads; i++) {
        memcpy(spans + count, hands[i].spans, (size_t)hands[i].admitted * sizeof *spans);
        count += (size_t)hands[i].admitted;
        free(hands[i].spans);
    }
    CHECK(count >= LIMIT);
    qsort(spans, count, sizeof *spans, by_start);
    audit(spans, count, window_ns);
    free(spans);
    tollgate_destroy(round.limiter);
}

/* The first thread changes the limit to and fro, the others acquire: by the one or by the other, whole. */
static void *while_limits_change(void *argument) {
    struct hand *hand = argument;
    struct round *round = hand->round;
    pthread_barrier_wait(&round->gate);
    for (unsigned call = 0; call < round->calls; call++) {
        if (hand->index == 0) {
            tollgate_rule_t rule = {call % 2 ? LIMIT : LIMIT / 2, call % 2 ? SECOND : 2 * SECOND};
            CHECK_EQ(tollgate_set_rules(round->limiter, &rule, 1), TOLLGATE_OK);
            hand->refused++;
            continue;
        }
        tollgate_decision_t decision;
        tollgate_rule_t rules[TOLLGATE_MAX_RULES];
        uint32_t count = 0;
        int status = tollgate_check_at(round->limiter, 1, T0, &decision);
        CHECK(status == TOLLGATE_OK || status == TOLLGATE_REFUSED);
        CHECK(decision.limit == LIMIT || decision.limit == LIMIT / 2);
        hand->admitted += status == TOLLGATE_OK;
        hand->refused += status != TOLLGATE_OK;
        CHECK_EQ(tollgate_get_rules(round->limiter, rules, &count), TOLLGATE_OK);
        CHECK_EQ(count, 1);
        CHECK_EQ(rules[0].limit * rules[0].window_ns, LIMIT * SECOND);
    }
    return NULL;
}

static void of_changing_limits(uint32_t algorithm, unsigned threads, uint32_t shards) {
    tollgate_config_t config = program_config(algorithm, LIMIT, SECOND);
    config.flags = TOLLGATE_LIVE;
    config.shards = shards;
    config.reserved[1] = algorithm == TOLLGATE_LOG ? LIMIT : 2 * SECOND;
    struct round round = {.limiter = program_create(&config), .calls = 2 * LIMIT};
    struct hand hands[THREADS_MAX];
    uint64_t admitted = run(&round, threads, while_limits_change, hands);
    CHECK(admitted >= LIMIT / 2 && admitted <= LIMIT);
    CHECK_EQ(admitted + drain(round.limiter), LIMIT); /* the last change raised it */
    tollgate_destroy(round.limiter);
}

#define KEYS 40
#define PER_KEY 25

/* Limiters by key, and what threads were given of each of the keys that they share. */
struct by_key {
    tollgate_keyed_t *keyed;
    pthread_barrier_t gate;
    unsigned rounds;
    _Atomic unsigned admitted[KEYS];
};

struct key_hand {
    struct by_key *all;
    unsigned index;
};

/* Each round is a second. All ask for the keys that they share, and for strangers, which come and go. */
static void *by_keys(void *argument) {
    struct key_hand *hand = argument;
    struct by_key *all = hand->all;
    for (unsigned round = 0; round < all->rounds; round++) {
        uint64_t now = T0 + round * SECOND;
        pthread_barrier_wait(&all->gate);
        for (unsigned key = 0; key < KEYS; key++) {
            for (unsigned call = 0; call < PER_KEY; call++) {
                all->admitted[key] += tollgate_keyed_try_acquire_at(all->keyed, 0, &key, sizeof key, 1, now);
            }
            uint64_t stranger = (uint64_t)round << 32 | hand->index << 16 | key << 8;
            tollgate_keyed_try_acquire_at(all->keyed, 1, &stranger, sizeof stranger, 1, now);
            CHECK(tollgate_keyed_peek_at(all->keyed, 0, &key, sizeof key, 1, now, NULL) >= 0);
            if (key == hand->index) {
                tollgate_busy_key_t busy;
                size_t found = 0;
                CHECK_EQ(tollgate_keyed_busiest_at(all->keyed, now, &busy, 1, &found), TOLLGATE_OK);
                CHECK(found == 1 && busy.used <= PER_KEY);
                tollgate_keyed_remove(all->keyed, 1, &stranger, sizeof stranger);
            }
        }
        if (pthread_barrier_wait(&all->gate) == PTHREAD_BARRIER_SERIAL_THREAD) {
            for (unsigned key = 0; key < KEYS; key++) CHECK_EQ(all->admitted[key], (round + 1) * PER_KEY);
        }
        pthread_barrier_wait(&all->gate);
    }
    return NULL;
}

/* Each key gets its limit in each second, not one permit more or fewer. */
static void of_keys(uint32_t algorithm, unsigned threads) {
    tollgate_config_t limit = program_config(algorithm, PER_KEY, SECOND), strangers = program_config(TOLLGATE_LOG, 1, SECOND / 2);
    limit.clock = strangers.clock = 0;
    limit.buckets = algorithm == TOLLGATE_WINDOW ? 2 : 0;
    limit.flags = algorithm == TOLLGATE_WINDOW ? TOLLGATE_TEXTBOOK_COVERAGE : 0;
    tollgate_class_t classes[] = {{&limit, KEYS}, {&strangers, 64}};
    tollgate_keyed_config_t config = {.struct_size = TOLLGATE_KEYED_CONFIG_SIZE, .clock = TOLLGATE_CLOCK_CALLER,
                                      .flags = TOLLGATE_STATS | TOLLGATE_REFUSE_WHEN_FULL, .class_count = 2,
                                      .classes = classes, .secret = {1, 2}};
    struct by_key all = {.rounds = 4};
    struct key_hand hands[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    CHECK_EQ(tollgate_keyed_create(&config, &all.keyed), TOLLGATE_OK);
    CHECK(pthread_barrier_init(&all.gate, NULL, threads) == 0);
    for (unsigned i = 0; i < threads; i++) {
        hands[i] = (struct key_hand){&all, i};
        CHECK(pthread_create(&ids[i], NULL, by_keys, &hands[i]) == 0);
    }
    for (unsigned i = 0; i < threads; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
    }
    CHECK(pthread_barrier_destroy(&all.gate) == 0);
    tollgate_keyed_stats_t stats = {.struct_size = TOLLGATE_KEYED_STATS_SIZE};
    CHECK_EQ(tollgate_keyed_stats(all.keyed, &stats), TOLLGATE_OK);
    CHECK(stats.evictions > 0 && stats.keys <= stats.capacity);
    CHECK_EQ(stats.allowed + stats.refused, (uint64_t)threads * all.rounds * KEYS * (PER_KEY + 1));
    tollgate_keyed_destroy(all.keyed);
}

int main(int argc, char **argv) {
    static const uint32_t algorithms[] = {TOLLGATE_LOG,        TOLLGATE_WINDOW,       TOLLGATE_FIXED,
                                          TOLLGATE_TWO_WINDOW, TOLLGATE_TOKEN_BUCKET, TOLLGATE_COMPACT};
    unsigned rounds = program_rounds(argc, argv, 10);
    bool tsan = argc > 2;
    CHECK(!tsan || strcmp(argv[2], "tsan") == 0);
    size_t count = sizeof algorithms / sizeof *algorithms - tsan;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned threads = 2; threads <= THREADS_MAX; threads++) {
            for (size_t a = 0; a < count; a++) {
                exact_totals(algorithms[a], threads, 1, 1);
                exact_totals(algorithms[a], threads, 3, 1);
            }
            for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_WINDOW; algorithm++) {
                exact_totals(algorithm, threads, 1, threads);
                exact_totals(algorithm, threads, 3, threads);
                exact_totals_in_place(algorithm, threads, 1, threads);
                no_window_over_the_limit(algorithm, threads, 4 * LIMIT, threads);
                of_changing_limits(algorithm, threads, 1);
                of_changing_limits(algorithm, threads, 2);
                of_keys(algorithm, threads);
            }
            of_keys(TOLLGATE_FIXED, threads);
            for (unsigned initializers = 1; initializers <= (tsan ? 1 : threads); initializers += threads - 1) {
                exact_totals_in_place(TOLLGATE_LOG, threads, initializers, 1);
                exact_totals_in_place(TOLLGATE_WINDOW, threads, initializers, 1);
                exact_totals_in_place(TOLLGATE_TOKEN_BUCKET, threads, initializers, 1);
            }
            of_two_rules(TOLLGATE_LOG, threads);
            of_two_rules(TOLLGATE_WINDOW, threads);
            no_window_over_the_limit(TOLLGATE_LOG, threads, 4 * LIMIT, 1);
            no_window_over_the_limit(TOLLGATE_WINDOW, threads, 4 * LIMIT, 1);
        }
    }
    printf("stress: %u rounds, 2 to %d threads\n", rounds, THREADS_MAX);
    return 0;
}
