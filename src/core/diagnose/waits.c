/* waits.c - the waits between ranks. A lane's seats are in the order of keys, and each seat at a head waits
 * for all seats with a lower key. The waits therefore need no list of pairs: the seats at a head after a
 * given one wait for it. */
#include "base/check.h"
#include "core/diagnose/judge.h"

/* Returns the index of the first seat on the lane that may wait for this one: the first with a higher key.
 * The parts of a batch finish together, so seats with an equal key also wait for a rank with several
 * heads. */
static size_t place_behind(struct judge *judge, const struct seat *seat)
{
    const struct lane *lane = seat->lane;
    bool part = seat->at_head && flight_rank(judge->flight, seat->rank)->head_count > 1;
    int64_t least = seat->known ? seat->key + !part : INT64_MIN;
    size_t low = lane->unknown, high = lane->seats.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lane->seats.items[middle]->key >= least)
            high = middle;
        else
            low = middle + 1;
    }
    CHECK(low >= lane->unknown && low <= lane->seats.len);
    return low;
}

struct seat *lane_foremost(const struct lane *lane)
{
    CHECK(lane->unknown <= lane->seats.len);
    if (lane->unknown == lane->seats.len)
        return NULL;
    struct seat *first = lane->seats.items[lane->unknown];
    CHECK(first->known);
    return first->at_head ? first : NULL;
}

static void mark_behind(struct judge *judge, struct seat *seat)
{
    struct lane *lane = seat->lane;
    if (!lane->heads)
        return;
    CHECK(lane->open && lane->marked_from <= lane->seats.len);
    size_t from = place_behind(judge, seat);
    for (size_t i = from; i < lane->marked_from; i++) {
        struct rank_record *record = flight_rank(judge->flight, lane->seats.items[i]->rank);
        if (!lane->seats.items[i]->at_head || record->reached)
            continue;
        record->reached = true;
        vec_push(&judge->queue, record->rank);
    }
    if (from < lane->marked_from)
        lane->marked_from = from;
}

void judge_reach(struct judge *judge, uint32_t rank)
{
    CHECK(judge->queue.len == 0);
    size_t at = judge->queue.len;
    struct rank_record *first = flight_rank(judge->flight, rank);
    if (first->reached)
        return;
    first->reached = true;
    vec_push(&judge->queue, rank);
    for (; at < judge->queue.len; at++) {
        struct rank_record *record = flight_rank(judge->flight, judge->queue.items[at]);
        for (struct seat *seat = record->seats; seat; seat = seat->next_of_rank)
            mark_behind(judge, seat);
        for (struct seat *seat = record->channels; seat; seat = seat->next_of_rank)
            mark_behind(judge, seat);
    }
    vec_clear(&judge->queue);
}

/* Orders lanes with equally many waiting ranks: the smaller first, then by fields that do not depend
 * on the order in which dumps were read. */
static bool tells_more(const struct lane *a, const struct lane *b)
{
    if (a->seats.len != b->seats.len)
        return a->seats.len < b->seats.len;
    if (a->p2p != b->p2p)
        return b->p2p;
    int names = str_compare(a->group->name, b->group->name);
    return names ? names < 0 : a->source != b->source ? a->source < b->source : a->target < b->target;
}

/* Visits the ranks that wait for any of the given seats and that this search has not seen, and returns their
 * number. Updates *best to the seat for which most ranks wait. */
static size_t visit_behind(struct judge *judge, struct seat *seats, const struct seat **best, size_t *most)
{
    CHECK(!best == !most);
    size_t found = 0;
    for (struct seat *seat = seats; seat; seat = seat->next_of_rank) {
        struct lane *lane = seat->lane;
        size_t here = 0;
        if (!lane->heads)
            continue;
        if (lane->visit != judge->visit) {
            lane->visit = judge->visit;
            lane->visited_from = lane->seats.len;
        }
        CHECK(lane->open && lane->visited_from <= lane->seats.len);
        size_t from = place_behind(judge, seat);
        for (size_t i = from; i < lane->visited_from; i++) {
            struct rank_record *record = flight_rank(judge->flight, lane->seats.items[i]->rank);
            if (!lane->seats.items[i]->at_head || record->rank == seat->rank)
                continue;
            here++;
            if (record->visit == judge->visit)
                continue;
            record->visit = judge->visit;
            vec_push(&judge->queue, record->rank);
            found++;
        }
        lane->visited_from = from < lane->visited_from ? from : lane->visited_from;
        if (best && here > 0 && (here > *most || (here == *most && tells_more(lane, (*best)->lane)))) {
            *most = here;
            *best = seat;
        }
    }
    return found;
}

void judge_count(struct judge *judge, uint32_t rank, bool all, size_t *ret_direct, size_t *ret_all,
                 const struct seat **ret_seat)
{
    struct rank_record *first = flight_rank(judge->flight, rank);
    const struct seat *best = NULL;
    size_t most = 0, direct;
    vec_clear(&judge->queue);
    first->visit = ++judge->visit;
    direct = visit_behind(judge, first->seats, &best, &most);
    direct += visit_behind(judge, first->channels, &best, &most);
    size_t count = direct;
    for (size_t at = 0; all && at < judge->queue.len; at++) {
        struct rank_record *record = flight_rank(judge->flight, judge->queue.items[at]);
        count += visit_behind(judge, record->seats, NULL, NULL);
        count += visit_behind(judge, record->channels, NULL, NULL);
    }
    vec_clear(&judge->queue);
    CHECK(count >= direct && (best != NULL) == (most > 0));
    *ret_direct = direct;
    *ret_all = count;
    *ret_seat = best;
}
