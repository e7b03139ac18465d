/* rank.c - finds the machine and chip of faults and Pods of our API, and the Pod of each MindCluster rank. */
#include "host/mindcluster/internal.h"

#include "doc/json.h"

struct str text_at(const struct doc *object, const char *first, const char *second)
{
    return doc_str(doc_path(object, first, second, NULL), STR(""));
}

const struct doc *data_inner(struct arena *arena, const struct doc *data, const char *key,
                             struct error *error)
{
    struct doc *document;
    struct error why = {0};
    if (json_parse(arena, doc_str(doc_get(data, key), STR("")), &document, &why) == 0)
        return document;
    error_set(error, ERROR_INVALID, "data.%s: %s", key, why.text);
    return NULL;
}

struct str name_behind(const struct doc *map, const char *prefix)
{
    struct str name = text_at(map, "metadata", "name"), begin = str_from(prefix);
    return str_starts(name, begin) ? (struct str){name.data + begin.len, name.len - begin.len}
                                   : (struct str){0};
}

bool fault_is_open(const struct doc *fault)
{
    return str_is(text_at(fault, "status", "state"), "Open");
}

int64_t fault_chip(const struct doc *fault)
{
    return doc_int(doc_path(fault, "spec", "chip", NULL), -1);
}

int fault_level(const struct doc *fault)
{
    return level_of(text_at(fault, "status", "level"));
}

bool fault_strikes(const struct doc *fault, int64_t chip)
{
    int64_t at = fault_chip(fault);
    /* RestartRequest is the first level that requires an action. */
    return (at < 0 || at == chip) && fault_level(fault) >= 2;
}

void faults_of_machine(const struct mindcluster_view *view, struct str machine, fault_list *ret_list)
{
    for (size_t i = 0; i < doc_len(view->faults); i++) {
        const struct doc *fault = doc_at(view->faults, i);
        if (fault_is_open(fault) && str_equal(text_at(fault, "spec", "machine"), machine))
            vec_push(ret_list, fault);
    }
}

static int64_t pod_rank(const struct doc *pod)
{
    return doc_int(doc_path(pod, "status", "phalanx", "rank", NULL), -1);
}

void pods_by_rank(const struct doc *pods, pod_list *ret_pods)
{
    for (size_t i = 0; i < doc_len(pods); i++) {
        const struct doc *pod = doc_at(pods, i);
        int64_t rank = pod_rank(pod);
        if (rank < 0)
            continue;
        vec_push(ret_pods, pod);
        size_t at = ret_pods->len - 1;
        for (; at > 0 && pod_rank(ret_pods->items[at - 1]) > rank; at--)
            ret_pods->items[at] = ret_pods->items[at - 1];
        ret_pods->items[at] = pod;
    }
}

size_t ranks_of_pod(const struct doc *chips)
{
    return doc_len(chips) ? doc_len(chips) : 1; /* a Pod without chips is a rank too */
}

void seats_of(const struct mindcluster_view *view, seat_list *ret_seats)
{
    pod_list pods = {0};
    pods_by_rank(view->pods, &pods);
    for (size_t i = 0; i < pods.len; i++) {
        const struct doc *chips = doc_path(pods.items[i], "status", "phalanx", "chips", NULL);
        for (size_t k = 0; k < ranks_of_pod(chips); k++) {
            struct seat seat = {.pod = pods.items[i],
                                .machine = text_at(pods.items[i], "spec", "nodeName"),
                                .chip = doc_int(doc_at(chips, k), -1)};
            vec_push(ret_seats, seat);
        }
    }
    vec_done(&pods);
}
