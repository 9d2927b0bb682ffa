/* Rules that change while the limiter runs: what was taken stays taken. */
#include "expect.h"

static tollgate_limiter_t *make(uint32_t algorithm, uint64_t limit, uint64_t window_ns, uint64_t most, uint32_t shards) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, limit, window_ns);
    tollgate_limiter_t *limiter;
    config.flags = TOLLGATE_LIVE | TOLLGATE_STATS;
    config.reserved[1] = most;
    config.shards = shards;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    return limiter;
}

static void set(tollgate_limiter_t *limiter, uint64_t limit, uint64_t window_ns) {
    tollgate_rule_t rule = {limit, window_ns};
    GIVES(TOLLGATE_OK, tollgate_set_rules(limiter, &rule, 1));
}

static uint64_t taken(tollgate_limiter_t *limiter, uint64_t calls, uint64_t now) {
    uint64_t admitted = 0;
    while (calls-- > 0) admitted += tollgate_try_acquire_at(limiter, 1, now);
    return admitted;
}

static uint64_t remaining(tollgate_limiter_t *limiter, uint64_t now) {
    tollgate_decision_t decision;
    EXPECT(tollgate_peek_at(limiter, 1, now, &decision) >= 0);
    return decision.remaining;
}

/* The wait after the limit was lowered below the present use. */
static void f005_a_wait_after_a_lowering(void) {
    tollgate_limiter_t *limiter = make(TOLLGATE_LOG, 5, 60 * SECOND, 0, 0);
    tollgate_decision_t decision;
    for (uint64_t at = 0; at < 5; at++) EXPECT(tollgate_try_acquire_at(limiter, 1, (100 + 10 * at) * SECOND));
    set(limiter, 2, 60 * SECOND);
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 1, 150 * SECOND, &decision));
    EXPECT(decision.retry_after_ns == 40 * SECOND && decision.limit == 2 && decision.remaining == 0);
    EXPECT(!tollgate_try_acquire_at(limiter, 1, 190 * SECOND - 1000000));
    EXPECT(tollgate_try_acquire_at(limiter, 1, 190 * SECOND));
    tollgate_destroy(limiter);
}

/* Up, to zero, and up again. */
static void f018_up_to_zero_and_up_again(uint32_t algorithm, uint64_t most, uint32_t shards) {
    tollgate_limiter_t *limiter = make(algorithm, 30, 60 * SECOND, most, shards);
    const uint64_t t0 = 600 * SECOND;
    EXPECT(taken(limiter, 40, t0) == 30);
    set(limiter, 150, 60 * SECOND);
    EXPECT(remaining(limiter, t0 + 10 * SECOND) == 120);
    set(limiter, 0, 60 * SECOND);
    GIVES(TOLLGATE_NEVER, tollgate_check_at(limiter, 1, t0 + 20 * SECOND, NULL));
    EXPECT(remaining(limiter, t0 + 20 * SECOND) == 0 && tollgate_try_acquire_at(limiter, 0, t0 + 20 * SECOND));
    set(limiter, 40, 60 * SECOND);
    EXPECT(remaining(limiter, t0 + 30 * SECOND) == 10 && taken(limiter, 40, t0 + 30 * SECOND) == 10);
    tollgate_destroy(limiter);
}

/* Lowering in the middle of a window. */
static void f019_lowered_in_a_window(uint32_t algorithm) {
    tollgate_limiter_t *limiter = make(algorithm, 10, SECOND, 0, 0);
    EXPECT(taken(limiter, 3, 10 * SECOND) == 3);
    set(limiter, 5, SECOND);
    EXPECT(taken(limiter, 5, 10 * SECOND + SECOND / 2) == 2);
    tollgate_stats_t stats;
    stats.struct_size = TOLLGATE_STATS_SIZE;
    GIVES(TOLLGATE_OK, tollgate_stats(limiter, &stats));
    EXPECT(stats.allowed == 5 && stats.refused == 3 && stats.refused_by[0] == 3 && stats.permits == 5);
    tollgate_destroy(limiter);
}

