/* bench/peer: what copies of 100 MB on another machine cost, and how fast they come back.
 *
 * Two ranks, stand-alone, each on a "machine" of its own: a folder below /dev/shm. The copy is measured until
 * it counts, whole and where only a tenth has changed, beside one plain TCP stream of the same bytes over the
 * loopback device, from memory to memory, without a checksum; compressed, of floats that zstd can halve,
 * beside the time that zstd alone needs to pack and unpack them, with the bytes that the device has carried;
 * coming back is the join after the loss of one folder. All in turn, medians. One JSON object per line
 * (bench/run --json). What all of it costs a training loop is bench/tiers.
 */
#include <stdbool.h>
#include <zstd.h>

#include "ranks.h"

enum { ROUNDS = 9 };

static size_t changing = STATE_BYTES; /* of the state, from one copy to the next */
static bool floats;                   /* the state is that of fill_floats */

static void print(const char *name, double value, const char *unit, double limit)
{
    printf("{\"bench\":\"peer\",\"case\":\"%s\",\"value\":%.4g,\"unit\":\"%s\",\"limit\":%.4g,"
           "\"ratio_limit\":%.4g}\n",
           name, value, unit, limit, value / limit);
    fflush(stdout);
}

/* Single precision with as many digits as a half one has: random, but for every second byte or so. */
static void fill_floats(void)
{
    uint32_t word = 1;
    for (size_t i = 0; i + 4 <= STATE_BYTES; i += 4) {
        word = word * 1664525 + 1013904223;
        uint32_t value = 0x3f000000u | (word >> 16 & 0x7f) << 16 | (word >> 31) << 31;
        memcpy(ranks_state + i, &value, sizeof value);
    }
}

/* The state of every rank, a MB at a time, the ranks beside each other where there are processors for them:
 * what no compressed copy can do without. */
static double zstd_ms(int level)
{
    enum { PIECE = 1 << 20 };
    size_t cap = ZSTD_compressBound(PIECE);
    ZSTD_CCtx *packer = ZSTD_createCCtx();
    ZSTD_DCtx *unpacker = ZSTD_createDCtx();
    uint8_t *packed = malloc(cap);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (packer == NULL || unpacker == NULL || packed == NULL)
        exit(1);
    double begin = now_ms();
    for (size_t at = 0; at < STATE_BYTES; at += PIECE) {
        size_t len = STATE_BYTES - at < PIECE ? STATE_BYTES - at : PIECE;
        size_t size = ZSTD_compressCCtx(packer, packed, cap, ranks_state + at, len, level);
        if (ZSTD_isError(size) || ZSTD_decompressDCtx(unpacker, ranks_work, PIECE, packed, size) != len)
            exit(1);
    }
    double ms = now_ms() - begin;
    free(packed);
    ZSTD_freeCCtx(packer);
    ZSTD_freeDCtx(unpacker);
    return ms * RANKS / (processors < RANKS ? 1 : RANKS);
}

/* Bytes that the loopback device has carried, of whoever is there. */
static double carried(void)
{
    char line[300];
    double bytes = 0;
    FILE *file = fopen("/proc/net/dev", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, " lo: %lf", &bytes) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return bytes;
}

/* Both at once, each to the other: out[round]; bytes that went: out[ROUNDS + round]. */
static void copy_states(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    phx_context *ctx = ranks_join(rank, attempt, port);
    for (uint64_t step = 1; step <= ROUNDS + 3; step++) { /* the first ones make the memory */
        if (floats)
            ranks_state[4096 * step] ^= 1;
        else
            memset(ranks_state, (int)step, changing);
        ranks_check(phx_barrier(ctx, -1, &error), &error);
        ranks_check(phx_checkpoint_take(ctx, step, PHX_IN_PEER, &error), &error);
        ranks_check(phx_checkpoint_held(ctx, step, -1, &error), &error);
        double begin = now_ms(), before = carried();
        ranks_check(phx_checkpoint_copied(ctx, step, -1, &error), &error);
        if (rank == 0 && step > 3) {
            out[step - 4] = now_ms() - begin;
            out[ROUNDS + step - 4] = carried() - before;
        }
    }
    ranks_check(phx_barrier(ctx, -1, &error), &error);
    phx_close(ctx);
}

/* The folder of machine 0 is gone: what its rank needs comes from machine 1. */
static void come_back(uint32_t rank, uint32_t attempt, int port, double *out)
{
    struct phx_error error;
    uint64_t step;
    double begin = now_ms();
    phx_context *ctx = ranks_join(rank, attempt, port);
    if (rank == 0)
        out[0] = now_ms() - begin;
    ranks_check(phx_checkpoint_load(ctx, &step, &error), &error);
    if (ranks_state[0] != step || ranks_state[STATE_BYTES - 1] != step) {
        fprintf(stderr, "bench_peer: what was copied is not what came back\n");
        _exit(1);
    }
    ranks_check(phx_barrier(ctx, -1, &error), &error);
    phx_close(ctx);
}

int main(void)
{
    double streams[ROUNDS], copies[2 * ROUNDS], deltas[2 * ROUNDS], packed[2 * ROUNDS], joins[ROUNDS],
        proved[2 * ROUNDS], joins_own[ROUNDS], alone[ROUNDS];
    uint32_t attempt = 1;
    ranks_init("");
    setenv("PHX_PEER_DELTA", "1", 1);
    changing = STATE_BYTES / 10;
    ranks_run(copy_states, attempt++, deltas, 2 * ROUNDS);
    unsetenv("PHX_PEER_DELTA");
    changing = STATE_BYTES;
    ranks_lose_machine(0);
    ranks_lose_machine(1);
    ranks_run(copy_states, attempt++, copies, 2 * ROUNDS);
    ranks_lose_machine(0);
    ranks_lose_machine(1);
    setenv("PHX_PEER_PROVE", "1", 1);
    ranks_run(copy_states, attempt++, proved, 2 * ROUNDS);
    unsetenv("PHX_PEER_PROVE");
    for (int round = 0; round < ROUNDS; round++) {
        streams[round] = ranks_stream_ms();
        ranks_run(come_back, attempt++, &joins_own[round], 1);
        ranks_lose_machine(0);
        ranks_run(come_back, attempt++, &joins[round], 1);
    }
    ranks_lose_machine(0);
    ranks_lose_machine(1);
    floats = true;
    fill_floats();
    setenv("PHX_PEER_ZSTD", "1", 1);
    ranks_run(copy_states, attempt++, packed, 2 * ROUNDS);
    for (int round = 0; round < ROUNDS; round++)
        alone[round] = zstd_ms(1);
    double stream = median(streams, ROUNDS), own = median(joins_own, ROUNDS);
    print("copy 2 x 100 MB to a peer, until both count", median(copies, ROUNDS), "ms", 2 * stream);
    print("the same, the data with a tag, beside none", median(proved, ROUNDS), "ms", median(copies, ROUNDS));
    print("copy 2 x 100 MB of which 10 MB have changed", median(deltas, ROUNDS), "ms", 2 * stream);
    print("copy 2 x 100 MB of floats, zstd 1", median(packed, ROUNDS), "ms", median(alone, ROUNDS));
    print("bytes for it, beside what goes without zstd", median(packed + ROUNDS, ROUNDS) / 1e6, "MB",
          median(copies + ROUNDS, ROUNDS) / 1e6);
    print("join after a loss: 100 MB from a peer", median(joins, ROUNDS), "ms", own + stream);
    ranks_remove(ranks_root);
    return 0;
}
