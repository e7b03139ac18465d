/* spec.c - random cluster files and JobSets: every feature that the core acts on, small numbers, short
 * times. */
#include "sim/world.h"

#include "doc/json.h"
#include "base/units.h"

void spec_cluster(struct world *world, struct buf *out)
{
    const struct swarm *swarm = &world->swarm;
    const char *preflight = world_chance(world, 700000)   ? "false"
                            : world_chance(world, 500000) ? "pairs"
                                                          : "true";
    buf_printf(out,
               "{\"apiVersion\":\"phalanx.dev/"
               "v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"torture\"},\"spec\":{"
               "\"settings\":{\"lease\":\"%lldms\",\"heartbeat\":\"%lldms\",\"backfillWindow\":\"%llds\","
               "\"paceWindow\":\"500ms\","
               "\"checkpointDir\":\"/checkpoints\",\"priorityClasses\":{\"high\":1000,\"low\":-1000},"
               "\"hangs\":{\"minimum\":\"1s\",\"firstStep\":\"3s\",\"checkpoint\":\"3s\",\"answer\":\"1s\"},"
               "\"lemons\":{\"remove\":%s,\"thresholds\":{\"outCount\":%u}}},"
               "\"queues\":{\"minimumRunTime\":\"%llds\",\"maximumLifetime\":\"%llds\","
               "\"waitForPodsReady\":{\"enable\":%s,\"timeout\":\"5s\",\"recoveryTimeout\":\"5s\","
               "\"blockAdmission\":%s,\"requeuingStrategy\":{\"backoffBaseSeconds\":1,"
               "\"backoffMaxSeconds\":8}},\"fairSharing\":{\"enable\":%s}},"
               "\"repair\":{\"hooks\":[{\"action\":\"reset-gpu\",\"timeout\":\"3s\",\"backoff\":\"1s\"},"
               "{\"action\":\"reboot\",\"timeout\":\"10s\",\"backoff\":\"1s\"},{\"action\":\"power-cycle\","
               "\"timeout\":\"10s\",\"backoff\":\"1s\",\"machine\":\"m-1\"}],\"absent\":\"5s\","
               "\"watch\":\"10s\",\"history\":20},"
               "\"qualification\":{\"preflight\":\"%s\",\"validFor\":\"20s\",\"timeout\":\"5s\","
               "\"pairTimeout\":\"2s\"},"
               "\"machineNames\":\"m-{n}\",\"addresses\":\"10.0.0.1\",\"pods\":[{",
               (long long)(swarm->lease_ns / NS_PER_MS), (long long)(swarm->heartbeat_ns / NS_PER_MS),
               (long long)(swarm->backfill_ns / NS_PER_SECOND), swarm->lemon_outs ? "true" : "false",
               swarm->lemon_outs, (long long)swarm->min_run_s, (long long)swarm->max_life_s,
               swarm->wait_ready ? "true" : "false", swarm->block_admission ? "true" : "false",
               swarm->fair ? "true" : "false", preflight);
    if (swarm->cubes)
        buf_printf(out, "\"cubes\":%u,\"fabric\":{\"switches\":\"10.9.0.1:5100\",\"timeout\":\"500ms\"}}]}}",
                   swarm->cubes);
    else
        buf_printf(out,
                   "\"racks\":[{\"count\":%u,\"namePattern\":\"rack-{rack}\",\"machines\":%u,\"chips\":%u,"
                   "\"spares\":%u}]}]}}",
                   swarm->racks, swarm->machines / swarm->racks, swarm->chips,
                   swarm->machines / swarm->racks > 1 ? swarm->spares : 0);
}

/* --- a Job's template ------------------------------------------------------------------------- */

static void put_topology(struct world *world, struct json_writer *json)
{
    static const char *const keys[] = {"phalanx.dev/rack", "phalanx.dev/pod", "kubernetes.io/hostname"};
    int64_t mode = world_draw(world, 0, 3);
    json_key(json, "metadata");
    json_begin_object(json);
    json_key(json, "annotations");
    json_begin_object(json);
    if (mode == 0)
        json_pair_text(json, "kueue.x-k8s.io/podset-required-topology", keys[world_draw(world, 0, 2)]);
    else if (mode == 1)
        json_pair_text(json, "kueue.x-k8s.io/podset-preferred-topology", keys[world_draw(world, 0, 2)]);
    else if (mode == 2)
        json_pair_text(json, "kueue.x-k8s.io/podset-unconstrained-topology", "true");
    if (mode == 3 || world_chance(world, 200000)) {
        json_pair_text(json, "kueue.x-k8s.io/podset-slice-required-topology", keys[world_draw(world, 0, 2)]);
        json_pair_text(json, "kueue.x-k8s.io/podset-slice-size", world_chance(world, 500000) ? "1" : "2");
    }
    json_end_object(json);
    json_end_object(json);
}

