/* Regions: every function of theirs, with every status that its description names. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocations.h"

typedef tollgate_shm_config_t shm_config_t;
typedef tollgate_shm_t shm_t;

#define NOW (7 * SECOND)

/* That the system refused, and why. */
#define REFUSED_WITH(number, call) \
    do { \
        errno = 0; \
        GIVES(TOLLGATE_E_SYS, call); \
        EXPECT(errno == (number)); \
    } while (0)

static tollgate_config_t of(uint32_t algorithm, uint64_t limit) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, 0, limit, SECOND);
    return config;
}

static shm_config_t region_of(const tollgate_config_t *limit, uint64_t limiters, uint64_t keys) {
    shm_config_t config = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_CALLER, limit, limiters, keys);
    return config;
}

/* A name that nobody else has. */
static char path[100];

/* What is admitted through one is charged to the other. */
static void are_one(shm_t *first, shm_t *second) {
    tollgate_limiter_t *ours, *theirs;
    tollgate_decision_t decision;
    uint64_t used = 0;
    EXPECT(tollgate_shm_count(first) == 3 && tollgate_shm_count(second) == 3);
    GIVES(TOLLGATE_OK, tollgate_shm_get(first, 2, &ours));
    GIVES(TOLLGATE_OK, tollgate_shm_get(second, 2, &theirs));
    EXPECT(tollgate_try_acquire_at(ours, 3, NOW) && tollgate_try_acquire_at(theirs, 2, NOW));
    EXPECT(!tollgate_try_acquire_at(ours, 1, NOW));
    GIVES(TOLLGATE_REFUSED, tollgate_check_at(theirs, 1, NOW, &decision));
    EXPECT(decision.retry_after_ns == SECOND && decision.limit == 5 && decision.reason == TOLLGATE_REASON_LIMIT);
    GIVES(TOLLGATE_NEVER, tollgate_peek_at(theirs, 6, NOW, &decision));
    GIVES(TOLLGATE_OK, tollgate_usage_at(ours, 0, NOW, &used));
    EXPECT(used == 5);
    tollgate_destroy(ours);
    EXPECT(!tollgate_try_acquire_at(theirs, 1, NOW + SECOND - 1) && tollgate_try_acquire_at(theirs, 5, NOW + SECOND));
    GIVES(TOLLGATE_OK, tollgate_reset(theirs));
    tollgate_destroy(theirs);

    EXPECT(tollgate_shm_keyed_try_acquire_at(first, "alice", 5, 5, NOW));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(second, "alice", 5, 1, NOW));
    GIVES(TOLLGATE_REFUSED, tollgate_shm_keyed_check_at(second, "alice", 5, 1, NOW, &decision));
    EXPECT(decision.retry_after_ns == SECOND && decision.limit == 5);
    GIVES(TOLLGATE_OK, tollgate_shm_keyed_peek_at(second, "bob", 3, 5, NOW, &decision));
    EXPECT(decision.remaining == 5 && tollgate_shm_keyed_len(second) == 1);
    GIVES(TOLLGATE_OK, tollgate_shm_keyed_usage_at(second, "alice", 5, 0, NOW, &used));
    EXPECT(used == 5);
}

static void by_name(void) {
    tollgate_config_t limit = of(TOLLGATE_LOG, 5);
    shm_config_t config = region_of(&limit, 3, 20);
    shm_t *made, *found, *opened;
    struct stat file;
    size_t size = 0;
    REFUSED_WITH(ENOENT, tollgate_shm_attach(path, &config, &found));
    GIVES(TOLLGATE_OK, tollgate_shm_create(path, &config, &made));
    REFUSED_WITH(EEXIST, tollgate_shm_create(path, &config, &found));
    GIVES(TOLLGATE_OK, tollgate_shm_attach(path, &config, &found));
    are_one(made, found);
    tollgate_shm_close(found);
    GIVES(TOLLGATE_OK, tollgate_shm_open(path, &config, &opened));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(opened, "alice", 5, 1, NOW));
    GIVES(TOLLGATE_OK, tollgate_shm_size(&config, &size));
    EXPECT(stat(path, &file) == 0 && (size_t)file.st_size == size && (file.st_mode & 07777) == 0600);
    GIVES(TOLLGATE_OK, tollgate_shm_unlink(path));
    REFUSED_WITH(ENOENT, tollgate_shm_unlink(path));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(made, "alice", 5, 1, NOW)); /* who has it goes on */
    tollgate_shm_close(opened);
    GIVES(TOLLGATE_OK, tollgate_shm_open(path, &config, &opened)); /* another of that name */
    EXPECT(tollgate_shm_keyed_try_acquire_at(opened, "alice", 5, 5, NOW));
    GIVES(TOLLGATE_OK, tollgate_shm_unlink(path));
    tollgate_shm_close(opened);
    tollgate_shm_close(made);
    tollgate_shm_close(NULL);
    REFUSED_WITH(ENOENT, tollgate_shm_open("/nowhere/region", &config, &opened));
}

