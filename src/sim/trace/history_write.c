/* history_write.c - writes a history in its canonical form, sorts it, and makes it anonymous. */
#include "sim/trace/history.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/units.h"

const char *const history_end_names[HISTORY_ENDS] = {"completed", "failed", "cancelled", "running"};

/* --- text ----------------------------------------------------------------------------------------- */

static void history_put_text(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c <= ' ' || c > '~' || c == '%')
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
        else
            buf_add_char(out, c);
    }
}

static void history_put_time(struct buf *out, int64_t us)
{
    buf_printf(out, "%lld", (long long)(us / 1000000));
    if (us % 1000000 == 0)
        return;
    buf_printf(out, ".%06lld", (long long)(us % 1000000));
    while (out->data[out->len - 1] == '0')
        out->data[--out->len] = 0;
}

static void history_put_member(struct buf *out, const char *key, int64_t us)
{
    buf_printf(out, " %s=", key);
    if (us < 0)
        buf_add_char(out, '-');
    else
        history_put_time(out, us);
}

static void history_put_known(struct buf *out, const char *key, int64_t us)
{
    if (us >= 0)
        history_put_member(out, key, us);
}

static void history_put_machine(struct buf *out, const struct history_machine *machine)
{
    buf_printf(out, "machine ");
    history_put_text(out, machine->name);
    buf_printf(out, " chips=%u", machine->chips);
    if (machine->rack.len) {
        buf_printf(out, " rack=");
        history_put_text(out, machine->rack);
    }
    buf_printf(out, machine->spare ? " spare=1\n" : "\n");
}

static void history_put_outage(struct buf *out, const struct history *history,
                               const struct history_outage *outage)
{
    buf_printf(out, outage->code.len ? "fault " : "down ");
    history_put_time(out, outage->at_us);
    buf_add_char(out, ' ');
    history_put_text(out, history->machines.items[outage->machine].name);
    history_put_member(out, "until", outage->until_us);
    if (outage->code.len) {
        buf_printf(out, " code=");
        history_put_text(out, outage->code);
        buf_printf(out, outage->kills ? " kills=1" : "");
    }
    buf_add_char(out, '\n');
}

static void history_put_job(struct buf *out, const struct history_job *job)
{
    buf_printf(out, "job ");
    history_put_time(out, job->submit_us);
    buf_add_char(out, ' ');
    history_put_text(out, job->name);
    buf_printf(out, " ranks=%u chips=%u", job->ranks, job->chips);
    history_put_member(out, "run", job->run_us);
    buf_printf(out, " end=%s", history_end_names[job->end]);
    history_put_known(out, "launch", job->launch_us);
    history_put_known(out, "load", job->load_us);
    history_put_known(out, "stop", job->stop_us);
    history_put_known(out, "save", job->save_us);
    if (job->write_us > 0)
        history_put_member(out, "write", job->write_us);
    buf_printf(out, job->keeps ? " keeps=1" : "");
    for (uint32_t i = 0; i < job->crash_count; i++) {
        buf_printf(out, i ? "," : " crashes=");
        history_put_time(out, job->crashes_us[i]);
    }
    if (job->queue.len) {
        buf_printf(out, " queue=");
        history_put_text(out, job->queue);
    }
    if (job->priority)
        buf_printf(out, " priority=%lld", (long long)job->priority);
    if (job->recovery.len) {
        buf_printf(out, " recovery=");
        history_put_text(out, job->recovery);
    }
    if (job->is_seen) {
        history_put_member(out, "wait", job->seen.wait_us);
        history_put_member(out, "held", job->seen.held_us);
        buf_printf(out, " restarts=%lld", (long long)job->seen.restarts);
        history_put_member(out, "redone", job->seen.redone_us);
    }
    buf_add_char(out, '\n');
}

void history_write(const struct history *history, struct buf *out)
{
    char date[40];
    time_format_micro(history->begin_ns, date);
    buf_printf(out, HISTORY_HEAD "\nbegin %s\nend ", date);
    history_put_time(out, history->end_us);
    buf_add_char(out, '\n');
    for (size_t i = 0; i < history->policy.len; i++) {
        buf_printf(out, "policy ");
        history_put_text(out, history->policy.items[i].path);
        buf_add_char(out, ' ');
        history_put_text(out, history->policy.items[i].value);
        buf_add_char(out, '\n');
    }
    for (size_t i = 0; i < history->machines.len; i++)
        history_put_machine(out, &history->machines.items[i]);
    for (size_t i = 0; i < history->gaps.len; i++) {
        buf_printf(out, "gap ");
        history_put_time(out, history->gaps.items[i].at_us);
        history_put_member(out, "until", history->gaps.items[i].until_us);
        buf_add_char(out, '\n');
    }
    for (size_t i = 0; i < history->outages.len; i++)
        history_put_outage(out, history, &history->outages.items[i]);
    for (size_t i = 0; i < history->jobs.len; i++)
        history_put_job(out, &history->jobs.items[i]);
}

