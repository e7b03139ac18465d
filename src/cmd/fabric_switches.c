#include "cmd/fabric_switches.h"

#include "cmd/client.h"
#include "cmd/cluster_file.h"

/* Returns the pod with this name, or the only one with managed switches; NULL after a message. */
static const struct pod *pod_in(const struct cluster *cluster, const char *file, const char *in)
{
    const struct pod *found = NULL;
    for (size_t i = 0; i < cluster->pod_count; i++) {
        const struct pod *pod = &cluster->pods[i];
        if (pod->first_switch == SWITCH_NONE || (in && !str_is(pod->name, in)))
            continue;
        if (found) {
            say("%s: several pods have switches: name one with --in", file);
            return NULL;
        }
        found = pod;
    }
    if (!found)
        say(in ? "%s: no pod %s with optical switches (spec.pods[].fabric)"
               : "%s: no pod with optical switches (spec.pods[].fabric)",
            file, in);
    return found;
}

/* Reads switches and number of cubes from a cluster file; either result may be NULL. */
static bool take_cluster(const char *file, const char *in, struct switches *switches, uint32_t *ret_cubes)
{
    struct cluster cluster;
    struct buf json BUF_CLEANUP = {0};
    if (!cluster_file_load(file, &cluster, &json))
        return false;
    const struct pod *pod = pod_in(&cluster, file, in);
    if (pod && ret_cubes)
        *ret_cubes = pod->cube_count;
    for (uint32_t i = 0; pod && switches && i < POD_SWITCHES; i++) {
        const struct optical_switch *at = &cluster.switches[pod->first_switch + i];
        switches->entry[at->number] = switch_entry_of(at->protocol, at->address, at->login);
        switches->listed++;
    }
    cluster_done(&cluster);
    return pod;
}

bool fabric_switches_pod(const char *file, const char *in, uint32_t *ret_cubes)
{
    return take_cluster(file, in, NULL, ret_cubes);
}

static bool take_list(const char *list, struct switches *switches)
{
    struct buf text BUF_CLEANUP = {0};
    struct error error = {0};
    if (!cluster_file_text(list, &text))
        return false;
    if (switches_parse(buf_str(&text), switches, &error) < 0) {
        say("%s:%s", list, error.text);
        return false;
    }
    return true;
}

bool fabric_switches_find(const char *list, const char *cluster, const char *in,
                          struct switches *ret_switches, uint32_t *ret_cubes)
{
    *ret_switches = (struct switches){0};
    return cluster ? take_cluster(cluster, in, ret_switches, ret_cubes) : take_list(list, ret_switches);
}
