/* papers.c - the list of figures, and the figures about failures: see papers.h. */
#include "sim/figure/papers.h"

#include <math.h>

#include "base/check.h"
#include "sim/figure/papers_private.h"
#include "sim/model/ettr_forms.h"
#include "sim/model/lemon_study.h"
#include "sim/model/mix.h"

#define MINUTE 60.0
#define HOUR   3600.0

enum { GPUS_PER_MACHINE = 8, ETTR_FAILURES = 200000 };
static const double RSC_1 = 6.5, RSC_2 = 2.34; /* failures of a machine in 1,000 days */

static double rate_of_gpus(double gpus, double rate)
{
    return ettr_failures_per_s(gpus / GPUS_PER_MACHINE, rate);
}

/* --- mttf ----------------------------------------------------------------------------------------------- */

static void build_mttf(const struct papers_input *input, struct figure *figure)
{
    static const struct {
        double gpus, measured, projected;
    } quoted[] = {
        {8, 47.7 * 24, NAN}, {1024, 7.9, NAN}, {4096, 10, NAN}, {16384, NAN, 1.8}, {131072, NAN, .23}};
    figure->title = "Mean time to failure of a job by its size";
    figure->x_label = "GPUs";
    figure->y_label = "hours";
    figure->x_log = figure->y_log = true;
    figure_add_column(figure, "gpus", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "rsc1_h", FIGURE_LINE, 3);
    figure_add_column(figure, "rsc2_h", FIGURE_LINE, 3);
    figure_add_column(figure, "quoted_measured_h", FIGURE_QUOTED, 1);
    figure_add_column(figure, "quoted_projected_h", FIGURE_QUOTED, 2);
    for (double gpus = 8; gpus <= 131072; gpus *= 2) {
        double measured = NAN, projected = NAN;
        for (size_t i = 0; i < sizeof quoted / sizeof *quoted; i++)
            if (quoted[i].gpus == gpus) {
                measured = quoted[i].measured;
                projected = quoted[i].projected;
            }
        figure_add(figure, gpus);
        figure_add(figure, 1 / rate_of_gpus(gpus, RSC_1) / HOUR);
        figure_add(figure, 1 / rate_of_gpus(gpus, RSC_2) / HOUR);
        figure_add(figure, measured);
        figure_add(figure, projected);
    }
    figure_add_note(figure, "Failures of a machine of 8 GPUs in 1,000 days: 6.5 on RSC-1, 2.34 on RSC-2.");
    figure_add_note(figure,
                    "The measured values are of RSC-1. Those of 8 and 1,024 GPUs do not follow from its "
                    "rate, which is of jobs on more than 128 GPUs.");
}

/* --- ettr ----------------------------------------------------------------------------------------------- */

struct ettr_case { /* times in minutes; interval 0: Young's */
    double gpus, rate, interval, write, restart, queue, quoted;
};
static const struct ettr_case ettr_cases[] = {
    {16000, 6.5, 60, 0, 5, 0, .7},  {16000, 6.5, 5, 0, 5, 0, .93},
    {8000, 6.5, 30, 0, 5, 1, .9},   {4096, 6.5, 60, 0, 5, 0, .9},
    {100000, 6.5, 7, 0, 7, 1, .5},  {100000, 2.34, 21, 0, 21, 1, .5},
    {100000, 2.34, 2, 0, 2, 1, .9}, {12000, 6.5, 0, 1 / 6.0, 5, 0, .9},
    {12000, 1, 0, 5, 5, 0, .9},     {16384, 3.79, 12.5, 1 / 6.0, 10, 0, .9},
};

static void build_ettr(const struct papers_input *input, struct figure *figure)
{
    figure->title = "ETTR by each formula, by chance, and as quoted";
    figure->x_label = "case, as numbered in the table";
    figure->y_label = "ETTR";
    figure->categories = true;
    figure->y_high = 1;
    figure_add_column(figure, "no", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "gpus", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "rate", FIGURE_HIDDEN, 2);
    figure_add_column(figure, "interval_m", FIGURE_HIDDEN, 2);
    figure_add_column(figure, "write_m", FIGURE_HIDDEN, 2);
    figure_add_column(figure, "restart_m", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "queue_m", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "linear", FIGURE_BARS, 4);
    figure_add_column(figure, "exact", FIGURE_BARS, 4);
    figure_add_column(figure, "drawn", FIGURE_POINTS, 4);
    figure_add_column(figure, "quoted", FIGURE_QUOTED, 2);
    for (size_t i = 0; i < sizeof ettr_cases / sizeof *ettr_cases; i++) {
        const struct ettr_case *row = &ettr_cases[i];
        struct ettr_terms terms = {.failures_per_s = rate_of_gpus(row->gpus, row->rate),
                                   .interval_s = row->interval * MINUTE,
                                   .write_s = row->write * MINUTE,
                                   .restart_s = row->restart * MINUTE,
                                   .queue_s = row->queue * MINUTE};
        if (row->interval == 0)
            terms.interval_s = ettr_young_interval(&terms);
        figure_add_word(figure, "%zu", i + 1);
        figure_add(figure, row->gpus);
        figure_add(figure, row->rate);
        figure_add(figure, terms.interval_s / MINUTE);
        figure_add(figure, row->write);
        figure_add(figure, row->restart);
        figure_add(figure, row->queue);
        figure_add(figure, ettr_linear(&terms));
        figure_add(figure, ettr_exact(&terms));
        figure_add(figure, ettr_draw(&terms, ETTR_FAILURES, input->seed + i).ettr);
        figure_add(figure, row->quoted);
    }
    figure_add_note(figure, "Each drawn value lives through %d failures.", ETTR_FAILURES);
}

