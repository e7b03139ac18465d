/* blame.c - finds the ranks for which the others wait, and why each of them makes no progress. */
#include <stdlib.h>

#include "base/check.h"
#include "core/diagnose/judge.h"

enum { CIRCLES_MAX = 64 };

void judge_culprit(struct judge *judge, const struct seat *seat, enum finding_kind kind)
{
    CHECK(seat->rank < judge->flight->ranks.len);
    struct rank_record *record = flight_rank(judge->flight, seat->rank);
    CHECK(finding_blames(kind));
    if (record->culprit)
        return;
    record->culprit = true;
    record->kind = kind;
    record->blamed_at = seat;
}

/* --- lanes ---------------------------------------------------------------------------------------- */

/* Blames the idle ranks of a lane, if another member has called an operation that they have not. */
static void blame_absent(struct judge *judge, const struct lane *lane)
{
    int64_t wanted = NUMBER_NONE;
    for (size_t i = lane->unknown; i < lane->seats.len; i++) {
        const struct seat *seat = lane->seats.items[i];
        if (seat->first && seat->done + 1 > wanted)
            wanted = seat->done + 1;
    }
    for (size_t i = lane->unknown; i < lane->seats.len && lane->seats.items[i]->done < wanted; i++) {
        const struct seat *seat = lane->seats.items[i];
        if (!seat->first && record_idle(flight_rank(judge->flight, seat->rank)))
            judge_culprit(judge, seat, FINDING_ABSENT);
    }
}

/* Whether the operation is rooted: only one member needs the data of all, so other members may finish it
 * before all have joined. */
static bool is_rooted(struct str name)
{
    return str_starts(name, STR("broadcast")) || str_starts(name, STR("_broadcast")) ||
           str_is(name, "reduce") || str_is(name, "scatter") || str_is(name, "gather");
}

/* Judges known members that are all at the same operation. If the dumps show which members have begun it, a
 * minority that has not is held up by earlier work on its own device. */
static bool blame_not_begun(struct judge *judge, const struct lane *lane, size_t from, size_t count)
{
    CHECK(from >= lane->unknown && from + count <= lane->seats.len);
    size_t begun = 0;
    for (size_t i = from; i < from + count; i++)
        begun += lane->seats.items[i]->first->state == OP_STARTED;
    if (!lane_numbered(lane) || begun == 0 || begun == count || 2 * (count - begun) > count)
        return false;
    for (size_t i = from; i < from + count; i++)
        if (lane->seats.items[i]->first->state != OP_STARTED)
            judge_culprit(judge, lane->seats.items[i], FINDING_STUCK);
    return true;
}

/* Returns whether the rank has several heads, which are parts of a batch and finish together, and waits at
 * another of them; with `alike`, also if another member of that lane has made only as much progress as the
 * rank itself. */
static bool waits_elsewhere(const struct rank_record *record, const struct lane *here, bool alike)
{
    for (int kind = 0; record->head_count > 1 && kind < 2; kind++)
        for (const struct seat *seat = kind ? record->channels : record->seats; seat;
             seat = seat->next_of_rank) {
            const struct lane *lane = seat->lane;
            CHECK(lane->seats.len > 0);
            const struct seat *first = lane->seats.items[0];
            if (!seat->at_head || lane == here)
                continue;
            if (first == seat && lane->seats.len > 1)
                first = lane->seats.items[1];
            if (!first->known || first->key < seat->key + alike)
                return true;
        }
    return false;
}

/* Returns how many seats, from lane->unknown on, are at the same operation and wait for no known
 * member of this lane. Returns 0 if there are none, or if one of them waits on another lane. */
static size_t count_foremost(struct judge *judge, const struct lane *lane, bool alike)
{
    const struct seat *first = lane_foremost(lane);
    size_t count = 0, from = lane->unknown;
    for (; first && from + count < lane->seats.len && lane->seats.items[from + count]->key == first->key;
         count++)
        if (waits_elsewhere(flight_rank(judge->flight, lane->seats.items[from + count]->rank), lane, alike))
            return 0;
    CHECK(from + count <= lane->seats.len && (first != NULL) == (count > 0));
    return count;
}

