/* hang.c - the watches: which JobSets are watched, and when one has made no progress for too long. */
#include "core/hang/internal.h"

const char *const hang_verdict_names[HANG_VERDICTS] = {"",         "GoesOn",  "NotFound",
                                                       "Machines", "Program", "Network"};

struct hangs *hangs_new(void)
{
    return mem_alloc(sizeof(struct hangs));
}

static void watch_free(struct hang_watch *watch)
{
    CHECK(!heap_has(&watch->due)); /* the heap does not point to it any more */
    arena_done(&watch->arena);
    arena_done(&watch->records);
    mem_free(watch);
}

void hangs_free(struct hangs *hangs)
{
    if (!hangs)
        return;
    heap_done(&hangs->due); /* resets the heap's contents */
    for (size_t i = 0; i < hangs->list.len; i++)
        watch_free(hangs->list.items[i]);
    vec_done(&hangs->list);
    vec_done(&hangs->to_judge);
    arena_done(&hangs->order);
    mem_free(hangs);
}

void hangs_bury(struct hangs *hangs)
{
    CHECK(hangs->to_judge.len == 0);
    arena_done(&hangs->order);
}

/* --- the list ------------------------------------------------------------------------------------------- */

static size_t place_of(const struct hangs *hangs, obj_id jobset)
{
    return sorted_place(hangs->list.len, i, hangs->list.items[i]->jobset, jobset);
}

struct hang_watch *hang_of(const struct hangs *hangs, obj_id jobset)
{
    size_t at = place_of(hangs, jobset);
    bool found = at < hangs->list.len && hangs->list.items[at]->jobset == jobset;
    return found ? hangs->list.items[at] : NULL;
}

static struct hang_watch *add(struct hangs *hangs, obj_id jobset)
{
    CHECK(!hang_of(hangs, jobset)); /* one watch for each JobSet */
    struct hang_watch *watch = mem_alloc(sizeof *watch);
    size_t at = place_of(hangs, jobset);
    *watch =
        (struct hang_watch){.jobset = jobset, .attempt = -1, .phase = HANG_WATCHING, .due_ns = INT64_MAX};
    vec_push(&hangs->list, watch);
    memmove(hangs->list.items + at + 1, hangs->list.items + at,
            (hangs->list.len - 1 - at) * sizeof(*hangs->list.items));
    hangs->list.items[at] = watch;
    CHECK(at == 0 || hangs->list.items[at - 1]->jobset < jobset);
    return watch;
}

const struct hang_watch *hang_find(const struct hangs *hangs, obj_id jobset)
{
    return hang_of(hangs, jobset);
}

size_t hangs_count(const struct hangs *hangs)
{
    return hangs->list.len;
}

const struct hang_watch *hang_at(const struct hangs *hangs, size_t index)
{
    CHECK(index < hangs->list.len);
    return hangs->list.items[index];
}

int64_t hangs_deadline(const struct hangs *hangs)
{
    CHECK(!heap_min(&hangs->due) || heap_min(&hangs->due)->key != INT64_MAX);
    const struct heap_node *node = heap_min(&hangs->due);
    return node ? node->key : INT64_MAX;
}

void hang_arm(struct hangs *hangs, struct hang_watch *watch, int64_t due_ns)
{
    if (heap_has(&watch->due))
        heap_remove(&hangs->due, &watch->due);
    watch->due.key = watch->due_ns = due_ns;
    watch->due.tie = watch->jobset;
    if (due_ns != INT64_MAX)
        heap_insert(&hangs->due, &watch->due);
    CHECK(heap_has(&watch->due) == (watch->due_ns != INT64_MAX));
}

/* --- time limits ---------------------------------------------------------------------------------------- */

/* Longer limits mean "never", and their sums with stamps have no room in 64 bits. */
#define LIMIT_MAX_NS (INT64_C(365) * 86400 * NS_PER_SECOND)
_Static_assert(LIMIT_MAX_NS <= (INT64_MAX >> HANG_DOUBLINGS_MAX) / 2,
               "a doubled limit can be added to a stamp");

