/* scenario_history.c - makes a scenario of a cluster's history: its machines, outages, jobs and policy. */
#include "sim/capacity/internal.h"
#include "sim/capacity/scenario_queues.h"

#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"

/* --- machines ------------------------------------------------------------------------------------- */

/* Adds the racks. Consecutive machines in one rack with equal chips are one entry. */
static void history_add_racks(struct sim_scenario *scenario, const struct history *history)
{
    uint32_t count = scenario->machines;
    for (uint32_t i = 0, end; i < count; i = end) {
        const struct history_machine *first = &history->machines.items[i];
        for (end = i + 1; end < count; end++) {
            const struct history_machine *next = &history->machines.items[end];
            if (next->chips != first->chips || !str_equal(next->rack, first->rack))
                break;
        }
        struct scenario_racks racks = {.count = 1, .machines = end - i, .chips = first->chips};
        vec_push(&scenario->racks, racks);
    }
}

/* Adds the history's machines, or as many as the file wants. If the file wants more, these have the chips of
 * the largest. */
static int history_add_machines(struct sim_scenario *scenario, const struct history *history,
                                struct error *error)
{
    uint32_t recorded = (uint32_t)history->machines.len, wanted = scenario->machines;
    if (recorded == 0 && wanted == 0)
        return error_set(error, ERROR_INVALID,
                         "the trace has no machines, and cluster.machines is not given");
    if (scenario->has_racks || recorded == 0)
        return wanted
                   ? 0
                   : error_set(error, ERROR_INVALID,
                               "cluster.machines has to be given beside machinesPerRack and sparesPerRack");
    scenario->machines = wanted && wanted < recorded ? wanted : recorded;
    scenario->chips = history->machines.items[0].chips;
    scenario->spares = ARENA_ARRAY(&scenario->arena, bool, wanted > recorded ? wanted : recorded);
    for (uint32_t i = 0; i < scenario->machines; i++) {
        scenario->spares[i] = history->machines.items[i].spare;
        if (history->machines.items[i].chips > scenario->chips)
            scenario->chips = history->machines.items[i].chips;
    }
    history_add_racks(scenario, history);
    if (wanted > recorded) {
        struct scenario_racks more = {.count = 1, .machines = wanted - recorded, .chips = scenario->chips};
        vec_push(&scenario->racks, more);
        scenario->machines = wanted;
    }
    return 0;
}

/* Returns whether the ranks fit the cluster when it is empty and every machine works. */
static bool history_fits(const struct sim_scenario *scenario, const struct history_job *job)
{
    uint64_t room = 0;
    uint32_t machine = 0;
    for (size_t i = 0; i < scenario->racks.len; i++) {
        const struct scenario_racks *racks = &scenario->racks.items[i];
        for (uint32_t m = 0; m < racks->count * racks->machines; m++, machine++)
            room += scenario->spares[machine] ? 0 : racks->chips / job->chips;
    }
    if (scenario->racks.len == 0) {
        uint32_t racks = scenario->machines / scenario->machines_per_rack;
        room = (uint64_t)(scenario->machines - racks * scenario->spares_per_rack) *
               (scenario->chips / job->chips);
    }
    return job->ranks <= room;
}

/* --- outages -------------------------------------------------------------------------------------- */

enum history_model { HISTORY_ABSENT, HISTORY_LOST, HISTORY_FAULT, HISTORY_ALARM, HISTORY_MODELS };

static int history_add_models(struct sim_scenario *scenario, struct error *error)
{
    static const struct {
        const char *name;
        enum failure_kind kind;
    } models[HISTORY_MODELS] = {{"not there yet", FAILURE_CRASH},
                                {"machine lost", FAILURE_CRASH},
                                {"fault", FAILURE_FAULT},
                                {"fault without harm", FAILURE_FALSE}};
    if (scenario->failure_count + HISTORY_MODELS > SCENARIO_FAILURES_MAX)
        return error_set(error, ERROR_INVALID, "expected at most %d failures beside a trace, got %u",
                         SCENARIO_FAILURES_MAX - HISTORY_MODELS, scenario->failure_count);
    for (int i = 0; i < HISTORY_MODELS; i++) {
        struct failure_model *model = &scenario->failures[scenario->failure_count++];
        *model = (struct failure_model){.kind = models[i].kind, /* the times are known, so nothing is drawn */
                                        .planned = true,
                                        .lemon_factor = 1,
                                        .infant_factor = 1,
                                        .signal = "xid/79"};
        snprintf(model->name, sizeof model->name, "%s", models[i].name);
    }
    return 0;
}

static enum history_model history_model_of(const struct history_outage *outage)
{
    if (outage->code.len == 0)
        return outage->at_us == 0 ? HISTORY_ABSENT : HISTORY_LOST;
    return outage->kills ? HISTORY_FAULT : HISTORY_ALARM;
}

/* Adds the outages. Overlapping outages of a machine become one, from the beginning of the first to the end
 * of the last. */
