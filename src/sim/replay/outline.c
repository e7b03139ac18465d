#include "sim/replay/outline.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/units.h"
#include "core/admit/admit.h"
#include "core/ladder/ladder.h"
#include "core/log/record.h"
#include "doc/json.h"

/* A rank in an order, and its machine. */
struct outline_rank {
    struct str name, machine;
};
struct outline_line {
    size_t cause, place; /* index in `causes`; index of this line */
    uint64_t seq;
    int64_t stamp_ns;
    struct str what, object, detail;
    VEC(struct outline_rank) ranks; /* for orders */
};
/* An attempt of a JobSet whose processes were started. */
struct outline_attempt {
    struct str object;
    int32_t attempt;
    bool answered; /* a process was told to stop, or has ended: later ends are consequences */
};
struct outline {
    struct arena arena; /* owns all strings */
    VEC(struct str) causes;
    VEC(struct outline_line) lines;
    VEC(struct outline_attempt) attempts;
    struct str_map orders;  /* "CAUSE start UID ATTEMPT" -> 1 + index in `lines` */
    struct str_map newest;  /* object -> 1 + index of its newest line */
    struct str_map numbers; /* "UID ATTEMPT" -> 1 + index in `attempts` */
    struct u64_map tasks;   /* uid of a task that was not told to stop -> 1 + index in `attempts` */
    const struct event *event;
};

/* Adds a line. The strings must live as long as the outline. */
static void outline_add(struct outline *outline, struct str what, struct str object, struct str detail)
{
    struct outline_line line = {.cause = outline->causes.len - 1,
                                .place = outline->lines.len,
                                .seq = outline->event->seq,
                                .stamp_ns = outline->event->stamp_ns,
                                .what = what,
                                .object = object,
                                .detail = detail};
    vec_push(&outline->lines, line);
    str_map_put(&outline->newest, object, (void *)(uintptr_t)outline->lines.len);
}

/* Returns whether the object's newest line is exactly this. */
static bool outline_repeats(const struct outline *outline, struct str what, struct str object,
                            struct str detail)
{
    uintptr_t place = (uintptr_t)str_map_get(&outline->newest, object);
    const struct outline_line *line = place ? &outline->lines.items[place - 1] : NULL;
    return line && str_equal(line->what, what) && str_equal(line->detail, detail);
}

static struct str outline_object(struct outline *outline, enum object_kind kind, struct str namespace_,
                                 struct str name)
{
    return arena_printf(&outline->arena, "%s " STR_FORMAT "%s" STR_FORMAT, object_kind_name(kind),
                        STR_ARG(namespace_), namespace_.len ? "/" : "", STR_ARG(name));
}

static struct str outline_jobset(struct outline *outline, const struct jobset *jobset)
{
    static const enum object_kind kinds[] = {[FORM_JOBSET] = OBJECT_JOBSET,
                                             [FORM_JOB] = OBJECT_JOB,
                                             [FORM_POD] = OBJECT_POD,
                                             [FORM_WORKLOAD] = OBJECT_WORKLOAD};
    return outline_object(outline, kinds[jobset->form], jobset->namespace_, jobset->name);
}

/* --- orders --------------------------------------------------------------------------------------- */

/* Returns 1 + the index of the attempt of the task's process. */
static uintptr_t outline_attempt(struct outline *outline, const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    struct str key = arena_printf(&outline->arena, "%llx %d", (unsigned long long)jobset->uid, task->attempt);
    uintptr_t place = (uintptr_t)str_map_get(&outline->numbers, key);
    if (place)
        return place;
    struct outline_attempt attempt = {.object = outline_jobset(outline, jobset), .attempt = task->attempt};
    vec_push(&outline->attempts, attempt);
    str_map_put(&outline->numbers, key, (void *)(uintptr_t)outline->attempts.len);
    return outline->attempts.len;
}

