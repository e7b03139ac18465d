/* internal.h - what export and import share; private to this folder. See mindcluster.h. */
#ifndef PHX_HOST_MINDCLUSTER_INTERNAL_H
#define PHX_HOST_MINDCLUSTER_INTERNAL_H

#include "base/vec.h"
#include "host/mindcluster/mindcluster.h"

/* The names of a level on both sides. A larger index is worse. */
struct level_names {
    const char *ours, *chip, *node, *policy; /* "Separate", "SeparateNPU", "SeparateFault", "isolate" */
};
enum { LEVEL_NAMES = 9 };
extern const struct level_names level_names[LEVEL_NAMES];
int level_of(struct str ours);      /* returns the level's index; 0 for an unknown level */
int level_of_chip(struct str name); /* returns -1 for an unknown name */
int level_of_node(struct str name);
/* Returns the worst level that is exported as this policy and is not reached by escalation; -1: unknown. */
int level_of_policy(struct str name);

/* Converts one of our codes to MindCluster's: "public/220001001" and "ascend/81078603" lose their family;
 * others are unchanged. */
struct str code_out(struct arena *arena, struct str code);
/* Converts one of MindCluster's codes to ours: "ascend/..." unless it has a family. Empty: it cannot be a
 * code. */
struct str code_in(struct arena *arena, struct str code);
struct str code_family(struct str code);

struct str text_at(const struct doc *object, const char *first, const char *second); /* empty: absent */
/* Returns the JSON document in `key` of a ConfigMap's `data`, or NULL with an error that names data.KEY. */
const struct doc *data_inner(struct arena *arena, const struct doc *data, const char *key,
                             struct error *error);
/* Returns the text after `prefix` in the name of a ConfigMap; empty: the name has another prefix. */
struct str name_behind(const struct doc *map, const char *prefix);

/* --- rank.c: faults of ranks, and ranks of Pods --------------------------------------------------------- */

bool fault_is_open(const struct doc *fault);
int64_t fault_chip(const struct doc *fault); /* -1: of the machine */
int fault_level(const struct doc *fault);    /* its index in level_names */
/* Returns whether the fault affects the rank that has this chip of the fault's machine, at a level that
 * requires an action. */
bool fault_strikes(const struct doc *fault, int64_t chip);

/* Documents of a view; the caller frees the vector with vec_done(). */
typedef VEC(const struct doc *) fault_list;
typedef VEC(const struct doc *) pod_list;
void faults_of_machine(const struct mindcluster_view *view, struct str machine, fault_list *ret_list);
void pods_by_rank(const struct doc *pods, pod_list *ret_pods); /* those with a rank */
/* Returns how many MindCluster ranks a Pod has: one for each chip, or one if it has no chips. */
size_t ranks_of_pod(const struct doc *chips);

/* A rank of MindCluster; its number is its index in the list of all. */
struct seat {
    const struct doc *pod;
    struct str machine; /* empty: the Pod has no machine */
    int64_t chip;       /* -1: its Pod has none */
};
typedef VEC(struct seat) seat_list;
void seats_of(const struct mindcluster_view *view, seat_list *ret_seats);

#endif
