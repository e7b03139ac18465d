/* lanes.c - the progress of each rank on each lane. */
#include <stdlib.h>

#include "base/check.h"
#include "core/diagnose/judge.h"

bool op_counts(const struct rank_record *record, const struct op *op)
{
    if (op->state == OP_COMPLETED)
        return false;
    return !(record->skip_sends && op->p2p && op->source == record->rank);
}

bool record_silent(const struct rank_record *record)
{
    return !record->dumped && !record->logged;
}

bool record_idle(const struct rank_record *record)
{
    return !record_silent(record) && !record->head;
}

/* --- lanes of sends ------------------------------------------------------------------------------- */

static struct lane *channel(struct judge *judge, const struct op *op)
{
    CHECK(op->p2p && op->source < FLIGHT_RANKS_MAX && op->target < FLIGHT_RANKS_MAX);
    CHECK(op->source != op->target && op->group->index < FLIGHT_GROUPS_MAX);
    uint64_t key = (uint64_t)op->group->index << 34 | (uint64_t)op->source << 17 | op->target;
    _Static_assert(FLIGHT_RANKS_MAX <= 1 << 17 && FLIGHT_GROUPS_MAX <= 1 << 30, "they fit the key");
    struct lane *lane = u64_map_get(&judge->channels, key);
    if (lane)
        return lane;
    lane = ARENA_NEW(&judge->arena, struct lane);
    lane->group = op->group;
    lane->p2p = true;
    lane->source = op->source;
    lane->target = op->target;
    for (int i = 0; i < 2; i++) {
        struct rank_record *record = flight_rank(judge->flight, i ? op->target : op->source);
        struct seat *seat = seat_new(&judge->arena, lane, record->rank);
        seat->next_of_rank = record->channels;
        record->channels = seat;
        record->mentioned = true;
    }
    CHECK(lane->seats.len == 2);
    u64_map_put(&judge->channels, key, lane);
    vec_push(&judge->sends, lane);
    return lane;
}

/* Returns the seat at which an operation waits, or NULL if it is not known (a batch whose parts were not
 * recorded). */
static struct seat *place_of(struct judge *judge, const struct rank_record *record, const struct op *op)
{
    if (!op->p2p)
        return op->seat;
    if (op->source == RANK_NONE || op->target == RANK_NONE || op->source == op->target)
        return NULL;
    struct lane *lane = channel(judge, op);
    for (size_t i = 0; i < lane->seats.len; i++)
        if (lane->seats.items[i]->rank == record->rank)
            return lane->seats.items[i];
    return NULL;
}

bool lane_numbered(const struct lane *lane)
{
    return !lane->p2p || (lane->group->members && lane->group->member_count == 2);
}

/* --- seats ---------------------------------------------------------------------------------------- */

