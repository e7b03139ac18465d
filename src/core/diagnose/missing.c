/* missing.c - ranks without a record for which others wait. Such a rank may itself wait, so it is to blame
 * only if nothing can hold it up: neither a proved culprit nor another rank without a record. Ranks that may
 * hold up each other are reported together: "one of 12 and 13". */
#include <stdlib.h>

#include "base/check.h"
#include "core/diagnose/judge.h"

struct suspects {
    struct judge *judge;
    VEC(struct seat *) seats; /* one seat of each suspect, where it is missing; suspects of one group
                               * follow each other */
    VEC(size_t) group;        /* for each suspect: the index of the first suspect in its group */
};

/* Whether a known member holds up the lane, because it is to blame or waits for a culprit. Unknown
 * members may then wait for the same culprit. */
static bool is_explained(struct judge *judge, const struct lane *lane)
{
    CHECK(lane->unknown <= lane->seats.len);
    int64_t last = INT64_MIN;
    for (size_t i = lane->unknown; i < lane->seats.len; i++)
        if (lane->seats.items[i]->at_head && lane->seats.items[i]->key > last)
            last = lane->seats.items[i]->key;
    for (size_t i = lane->unknown; i < lane->seats.len && lane->seats.items[i]->key < last; i++) {
        const struct rank_record *record = flight_rank(judge->flight, lane->seats.items[i]->rank);
        if (record->culprit || record->reached)
            return true;
    }
    return false;
}

static bool is_waited_for(const struct seat *seat)
{
    return seat->lane->open && seat->lane->heads > 0 && !seat->known;
}

/* Whether the rank may wait for a proved culprit. */
static bool is_excused(struct judge *judge, const struct rank_record *record)
{
    for (int kind = 0; kind < 2; kind++)
        for (const struct seat *seat = kind ? record->channels : record->seats; seat;
             seat = seat->next_of_rank)
            if (is_waited_for(seat) && is_explained(judge, seat->lane))
                return true;
    return false;
}

/* --- groups of suspects --------------------------------------------------------------------------------- */

static size_t place_of(const struct suspects *suspects, uint32_t rank)
{
    size_t at = 0;
    while (at < suspects->seats.len && suspects->seats.items[at]->rank != rank)
        at++;
    return at;
}

static size_t root_of(const struct suspects *suspects, size_t at)
{
    CHECK(at < suspects->group.len);
    while (suspects->group.items[at] != at) {
        CHECK(suspects->group.items[at] < at); /* the first of a group is its root */
        at = suspects->group.items[at];
    }
    return at;
}

static void suspect(struct suspects *suspects, struct seat *seat)
{
    size_t at = place_of(suspects, seat->rank);
    if (at < suspects->seats.len)
        return;
    vec_push(&suspects->seats, seat);
    vec_push(&suspects->group, at);
    CHECK(suspects->seats.len == suspects->group.len);
}

/* Joins the suspect's group with those of other suspects that are missing at the same operation: they may
 * wait for each other there. */
static void join(struct suspects *suspects, size_t at)
{
    const struct rank_record *record = flight_rank(suspects->judge->flight, suspects->seats.items[at]->rank);
    for (int kind = 0; kind < 2; kind++)
        for (const struct seat *seat = kind ? record->channels : record->seats; seat;
             seat = seat->next_of_rank)
            for (size_t i = 0; is_waited_for(seat) && i < seat->lane->unknown; i++) {
                size_t other = place_of(suspects, seat->lane->seats.items[i]->rank);
                if (other == suspects->seats.len)
                    continue;
                size_t a = root_of(suspects, at), b = root_of(suspects, other);
                suspects->group.items[a > b ? a : b] = a > b ? b : a;
            }
}

static void conclude(struct suspects *suspects, size_t first)
{
    struct judge *judge = suspects->judge;
    VEC(uint32_t) ranks = {0};
    for (size_t i = first; i < suspects->seats.len; i++)
        if (root_of(suspects, i) == first)
            vec_push(&ranks, suspects->seats.items[i]->rank);
    CHECK(ranks.len > 0);
    if (ranks.len == 1)
        judge_culprit(judge, suspects->seats.items[first], FINDING_SILENT);
    else
        find_undecided(judge, suspects->seats.items[first], ranks.items, ranks.len);
    for (size_t i = 0; i < ranks.len; i++)
        judge_reach(judge, ranks.items[i]);
    vec_done(&ranks);
}

static void conclude_all(struct suspects *suspects)
{
    for (size_t i = 0; i < suspects->seats.len; i++)
        join(suspects, i);
    for (size_t i = 0; i < suspects->seats.len; i++)
        if (root_of(suspects, i) == i)
            conclude(suspects, i);
    vec_done(&suspects->seats);
    vec_done(&suspects->group);
}

/* --- lanes ---------------------------------------------------------------------------------------------- */

/* Blames unknown members whose records have nothing open: they provably never called the operation. Returns
 * true if there are any, or if a member's record shows that it is busy elsewhere. */
static bool blame_idle(struct judge *judge, const struct lane *lane)
{
    bool any = false;
    for (size_t i = 0; i < lane->unknown; i++) {
        struct seat *seat = lane->seats.items[i];
        const struct rank_record *record = flight_rank(judge->flight, seat->rank);
        if (record->head)
            return true;
        if (record_silent(record))
            continue;
        judge_culprit(judge, seat, FINDING_ABSENT);
        judge_reach(judge, seat->rank);
        any = true;
    }
    return any;
}

static void suspect_lane(struct suspects *suspects, const struct lane *lane)
{
    struct judge *judge = suspects->judge;
    CHECK(lane->open && lane->unknown > 0);
    bool excused = false;
    for (size_t i = 0; i < lane->unknown; i++) {
        const struct rank_record *record = flight_rank(judge->flight, lane->seats.items[i]->rank);
        CHECK(record_silent(record) && !record->head); /* blame_idle has handled the others */
        if (!is_excused(judge, record))
            continue;
        judge_reach(judge, record->rank); /* ranks that wait for it may in fact wait for the culprit */
        excused = true;
    }
    for (size_t i = 0; !excused && i < lane->unknown; i++)
        suspect(suspects, lane->seats.items[i]);
}

void judge_missing(struct judge *judge)
{
    struct suspects suspects = {.judge = judge};
    VEC(struct lane *) left = {0};
    for (size_t i = 0; i < judge->missing.len; i++)
        if (!blame_idle(judge, judge->missing.items[i]))
            vec_push(&left, judge->missing.items[i]);
    for (size_t i = 0; i < left.len; i++)
        suspect_lane(&suspects, left.items[i]);
    conclude_all(&suspects);
    vec_done(&left);
}

void judge_silent(struct judge *judge)
{
    struct suspects suspects = {.judge = judge};
    for (size_t i = 0; i < judge->lanes.len; i++) {
        const struct lane *lane = judge->lanes.items[i];
        for (size_t k = 0; lane->heads && k < lane->unknown; k++)
            if (record_silent(flight_rank(judge->flight, lane->seats.items[k]->rank)))
                suspect(&suspects, lane->seats.items[k]);
    }
    conclude_all(&suspects);
}
