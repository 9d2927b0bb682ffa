/* Each bit of what describes a limiter, flipped: attaching fails, and so does initialising again. */
#include <string.h>

#include "expect.h"

static void flipped(uint32_t algorithm, uint32_t shards) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_CALLER, 100, SECOND);
    size_t size;
    config.shards = shards;
    GIVES(TOLLGATE_OK, tollgate_size(&config, &size));
    unsigned char *memory = zeros(size);
    tollgate_limiter_t *limiter = NULL, *none = NULL;
    GIVES(TOLLGATE_OK, tollgate_init_in(memory, size, &config, &limiter));
    size_t described = ((uint64_t *)(void *)memory)[1] >> 32;
    EXPECT(described >= 0x300 && described < size && described % tollgate_align() == 0);
    for (size_t bit = 0; bit < 8 * described; bit++) {
        memory[bit / 8] ^= (unsigned char)(1 << bit % 8);
        EXPECT(tollgate_attach_in(memory, size, &none) < 0);
        EXPECT(tollgate_init_in(memory, size, &config, &none) < 0);
        memory[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    EXPECT(none == NULL);
    for (size_t at = described; at < size; at++) EXPECT(memory[at] == 0); /* the state begins there, as zeros */
    /* Of shards, those of the first do, behind a line of theirs. */
    uint64_t *head = (uint64_t *)(void *)(memory + described + (shards > 1 ? 128 : 0));
    *head = UINT64_MAX; /* outside of any ring, and after all time */
    GIVES(TOLLGATE_E_CORRUPT, tollgate_attach_in(memory, size, &none));
    *head = 0;
    GIVES(TOLLGATE_OK, tollgate_attach_in(memory, size, &none));
    free(memory);
}

int main(void) {
    for (uint32_t algorithm = TOLLGATE_LOG; algorithm <= TOLLGATE_GCRA; algorithm++) flipped(algorithm, 0);
    if (!spreads()) return 0;
    flipped(TOLLGATE_LOG, 3);
    flipped(TOLLGATE_WINDOW, 3);
    return 0;
}