static void by_descriptor(void) {
    tollgate_config_t limit = of(TOLLGATE_LOG, 5);
    shm_config_t config = region_of(&limit, 3, 20);
    shm_t *made, *found;
    tollgate_shm_info_t info;
    int fd = -1;
    info.struct_size = sizeof info;
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_create_memfd("\xff", &config, &fd, &made));
    EXPECT(fd == -1);
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("limits", &config, &fd, &made));
    EXPECT(fcntl(fd, F_GETFD) == FD_CLOEXEC && ftruncate(fd, 0) == -1 && errno == EPERM);
    GIVES(TOLLGATE_OK, tollgate_shm_open_fd(fd, &config, &found));
    GIVES(TOLLGATE_OK, tollgate_shm_inspect_fd(fd, &info));
    EXPECT(close(fd) == 0);
    are_one(made, found);
    tollgate_shm_close(made);
    tollgate_shm_close(found);
    REFUSED_WITH(EBADF, tollgate_shm_open_fd(fd, &config, &found));
    REFUSED_WITH(EBADF, tollgate_shm_open_fd(-1, &config, &found));
    REFUSED_WITH(EBADF, tollgate_shm_inspect_fd(-1, &info));
    /* Memory that could be cut short, and what is no file. */
    fd = memfd_create("unsealed", 0);
    GIVES(TOLLGATE_E_UNTRUSTED, tollgate_shm_open_fd(fd, &config, &found));
    EXPECT(close(fd) == 0);
    fd = open("/", O_RDONLY | O_DIRECTORY);
    GIVES(TOLLGATE_E_UNTRUSTED, tollgate_shm_open_fd(fd, &config, &found));
    GIVES(TOLLGATE_E_UNTRUSTED, tollgate_shm_inspect_fd(fd, &info));
    EXPECT(close(fd) == 0);
}

static void in_memory(void) {
    tollgate_config_t limit = of(TOLLGATE_LOG, 5), other = of(TOLLGATE_GCRA, 5);
    shm_config_t config = region_of(&limit, 3, 20);
    shm_t *made, *found;
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_shm_size(&config, &size));
    unsigned char *memory = zeros(size + 128);
    GIVES(TOLLGATE_E_NULL, tollgate_shm_place(NULL, size, &config, &made));
    GIVES(TOLLGATE_E_SIZE, tollgate_shm_place(memory, size - 1, &config, &made));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_place(memory + 8, size, &config, &made));
    GIVES(TOLLGATE_OK, tollgate_shm_place(memory, size, &config, &made));
    GIVES(TOLLGATE_OK, tollgate_shm_place(memory, size + 128, &config, &found));
    are_one(made, found);
    tollgate_shm_close(made);
    tollgate_shm_close(found);
    config.limit = &other; /* states of another algorithm, which are not looked at as such of this one */
    GIVES(TOLLGATE_E_CONFIG, tollgate_shm_place(memory, size, &config, &made));
    config.limit = &limit;
    memset(memory, 0, 8); /* no magic, as if its maker had died: finished by the next */
    GIVES(TOLLGATE_OK, tollgate_shm_place(memory, size, &config, &made));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(made, "alice", 5, 1, NOW));
    tollgate_shm_close(made);
    memset(memory, 0, size);
    memory[100] = 1;
    GIVES(TOLLGATE_E_CONFIG, tollgate_shm_place(memory, size, &config, &made));
    memory[0] = 1;
    GIVES(TOLLGATE_E_MAGIC, tollgate_shm_place(memory, size, &config, &made));
    free(memory);
}

