/* Faults that limiters by key had, and the right result; each is named after its id. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static tollgate_config_t log_of(uint64_t limit, uint64_t window_ns) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, 0, limit, window_ns);
    return config;
}

static tollgate_keyed_t *make(const tollgate_class_t *classes, uint32_t count) {
    tollgate_keyed_config_t config;
    tollgate_keyed_t *keyed;
    memset(&config, 0, sizeof config);
    config.struct_size = TOLLGATE_KEYED_CONFIG_SIZE;
    config.clock = TOLLGATE_CLOCK_CALLER;
    config.class_count = count;
    config.classes = classes;
    config.secret[1] = 99;
    GIVES(TOLLGATE_OK, tollgate_keyed_create(&config, &keyed));
    return keyed;
}

static tollgate_keyed_t *one_class(uint64_t limit, uint64_t window_ns, uint64_t keys) {
    tollgate_config_t config = log_of(limit, window_ns);
    tollgate_class_t class_ = {&config, keys};
    return make(&class_, 1);
}

/* How many of `calls` calls are admitted. */
static int taken(tollgate_keyed_t *keyed, uint32_t class_, const char *key, int calls, uint64_t now) {
    int admitted = 0;
    while (calls-- > 0) admitted += tollgate_keyed_try_acquire_at(keyed, class_, key, strlen(key), 1, now);
    return admitted;
}

static bool taken_by_number(tollgate_keyed_t *keyed, uint64_t number, uint64_t now) {
    return tollgate_keyed_try_acquire_at(keyed, 0, &number, sizeof number, 1, now);
}

/* One key's expiry clears no other key. */
static void f058_one_key_expires(void) {
    tollgate_keyed_t *keyed = one_class(5, 180 * SECOND, 10);
    EXPECT(taken(keyed, 0, "A", 1, SECOND) == 1);
    EXPECT(taken(keyed, 0, "B", 5, 171 * SECOND) == 5);
    EXPECT(taken(keyed, 0, "B", 1, 182 * SECOND) == 0 && taken(keyed, 0, "A", 1, 182 * SECOND) == 1);
    EXPECT(taken(keyed, 0, "B", 1, 351 * SECOND - 1) == 0 && taken(keyed, 0, "B", 1, 351 * SECOND) == 1);
    tollgate_keyed_destroy(keyed);
}

/* Windows longer than 24.8 days, while other keys come and go. */
static void f059_a_year(void) {
    tollgate_keyed_t *keyed = one_class(5, 365 * DAY, 5000);
    EXPECT(taken(keyed, 0, "K", 5, DAY) == 5);
    for (uint64_t i = 0; i < 4000; i++) taken_by_number(keyed, i, DAY + i * DAY / 10);
    EXPECT(taken(keyed, 0, "K", 1, 31 * DAY) == 0);
    EXPECT(taken(keyed, 0, "K", 1, 366 * DAY - DAY / 100) == 0);
    EXPECT(taken(keyed, 0, "K", 1, 366 * DAY) == 1);
    tollgate_keyed_destroy(keyed);
}

/* Each key is idle by its own window, whoever's call finds it. */
static void f060_two_windows(void) {
    tollgate_config_t day = log_of(3, 24 * HOUR), minute = log_of(10, MINUTE);
    tollgate_class_t classes[2] = {{&day, 10}, {&minute, 10}};
    tollgate_keyed_t *keyed = make(classes, 2);
    EXPECT(taken(keyed, 0, "K", 3, SECOND) == 3);
    for (uint64_t i = 0; i < 100; i++) EXPECT(taken(keyed, 1, "L", 1, 121 * SECOND + i * MINUTE) == 1);
    EXPECT(taken(keyed, 0, "K", 1, 122 * SECOND + 100 * MINUTE) == 0);
    EXPECT(taken(keyed, 0, "K", 1, 24 * HOUR + SECOND - 1) == 0);
    EXPECT(taken(keyed, 0, "K", 1, 24 * HOUR + SECOND) == 1);
    tollgate_keyed_destroy(keyed);
}

