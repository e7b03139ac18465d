/* papers_trace.c - jobs replayed in a real history of faults. */
#include <math.h>

#include "base/check.h"
#include "sim/figure/papers_private.h"
#include "sim/model/ettr_forms.h"

#define MINUTES_A_DAY 1440.0
#define DAY_S         86400.0

enum { SEEDS = 10 };
static const double INTERVAL = 60 / MINUTES_A_DAY, RESTART = 5 / MINUTES_A_DAY;

/* Returns the means over several seeds. */
static struct fault_replay replay_mean(const struct papers_input *input, uint32_t needed,
                                       double *ret_interruptions)
{
    struct fault_replay sum = {0};
    *ret_interruptions = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct fault_replay_terms terms = {.machines = input->trace_machines,
                                           .needed = needed,
                                           .interval_days = INTERVAL,
                                           .restart_days = RESTART,
                                           .seed = input->seed + seed};
        struct fault_replay one;
        fault_trace_replay(input->trace, &terms, &one);
        sum.ettr += one.ettr / SEEDS;
        sum.waiting += one.waiting / SEEDS;
        *ret_interruptions += one.interruptions / (double)SEEDS;
    }
    return sum;
}

static double quoted_ettr(uint32_t machines, uint32_t needed)
{
    if (machines != 400)
        return NAN;
    return needed == 320 ? .983 : needed == 360 ? .978 : needed == 376 ? .922 : needed == 392 ? .601 : NAN;
}

void paper_trace(const struct papers_input *input, struct figure *figure)
{
    uint32_t machines = input->trace_machines, step = machines >= 50 ? machines / 50 : 1;
    double days = input->trace->last_days - input->trace->first_days;
    struct fault_trace_facts facts;
    figure->title = "One job in a real history of faults, by the machines that it needs";
    figure->x_label = "machines that the job needs";
    figure->y_label = "share of time";
    figure->y_high = 1;
    figure_add_column(figure, "machines", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "ettr", FIGURE_LINE, 4);
    figure_add_column(figure, "waiting", FIGURE_LINE, 4);
    figure_add_column(figure, "formula", FIGURE_DASHED, 4);
    figure_add_column(figure, "interruptions", FIGURE_HIDDEN, 1);
    figure_add_column(figure, "quoted_ettr", FIGURE_QUOTED, 3);
    for (uint32_t needed = machines > 12 * step ? machines - 12 * step : 1; needed <= machines;
         needed += step) {
        double interruptions;
        struct fault_replay mean = replay_mean(input, needed, &interruptions);
        double running_s = (1 - mean.waiting) * days * DAY_S;
        struct ettr_terms terms = {.failures_per_s = interruptions / running_s,
                                   .interval_s = INTERVAL * DAY_S,
                                   .restart_s = RESTART * DAY_S};
        figure_add(figure, needed);
        figure_add(figure, mean.ettr);
        figure_add(figure, mean.waiting);
        figure_add(figure, interruptions > 0 ? (1 - mean.waiting) * ettr_exact(&terms) : NAN);
        figure_add(figure, interruptions);
        figure_add(figure, quoted_ettr(machines, needed));
    }
    fault_trace_facts(input->trace, machines, fmax(floor(input->trace->last_days), 1), &facts);
    figure_add_note(figure,
                    "%u faults on %u of %u machines; %.3f in 1,000 machine-days (%.3f to %.3f with 0.95), of "
                    "hardware %.3f.",
                    input->trace->count, input->trace->machines, machines, facts.rate, facts.rate_low,
                    facts.rate_high, facts.hardware_rate);
    figure_add_note(figure,
                    "Repairs: mean %.3f days, median %.3f, p90 %.1f, longest %.1f. Machines down: mean %.2f, "
                    "p95 %u, most %u.",
                    facts.repair_days, facts.repair_median_days, facts.repair_p90_days, facts.repair_max_days,
                    facts.down, facts.down_p95, facts.down_max);
    figure_add_note(figure,
                    "Checkpoints every hour, restarts of 5 minutes, %d seeds. The formula has the measured "
                    "rate of interruptions and the measured wait.",
                    SEEDS);
}
