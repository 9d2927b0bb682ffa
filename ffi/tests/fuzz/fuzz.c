/* Arbitrary bytes as configuration, as memory to attach to and as arguments: a status each time, and memory left alone.
 * The first byte of an input picks the target. */
#include "fuzz.h"

/* A limiter may be as large as memory. Here the interesting ones are small. */
#define BYTES_MAX (1u << 16)
/* Bytes before most states. */
#define DESCRIBED 0x300

/* What an answer must be, whatever was asked. */
static void plausible(int status, const tollgate_decision_t *decision, uint64_t n) {
    known(status);
    if (status < 0) {
        return;
    }
    CHECK_EQ(decision->allowed, status == TOLLGATE_OK);
    if (status == TOLLGATE_NEVER) {
        CHECK(n > 0 && decision->retry_after_ns == UINT64_MAX);
    }
    if (status == TOLLGATE_REFUSED) {
        CHECK(n > 0 && decision->retry_after_ns > 0 && decision->retry_after_ns != UINT64_MAX);
    }
}

/* Calls as the input says, on a limiter whose answers must make sense, or, if it is not trusted, on one in any state that
 * passed the checks, which can answer anything. */
static void call(tollgate_limiter_t *limiter, struct input *input, bool trusted) {
    for (int calls = 0; input->left > 0 && calls < 32; calls++) {
        uint8_t what = take_u8(input);
        uint64_t n = what & 0x80 ? take_u64(input) : take_u8(input);
        uint64_t now = take_u64(input);
        uint64_t used;
        tollgate_decision_t decision, peeked;
        memset(&decision, 0, sizeof decision);
        memset(&peeked, 0, sizeof peeked);
        switch (what & 7) {
        case 0:
            tollgate_try_acquire_at(limiter, n, now);
            break;
        case 1: {
            int promised = tollgate_peek_at(limiter, n, now, &peeked);
            int status = tollgate_check_at(limiter, n, now, &decision);
            if (trusted) {
                plausible(promised, &peeked, n);
                plausible(status, &decision, n);
                CHECK_EQ(promised, status);
            }
            break;
        }
        case 2:
            known(tollgate_peek_at(limiter, n, now, &decision));
            break;
        case 3:
            known(tollgate_usage_at(limiter, (uint32_t)n, now, &used));
            break;
        case 4:
            known(tollgate_check_at(limiter, n, now, NULL));
            break;
        case 5:
            known(tollgate_check(limiter, n, &decision));
            break;
        case 6: {
            tollgate_config_t config;
            memset(&config, 0, sizeof config);
            config.struct_size = sizeof config;
            known(tollgate_get_config(limiter, &config));
            break;
        }
        default:
            if (what & 8) {
                tollgate_rule_t rules[TOLLGATE_MAX_RULES] = {{n, now}, {now, n}};
                uint32_t count = 0;
                known(tollgate_set_rules(limiter, rules, what >> 4 & 3));
                CHECK_EQ(tollgate_get_rules(limiter, rules, &count), TOLLGATE_OK);
                CHECK(count >= 1 && count <= TOLLGATE_MAX_RULES);
            } else {
                known(tollgate_reset(limiter));
            }
        }
    }
}

static void take_config(struct input *input, tollgate_config_t *config) {
    uint8_t likely = take_u8(input);
    take(input, config, sizeof *config);
    /* Most inputs should come past the first checks. */
    if (likely & 1) {
        config->struct_size = sizeof *config;
        memset(config->reserved, 0, sizeof config->reserved);
    }
    if (likely & 2) {
        config->algorithm &= 7;
        config->clock &= 7;
        config->rule_count &= 7;
        config->flags = config->shards = 0;
    }
    if (likely & 8) { /* of what takes shards, and changes */
        config->algorithm = 1 + (config->algorithm & 1);
        config->flags = likely & 16 ? TOLLGATE_STATS : 0;
        config->shards = 2 + (likely >> 5 & 3);
        config->rule_count = 1;
        memset(config->rules + 1, 0, sizeof config->rules - sizeof *config->rules);
        if (likely & 128) {
            config->flags |= TOLLGATE_LIVE;
            config->reserved[1] = config->rules[0].limit;
        }
    }
    if (likely & 4) {
        for (int i = 0; i < TOLLGATE_MAX_RULES; i++) {
            config->rules[i].limit &= 0xFFF;
        }
    }
}

/* What memory grows with, where it can not be asked for beforehand. */
static uint64_t largest_limit(const tollgate_config_t *config) {
    uint64_t largest = config->reserved[1];
    for (uint32_t i = 0; i < config->rule_count && i < TOLLGATE_MAX_RULES; i++) {
        largest = config->rules[i].limit > largest ? config->rules[i].limit : largest;
    }
    return largest;
}

static void config_target(struct input *input) {
    tollgate_config_t config;
    take_config(input, &config);
    size_t length = 0;
    int sized = tollgate_size(&config, &length);
    known(sized);
    /* What `tollgate_create` alone makes has no size to ask for. */
    if (sized == TOLLGATE_OK ? length > BYTES_MAX : largest_limit(&config) > 0xFFF) {
        return;
    }
    tollgate_limiter_t *limiter = NULL;
    int created = tollgate_create(&config, &limiter);
    known(created);
    CHECK_EQ(created == TOLLGATE_OK, limiter != NULL);
    if (limiter != NULL) {
        call(limiter, input, true);
        tollgate_destroy(limiter);
    }
}