/* --- order ---------------------------------------------------------------------------------------- */

/* Merges two sorted halves of `items`, records of `size` bytes that begin with their time. */
static void history_merge(char *items, size_t size, size_t half, size_t count, char *spare)
{
    size_t left = 0, right = half;
    memcpy(spare, items, count * size);
    for (size_t i = 0; i < count; i++) {
        int64_t left_us = INT64_MAX, right_us = INT64_MAX;
        if (left < half)
            memcpy(&left_us, spare + left * size, sizeof left_us);
        if (right < count)
            memcpy(&right_us, spare + right * size, sizeof right_us);
        size_t from = left < half && (right == count || left_us <= right_us) ? left++ : right++;
        memcpy(items + i * size, spare + from * size, size);
    }
}

/* Sorts by the time at the beginning of each record. Unlike qsort(), keeps the order of equal times. */
static void history_sort(void *records, size_t size, size_t count)
{
    char *items = records;
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++) {
        int64_t before_us, at_us;
        memcpy(&before_us, items + (i - 1) * size, sizeof before_us);
        memcpy(&at_us, items + i * size, sizeof at_us);
        sorted = before_us <= at_us;
    }
    if (sorted)
        return;
    char *spare = mem_alloc(count * size);
    for (size_t width = 1; width < count; width *= 2)
        for (size_t at = 0; at + width < count; at += 2 * width)
            history_merge(items + at * size, size, width, count - at < 2 * width ? count - at : 2 * width,
                          spare);
    mem_free(spare);
}

void history_order(struct history *history)
{
    _Static_assert(offsetof(struct history_outage, at_us) == 0, "history_sort reads the time there");
    _Static_assert(offsetof(struct history_gap, at_us) == 0, "history_sort reads the time there");
    _Static_assert(offsetof(struct history_job, submit_us) == 0, "history_sort reads the time there");
    history_sort(history->outages.items, sizeof *history->outages.items, history->outages.len);
    history_sort(history->gaps.items, sizeof *history->gaps.items, history->gaps.len);
    history_sort(history->jobs.items, sizeof *history->jobs.items, history->jobs.len);
}

void history_done(struct history *history)
{
    vec_done(&history->policy);
    vec_done(&history->machines);
    vec_done(&history->outages);
    vec_done(&history->gaps);
    vec_done(&history->jobs);
    arena_done(&history->arena);
}

/* --- other names ---------------------------------------------------------------------------------- */

/* The pseudonyms of one kind of names. */
struct history_alias {
    const char *prefix;
    struct str_map known; /* name -> struct str */
    size_t count;
};

static void history_rename(struct history *history, struct history_alias *alias, struct str *name)
{
    if (name->len == 0)
        return;
    struct str *other = str_map_get(&alias->known, *name);
    if (!other) {
        other = ARENA_NEW(&history->arena, struct str);
        *other = arena_printf(&history->arena, "%s-%zu", alias->prefix, ++alias->count);
        str_map_put(&alias->known, *name, other);
    }
    *name = *other;
}

void history_anonymise(struct history *history)
{
    struct history_alias machines = {.prefix = "m"}, racks = {.prefix = "rack"};
    struct history_alias jobs = {.prefix = "job"}, queues = {.prefix = "queue"};
    for (size_t i = 0; i < history->machines.len; i++) {
        history_rename(history, &machines, &history->machines.items[i].name);
        history_rename(history, &racks, &history->machines.items[i].rack);
    }
    for (size_t i = 0; i < history->jobs.len; i++) {
        history_rename(history, &jobs, &history->jobs.items[i].name);
        history_rename(history, &queues, &history->jobs.items[i].queue);
    }
    history->begin_ns = 0;
    str_map_done(&machines.known);
    str_map_done(&racks.known);
    str_map_done(&jobs.known);
    str_map_done(&queues.known);
}
