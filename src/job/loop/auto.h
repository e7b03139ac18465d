/* auto.h - chooses the checkpoint intervals of phx_run_steps (PHX_AUTO). Every rank has a struct job_auto and
 * passes it the same steps. Rank 0 measures and decides (interval.h). The other ranks read its decision from
 * the key-value store, at steps that all ranks know from the decision before. Only the loop's thread
 * calls. */
#ifndef PHX_JOB_LOOP_AUTO_H
#define PHX_JOB_LOOP_AUTO_H

#include "job/context.h"
#include "job/loop/interval.h"

struct job_auto {
    bool hold, save; /* the interval of this tier is chosen here */
    struct interval_measured measured;
    struct interval_plan plan;
    uint64_t held, saved; /* steps of the last hold and save; at first, the step at which the attempt began */
    uint64_t round;       /* number of decisions in this attempt */
    /* Figures of the plan, on rank 0: the cost of a checkpoint of the rarer tier, the interval, the expected
     * ETTR; 0: not known yet. */
    double write_s, interval_s, ettr;
    int64_t lost_ns; /* when the attempt was lost whose restart is being measured; 0: none */
    /* Samples of how much longer steps take while a checkpoint is sealed, stored or sent; NULL: none is. */
    struct interval_window *behind;
    double behind_s, quiet_s; /* the present sample, and the time of a step without it */
};

/* Takes the loop's intervals and replaces them by the ones in force: PHX_AUTO becomes the number in the
 * environment, or 0 if the environment sets none or the tier does not exist; otherwise this module chooses
 * the interval. */
struct job_auto job_auto_new(const struct job_settings *settings, uint64_t *hold_every, uint64_t *save_every);
/* Call job_auto_begin when an attempt begins after `step` steps, job_auto_lost when it has ended early. */
void job_auto_begin(struct job_auto *chosen, uint64_t step);
void job_auto_lost(struct job_auto *chosen);
/* Record a step, or a checkpoint in memory (hold) or storage (save), that began at began_ns and ends now. */
void job_auto_stepped(struct job_auto *chosen, phx_context *ctx, int64_t began_ns);
void job_auto_kept(struct job_auto *chosen, uint64_t step, bool hold, bool save, int64_t began_ns);
/* Called after `step` steps, before their checkpoint: adds the tiers in which one is due to *hold and *save.
 * When a new plan is due, rank 0 makes it and the other ranks wait for it. Returns 0 or a phx_code. */
int job_auto_due(struct job_auto *chosen, phx_context *ctx, uint64_t step, bool *hold, bool *save,
                 struct phx_error *error);
/* Fills in the metrics that rank 0 sends with its steps: the program's `count` and, if PHX_METRICS_MAX
 * allows, the figures of the plan. Returns their number. */
size_t job_auto_metrics(const struct job_auto *chosen, const struct phx_metric *given, size_t count,
                        struct phx_metric ret[PHX_METRICS_MAX]);

#endif