/* Blames a minority that has not finished what most other members have. */
static void blame_behind(struct judge *judge, const struct lane *lane)
{
    size_t count = count_foremost(judge, lane, true), from = lane->unknown,
           ahead = lane->seats.len - from - count;
    if (count == 0 || ahead == 0 || 2 * count > lane->seats.len ||
        (from > 0 && is_rooted(lane->seats.items[from]->first->name->text)))
        return;
    for (size_t i = from; i < from + count; i++)
        judge_culprit(judge, lane->seats.items[i], FINDING_STUCK);
}

/* Judges a lane whose known members are all at one operation, or whose foremost members are too many
 * to be at fault themselves. */
static void blame_foremost(struct judge *judge, struct lane *lane)
{
    size_t count = count_foremost(judge, lane, false), from = lane->unknown,
           ahead = lane->seats.len - from - count;
    if (count == 0 || (ahead > 0 && count_foremost(judge, lane, true) == 0))
        return;
    CHECK(lane->heads >= count);
    int64_t seq = lane->seats.items[from]->first->seq;
    bool missing = from > 0 && (ahead == 0 || is_rooted(lane->seats.items[from]->first->name->text));
    bool blamed = false;
    for (size_t i = from; i < from + count; i++)
        blamed = blamed || flight_rank(judge->flight, lane->seats.items[i]->rank)->culprit;
    if (judge_mismatch(judge, lane, seq)) {
        for (size_t i = from; i < from + count; i++) /* a rank that called another operation is not stuck */
            flight_rank(judge->flight, lane->seats.items[i]->rank)->culprit = false;
    } else if (missing) {
        vec_push(&judge->missing, lane);
        return;
    } else if (blamed) {
        return;
    } else if (ahead > 0 || !blame_not_begun(judge, lane, from, count)) {
        find_network(judge, lane, seq, count, ahead);
    }
    for (size_t i = from; i < from + count; i++)
        judge_reach(judge, lane->seats.items[i]->rank);
}

/* --- circles -------------------------------------------------------------------------------------- */

static bool waits_unexplained(const struct rank_record *record)
{
    return record->head && !record->reached;
}

/* Returns a rank for which this one waits on the lane and which itself waits. That rank has made less
 * progress, or, with `alike`, as much with a part of a batch that waits on another lane. Returns NULL if
 * there is none. */
static struct rank_record *next_on_lane(struct judge *judge, const struct seat *seat, bool alike)
{
    CHECK(seat->at_head && seat->lane->open);
    const struct lane *lane = seat->lane;
    for (size_t i = 0; i < lane->seats.len; i++) {
        const struct seat *other = lane->seats.items[i];
        if (other->known && other->key >= seat->key + alike)
            break;
        struct rank_record *awaited = flight_rank(judge->flight, other->rank);
        bool behind = !other->known || other->key < seat->key;
        if (other != seat && waits_unexplained(awaited) && (behind || waits_elsewhere(awaited, lane, false)))
            return awaited;
    }
    return NULL;
}

static struct rank_record *next_in_circle(struct judge *judge, const struct rank_record *record)
{
    struct rank_record *next = NULL;
    for (int round = 0; round < 4 && !next; round++) {
        const struct seat *seat = round % 2 ? record->channels : record->seats;
        for (; seat && !next; seat = seat->next_of_rank)
            next = seat->at_head ? next_on_lane(judge, seat, round >= 2) : NULL;
    }
    return next;
}

/* Blames a part of a batch that closes the circle and that both ends have reached: that part makes no
 * progress. Parts of a batch proceed independently, but the records show that only after all have finished.
 * Returns false if there is no such part. */
static bool blame_part(struct judge *judge, const uint32_t *circle, size_t count)
{
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        const struct rank_record *record = flight_rank(judge->flight, circle[i]);
        for (const struct seat *seat = record->channels; seat && record->head_count > 1;
             seat = seat->next_of_rank) {
            struct lane *lane = seat->lane;
            CHECK(lane->p2p && lane->seats.len == 2);
            bool both =
                seat->at_head && lane->heads == 2 && lane->seats.items[0]->key == lane->seats.items[1]->key;
            if (!both)
                continue;
            if (!blame_not_begun(judge, lane, 0, 2))
                find_network(judge, lane, seat->first->seq, 2, 0);
            return true;
        }
    }
    return false;
}