static void place_ops(struct judge *judge, struct rank_record *record)
{
    record->head = NULL;
    record->head_count = 0;
    for (size_t i = 0; i < record->ops.len; i++) {
        const struct op *op = &record->ops.items[i];
        if (op->state == OP_COMPLETED)
            continue;
        judge->out->hang = true;
        struct seat *seat = place_of(judge, record, op);
        if (seat && (!seat->first || op->seq < seat->first->seq))
            seat->first = op;
        if (seat)
            seat->lane->open = true;
        if (!op_counts(record, op))
            continue;
        if (!record->head)
            record->head = op;
        if (op == record->head || (op->batch && op->batch == record->head->batch))
            record->head_count = (size_t)(op - record->head) + 1;
    }
    CHECK(!record->head == !record->head_count);
    CHECK(!record->head ||
          (size_t)(record->head - record->ops.items) + record->head_count <= record->ops.len);
    for (size_t i = 0; i < record->head_count; i++) {
        const struct op *op = record->head + i;
        bool part = op_counts(record, op) && (i == 0 || (op->batch && op->batch == record->head->batch));
        struct seat *seat = part ? place_of(judge, record, op) : NULL;
        if (seat && seat->first == op && !seat->at_head) {
            seat->at_head = true;
            seat->lane->heads++;
        }
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the last finished number in pg_status, or NUMBER_NONE if it may count operations of the other kind.
 * pg_status has the number of the last operation, collective or send, so it is certain only if it exceeds
 * every number of the other kind. */
static int64_t status_done(const struct lane *lane, const struct seat *status)
{
    const struct group *group = lane->group;
    int64_t done = status->status_completed, other = lane->p2p ? group->seq_max : group->p2p_max;
    return done <= 0 || done > other ? done : NUMBER_NONE;
}

/* Returns the highest finished number of a rank that has nothing open on the lane. */
static int64_t newest_done(struct judge *judge, const struct lane *lane, const struct seat *seat)
{
    struct rank_record *record = flight_rank(judge->flight, seat->rank);
    int64_t done = NUMBER_NONE;
    if (!lane->p2p) {
        done = larger(larger(seat->enqueued, seat->completed), status_done(lane, seat));
        return done == NUMBER_NONE ? done : larger(done, 0);
    }
    if (record_silent(record))
        return NUMBER_NONE;
    if (lane_numbered(lane)) {
        for (size_t i = 0; i < record->ops.len; i++) {
            const struct op *op = &record->ops.items[i];
            if (op->p2p && op->group == lane->group)
                done =
                    larger(done, op->seq); /* earlier calls on the lane that are not open are finished */
        }
        const struct seat *status = flight_seat(judge->flight, lane->group, seat->rank);
        done = status ? larger(done, status_done(lane, status)) : done;
    }
    return larger(done, -1); /* the record is complete, and this operation is not in it */
}

static int compare_keys(const void *a, const void *b)
{
    const struct seat *x = *(struct seat *const *)a, *y = *(struct seat *const *)b;
    if (x->known != y->known)
        return x->known ? 1 : -1;
    if (x->known && x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = (*(struct seat *const *)a)->rank, y = (*(struct seat *const *)b)->rank;
    return x < y ? -1 : x > y;
}

static void order_lane(struct judge *judge, struct lane *lane)
{
    CHECK(lane->open && lane->seats.len > 0);
    lane->unknown = 0;
    lane->marked_from = lane->seats.len;
    for (size_t i = 0; i < lane->seats.len; i++) {
        struct seat *seat = lane->seats.items[i];
        if (!seat->first)
            seat->done = newest_done(judge, lane, seat);
        else
            seat->done = lane_numbered(lane) ? seat->first->seq - 1 : -1;
        seat->known = seat->done != NUMBER_NONE;
        seat->key = seat->known ? 2 * seat->done + seat->at_head : 0;
        lane->unknown += !seat->known;
        CHECK(!seat->at_head || seat->first);
    }
    CHECK(lane->unknown <= lane->seats.len && lane->heads <= lane->seats.len);
    vec_push(&judge->lanes, lane);
}

static void forget_seat(struct seat *seat)
{
    seat->first = NULL;
    seat->at_head = seat->known = false;
    seat->lane->open = false;
    seat->lane->heads = 0;
}

static void order_by_rank(struct judge *judge)
{
    for (size_t i = 0; i < judge->lanes.len; i++) {
        struct lane *lane = judge->lanes.items[i];
        qsort(lane->seats.items, lane->seats.len, sizeof *lane->seats.items, compare_ranks);
    }
    vec_clear(&judge->lanes);
}

void judge_lanes(struct judge *judge)
{
    struct flight *flight = judge->flight;
    order_by_rank(judge);
    for (size_t i = 0; i < flight->ranks.len; i++) {
        struct rank_record *record = flight->ranks.items[i];
        record->reached = record->culprit = false;
        for (struct seat *seat = record->seats; seat; seat = seat->next_of_rank)
            forget_seat(seat);
        for (struct seat *seat = record->channels; seat; seat = seat->next_of_rank)
            forget_seat(seat);
    }
    for (size_t i = 0; i < flight->ranks.len; i++)
        place_ops(judge, flight->ranks.items[i]);
    for (size_t i = 0; i < flight->groups.len; i++)
        if (flight->groups.items[i]->lane.open)
            order_lane(judge, &flight->groups.items[i]->lane);
    for (size_t i = 0; i < judge->sends.len; i++)
        if (judge->sends.items[i]->open)
            order_lane(judge, judge->sends.items[i]);
    CHECK(judge->lanes.len <= flight->groups.len + judge->sends.len);
    for (size_t i = 0; i < judge->lanes.len; i++) { /* last: until here, seats are found by rank */
        struct lane *lane = judge->lanes.items[i];
        qsort(lane->seats.items, lane->seats.len, sizeof *lane->seats.items, compare_keys);
    }
}

void judge_lanes_done(struct judge *judge)
{
    CHECK(judge->queue.len == 0); /* each search has ended */
    order_by_rank(judge);
    for (size_t i = 0; i < judge->sends.len; i++)
        vec_done(&judge->sends.items[i]->seats);
    for (size_t i = 0; i < judge->flight->ranks.len; i++) {
        struct rank_record *record = judge->flight->ranks.items[i];
        record->channels = NULL;
        record->head = NULL;
    }
    vec_done(&judge->lanes);
    vec_done(&judge->sends);
    vec_done(&judge->missing);
    vec_done(&judge->queue);
    u64_map_done(&judge->channels);
    arena_done(&judge->arena);
}
