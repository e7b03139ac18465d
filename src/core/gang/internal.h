/* internal.h - functions shared by the files of gang/ only. */
#ifndef PHX_CORE_GANG_INTERNAL_H
#define PHX_CORE_GANG_INTERNAL_H

#include "core/gang/gang.h"

/* form.c */
/* Takes the tasks after the first `count` out of a waiting gang; they have no gang then. */
void gang_shrink(struct step *step, struct gang *gang, uint32_t count);

/* gates.c, bar.c */
void gang_say_gated(const struct gang *gang, struct buf *why); /* appends the names of the gates */
/* Appends Kubernetes' text for why a gang is barred. Clears `barred` and returns false if it no longer is. */
bool gang_say_barred(const struct job_store *store, struct gang *gang, struct buf *why);
void gangs_judge(struct job_store *store); /* judges all waiting gangs, if a namespace has changed */

/* why.c */
/* Returns whether a refused gang may change its reason now (the limit in why.c). */
bool gang_may_say_why(const struct step *step, const struct gang *gang);
/* Moves the text of `why` to the gang's reason. Returns false if the reason is the same as before. */
bool gang_set_why(struct step *step, struct gang *gang, struct buf *why);
/* Start and stop the timer that works the reason out at the end of the window. */
void gang_say_why_later(struct step *step, struct gang *gang);
void gang_why_is_said(struct step *step, struct gang *gang);
/* Called when the gang has left the queue. */
void gang_waits_no_more(struct step *step, struct gang *gang);

/* slice.c */
struct slice_place;
/* Begins the slice of a gang that was just placed on `place`: orders its cross-connects. */
void slice_gang_placed(struct step *step, struct gang *gang, const struct slice_place *place);

/* preflight.c */
/* Begins the preflight of a gang that was just placed, unless preflight is off or all results are valid. */
void preflight_begin(struct step *step, struct gang *gang);

/* config.c */
/* Returns whether a ConfigMap, Secret or claim that the task needs is missing. If so, shows which one in the
 * statuses of the task's containers and adds the task to config_waiters. */
bool task_config_waits(struct step *step, struct task *task);

/* usage.c */
void usage_running(struct step *step, struct gang *gang); /* called when every task of the gang runs */

#endif
