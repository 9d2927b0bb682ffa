/* Regions whose rules change: what was taken stays taken, in all processes. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

#define MINUTE (60 * SECOND)

static tollgate_shm_t *attached(int fd, const tollgate_shm_config_t *config) {
    tollgate_shm_t *shm;
    GIVES(TOLLGATE_OK, tollgate_shm_open_fd(fd, config, &shm));
    return shm;
}

static void set(tollgate_shm_t *shm, uint64_t limit, uint64_t window_ns) {
    tollgate_rule_t rule = {limit, window_ns};
    GIVES(TOLLGATE_OK, tollgate_shm_set_rules(shm, &rule, 1));
}

static uint64_t taken(tollgate_limiter_t *limiter, uint64_t now) {
    uint64_t admitted = 0;
    for (int i = 0; i < 100; i++) admitted += tollgate_try_acquire_at(limiter, 1, now);
    return admitted;
}

static uint64_t key_taken(tollgate_shm_t *shm, uint64_t now) {
    uint64_t admitted = 0;
    for (int i = 0; i < 100; i++) admitted += tollgate_shm_keyed_try_acquire_at(shm, "alice", 5, 1, now);
    return admitted;
}

/* Two that have it, and one that comes after the change. */
static void all_follow(uint32_t algorithm) {
    tollgate_config_t limit = TOLLGATE_CONFIG_INIT(algorithm, 0, 30, MINUTE);
    tollgate_shm_config_t config = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_CALLER, &limit, 1, 7);
    tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    tollgate_limiter_t *ours, *theirs;
    tollgate_shm_info_t info;
    tollgate_shm_t *first;
    uint32_t count;
    int fd;
    config.flags = TOLLGATE_LIVE;
    info.struct_size = sizeof info;
    if (algorithm == TOLLGATE_LOG) limit.reserved[1] = 50;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("live", &config, &fd, &first));
    tollgate_shm_t *second = attached(fd, &config);
    GIVES(TOLLGATE_OK, tollgate_shm_get(first, 0, &ours));
    GIVES(TOLLGATE_OK, tollgate_shm_get(second, 0, &theirs));
    EXPECT(taken(ours, MINUTE) == 30 && key_taken(second, MINUTE) == 30);
    set(second, 40, MINUTE);
    EXPECT(taken(theirs, MINUTE) == 10 && key_taken(first, MINUTE) == 10);
    set(first, 0, MINUTE);
    GIVES(TOLLGATE_NEVER, tollgate_check_at(theirs, 1, 2 * MINUTE, NULL));
    set(first, 20, MINUTE);
    tollgate_shm_t *third = attached(fd, &config);
    EXPECT(key_taken(third, MINUTE) == 0 && key_taken(third, 4 * MINUTE) == 20 && taken(ours, 4 * MINUTE) == 20);
    GIVES(TOLLGATE_OK, tollgate_get_rules(theirs, rules, &count));
    EXPECT(count == 1 && rules[0].limit == 20 && rules[0].window_ns == MINUTE);
    GIVES(TOLLGATE_OK, tollgate_shm_get_rules(second, rules, &count));
    EXPECT(count == 1 && rules[0].limit == 20 && rules[0].window_ns == MINUTE);
    GIVES(TOLLGATE_OK, tollgate_shm_inspect_fd(fd, &info));
    EXPECT(info.flags == TOLLGATE_LIVE && info.rule_count == 1 && info.rules[0].limit == 20);
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_set_rules(ours, rules, 1)); /* they are the region's */
    tollgate_destroy(ours);
    tollgate_destroy(theirs);
    tollgate_shm_close(first);
    tollgate_shm_close(second);
    tollgate_shm_close(third);
    EXPECT(close(fd) == 0);
}