/* --- contour -------------------------------------------------------------------------------------------- */

static void contour_row(struct figure *figure, double rate)
{
    struct ettr_terms terms = {.failures_per_s = rate_of_gpus(100000, rate), .queue_s = MINUTE};
    figure_add(figure, rate);
    for (int tenths = 5; tenths <= 9; tenths++) {
        double longest_s = ettr_interval_for(&terms, tenths / 10.0, true);
        figure_add(figure, longest_s > 0 ? longest_s / MINUTE : NAN);
    }
    figure_add(figure, rate == RSC_1 ? 7 : rate == RSC_2 ? 21 : NAN);
    figure_add(figure, rate == RSC_2 ? 2 : NAN);
}

static void build_contour(const struct papers_input *input, struct figure *figure)
{
    static const char *const names[] = {"ettr_0.5_m", "ettr_0.6_m", "ettr_0.7_m", "ettr_0.8_m", "ettr_0.9_m"};
    figure->title = "Checkpoint interval, which is also the restart, for an ETTR at 100,000 GPUs";
    figure->x_label = "failures of a machine in 1,000 days";
    figure->y_label = "minutes";
    figure->y_log = true;
    figure_add_column(figure, "rate", FIGURE_HIDDEN, 2);
    for (int i = 0; i < 5; i++)
        figure_add_column(figure, names[i], FIGURE_LINE, 2);
    figure_add_column(figure, "quoted_0.5_m", FIGURE_QUOTED, 0);
    figure_add_column(figure, "quoted_0.9_m", FIGURE_QUOTED, 0);
    for (int quarters = 2; quarters <= 40; quarters++) {
        contour_row(figure, quarters / 4.0);
        if (quarters == 9)
            contour_row(figure, RSC_2);
    }
    figure_add_note(figure,
                    "A job waits one minute in the queue after each failure; checkpoints do not stop it.");
    figure_add_note(figure,
                    "The longest interval that reaches the ETTR: 7.45, 21.8 and 2.8 minutes where 7, 21 and "
                    "2 are quoted.");
}

/* --- mix and loss --------------------------------------------------------------------------------------- */

static void build_mix(const struct papers_input *input, struct figure *figure)
{
    struct mix_share shares[MIX_SIZES];
    double small_jobs = 0, small_time = 0, large_time = 0;
    mix_shares(mix_rsc1, MIX_SIZES, shares);
    figure->title = "Jobs and GPU time by size, RSC-1";
    figure->x_label = "GPUs";
    figure->y_label = "% of all";
    figure->categories = true;
    figure_add_column(figure, "gpus", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "jobs_%", FIGURE_BARS, 2);
    figure_add_column(figure, "gpu_time_%", FIGURE_BARS, 2);
    figure_add_column(figure, "quoted_jobs_%", FIGURE_QUOTED, 0);
    figure_add_column(figure, "quoted_gpu_time_%", FIGURE_QUOTED, 0);
    for (int i = 0; i < MIX_SIZES; i++) {
        uint32_t gpus = mix_rsc1[i].gpus;
        figure_add_word(figure, "%u", gpus);
        figure_add(figure, 100 * shares[i].jobs);
        figure_add(figure, 100 * shares[i].gpu_time);
        figure_add(figure, gpus == 1 ? 40 : NAN);
        figure_add(figure, gpus == 4096 ? 12 : NAN);
        small_jobs += gpus <= 8 ? shares[i].jobs : 0;
        small_time += gpus <= 8 ? shares[i].gpu_time : 0;
        large_time += gpus >= 256 ? shares[i].gpu_time : 0;
    }
    figure_add_note(figure,
                    "On at most 8 GPUs: %.1f %% of jobs (quoted: more than 90 %%), %.1f %% of GPU time (less "
                    "than 10 %%).",
                    100 * small_jobs, 100 * small_time);
    figure_add_note(
        figure,
        "On 256 and more: %.1f %% of GPU time (quoted: 66 %%). On one GPU the paper has more than "
        "40 %% of jobs; on 4,096 less than 1 %%.",
        100 * large_time);
}

/* A requeue of a job of 1,024 GPUs preempted 15.7 jobs of about 13 GPUs (35 requeues, 548 preemptions). */
static const double PREEMPTED_GPUS = 548.0 / 35 * 13 / 1024;

