/* spec_ladder.c - JobSets that can climb the whole ladder: one world of ranks that step together, use
 * libphalanx, run for long and may restart often. Everything else about them is random. */
#include "sim/world.h"

#include "doc/json.h"
#include "base/units.h"

static void put_annotations(struct world *world, struct json_writer *json)
{
    static const char *const rungs[] = {
        "retry,restart-process,replace-machine,shrink,dump,requeue",
        "replace-machine,shrink,dump",
        "dump,requeue",
        "dump",
        "shrink,dump",
        "shrink",
    };
    json_key(json, "annotations");
    json_begin_object(json);
    if (world_chance(world, 800000))
        json_pair_text(json, "phalanx.dev/recovery", rungs[world_draw(world, 0, 5)]);
    if (world_chance(world, 500000))
        json_pair_text(json, "phalanx.dev/recovery-limits",
                       world_chance(world, 500000) ? "restart-process=2s,replace-machine=1s"
                                                   : "replace-machine=500ms,dump=5s");
    if (world_chance(world, 900000))
        json_pair_text(json, "phalanx.dev/replica-size", "1");
    if (world_chance(world, world->swarm.spare_tasks_ppm))
        json_pair_text(json, "phalanx.dev/spares", "1");
    json_pair_text(json, "phalanx.dev/no-progress-attempts", "1000");
    json_end_object(json);
}

static void put_pod(struct world *world, struct json_writer *json)
{
    char run_ms[24], step_ms[24], every[24];
    snprintf(run_ms, sizeof(run_ms), "%lld",
             (long long)world_draw(world, 5000, world->swarm.run_max_ns / NS_PER_MS));
    snprintf(step_ms, sizeof(step_ms), "%lld", (long long)world_draw(world, 50, 400));
    snprintf(every, sizeof(every), "%lld", (long long)world_draw(world, 5, 50));
    json_key(json, "spec");
    json_begin_object(json);
    json_pair_text(json, "restartPolicy", "Never");
    json_pair_int(json, "terminationGracePeriodSeconds", world_draw(world, 0, 2));
    json_key(json, "containers");
    json_begin_array(json);
    json_begin_object(json);
    json_pair_text(json, "name", "main");
    json_pair_text(json, "image", "sim");
    json_key(json, "command");
    json_begin_array(json);
    json_put_text(json, "sim");
    json_put_text(json, run_ms);
    json_put_text(json, "0");
    json_put_text(json, step_ms);
    json_put_text(json, every);
    json_end_array(json);
    json_key(json, "resources");
    json_begin_object(json);
    json_key(json, "limits");
    json_begin_object(json);
    json_pair_int(json, "google.com/tpu", world_draw(world, 1, world->swarm.chips));
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
    json_end_array(json);
    json_end_object(json);
}

static void put_ranks(struct world *world, struct json_writer *json)
{
    int64_t ranks = world_draw(world, 2, world->swarm.machines > 4 ? 4 : world->swarm.machines);
    json_key(json, "replicatedJobs");
    json_begin_array(json);
    json_begin_object(json);
    json_pair_text(json, "name", "r0");
    json_pair_int(json, "replicas", 1);
    json_key(json, "template");
    json_begin_object(json);
    json_key(json, "spec");
    json_begin_object(json);
    json_pair_int(json, "parallelism", ranks);
    json_pair_int(json, "completions", ranks);
    json_pair_text(json, "completionMode", "Indexed");
    json_pair_int(json, "backoffLimit", 0);
    json_key(json, "template");
    json_begin_object(json);
    put_pod(world, json);
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
    json_end_array(json);
}

void spec_ladder(struct world *world, const char *ns, const char *name, struct buf *out)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "jobset.x-k8s.io/v1alpha2");
    json_pair_text(&json, "kind", "JobSet");
    json_key(&json, "metadata");
    json_begin_object(&json);
    json_pair_text(&json, "name", name);
    json_pair_text(&json, "namespace", ns);
    put_annotations(world, &json);
    json_end_object(&json);
    json_key(&json, "spec");
    json_begin_object(&json);
    json_key(&json, "failurePolicy");
    json_begin_object(&json);
    json_pair_int(&json, "maxRestarts", 1000);
    json_end_object(&json);
    put_ranks(world, &json);
    json_end_object(&json);
    json_end_object(&json);
}
