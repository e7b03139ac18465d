/* phalanx model mttf: computes how often jobs of each size fail, and the confidence in that. */
#include <math.h>
#include <stdio.h>

#include "cmd/model_asked.h"
#include "os/file.h"
#include "sim/model/job_log.h"
#include "sim/model/rate.h"

enum { LOG_BYTES_MAX = 1 << 30 };

/* A rate of failures of one machine, per 1,000 days. The bounds are NaN if the rate was given rather than
 * counted. */
struct known_rate {
    double rate, low, high;
};

static struct known_rate rate_of_count(uint64_t failures, double machine_days, double confidence)
{
    double low, high;
    mttf_bounds(failures, machine_days, confidence, &low, &high);
    return (struct known_rate){.rate = 1000 * (double)failures / machine_days,
                               .low = isfinite(high) ? 1000 / high : 0,
                               .high = 1000 / low};
}

static void answer_rate(struct model_answer *answer, const struct model_asked *asked,
                        const struct known_rate *rate)
{
    reply_number(answer, "rate", "failures of a machine in 1,000 days", rate->rate, 3);
    if (isnan(rate->high))
        return;
    reply_number(answer, "rateLow", "  at least", rate->low, 3);
    reply_number(answer, "rateHigh", "  at most", rate->high, 3);
    reply_number(answer, "confidence", "  confidence", asked->value[MODEL_CONFIDENCE], 3);
}

static double mttf_of(double machines, double rate)
{
    return rate > 0 ? 1 / ettr_failures_per_s(machines, rate) : INFINITY;
}

static void answer_size(struct model_answer *answer, const struct model_asked *asked,
                        const struct known_rate *rate, double machines)
{
    reply_cell(answer, machines * asked->value[MODEL_PER_MACHINE], 0);
    reply_cell(answer, machines, 0);
    reply_cell_span(answer, mttf_of(machines, rate->rate));
    if (isnan(rate->high))
        return;
    reply_cell_span(answer, mttf_of(machines, rate->high));
    reply_cell_span(answer, mttf_of(machines, rate->low));
}

static void answer_sizes(struct model_answer *answer, const struct model_asked *asked,
                         const struct known_rate *rate)
{
    static const struct model_column columns[] = {{"GPUS", "gpus"},
                                                  {"MACHINES", "machines"},
                                                  {"MTTF", "mttf"},
                                                  {"AT LEAST", "mttfLow"},
                                                  {"AT MOST", "mttfHigh"}};
    double machines = model_machines(asked);
    reply_gap(answer);
    reply_table(answer, "sizes", columns, isnan(rate->high) ? 3 : 5);
    if (machines > 0) {
        answer_size(answer, asked, rate, machines);
    } else {
        for (machines = 1; machines <= 16384; machines *= machines < 4096 ? 4 : 2)
            answer_size(answer, asked, rate, machines);
    }
    reply_table_end(answer);
}

/* --- counted from a log of jobs ------------------------------------------------------------------------- */

