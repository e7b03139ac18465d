/* collect.c - collects the records of a JobSet's ranks, with an errand to each task's machine. */
#include <stdlib.h>

#include "doc/json.h"
#include "core/hang/internal.h"

_Static_assert((int)HANG_RECORD_BYTES_MIN <= (int)HANG_RECORD_BYTES_MAX, "each task may answer something");

static uint32_t world_of(const struct jobset *jobset, const struct job *job)
{
    uint32_t world = 0;
    for (uint32_t r = 0; r < jobset->spec.rjob_count; r++) {
        bool seen = false;
        for (uint32_t before = 0; before < r && !seen; before++)
            seen = str_equal(jobset->spec.rjobs[before].group, jobset->spec.rjobs[r].group);
        if (!seen && str_equal(jobset->spec.rjobs[r].group, job->rjob->group))
            break;
        world += !seen;
    }
    return world;
}

static int compare_parts(const void *a, const void *b)
{
    const struct hang_part *x = a, *y = b;
    if (x->world != y->world)
        return x->world < y->world ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static bool may_answer(const struct task *task)
{
    return task->machine != MACHINE_NONE && (task->state == TASK_RUNNING || task->state == TASK_STOPPING);
}

bool hang_may_ask(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++)
            if (may_answer(job->tasks.items[t]))
                return true;
    }
    return false;
}

typedef VEC(struct hang_part) part_list;

static void list_parts(const struct step *step, const struct jobset *jobset, struct arena *arena,
                       part_list *parts)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        uint32_t world = job ? world_of(jobset, job) : 0;
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!may_answer(task))
                continue;
            struct hang_part part = {.task = task->uid,
                                     .pod = arena_str(arena, task->name),
                                     .machine = arena_str(arena, step->cluster->machines[task->machine].name),
                                     .world = world,
                                     .rank = task->rank,
                                     .size = task->world};
            vec_push(parts, part);
        }
    }
    if (parts->len > 1)
        qsort(parts->items, parts->len, sizeof *parts->items, compare_parts);
}

/* Limits a record so that all records of one diagnosis fit. */
static size_t record_bytes(size_t part_count)
{
    size_t each = HANG_RECORDS_BYTES_MAX / (part_count > 0 ? part_count : 1);
    each = each < HANG_RECORD_BYTES_MAX ? each : HANG_RECORD_BYTES_MAX;
    return each > HANG_RECORD_BYTES_MIN ? each : HANG_RECORD_BYTES_MIN;
}