/* All that is wrong with a configuration, whatever it is for. */
static void configurations(void) {
    tollgate_config_t limit = of(TOLLGATE_LOG, 5);
    shm_config_t config = region_of(&limit, 1, 1), wrong;
    union {
        shm_config_t config;
        char bytes[sizeof(shm_config_t) + 1];
    } memory;
    shm_t *shm = NULL;
    size_t size = 0;
    int fd = -1;
#define ALL(status, config, out) \
    do { \
        GIVES(status, tollgate_shm_open(path, config, out)); \
        GIVES(status, tollgate_shm_create(path, config, out)); \
        GIVES(status, tollgate_shm_attach(path, config, out)); \
        GIVES(status, tollgate_shm_open_fd(0, config, out)); \
        GIVES(status, tollgate_shm_create_memfd("limits", config, &fd, out)); \
        GIVES(status, tollgate_shm_place(&memory, 0, config, out)); \
        EXPECT(fd == -1 && shm == NULL); \
    } while (0)
#define WRONG(status) \
    do { \
        ALL(status, &wrong, &shm); \
        GIVES(status, tollgate_shm_size(&wrong, &size)); \
        EXPECT(size == 0); \
        wrong = config; \
        limit = of(TOLLGATE_LOG, 5); \
    } while (0)
    ALL(TOLLGATE_E_NULL, NULL, &shm);
    ALL(TOLLGATE_E_NULL, &config, NULL);
    ALL(TOLLGATE_E_ALIGN, (shm_config_t *)(memory.bytes + 1), &shm);
    ALL(TOLLGATE_E_ALIGN, &config, (shm_t **)(memory.bytes + 1));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_open(NULL, &config, &shm));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_create(NULL, &config, &shm));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_attach(NULL, &config, &shm));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_create_memfd(NULL, &config, &fd, &shm));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_create_memfd("limits", &config, NULL, &shm));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_create_memfd("limits", &config, (int *)(memory.bytes + 1), &shm));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_size(NULL, &size));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_size(&config, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_size(&config, (size_t *)(memory.bytes + 1)));
    wrong = config;
    wrong.struct_size += 1;
    WRONG(TOLLGATE_E_SIZE);
    wrong.flags = 1;
    WRONG(TOLLGATE_E_INVALID);
    wrong.mode = 01000;
    WRONG(TOLLGATE_E_INVALID);
    for (int i = 0; i < 4; i++) {
        wrong.reserved[i] = 1;
        WRONG(TOLLGATE_E_INVALID);
    }
    wrong.clock = 0;
    WRONG(TOLLGATE_E_INVALID);
    wrong.clock = TOLLGATE_CLOCK_PRECISE;
    WRONG(TOLLGATE_E_CLOCK);
    wrong.clock = TOLLGATE_CLOCK_COARSE;
    WRONG(TOLLGATE_E_CLOCK);
    wrong.limit = NULL;
    WRONG(TOLLGATE_E_NULL);
    wrong.limit = (tollgate_config_t *)(memory.bytes + 1);
    WRONG(TOLLGATE_E_ALIGN);
    limit.struct_size = 0;
    WRONG(TOLLGATE_E_SIZE);
    limit.clock = TOLLGATE_CLOCK_CALLER;
    WRONG(TOLLGATE_E_INVALID);
    limit.shards = 2;
    WRONG(TOLLGATE_E_INVALID);
    limit.flags = TOLLGATE_STATS;
    WRONG(TOLLGATE_E_INVALID);
    limit.rules[0].window_ns = 0;
    WRONG(TOLLGATE_E_INVALID);
    limit.algorithm = TOLLGATE_PACING;
    WRONG(TOLLGATE_E_UNSUPPORTED);
    limit.algorithm = TOLLGATE_COMPACT;
    WRONG(TOLLGATE_E_UNSUPPORTED);
    wrong.keys = UINT64_MAX;
    GIVES(TOLLGATE_E_NOMEM, tollgate_shm_open(path, &wrong, &shm));
    GIVES(TOLLGATE_E_NOMEM, tollgate_shm_place(&memory, 0, &wrong, &shm));
    GIVES(TOLLGATE_E_NOMEM, tollgate_shm_size(&wrong, &size));
#undef WRONG
#undef ALL
}