/* Returns the Pod's name without its random suffix. */
static struct str outline_rank_name(struct outline *outline, const struct task *task)
{
    if (task->job->jobset->form == FORM_POD)
        return arena_str(&outline->arena, task->name);
    if (task_is_spare(task))
        return arena_printf(&outline->arena, STR_FORMAT "-spare-%d", STR_ARG(task->job->name),
                            -1 - task->index);
    return arena_printf(&outline->arena, STR_FORMAT "-%d", STR_ARG(task->job->name), task->index);
}

static void outline_order(struct outline *outline, const struct core *core, const char *what,
                          const struct task *task)
{
    const struct cluster *cluster = core_cluster(core);
    const struct jobset *jobset = task->job->jobset;
    struct str key = arena_printf(&outline->arena, "%zu %s %llx %d", outline->causes.len, what,
                                  (unsigned long long)jobset->uid, task->attempt);
    uintptr_t attempt = outline_attempt(outline, task);
    struct outline_rank rank = {.name = outline_rank_name(outline, task), .machine = STR("no machine")};
    uintptr_t place = (uintptr_t)str_map_get(&outline->orders, key);
    if (!place) {
        outline_add(outline, str_from(what), outline_jobset(outline, jobset),
                    arena_printf(&outline->arena, "attempt %d", task->attempt));
        place = outline->lines.len;
        str_map_put(&outline->orders, key, (void *)place);
    }
    bool stops = str_is(str_from(what), "stop");
    outline->attempts.items[attempt - 1].answered = stops; /* a stopped attempt may be resumed */
    if (stops)
        u64_map_remove(&outline->tasks, task->uid);
    else
        u64_map_put(&outline->tasks, task->uid, (void *)attempt);
    struct outline_line *line = &outline->lines.items[place - 1];
    if (task->machine < cluster->machine_count)
        rank.machine = arena_str(&outline->arena, cluster->machines[task->machine].name);
    for (size_t i = 0; i < line->ranks.len; i++)
        if (str_equal(line->ranks.items[i].name, rank.name) &&
            str_equal(line->ranks.items[i].machine, rank.machine))
            return; /* the order is repeated */
    vec_push(&line->ranks, rank);
}

/* --- notes ---------------------------------------------------------------------------------------- */

/* Returns whether the note repeats what a machine or a person reported. */
static bool outline_is_report(const struct note *note)
{
    static const char *const reports[] = {"MachineReady",     "MachineAway",    "InventoryMismatch",
                                          "InjectionOrdered", "Injected",       "InjectionFailed",
                                          "InjectionLost",    "DrainRequested", "DrainEnded"};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        if (str_is(note->reason, reports[i]))
            return true;
    return false;
}

static const struct restart_record *outline_restart(const struct core *core, const struct note *note)
{
    const struct jobset *jobset = jobs_find(core_jobs(core), note->namespace_, note->name);
    return jobset ? restart_newest(jobset) : NULL;
}

static struct str outline_detail(struct outline *outline, const struct core *core, const struct note *note)
{
    const struct restart_record *restart = outline_restart(core, note);
    if (!restart)
        return (struct str){0};
    if (str_is(note->reason, "RecoveryDecided"))
        return arena_printf(&outline->arena, "%s as attempt %d, cause %s%s%s",
                            rung_name((enum rung)restart->rung), restart->attempt, restart->cause,
                            restart->machine[0] ? " on " : "", restart->machine);
    const struct end_signature *root = end_signatures_root(&restart->signatures);
    if (!str_is(note->reason, "RestartCause") || !root)
        return (struct str){0};
    return arena_printf(&outline->arena, "rank %u on %s: %s", root->rank,
                        root->machine[0] ? root->machine : "no machine", signature_name(root->kind));
}