static void put_pod_failure_policy(struct world *world, struct json_writer *json)
{
    static const char *const actions[] = {"FailJob", "Ignore", "Count"};
    json_key(json, "podFailurePolicy");
    json_begin_object(json);
    json_key(json, "rules");
    json_begin_array(json);
    json_begin_object(json);
    json_pair_text(json, "action", actions[world_draw(world, 0, 2)]);
    if (world_chance(world, 500000)) {
        json_key(json, "onExitCodes");
        json_begin_object(json);
        json_pair_text(json, "operator", world_chance(world, 500000) ? "In" : "NotIn");
        json_key(json, "values");
        json_begin_array(json);
        json_put_int(json, 42);
        json_put_int(json, 137);
        json_end_array(json);
        json_end_object(json);
    } else {
        json_key(json, "onPodConditions");
        json_begin_array(json);
        json_begin_object(json);
        json_pair_text(json, "type", "DisruptionTarget");
        json_end_object(json);
        json_end_array(json);
    }
    json_end_object(json);
    json_end_array(json);
    json_end_object(json);
}

static void put_job_spec(struct world *world, struct json_writer *json, bool in_place)
{
    json_key(json, "spec");
    json_begin_object(json);
    int64_t parallelism = world_draw(world, 1, world_chance(world, 200000) ? world->swarm.machines : 3);
    json_pair_int(json, "parallelism", parallelism);
    if (in_place) {
        json_pair_int(json, "completions", parallelism);
        json_pair_text(json, "completionMode", "Indexed");
        json_pair_text(json, "podReplacementPolicy", "Failed");
    } else if (!world_chance(world, 100000)) {
        json_pair_int(json, "completions",
                      world_chance(world, 700000) ? parallelism : world_draw(world, 1, 5));
        json_pair_text(json, "completionMode", "Indexed");
        if (world_chance(world, 100000)) {
            json_pair_int(json, "backoffLimitPerIndex", world_draw(world, 0, 2));
            if (world_chance(world, 500000))
                json_pair_int(json, "maxFailedIndexes", world_draw(world, 0, 2));
        }
    }
    json_pair_int(json, "backoffLimit", in_place ? INT32_MAX : world_draw(world, 0, 3));
    if (world_chance(world, 150000))
        json_pair_int(json, "activeDeadlineSeconds", world_draw(world, 4, 30));
    bool policy = !in_place && world_chance(world, 150000);
    if (policy)
        put_pod_failure_policy(world, json);
    json_key(json, "template");
    json_begin_object(json);
    if (client_has(world, FEATURE_TOPOLOGY))
        put_topology(world, json);
    spec_pod_spec(world, json, !policy, false);
    json_end_object(json);
    json_end_object(json);
}

/* --- a JobSet --------------------------------------------------------------------------------- */

static void put_failure_policy(struct world *world, struct json_writer *json, int64_t rjobs, bool in_place)
{
    static const char *const actions[] = {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts",
                                          "RestartJob", "RestartJobAndIgnoreMaxRestarts"};
    static const char *const reasons[] = {"BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"};
    json_key(json, "failurePolicy");
    json_begin_object(json);
    json_pair_int(json, "maxRestarts", world_draw(world, 0, 8));
    if (in_place)
        json_pair_text(json, "restartStrategy", "InPlaceRestart");
    else if (world_chance(world, 300000))
        json_pair_text(json, "restartStrategy",
                       world_chance(world, 500000) ? "Recreate" : "BlockingRecreate");
    if (world_chance(world, 300000)) {
        json_key(json, "rules");
        json_begin_array(json);
        json_begin_object(json);
        json_pair_text(json, "name", "rule");
        json_pair_text(json, "action", actions[world_draw(world, 0, 4)]);
        if (world_chance(world, 500000)) {
            json_key(json, "onJobFailureReasons");
            json_begin_array(json);
            json_put_text(json, reasons[world_draw(world, 0, 2)]);
            json_end_array(json);
        }
        if (world_chance(world, 400000)) {
            char target[24];
            snprintf(target, sizeof(target), "r%lld", (long long)world_draw(world, 0, rjobs - 1));
            json_key(json, "targetReplicatedJobs");
            json_begin_array(json);
            json_put_text(json, target);
            json_end_array(json);
        }
        json_end_object(json);
        json_end_array(json);
    }
    json_end_object(json);
}

