/* interval.h - chooses the steps between checkpoints when the program sets none: the interval with the best
 * expected ETTR (job/loop/ettr.h) for the measured times. Pure: no clock, no context; not thread-safe.
 *
 * Each tier has its own interval: a hold in memory costs less than a save to storage. Each is computed for
 * all failures, because it is not known in advance which of them take a machine's memory with them. */
#ifndef PHX_JOB_LOOP_INTERVAL_H
#define PHX_JOB_LOOP_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#define INTERVAL_SAMPLES   8
#define INTERVAL_MAX_S     3600.0 /* the longest interval, unless a step takes longer */
#define INTERVAL_FIRST_S   10.0   /* the first checkpoints, which measure the cost, come after this time */
#define INTERVAL_FIRST_MAX 20     /* or after this many steps, whichever is sooner */
#define INTERVAL_AGAIN_S   60.0   /* time between two decisions */
#define INTERVAL_SOON_S    20.0   /* the same while there are few samples: the first holds allocate memory */
#define INTERVAL_RESTART_S 10.0   /* assumed until a restart was measured */
/* Default mean time between failures of one machine: 6.5 failures in 1,000 days (arXiv 2410.21680). */
#define INTERVAL_MACHINE_MTTF_S (86400.0 * 1000 / 6.5)

/* The last samples, seconds. */
struct interval_window {
    double values[INTERVAL_SAMPLES];
    uint64_t count; /* of all samples ever added */
};
void interval_add(struct interval_window *window, double seconds);
double interval_median(const struct interval_window *window); /* 0 without samples */

/* The costs of one tier for the program. */
struct interval_tier {
    struct interval_window still;  /* the time for which the program waits at a checkpoint */
    struct interval_window behind; /* how much longer steps take while the checkpoint is stored or sent */
};
/* Returns the median of `still` plus the mean of `behind` (a mean, since not every hold is sent to a peer).
 * Never negative. */
double interval_cost(const struct interval_tier *tier);

/* The measurements that rank 0 decides by. */
struct interval_measured {
    struct interval_window step;
    struct interval_tier hold, save;
    double mttf_s;    /* of the whole job; > 0 */
    double restart_s; /* from a loss to the next step; >= 0 */
};

/* The intervals that all ranks use from a step on. */
struct interval_plan {
    uint64_t hold_every, save_every; /* steps; 0: none */
    uint64_t next;                   /* the step after which rank 0 decides again */
};

/* Returns the best number of steps between checkpoints that cost `cost_s`: at least 1, at most
 * INTERVAL_MAX_S of them. */
uint64_t interval_steps(const struct interval_measured *measured, double cost_s);
/* Returns the expected ETTR with a checkpoint that costs `cost_s` every `steps` (> 0) steps. A step must have
 * been measured. */
double interval_ettr(const struct interval_measured *measured, double cost_s, uint64_t steps);
/* Decides after `step` steps. A tier that is not wanted gets no checkpoints, and neither tier does before a
 * step was measured. Until both costs are measured, a hold comes soon, a save as many steps later (each is
 * measured alone), and the next decision as many steps after that. Holds are never rarer than saves, even if
 * they seem to cost more: the first one may have been measured while the machine stood still. */
struct interval_plan interval_decide(const struct interval_measured *measured, uint64_t step, bool holds,
                                     bool saves);

#endif
