/* Replays a trace made by the tests in Rust, with the answers of the models there: every answer must be the same. Each
 * limiter is made twice, by tollgate_create and, where that can be, in memory of the caller's. The lines:
 *
 *   limiter ALGORITHM RULES BUCKETS FLAGS MAX_COST BURST WORD SHARDS (LIMIT WINDOW) for each rule
 *   take N NOW ADMITTED
 *   check|peek N NOW STATUS REASON RULE LIMIT REMAINING RETRY NEXT RESET AT
 *   usage RULE NOW STATUS USED
 *   reserve N NOW STATUS WAIT
 */
#include <inttypes.h>
#include <string.h>

#include "expect.h"

static tollgate_limiter_t *limiters[2];
static void *memory;
static size_t size;
static unsigned line, limiters_made, calls;

static void fail(const char *what) {
    fprintf(stderr, "line %u: %s\n", line, what);
    exit(1);
}

static void read_words(FILE *file, uint64_t *words, int count) {
    for (int i = 0; i < count; i++) {
        if (fscanf(file, "%" SCNu64, &words[i]) != 1) fail("too few words");
    }
}

static void end_limiters(void) {
    for (int i = 0; i < 2; i++) tollgate_destroy(limiters[i]);
    free(memory);
    limiters[0] = limiters[1] = NULL;
    memory = NULL;
}

static void make_limiters(FILE *file) {
    uint64_t words[8];
    read_words(file, words, 8);
    end_limiters();
    tollgate_config_t config;
    memset(&config, 0, sizeof config);
    config.struct_size = TOLLGATE_CONFIG_SIZE;
    config.clock = TOLLGATE_CLOCK_CALLER;
    config.algorithm = (uint32_t)words[0];
    config.rule_count = (uint32_t)words[1];
    config.buckets = (uint32_t)words[2];
    config.flags = (uint32_t)words[3];
    config.max_cost = (uint32_t)words[4];
    config.burst = words[5];
    config.reserved[0] = words[6];
    config.shards = (uint32_t)words[7];
    for (uint32_t rule = 0; rule < config.rule_count; rule++) {
        uint64_t pair[2];
        read_words(file, pair, 2);
        config.rules[rule].limit = pair[0];
        config.rules[rule].window_ns = pair[1];
    }
    int status = tollgate_create(&config, &limiters[0]);
    if (status != TOLLGATE_OK) fail(tollgate_strerror(status));
    if (tollgate_size(&config, &size) == TOLLGATE_OK) {
        memory = zeros(size);
        if (tollgate_init_in(memory, size, &config, &limiters[1]) != TOLLGATE_OK) fail("not made in place");
    }
    limiters_made++;
}

/* One call of one limiter: the words after the first two, as the line has them. */
static void call(tollgate_limiter_t *limiter, const char *kind, const uint64_t *in, uint64_t *found) {
    tollgate_decision_t decision;
    memset(&decision, 0, sizeof decision);
    uint64_t word = 0;
    if (strcmp(kind, "take") == 0) {
        found[0] = tollgate_try_acquire_at(limiter, in[0], in[1]);
    } else if (strcmp(kind, "usage") == 0) {
        found[0] = (uint64_t)tollgate_usage_at(limiter, (uint32_t)in[0], in[1], &word);
        found[1] = word;
    } else if (strcmp(kind, "reserve") == 0) {
        found[0] = (uint64_t)tollgate_reserve_at(limiter, in[0], in[1], &word);
        found[1] = word;
    } else {
        int status = strcmp(kind, "peek") == 0 ? tollgate_peek_at(limiter, in[0], in[1], &decision)
                                               : tollgate_check_at(limiter, in[0], in[1], &decision);
        if (decision.allowed != (status == TOLLGATE_OK)) fail("allowed is not the status");
        const uint64_t words[] = {(uint64_t)status,        decision.reason,        decision.rule,
                                  decision.limit,          decision.remaining,     decision.retry_after_ns,
                                  decision.next_after_ns,  decision.reset_after_ns, decision.now_ns};
        memcpy(found, words, sizeof words);
    }
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    FILE *file = fopen(argv[1], "r");
    EXPECT(file);
    char kind[16];
    for (line = 1; fscanf(file, "%15s", kind) == 1; line++) {
        if (strcmp(kind, "limiter") == 0) {
            make_limiters(file);
            continue;
        }
        int answers = strcmp(kind, "take") == 0 ? 1 : kind[0] == 'u' || kind[0] == 'r' ? 2 : 9;
        uint64_t in[2], wanted[9], found[9];
        read_words(file, in, 2);
        read_words(file, wanted, answers);
        for (int i = 0; i < 2 && limiters[i]; i++) {
            call(limiters[i], kind, in, found);
            for (int word = 0; word < answers; word++) {
                if (found[word] == wanted[word]) continue;
                fprintf(stderr, "%s %" PRIu64 " at %" PRIu64 ": answer %d is %" PRIu64 ", not %" PRIu64 "\n", kind,
                        in[0], in[1], word, found[word], wanted[word]);
                fail(i == 0 ? "created" : "in place");
            }
        }
        /* Whatever state the calls have made is one to attach to. */
        tollgate_limiter_t *again;
        if (memory && tollgate_attach_in(memory, size, &again) != TOLLGATE_OK) fail("not attached to");
        calls++;
    }
    EXPECT(feof(file));
    fclose(file);
    end_limiters();
    printf("%u limiters %u calls\n", limiters_made, calls);
    return 0;
}
