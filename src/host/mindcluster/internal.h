/* internal.h - words that both ways share. See mindcluster.h. */
#ifndef PHX_HOST_MINDCLUSTER_INTERNAL_H
#define PHX_HOST_MINDCLUSTER_INTERNAL_H

#include "host/mindcluster/mindcluster.h"

/* Larger is worse; the names on both sides. */
struct level_names {
    const char *ours, *chip, *node, *policy; /* "Separate", "SeparateNPU", "SeparateFault", "isolate" */
};
enum { LEVEL_NAMES = 9 };
extern const struct level_names level_names[LEVEL_NAMES];
int level_of(struct str ours);      /* its place; 0 for what is unknown */
int level_of_chip(struct str name); /* -1: unknown */
int level_of_node(struct str name);

/* Their form of one of our codes: "public/220001001" and "ascend/81078603" lose their family, others stay. */
struct str code_out(struct arena *arena, struct str code);
/* Ours of theirs; "ascend/..." unless it has a family. Empty: it cannot be one. */
struct str code_in(struct arena *arena, struct str code);
struct str code_family(struct str code);

#endif