static void put_depends(struct world *world, struct json_writer *json, int64_t on)
{
    char name[24];
    snprintf(name, sizeof(name), "r%lld", (long long)on);
    json_key(json, "dependsOn");
    json_begin_array(json);
    json_begin_object(json);
    json_pair_text(json, "name", name);
    json_pair_text(json, "status", world_chance(world, 500000) ? "Ready" : "Complete");
    json_end_object(json);
    json_end_array(json);
}

static void put_scheduling(struct world *world, struct json_writer *json)
{
    json_key(json, "scheduling");
    json_begin_object(json);
    json_key(json, "schedulingPolicy");
    json_begin_object(json);
    bool basic = world_chance(world, 500000);
    json_key(json, basic ? "basic" : "gang");
    json_begin_object(json);
    if (!basic && world_chance(world, 700000))
        json_pair_int(json, "minCount", world_draw(world, 1, 3));
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
}

static void put_rjobs(struct world *world, struct json_writer *json, int64_t count, bool depends,
                      bool in_place)
{
    json_key(json, "replicatedJobs");
    json_begin_array(json);
    for (int64_t i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof(name), "r%lld", (long long)i);
        json_begin_object(json);
        json_pair_text(json, "name", name);
        json_pair_int(json, "replicas", world_draw(world, 1, 2));
        if (depends && i > 0 && world_chance(world, 700000))
            put_depends(world, json, world_draw(world, 0, i - 1));
        json_key(json, "template");
        json_begin_object(json);
        put_job_spec(world, json, in_place);
        json_end_object(json);
        json_end_object(json);
    }
    json_end_array(json);
}

void spec_jobset(struct world *world, const char *ns, const char *name, struct buf *out, bool *ret_may_vanish)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "jobset.x-k8s.io/v1alpha2");
    json_pair_text(&json, "kind", "JobSet");
    bool owned = spec_metadata(world, &json, ns, name, OBJECT_JOBSET);
    json_key(&json, "spec");
    json_begin_object(&json);
    int64_t rjobs = world_draw(world, 1, 3);
    world->checkpoint_every = (uint32_t)world_draw(world, 0, 4);
    world->uneven = world_chance(world, 200000); /* its jobs save other steps */
    bool in_order = world_chance(world, 200000), depends = !in_order && world_chance(world, 250000);
    bool in_place = world_chance(world, 150000);
    if (world_chance(world, 150000))
        json_pair_bool(&json, "suspend", true);
    bool ttl = world_chance(world, 150000);
    *ret_may_vanish = ttl || owned;
    if (ttl)
        json_pair_int(&json, "ttlSecondsAfterFinished", world_draw(world, 0, 10));
    if (in_place || world_chance(world, 800000))
        put_failure_policy(world, &json, rjobs, in_place);
    if (world_chance(world, 150000)) {
        json_key(&json, "successPolicy");
        json_begin_object(&json);
        json_pair_text(&json, "operator", "Any");
        json_end_object(&json);
    }
    if (in_order) {
        json_key(&json, "startupPolicy");
        json_begin_object(&json);
        json_pair_text(&json, "startupPolicyOrder", "InOrder");
        json_end_object(&json);
    }
    if (client_has(world, FEATURE_TOPOLOGY) && world_chance(world, 500000))
        put_scheduling(world, &json);
    put_rjobs(world, &json, rjobs, depends, in_place);
    json_end_object(&json);
    json_end_object(&json);
}

/* --- Jobs and Pods of their own --------------------------------------------------------------- */

void spec_job(struct world *world, const char *ns, const char *name, struct buf *out)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "batch/v1");
    json_pair_text(&json, "kind", "Job");
    spec_metadata(world, &json, ns, name, OBJECT_JOB);
    world->checkpoint_every = (uint32_t)world_draw(world, 0, 4);
    world->uneven = false;
    put_job_spec(world, &json, false);
    json_end_object(&json);
}

void spec_pod(struct world *world, const char *ns, const char *name, struct buf *out)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "v1");
    json_pair_text(&json, "kind", "Pod");
    spec_metadata(world, &json, ns, name, OBJECT_POD);
    world->checkpoint_every = (uint32_t)world_draw(world, 0, 4);
    world->uneven = false;
    spec_pod_spec(world, &json, true, true);
    json_end_object(&json);
}
