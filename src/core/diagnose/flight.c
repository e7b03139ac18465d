#include "core/diagnose/flight.h"

#include <stdlib.h>

#include "base/check.h"

_Static_assert(FLIGHT_RANKS_MAX < RANK_NONE, "no rank is RANK_NONE");
_Static_assert(NUMBER_MAX <= INT64_MAX / 2 - 1, "twice a number, plus one, fits a key");

struct flight *flight_new(void)
{
    return mem_alloc(sizeof(struct flight));
}

void flight_free(struct flight *flight)
{
    if (!flight)
        return;
    for (size_t i = 0; i < flight->groups.len; i++)
        vec_done(&flight->groups.items[i]->lane.seats);
    for (size_t i = 0; i < flight->ranks.len; i++)
        vec_done(&flight->ranks.items[i]->ops);
    vec_done(&flight->groups);
    vec_done(&flight->ranks);
    str_map_done(&flight->group_names);
    str_map_done(&flight->terms);
    arena_done(&flight->arena);
    mem_free(flight);
}

struct rank_record *flight_rank(struct flight *flight, uint32_t rank)
{
    CHECK(rank < FLIGHT_RANKS_MAX);
    while (flight->ranks.len <= rank) {
        struct rank_record *record = ARENA_NEW(&flight->arena, struct rank_record);
        record->rank = (uint32_t)flight->ranks.len;
        vec_push(&flight->ranks, record);
    }
    CHECK(flight->ranks.items[rank]->rank == rank);
    return flight->ranks.items[rank];
}

int flight_expect(struct flight *flight, uint32_t count, struct error *error)
{
    if (count > FLIGHT_RANKS_MAX)
        return error_set(error, ERROR_LIMIT, "more than %d ranks", FLIGHT_RANKS_MAX);
    for (uint32_t rank = 0; rank < count; rank++)
        flight_rank(flight, rank)->mentioned = true;
    CHECK(flight->ranks.len >= count);
    flight->expected = count;
    return 0;
}

const struct term *flight_term(struct flight *flight, struct str text, int64_t elements)
{
    CHECK(elements >= 0);
    struct term *term = str_map_get(&flight->terms, text);
    if (!term) {
        term = ARENA_NEW(&flight->arena, struct term);
        term->text = arena_str(&flight->arena, text);
        term->elements = elements;
        str_map_put(&flight->terms, term->text, term);
    }
    return term;
}

/* --- groups --------------------------------------------------------------------------------------- */

struct seat *seat_new(struct arena *arena, struct lane *lane, uint32_t rank)
{
    CHECK(rank < FLIGHT_RANKS_MAX);
    struct seat *seat = ARENA_NEW(arena, struct seat);
    seat->lane = lane;
    seat->rank = rank;
    seat->enqueued = seat->completed = seat->status_enqueued = seat->status_completed = NUMBER_NONE;
    vec_push(&lane->seats, seat);
    return seat;
}

static bool is_between(char c)
{
    return c == '[' || c == ']' || c == ',' || c == ' ' || c == '(' || c == ')';
}

static bool next_number(struct str text, size_t *at, uint32_t *ret_number)
{
    CHECK(*at <= text.len);
    uint64_t number = 0;
    size_t start = *at;
    for (; *at < text.len && text.data[*at] >= '0' && text.data[*at] <= '9' && number < FLIGHT_RANKS_MAX;
         ++*at)
        number = number * 10 + (uint64_t)(text.data[*at] - '0');
    *ret_number = (uint32_t)number;
    return *at > start && number < FLIGHT_RANKS_MAX;
}

/* Reads the next rank or range of ranks, separated by any of "[], ()": "3", "0-7", "0-56/8" (every eighth).
 * Returns false if the text is malformed or a rank is too high. */
static bool next_ranks(struct str text, size_t *at, uint32_t *ret_first, uint32_t *ret_last,
                       uint32_t *ret_stride)
{
    while (*at < text.len && is_between(text.data[*at]))
        ++*at;
    if (!next_number(text, at, ret_first))
        return false;
    *ret_last = *ret_first;
    *ret_stride = 1;
    if (*at < text.len && text.data[*at] == '-') {
        ++*at;
        if (!next_number(text, at, ret_last) || *ret_last < *ret_first)
            return false;
        if (*at < text.len && text.data[*at] == '/') {
            ++*at;
            if (!next_number(text, at, ret_stride) || *ret_stride == 0)
                return false;
        }
    }
    CHECK(*at <= text.len && *ret_first <= *ret_last && *ret_stride > 0);
    return *at == text.len || is_between(text.data[*at]);
}

static int compare_seats(const void *a, const void *b)
{
    uint32_t x = (*(struct seat *const *)a)->rank, y = (*(struct seat *const *)b)->rank;
    return x < y ? -1 : x > y;
}

