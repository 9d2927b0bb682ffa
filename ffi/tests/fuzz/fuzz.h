/* What the fuzzed programs share.
 *
 * Built with libFuzzer they look for inputs; built with -DREPLAY they run the files that they are given, among them every
 * input that once broke something (inputs/, inputs-region/). */
#ifndef FUZZ_H
#define FUZZ_H

#include "../programs/program.h"

#include <unistd.h>

/* Bytes of the input, taken from the front; zeros after its end. */
struct input {
    const uint8_t *bytes;
    size_t left;
};

static inline void take(struct input *input, void *out, size_t length) {
    size_t have = length < input->left ? length : input->left;
    memset(out, 0, length);
    memcpy(out, input->bytes, have);
    input->bytes += have;
    input->left -= have;
}

static inline uint64_t take_u64(struct input *input) {
    uint64_t value;
    take(input, &value, sizeof value);
    return value;
}

static inline uint8_t take_u8(struct input *input) {
    uint8_t value;
    take(input, &value, sizeof value);
    return value;
}

/* Every status is one of the list: it has a name of its own. */
static inline void known(int status) {
    CHECK(tollgate_status_name(status) != tollgate_status_name(INT32_MIN));
}

/* Memory of exactly the length asked for, so that a sanitizer sees a byte too much. */
static inline void *memory_of(size_t length) {
    void *memory = NULL;
    CHECK(posix_memalign(&memory, tollgate_align(), length) == 0);
    memset(memory, 0, length);
    return memory;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef REPLAY
int main(int argc, char **argv) {
    static uint8_t bytes[1 << 16];
    CHECK(argc > 1);
    alarm(20); /* a call that finds no end is a failure, too */
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        CHECK(file != NULL);
        size_t size = fread(bytes, 1, sizeof bytes, file);
        CHECK(fclose(file) == 0);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    printf("fuzz: %d inputs\n", argc - 1);
    return 0;
}
#endif

#endif
