/* internal.h - words that both ways share. See mindcluster.h. */
#ifndef PHX_HOST_MINDCLUSTER_INTERNAL_H
#define PHX_HOST_MINDCLUSTER_INTERNAL_H

#include "base/vec.h"
#include "host/mindcluster/mindcluster.h"

/* Larger is worse; the names on both sides. */
struct level_names {
    const char *ours, *chip, *node, *policy; /* "Separate", "SeparateNPU", "SeparateFault", "isolate" */
};
enum { LEVEL_NAMES = 9 };
extern const struct level_names level_names[LEVEL_NAMES];
int level_of(struct str ours);      /* the level's index; 0 for an unknown level */
int level_of_chip(struct str name); /* -1: unknown */
int level_of_node(struct str name);
/* The worst level that goes out as this policy and is not by escalation; -1: unknown. */
int level_of_policy(struct str name);

/* Converts one of our codes to MindCluster's: "public/220001001" and "ascend/81078603" lose their family,
 * others stay. */
struct str code_out(struct arena *arena, struct str code);
/* Ours of theirs; "ascend/..." unless it has a family. Empty: it cannot be one. */
struct str code_in(struct arena *arena, struct str code);
struct str code_family(struct str code);

struct str text_at(const struct doc *object, const char *first, const char *second); /* empty: absent */
/* Returns the JSON document in `key` of a ConfigMap's `data`; NULL, with an error that names data.KEY: it is
 * none. */
const struct doc *data_inner(struct arena *arena, const struct doc *data, const char *key,
                             struct error *error);
/* Returns the text behind `prefix` in the name of a ConfigMap; empty: the name has another prefix. */
struct str name_behind(const struct doc *map, const char *prefix);

/* --- rank.c: faults of ranks, and ranks of Pods --------------------------------------------------------- */

bool fault_is_open(const struct doc *fault);
int64_t fault_chip(const struct doc *fault); /* -1: of the machine */
int fault_level(const struct doc *fault);    /* its place in level_names */
/* Does the fault affect the rank that has this chip of the fault's machine? */
bool fault_strikes(const struct doc *fault, int64_t chip);

/* Documents of a view; the vector is the caller's to give up. */
typedef VEC(const struct doc *) fault_list;
typedef VEC(const struct doc *) pod_list;
void faults_of_machine(const struct mindcluster_view *view, struct str machine, fault_list *ret_list);
void pods_by_rank(const struct doc *pods, pod_list *ret_pods); /* those with a rank */
/* Theirs are ranks of devices: one for each chip, one for a Pod without. */
size_t ranks_of_pod(const struct doc *chips);

/* A rank of MindCluster's, at its place in the list of all. */
struct seat {
    const struct doc *pod;
    struct str machine; /* empty: it runs nowhere */
    int64_t chip;       /* -1: its Pod has none */
};
typedef VEC(struct seat) seat_list;
void seats_of(const struct mindcluster_view *view, seat_list *ret_seats);

#endif