static void outline_note(struct outline *outline, const struct core *core, const struct note *note)
{
    struct str object = {0}, name = note->name;
    if (note->regarding == OBJECT_POD || note->regarding == OBJECT_EVENT || outline_is_report(note))
        return;
    if (note->regarding == OBJECT_JOB) {
        const struct job *job = jobs_find_job(core_jobs(core), note->namespace_, note->name);
        if (!job || job->jobset->form != FORM_JOB || str_starts(note->reason, STR("Successful")))
            return;
    }
    if (note->regarding == OBJECT_WORKLOAD) { /* its name has a random suffix */
        const struct workload *workload = workload_find(core_admit(core), note->namespace_, note->name);
        if (workload && workload->jobset)
            object = outline_object(outline, OBJECT_WORKLOAD, note->namespace_, workload->jobset->name);
    }
    if (note->regarding == OBJECT_REPAIR) /* MACHINE.xxxxx */
        while (name.len > 0 && name.data[--name.len] != '.')
            ;
    if (object.len == 0)
        object = outline_object(outline, note->regarding, note->namespace_, name);
    struct str detail = outline_detail(outline, core, note);
    if (!outline_repeats(outline, note->reason, object, detail))
        outline_add(outline, arena_str(&outline->arena, note->reason), object, detail);
}

/* --- events --------------------------------------------------------------------------------------- */

static void outline_changed(struct outline *outline, const struct core *core, enum change_type type,
                            struct object_ref object)
{
    const struct jobset *jobset = object.kind == OBJECT_JOBSET ? object.jobset
                                  : object.kind == OBJECT_JOB  ? object.job->jobset
                                  : object.kind == OBJECT_POD  ? object.task->job->jobset
                                                               : NULL;
    if (object.kind == OBJECT_EVENT && type != CHANGE_DELETED)
        outline_note(outline, core, object.note);
    if (!jobset || type == CHANGE_MODIFIED)
        return;
    bool own = object.kind == OBJECT_JOBSET ? jobset->form == FORM_JOBSET
               : object.kind == OBJECT_JOB  ? jobset->form == FORM_JOB
                                            : jobset->form == FORM_POD;
    if (own)
        outline_add(outline, type == CHANGE_DELETED ? STR("removed") : STR("created"),
                    outline_jobset(outline, jobset), (struct str){0});
}

static void outline_effect(struct outline *outline, const struct core *core, const struct effect *effect)
{
    const struct task *task;
    switch (effect->kind) {
    case EFFECT_TASK_START:
        outline_order(outline, core, "start", effect->start);
        break;
    case EFFECT_TASK_REJOIN:
        outline_order(outline, core, "rejoin", effect->rejoin);
        break;
    case EFFECT_TASK_STOP:
        task = jobs_find_task(core_jobs(core), effect->stop.stop.task);
        if (task && !task_ended(task->state))
            outline_order(outline, core, "stop", task);
        break;
    case EFFECT_CHANGED:
        outline_changed(outline, core, effect->changed.type, effect->changed.object);
        break;
    default: /* answers to clients and machines */
        break;
    }
}

/* --- from outside ------------------------------------------------------------------------------- */

static bool outline_is_refused(const struct effects *effects)
{
    for (size_t i = 0; i < effects->list.len; i++)
        if (effects->list.items[i].kind == EFFECT_REPLY && effects->list.items[i].reply.code >= 400)
            return true;
    return false;
}

/* Returns the fault that probes, or a write, have reported; empty: none. */
static struct str outline_fault_cause(struct outline *outline, const struct effects *effects)
{
    for (size_t i = 0; i < effects->list.len; i++) {
        const struct effect *effect = &effects->list.items[i];
        if (effect->kind != EFFECT_CHANGED || effect->changed.object.kind != OBJECT_FAULT ||
            effect->changed.type == CHANGE_DELETED)
            continue;
        const struct fault *fault = effect->changed.object.fault;
        return arena_printf(&outline->arena, "%sfault " STR_FORMAT " of " STR_FORMAT,
                            fault->open ? "" : "end of ", STR_ARG(fault->code), STR_ARG(fault->machine));
    }
    return (struct str){0};
}

/* Returns the machine that is declared lost now, because of its connections, its silence or peers' reports;
 * empty: none. */
