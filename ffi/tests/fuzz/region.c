/* Arbitrary bytes as a region: wrong decisions at worst, never a crash, a hang or a step outside of it.
 *
 * An input is a configuration, what is done to the bytes, and calls. Most inputs leave the header as a maker writes it, or
 * seal it again, so that what lies behind it is reached. Bytes may be changed between calls as well: then a call may wait, and is
 * left after a while; what is attached to as it is must let every call come back. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

/* A region may be as large as memory. Here the interesting ones are small. */
#define BYTES_MAX (1u << 15)
#define HEADER 0x400
#define WORDS (HEADER / 8)

static tollgate_config_t limit;

static tollgate_shm_config_t take_region(struct input *input) {
    uint8_t kind = take_u8(input), room = take_u8(input);
    tollgate_config_t any = TOLLGATE_CONFIG_INIT(1 + kind % 5, 0, take_u8(input) % 140, 1 + take_u8(input));
    if (kind & 8) {
        any.max_cost = 1;
    }
    if (any.algorithm == TOLLGATE_WINDOW && kind & 16) {
        any.flags = TOLLGATE_TEXTBOOK_COVERAGE;
    }
    if (any.algorithm <= TOLLGATE_WINDOW && kind & 32) {
        any.rule_count = 2;
        any.rules[1].limit = any.rules[0].limit + 3;
        any.rules[1].window_ns = 2 * any.rules[0].window_ns;
    }
    if (any.algorithm == TOLLGATE_WINDOW) {
        any.buckets = 5;
        any.rules[0].window_ns *= 5;
        any.rules[1].window_ns *= 5;
    }
    limit = any;
    static const uint64_t keys[] = {0, 1, 7, 8}; /* none, one bucket, two */
    tollgate_shm_config_t config = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_CALLER, &limit, room & 3, keys[room >> 2 & 3]);
    config.flags = kind & 64 ? TOLLGATE_REFUSE_WHEN_FULL : 0;
    if (room & 16 && any.algorithm != TOLLGATE_GCRA) {
        config.flags |= TOLLGATE_LIVE;
        limit.reserved[1] = any.algorithm == TOLLGATE_LOG && room & 32 ? any.rules[0].limit + 3 : 0;
    }
    return config;
}

/* The seal of a header, as the sources describe it. */
static void seal(uint64_t *words) {
    uint64_t digest = 0;
    for (int i = 0; i < WORDS; i++) {
        if (i != 0 && i != 3) {
            digest = (digest ^ words[i]) * 0x9e3779b97f4a7c15;
            digest ^= digest >> 32;
        }
    }
    words[3] = digest ? digest : 1;
}

/* Changes some words, or all, from a byte of the region on: with what a word of a state may look like, or with anything. */
static void change(struct input *input, unsigned char *memory, size_t from, size_t length) {
    uint8_t how = take_u8(input);
    if (from >= length) {
        return; /* a region without anything behind its header */
    }
    if (how & 0x80) {
        take(input, memory + from, how & 0x40 ? length - from : take_u64(input) % (length - from));
        return;
    }
    for (int changes = 1 + (how & 15); changes > 0; changes--) {
        size_t words = (length - from) / 8, at = from + take_u64(input) % words * 8;
        uint64_t word;
        memcpy(&word, memory + at, 8);
        word = how & 0x10 ? take_u64(input) : how & 0x20 ? UINT64_MAX - take_u8(input) : word ^ 1ull << (take_u8(input) & 63);
        memcpy(memory + at, &word, 8);
    }
}

/* Where a call is left that waits, and by whom: the signal may come to a thread of the fuzzer's. */
static sigjmp_buf late;
static pthread_t caller;

static void on_late(int number) {
    if (pthread_equal(pthread_self(), caller)) {
        siglongjmp(late, 1);
    }
    pthread_kill(caller, number);
}

/* Has the program leave what it is in after so much time of the processor; 0: never. */
static void leave_after(suseconds_t micros) {
    struct itimerval span = {{0, 0}, {0, micros}};
    caller = pthread_self();
    CHECK(signal(SIGVTALRM, on_late) != SIG_ERR);
    CHECK(setitimer(ITIMER_VIRTUAL, &span, NULL) == 0);
}