/* The seal of a header, as the sources describe it. */
static void seal(uint64_t *words) {
    uint64_t digest = 0;
    for (int i = 0; i < 128; i++) {
        if (i == 0 || i == 3) continue;
        digest = (digest ^ words[i]) * 0x9e3779b97f4a7c15;
        digest ^= digest >> 32;
    }
    words[3] = digest ? digest : 1;
}

/* What a file holds that is not, or not quite, the region. */
static void foreign(void) {
    tollgate_config_t limit = of(TOLLGATE_LOG, 5), other = of(TOLLGATE_GCRA, 5);
    shm_config_t config = region_of(&limit, 3, 20), differs;
    tollgate_shm_info_t info, told;
    shm_t *shm, *found = NULL;
    size_t size;
    config.clock = TOLLGATE_CLOCK_MONOTONIC;
    GIVES(TOLLGATE_OK, tollgate_shm_size(&config, &size));
    GIVES(TOLLGATE_OK, tollgate_shm_create(path, &config, &shm));
    int fd = open(path, O_RDWR);
    uint64_t *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), header[128];
    EXPECT(fd >= 0 && words != MAP_FAILED);
    memcpy(header, words, sizeof header);

    info.struct_size = told.struct_size = sizeof info;
    GIVES(TOLLGATE_OK, tollgate_shm_inspect(path, &info));
    EXPECT(info.struct_size == sizeof info && info.layout_version == 2 && info.algorithm == TOLLGATE_LOG &&
           info.clock == TOLLGATE_CLOCK_MONOTONIC && info.flags == 0 && info.rule_count == 1 && info.bytes == size &&
           info.limiters == 3 && info.capacity == 42 && info.rules[0].limit == 5 && info.rules[0].window_ns == SECOND &&
           info.rules[1].limit == 0 && info.reserved[3] == 0);

#define BOTH(status) \
    do { \
        GIVES(status, tollgate_shm_open(path, &config, &found)); \
        GIVES(status, tollgate_shm_inspect(path, &told)); \
        memcpy(words, header, sizeof header); \
    } while (0)
    words[0] = 0;
    BOTH(TOLLGATE_E_NOT_READY);
    words[0] = 7;
    BOTH(TOLLGATE_E_MAGIC);
    words[1] += 1;
    BOTH(TOLLGATE_E_LAYOUT);
    words[40] ^= 1;
    BOTH(TOLLGATE_E_CORRUPT);
    words[2] ^= 1; /* a layout of states */
    seal(words);
    GIVES(TOLLGATE_E_LAYOUT, tollgate_shm_attach(path, &config, &found));
    memcpy(words, header, sizeof header);
    words[10] ^= 1; /* a boot */
    words[8] = 7;   /* and an algorithm that nobody knows */
    seal(words);
    GIVES(TOLLGATE_OK, tollgate_shm_inspect(path, &told));
    EXPECT(told.flags == TOLLGATE_STALE && told.algorithm == 0);
    words[8] = header[8];
    seal(words);
    GIVES(TOLLGATE_E_CLOCK, tollgate_shm_attach(path, &config, &found));
    memcpy(words, header, sizeof header);
    words[128] = ~0ull; /* a state */
    GIVES(TOLLGATE_E_CORRUPT, tollgate_shm_attach(path, &config, &found));
    words[128] = 0;

