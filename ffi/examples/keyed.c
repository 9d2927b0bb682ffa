/* A limit for each client, as a proxy has it: by address, with a class for those who pay, one for probes, and memory that a
 * flood of strangers can not make grow.
 *
 *   cc keyed.c $(pkg-config --cflags --libs tollgate) -o keyed && ./keyed
 */
#include <stdio.h>
#include <string.h>
#include <tollgate/tollgate.h>

/* The classes, by their numbers. A server finds a client's in its own configuration. */
enum { EVERYBODY, CUSTOMER, PROBE, CLASSES };

static const uint64_t second = 1000000000;

static tollgate_keyed_t *limits(void) {
    /* 10 a minute for everybody, by a counter, which is small; 60 for customers, by an exact log; probes are free. */
    tollgate_config_t everybody = TOLLGATE_CONFIG_INIT(TOLLGATE_WINDOW, 0, 10, 60 * second);
    tollgate_config_t customers = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, 0, 60, 60 * second);
    tollgate_class_t classes[CLASSES] = {{&everybody, 20000}, {&customers, 1000}, {NULL, 0}};
    tollgate_keyed_config_t config;
    tollgate_keyed_t *keyed = NULL;
    memset(&config, 0, sizeof config);
    config.struct_size = TOLLGATE_KEYED_CONFIG_SIZE;
    config.clock = TOLLGATE_CLOCK_CALLER;
    config.class_count = CLASSES;
    config.classes = classes;
    config.secret[0] = 0x243f6a8885a308d3; /* of your own, or 0 to have one drawn */
    int status = tollgate_keyed_create(&config, &keyed);
    if (status != TOLLGATE_OK) fprintf(stderr, "%s\n", tollgate_strerror(status));
    return keyed;
}

/* How many of 100 requests in one second pass. */
static int passed(tollgate_keyed_t *keyed, uint32_t class_index, const char *client, uint64_t now) {
    int count = 0;
    for (int i = 0; i < 100; i++) count += tollgate_keyed_try_acquire_at(keyed, class_index, client, strlen(client), 1, now);
    return count;
}

int main(void) {
    tollgate_keyed_t *keyed = limits();
    if (keyed == NULL) return 1;
    uint64_t now = 100 * second;
    int everybody = passed(keyed, EVERYBODY, "192.0.2.1", now);
    int customer = passed(keyed, CUSTOMER, "192.0.2.2", now);
    int probe = passed(keyed, PROBE, "192.0.2.3", now);
    printf("of 100 requests pass: %d of anybody, %d of a customer, %d of a probe\n", everybody, customer, probe);

    /* A refusal says when to come again. */
    tollgate_decision_t decision;
    int status = tollgate_keyed_check_at(keyed, EVERYBODY, "192.0.2.1", 9, 1, now, &decision);
    printf("%s, retry after %llu s\n", tollgate_status_name(status), (unsigned long long)(decision.retry_after_ns / second));

    /* A flood of strangers: what it takes was taken at the start, and whoever was there is served. */
    tollgate_keyed_stats_t before = {.struct_size = TOLLGATE_KEYED_STATS_SIZE}, after = before;
    tollgate_keyed_stats(keyed, &before);
    for (uint32_t stranger = 0; stranger < 1000000; stranger++) {
        tollgate_keyed_try_acquire_at(keyed, EVERYBODY, &stranger, sizeof stranger, 1, now);
    }
    tollgate_keyed_stats(keyed, &after);
    int later = passed(keyed, EVERYBODY, "192.0.2.1", now + 66 * second);
    printf("after a million strangers: %s bytes, %s keys than there is room for, %d of anybody\n",
           after.bytes == before.bytes ? "the same" : "other", after.keys <= after.capacity ? "no more" : "more", later);

    /* The busiest, for a page or a log line. */
    tollgate_busy_key_t busy;
    size_t found = 0;
    tollgate_keyed_busiest_at(keyed, now, &busy, 1, &found);
    if (found == 1) printf("busiest: %.*s with %llu\n", (int)busy.len, (const char *)busy.key, (unsigned long long)busy.used);
    tollgate_keyed_destroy(keyed);

    bool right = everybody == 10 && customer == 60 && probe == 100 && status == TOLLGATE_REFUSED && later == 10;
    return right && found == 1 && after.bytes == before.bytes && after.keys <= after.capacity ? 0 : 1;
}
