/* summary.c - the record of one rank in few bytes: a dump in the same form with the parts that judging needs
 * most.
 *
 * Three operations of each lane show the rank's progress: the oldest open, the newest open and the newest
 * finished one. The summary keeps these first, then open operations, then the newest finished ones while
 * there is space. A batch is kept as a whole or not at all. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "doc/json.h"
#include "core/diagnose/flight.h"

/* The operations that determine the numbers of a lane. */
enum lane_end { OLDEST_OPEN, NEWEST_OPEN, NEWEST_DONE, LANE_ENDS };

struct lane_ends {
    size_t at[LANE_ENDS]; /* index in the record's ops, plus one; 0: none */
};

struct summary {
    const struct rank_record *record;
    /* the rank's seats, in the order of the ids that the summary gives their groups */
    VEC(const struct seat *) seats;
    bool *kept;  /* by index in record->ops */
    size_t left; /* bytes left */
    struct buf scratch;
    struct str_map ids; /* name of a group -> its id plus one */
};

/* --- groups --------------------------------------------------------------------------------------- */

/* Orders groups by number if their names are numbers, so that ids and names count up together (read.c,
 * match_ids). */
static int compare_seats(const void *a, const void *b)
{
    const struct group *x = (*(const struct seat *const *)a)->lane->group;
    const struct group *y = (*(const struct seat *const *)b)->lane->group;
    int64_t m, n;
    if (str_to_i64(x->name, 0, INT64_MAX, &m) && str_to_i64(y->name, 0, INT64_MAX, &n) && m != n)
        return m < n ? -1 : 1;
    return str_compare(x->name, y->name);
}

static void list_groups(struct summary *summary)
{
    for (const struct seat *seat = summary->record->seats; seat; seat = seat->next_of_rank)
        vec_push(&summary->seats, seat);
    if (summary->seats.len > 1)
        qsort(summary->seats.items, summary->seats.len, sizeof *summary->seats.items, compare_seats);
    for (size_t i = 0; i < summary->seats.len; i++)
        str_map_put(&summary->ids, summary->seats.items[i]->lane->group->name, (void *)(uintptr_t)(i + 1));
}

static int64_t group_id(const struct summary *summary, const struct group *group)
{
    int64_t id = (int64_t)(uintptr_t)str_map_get(&summary->ids, group->name) - 1;
    CHECK(id >= 0 && (size_t)id < summary->seats.len); /* the rank has a seat in each group of its calls */
    return id;
}

void flight_write_ranks(struct buf *out, const uint32_t *ranks, size_t count)
{
    buf_add_char(out, '[');
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        int64_t stride = i + 1 < count ? (int64_t)ranks[i + 1] - ranks[i] : 0;
        while (stride > 0 && i + run < count && (int64_t)ranks[i + run] - ranks[i + run - 1] == stride)
            run++;
        CHECK(i + run <= count);
        buf_printf(out, i ? ", %u" : "%u", ranks[i]);
        if (run < 3) {
            i++;
            continue;
        }
        buf_printf(out, "-%u", ranks[i + run - 1]);
        if (stride > 1)
            buf_printf(out, "/%lld", (long long)stride);
        i += run;
    }
    buf_add_char(out, ']');
}

static void put_group(const struct summary *summary, struct json_writer *writer, struct buf *scratch,
                      const struct seat *seat)
{
    const struct group *group = seat->lane->group;
    json_key_str(writer, group->name);
    json_begin_object(writer);
    json_pair_str(writer, "name", group->name);
    json_pair_str(writer, "desc", group->desc);
    buf_clear(scratch);
    if (group->members) {
        flight_write_ranks(scratch, group->members, group->member_count);
        json_pair_str(writer, "ranks", buf_str(scratch));
    }
    json_end_object(writer);
}

static void put_status(const struct summary *summary, struct json_writer *writer)
{
    json_key(writer, "pg_status");
    json_begin_object(writer);
    for (size_t i = 0; i < summary->seats.len; i++) {
        const struct seat *seat = summary->seats.items[i];
        char key[24];
        if (seat->status_enqueued == NUMBER_NONE && seat->status_completed == NUMBER_NONE)
            continue;
        snprintf(key, sizeof key, "%zu", i);
        json_key(writer, key);
        json_begin_object(writer);
        if (seat->status_enqueued != NUMBER_NONE)
            json_pair_int(writer, "last_enqueued_collective", seat->status_enqueued);
        if (seat->status_completed != NUMBER_NONE)
            json_pair_int(writer, "last_completed_collective", seat->status_completed);
        json_end_object(writer);
    }
    json_end_object(writer);
}

/* --- operations ----------------------------------------------------------------------------------- */

static void put_number(struct json_writer *writer, const char *key, int64_t number)
{
    if (number != NUMBER_NONE)
        json_pair_int(writer, key, number);
}