static struct str outline_loss_cause(struct outline *outline, const struct effects *effects)
{
    for (size_t i = 0; i < effects->list.len; i++) {
        const struct effect *effect = &effects->list.items[i];
        if (effect->kind != EFFECT_CHANGED || effect->changed.object.kind != OBJECT_EVENT ||
            effect->changed.type == CHANGE_DELETED)
            continue;
        const struct note *note = effect->changed.object.note;
        if (note->regarding == OBJECT_NODE && str_is(note->reason, "MachineLost"))
            return arena_printf(&outline->arena, "lost " STR_FORMAT, STR_ARG(note->name));
    }
    return (struct str){0};
}

/* Returns the first process of an attempt that ends by itself; empty: none. */
static struct str outline_end_cause(struct outline *outline, const struct reports *reports)
{
    for (size_t i = 0; i < reports->count; i++) {
        const struct task_report *report = &reports->items[i];
        uintptr_t place = (uintptr_t)u64_map_get(&outline->tasks, report->task);
        struct outline_attempt *attempt = place ? &outline->attempts.items[place - 1] : NULL;
        if ((report->kind != REPORT_EXITED && report->kind != REPORT_START_FAILED) || !attempt ||
            attempt->answered)
            continue;
        attempt->answered = true;
        bool failed = report->kind != REPORT_EXITED || report->exit_code != 0 || report->signal != 0;
        return arena_printf(&outline->arena, STR_FORMAT " attempt %d: a process %s", STR_ARG(attempt->object),
                            attempt->attempt, failed ? "failed" : "ended");
    }
    return (struct str){0};
}

static struct str outline_cause(struct outline *outline, const struct event *event,
                                const struct effects *effects)
{
    struct arena *arena = &outline->arena;
    const struct write_event *write = &event->write;
    struct str cause = outline_loss_cause(outline, effects);
    if (cause.len > 0)
        return cause;
    switch (event->kind) {
    case EVENT_BOOT:
        return STR("boot");
    case EVENT_CLUSTER:
        return STR("cluster file");
    case EVENT_WRITE:
        if (outline_is_refused(effects))
            return (struct str){0};
        if (write->object == OBJECT_FAULT)
            return outline_fault_cause(outline, effects);
        if (write->verb == WRITE_CREATE) /* a name that the controller generates is random */
            return arena_printf(arena, "create %s", object_kind_name(write->object));
        return arena_printf(arena, "%s %s " STR_FORMAT, record_verb_name(write->verb),
                            object_kind_name(write->object), STR_ARG(write->name));
    case EVENT_MACHINE_HELLO:
        return arena_printf(arena, "hello " STR_FORMAT, STR_ARG(event->machine_hello.hello.machine));
    case EVENT_REPORTS:
        cause = outline_end_cause(outline, &event->reports.reports);
        return cause.len ? cause : outline_fault_cause(outline, effects);
    default: /* timers, and reports of processes about their work */
        return (struct str){0};
    }
}

void outline_event(struct outline *outline, const struct core *core, const struct event *event,
                   const struct effects *effects)
{
    struct str cause = outline_cause(outline, event, effects);
    if (cause.len > 0)
        vec_push(&outline->causes, cause);
    outline->event = event;
    for (size_t i = 0; i < effects->list.len; i++)
        outline_effect(outline, core, &effects->list.items[i]);
    outline->event = NULL;
}

/* --- begin ---------------------------------------------------------------------------------------- */

static void outline_visit_task(void *context, const struct task *task)
{
    struct outline *outline = context;
    if (!task_ended(task->state) && task->state >= TASK_STARTING)
        u64_map_put(&outline->tasks, task->uid, (void *)outline_attempt(outline, task));
}

struct outline *outline_new(const struct core *core)
{
    struct outline *outline = mem_alloc(sizeof *outline);
    vec_push(&outline->causes, STR("from before"));
    jobs_visit_tasks(core_jobs(core), outline_visit_task, outline);
    return outline;
}

