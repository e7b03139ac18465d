#include "core/pace/pace.h"

#include <stdlib.h>

#include "base/check.h"

enum { RELATIVE = 1000 }; /* the scale of windows relative to the peers' median, which is 1000 */

/* Whether the value is more than 1.3 times the other: the limit for a slow rank, and for the distance of
 * the clusters' means. */
static bool is_far(__int128 value, __int128 than)
{
    return value * 10 > than * 13;
}

/* Whether value > sum / n + 3 sigma, for n numbers with this sum and sum of squares. */
static bool is_odd(uint64_t value, uint64_t n, uint64_t sum, uint64_t squares)
{
    CHECK(n > 0);
    __int128 above = (__int128)value * n - sum, spread = (__int128)squares * n - (__int128)sum * sum;
    spread = spread > 0 ? spread : 0; /* fading rounds */
    return above > 0 && above * above > PACE_SIGMAS * PACE_SIGMAS * spread;
}

/* --- peers ---------------------------------------------------------------------------------------------- */

struct peers {
    uint64_t *sorted; /* own work of the ranks that made steps, ascending */
    size_t count;
    size_t normal;         /* number of ranks in the lower cluster */
    uint64_t sum, squares; /* over the ranks in the lower cluster */
    uint64_t median;       /* of all ranks; of two, the smaller */
};

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Returns the index that splits the first `len` into the two clusters with the least squares within, which
 * maximises (sum below)^2 / (count below) + (sum above)^2 / (count above). */
static size_t best_split(const uint64_t *sorted, size_t len)
{
    uint64_t total = 0, below = 0;
    size_t best = 0;
    __int128 most = -1;
    for (size_t i = 0; i < len; i++)
        total += sorted[i];
    for (size_t i = 1; i < len; i++) {
        below += sorted[i - 1];
        __int128 low = (__int128)below * below / i;
        __int128 high = (__int128)(total - below) * (total - below) / (len - i);
        CHECK(below <= total);
        if (low + high > most) {
            most = low + high;
            best = i;
        }
    }
    return best;
}

static uint64_t sum_of(const uint64_t *values, size_t len)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += values[i];
    return sum;
}

/* Whether the values from `split` to `len` are a cluster apart from those below, and all values above
 * `split` are less than half. */
static bool is_apart(const struct peers *peers, size_t split, size_t len)
{
    CHECK(split <= len && len <= peers->count);
    if (split == 0 || 2 * (peers->count - split) >= peers->count)
        return false;
    uint64_t below = sum_of(peers->sorted, split), above = sum_of(peers->sorted + split, len - split);
    return is_far((__int128)above * split, (__int128)below * (len - split));
}

static void find_normal(struct peers *peers)
{
    CHECK(peers->count >= 2); /* a rank without peers is not judged */
    qsort(peers->sorted, peers->count, sizeof(*peers->sorted), ascending);
    peers->median = peers->sorted[peers->count == 2 ? 0 : peers->count / 2];
    peers->normal = peers->count;
    while (peers->normal >= 2) {
        size_t split = best_split(peers->sorted, peers->normal);
        if (!is_apart(peers, split, peers->normal))
            break;
        peers->normal = split;
    }
    for (size_t i = 0; i < peers->normal; i++) {
        peers->sum += peers->sorted[i];
        peers->squares += peers->sorted[i] * peers->sorted[i];
    }
    CHECK(peers->normal > 0 && 2 * peers->normal > peers->count);
}

static bool bad_by_peers(const struct peers *peers, uint64_t own)
{
    CHECK(peers->normal > 0 && peers->normal <= peers->count);
    return peers->count >= PACE_PEERS_MIN && peers->normal < peers->count &&
           own > peers->sorted[peers->normal - 1] && is_far((__int128)own * peers->normal, peers->sum) &&
           is_odd(own, peers->normal, peers->sum, peers->squares);
}

/* --- a rank's own past ---------------------------------------------------------------------------------- */

static bool bad_by_past(const struct pace_rank *rank, uint64_t value)
{
    return rank->known == PACE_BASELINE && is_far((__int128)value * rank->known, rank->sum) &&
           is_odd(value, rank->known, rank->sum, rank->squares);
}

static void remember(struct pace_rank *rank, uint64_t value)
{
    if (rank->known == PACE_BASELINE) {
        rank->sum -= rank->sum / PACE_BASELINE;
        rank->squares -= rank->squares / PACE_BASELINE;
    } else {
        rank->known++;
    }
    rank->sum += value;
    rank->squares += value * value;
    CHECK(rank->known > 0 && rank->known <= PACE_BASELINE);
}

