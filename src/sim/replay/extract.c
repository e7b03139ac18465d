/* extract.c - the machines, faults and gaps of a history; extract_jobs.c has its jobs. */
#include "sim/replay/internal.h"

#include "base/units.h"

/* A fault that is reported within this time after a process died has killed it. */
#define EXTRACT_KILLED_NS (60 * NS_PER_SECOND)

int64_t extract_time(const struct extract *extract, int64_t stamp_ns)
{
    int64_t since_ns = stamp_ns - extract->history.begin_ns;
    return since_ns > 0 ? since_ns / NS_PER_US : 0;
}

struct str extract_text(struct extract *extract, struct str text)
{
    if (text.len > HISTORY_NAME_MAX)
        text.len = HISTORY_NAME_MAX;
    return arena_str(&extract->history.arena, text);
}

/* --- machines ------------------------------------------------------------------------------------- */

uint32_t extract_machine_of(struct extract *extract, struct str name)
{
    uintptr_t place = (uintptr_t)str_map_get(&extract->machines, name);
    return place ? (uint32_t)(place - 1) : MACHINE_NONE;
}

static void extract_down(struct extract *extract, uint32_t place)
{
    vec_push(&extract->history.outages,
             ((struct history_outage){
                 .at_us = extract_time(extract, extract->now_ns), .until_us = -1, .machine = place}));
    extract->down.items[place] = extract->history.outages.len;
}

/* Opens or closes the machine's outage. The absence of a machine that a repair reboots is no outage. */
static void extract_machine(struct extract *extract, const struct machine *machine)
{
    uint32_t place = extract_machine_of(extract, machine->name);
    if (place == MACHINE_NONE)
        return;
    size_t open = extract->down.items[place];
    bool gone = machine->state == MACHINE_UNSEEN || machine->state == MACHINE_LOST;
    if (gone && !open && machine->isolation != ISOLATION_RESETTING) {
        extract_down(extract, place);
        extract_jobs_lose(extract, place);
    } else if (!gone && open) {
        extract->history.outages.items[open - 1].until_us = extract_time(extract, extract->now_ns);
        extract->down.items[place] = 0;
    }
}

static void extract_add_machine(struct extract *extract, const struct cluster *cluster,
                                const struct machine *machine)
{
    const struct block *block = &cluster->blocks[machine->block];
    struct history_machine added = {.name = extract_text(extract, machine->name),
                                    .chips = machine->chip_count,
                                    .spare = machine->spare,
                                    .rack = arena_printf(&extract->history.arena, STR_FORMAT "/" STR_FORMAT,
                                                         STR_ARG(cluster->pods[machine->pod].name),
                                                         STR_ARG(block->name))};
    vec_push(&extract->history.machines, added);
    vec_push(&extract->down, (size_t)0);
    str_map_put(&extract->machines, added.name, (void *)(uintptr_t)extract->history.machines.len);
}

static void extract_policy(struct extract *extract, const struct policy *policy)
{
    extract->history.policy.len = 0;
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *field = &policy_fields[i];
        int64_t value = policy_get(policy, field);
        struct buf text BUF_CLEANUP = {0};
        if (value == field->fallback)
            continue;
        policy_print_value(field, value, &text);
        vec_push(&extract->history.policy,
                 ((struct history_policy){str_from(field->path), extract_text(extract, buf_str(&text))}));
    }
}

/* Handles a cluster document: its machines, those that it no longer has, and its policy. */
static void extract_cluster(struct extract *extract, const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->machine_count; i++) {
        if (extract_machine_of(extract, cluster->machines[i].name) == MACHINE_NONE)
            extract_add_machine(extract, cluster, &cluster->machines[i]);
        extract_machine(extract, &cluster->machines[i]);
    }
    for (size_t i = 0; i < extract->history.machines.len; i++)
        if (!extract->down.items[i] && !cluster_find(cluster, extract->history.machines.items[i].name))
            extract_down(extract, (uint32_t)i);
    extract_policy(extract, &cluster->policy);
}

/* --- faults --------------------------------------------------------------------------------------- */

static void extract_fault(struct extract *extract, const struct fault *fault)
{
    size_t open = (size_t)(uintptr_t)u64_map_get(&extract->faults, fault->uid);
    if (open && !fault->open) {
        struct history_outage *outage = &extract->history.outages.items[open - 1];
        int64_t until_us = extract_time(extract, fault->closed_ns);
        outage->until_us = until_us > outage->at_us ? until_us : outage->at_us;
        u64_map_remove(&extract->faults, fault->uid);
    }
    if (open || !fault->open || fault->level < LEVEL_PRE_SEPARATE || fault_is_on_purpose(fault->code) ||
        subject_is_place(fault->machine))
        return;
    uint32_t place = extract_machine_of(extract, fault->machine);
    if (place == MACHINE_NONE)
        return;
    struct history_outage outage = {.at_us = extract_time(extract, fault->opened_ns),
                                    .until_us = -1,
                                    .machine = place,
                                    .code = extract_text(extract, fault->code)};
    outage.kills = extract_jobs_killed(extract, place, EXTRACT_KILLED_NS);
    vec_push(&extract->history.outages, outage);
    u64_map_put(&extract->faults, fault->uid, (void *)(uintptr_t)extract->history.outages.len);
}