#define DIFFERS(status) \
    do { \
        GIVES(status, tollgate_shm_attach(path, &differs, &found)); \
        differs = config; \
        limit = of(TOLLGATE_LOG, 5); \
    } while (0)
    differs = config;
    limit.rules[0].limit = 6;
    DIFFERS(TOLLGATE_E_CONFIG);
    differs.limit = &other;
    DIFFERS(TOLLGATE_E_CONFIG);
    differs.limiters += 1;
    DIFFERS(TOLLGATE_E_CONFIG);
    differs.keys = 200;
    DIFFERS(TOLLGATE_E_CONFIG);
    differs.clock = TOLLGATE_CLOCK_BOOTTIME;
    DIFFERS(TOLLGATE_E_CONFIG);
    differs.flags = TOLLGATE_REFUSE_WHEN_FULL;
    DIFFERS(TOLLGATE_E_CONFIG);
    EXPECT(chmod(path, 0620) == 0);
    DIFFERS(TOLLGATE_E_UNTRUSTED);
    differs.mode = 0660;
    DIFFERS(TOLLGATE_OK);
    tollgate_shm_close(found);
    EXPECT(chmod(path, 0600) == 0);
    if (geteuid() == 0) {
        EXPECT(chown(path, 1, (gid_t)-1) == 0);
        DIFFERS(TOLLGATE_E_UNTRUSTED);
        differs.flags = TOLLGATE_ANY_OWNER;
        DIFFERS(TOLLGATE_OK);
        tollgate_shm_close(found);
        EXPECT(chown(path, 0, (gid_t)-1) == 0);
    }
    EXPECT(ftruncate(fd, (off_t)size + 1) == 0);
    DIFFERS(TOLLGATE_E_SIZE);

    GIVES(TOLLGATE_E_NULL, tollgate_shm_inspect(NULL, &told));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_inspect(path, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_inspect(path, (tollgate_shm_info_t *)((char *)&told + 1)));
    REFUSED_WITH(ENOENT, tollgate_shm_inspect("/nowhere/region", &told));
    told.struct_size = 0;
    GIVES(TOLLGATE_E_SIZE, tollgate_shm_inspect(path, &told));
    GIVES(TOLLGATE_E_SIZE, tollgate_shm_inspect_fd(fd, &told));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_unlink(NULL));
    GIVES(TOLLGATE_OK, tollgate_shm_unlink(path));
    EXPECT(munmap(words, size) == 0 && close(fd) == 0);
    tollgate_shm_close(shm);
}

static void by_index(void) {
    tollgate_config_t limit = of(TOLLGATE_WINDOW, 5), got;
    shm_config_t config = region_of(&limit, 2, 0);
    tollgate_limiter_t *limiter = NULL, *same;
    tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    tollgate_stats_t stats;
    uint64_t wait;
    uint32_t count;
    shm_t *shm;
    int fd;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("limits", &config, &fd, &shm));
    EXPECT(close(fd) == 0 && tollgate_shm_count(shm) == 2 && tollgate_shm_count(NULL) == 0);
    GIVES(TOLLGATE_E_NULL, tollgate_shm_get(NULL, 0, &limiter));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_get(shm, 0, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_get(shm, 0, (tollgate_limiter_t **)((char *)rules + 1)));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_get(shm, 2, &limiter));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_get(shm, UINT64_MAX, &limiter));
    EXPECT(limiter == NULL);
    GIVES(TOLLGATE_OK, tollgate_shm_get(shm, 1, &limiter));
    /* It is a limiter for every function. */
    EXPECT(tollgate_try_acquire_at(limiter, 2, NOW));
    EXPECT(!tollgate_try_acquire(limiter)); /* it has no clock */
    GIVES(TOLLGATE_E_CLOCK, tollgate_check(limiter, 1, NULL));
    GIVES(TOLLGATE_E_INVALID, tollgate_check_at(limiter, 1, 1ull << 62, NULL));
    GIVES(TOLLGATE_OK, tollgate_get_rules(limiter, rules, &count));
    EXPECT(count == 1 && rules[0].limit == 5 && rules[0].window_ns == SECOND);
    got.struct_size = sizeof got;
    GIVES(TOLLGATE_OK, tollgate_get_config(limiter, &got));
    EXPECT(got.algorithm == TOLLGATE_WINDOW && got.clock == TOLLGATE_CLOCK_CALLER && got.rules[0].limit == 5);
    stats.struct_size = sizeof stats;
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_stats(limiter, &stats));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_set_rules(limiter, rules, 1));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_reserve_at(limiter, 1, NOW, &wait));
    GIVES(TOLLGATE_E_CORRUPT, tollgate_attach_in(limiter, 4096, &same)); /* it is of this process */
    /* Another handle of the same index, another index. */
    GIVES(TOLLGATE_OK, tollgate_shm_get(shm, 1, &same));
    EXPECT(tollgate_try_acquire_at(same, 3, NOW) && !tollgate_try_acquire_at(limiter, 1, NOW));
    tollgate_destroy(same);
    GIVES(TOLLGATE_OK, tollgate_shm_get(shm, 0, &same));
    EXPECT(tollgate_try_acquire_at(same, 5, NOW));
    tollgate_destroy(same);
    tollgate_shm_close(shm);
    tollgate_destroy(limiter);
}