static void every_status(void) {
    tollgate_config_t limit = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, 0, 5, MINUTE);
    tollgate_shm_config_t config = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_CALLER, &limit, 1, 7), frozen = config;
    tollgate_rule_t rules[TOLLGATE_MAX_RULES + 1] = {{3, MINUTE}}, wrong = {6, MINUTE};
    tollgate_shm_t *shm, *other = NULL;
    size_t size, live_size;
    uint32_t count = 0;
    int fd;
    config.flags = TOLLGATE_LIVE;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("live", &config, &fd, &shm));
    GIVES(TOLLGATE_E_CONFIG, tollgate_shm_open_fd(fd, &frozen, &other));
    GIVES(TOLLGATE_OK, tollgate_shm_size(&config, &live_size));
    GIVES(TOLLGATE_OK, tollgate_shm_size(&frozen, &size));
    EXPECT(live_size == size + 640);
    GIVES(TOLLGATE_E_NULL, tollgate_shm_set_rules(NULL, rules, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_set_rules(shm, NULL, 1));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_set_rules(shm, (tollgate_rule_t *)((char *)rules + 1), 1));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_set_rules(shm, rules, 0));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_set_rules(shm, rules, TOLLGATE_MAX_RULES + 1));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_set_rules(shm, &wrong, 1)); /* above the capacity */
    wrong.limit = 1, wrong.window_ns = 0;
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_set_rules(shm, &wrong, 1));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_get_rules(NULL, rules, &count));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_get_rules(shm, NULL, &count));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_get_rules(shm, rules, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_get_rules(shm, (tollgate_rule_t *)((char *)rules + 1), &count));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_get_rules(shm, rules, (uint32_t *)((char *)&size + 1)));
    EXPECT(count == 0 && rules[0].limit == 3);
    GIVES(TOLLGATE_OK, tollgate_shm_get_rules(shm, rules, &count));
    EXPECT(count == 1 && rules[0].limit == 5);
    tollgate_shm_close(shm);
    EXPECT(close(fd) == 0);

    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("frozen", &frozen, &fd, &shm));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_shm_set_rules(shm, rules, 1));
    GIVES(TOLLGATE_E_CONFIG, tollgate_shm_open_fd(fd, &config, &other));
    tollgate_shm_close(shm);
    EXPECT(close(fd) == 0);
    limit.reserved[1] = 50; /* without TOLLGATE_LIVE it says nothing */
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_size(&frozen, &size));
    GIVES(TOLLGATE_OK, tollgate_shm_size(&config, &size));
    limit.reserved[1] = 0;
    limit.algorithm = TOLLGATE_GCRA; /* it has a rate */
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_shm_create_memfd("live", &config, &fd, &other));
    limit.algorithm = TOLLGATE_WINDOW; /* which needs half of its range for changes */
    limit.rules[0].limit = UINT64_MAX;
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_create_memfd("live", &config, &fd, &other));
    limit.rules[0].limit = 1;
    while (tollgate_shm_size(&frozen, &size) == TOLLGATE_OK) limit.rules[0].limit *= 2;
    limit.rules[0].limit /= 2; /* too much for changes alone */
    GIVES(TOLLGATE_OK, tollgate_shm_size(&frozen, &size));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_size(&config, &size));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_create_memfd("live", &config, &fd, &other));
    EXPECT(other == NULL);
}

/* Children change the rules and are killed, wherever they are by then: the rules are some that one of them has set. */
static void writers_are_killed(void) {
    tollgate_config_t limit = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, 0, 64, MINUTE);
    tollgate_shm_config_t config = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_CALLER, &limit, 1, 0);
    tollgate_limiter_t *limiter;
    tollgate_shm_t *shm;
    int fd;
    config.flags = TOLLGATE_LIVE;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("live", &config, &fd, &shm));
    GIVES(TOLLGATE_OK, tollgate_shm_get(shm, 0, &limiter));
    for (uint64_t round = 1; round <= 50; round++) {
        pid_t children[2];
        for (int i = 0; i < 2; i++) {
            children[i] = fork();
            EXPECT(children[i] >= 0);
            if (children[i] == 0) {
                for (uint64_t n = 0;; n++) set(shm, 1 + n % 64, MINUTE - n % 64);
            }
        }
        usleep(200 + 37 * (useconds_t)round);
        for (int i = 0; i < 2; i++) EXPECT(kill(children[i], SIGKILL) == 0 && waitpid(children[i], NULL, 0) == children[i]);
        tollgate_rule_t rules[TOLLGATE_MAX_RULES];
        uint32_t count;
        GIVES(TOLLGATE_OK, tollgate_shm_get_rules(shm, rules, &count));
        uint64_t n = rules[0].limit - 1;
        EXPECT(count == 1 && n < 64 && (rules[0].window_ns == MINUTE - n || (round == 1 && n == 63)));
        EXPECT(taken(limiter, 10 * round * MINUTE) == rules[0].limit);
        set(shm, 7, MINUTE - 6);
        EXPECT(taken(limiter, (10 * round + 5) * MINUTE) == 7);
    }
    tollgate_destroy(limiter);
    tollgate_shm_close(shm);
    EXPECT(close(fd) == 0);
}

int main(void) {
    all_follow(TOLLGATE_LOG);
    all_follow(TOLLGATE_WINDOW);
    all_follow(TOLLGATE_FIXED);
    all_follow(TOLLGATE_TWO_WINDOW);
    every_status();
    writers_are_killed();
    return 0;
}