static obj_id send(struct step *step, const struct hang_watch *watch, const struct hang_part *part,
                   uint32_t tag)
{
    CHECK(tag < watch->part_count);
    const struct task *task = jobs_find_task(step->jobs, part->task);
    struct buf body BUF_CLEANUP = {0};
    int64_t answer_ns = step->cluster->policy.hangs.answer_ns;
    CHECK(task && task->machine != MACHINE_NONE);
    buf_printf(&body, "{\"task\":\"%llu\",\"rank\":%u,\"bytes\":%zu,\"withinMs\":%lld}",
               (unsigned long long)part->task, part->rank, record_bytes(watch->part_count),
               (long long)(answer_ns / NS_PER_MS));
    return errand_begin(step, &(struct errand_order){.machine = task->machine,
                                                     .kind = ERRAND_DIAGNOSE,
                                                     .owner = ERRAND_OF_HANG,
                                                     .about = watch->jobset,
                                                     .tag = tag,
                                                     .body = buf_str(&body),
                                                     .timeout_ns = answer_ns + NS_PER_SECOND});
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void drop_records(struct hangs *hangs, struct hang_watch *watch)
{
    for (size_t i = 0; i < watch->part_count; i++)
        watch->parts[i].record = STR("");
    arena_done(&watch->records);
    CHECK(hangs->bytes >= watch->bytes);
    hangs->bytes -= watch->bytes;
    watch->forgotten = watch->bytes > 0;
    watch->bytes = 0;
}

void collect_drop(struct hangs *hangs, struct hang_watch *watch)
{
    drop_records(hangs, watch);
    CHECK(watch->open == 0); /* no errand may answer for a part that is freed */
    arena_done(&watch->arena);
    watch->parts = NULL;
    watch->part_count = 0;
    watch->text = STR("");
    watch->verdict = HANG_NO_VERDICT;
    watch->forgotten = false;
}

/* Drops the records of the oldest finished diagnoses until `bytes` more fit. Returns false if that is not
 * enough. */
static bool make_room(struct hangs *hangs, const struct hang_watch *taker, size_t bytes)
{
    CHECK(bytes <= HANG_RECORDS_BYTES_MAX);
    while (hangs->bytes + bytes > HANG_RECORDS_BYTES_MAX) {
        struct hang_watch *oldest = NULL;
        for (size_t i = 0; i < hangs->list.len; i++) {
            struct hang_watch *watch = hangs->list.items[i];
            bool may_go = watch != taker && watch->phase == HANG_WATCHING && watch->bytes > 0;
            if (may_go && (!oldest || watch->number < oldest->number))
                oldest = watch;
        }
        if (!oldest)
            return false;
        drop_records(hangs, oldest);
    }
    return true;
}

/* --- begin and end -------------------------------------------------------------------------------------- */

bool collect_begin(struct step *step, struct hang_watch *watch, const struct jobset *jobset, bool asked)
{
    struct hangs *hangs = step->hangs;
    part_list parts = {0};
    CHECK(watch->phase == HANG_WATCHING && watch->open == 0);
    struct arena names = {0};
    list_parts(step, jobset, &names, &parts);
    if (parts.len == 0) {
        arena_done(&names);
        return false;
    }
    collect_drop(hangs, watch);
    watch->arena = names;
    watch->parts = ARENA_ARRAY(&watch->arena, struct hang_part, parts.len);
    mem_copy(watch->parts, parts.items, parts.len * sizeof *parts.items);
    watch->part_count = watch->open = parts.len;
    vec_done(&parts);
    watch->phase = HANG_COLLECTING;
    watch->number = step->seq;
    watch->asked = asked;
    watch->begun_ns = step->now_ns;
    watch->judged_ns = 0;
    CHECK(watch->bytes == 0 && watch->part_count > 0 && watch->open == watch->part_count);
    for (size_t i = 0; i < watch->part_count; i++)
        watch->parts[i].errand = send(step, watch, &watch->parts[i], (uint32_t)i);
    hang_arm(hangs, watch, step->now_ns + step->cluster->policy.hangs.answer_ns + HANG_ANSWER_MARGIN_NS);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    return true;
}

void collect_end(struct step *step, struct hang_watch *watch)
{
    for (size_t i = 0; i < watch->part_count; i++) {
        if (watch->parts[i].errand)
            errand_cancel(step, watch->parts[i].errand);
        watch->parts[i].errand = 0;
    }
    watch->open = 0;
}

void collect_close(struct step *step, struct hang_watch *watch)
{
    CHECK(watch->phase == HANG_COLLECTING);
    collect_end(step, watch);
    vec_push(&step->hangs->to_judge, watch->jobset);
}

void hang_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end)
{
    struct hang_watch *watch = hang_of(step->hangs, errand->about);
    CHECK(errand->owner == ERRAND_OF_HANG);
    if (!watch || errand->tag >= watch->part_count || watch->parts[errand->tag].errand != errand->uid)
        return;
    struct hang_part *part = &watch->parts[errand->tag];
    part->errand = 0;
    part->answered = end->outcome == ERRAND_OK && end->output.len <= record_bytes(watch->part_count);
    struct str record = part->answered ? end->output : str_head_utf8(end->output, HANG_RECORD_BYTES_MIN);
    if (make_room(step->hangs, watch, record.len)) {
        part->record = arena_str(&watch->records, record);
        watch->bytes += record.len;
        step->hangs->bytes += record.len;
        CHECK(watch->bytes <= step->hangs->bytes && step->hangs->bytes <= HANG_RECORDS_BYTES_MAX);
    } else {
        part->answered = false;
    }
    CHECK(watch->open > 0);
    if (--watch->open == 0)
        collect_close(step, watch);
}
