/* See gather.h. */
#include <stdio.h>

#include "base/arena.h"
#include "base/check.h"
#include "job/fabric/chipwire.h"
#include "job/fabric/internal.h"

enum {
    WORD_BYTES = 25 + PHX_SLICE_CHIPS * CHIPWIRE_ABOUT_BYTES,
    GROUP_RANKS = 16,                         /* ranks of a group */
    PIECE_RANKS = PHX_VALUE_MAX / WORD_BYTES, /* ranks whose words fit into one value */
};

void fabric_gather_key(uint32_t opened, const char *name, uint32_t generation, int64_t rank,
                       char key[FABRIC_KEY_MAX])
{
    int len = snprintf(key, FABRIC_KEY_MAX, "fabric/%u/%s/%u", opened, name, generation);
    if (rank >= 0)
        snprintf(key + len, (size_t)(FABRIC_KEY_MAX - len), "/%lld", (long long)rank);
}

static void write_word(const struct fabric_word *word, uint8_t bytes[WORD_BYTES])
{
    struct jobwire_writer out = {.data = bytes, .cap = WORD_BYTES};
    jobwire_put(&out, word->done, 8);
    jobwire_put(&out, word->tables, 8);
    jobwire_put(&out, word->without, 8);
    jobwire_put(&out, word->cache, 1);
    for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++)
        chipwire_put_about(&out, &word->chips[i]);
    CHECK(!out.full && out.len == WORD_BYTES);
}

/* Reads a word. Returns false if it is not valid. */
static bool read_word(const uint8_t *bytes, size_t len, struct fabric_word *ret_word)
{
    struct jobwire_reader in = {.data = bytes, .len = len};
    ret_word->done = jobwire_get(&in, 8);
    ret_word->tables = jobwire_get(&in, 8);
    ret_word->without = jobwire_get(&in, 8);
    ret_word->cache = (uint8_t)jobwire_get(&in, 1);
    for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++)
        chipwire_get_about(&in, &ret_word->chips[i]);
    return !in.broken && in.pos == in.len;
}

/* --- from all ranks to rank 0 --------------------------------------------------------------------------- */

/* Gets a value of this generation that has exactly `want` bytes. */
static int get_words(const struct fabric_ranks *ranks, const char *name, uint32_t from, uint8_t *bytes,
                     size_t want, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX];
    size_t len = 0;
    fabric_gather_key(ranks->opened, name, ranks->generation, from, key);
    int status = phx_kv_get(ranks->ctx, key, bytes, want, &len, -1, error);
    if (status == PHX_ERROR_SPACE || (status == 0 && len != want))
        status =
            fabric_fail(error, PHX_ERROR_INVALID,
                        "rank %u speaks of its chips in another version of the library: %zu bytes for %zu",
                        from, len, want);
    return status;
}

static int put_words(const struct fabric_ranks *ranks, const char *name, uint32_t from, const uint8_t *bytes,
                     size_t len, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX];
    fabric_gather_key(ranks->opened, name, ranks->generation, from, key);
    return phx_kv_put(ranks->ctx, key, bytes, len, error);
}

static uint32_t words_of(const struct fabric_ranks *ranks, uint32_t first, uint32_t most)
{
    CHECK(first < ranks->world);
    return ranks->world - first < most ? ranks->world - first : most;
}

/* Gathers the words of a leader's group, in addition to its own, and puts them for rank 0. */
static int gather_group(const struct fabric_ranks *ranks, uint8_t *words, struct phx_error *error)
{
    uint32_t first = ranks->rank, count = words_of(ranks, first, GROUP_RANKS);
    int status = 0;
    for (uint32_t rank = first + 1; rank < first + count && status == 0; rank++)
        status = get_words(ranks, "word", rank, words + rank * (size_t)WORD_BYTES, WORD_BYTES, error);
    if (status == 0 && first > 0)
        status = put_words(ranks, "group", first, words + first * (size_t)WORD_BYTES,
                           count * (size_t)WORD_BYTES, error);
    return status;
}

/* Gathers the words of all groups, on rank 0 after its part as a leader, and puts them for all ranks. */
static int gather_all(const struct fabric_ranks *ranks, uint8_t *words, struct phx_error *error)
{
    int status = 0;
    for (uint32_t first = GROUP_RANKS; first < ranks->world && status == 0; first += GROUP_RANKS)
        status = get_words(ranks, "group", first, words + first * (size_t)WORD_BYTES,
                           words_of(ranks, first, GROUP_RANKS) * (size_t)WORD_BYTES, error);
    for (uint32_t first = 0; first < ranks->world && status == 0; first += PIECE_RANKS)
        status = put_words(ranks, "all", first, words + first * (size_t)WORD_BYTES,
                           words_of(ranks, first, PIECE_RANKS) * (size_t)WORD_BYTES, error);
    return status;
}

/* --- and back ------------------------------------------------------------------------------------------- */

static int get_all(const struct fabric_ranks *ranks, uint8_t *words, struct phx_error *error)
{
    int status = 0;
    for (uint32_t first = 0; first < ranks->world && status == 0; first += PIECE_RANKS)
        status = get_words(ranks, "all", first, words + first * (size_t)WORD_BYTES,
                           words_of(ranks, first, PIECE_RANKS) * (size_t)WORD_BYTES, error);
    return status;
}

/* Empties this rank's values of the generation before the last: the ranks that take part in this one have
 * read them. */
static int forget_older(const struct fabric_ranks *ranks, struct phx_error *error)
{
    struct fabric_ranks older = *ranks;
    int status = 0;
    if (ranks->generation <= 2)
        return 0;
    older.generation -= 2;
    status = put_words(&older, "word", ranks->rank, NULL, 0, error);
    if (status == 0 && ranks->rank > 0 && ranks->rank % GROUP_RANKS == 0)
        status = put_words(&older, "group", ranks->rank, NULL, 0, error);
    for (uint32_t first = 0; ranks->rank == 0 && first < ranks->world && status == 0; first += PIECE_RANKS)
        status = put_words(&older, "all", first, NULL, 0, error);
    return status;
}

static int exchange(const struct fabric_ranks *ranks, uint8_t *words, struct phx_error *error)
{
    const uint8_t *own = words + ranks->rank * (size_t)WORD_BYTES;
    bool leads = ranks->rank % GROUP_RANKS == 0;
    int status = forget_older(ranks, error);
    if (status == 0 && !leads)
        status = put_words(ranks, "word", ranks->rank, own, WORD_BYTES, error);
    if (status == 0 && leads)
        status = gather_group(ranks, words, error);
    if (status == 0)
        status = ranks->rank == 0 ? gather_all(ranks, words, error) : get_all(ranks, words, error);
    return status;
}

int fabric_gather(const struct fabric_ranks *ranks, const struct fabric_word *word,
                  struct fabric_word *ret_words, struct phx_error *error)
{
    uint8_t *words = mem_alloc(ranks->world * (size_t)WORD_BYTES);
    CHECK(ranks->rank < ranks->world && ranks->generation > 0);
    write_word(word, words + ranks->rank * (size_t)WORD_BYTES);
    int status = exchange(ranks, words, error);
    for (uint32_t rank = 0; rank < ranks->world && status == 0; rank++)
        if (!read_word(words + rank * (size_t)WORD_BYTES, WORD_BYTES, &ret_words[rank]))
            status = fabric_fail(error, PHX_ERROR_INVALID,
                                 "rank %u speaks of its chips in another version of the library", rank);
    mem_free(words);
    return status;
}