int64_t hang_own_limit(const struct jobset *jobset)
{
    struct str text = labels_get(&jobset->spec.annotations, STR(HANG_TIMEOUT_KEY), STR(""));
    int64_t limit_ns = 0;
    if (str_is(text, "off"))
        return -1;
    if (!text.len || !duration_parse(text, &limit_ns) || limit_ns <= 0)
        return 0;
    return limit_ns <= LIMIT_MAX_NS ? limit_ns : -1;
}

static bool is_over(const struct jobset *jobset)
{
    return !jobset || jobset->deleted_ns || jobset_finished(jobset) || jobset->spec.suspend;
}

/* Returns how long the JobSet may go without a sign of progress; INT64_MAX: for ever. */
static int64_t limit_of(const struct hang_watch *watch, const struct jobset *jobset,
                        const struct hang_settings *settings)
{
    int64_t own_ns = hang_own_limit(jobset), limit_ns;
    if (own_ns < 0 || (!settings->enabled && own_ns == 0))
        return INT64_MAX;
    if (!watch->stepped_ns || (!watch->longest_ns && own_ns == 0)) {
        limit_ns = settings->first_step_ns > own_ns ? settings->first_step_ns : own_ns;
    } else {
        limit_ns = settings->factor * watch->longest_ns;
        limit_ns = limit_ns > settings->minimum_ns ? limit_ns : settings->minimum_ns;
        limit_ns = own_ns ? own_ns : limit_ns;
        if (watch->saving && limit_ns < settings->checkpoint_ns)
            limit_ns = settings->checkpoint_ns;
    }
    uint32_t doublings = watch->unexplained < HANG_DOUBLINGS_MAX ? watch->unexplained : HANG_DOUBLINGS_MAX;
    CHECK(doublings <= HANG_DOUBLINGS_MAX);
    return limit_ns <= LIMIT_MAX_NS ? limit_ns << doublings : INT64_MAX;
}

static void arm_watching(struct step *step, struct hang_watch *watch, const struct jobset *jobset)
{
    CHECK(watch->phase == HANG_WATCHING);
    int64_t limit_ns = is_over(jobset) || watch->attempt < 0
                           ? INT64_MAX
                           : limit_of(watch, jobset, &step->cluster->policy.hangs);
    hang_arm(step->hangs, watch, limit_ns == INT64_MAX ? INT64_MAX : watch->since_ns + limit_ns);
}

void hang_go_on(struct step *step, struct hang_watch *watch, const struct jobset *jobset)
{
    watch->phase = HANG_WATCHING;
    watch->since_ns = step->now_ns;
    arm_watching(step, watch, jobset);
}

/* --- signs of progress ---------------------------------------------------------------------------------- */

/* Returns the watch of the JobSet's present attempt, made if there is none. */
static struct hang_watch *need(struct step *step, const struct jobset *jobset)
{
    struct hang_watch *watch = hang_of(step->hangs, jobset->uid);
    if (!watch)
        watch = add(step->hangs, jobset->uid);
    if (watch->attempt == jobset->attempt)
        return watch;
    watch->attempt = jobset->attempt;
    watch->stepped_ns = watch->longest_ns = 0;
    watch->saving = false;
    watch->unexplained = 0;
    if (watch->phase == HANG_WATCHING)
        hang_go_on(step, watch, jobset);
    return watch;
}

static void took_step(struct step *step, struct hang_watch *watch, const struct jobset *jobset)
{
    int64_t gap_ns = watch->stepped_ns ? step->now_ns - watch->stepped_ns : 0;
    if (!watch->saving && gap_ns > watch->longest_ns)
        watch->longest_ns = gap_ns;
    watch->stepped_ns = step->now_ns;
    watch->saving = false;
    watch->unexplained = 0;
    if (watch->phase == HANG_COLLECTING && watch->asked)
        return; /* a requested diagnosis is completed nevertheless */
    if (watch->phase == HANG_COLLECTING) {
        watch->verdict = HANG_GOES_ON;
        watch->judged_ns = step->now_ns;
        collect_end(step, watch);
    }
    hang_go_on(step, watch, jobset);
}

