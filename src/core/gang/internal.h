/* internal.h - functions shared by the files of the gang room only. */
#ifndef PHX_CORE_GANG_INTERNAL_H
#define PHX_CORE_GANG_INTERNAL_H

#include "core/gang/gang.h"

/* form.c */
/* Takes the tasks after the first `count` out of a waiting gang: they are loose again. */
void gang_shrink(struct step *step, struct gang *gang, uint32_t count);

/* gates.c, bar.c */
void gang_say_gated(const struct gang *gang, struct buf *why); /* names them */
/* Says in Kubernetes' words why a gang is barred; false: it is not, or not any more. */
bool gang_say_barred(const struct job_store *store, struct gang *gang, struct buf *why);
void gangs_judge(struct job_store *store); /* all that wait, if a namespace has changed since */

/* why.c: whether a refused gang says at once why it waits. */
bool gang_may_say_why(const struct step *step, const struct gang *gang);
/* Takes `why` over, which is empty then, as the gang's present reason; false: the gang said so before. */
bool gang_set_why(struct step *step, struct gang *gang, struct buf *why);
/* The reason is looked at again when the window is over; gang_why_is_said: it was. */
void gang_say_why_later(struct step *step, struct gang *gang);
void gang_why_is_said(struct step *step, struct gang *gang);
/* The gang has left the queue. */
void gang_waits_no_more(struct step *step, struct gang *gang);

/* slice.c */
struct slice_place;
/* Called when its gang was just placed on `place`: the cross-connects are made. */
void slice_gang_placed(struct step *step, struct gang *gang, const struct slice_place *place);

/* preflight.c */
void preflight_begin(struct step *step, struct gang *gang); /* called when it was just placed */

/* config.c */
/* Whether a ConfigMap or Secret that the task needs is missing. */
bool task_config_waits(struct step *step, struct task *task);

/* usage.c */
void usage_running(struct step *step, struct gang *gang); /* every task of the gang runs */

#endif
