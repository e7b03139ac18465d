/* internal.h - what the files of this module share: hang.c (watching), collect.c (errands and their answers),
 * verdict.c (judging). Private. */
#ifndef PHX_CORE_HANG_INTERNAL_H
#define PHX_CORE_HANG_INTERNAL_H

#include "core/hang/hang.h"
#include "core/step.h"

struct hangs {
    VEC(struct hang_watch *) list; /* by jobset */
    struct heap due;
    VEC(obj_id) to_judge; /* JobSets whose collecting is over */
    size_t bytes;         /* of all records that are kept */
    struct arena order;   /* what the last order points into */
};

/* hang.c */
struct hang_watch *hang_of(const struct hangs *hangs, obj_id jobset);         /* NULL: none */
void hang_arm(struct hangs *hangs, struct hang_watch *watch, int64_t due_ns); /* INT64_MAX: not at all */
/* From now on it is watched again, as if something had been heard just now. */
void hang_go_on(struct step *step, struct hang_watch *watch, const struct jobset *jobset);

/* What its annotation says; 0: nothing, -1: "off". */
int64_t hang_own_limit(const struct jobset *jobset);

/* collect.c */
/* False: no task lives. */
bool collect_begin(struct step *step, struct hang_watch *watch, const struct jobset *jobset, bool asked);
/* Its errands are cancelled; the diagnosis stands as it is. */
void collect_end(struct step *step, struct hang_watch *watch);
/* The same, and what has come is judged before the step ends. */
void collect_close(struct step *step, struct hang_watch *watch);
void collect_drop(struct hangs *hangs, struct hang_watch *watch); /* the last diagnosis and its records */

#endif