/* --- text ----------------------------------------------------------------------------------------- */

static int outline_by_name(const void *a, const void *b)
{
    const struct outline_rank *first = a, *second = b;
    int order = str_compare(first->name, second->name);
    return order ? order : str_compare(first->machine, second->machine);
}

static void outline_put_detail(struct outline_line *line, struct buf *out)
{
    buf_add_str(out, line->detail);
    if (line->ranks.len > 1)
        qsort(line->ranks.items, line->ranks.len, sizeof *line->ranks.items, outline_by_name);
    for (size_t i = 0; i < line->ranks.len; i++)
        buf_printf(out, "%s" STR_FORMAT " on " STR_FORMAT, i ? ", " : ": ",
                   STR_ARG(line->ranks.items[i].name), STR_ARG(line->ranks.items[i].machine));
}

static bool outline_is_about(const struct outline_line *line, struct str detail, struct str about)
{
    return about.len == 0 || memmem(line->object.data, line->object.len, about.data, about.len) ||
           memmem(detail.data, detail.len, about.data, about.len);
}

static int outline_by_object(const void *a, const void *b)
{
    const struct outline_line *first = a, *second = b;
    if (first->cause != second->cause)
        return first->cause < second->cause ? -1 : 1;
    int order = str_compare(first->object, second->object);
    return order ? order : (first->place > second->place) - (first->place < second->place);
}

static void outline_order_lines(struct outline *outline)
{
    if (outline->lines.len > 1)
        qsort(outline->lines.items, outline->lines.len, sizeof *outline->lines.items, outline_by_object);
}

void outline_text(struct outline *outline, struct str about, struct buf *out)
{
    struct buf detail BUF_CLEANUP = {0};
    size_t cause = SIZE_MAX;
    outline_order_lines(outline);
    for (size_t i = 0; i < outline->lines.len; i++) {
        struct outline_line *line = &outline->lines.items[i];
        buf_clear(&detail);
        outline_put_detail(line, &detail);
        if (!outline_is_about(line, buf_str(&detail), about))
            continue;
        if (line->cause != cause)
            buf_printf(out, STR_FORMAT "\n", STR_ARG(outline->causes.items[line->cause]));
        cause = line->cause;
        buf_printf(out, "  %-18.*s " STR_FORMAT "%s" STR_FORMAT "\n", STR_ARG(line->what),
                   STR_ARG(line->object), detail.len ? ": " : "", STR_ARG(buf_str(&detail)));
    }
}

void outline_json(struct outline *outline, struct str about, struct buf *out)
{
    struct buf detail BUF_CLEANUP = {0};
    outline_order_lines(outline);
    for (size_t i = 0; i < outline->lines.len; i++) {
        struct outline_line *line = &outline->lines.items[i];
        struct json_writer json = {.out = out};
        char time[40];
        buf_clear(&detail);
        outline_put_detail(line, &detail);
        if (!outline_is_about(line, buf_str(&detail), about))
            continue;
        time_format_micro(line->stamp_ns, time);
        json_begin_object(&json);
        json_pair_int(&json, "seq", (int64_t)line->seq);
        json_pair_text(&json, "time", time);
        json_pair_str(&json, "cause", outline->causes.items[line->cause]);
        json_pair_str(&json, "what", line->what);
        json_pair_str(&json, "object", line->object);
        json_pair_str(&json, "detail", buf_str(&detail));
        json_end_object(&json);
        buf_add_char(out, '\n');
    }
}

void outline_free(struct outline *outline)
{
    for (size_t i = 0; i < outline->lines.len; i++)
        vec_done(&outline->lines.items[i].ranks);
    vec_done(&outline->lines);
    vec_done(&outline->causes);
    vec_done(&outline->attempts);
    str_map_done(&outline->orders);
    str_map_done(&outline->newest);
    str_map_done(&outline->numbers);
    u64_map_done(&outline->tasks);
    arena_done(&outline->arena);
    mem_free(outline);
}
