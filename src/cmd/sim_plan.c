/* sim_plan.c - writes the documents with which real machines can reproduce a scenario. */
#include <stdio.h>

#include "cmd/sim.h"
#include "doc/json.h"

static void plan_put_jobs(struct json_writer *json, const struct sim_scenario *scenario)
{
    json_key(json, "jobs");
    json_begin_array(json);
    for (size_t i = 0; i < scenario->jobs.len; i++) {
        const struct listed_job *job = &scenario->jobs.items[i];
        struct buf jobset BUF_CLEANUP = {0};
        sim_scenario_jobset(scenario, job, i, &jobset);
        json_begin_object(json);
        json_pair_float(json, "at", job->submit_s);
        json_pair_float(json, "runtime", job->runtime_s);
        json_pair_text(json, "end", job->fails ? "fails" : job->cancelled ? "cancelled" : "completes");
        json_key(json, "jobset");
        json_put_raw(json, buf_str(&jobset));
        json_end_object(json);
    }
    json_end_array(json);
}

static void plan_put_objects(struct json_writer *json, const struct sim_scenario *scenario)
{
    json_key(json, "objects");
    json_begin_array(json);
    for (size_t i = 0; i < sim_scenario_object_count(scenario); i++) {
        struct buf object BUF_CLEANUP = {0};
        enum sim_object kind;
        const char *at;
        sim_scenario_object(scenario, i, &object, &kind, &at);
        json_put_raw(json, buf_str(&object));
    }
    json_end_array(json);
}

static void plan_put_failures(struct json_writer *json, const struct sim_scenario *scenario)
{
    json_key(json, "failures");
    json_begin_array(json);
    for (size_t i = 0; i < scenario->planned.len; i++) {
        const struct planned_failure *planned = &scenario->planned.items[i];
        const struct failure_model *model = &scenario->failures[planned->model];
        char machine[24];
        snprintf(machine, sizeof machine, "m-%u", planned->machine + 1);
        json_begin_object(json);
        json_pair_float(json, "at", planned->at_s);
        json_pair_text(json, "name", model->name);
        json_pair_text(json, "kind", failure_kind_names[model->kind]);
        json_pair_text(json, "machine", machine);
        if (model->kind == FAILURE_FAULT || model->kind == FAILURE_FALSE)
            json_pair_text(json, "signal", planned->signal ? planned->signal : model->signal);
        json_pair_float(json, "detection", draw_mean(&model->detection));
        if (model->kind != FAILURE_PROCESS)
            json_pair_float(json, "repair",
                            planned->repair_s < 0 ? draw_mean(&model->repair) : planned->repair_s);
        json_end_object(json);
    }
    json_end_array(json);
}

void sim_plan_json(struct json_writer *json, const struct sim_scenario *scenario)
{
    struct buf cluster BUF_CLEANUP = {0};
    sim_scenario_cluster(scenario, false, &cluster);
    json_begin_object(json);
    json_pair_text(json, "name", scenario->name);
    json_pair_float(json, "duration", (double)scenario->duration_ns / 1e9);
    json_pair_bool(json, "rejoins", scenario->workload.rejoins);
    json_key(json, "cluster");
    json_put_raw(json, buf_str(&cluster));
    plan_put_objects(json, scenario);
    plan_put_jobs(json, scenario);
    plan_put_failures(json, scenario);
    json_end_object(json);
}