static void by_key(void) {
    tollgate_config_t limit = of(TOLLGATE_LOG, 5);
    shm_config_t config = region_of(&limit, 0, 7);
    tollgate_decision_t decision;
    uint64_t used = 99;
    shm_t *shm, *keyless;
    int fd;
    config.flags = TOLLGATE_REFUSE_WHEN_FULL;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("keys", &config, &fd, &shm));
    EXPECT(close(fd) == 0 && tollgate_shm_count(shm) == 0 && tollgate_shm_keyed_capacity(shm) == 14);
    EXPECT(tollgate_shm_keyed_len(shm) == 0 && tollgate_shm_keyed_len(NULL) == 0 && tollgate_shm_keyed_capacity(NULL) == 0);
    for (int peek = 0; peek < 2; peek++) {
#define ASK(shm, key, len, n, now) \
    (peek ? tollgate_shm_keyed_peek_at(shm, key, len, n, now, &decision) \
          : tollgate_shm_keyed_check_at(shm, key, len, n, now, &decision))
        GIVES(TOLLGATE_E_NULL, ASK(NULL, "k", 1, 1, NOW));
        GIVES(TOLLGATE_E_NULL, ASK(shm, NULL, 1, 1, NOW));
        GIVES(TOLLGATE_E_INVALID, ASK(shm, "k", TOLLGATE_KEY_MAX + 1, 1, NOW));
        GIVES(TOLLGATE_E_INVALID, ASK(shm, "k", SIZE_MAX, 1, NOW));
        GIVES(TOLLGATE_E_INVALID, ASK(shm, "k", 1, 1, 1ull << 62));
        GIVES(TOLLGATE_NEVER, ASK(shm, "k", 1, 6, NOW));
        GIVES(TOLLGATE_OK, ASK(shm, "k", 0, 0, NOW));
#undef ASK
    }
    GIVES(TOLLGATE_E_CLOCK, tollgate_shm_keyed_check(shm, "k", 1, 1, &decision));
    GIVES(TOLLGATE_E_CLOCK, tollgate_shm_keyed_peek(shm, "k", 1, 1, &decision));
    EXPECT(!tollgate_shm_keyed_try_acquire(shm, "k", 1, 1));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(NULL, "k", 1, 1, NOW) && !tollgate_shm_keyed_try_acquire_at(shm, NULL, 1, 1, NOW));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(shm, "k", TOLLGATE_KEY_MAX + 1, 1, NOW));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(shm, "k", 1, 1, 1ull << 62));
    EXPECT(tollgate_shm_keyed_try_acquire_at(shm, "k", 1, 0, NOW) && tollgate_shm_keyed_len(shm) == 0);
    GIVES(TOLLGATE_E_NULL, tollgate_shm_keyed_usage_at(NULL, "k", 1, 0, NOW, &used));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_keyed_usage_at(shm, NULL, 1, 0, NOW, &used));
    GIVES(TOLLGATE_E_NULL, tollgate_shm_keyed_usage_at(shm, "k", 1, 0, NOW, NULL));
    GIVES(TOLLGATE_E_ALIGN, tollgate_shm_keyed_usage_at(shm, "k", 1, 0, NOW, (uint64_t *)((char *)&decision + 1)));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_keyed_usage_at(shm, "k", TOLLGATE_KEY_MAX + 1, 0, NOW, &used));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_keyed_usage_at(shm, "k", 1, 1, NOW, &used));
    GIVES(TOLLGATE_E_INVALID, tollgate_shm_keyed_usage_at(shm, "k", 1, 0, 1ull << 62, &used));
    EXPECT(used == 99);

    /* Fourteen keys in use, and no room for another until one is idle. */
    for (char key = 'a'; key < 'a' + 14; key++) GIVES(TOLLGATE_OK, tollgate_shm_keyed_check_at(shm, &key, 1, 1, NOW, NULL));
    EXPECT(tollgate_shm_keyed_len(shm) == 14);
    GIVES(TOLLGATE_REFUSED, tollgate_shm_keyed_check_at(shm, "z", 1, 1, NOW, &decision));
    EXPECT(decision.reason == TOLLGATE_REASON_FULL && decision.retry_after_ns == SECOND && decision.remaining == 0);
    GIVES(TOLLGATE_REFUSED, tollgate_shm_keyed_peek_at(shm, "z", 1, 1, NOW, &decision));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(shm, "z", 1, 1, NOW));
    EXPECT(tollgate_shm_keyed_try_acquire_at(shm, "z", 1, 5, NOW + SECOND) && tollgate_shm_keyed_len(shm) == 14);
    tollgate_shm_close(shm);

    /* Those without room share one. */
    config.flags = 0;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("keys", &config, &fd, &shm));
    EXPECT(close(fd) == 0);
    for (char key = 'a'; key < 'a' + 14; key++) EXPECT(tollgate_shm_keyed_try_acquire_at(shm, &key, 1, 1, NOW));
    EXPECT(tollgate_shm_keyed_try_acquire_at(shm, "y", 1, 3, NOW) && tollgate_shm_keyed_try_acquire_at(shm, "z", 1, 2, NOW));
    GIVES(TOLLGATE_REFUSED, tollgate_shm_keyed_peek_at(shm, "x", 1, 1, NOW, &decision));
    tollgate_shm_close(shm);

    config.limiters = 1;
    config.keys = 0;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("keyless", &config, &fd, &keyless));
    EXPECT(close(fd) == 0 && tollgate_shm_keyed_capacity(keyless) == 0 && tollgate_shm_keyed_len(keyless) == 0);
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_shm_keyed_check_at(keyless, "k", 1, 1, NOW, &decision));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_shm_keyed_peek_at(keyless, "k", 1, 1, NOW, &decision));
    GIVES(TOLLGATE_E_UNSUPPORTED, tollgate_shm_keyed_usage_at(keyless, "k", 1, 0, NOW, &used));
    EXPECT(!tollgate_shm_keyed_try_acquire_at(keyless, "k", 1, 1, NOW));
    tollgate_shm_close(keyless);
}

