#include "job/loop/interval.h"

#include <math.h>

#include "job/loop/ettr.h"

void interval_add(struct interval_window *window, double seconds)
{
    window->values[window->count++ % INTERVAL_SAMPLES] = seconds;
}

double interval_median(const struct interval_window *window)
{
    double sorted[INTERVAL_SAMPLES];
    unsigned count = window->count < INTERVAL_SAMPLES ? (unsigned)window->count : INTERVAL_SAMPLES;
    if (count == 0)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] > window->values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = window->values[i];
    }
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static double mean(const struct interval_window *window)
{
    unsigned count = window->count < INTERVAL_SAMPLES ? (unsigned)window->count : INTERVAL_SAMPLES;
    double sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += window->values[i];
    return count > 0 ? sum / count : 0;
}

double interval_cost(const struct interval_tier *tier)
{
    return interval_median(&tier->still) + fmax(mean(&tier->behind), 0);
}

static struct ettr_terms terms_of(const struct interval_measured *measured, double cost_s)
{
    return (struct ettr_terms){
        .failures_per_s = 1 / measured->mttf_s, .write_s = cost_s, .restart_s = measured->restart_s};
}

static double step_time(const struct interval_measured *measured)
{
    return fmax(interval_median(&measured->step), 1e-6);
}

uint64_t interval_steps(const struct interval_measured *measured, double cost_s)
{
    struct ettr_terms terms = terms_of(measured, cost_s);
    double best_s = fmin(ettr_best_interval(&terms), INTERVAL_MAX_S);
    double steps = floor(best_s / step_time(measured) + 0.5);
    return steps < 1 ? 1 : (uint64_t)steps;
}

double interval_ettr(const struct interval_measured *measured, double cost_s, uint64_t steps)
{
    struct ettr_terms terms = terms_of(measured, cost_s);
    terms.interval_s = (double)steps * step_time(measured);
    return ettr_exact(&terms);
}

/* Returns how many steps take about `seconds`. */
static uint64_t steps_in(const struct interval_measured *measured, double seconds)
{
    double steps = seconds / step_time(measured);
    return steps < 1 ? 1 : (uint64_t)steps;
}

struct interval_plan interval_decide(const struct interval_measured *measured, uint64_t step, bool holds,
                                     bool saves)
{
    struct interval_plan plan = {.next = step + 1};
    if (measured->step.count == 0)
        return plan;
    if ((holds && measured->hold.still.count == 0) || (saves && measured->save.still.count == 0)) {
        uint64_t soon = steps_in(measured, INTERVAL_FIRST_S);
        soon = soon < INTERVAL_FIRST_MAX ? soon : INTERVAL_FIRST_MAX;
        plan.hold_every = holds ? soon : 0;
        plan.save_every = !saves ? 0 : holds ? 2 * soon : soon;
        plan.next = step + (holds && saves ? 3 : 2) * soon;
        return plan;
    }
    plan.hold_every = holds ? interval_steps(measured, interval_cost(&measured->hold)) : 0;
    plan.save_every = saves ? interval_steps(measured, interval_cost(&measured->save)) : 0;
    if (holds && saves && plan.hold_every > plan.save_every) /* a hold older than the last save is useless */
        plan.hold_every = plan.save_every;
    bool few = (holds && measured->hold.still.count < INTERVAL_SAMPLES) ||
               (saves && measured->save.still.count < INTERVAL_SAMPLES);
    plan.next = step + steps_in(measured, few ? INTERVAL_SOON_S : INTERVAL_AGAIN_S);
    return plan;
}
