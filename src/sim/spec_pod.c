/* spec_pod.c - random specs of pods: init containers and sidecars, probes, restarts in place, ConfigMaps and
 * Secrets that may not exist (yet). */
#include "sim/world.h"

#include "doc/json.h"
#include "base/units.h"

/* Writes a command for process.c: sim RUN_MS FAIL_PPM STEP_MS CHECKPOINT_EVERY. */
void spec_command(struct world *world, struct json_writer *json)
{
    bool joins = world_chance(world, world->swarm.rejoin_ppm ? 850000 : 500000);
    char text[32];
    json_key(json, "command");
    json_begin_array(json);
    json_put_text(json, "sim");
    snprintf(text, sizeof(text), "%lld",
             (long long)(world_draw(world, 50, world->swarm.run_max_ns / NS_PER_MS)));
    json_put_text(json, text);
    snprintf(text, sizeof(text), "%u", world_chance(world, 600000) ? world->swarm.task_fail_ppm : 0);
    json_put_text(json, text);
    snprintf(text, sizeof(text), "%lld", joins ? (long long)world_draw(world, 20, 400) : 0);
    json_put_text(json, text);
    snprintf(text, sizeof(text), "%lld",
             world->uneven ? (long long)world_draw(world, 0, 4) : (long long)world->checkpoint_every);
    json_put_text(json, text);
    json_end_array(json);
}

static void put_probe(struct world *world, struct json_writer *json, const char *name)
{
    json_key(json, name);
    json_begin_object(json);
    json_key(json, "exec");
    json_begin_object(json);
    json_key(json, "command");
    json_begin_array(json);
    json_put_text(json, "ok");
    json_end_array(json);
    json_end_object(json);
    json_pair_int(json, "periodSeconds", world_draw(world, 1, 3));
    json_pair_int(json, "initialDelaySeconds", world_draw(world, 0, 2));
    json_pair_int(json, "failureThreshold", world_draw(world, 1, 3));
    json_end_object(json);
}

static void put_hook(struct world *world, struct json_writer *json)
{
    json_key(json, "lifecycle");
    json_begin_object(json);
    json_key(json, world_chance(world, 500000) ? "preStop" : "postStart");
    json_begin_object(json);
    json_key(json, "exec");
    json_begin_object(json);
    json_key(json, "command");
    json_begin_array(json);
    json_put_text(json, "hook");
    json_end_array(json);
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
}

static void put_probes(struct world *world, struct json_writer *json)
{
    if (world_chance(world, 200000))
        put_probe(world, json, "startupProbe");
    if (world_chance(world, 400000))
        put_probe(world, json, "readinessProbe");
    if (world_chance(world, 300000))
        put_probe(world, json, "livenessProbe");
    if (world_chance(world, 200000))
        put_hook(world, json);
}

/* Writes environment variables that refer to objects of client_objects.c. */
static void put_env(struct world *world, struct json_writer *json)
{
    bool map = world_chance(world, 500000);
    json_key(json, "env");
    json_begin_array(json);
    json_begin_object(json);
    json_pair_text(json, "name", "FROM");
    json_key(json, "valueFrom");
    json_begin_object(json);
    json_key(json, map ? "configMapKeyRef" : "secretKeyRef");
    json_begin_object(json);
    json_pair_text(json, "name",
                   world_chance(world, 500000) ? (map ? "cm-0" : "secret-0") : (map ? "cm-1" : "secret-1"));
    json_pair_text(json, "key", "key");
    if (world_chance(world, 200000))
        json_pair_bool(json, "optional", true);
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
    json_end_array(json);
}

static void put_container(struct world *world, struct json_writer *json, const char *name, bool probes,
                          bool sidecar)
{
    json_begin_object(json);
    json_pair_text(json, "name", name);
    json_pair_text(json, "image", "sim");
    spec_command(world, json);
    if (sidecar)
        json_pair_text(json, "restartPolicy", "Always");
    if (probes)
        put_probes(world, json);
    json_end_object(json);
}

static void put_init(struct world *world, struct json_writer *json)
{
    int64_t count = world_draw(world, 1, 2);
    json_key(json, "initContainers");
    json_begin_array(json);
    for (int64_t i = 0; i < count; i++) {
        char name[32];
        bool sidecar = world_chance(world, 500000);
        snprintf(name, sizeof(name), "init-%lld", (long long)i);
        put_container(world, json, name, sidecar && world_chance(world, 500000), sidecar);
    }
    json_end_array(json);
}

static void put_main(struct world *world, struct json_writer *json, bool contained)
{
    json_begin_object(json);
    json_pair_text(json, "name", "main");
    json_pair_text(json, "image", "sim");
    spec_command(world, json);
    if (client_has(world, FEATURE_OBJECTS) && world_chance(world, 150000))
        put_env(world, json);
    if (contained && world_chance(world, 500000))
        put_probes(world, json);
    json_key(json, "resources");
    json_begin_object(json);
    json_key(json, "limits");
    json_begin_object(json);
    int64_t chips = world_draw(world, 0, world->swarm.chips);
    if (chips > 0)
        json_pair_int(json, "google.com/tpu", chips);
    if (world_chance(world, 100000))
        json_pair_text(json, "cpu", world_chance(world, 500000) ? "500m" : "20");
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
}

void spec_pod_spec(struct world *world, struct json_writer *json, bool restarts, bool always)
{
    static const char *const classes[] = {"high", "low", "pc-0", "pc-1"};
    static const char *const policies[] = {"Never", "OnFailure", "Always"};
    bool contained = client_has(world, FEATURE_CONTAINERS);
    json_key(json, "spec");
    json_begin_object(json);
    int64_t policy = contained && restarts ? world_draw(world, 0, always ? 2 : 1) : 0;
    json_pair_text(json, "restartPolicy", policies[policy]);
    json_pair_int(json, "terminationGracePeriodSeconds", world_draw(world, 0, 5));
    if (world_chance(world, 300000))
        json_pair_text(json, "priorityClassName",
                       classes[world_draw(world, 0, client_has(world, FEATURE_OBJECTS) ? 3 : 1)]);
    if (contained && world_chance(world, 400000))
        put_init(world, json);
    json_key(json, "containers");
    json_begin_array(json);
    put_main(world, json, contained);
    if (contained && world_chance(world, 200000))
        put_container(world, json, "second", world_chance(world, 500000), false);
    json_end_array(json);
    json_end_object(json);
}