void hangs_progressed(struct step *step, const struct progress_event *progress)
{
    const struct jobset *jobset = jobs_find_uid(step->jobs, progress->jobset);
    bool news = jobset && !is_over(jobset) && jobset->progress.attempt == jobset->attempt &&
                jobset->progress.step_ns == step->now_ns;
    if (news)
        took_step(step, need(step, jobset), jobset);
}

/* Whether the report is a sign of progress: a rank has joined or saved a checkpoint, or a task starts whose
 * log showed steps in an earlier attempt. */
static bool is_sign(const struct task_report *report, const struct task *task, const struct jobset *jobset)
{
    if (report->kind == REPORT_STARTED)
        return task->state == TASK_RUNNING && jobset->progress.attempt >= 0 &&
               jobset->progress.attempt < jobset->attempt && jobset->progress.source != STEP_SAID;
    return (report->kind == REPORT_JOINED || report->kind == REPORT_SHARD_SAVED) && task->joined;
}

void hangs_reported(struct step *step, const struct machine *machine, const struct reports *reports)
{
    for (size_t i = 0; i < reports->count; i++) {
        const struct task_report *report = &reports->items[i];
        const struct task *task = jobs_find_task(step->jobs, report->task);
        const struct jobset *jobset = task ? task->job->jobset : NULL;
        if (!task || task->machine != machine->id || is_over(jobset) || task->attempt != jobset->attempt ||
            !is_sign(report, task, jobset))
            continue;
        struct hang_watch *watch = need(step, jobset);
        watch->saving = watch->saving || report->kind == REPORT_SHARD_SAVED;
        if (watch->phase == HANG_WATCHING)
            hang_go_on(step, watch, jobset);
    }
}

void hangs_boot(struct step *step)
{
    for (size_t i = 0; i < step->hangs->list.len; i++) {
        struct hang_watch *watch = step->hangs->list.items[i];
        watch->stepped_ns = watch->stepped_ns ? step->now_ns : 0; /* steps may have been missed until now */
        if (watch->phase == HANG_WATCHING)
            hang_go_on(step, watch, jobs_find_uid(step->jobs, watch->jobset));
    }
}

void hangs_forget(struct step *step, const struct jobset *jobset)
{
    size_t at = place_of(step->hangs, jobset->uid);
    struct hang_watch *watch = hang_of(step->hangs, jobset->uid);
    if (!watch)
        return;
    collect_end(step, watch);
    collect_drop(step->hangs, watch);
    hang_arm(step->hangs, watch, INT64_MAX);
    CHECK(watch->bytes == 0 && watch->open == 0 && step->hangs->list.items[at] == watch);
    vec_remove(&step->hangs->list, at);
    watch_free(watch);
}

/* --- suspicion ------------------------------------------------------------------------------------------ */

/* Whether all tasks of the JobSet run. While one is placed, starting or stopping, no steps are expected. */
static bool all_run(const struct jobset *jobset)
{
    bool any = false;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (task_ended(task->state))
                continue;
            if (task->state != TASK_RUNNING || task->attempt != jobset->attempt)
                return false;
            any = true;
        }
    }
    return any;
}

static void tell(struct step *step, const struct hang_watch *watch, const struct jobset *jobset)
{
    CHECK(watch->phase == HANG_WATCHING && watch->attempt == jobset->attempt);
    char since[24];
    duration_format(step->now_ns - watch->since_ns, since);
    if (jobset->progress.attempt == jobset->attempt)
        step_note(step, true, "HangSuspected", ref_jobset(jobset),
                  "no step for %s, the last was %lld: its ranks' records are collected", since,
                  (long long)jobset->progress.step);
    else
        step_note(step, true, "HangSuspected", ref_jobset(jobset),
                  "no first step for %s: its ranks' records are collected", since);
}