/* Follows the waits from `start` until they form a circle or end, and explains the ranks on the way. */
static void follow(struct judge *judge, struct rank_record *start)
{
    VEC(uint32_t) path = {0};
    uint32_t walk = ++judge->visit;
    struct rank_record *at = start;
    while (at && at->visit != walk) {
        at->visit = walk;
        vec_push(&path, at->rank);
        at = next_in_circle(judge, at);
    }
    CHECK(path.len > 0 && path.items[0] == start->rank);
    size_t from = 0;
    while (at && path.items[from] != at->rank)
        from++;
    CHECK(from < path.len);
    if (at && !blame_part(judge, path.items + from, path.len - from))
        find_deadlock(judge, path.items + from, path.len - from);
    for (size_t i = at ? from : path.len - 1; i < path.len; i++)
        judge_reach(judge, path.items[i]);
    vec_done(&path);
}

static void blame_circles(struct judge *judge)
{
    struct flight *flight = judge->flight;
    for (size_t i = 0, circles = 0; i < flight->ranks.len && circles < CIRCLES_MAX; i++) {
        for (; waits_unexplained(flight->ranks.items[i]) && circles < CIRCLES_MAX; circles++)
            follow(judge, flight->ranks.items[i]);
    }
}

/* Skips sends that are heads of ranks whose waits are unexplained, so that the next operation becomes the
 * head: a sender needs no answer to continue. Returns whether there were any. Only groups of two qualify: in
 * larger groups, numbers do not match sends with receives, so the skipped send may be the wrong one. */
static bool skip_sends(struct judge *judge)
{
    bool any = false;
    for (size_t i = 0; i < judge->flight->ranks.len; i++) {
        struct rank_record *record = judge->flight->ranks.items[i];
        if (!waits_unexplained(record) || !record->head->p2p || record->head->source != record->rank)
            continue;
        record->skip_sends = record->head->group->member_count == 2 && !record->head->batch;
        any = any || record->skip_sends;
    }
    return any;
}

/* --- the whole ------------------------------------------------------------------------------------ */

static void blame_lanes(struct judge *judge)
{
    vec_clear(&judge->out->findings);
    judge->out->findings_left_out = 0;
    vec_clear(&judge->missing);
    judge_lanes(judge);
    for (size_t i = 0; i < judge->lanes.len; i++)
        blame_absent(judge, judge->lanes.items[i]);
    for (size_t i = 0; i < judge->lanes.len; i++)
        blame_behind(judge, judge->lanes.items[i]);
    for (size_t i = 0; i < judge->lanes.len; i++)
        blame_foremost(judge, judge->lanes.items[i]);
    for (size_t i = 0; i < judge->flight->ranks.len; i++)
        if (judge->flight->ranks.items[i]->culprit)
            judge_reach(judge, (uint32_t)i);
    judge_missing(judge);
}

void judge_blame(struct judge *judge)
{
    struct flight *flight = judge->flight;
    for (size_t i = 0; i < flight->ranks.len; i++)
        flight->ranks.items[i]->skip_sends = false;
    blame_lanes(judge);
    if (skip_sends(judge))
        blame_lanes(judge);
    blame_circles(judge);
    bool any = judge->out->findings.len > 0;
    for (size_t i = 0; i < flight->ranks.len; i++)
        any = any || flight->ranks.items[i]->culprit;
    if (!any)
        judge_silent(judge);
    for (size_t i = 0; i < flight->ranks.len; i++) {
        struct rank_record *record = flight->ranks.items[i];
        judge->out->waiting += record->head && !record->culprit;
        if (!record->culprit)
            continue;
        vec_push(&judge->out->culprits, record->rank);
        find_culprit(judge, record);
    }
    CHECK(judge->out->waiting + judge->out->culprits.len <= flight->ranks.len);
}
