/* auto.h - intervals of checkpoints that phx_run_steps chooses (PHX_AUTO). Every rank has one and gives it
 * the same steps; rank 0 measures and decides (interval.h), and tells the others through the key-value store
 * at steps that all of them know from the decision before. Used by the loop's thread alone. */
#ifndef PHX_JOB_LOOP_AUTO_H
#define PHX_JOB_LOOP_AUTO_H

#include "job/context.h"
#include "job/loop/interval.h"

struct job_auto {
    bool hold, save; /* are to be chosen */
    struct interval_measured measured;
    struct interval_plan plan;
    uint64_t held, saved; /* steps of the last ones; where the attempt began */
    uint64_t round;       /* decisions of this attempt */
    /* Figures of the plan, on rank 0: the cost of a checkpoint of the rarer tier, the interval, the expected
     * ETTR; 0: not known yet. */
    double write_s, interval_s, ettr;
    int64_t lost_ns; /* a restart is being measured since then; 0: none is */
    /* How much longer steps take while the newest checkpoint is being sent on; NULL: none is. */
    struct interval_window *behind;
    double behind_s, quiet_s; /* quiet_s: the time of a step without it */
};

/* Takes the loop's intervals and replaces them by the ones in force: PHX_AUTO becomes the number in the
 * environment, or 0 if the environment says none or the tier does not exist; otherwise this module chooses
 * the interval. */
struct job_auto job_auto_new(const struct job_settings *settings, uint64_t *hold_every, uint64_t *save_every);
/* The attempt begins after `step` steps; it is over. */
void job_auto_begin(struct job_auto *chosen, uint64_t step);
void job_auto_lost(struct job_auto *chosen);
/* Measured: one more step, or a checkpoint in storage or in memory alone. */
void job_auto_stepped(struct job_auto *chosen, phx_context *ctx, int64_t began_ns);
void job_auto_kept(struct job_auto *chosen, uint64_t step, bool hold, bool save, int64_t began_ns);
/* Called after `step` steps, before their checkpoint: adds the tiers in which one is due to *hold and *save.
 * When a new plan is due, rank 0 makes it and the other ranks wait for it. Returns 0 or a phx_code. */
int job_auto_due(struct job_auto *chosen, phx_context *ctx, uint64_t step, bool *hold, bool *save,
                 struct phx_error *error);
/* Returns the metrics that rank 0 sends with its steps: the program's `count` and, if there is room, the
 * chosen intervals. Returns how many. */
size_t job_auto_metrics(const struct job_auto *chosen, const struct phx_metric *given, size_t count,
                        struct phx_metric ret[PHX_METRICS_MAX]);

#endif