static void look(struct step *step, struct hang_watch *watch)
{
    const struct jobset *jobset = jobs_find_uid(step->jobs, watch->jobset);
    if (watch->phase == HANG_COLLECTING) { /* ranks that have not answered by now are silent */
        collect_close(step, watch);
        return;
    }
    if (is_over(jobset) || jobset->attempt != watch->attempt)
        return; /* the next attempt is watched when one of its ranks joins */
    if (!all_run(jobset)) {
        hang_go_on(step, watch, jobset);
        return;
    }
    tell(step, watch, jobset);
    if (!collect_begin(step, watch, jobset, false))
        hang_go_on(step, watch, jobset);
}

void hangs_tick(struct step *step)
{
    struct heap_node *node;
    while ((node = heap_min(&step->hangs->due)) && node->key <= step->now_ns) {
        struct hang_watch *watch = container_of(node, struct hang_watch, due);
        CHECK(watch->due.key == watch->due_ns);
        hang_arm(step->hangs, watch, INT64_MAX);
        look(step, watch);
    }
}

void hang_ask(struct step *step, const struct jobset *jobset)
{
    CHECK(hang_may_ask(jobset));
    struct hang_watch *watch = hang_of(step->hangs, jobset->uid);
    if (watch && watch->phase == HANG_COLLECTING)
        return;
    if (!watch)
        watch = add(step->hangs, jobset->uid);
    bool begun = collect_begin(step, watch, jobset, true);
    CHECK(begun); /* some task can answer */
}

/* --- snapshots and audits ------------------------------------------------------------------------------- */

bool hangs_restore(struct hangs *hangs, const struct hang_watch *saved)
{
    if (hangs->list.len > 0 && vec_last(&hangs->list)->jobset >= saved->jobset)
        return false;
    size_t open = 0;
    for (size_t i = 0; i < saved->part_count; i++)
        open += saved->parts[i].errand != 0;
    if (open != saved->open || (saved->phase == HANG_COLLECTING) != (open > 0))
        return false;
    struct hang_watch *watch = add(hangs, saved->jobset);
    *watch = *saved;
    watch->due = (struct heap_node){0};
    watch->arena = watch->records = (struct arena){0};
    watch->parts = ARENA_ARRAY(&watch->arena, struct hang_part, saved->part_count + 1);
    watch->text = arena_str(&watch->arena, saved->text);
    watch->bytes = 0;
    for (size_t i = 0; i < saved->part_count; i++) {
        struct hang_part *part = &watch->parts[i];
        *part = saved->parts[i];
        part->pod = arena_str(&watch->arena, part->pod);
        part->machine = arena_str(&watch->arena, part->machine);
        part->record = arena_str(&watch->records, part->record);
        watch->bytes += part->record.len;
    }
    hang_arm(hangs, watch, saved->due_ns);
    hangs->bytes += watch->bytes;
    return true;
}

void hangs_check(const struct hangs *hangs, const struct errands *errands)
{
    size_t bytes = 0;
    for (size_t i = 0; i < hangs->list.len; i++) {
        const struct hang_watch *watch = hangs->list.items[i];
        size_t open = 0, kept = 0;
        CHECK(i == 0 || hangs->list.items[i - 1]->jobset < watch->jobset);
        for (size_t p = 0; p < watch->part_count; p++) {
            const struct hang_part *part = &watch->parts[p];
            const struct errand *errand = part->errand ? errand_find(errands, part->errand) : NULL;
            CHECK(!part->errand ||
                  (errand && errand->owner == ERRAND_OF_HANG && errand->about == watch->jobset));
            open += part->errand != 0;
            kept += part->record.len;
        }
        CHECK(open == watch->open && kept == watch->bytes);
        CHECK((watch->phase == HANG_COLLECTING) == (open > 0));
        bytes += kept;
    }
    CHECK(bytes == hangs->bytes && bytes <= HANG_RECORDS_BYTES_MAX);
}
