/* collect.c - finds the ranks, asks for dumps, waits for them, and writes the answer. */
#include "host/collect/internal.h"

#include <poll.h>
#include <time.h>

#include "doc/json.h"
#include "base/units.h"
#include "core/words/order.h"

enum { LOOK_MS = 20, FACTS_BYTES = 256 /* of a rank, besides its record */ };

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int collect_order_read(struct str text, struct collect_order *ret_order, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct doc *doc = NULL;
    int64_t task;
    int code = json_parse(&arena, text, &doc, error);
    if (code < 0)
        return code;
    int64_t bytes = doc_int(doc_get(doc, "bytes"), ERRAND_OUTPUT_MAX);
    int64_t within_ms = doc_int(doc_get(doc, "withinMs"), 2000);
    if (!str_to_i64(doc_str(doc_get(doc, "task"), STR("")), 1, INT64_MAX, &task))
        return error_set(error, ERROR_INVALID, "task: the uid of a task is expected");
    if (bytes < 1 || bytes > ERRAND_OUTPUT_MAX)
        return error_set(error, ERROR_INVALID, "bytes: 1 to %d is expected", ERRAND_OUTPUT_MAX);
    if (within_ms < 0 || within_ms > 60000)
        return error_set(error, ERROR_INVALID, "withinMs: 0 to 60000 is expected");
    *ret_order = (struct collect_order){(uint64_t)task, (size_t)bytes, within_ms * NS_PER_MS};
    return 0;
}

struct taken {
    bool asked, done;
    struct buf record;
};

/* Takes a dump that the process has written since it began, or libphalanx's record. For processes whose dump
 * cannot be requested. */
static bool take_unasked(const struct rank_process *process, size_t each, struct buf *out)
{
    if (dump_put(out, process, process->begun_ns, each))
        return true;
    if (process->recorded)
        record_put(out, &process->record);
    return process->recorded;
}

/* Requests dumps, and waits until all have arrived or the time has expired. A rank whose requested dump does
 * not arrive gets no record: a rank with PyTorch's groups must be judged by these, not by libphalanx's
 * barrier. */
static void take_records(const struct collect_order *order, const rank_list *ranks, struct taken *taken,
                         size_t each)
{
    /* File systems take time stamps from this clock, which may be a tick behind the precise one. */
    int64_t since_ns = clock_ns(CLOCK_REALTIME_COARSE), end_ns = clock_ns(CLOCK_MONOTONIC) + order->within_ns;
    size_t left = 0;
    for (size_t i = 0; i < ranks->len; i++) {
        taken[i].asked = dump_ask(&ranks->items[i]);
        taken[i].done = !taken[i].asked && take_unasked(&ranks->items[i], each, &taken[i].record);
        left += taken[i].asked;
    }
    while (left > 0 && clock_ns(CLOCK_MONOTONIC) < end_ns) {
        poll(NULL, 0, LOOK_MS);
        for (size_t i = 0; i < ranks->len; i++) {
            if (!taken[i].asked || taken[i].done)
                continue;
            taken[i].done = dump_put(&taken[i].record, &ranks->items[i], since_ns, each);
            left -= taken[i].done;
        }
    }
}

static void put_rank(struct json_writer *writer, const struct rank_process *process,
                     const struct taken *taken)
{
    json_begin_object(writer);
    json_pair_int(writer, "rank", process->rank);
    json_pair_str(writer, "state", (struct str){&process->state, 1});
    if (process->waits_in.len)
        json_pair_str(writer, "waitsIn", process->waits_in);
    if (process->recorded && process->record.step_ns != 0) {
        json_pair_int(writer, "step", (int64_t)process->record.step);
        json_pair_int(writer, "stepAgeMs", (clock_ns(CLOCK_REALTIME) - process->record.step_ns) / NS_PER_MS);
    }
    if (taken->done) {
        json_key(writer, "flight");
        json_put_raw(writer, buf_str(&taken->record));
    }
    json_end_object(writer);
}

int collect_task(const struct collect_order *order, struct buf *out, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    rank_list ranks = {0};
    int code = ranks_find(order->task, &arena, &ranks, error);
    if (code < 0)
        return code;
    size_t each = order->bytes / (ranks.len + 1);
    struct taken *taken = ARENA_ARRAY(&arena, struct taken, ranks.len + 1);
    take_records(order, &ranks, taken, each > FACTS_BYTES ? each - FACTS_BYTES : 0);
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_key(&writer, "ranks");
    json_begin_array(&writer);
    for (size_t i = 0; i < ranks.len; i++) {
        put_rank(&writer, &ranks.items[i], &taken[i]);
        buf_done(&taken[i].record);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
    vec_done(&ranks);
    return 0;
}