/* One call. */
static void ask(tollgate_shm_t *shm, tollgate_limiter_t *limiter, uint8_t what, struct input *input) {
    uint8_t key = take_u8(input), n = take_u8(input);
    uint64_t now = what & 0x80 ? take_u64(input) : take_u8(input), used;
    tollgate_decision_t decision;
    switch (what & 15) {
    case 0:
        tollgate_try_acquire_at(limiter, n, now);
        break;
    case 1:
        known(tollgate_check_at(limiter, n, now, &decision));
        break;
    case 2:
        known(tollgate_peek_at(limiter, n, now, &decision));
        break;
    case 3:
        known(tollgate_usage_at(limiter, n & 1, now, &used));
        break;
    case 4:
        known(tollgate_reset(limiter));
        break;
    case 5:
        known(tollgate_shm_keyed_check_at(shm, &key, 1, n, now, &decision));
        break;
    case 6:
        known(tollgate_shm_keyed_peek_at(shm, &key, 1, n, now, &decision));
        break;
    case 7:
        known(tollgate_shm_keyed_usage_at(shm, &key, 1, n & 1, now, &used));
        break;
    case 8:
        CHECK(tollgate_shm_keyed_len(shm) <= tollgate_shm_keyed_capacity(shm));
        break;
    case 9: {
        tollgate_rule_t rules[TOLLGATE_MAX_RULES] = {{n, 1 + key}, {key, now}};
        uint32_t count = 0;
        known(tollgate_shm_set_rules(shm, rules, what >> 4 & 3));
        known(tollgate_shm_get_rules(shm, rules, &count));
        CHECK(count >= 1 && count <= TOLLGATE_MAX_RULES);
        break;
    }
    default:
        tollgate_shm_keyed_try_acquire_at(shm, &key, 1, n, now);
    }
}

/* Every call that there is, on a region whose states may be changed between them, if they are given. */
static void call(tollgate_shm_t *shm, struct input *input, unsigned char *states, size_t length) {
    tollgate_limiter_t *volatile limiter = NULL;
    volatile bool changed = false;
    if (sigsetjmp(late, 1) == 0) {
        for (int calls = 0; input->left > 0 && calls < 48; calls++) {
            uint8_t what = take_u8(input);
            if (limiter == NULL || what & 0x40) {
                tollgate_limiter_t *got = NULL;
                uint64_t count = tollgate_shm_count(shm), index = take_u8(input) % (count + 1);
                tollgate_destroy(limiter);
                known(tollgate_shm_get(shm, index, &got));
                CHECK_EQ(got != NULL, index < count);
                limiter = got;
            }
            if (states != NULL && (what & 0x30) == 0x30) {
                change(input, states, 0, length);
                if (!changed) {
                    leave_after(20000);
                }
                changed = true;
            }
            ask(shm, limiter, what, input);
        }
    }
    leave_after(0);
    tollgate_destroy(limiter);
}

/* The same bytes as a file: looked at, and attached to. */
static void from_file(struct input *input, const tollgate_shm_config_t *config, const unsigned char *memory, size_t length) {
    int fd = memfd_create("region", MFD_ALLOW_SEALING);
    tollgate_shm_info_t info = {.struct_size = sizeof info};
    tollgate_shm_t *shm = NULL;
    uint8_t cut = take_u8(input);
    length -= cut < length ? cut & 63 : 0;
    CHECK(fd >= 0 && write(fd, memory, length) == (ssize_t)length);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    known(tollgate_shm_inspect_fd(fd, &info));
    known(tollgate_shm_open_fd(fd, config, &shm));
    CHECK(close(fd) == 0);
    if (shm != NULL) {
        call(shm, input, NULL, 0);
    }
    tollgate_shm_close(shm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    tollgate_shm_config_t config = take_region(&input);
    size_t length = 0;
    if (tollgate_shm_size(&config, &length) != TOLLGATE_OK || length > BYTES_MAX) {
        return 0;
    }
    unsigned char *memory = memory_of(length);
    tollgate_shm_t *shm = NULL;
    CHECK_EQ(tollgate_shm_place(memory, length, &config, &shm), TOLLGATE_OK);
    uint8_t how = take_u8(&input);
    if (how & 1) {
        call(shm, &input, NULL, 0); /* so that there are keys, and permits */
    }
    tollgate_shm_close(shm);
    shm = NULL;
    switch (how >> 1 & 7) {
    case 0: /* anything at all */
        take(&input, memory, length);
        break;
    case 1: /* a header that contradicts the rest, and is sealed */
        change(&input, memory, 8, HEADER);
        seal((uint64_t *)memory);
        break;
    case 2: /* a header that is begun */
        memset(memory, 0, 8);
        change(&input, memory, 8, HEADER);
        break;
    default: /* states, and the words of buckets */
        change(&input, memory, HEADER, length);
    }
    if (how & 16) {
        from_file(&input, &config, memory, length);
    }
    int placed = tollgate_shm_place(memory, length, &config, &shm);
    known(placed);
    CHECK_EQ(placed == TOLLGATE_OK, shm != NULL);
    if (shm != NULL) {
        call(shm, &input, memory + HEADER, length - HEADER);
    }
    tollgate_shm_close(shm);
    free(memory);
    return 0;
}
