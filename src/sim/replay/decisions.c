#include "sim/replay/decisions.h"

#include <inttypes.h>

const char *const decision_kind_names[DECISION_KINDS] = {"note",   "start",  "rejoin", "stop",
                                                         "errand", "switch", "refuse"};

/* Adds a decision, or counts it with an equal one about another object of this owner. */
static void decision_add(struct decisions *decisions, const struct decision *made)
{
    for (size_t i = decisions->list.len; i-- > 0 && made->owner;) {
        struct decision *known = &decisions->list.items[i];
        if (known->kind == made->kind && known->owner == made->owner && str_equal(known->what, made->what)) {
            known->count++;
            return;
        }
    }
    struct decision added = *made;
    added.what = arena_str(&decisions->arena, made->what);
    added.reason = arena_str(&decisions->arena, made->reason);
    added.count = 1;
    vec_push(&decisions->list, added);
}

static struct str decision_name(struct arena *arena, enum object_kind kind, struct str namespace_,
                                struct str name)
{
    return arena_printf(arena, "%s " STR_FORMAT "%s" STR_FORMAT, object_kind_name(kind), STR_ARG(namespace_),
                        namespace_.len ? "/" : "", STR_ARG(name));
}

/* --- orders to tasks ------------------------------------------------------------------------------ */

static struct str decision_jobset(struct arena *arena, const struct jobset *jobset)
{
    static const enum object_kind kinds[] = {
        [FORM_JOBSET] = OBJECT_JOBSET, [FORM_JOB] = OBJECT_JOB, [FORM_POD] = OBJECT_POD};
    enum object_kind kind = jobset->form == FORM_WORKLOAD ? OBJECT_WORKLOAD : kinds[jobset->form];
    return decision_name(arena, kind, jobset->namespace_, jobset->name);
}

static void decision_add_task(struct decisions *decisions, const struct core *core, const struct task *task,
                              enum decision_kind kind)
{
    const struct cluster *cluster = core_cluster(core);
    const struct jobset *jobset = task->job->jobset;
    struct decision made = {.kind = kind,
                            .what = str_from(decision_kind_names[kind]),
                            .subject = decision_jobset(&decisions->arena, jobset),
                            .owner = jobset->uid};
    if (task->machine < cluster->machine_count)
        made.reason =
            arena_printf(&decisions->arena, "attempt %d, " STR_FORMAT " on " STR_FORMAT, task->attempt,
                         STR_ARG(task->name), STR_ARG(cluster->machines[task->machine].name));
    decision_add(decisions, &made);
}

static void decision_add_stop(struct decisions *decisions, const struct core *core,
                              const struct effect *effect)
{
    const struct task *task = jobs_find_task(core_jobs(core), effect->stop.stop.task);
    if (task) {
        decision_add_task(decisions, core, task, DECISION_STOP);
        return;
    }
    struct decision made = {.kind = DECISION_STOP,
                            .what = str_from(decision_kind_names[DECISION_STOP]),
                            .subject =
                                arena_printf(&decisions->arena, "task %" PRIx64, effect->stop.stop.task),
                            .reason = STR("it is not known any more")};
    decision_add(decisions, &made);
}

/* --- all others ----------------------------------------------------------------------------------- */

static obj_id decision_owner(const struct core *core, const struct note *note)
{
    if (note->regarding == OBJECT_POD) {
        const struct task *task = jobs_find_pod(core_jobs(core), note->namespace_, note->name);
        return task ? task->job->jobset->uid : 0;
    }
    if (note->regarding == OBJECT_JOB) {
        const struct job *job = jobs_find_job(core_jobs(core), note->namespace_, note->name);
        return job ? job->jobset->uid : 0;
    }
    return 0;
}

static void decision_add_note(struct decisions *decisions, const struct core *core, const struct note *note)
{
    struct decision made = {
        .kind = DECISION_NOTE,
        .warning = note->warning,
        .what = note->reason,
        .reason = note->message,
        .subject = decision_name(&decisions->arena, note->regarding, note->namespace_, note->name),
        .owner = decision_owner(core, note)};
    decision_add(decisions, &made);
}

static void decision_add_errand(struct decisions *decisions, const struct core *core,
                                const struct effect *effect)
{
    struct decision made = {
        .kind = DECISION_ERRAND,
        .what = str_from(decision_kind_names[DECISION_ERRAND]),
        .subject = decision_name(&decisions->arena, OBJECT_NODE, STR(""),
                                 core_cluster(core)->machines[effect->errand_start.machine].name),
        .reason = arena_printf(&decisions->arena, "errand %" PRIx64, effect->errand_start.start.errand)};
    decision_add(decisions, &made);
}

static void decision_add_switch(struct decisions *decisions, const struct switch_apply *apply)
{
    struct decision made = {.kind = DECISION_SWITCH,
                            .what = str_from(decision_kind_names[DECISION_SWITCH]),
                            .subject = decision_name(&decisions->arena, OBJECT_SWITCH, STR(""), apply->name),
                            .reason = arena_printf(&decisions->arena,
                                                   "operation %" PRIu64 ": %zu to break, %zu to make",
                                                   apply->operation, apply->break_count, apply->make_count)};
    decision_add(decisions, &made);
}

static void decision_add_refusal(struct decisions *decisions, const struct effect *effect)
{
    struct decision made = {.kind = DECISION_REFUSE,
                            .what = str_from(decision_kind_names[DECISION_REFUSE]),
                            .subject = arena_printf(&decisions->arena, "%d %s", effect->reply.code,
                                                    effect->reply.reason ? effect->reply.reason : ""),
                            .reason = effect->reply.message};
    decision_add(decisions, &made);
}

static void decision_of(struct decisions *decisions, const struct core *core, const struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_TASK_START:
        decision_add_task(decisions, core, effect->start, DECISION_START);
        break;
    case EFFECT_TASK_REJOIN:
        decision_add_task(decisions, core, effect->rejoin, DECISION_REJOIN);
        break;
    case EFFECT_TASK_STOP:
        decision_add_stop(decisions, core, effect);
        break;
    case EFFECT_ERRAND_START:
        decision_add_errand(decisions, core, effect);
        break;
    case EFFECT_SWITCH_APPLY:
        decision_add_switch(decisions, &effect->switch_apply);
        break;
    case EFFECT_CHANGED:
        if (effect->changed.object.kind == OBJECT_EVENT && effect->changed.type != CHANGE_DELETED)
            decision_add_note(decisions, core, effect->changed.object.note);
        break;
    case EFFECT_REPLY:
        if (effect->reply.code >= 400)
            decision_add_refusal(decisions, effect);
        break;
    case EFFECT_TASK_NOTICE:
    case EFFECT_TASK_FORGET:
    case EFFECT_ERRAND_STOP:
    case EFFECT_WARNING:
    case EFFECT_SAY_AGAIN:
        break;
    }
}

void decisions_of(struct decisions *decisions, const struct core *core, const struct effects *effects)
{
    decisions->list.len = 0;
    arena_clear(&decisions->arena);
    for (size_t i = 0; i < effects->list.len; i++)
        decision_of(decisions, core, &effects->list.items[i]);
}

void decisions_done(struct decisions *decisions)
{
    vec_done(&decisions->list);
    arena_done(&decisions->arena);
}