/* Other windows, and more rules. */
static void windows(void) {
    tollgate_limiter_t *limiter = make(TOLLGATE_WINDOW, 10, SECOND, 4 * SECOND, 0);
    tollgate_rule_t rules[2] = {{4, SECOND}, {9, 3 * SECOND}};
    tollgate_decision_t decision;
    EXPECT(taken(limiter, 6, 20 * SECOND) == 6);
    GIVES(TOLLGATE_OK, tollgate_set_rules(limiter, rules, 2));
    EXPECT(taken(limiter, 9, 22 * SECOND) == 3);
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(limiter, 1, 22 * SECOND, &decision));
    EXPECT(decision.rule == 1 && decision.limit == 9);
    rules[0].window_ns = SECOND + 1; /* not of whole buckets */
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 2));
    rules[0].window_ns = 5 * SECOND; /* longer than it can look back */
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 1));
    tollgate_destroy(limiter);
    limiter = make(TOLLGATE_LOG, 10, SECOND, 10, 2);
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 2)); /* shards take one */
    tollgate_destroy(limiter);
    limiter = make(TOLLGATE_FIXED, 10, SECOND, 0, 0);
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, rules, 1)); /* another window */
    tollgate_destroy(limiter);
}

/* The log that takes a lock: another limit, up to what it has memory for. */
static void compact(void) {
    tollgate_limiter_t *limiter = make(TOLLGATE_COMPACT, 10, SECOND, 12, 0);
    tollgate_rule_t rule = {13, SECOND};
    EXPECT(taken(limiter, 20, 20 * SECOND) == 10);
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, &rule, 1));
    rule.limit = 12;
    rule.window_ns = 2 * SECOND;
    GIVES(TOLLGATE_E_INVALID, tollgate_set_rules(limiter, &rule, 1));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_set_rate_at(limiter, &rule, 1, 20 * SECOND));
    set(limiter, 12, SECOND);
    EXPECT(taken(limiter, 20, 20 * SECOND) == 2 && taken(limiter, 20, 21 * SECOND) == 12);
    tollgate_destroy(limiter);
}

/* Rate and burst of a bucket: what is owed is kept, and drains at the new rate. */
static void rates(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_TOKEN_BUCKET, TOLLGATE_CLOCK_CALLER, 1, SECOND);
    tollgate_limiter_t *limiter;
    tollgate_rule_t rate = {2, SECOND};
    config.flags = TOLLGATE_LIVE;
    config.burst = 10;
    config.reserved[1] = 100;
    GIVES(TOLLGATE_OK, tollgate_create(&config, &limiter));
    EXPECT(tollgate_try_acquire_at(limiter, 10, 7 * SECOND) && !tollgate_try_acquire_at(limiter, 1, 7 * SECOND));
    GIVES(TOLLGATE_OK, tollgate_set_rate_at(limiter, &rate, 20, 7 * SECOND));
    EXPECT(remaining(limiter, 8 * SECOND) == 12);
    rate.limit = 0;
    GIVES(TOLLGATE_OK, tollgate_set_rate_at(limiter, &rate, 0, 8 * SECOND));
    GIVES(TOLLGATE_NEVER, tollgate_check_at(limiter, 1, 9 * SECOND, NULL));
    rate.limit = 1;
    GIVES(TOLLGATE_OK, tollgate_set_rate_at(limiter, &rate, 10, 9 * SECOND));
    EXPECT(taken(limiter, 10, 9 * SECOND) == 4 && taken(limiter, 10, 10 * SECOND) == 1);
    tollgate_destroy(limiter);
}

int main(void) {
    if (!lives()) return 0;
    f005_a_wait_after_a_lowering();
    f018_up_to_zero_and_up_again(TOLLGATE_LOG, 150, 0);
    f018_up_to_zero_and_up_again(TOLLGATE_WINDOW, 0, 0);
    f018_up_to_zero_and_up_again(TOLLGATE_FIXED, 0, 0);
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_TWO_WINDOW; algorithm++) f019_lowered_in_a_window(algorithm);
    windows();
    rates();
    if (!bare()) {
        f018_up_to_zero_and_up_again(TOLLGATE_COMPACT, 150, 0);
        f019_lowered_in_a_window(TOLLGATE_COMPACT);
        compact();
    }
    if (!spreads()) return 0;
    f018_up_to_zero_and_up_again(TOLLGATE_LOG, 150, 5);
    f018_up_to_zero_and_up_again(TOLLGATE_WINDOW, 0, 5);
    return 0;
}