/* A full table serves whom it knows, lets strangers share, and is itself again after a window. */
static void f062_a_full_table(void) {
    tollgate_keyed_t *keyed = one_class(2, MINUTE, 10000);
    EXPECT(taken(keyed, 0, "known", 1, SECOND) == 1);
    uint64_t number = 0;
    tollgate_keyed_stats_t stats;
    stats.struct_size = TOLLGATE_KEYED_STATS_SIZE;
    do {
        taken_by_number(keyed, number++, SECOND);
        GIVES(TOLLGATE_OK, tollgate_keyed_stats(keyed, &stats));
    } while (stats.keys < stats.capacity);
    EXPECT(taken(keyed, 0, "known", 2, 2 * SECOND) == 1);
    EXPECT(taken(keyed, 0, "honest", 1, 2 * SECOND + MINUTE) == 1);
    EXPECT(taken(keyed, 0, "honest", 3, 2 * SECOND + MINUTE) == 1);
    GIVES(TOLLGATE_OK, tollgate_keyed_stats(keyed, &stats));
    EXPECT(stats.evictions > 0);
    /* Those that the shared limiter serves are as many as it allows. */
    tollgate_keyed_destroy(keyed);
    keyed = one_class(2, MINUTE, 1);
    EXPECT(taken(keyed, 0, "first", 1, SECOND) == 1);
    int admitted = 0;
    for (number = 0; number < 100; number++) admitted += taken_by_number(keyed, number, SECOND);
    EXPECT(admitted == 2 && taken(keyed, 0, "first", 2, SECOND) == 1);
    tollgate_keyed_destroy(keyed);
}

/* Rule, kind of identity and the whole value are all part of a key. */
static void f065_what_is_part_of_a_key(void) {
    tollgate_config_t ten = log_of(10, MINUTE);
    tollgate_class_t classes[2] = {{&ten, 100}, {&ten, 100}};
    tollgate_keyed_t *keyed = make(classes, 2);
    char one[101], other[101];
    EXPECT(taken(keyed, 0, "192.0.2.1", 11, SECOND) == 10 && taken(keyed, 1, "192.0.2.1", 1, SECOND) == 1);
    EXPECT(taken(keyed, 0, "live_aaaa1", 11, SECOND) == 10 && taken(keyed, 0, "live_aaaa2", 1, SECOND) == 1);
    memset(one, 'a', 100);
    one[100] = 0;
    memcpy(other, one, sizeof one);
    other[99] = 'b';
    EXPECT(taken(keyed, 0, one, 11, SECOND) == 10 && taken(keyed, 0, other, 1, SECOND) == 1);
    tollgate_keyed_destroy(keyed);
}

/* Many keys are not merged. */
static void f066_no_sketch(void) {
    tollgate_keyed_t *keyed = one_class(5, SECOND, 100000);
    for (uint64_t i = 0; i < 100000; i++) EXPECT(taken_by_number(keyed, i, SECOND));
    EXPECT(taken(keyed, 0, "K", 4, SECOND) == 4);
    tollgate_keyed_destroy(keyed);
}

/* Each process has limiters of its own; a child begins with a copy. */
static void f067_processes(void) {
    tollgate_keyed_t *keyed = one_class(5, MINUTE, 10);
    EXPECT(taken(keyed, 0, "K", 3, SECOND) == 3);
    for (int child = 0; child < 4; child++) {
        fflush(NULL);
        pid_t pid = fork();
        EXPECT(pid >= 0);
        if (pid == 0) _exit(taken(keyed, 0, "K", 10, SECOND));
        int status = 0;
        EXPECT(waitpid(pid, &status, 0) == pid);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    }
    EXPECT(taken(keyed, 0, "K", 10, SECOND) == 2);
    tollgate_keyed_destroy(keyed);
}

int main(void) {
    if (!lives()) return 0;
    f058_one_key_expires();
    f059_a_year();
    f060_two_windows();
    f062_a_full_table();
    f065_what_is_part_of_a_key();
    f066_no_sketch();
    f067_processes();
    return 0;
}