/* Counts a window of the rank. Returns true if the rank has become slow or normal. */
static bool take(struct pace_rank *rank, bool bad)
{
    CHECK(rank->bad <= PACE_WINDOWS && rank->good <= PACE_WINDOWS);
    uint8_t *row = bad ? &rank->bad : &rank->good;
    *(bad ? &rank->good : &rank->bad) = 0;
    if (*row == PACE_WINDOWS || ++*row < PACE_WINDOWS)
        return false;
    rank->slow = bad;
    return true;
}

/* --- windows -------------------------------------------------------------------------------------------- */

static void begin(struct pace *pace, int32_t attempt, size_t count)
{
    pace_done(pace);
    pace->attempt = attempt;
    pace->count = count;
    pace->ranks = mem_alloc(count * sizeof(*pace->ranks));
}

struct judging {
    struct pace *pace;
    const uint32_t *own_us;
    struct pace_finding *findings;
    size_t count;
};

static uint64_t own_of(const struct judging *judging, size_t slot)
{
    uint32_t own_us = judging->own_us[slot];
    return own_us < PACE_OWN_MAX_US ? own_us : PACE_OWN_MAX_US;
}

static void judge_rank(struct judging *judging, const struct peers *peers, uint32_t slot)
{
    CHECK(slot < judging->pace->count && judging->count < judging->pace->count && peers->median > 0);
    struct pace_rank *rank = &judging->pace->ranks[slot];
    uint64_t own = own_of(judging, slot), value = own * RELATIVE / peers->median;
    value = value < PACE_OWN_MAX_US ? value : PACE_OWN_MAX_US;
    bool by_peers = bad_by_peers(peers, own), by_past = !by_peers && bad_by_past(rank, value);
    uint64_t usual =
        by_past ? rank->sum / rank->known * peers->median / RELATIVE : peers->sum / peers->normal;
    if (!by_peers && !by_past)
        remember(rank, value);
    if (take(rank, by_peers || by_past))
        judging->findings[judging->count++] =
            (struct pace_finding){.slot = slot,
                                  .slow = rank->slow,
                                  .by_past = rank->slow && by_past,
                                  .own_us = (uint32_t)own,
                                  .usual_us = usual < UINT32_MAX ? (uint32_t)usual : UINT32_MAX};
}

static void judge_group(struct judging *judging, uint64_t *room, uint32_t first, uint32_t end)
{
    struct peers peers = {.sorted = room};
    for (uint32_t slot = first; slot < end; slot++)
        if (judging->own_us[slot])
            peers.sorted[peers.count++] = own_of(judging, slot);
    if (peers.count < 2 || 2 * peers.count < end - first)
        return;
    find_normal(&peers);
    for (uint32_t slot = first; slot < end; slot++)
        if (judging->own_us[slot])
            judge_rank(judging, &peers, slot);
}

size_t pace_window(struct pace *pace, int32_t attempt, const uint32_t *own_us, size_t count,
                   const uint32_t *ends, size_t groups, struct arena *arena,
                   struct pace_finding **ret_findings)
{
    CHECK(count <= UINT32_MAX && (groups == 0 ? count == 0 : ends[groups - 1] == count));
    if (!pace->ranks || pace->attempt != attempt || pace->count != count)
        begin(pace, attempt, count);
    struct judging judging = {
        .pace = pace, .own_us = own_us, .findings = ARENA_ARRAY(arena, struct pace_finding, count)};
    uint64_t *room = mem_alloc(count * sizeof(*room));
    for (size_t g = 0; g < groups; g++) {
        uint32_t first = g ? ends[g - 1] : 0;
        CHECK(first <= ends[g] && ends[g] <= count);
        judge_group(&judging, room, first, ends[g]);
    }
    mem_free(room);
    *ret_findings = judging.findings;
    return judging.count;
}

void pace_done(struct pace *pace)
{
    mem_free(pace->ranks);
    *pace = (struct pace){0};
}

bool pace_rank_is_valid(const struct pace_rank *rank)
{
    uint64_t most = PACE_OWN_MAX_US;
    return rank->known <= PACE_BASELINE && rank->sum <= most * (PACE_BASELINE + 1) &&
           rank->squares <= most * most * PACE_BASELINE && rank->bad <= PACE_WINDOWS &&
           rank->good <= PACE_WINDOWS && !(rank->bad && rank->good);
}