static void build_loss(const struct papers_input *input, struct figure *figure)
{
    struct mix_share shares[MIX_SIZES];
    mix_shares(mix_rsc1, MIX_SIZES, shares);
    double all = 1 + PREEMPTED_GPUS;
    figure->title = "Expected loss of goodput by size of the job that fails";
    figure->x_label = "GPUs";
    figure->y_label = "% of the loss";
    figure->categories = true;
    figure_add_column(figure, "gpus", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "first_order_%", FIGURE_BARS, 2);
    figure_add_column(figure, "second_order_%", FIGURE_BARS, 2);
    figure_add_column(figure, "gpu_hours_a_failure", FIGURE_HIDDEN, 1);
    for (int i = 0; i < MIX_SIZES; i++) {
        figure_add_word(figure, "%u", mix_rsc1[i].gpus);
        figure_add(figure, 100 * shares[i].first_order / all);
        figure_add(figure, 100 * shares[i].first_order * PREEMPTED_GPUS / all);
        figure_add(figure, goodput_loss_gpu_hours(HOUR, mix_rsc1[i].gpus));
    }
    figure_add_note(figure,
                    "Second order: %.1f %% of the loss (quoted: 16 %%), if each failed job preempts as many "
                    "GPUs, by its own, as the paper's job of 1,024.",
                    100 * PREEMPTED_GPUS / all);
    figure_add_note(figure, "Most of the loss is that of 2,048 and 4,096 GPUs, as quoted of RSC-1.");
}

/* --- lemons --------------------------------------------------------------------------------------------- */

static void build_lemons(const struct papers_input *input, struct figure *figure)
{
    struct lemon_terms terms = LEMON_TERMS_DEFAULT;
    figure->title = "Lemons: what a rule finds, and what their removal is worth";
    figure->x_label = "failures within 28 days that make a machine a lemon";
    figure->y_label = "%";
    figure->categories = true;
    figure->y_high = 105;
    figure_add_column(figure, "failures", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "precision_%", FIGURE_LINE, 1);
    figure_add_column(figure, "recall_%", FIGURE_LINE, 1);
    figure_add_column(figure, "before_%", FIGURE_LINE, 2);
    figure_add_column(figure, "after_%", FIGURE_LINE, 2);
    figure_add_column(figure, "drawn_%", FIGURE_POINTS, 2);
    figure_add_column(figure, "quoted_before", FIGURE_QUOTED, 0);
    figure_add_column(figure, "quoted_after", FIGURE_QUOTED, 0);
    for (uint32_t threshold = 1; threshold <= 6; threshold++) {
        struct lemon_verdicts exact = lemon_study_exact(&terms, threshold),
                              drawn = lemon_study_draw(&terms, threshold, 60, 200, input->seed + threshold);
        figure_add_word(figure, "%u", threshold);
        figure_add(figure, 100 * exact.precision);
        figure_add(figure, 100 * exact.recall);
        figure_add(figure, 100 * exact.failed_before);
        figure_add(figure, 100 * exact.failed_after);
        figure_add(figure, 100 * drawn.failed_after);
        figure_add(figure, threshold == 2 ? 14 : NAN);
        figure_add(figure, threshold == 2 ? 4 : NAN);
    }
    figure_add_note(figure, "2,000 machines, 24 lemons; jobs of 64 machines (512 GPUs) for a day fail.");
}

/* --- list ----------------------------------------------------------------------------------------------- */

static const struct paper_figure papers[] = {
    {"mttf", "mean time to failure by size, RSC-1 and RSC-2, with projections", false, build_mttf},
    {"ettr", "ETTR by the exact and the linear formula, by chance, and as quoted", false, build_ettr},
    {"contour", "failure rate and checkpoint interval for an ETTR at 100,000 GPUs", false, build_contour},
    {"mix", "jobs and GPU time by size", false, build_mix},
    {"loss", "expected loss of goodput by size, first and second order", false, build_loss},
    {"lemons", "precision and recall of a rule for lemons, and jobs that fail without them", false,
     build_lemons},
    {"availability", "how often a slice finds its cubes, in switched and static pods", false,
     paper_availability},
    {"goodput", "share of a pod that works, by size of its slices", false, paper_goodput},
    {"switch", "throughput that is kept with one optical switch out", false, paper_switch},
    {"trace", "a job replayed in a year of faults of 400 servers", true, paper_trace},
};
enum { PAPERS = sizeof papers / sizeof *papers };

const struct paper_figure *papers_all(uint32_t *ret_count)
{
    *ret_count = PAPERS;
    return papers;
}

void papers_build(const struct paper_figure *paper, const struct papers_input *input,
                  struct figure *ret_figure)
{
    CHECK(!paper->needs_trace || input->trace);
    *ret_figure = (struct figure){.name = paper->name};
    paper->build(input, ret_figure);
}