static void extract_visit_fault(void *context, const struct fault *fault)
{
    extract_fault(context, fault);
}

bool extract_is_faulty(struct extract *extract, const struct core *core, uint32_t place)
{
    struct str name = extract->history.machines.items[place].name;
    const struct fault *fault = fault_of_machine(core_health(core), name);
    if (!fault || fault->level < LEVEL_PRE_SEPARATE || extract->now_ns - fault->opened_ns > EXTRACT_KILLED_NS)
        return false;
    size_t open = (size_t)(uintptr_t)u64_map_get(&extract->faults, fault->uid);
    if (open)
        extract->history.outages.items[open - 1].kills = true;
    return open != 0;
}

/* --- events --------------------------------------------------------------------------------------- */

struct extract_visit {
    struct extract *extract;
    const struct core *core;
};

static void extract_visit_task(void *context, const struct task *task)
{
    struct extract_visit *visit = context;
    extract_jobs_start(visit->extract, visit->core, task);
}

/* Takes the state with which the log begins. */
static void extract_begin(struct extract *extract, const struct core *core)
{
    const struct job_store *jobs = core_jobs(core);
    extract->now_ns = extract->history.begin_ns = core_now(core);
    if (core_cluster(core))
        extract_cluster(extract, core_cluster(core));
    fault_visit(core_health(core), extract_visit_fault, extract);
    for (size_t i = 0; i < jobs->jobsets.len; i++)
        extract_jobset(extract, jobs->jobsets.items[i], false);
    jobs_visit_tasks(jobs, extract_visit_task, &(struct extract_visit){extract, core});
}

struct extract *extract_new(const struct core *core)
{
    struct extract *extract = mem_alloc(sizeof *extract);
    extract->whole = core_seq(core) == 0;
    if (!extract->whole)
        extract_begin(extract, core);
    return extract;
}

static void extract_changed(struct extract *extract, enum change_type type, struct object_ref object)
{
    bool gone = type == CHANGE_DELETED;
    if (object.kind == OBJECT_JOBSET)
        extract_jobset(extract, object.jobset, gone);
    else if (object.kind == OBJECT_JOB)
        extract_jobset(extract, object.job->jobset, gone && object.job->jobset->form == FORM_JOB);
    else if (object.kind == OBJECT_POD)
        extract_jobset(extract, object.task->job->jobset, gone && object.task->job->jobset->form == FORM_POD);
    else if (object.kind == OBJECT_FAULT && !gone)
        extract_fault(extract, object.fault);
    else if (object.kind == OBJECT_NODE && !gone)
        extract_machine(extract, object.machine);
}

void extract_event(struct extract *extract, const struct core *core, const struct event *event,
                   const struct effects *effects)
{
    if (extract->whole && !extract->begun)
        extract->history.begin_ns = extract->now_ns = event->stamp_ns;
    if (event->kind == EVENT_BOOT && (extract->begun || !extract->whole) &&
        event->stamp_ns - extract->now_ns >= NS_PER_US)
        vec_push(&extract->history.gaps, ((struct history_gap){extract_time(extract, extract->now_ns),
                                                               extract_time(extract, event->stamp_ns)}));
    extract->begun = true;
    extract->now_ns = event->stamp_ns;
    if (event->kind == EVENT_CLUSTER && core_cluster(core))
        extract_cluster(extract, core_cluster(core));
    for (size_t i = 0; i < effects->list.len; i++) {
        const struct effect *effect = &effects->list.items[i];
        if (effect->kind == EFFECT_TASK_STOP)
            extract_jobs_stop(extract, effect->stop.stop.task);
    }
    if (event->kind == EVENT_REPORTS)
        extract_jobs_reports(extract, core, &event->reports.reports);
    for (size_t i = 0; i < effects->list.len; i++) {
        const struct effect *effect = &effects->list.items[i];
        if (effect->kind == EFFECT_CHANGED)
            extract_changed(extract, effect->changed.type, effect->changed.object);
        else if (effect->kind == EFFECT_TASK_START)
            extract_jobs_start(extract, core, effect->start);
    }
}

/* --- end ------------------------------------------------------------------------------------------ */

void extract_end(struct extract *extract, const struct core *core, struct history *ret_history)
{
    extract_jobs_end(extract, core);
    extract->history.end_us = extract_time(extract, extract->now_ns);
    history_order(&extract->history);
    *ret_history = extract->history;
    extract->history = (struct history){0};
    extract_free(extract);
}

void extract_free(struct extract *extract)
{
    history_done(&extract->history);
    str_map_done(&extract->machines);
    vec_done(&extract->down);
    u64_map_done(&extract->faults);
    extract_jobs_done(extract);
    mem_free(extract);
}