/* Some initialized memory with some of it overwritten or cut off: what attach lets pass keeps inside of it, and every call ends. */
static void attach_target(struct input *input) {
    tollgate_config_t config;
    take_config(input, &config);
    size_t length = 0;
    if (tollgate_size(&config, &length) != TOLLGATE_OK || length > BYTES_MAX) {
        return;
    }
    unsigned char *memory = memory_of(length);
    tollgate_limiter_t *limiter = NULL;
    int initialized = tollgate_init_in(memory, length, &config, &limiter);
    known(initialized);
    uint32_t described = DESCRIBED; /* where the state begins: the upper half of the second word */
    if (initialized == TOLLGATE_OK) {
        memcpy(&described, memory + 12, sizeof described);
    }
    for (uint8_t changes = take_u8(input) & 15; changes > 0; changes--) {
        uint64_t place = take_u64(input);
        memory[place % length] ^= take_u8(input);
    }
    uint8_t cut = take_u8(input);
    if (cut != 0 && cut < length) {
        unsigned char *shorter = memory_of(length - cut);
        memcpy(shorter, memory, length - cut);
        free(memory);
        memory = shorter;
        length -= cut;
    }
    limiter = NULL;
    int attached = tollgate_attach_in(memory, length, &limiter);
    known(attached);
    CHECK_EQ(attached == TOLLGATE_OK, limiter != NULL);
    if (limiter != NULL) {
        call(limiter, input, false);
    }
    /* The state alone, without what describes it. */
    memset(memory, 0, length < described ? length : described);
    limiter = NULL;
    known(tollgate_init_in(memory, length, &config, &limiter));
    if (limiter != NULL) {
        call(limiter, input, false);
    }
    free(memory);
}

/* Memory that nobody has initialized, of any length. */
static void bytes_target(struct input *input) {
    size_t length = take_u64(input) % 4096 + 1;
    unsigned char *memory = memory_of(length);
    take(input, memory, length);
    tollgate_limiter_t *limiter = NULL;
    int attached = tollgate_attach_in(memory, length, &limiter);
    known(attached);
    CHECK_EQ(attached == TOLLGATE_OK, limiter != NULL);
    free(memory);
}

/* Limiters by key: keys of any bytes, in room for a few. */
static void keyed_target(struct input *input) {
    tollgate_config_t limit;
    take_config(input, &limit);
    limit.reserved[1] = 0;
    if (largest_limit(&limit) > 0xFFF) {
        return;
    }
    limit.clock = limit.shards = 0;
    limit.flags &= TOLLGATE_TEXTBOOK_COVERAGE;
    limit.buckets &= 0xFF;
    uint8_t flags = take_u8(input);
    tollgate_class_t classes[] = {{&limit, 1 + (flags & 31)}, {NULL, 0}};
    tollgate_keyed_config_t config = {.struct_size = TOLLGATE_KEYED_CONFIG_SIZE, .clock = TOLLGATE_CLOCK_CALLER,
                                      .flags = flags & 32 ? TOLLGATE_REFUSE_WHEN_FULL | TOLLGATE_STATS : 0,
                                      .class_count = 2, .classes = classes, .secret = {flags, 1}};
    tollgate_keyed_t *keyed = NULL;
    int created = tollgate_keyed_create(&config, &keyed);
    known(created);
    CHECK_EQ(created == TOLLGATE_OK, keyed != NULL);
    for (int calls = 0; keyed != NULL && input->left > 0 && calls < 64; calls++) {
        uint8_t what = take_u8(input), key[70];
        size_t len = take_u8(input) % (sizeof key + 1);
        take(input, key, len < 3 ? len : 3); /* few bytes, so that keys come again */
        memset(key + 3, what, sizeof key - 3);
        uint64_t n = take_u8(input), now = take_u64(input), used;
        uint32_t class_ = what >> 6;
        tollgate_decision_t decision, peeked;
        memset(&decision, 0, sizeof decision);
        memset(&peeked, 0, sizeof peeked);
        switch (what & 3) {
        case 0:
            tollgate_keyed_try_acquire_at(keyed, class_, key, len, n, now);
            break;
        case 1: {
            int promised = tollgate_keyed_peek_at(keyed, class_, key, len, n, now, &peeked);
            int status = tollgate_keyed_check_at(keyed, class_, key, len, n, now, &decision);
            plausible(promised, &peeked, n);
            plausible(status, &decision, n);
            CHECK_EQ(promised, status);
            break;
        }
        case 2:
            known(tollgate_keyed_usage_at(keyed, class_, key, len, what >> 2 & 3, now, &used));
            break;
        default:
            tollgate_keyed_remove(keyed, class_, key, len);
        }
    }
    if (keyed != NULL) {
        tollgate_busy_key_t busy[4];
        tollgate_keyed_stats_t stats = {.struct_size = TOLLGATE_KEYED_STATS_SIZE};
        size_t found = 0;
        CHECK_EQ(tollgate_keyed_busiest_at(keyed, 1, busy, 4, &found), TOLLGATE_OK);
        CHECK_EQ(tollgate_keyed_stats(keyed, &stats), TOLLGATE_OK);
        CHECK(stats.keys <= stats.capacity && found <= 4 && found <= stats.keys);
    }
    tollgate_keyed_destroy(keyed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const targets[])(struct input *) = {config_target, attach_target, bytes_target};
    struct input input = {data, size};
    uint8_t target = take_u8(&input);
    (target == 0xFE ? keyed_target : targets[target % 3])(&input);
    return 0;
}