static void history_add_outages(struct sim_scenario *scenario, const struct history *history)
{
    uint32_t first_model = scenario->failure_count - HISTORY_MODELS;
    /* 1 + index of a machine's newest outage */
    size_t *newest = mem_alloc((history->machines.len + 1) * sizeof *newest);
    for (size_t i = 0; i < history->outages.len; i++) {
        const struct history_outage *outage = &history->outages.items[i];
        int64_t until_us = outage->until_us < 0 ? HISTORY_TIME_MAX_US : outage->until_us;
        double at_s = (double)outage->at_us / 1e6, repair_s = (double)(until_us - outage->at_us) / 1e6;
        struct planned_failure *before =
            newest[outage->machine] ? &scenario->planned.items[newest[outage->machine] - 1] : NULL;
        if (outage->machine >= scenario->machines)
            continue;
        if (before && at_s <= before->at_s + before->repair_s) {
            double until_s = at_s + repair_s;
            if (until_s > before->at_s + before->repair_s)
                before->repair_s = until_s - before->at_s;
            continue;
        }
        struct planned_failure planned = {.model = first_model + history_model_of(outage),
                                          .machine = outage->machine,
                                          .at_s = at_s,
                                          .repair_s = repair_s};
        if (outage->code.len)
            planned.signal = arena_strdup(&scenario->arena, outage->code);
        vec_push(&scenario->planned, planned);
        newest[outage->machine] = scenario->planned.len;
    }
    mem_free(newest);
}

/* --- jobs and policy ------------------------------------------------------------------------------ */

static int history_add_job(struct sim_scenario *scenario, const struct history_job *job, struct error *error)
{
    bool found;
    struct listed_job listed = {.submit_s = (double)job->submit_us / 1e6,
                                .runtime_s = (double)job->run_us / 1e6,
                                .chips = job->ranks * job->chips,
                                .fails = job->end == HISTORY_FAILED,
                                .cancelled = job->end == HISTORY_CANCELLED,
                                .queue = scenario_queue_of(scenario, job->queue, &found),
                                .known = job};
    int64_t priority = job->priority;
    if (!found)
        return scenario_no_queue(scenario, job->queue, error);
    if (priority == 0 && listed.queue)
        priority = scenario->queues.items[listed.queue - 1].priority;
    listed.priority = (int32_t)(priority > TRACE_PRIORITY_MAX    ? TRACE_PRIORITY_MAX
                                : priority < -TRACE_PRIORITY_MAX ? -TRACE_PRIORITY_MAX
                                                                 : priority);
    vec_push(&scenario->jobs, listed);
    return scenario_note_priority(scenario, listed.priority, error);
}

static int history_add_jobs(struct sim_scenario *scenario, const struct history *history,
                            size_t *ret_left_out, struct error *error)
{
    size_t left_out = 0;
    int rc = 0;
    for (size_t i = 0; i < history->jobs.len && rc == 0; i++) {
        const struct history_job *job = &history->jobs.items[i];
        bool works = job->run_us > 0 || job->end == HISTORY_RUNNING;
        if (!works || job->chips == 0 || !history_fits(scenario, job))
            left_out++;
        else if (job->submit_us < scenario->duration_ns / NS_PER_US)
            rc = history_add_job(scenario, job, error);
    }
    if (scenario->jobs.len > 1)
        qsort(scenario->jobs.items, scenario->jobs.len, sizeof *scenario->jobs.items, scenario_by_submit);
    *ret_left_out = left_out;
    return rc;
}

static struct doc *history_policy_value(struct arena *arena, struct str text)
{
    struct doc *value;
    if (json_parse(arena, text, &value, NULL) == 0 && value->kind != DOC_OBJECT && value->kind != DOC_ARRAY)
        return value;
    value = doc_new(arena, DOC_STRING);
    value->text = arena_str(arena, text);
    return value;
}

/* Sets the value at a path of objects, unless the path has one. */
static void history_set_policy(struct arena *arena, struct doc *spec, struct str path, struct str text)
{
    struct str name, rest;
    while (str_cut(path, '.', &name, &rest)) {
        struct doc *next = doc_get_str(spec, name);
        if (next && next->kind != DOC_OBJECT)
            return;
        if (!next) {
            next = doc_new(arena, DOC_OBJECT);
            doc_set(arena, spec, name, next);
        }
        spec = next;
        path = rest;
    }
    if (!doc_get_str(spec, path))
        doc_set(arena, spec, path, history_policy_value(arena, text));
}

static void history_add_policy(struct sim_scenario *scenario, const struct history *history)
{
    struct arena *arena = &scenario->arena;
    struct doc *spec = scenario->spec ? doc_clone(arena, scenario->spec) : doc_new(arena, DOC_OBJECT);
    for (size_t i = 0; i < history->policy.len; i++)
        history_set_policy(arena, spec, history->policy.items[i].path, history->policy.items[i].value);
    scenario->spec = spec;
}

int sim_scenario_take_history(struct sim_scenario *scenario, const struct history *history, const char *file,
                              size_t *ret_left_out, struct error *error)
{
    int rc = history_add_machines(scenario, history, error);
    if (rc == 0)
        rc = history_add_models(scenario, error);
    if (rc < 0)
        return error ? error_wrap(error, "%s", file) : rc;
    if (!scenario->has_duration)
        scenario->duration_ns = history->end_us * NS_PER_US;
    if (scenario->duration_ns < NS_PER_SECOND)
        scenario->duration_ns = NS_PER_SECOND;
    history_add_outages(scenario, history);
    history_add_policy(scenario, history);
    return history_add_jobs(scenario, history, ret_left_out, error);
}
