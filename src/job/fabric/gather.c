/* gather.c - every rank's word to all others, by the keys of libphalanx. */
#include <stdio.h>

#include "job/fabric/chipwire.h"
#include "job/fabric/internal.h"

enum { WORD_BYTES = 24 + PHX_SLICE_CHIPS * CHIPWIRE_ABOUT_BYTES };

void fabric_key(const struct phx_fabric *fabric, const char *name, uint32_t generation, int64_t rank,
                char key[FABRIC_KEY_MAX])
{
    int len = snprintf(key, FABRIC_KEY_MAX, "fabric/%u/%s/%u", fabric->opened, name, generation);
    if (rank >= 0)
        snprintf(key + len, (size_t)(FABRIC_KEY_MAX - len), "/%lld", (long long)rank);
}

static size_t write_word(const struct fabric_word *word, uint8_t bytes[WORD_BYTES])
{
    struct jobwire_writer out = {.data = bytes, .cap = WORD_BYTES};
    jobwire_put(&out, word->done, 8);
    jobwire_put(&out, word->tables, 8);
    jobwire_put(&out, word->without, 8);
    for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++)
        chipwire_put_about(&out, &word->chips[i]);
    return out.len;
}

/* False: it is no word. */
static bool read_word(const uint8_t *bytes, size_t len, struct fabric_word *ret_word)
{
    struct jobwire_reader in = {.data = bytes, .len = len};
    ret_word->done = jobwire_get(&in, 8);
    ret_word->tables = jobwire_get(&in, 8);
    ret_word->without = jobwire_get(&in, 8);
    for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++)
        chipwire_get_about(&in, &ret_word->chips[i]);
    return !in.broken && in.pos == in.len;
}

int fabric_gather(struct phx_fabric *fabric, const struct fabric_word *word, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX];
    uint8_t bytes[WORD_BYTES];
    size_t len = write_word(word, bytes);
    fabric_key(fabric, "word", fabric->generation, fabric->rank, key);
    int status = phx_kv_put(fabric->ctx, key, bytes, len, error);
    for (uint32_t rank = 0; rank < fabric->world && status == 0; rank++) {
        fabric_key(fabric, "word", fabric->generation, rank, key);
        status = phx_kv_get(fabric->ctx, key, bytes, sizeof bytes, &len, -1, error);
        if (status == 0 && !read_word(bytes, len, &fabric->words[rank]))
            status = fabric_fail(error, PHX_ERROR_INVALID,
                                 "rank %u speaks of its chips in another version of the "
                                 "library",
                                 rank);
    }
    return status;
}