/* Writes a text like "[2, 3], [4]" as a list of lists, and one like "Float, Half" as a list of words. */
static void put_sizes(struct json_writer *writer, const char *key, const struct term *term)
{
    if (!term)
        return;
    struct buf text BUF_CLEANUP = {0};
    buf_add_char(&text, '[');
    buf_add_str(&text, term->text);
    buf_add_char(&text, ']');
    json_key(writer, key);
    json_put_raw(writer, buf_str(&text));
}

static void put_types(struct json_writer *writer, const char *key, const struct term *term)
{
    if (!term)
        return;
    json_key(writer, key);
    json_begin_array(writer);
    if (term->text.len)
        json_put_str(writer, term->text);
    json_end_array(writer);
}

/* Returns the rank's index in its group, which the names of sends and receives use. */
static uint32_t local_rank(const struct group *group, uint32_t rank)
{
    for (size_t i = 0; group->members && i < group->member_count; i++)
        if (group->members[i] == rank)
            return (uint32_t)i;
    return rank;
}

static void put_name(struct json_writer *writer, const struct op *op, uint32_t rank)
{
    struct buf name BUF_CLEANUP = {0};
    buf_add_char(&name, ':');
    buf_add_str(&name, op->name->text);
    if (op->source != RANK_NONE && op->target != RANK_NONE) {
        bool send = str_is(op->name->text, "send");
        uint32_t source = local_rank(op->group, op->source), target = local_rank(op->group, op->target);
        buf_printf(&name, send ? " %u->%u" : " %u<-%u", send ? source : target, send ? target : source);
    }
    json_pair_str(writer, "profiling_name", buf_str(&name));
}

/* Writes the group of an operation, unless the dump does not name it, as old dumps may not. */
static void put_op_group(const struct summary *summary, struct json_writer *writer, const struct group *group)
{
    if (!group->name.len)
        return;
    json_pair_int(writer, "pg_id", group_id(summary, group));
    json_key(writer, "process_group");
    json_begin_array(writer);
    json_put_str(writer, group->name);
    json_put_str(writer, group->desc);
    json_end_array(writer);
}

static void put_op(const struct summary *summary, struct buf *out, const struct op *op)
{
    static const char *const states[] = {"scheduled", "started", "completed"};
    _Static_assert(sizeof states / sizeof *states == OP_COMPLETED + 1, "a name for each state");
    CHECK(op->state <= OP_COMPLETED);
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_int(&writer, "record_id", op->record_id);
    put_op_group(summary, &writer, op->group);
    put_number(&writer, op->p2p ? "p2p_seq_id" : "collective_seq_id", op->seq);
    put_number(&writer, op->p2p ? "collective_seq_id" : "p2p_seq_id", op->other_seq);
    put_name(&writer, op, summary->record->rank);
    json_pair_bool(&writer, "is_p2p", op->p2p);
    put_sizes(&writer, "input_sizes", op->input);
    put_sizes(&writer, "output_sizes", op->output);
    put_types(&writer, "input_dtypes", op->input_type);
    put_types(&writer, "output_dtypes", op->output_type);
    json_pair_text(&writer, "state", states[op->state]);
    json_pair_int(&writer, "time_created_ns", op->created_ns);
    json_end_object(&writer);
}

/* Writes the entry of the whole batch, by which a reader joins its parts. */
static void put_batch_end(const struct summary *summary, struct buf *out, const struct op *last)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_int(&writer, "record_id", last->record_id + 1);
    put_op_group(summary, &writer, last->group);
    put_number(&writer, last->p2p ? "p2p_seq_id" : "collective_seq_id", last->seq);
    json_pair_text(&writer, "profiling_name", ":coalesced");
    json_pair_bool(&writer, "is_p2p", last->p2p);
    json_pair_text(&writer, "state", last->state == OP_STARTED ? "started" : "scheduled");
    json_end_object(&writer);
}

/* --- choosing ------------------------------------------------------------------------------------- */

static size_t batch_end(const struct rank_record *record, size_t first)
{
    CHECK(first < record->ops.len);
    size_t end = first + 1;
    while (record->ops.items[first].batch && end < record->ops.len &&
           record->ops.items[end].batch == record->ops.items[first].batch)
        end++;
    return end;
}

/* Whether the batch is open; the parts of a finished one carry that state themselves. */
static bool is_open_batch(const struct rank_record *record, size_t first, size_t end)
{
    return record->ops.items[first].batch && record->ops.items[end - 1].state != OP_COMPLETED;
}