static int read_members(struct flight *flight, struct group *group, struct error *error)
{
    struct str text = group->ranks_text;
    VEC(uint32_t) members = {0};
    size_t at = 0;
    int code = 0;
    group->ascending = true;
    for (size_t end = text.len; end > 0 && is_between(text.data[end - 1]); end--)
        text.len = end - 1;
    while (at < text.len && code == 0) {
        uint32_t first = 0, last = 0, stride = 1;
        if (!next_ranks(text, &at, &first, &last, &stride))
            code = error_set(error, ERROR_INVALID, "not a list of ranks below %d", FLIGHT_RANKS_MAX);
        else if (members.len + (last - first) / stride >= FLIGHT_RANKS_MAX)
            code = error_set(error, ERROR_LIMIT, "more than %d ranks", FLIGHT_RANKS_MAX);
        for (uint32_t rank = first; code == 0 && rank <= last; rank += stride) {
            group->ascending = group->ascending && (members.len == 0 || vec_last(&members) < rank);
            vec_push(&members, rank);
        }
    }
    CHECK(members.len <= FLIGHT_RANKS_MAX && (code < 0 || at == text.len));
    group->members = ARENA_ARRAY(&flight->arena, uint32_t, members.len + 1);
    group->member_count = members.len;
    mem_copy(group->members, members.items, members.len * sizeof *members.items);
    vec_done(&members);
    return code;
}

/* Gives each member of the group one seat, even if it is named twice. */
static void take_seats(struct flight *flight, struct group *group)
{
    struct lane *lane = &group->lane;
    CHECK(lane->seats.len == 0);
    vec_reserve(&lane->seats, group->member_count);
    for (size_t i = 0; i < group->member_count; i++)
        seat_new(&flight->arena, lane, group->members[i]);
    if (group->member_count > 1 && !group->ascending)
        qsort(lane->seats.items, lane->seats.len, sizeof *lane->seats.items, compare_seats);
    size_t kept = 0;
    for (size_t i = 0; i < lane->seats.len; i++) {
        struct seat *seat = lane->seats.items[i];
        if (kept > 0 && lane->seats.items[kept - 1]->rank == seat->rank)
            continue;
        struct rank_record *record = flight_rank(flight, seat->rank);
        lane->seats.items[kept++] = seat;
        record->mentioned = true;
        seat->next_of_rank = record->seats;
        record->seats = seat;
    }
    CHECK(kept <= group->member_count && (kept > 0 || group->member_count == 0));
    lane->seats.len = kept;
}

int flight_group(struct flight *flight, struct str name, struct str desc, struct str ranks_text,
                 struct group **ret_group, struct error *error)
{
    struct group *first = str_map_get(&flight->group_names, name), *group = first;
    while (group && ranks_text.len > 0 && !str_equal(group->ranks_text, ranks_text))
        group = group->next;
    if (!group) {
        CHECK(flight->groups.len <= FLIGHT_GROUPS_MAX && flight->seats <= FLIGHT_SEATS_MAX);
        if (flight->groups.len == FLIGHT_GROUPS_MAX)
            return error_set(error, ERROR_LIMIT, "more than %d process groups", FLIGHT_GROUPS_MAX);
        group = ARENA_NEW(&flight->arena, struct group);
        group->ranks_text = ranks_text; /* borrowed from the caller until the list is known to be valid */
        int code = ranks_text.len ? read_members(flight, group, error) : 0;
        if (code == 0 && group->member_count > FLIGHT_SEATS_MAX - flight->seats)
            code = error_set(error, ERROR_LIMIT, "all groups together have more than %d members",
                             FLIGHT_SEATS_MAX);
        if (code < 0)
            return code;
        flight->seats += group->member_count;
        group->name = arena_str(&flight->arena, name);
        group->desc = arena_str(&flight->arena, desc);
        group->ranks_text = arena_str(&flight->arena, ranks_text);
        group->index = (uint32_t)flight->groups.len;
        group->lane.group = group;
        group->seq_max = group->p2p_max = 0;
        vec_push(&flight->groups, group);
        take_seats(flight, group);
        if (first) {
            group->next = first->next;
            first->next = group;
        } else {
            str_map_put(&flight->group_names, group->name, group);
        }
    }
    if (!group->desc.len && desc.len)
        group->desc = arena_str(&flight->arena, desc);
    CHECK(group->lane.group == group && flight->groups.items[group->index] == group);
    *ret_group = group;
    return 0;
}

struct group *flight_group_named(struct flight *flight, struct str name)
{
    return str_map_get(&flight->group_names, name);
}

struct seat *flight_seat(struct flight *flight, struct group *group, uint32_t rank)
{
    struct lane *lane = &group->lane;
    if (group->members) { /* outside of judging, seats are in the order of ranks */
        size_t low = 0, high = lane->seats.len;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (lane->seats.items[middle]->rank < rank)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < lane->seats.len && lane->seats.items[low]->rank == rank)
            return lane->seats.items[low];
        return NULL;
    }
    struct rank_record *record = flight_rank(flight, rank);
    for (struct seat *seat = record->seats; seat; seat = seat->next_of_rank)
        if (seat->lane == lane)
            return seat;
    struct seat *seat = seat_new(&flight->arena, lane, rank);
    seat->next_of_rank = record->seats;
    record->seats = seat;
    record->mentioned = true;
    return seat;
}
