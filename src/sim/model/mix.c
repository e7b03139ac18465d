/* mix.c - see mix.h. */
#include "sim/model/mix.h"

#include <math.h>

const struct mix_size mix_rsc1[MIX_SIZES] = {
    {1, .42, .4},    {2, .08, .4},    {4, .10, .4},     {8, .31, .4},   {16, .035, 1},
    {32, .02, 1},    {64, .013, 1},   {128, .009, 1},   {256, .006, 1}, {512, .0035, 1},
    {1024, .002, 1}, {2048, .001, 1}, {4096, .0004, 1},
};

void mix_shares(const struct mix_size *sizes, uint32_t count, struct mix_share *ret_shares)
{
    double jobs = 0, gpu_time = 0, lost = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct mix_size *size = &sizes[i];
        /* Failures are proportional to GPU time, and each costs half an hour of all GPUs. */
        double time = size->jobs * size->duration * size->gpus;
        ret_shares[i] =
            (struct mix_share){.jobs = size->jobs, .gpu_time = time, .first_order = time * size->gpus};
        jobs += size->jobs;
        gpu_time += time;
        lost += time * size->gpus;
    }
    for (uint32_t i = 0; i < count; i++) {
        ret_shares[i].jobs /= jobs;
        ret_shares[i].gpu_time /= gpu_time;
        ret_shares[i].first_order /= lost;
    }
}

double goodput_loss_gpu_hours(double runtime_s, double gpus)
{
    return fmin(runtime_s, 1800) * gpus / 3600;
}

struct goodput_loss goodput_loss_sum(const struct goodput_event *events, uint32_t count)
{
    struct goodput_loss loss = {0};
    for (uint32_t i = 0; i < count; i++) {
        double *sum = events[i].second_order ? &loss.second_gpu_hours : &loss.first_gpu_hours;
        *sum += goodput_loss_gpu_hours(events[i].runtime_s, events[i].gpus);
    }
    return loss;
}
