/* internal.h - shared by the files of this module: hang.c (watching), collect.c (errands and their
 * answers), verdict.c (judging). Private. */
#ifndef PHX_CORE_HANG_INTERNAL_H
#define PHX_CORE_HANG_INTERNAL_H

#include "core/hang/hang.h"
#include "core/step.h"

struct hangs {
    VEC(struct hang_watch *) list; /* by jobset */
    struct heap due;
    VEC(obj_id) to_judge; /* JobSets whose collection is complete */
    size_t bytes;         /* bytes of all kept records */
    struct arena order;   /* owns what the last order points into */
};

/* hang.c */
struct hang_watch *hang_of(const struct hangs *hangs, obj_id jobset);         /* NULL: none */
/* Sets the watch's timer to a stamp; INT64_MAX: never. */
void hang_arm(struct hangs *hangs, struct hang_watch *watch, int64_t due_ns);
/* Returns the watch to HANG_WATCHING, as if a sign of progress had just arrived. */
void hang_go_on(struct step *step, struct hang_watch *watch, const struct jobset *jobset);

/* Returns the JobSet's own limit, from its annotation; 0: none; -1: "off". */
int64_t hang_own_limit(const struct jobset *jobset);

/* collect.c */
/* Begins a diagnosis: drops the last one and sends an errand to each task that can answer. Returns false if
 * no task can. */
bool collect_begin(struct step *step, struct hang_watch *watch, const struct jobset *jobset, bool asked);
/* Cancels the errands of the collection and keeps the records as they are. */
void collect_end(struct step *step, struct hang_watch *watch);
/* Ends the collection; its records are judged before the step ends. */
void collect_close(struct step *step, struct hang_watch *watch);
/* Drops the last diagnosis and its records. */
void collect_drop(struct hangs *hangs, struct hang_watch *watch);

#endif
