/* scenario_cluster.c - the document of the simulated cluster. */
#include "sim/capacity/scenario.h"

#include <stdio.h>

#include "doc/json.h"

/* The fields of `spec` that the scenario itself decides. */
static const char *const cluster_own[] = {"machineNames", "addresses", "pods", "machines"};

static bool cluster_is_own(struct str key)
{
    for (size_t i = 0; i < sizeof cluster_own / sizeof *cluster_own; i++)
        if (str_is(key, cluster_own[i]))
            return true;
    return false;
}

static void cluster_put_spares(const struct sim_scenario *scenario, uint32_t first, uint32_t count,
                               struct json_writer *json)
{
    char name[24];
    json_key(json, "spares");
    json_begin_array(json);
    for (uint32_t i = first; scenario->spares && i < first + count; i++) {
        snprintf(name, sizeof name, "m-%u", i + 1);
        if (scenario->spares[i])
            json_put_text(json, name);
    }
    json_end_array(json);
}

/* Writes the racks of a trace. */
static void cluster_put_traced_racks(const struct sim_scenario *scenario, struct json_writer *json)
{
    uint32_t first = 0;
    for (size_t i = 0; i < scenario->racks.len; i++) {
        const struct scenario_racks *racks = &scenario->racks.items[i];
        json_begin_object(json);
        json_pair_text(json, "namePattern", "rack-{rack}");
        json_pair_int(json, "count", racks->count);
        json_pair_int(json, "machines", racks->machines);
        json_pair_int(json, "chips", racks->chips);
        cluster_put_spares(scenario, first, racks->count * racks->machines, json);
        first += racks->count * racks->machines;
        json_end_object(json);
    }
}

static void cluster_put_racks(const struct sim_scenario *scenario, struct json_writer *json)
{
    uint32_t of_rack = scenario->machines_per_rack, rest = scenario->machines % of_rack;
    for (int part = 0; part < 2; part++) {
        uint32_t machines = part ? rest : of_rack, count = part ? 1 : scenario->machines / of_rack;
        if (machines == 0 || count == 0)
            continue;
        json_begin_object(json);
        json_pair_text(json, "namePattern", part ? "last-{rack}" : "rack-{rack}");
        json_pair_int(json, "count", count);
        json_pair_int(json, "machines", machines);
        json_pair_int(json, "chips", scenario->chips);
        if (scenario->spares_per_rack && !part)
            json_pair_int(json, "spares", scenario->spares_per_rack);
        json_end_object(json);
    }
}

static void cluster_put_hangs_off(struct json_writer *json)
{
    json_key(json, "hangs");
    json_begin_object(json);
    json_pair_bool(json, "enabled", false);
    json_end_object(json);
}

/* Writes settings without which a simulation would be slow or unrealistic. The simulated world itself decides
 * when a death is detected, so leases are as long as possible. A job's steps are reported only at
 * checkpoints, so hang detection must not act between two of them. */
static void cluster_put_settings(const struct doc *given, bool simulated, struct json_writer *json)
{
    json_key(json, "settings");
    json_begin_object(json);
    if (simulated) {
        json_pair_text(json, "lease", "1h");
        json_pair_text(json, "heartbeat", "30m");
    }
    json_pair_text(json, "chipResource", "nvidia.com/gpu");
    for (size_t i = 0; given && i < doc_len(given); i++) {
        const struct doc_member *member = &given->object.members[i];
        bool of_the_world =
            str_is(member->key, "lease") || str_is(member->key, "heartbeat") || str_is(member->key, "hangs");
        if (str_is(member->key, "chipResource") || (simulated && of_the_world))
            continue;
        json_key_str(json, member->key);
        json_put_doc(json, member->value);
    }
    if (simulated)
        cluster_put_hangs_off(json);
    json_end_object(json);
}

static void cluster_put_given(const struct doc *spec, struct json_writer *json)
{
    for (size_t i = 0; spec && i < doc_len(spec); i++) {
        const struct doc_member *member = &spec->object.members[i];
        if (cluster_is_own(member->key) || str_is(member->key, "settings"))
            continue;
        json_key_str(json, member->key);
        json_put_doc(json, member->value);
    }
    if (!doc_get(spec, "repair")) { /* every repair is a ticket: the scenario's repair time closes it */
        json_key(json, "repair");
        json_begin_object(json);
        json_key(json, "hooks");
        json_begin_array(json);
        json_end_array(json);
        json_end_object(json);
    }
}

void sim_scenario_cluster(const struct sim_scenario *scenario, bool simulated, struct buf *out)
{
    struct json_writer json = {.out = out};
    const struct doc *settings = doc_get(scenario->spec, "settings");
    json_begin_object(&json);
    json_pair_text(&json, "apiVersion", "phalanx.dev/v1");
    json_pair_text(&json, "kind", "Cluster");
    json_key(&json, "metadata");
    json_begin_object(&json);
    json_pair_text(&json, "name", simulated ? "simulated" : "played");
    json_end_object(&json);
    json_key(&json, "spec");
    json_begin_object(&json);
    cluster_put_settings(settings && settings->kind == DOC_OBJECT ? settings : NULL, simulated, &json);
    json_pair_text(&json, "machineNames", "m-{n}");
    json_pair_text(&json, "addresses", simulated ? "10.0.0.1" : "127.0.1.1");
    json_key(&json, "pods");
    json_begin_array(&json);
    json_begin_object(&json);
    json_key(&json, "racks");
    json_begin_array(&json);
    if (scenario->racks.len)
        cluster_put_traced_racks(scenario, &json);
    else
        cluster_put_racks(scenario, &json);
    json_end_array(&json);
    json_end_object(&json);
    json_end_array(&json);
    cluster_put_given(scenario->spec, &json);
    json_end_object(&json);
    json_end_object(&json);
}
