/* mix.h - the sizes of a cluster's jobs, and the goodput that failures cost them.
 *
 * mix_rsc1 satisfies the shares that arXiv 2410.21680 prints of RSC-1's jobs (figure 6: more than 40 % on one
 * GPU, more than 90 % on at most 8 with less than 10 % of GPU time, less than 1 % on 4,096 with 12 % of it);
 * the single shares are a fit, since the figure prints none.
 *
 * The goodput loss of a failure is the work that is not kept: min(runtime, 30 min) on all GPUs of the job,
 * for hourly checkpoints (the paper's measure). First order means jobs that failed; second order means jobs
 * that were preempted when the failed one was requeued. Pure functions.
 */
#ifndef PHX_SIM_MODEL_MIX_H
#define PHX_SIM_MODEL_MIX_H

#include <stdint.h>

struct mix_size {
    uint32_t gpus;
    double jobs;     /* share of the jobs */
    double duration; /* mean duration, relative to that of large jobs */
};
enum { MIX_SIZES = 13 };
extern const struct mix_size mix_rsc1[MIX_SIZES];

struct mix_share {
    double jobs, gpu_time; /* shares of all jobs and of all GPU time */
    double first_order;    /* share of the first-order goodput loss, if jobs outlast 30 minutes */
};
/* Computes the share of each size. */
void mix_shares(const struct mix_size *sizes, uint32_t count, struct mix_share *ret_shares);

/* Returns the GPU-hours that one failed or preempted job loses. */
double goodput_loss_gpu_hours(double runtime_s, double gpus);

/* The cost of one failure. */
struct goodput_event {
    double runtime_s; /* of the failed or preempted job */
    uint32_t gpus;
    int second_order; /* preempted when a failed job was requeued */
};
struct goodput_loss {
    double first_gpu_hours, second_gpu_hours;
};
struct goodput_loss goodput_loss_sum(const struct goodput_event *events, uint32_t count);

#endif