/* Reads one of the files; the message begins with its name. */
static int log_file_read(const char *path, struct arena *arena, struct str *ret_text)
{
    struct buf BUF_CLEANUP text = {0};
    struct error error = {0};
    if (os_file_read(path, LOG_BYTES_MAX, &text, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    *ret_text = arena_str(arena, buf_str(&text));
    return EXIT_OK;
}

static int jobs_read(const struct model_asked *asked, struct arena *arena, struct job_log *log)
{
    struct str text;
    struct error error = {0};
    if (log_file_read(asked->text[MODEL_JOBS], arena, &text) != EXIT_OK)
        return EXIT_FAILED;
    if (job_log_read_jobs(arena, text, log, &error) < 0) {
        say("%s:%s", asked->text[MODEL_JOBS], error.text);
        return EXIT_FAILED;
    }
    if (!asked->given[MODEL_CHECKS])
        return EXIT_OK;
    if (log_file_read(asked->text[MODEL_CHECKS], arena, &text) != EXIT_OK)
        return EXIT_FAILED;
    if (job_log_read_checks(arena, text, log, &error) < 0) {
        say("%s:%s", asked->text[MODEL_CHECKS], error.text);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

static void answer_classes(struct model_answer *answer, const struct model_asked *asked,
                           const struct rate_log *log, const struct rate_window *window)
{
    static const struct model_column columns[] = {
        {"MACHINES", "machinesFrom"}, {"TO", "machinesTo"}, {"JOBS", "jobs"},        {"FAILURES", "failures"},
        {"JOB TIME", "jobTime"},      {"MTTF", "mttf"},     {"AT LEAST", "mttfLow"}, {"AT MOST", "mttfHigh"}};
    struct rate_counts classes[RATE_CLASSES];
    rate_count_classes(log, window, classes);
    reply_text(answer, "\nBy size of jobs:");
    reply_table(answer, "classes", columns, 8);
    for (int i = 0; i < RATE_CLASSES; i++) {
        const struct rate_counts *counts = &classes[i];
        double failures = (double)(counts->node_fails + counts->attributed), low = NAN, high = NAN;
        if (counts->jobs == 0)
            continue;
        if (counts->job_s > 0)
            mttf_bounds((uint64_t)failures, counts->job_s, asked->value[MODEL_CONFIDENCE], &low, &high);
        reply_cell(answer, exp2(i), 0);
        reply_cell(answer, exp2(i + 1) - 1, 0);
        reply_cell(answer, (double)counts->jobs, 0);
        reply_cell(answer, failures, 0);
        reply_cell_span(answer, counts->job_s);
        reply_cell_span(answer, failures > 0 ? counts->job_s / failures : NAN);
        reply_cell_span(answer, low);
        reply_cell_span(answer, high);
    }
    reply_table_end(answer);
}

static int run_jobs(const struct model_asked *asked)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct model_answer answer;
    struct job_log read = {0};
    struct rate_window window = {.before_s = asked->value[MODEL_BEFORE],
                                 .after_s = asked->value[MODEL_AFTER],
                                 .machines_above = (uint32_t)asked->value[MODEL_ABOVE]};
    struct rate_counts counts;
    if (jobs_read(asked, &arena, &read) != EXIT_OK)
        return EXIT_FAILED;
    struct rate_log log = {read.jobs, read.job_count, read.checks, read.check_count};
    rate_count(&log, &window, &counts);
    reply_begin(&answer, asked->json);
    reply_number(&answer, "jobs", "jobs in the log", (double)read.job_count, 0);
    reply_number(&answer, "jobsCounted", "jobs that are large enough for the rate", (double)counts.jobs, 0);
    reply_number(&answer, "machineDays", "  their machine-days", counts.machine_s / 86400, 1);
    reply_number(&answer, "nodeFails", "  ended in NODE_FAIL", (double)counts.node_fails, 0);
    reply_number(&answer, "attributed", "  failed with a critical check", (double)counts.attributed, 0);
    reply_number(&answer, "unexplained", "  failed without one, not counted", (double)counts.unexplained, 0);
    if (counts.machine_s > 0) {
        struct known_rate rate = rate_of_count(counts.node_fails + counts.attributed,
                                               counts.machine_s / 86400, asked->value[MODEL_CONFIDENCE]);
        answer_rate(&answer, asked, &rate);
    } else {
        reply_text(&answer, "no job is large enough for a rate (--above)");
    }
    answer_classes(&answer, asked, &log, &window);
    return reply_end(&answer);
}

int model_run_mttf(struct model_asked *asked)
{
    struct model_answer answer;
    bool counted = asked->given[MODEL_FAILURES] || asked->given[MODEL_EXPOSURE];
    if (asked->given[MODEL_RATE] + counted + asked->given[MODEL_JOBS] != 1)
        return model_complain(asked, "expected one of --rate, --failures with --exposure, or --jobs");
    if (counted && !(asked->given[MODEL_FAILURES] && asked->given[MODEL_EXPOSURE]))
        return model_complain(asked, "--failures and --exposure go together");
    if (asked->given[MODEL_MACHINES] && asked->given[MODEL_GPUS])
        return model_complain(asked, "--machines and --gpus say the same; give one or the other");
    if (asked->given[MODEL_CHECKS] && !asked->given[MODEL_JOBS])
        return model_complain(asked, "--checks needs --jobs");
    if (asked->given[MODEL_JOBS])
        return run_jobs(asked);
    struct known_rate rate = {.rate = asked->value[MODEL_RATE], .low = NAN, .high = NAN};
    if (counted)
        rate = rate_of_count((uint64_t)asked->value[MODEL_FAILURES], asked->value[MODEL_EXPOSURE] / 86400,
                             asked->value[MODEL_CONFIDENCE]);
    reply_begin(&answer, asked->json);
    answer_rate(&answer, asked, &rate);
    answer_sizes(&answer, asked, &rate);
    return reply_end(&answer);
}