/* Keeps the operation with its whole batch, if there is space. */
static void keep(struct summary *summary, size_t place)
{
    const struct rank_record *record = summary->record;
    size_t first = place;
    while (record->ops.items[place].batch && first > 0 &&
           record->ops.items[first - 1].batch == record->ops.items[place].batch)
        first--;
    if (summary->kept[first])
        return;
    buf_clear(&summary->scratch);
    size_t end = batch_end(record, first);
    CHECK(first <= place && place < end);
    for (size_t i = first; i < end; i++) {
        put_op(summary, &summary->scratch, &record->ops.items[i]);
        buf_add_char(&summary->scratch, ',');
    }
    if (is_open_batch(record, first, end))
        put_batch_end(summary, &summary->scratch, &record->ops.items[end - 1]);
    if (summary->scratch.len + 2 > summary->left)
        return;
    summary->left -= summary->scratch.len + 2;
    for (size_t i = first; i < end; i++)
        summary->kept[i] = true;
}

static uint64_t lane_key(const struct op *op)
{
    _Static_assert(FLIGHT_RANKS_MAX <= 1 << 17 && FLIGHT_GROUPS_MAX <= 1 << 27, "they fit the key");
    CHECK(op->group->index < FLIGHT_GROUPS_MAX);
    uint64_t ends = op->p2p ? (uint64_t)(op->source & (FLIGHT_RANKS_MAX - 1)) << 17 |
                                  (op->target & (FLIGHT_RANKS_MAX - 1))
                            : 0;
    return (uint64_t)op->group->index << 36 | ends << 1 | op->p2p;
}

static void choose(struct summary *summary)
{
    const struct rank_record *record = summary->record;
    struct u64_map lanes = {0};
    struct arena arena ARENA_CLEANUP = {0};
    VEC(struct lane_ends *) all = {0};
    for (size_t i = 0; i < record->ops.len; i++) {
        const struct op *op = &record->ops.items[i];
        struct lane_ends *ends = u64_map_get(&lanes, lane_key(op) + 1);
        if (!ends) {
            ends = ARENA_NEW(&arena, struct lane_ends);
            u64_map_put(&lanes, lane_key(op) + 1, ends);
            vec_push(&all, ends);
        }
        bool open = op->state != OP_COMPLETED;
        if (open && !ends->at[OLDEST_OPEN])
            ends->at[OLDEST_OPEN] = i + 1;
        ends->at[open ? NEWEST_OPEN : NEWEST_DONE] = i + 1;
    }
    for (int which = 0; which < LANE_ENDS; which++)
        for (size_t i = 0; i < all.len; i++)
            if (all.items[i]->at[which])
                keep(summary, all.items[i]->at[which] - 1);
    for (size_t i = 0; i < record->ops.len && summary->left > 0; i++)
        if (record->ops.items[i].state != OP_COMPLETED)
            keep(summary, i);
    for (size_t i = record->ops.len; i-- > 0 && summary->left > 0;)
        keep(summary, i);
    vec_done(&all);
    u64_map_done(&lanes);
}

static void put_entries(const struct summary *summary, struct buf *out)
{
    const struct rank_record *record = summary->record;
    bool any = false;
    for (size_t i = 0; i < record->ops.len;) {
        size_t end = batch_end(record, i);
        CHECK(end > i && end <= record->ops.len);
        for (size_t k = i; summary->kept[i] && k < end; k++, any = true) {
            if (any)
                buf_add_char(out, ',');
            put_op(summary, out, &record->ops.items[k]);
        }
        if (summary->kept[i] && is_open_batch(record, i, end)) {
            buf_add_char(out, ',');
            put_batch_end(summary, out, &record->ops.items[end - 1]);
        }
        i = end;
    }
}

size_t flight_summarise(struct flight *flight, uint32_t rank, size_t bytes_max, struct buf *out)
{
    CHECK(rank < flight->ranks.len && flight->ranks.items[rank]->dumped);
    struct summary summary = {.record = flight->ranks.items[rank], .left = bytes_max};
    struct buf head BUF_CLEANUP = {0}, scratch BUF_CLEANUP = {0};
    struct json_writer writer = {.out = &head};
    list_groups(&summary);
    json_begin_object(&writer);
    json_key(&writer, "pg_config");
    json_begin_object(&writer);
    for (size_t i = 0; i < summary.seats.len; i++)
        put_group(&summary, &writer, &scratch, summary.seats.items[i]);
    json_end_object(&writer);
    put_status(&summary, &writer);
    json_key(&writer, "entries");
    json_begin_array(&writer);
    json_end_array(&writer);
    json_end_object(&writer);
    CHECK(head.len > 2);
    summary.left = bytes_max > head.len ? bytes_max - head.len : 0;
    summary.kept = mem_alloc(summary.record->ops.len + 1);
    choose(&summary);
    size_t before = out->len;
    buf_add(out, head.data, head.len - 2); /* up to the end of the list */
    put_entries(&summary, out);
    buf_add(out, "]}", 2);
    CHECK(out->len - before <= (bytes_max > head.len ? bytes_max : head.len));
    mem_free(summary.kept);
    vec_done(&summary.seats);
    buf_done(&summary.scratch);
    str_map_done(&summary.ids);
    return out->len - before;
}