/* The system's clocks, and every algorithm. */
static void by_clock(void) {
    const uint32_t clocks[] = {TOLLGATE_CLOCK_MONOTONIC, TOLLGATE_CLOCK_BOOTTIME};
    for (int i = 0; i < 10; i++) {
        tollgate_config_t limit = of(1 + (uint32_t)i / 2, 5);
        limit.rules[0].window_ns = 3600 * SECOND;
        shm_config_t config = region_of(&limit, 1, 1);
        tollgate_limiter_t *limiter;
        tollgate_decision_t decision;
        tollgate_shm_info_t info;
        shm_t *shm;
        int fd, admitted = 0;
        config.clock = clocks[i % 2];
        GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("clock", &config, &fd, &shm));
        info.struct_size = sizeof info;
        GIVES(TOLLGATE_OK, tollgate_shm_inspect_fd(fd, &info));
        EXPECT(info.algorithm == limit.algorithm && info.clock == config.clock && close(fd) == 0);
        GIVES(TOLLGATE_OK, tollgate_shm_get(shm, 0, &limiter));
        uint64_t before = tollgate_now_ns(config.clock);
        for (int call = 0; call < 10; call++) admitted += tollgate_try_acquire(limiter);
        EXPECT(admitted == 5);
        GIVES(TOLLGATE_REFUSED, tollgate_check(limiter, 1, &decision));
        for (int call = 0; call < 9; call++) admitted += tollgate_shm_keyed_try_acquire(shm, "k", 1, 1);
        EXPECT(admitted == 10);
        GIVES(TOLLGATE_REFUSED, tollgate_shm_keyed_check(shm, "k", 1, 1, &decision));
        GIVES(TOLLGATE_REFUSED, tollgate_shm_keyed_peek(shm, "k", 1, 1, &decision));
        bool knows = limit.algorithm == TOLLGATE_LOG || limit.algorithm == TOLLGATE_GCRA;
        EXPECT(!knows || (before <= decision.now_ns && decision.now_ns <= tollgate_now_ns(config.clock)));
        tollgate_destroy(limiter);
        tollgate_shm_close(shm);
    }
}

static void answers(int status) {
    EXPECT(strcmp(tollgate_status_name(status), "TOLLGATE_UNKNOWN") != 0);
}

