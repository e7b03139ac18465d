/* scenario_jobs.c - the JobSets of a scenario, as clients would write them. */
#include "sim/capacity/scenario.h"

#include <stdio.h>

#include "doc/json.h"

struct job_shape sim_scenario_shape(const struct sim_scenario *scenario, const struct listed_job *job)
{
    uint32_t per_machine = scenario->chips;
    if (job->known)
        return (struct job_shape){job->known->ranks, job->known->chips};
    return (struct job_shape){(job->chips + per_machine - 1) / per_machine,
                              job->chips < per_machine ? job->chips : per_machine};
}

/* Writes the scenario's annotations, or the recovery ladder of the job's history. */
static void jobset_put_annotations(const struct sim_scenario *scenario, const struct listed_job *job,
                                   struct buf *out)
{
    struct json_writer json = {.out = out};
    if (!job->known || !job->known->recovery.len) {
        buf_add_str(out, scenario->workload.annotations);
        return;
    }
    json_begin_object(&json);
    json_pair_str(&json, "phalanx.dev/recovery", job->known->recovery);
    json_end_object(&json);
}

static void jobset_put_queue(const struct sim_scenario *scenario, const struct listed_job *job,
                             struct buf *out)
{
    if (job->queue)
        buf_printf(out, ",\"labels\":{\"kueue.x-k8s.io/queue-name\":\"" STR_FORMAT "\"}",
                   STR_ARG(scenario->queues.items[job->queue - 1].name));
}

void sim_scenario_jobset(const struct sim_scenario *scenario, const struct listed_job *job, uint64_t number,
                         struct buf *out)
{
    struct job_shape shape = sim_scenario_shape(scenario, job);
    char name[32], class[80] = "";
    if (job->priority) {
        sim_scenario_class_name(job->priority, name);
        snprintf(class, sizeof class, "\"priorityClassName\":\"%s\",", name);
    }
    buf_printf(out,
               "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":"
               "\"j%llu\",\"annotations\":",
               (unsigned long long)number);
    jobset_put_annotations(scenario, job, out);
    jobset_put_queue(scenario, job, out);
    buf_printf(
        out,
        "},\"spec\":{\"ttlSecondsAfterFinished\":0,\"failurePolicy\":{\"maxRestarts\":1000000,\"rules\":[{"
        "\"name\":\"own\",\"action\":\"FailJobSet\",\"onJobFailureReasons\":[\"PodFailurePolicy\"]}]},"
        "\"replicatedJobs\":[{\"name\":\"w\",\"template\":{\"spec\":{\"parallelism\":%u,\"completions\":%u,"
        "\"backoffLimit\":0,\"podFailurePolicy\":{\"rules\":[{\"action\":\"FailJob\",\"onExitCodes\":{"
        "\"operator\":\"In\",\"values\":[1]}}]},\"template\":{\"spec\":{%s\"restartPolicy\":\"Never\","
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":" STR_FORMAT ","
        "\"resources\":{\"limits\":{\"nvidia.com/gpu\":%u}}}]}}}}}]}}",
        shape.ranks, shape.ranks, class, STR_ARG(scenario->workload.command), shape.chips);
}

bool sim_scenario_is_planned(const struct sim_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->failure_count; i++)
        if (!scenario->failures[i].planned || scenario->failures[i].kind == FAILURE_CORRUPTION)
            return false;
    return scenario->workload.jobs_per_day <= 0;
}