/* F099: the ends of every range, of which none ends the process. */
static void f099_nothing_panics(void) {
    const uint64_t ends[] = {0, 1, 2, 14, UINT32_MAX, 1ull << 62, (1ull << 62) - 1, INT64_MAX, 1ull << 63, UINT64_MAX};
    const size_t count = sizeof ends / sizeof *ends;
    tollgate_config_t limit = of(TOLLGATE_LOG, 5);
    shm_config_t config = region_of(&limit, 2, 7);
    tollgate_limiter_t *limiter;
    tollgate_decision_t decision;
    uint64_t used;
    shm_t *shm, *none = NULL;
    size_t size;
    char memory[1];
    int fd;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            shm_config_t any = region_of(&limit, ends[i], ends[j]);
            answers(tollgate_shm_size(&any, &size));
            answers(tollgate_shm_place(memory, 0, &any, &none));
            any.keys = any.limiters = 1;
            any.clock = (uint32_t)ends[i];
            any.mode = (uint32_t)ends[j];
            answers(tollgate_shm_size(&any, &size));
            tollgate_config_t odd = of((uint32_t)ends[i], ends[j]);
            any.clock = TOLLGATE_CLOCK_CALLER;
            any.limit = &odd;
            answers(tollgate_shm_size(&any, &size));
            EXPECT(none == NULL);
        }
        EXPECT(tollgate_shm_open_fd(-1 - (int)(ends[i] >> 33), &config, &none) == TOLLGATE_E_SYS);
    }
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_GCRA; algorithm++) {
        limit = of(algorithm, 5);
        GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("", &config, &fd, &shm));
        EXPECT(close(fd) == 0);
        for (size_t i = 0; i < count; i++) {
            limiter = NULL;
            answers(tollgate_shm_get(shm, ends[i], &limiter));
            tollgate_destroy(limiter);
            GIVES(TOLLGATE_OK, tollgate_shm_get(shm, 1, &limiter));
            for (size_t j = 0; j < count; j++) {
                tollgate_try_acquire_at(limiter, ends[i], ends[j]);
                answers(tollgate_check_at(limiter, ends[i], ends[j], &decision));
                answers(tollgate_usage_at(limiter, (uint32_t)ends[i], ends[j], &used));
                tollgate_shm_keyed_try_acquire_at(shm, "k", 1, ends[i], ends[j]);
                answers(tollgate_shm_keyed_check_at(shm, "k", 1, ends[i], ends[j], &decision));
                answers(tollgate_shm_keyed_peek_at(shm, "l", 1, ends[i], ends[j], &decision));
                answers(tollgate_shm_keyed_usage_at(shm, "k", 1, (uint32_t)ends[i], ends[j], &used));
            }
            tollgate_destroy(limiter);
        }
        tollgate_shm_close(shm);
    }
}

/* What a handler of a signal may call, on a region and on a limiter of it. */
static shm_t *region;
static tollgate_limiter_t *in_region;

static void handled(void) {
    tollgate_decision_t decision;
    uint64_t used;
    for (uint64_t now = NOW; now < NOW + 9; now++) {
        tollgate_try_acquire_at(in_region, 1, now);
        EXPECT(tollgate_check_at(in_region, 1, now, &decision) >= 0);
        tollgate_shm_keyed_try_acquire_at(region, "alice", 5, 1, now);
        EXPECT(tollgate_shm_keyed_check_at(region, &now, sizeof now, 1, now, &decision) >= 0);
        EXPECT(tollgate_shm_keyed_peek_at(region, "bob", 3, 1, now, &decision) >= 0);
        EXPECT(tollgate_shm_keyed_usage_at(region, "alice", 5, 0, now, &used) == TOLLGATE_OK);
    }
    EXPECT(tollgate_shm_keyed_len(region) > 1 && tollgate_shm_keyed_capacity(region) > 1 && tollgate_shm_count(region) == 1);
}

static void in_handlers(void) {
    tollgate_config_t limit = of(TOLLGATE_LOG, 5);
    shm_config_t config = region_of(&limit, 1, 10);
    int fd;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("", &config, &fd, &region));
    EXPECT(close(fd) == 0);
    GIVES(TOLLGATE_OK, tollgate_shm_get(region, 0, &in_region));
    in_a_handler(NULL, handled);
    tollgate_destroy(in_region);
    tollgate_shm_close(region);
}

int main(void) {
    snprintf(path, sizeof path, "/dev/shm/tollgate-shm-test-%d", (int)getpid());
    by_name();
    by_descriptor();
    in_memory();
    configurations();
    foreign();
    by_index();
    by_key();
    by_clock();
    in_handlers();
    f099_nothing_panics();
    return 0;
}
