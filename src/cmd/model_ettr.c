/* phalanx model ettr and interval, and phalanx ettr: computes the share of its time that a job trains. */
#include <math.h>
#include <stdio.h>

#include "cmd/model_asked.h"
#include "sim/model/rate.h"

double model_machines(const struct model_asked *asked)
{
    if (asked->given[MODEL_MACHINES])
        return asked->value[MODEL_MACHINES];
    return asked->given[MODEL_GPUS] ? asked->value[MODEL_GPUS] / asked->value[MODEL_PER_MACHINE] : 0;
}

int model_terms(const struct model_asked *asked, struct ettr_terms *ret_terms)
{
    const double *value = asked->value;
    bool size = asked->given[MODEL_MACHINES] || asked->given[MODEL_GPUS];
    bool mttf = asked->given[MODEL_JOB_MTTF];
    const char *sizes = asked->action == MODEL_SHORT ? "--machines" : "--machines or --gpus";
    char text[128];
    snprintf(text, sizeof text, "expected %s and --rate, or --mttf", sizes);
    if (asked->given[MODEL_MACHINES] && asked->given[MODEL_GPUS])
        return model_complain(asked, "--machines and --gpus say the same; give one or the other");
    if (!mttf && !(size && asked->given[MODEL_RATE]))
        return model_complain(asked, text);
    if (mttf && (size || asked->given[MODEL_RATE]))
        return model_complain(asked, asked->action == MODEL_SHORT
                                         ? "--mttf replaces --machines and --rate; give one or the other"
                                         : "--mttf replaces size and --rate; give one or the other");
    *ret_terms = (struct ettr_terms){
        .failures_per_s =
            mttf ? 1 / value[MODEL_JOB_MTTF] : ettr_failures_per_s(model_machines(asked), value[MODEL_RATE]),
        .write_s = value[MODEL_WRITE],
        .restart_s = value[MODEL_RESTART],
        .queue_s = value[MODEL_QUEUE],
        .interval_s = value[MODEL_EVERY],
    };
    double rate = ret_terms->failures_per_s;
    if (!(rate > 0 && isfinite(rate) && isfinite(1 / rate)))
        return model_complain(asked, "the job's failures are too rare, or too frequent, to be counted with");
    return EXIT_OK;
}

static void answer_job(struct model_answer *answer, const struct ettr_terms *terms)
{
    reply_span(answer, "mttf", "mean time to failure of the job", 1 / terms->failures_per_s);
}

/* --- phalanx ettr --------------------------------------------------------------------------------------- */

static void answer_bounds(struct model_answer *answer, const struct model_asked *asked)
{
    double low, high, exposure = asked->value[MODEL_EXPOSURE], failures = asked->value[MODEL_FAILURES];
    mttf_bounds((uint64_t)failures, exposure, asked->value[MODEL_CONFIDENCE], &low, &high);
    reply_span(answer, "mttf", "mean time to failure", failures > 0 ? exposure / failures : NAN);
    reply_span(answer, "mttfLow", "  at least", low);
    reply_span(answer, "mttfHigh", "  at most", high);
    reply_number(answer, "confidence", "  confidence", asked->value[MODEL_CONFIDENCE], 3);
    double days = exposure / 86400;
    reply_number(answer, "rate", "failures in 1,000 days", failures / days * 1000, 3);
    reply_number(answer, "rateLow", "  at least", isfinite(high) ? 86400000 / high : 0, 3);
    reply_number(answer, "rateHigh", "  at most", 86400000 / low, 3);
}

static void answer_best(struct model_answer *answer, const struct ettr_terms *terms)
{
    reply_span(answer, "bestInterval", "best interval between checkpoints", ettr_best_interval(terms));
    reply_span(answer, "youngInterval", "  by Young", ettr_young_interval(terms));
    reply_span(answer, "dalyInterval", "  by Daly", ettr_daly_interval(terms));
}

static void answer_short(struct model_answer *answer, const struct model_asked *asked,
                         struct ettr_terms terms)
{
    answer_job(answer, &terms);
    if (terms.write_s > 0) { /* with 0, checkpoints can be made all the time */
        answer_best(answer, &terms);
        if (terms.interval_s == 0)
            terms.interval_s = ettr_best_interval(&terms);
    }
    reply_span(answer, "interval", "interval", terms.interval_s);
    reply_number(answer, "ettr", "  ETTR", ettr_exact(&terms), 4);
    reply_number(answer, "ettrLinear", "  ETTR by the paper's linear formula", ettr_linear(&terms), 4);
    if (asked->given[MODEL_TARGET]) {
        double longest_s = ettr_interval_for(&terms, asked->value[MODEL_TARGET], false);
        reply_number(answer, "target", "wanted ETTR", asked->value[MODEL_TARGET], 4);
        if (longest_s > 0)
            reply_span(answer, "targetInterval", "  longest interval that reaches it", longest_s);
        else
            reply_text(answer, "  no interval reaches it");
    }
}

int model_run_short(struct model_asked *asked)
{
    struct model_answer answer;
    struct ettr_terms terms;
    bool bounds = asked->given[MODEL_FAILURES] || asked->given[MODEL_EXPOSURE];
    if (bounds && !(asked->given[MODEL_FAILURES] && asked->given[MODEL_EXPOSURE]))
        return model_complain(asked, "--failures and --exposure go together");
    if (!bounds && model_terms(asked, &terms) != EXIT_OK)
        return EXIT_USAGE;
    if (!bounds && terms.write_s == 0 && terms.interval_s == 0)
        return model_complain(asked, "checkpoints that cost nothing have no best interval: give --interval");
    reply_begin(&answer, asked->json);
    if (bounds)
        answer_bounds(&answer, asked);
    else
        answer_short(&answer, asked, terms);
    return reply_end(&answer);
}

/* --- phalanx model ettr --------------------------------------------------------------------------------- */

static void answer_form(struct model_answer *answer, const char *name, double ettr, const char *formula)
{
    reply_cell_text(answer, name);
    reply_cell(answer, ettr, 4);
    reply_cell_text(answer, formula);
}

static void answer_forms(struct model_answer *answer, const struct model_asked *asked,
                         const struct ettr_terms *terms)
{
    static const struct model_column columns[] = {{"FORM", "form"}, {"ETTR", "ettr"}, {"FORMULA", NULL}};
    double run_s = asked->value[MODEL_RUN];
    reply_table(answer, "forms", columns, 3);
    answer_form(answer, "exact", ettr_exact(terms), "L d / ((1 + L q) e^(L u) (e^(L (d + w)) - 1))");
    if (asked->given[MODEL_RUN])
        answer_form(answer, "exact run", ettr_exact_run(terms, run_s), "the same with the run's first start");
    answer_form(answer, "version 1", ettr_version_1(terms, INFINITY), "(1 - L (u + d/2)) / (1 + L q)");
    if (asked->given[MODEL_RUN])
        answer_form(answer, "version 1 run", ettr_version_1(terms, run_s),
                    "(1 - L (u + d/2)) / (1 + (u + q)/R + L q)");
    answer_form(answer, "version 2", ettr_version_2(terms), "(1 - L (u + d/2)) / (1 + w/d)");
    answer_form(answer, "linear", ettr_linear(terms), "(1 - L (u + d/2)) / ((1 + L q) (1 + w/d))");
    reply_table_end(answer);
}

static void answer_drawn(struct model_answer *answer, const struct model_asked *asked,
                         const struct ettr_terms *terms)
{
    struct ettr_drawn drawn =
        ettr_draw(terms, (uint32_t)asked->value[MODEL_TRIALS], (uint64_t)asked->value[MODEL_SEED]);
    reply_gap(answer);
    reply_number(answer, "drawnEttr", "ETTR of a life drawn by chance", drawn.ettr, 4);
    reply_number(answer, "drawnDeviation", "  standard error", drawn.deviation, 4);
}

/* Answers with the largest value that each term may have while the others are unchanged. */
static void answer_limits(struct model_answer *answer, const struct model_asked *asked,
                          const struct ettr_terms *terms)
{
    static const struct model_column columns[] = {{"TERM", "term"}, {"NOW", "now"}, {"LIMIT", "limit"}};
    static const char *const names[ETTR_UNKNOWNS] = {"mttf of the job at least", "write at most",
                                                     "restart at most", "queue at most"};
    const double now[ETTR_UNKNOWNS] = {1 / terms->failures_per_s, terms->write_s, terms->restart_s,
                                       terms->queue_s};
    double target = asked->value[MODEL_TARGET], longest_s = ettr_interval_for(terms, target, false);
    bool best = asked->value[MODEL_EVERY] == 0;
    reply_text(answer, "\nAn ETTR of %.4g takes one of these, the other terms kept%s:", target,
               best ? ", the interval the best one each time" : "");
    if (answer->json)
        reply_number(answer, "target", "", target, 4);
    reply_table(answer, "limits", columns, 3);
    reply_cell_text(answer, "interval at most");
    reply_cell_span(answer, terms->interval_s);
    reply_cell_span(answer, longest_s > 0 ? longest_s : NAN);
    for (int i = 0; i < ETTR_UNKNOWNS; i++) {
        double most = ettr_largest(terms, (enum ettr_unknown)i, target, best);
        bool rate = i == ETTR_OF_RATE;
        reply_cell_text(answer, names[i]);
        reply_cell_span(answer, now[i]);
        reply_cell_span(answer, most < 0 ? NAN : rate ? 1 / most : most);
    }
    reply_table_end(answer);
    double most = ettr_largest(terms, ETTR_OF_RATE, target, best), machines = model_machines(asked);
    if (machines > 0 && most > 0) {
        reply_number(answer, "rateMost", "failures of a machine in 1,000 days, at most",
                     asked->value[MODEL_RATE] * most / terms->failures_per_s, 3);
        reply_number(answer, "machinesMost", "machines at this rate, at most",
                     floor(machines * most / terms->failures_per_s + 1e-9), 0);
    }
}

int model_run_ettr(struct model_asked *asked)
{
    struct model_answer answer;
    struct ettr_terms terms;
    if (model_terms(asked, &terms) != EXIT_OK)
        return EXIT_USAGE;
    if (terms.write_s == 0 && terms.interval_s == 0)
        return model_complain(asked, "checkpoints that cost nothing have no best interval: give --interval");
    if (terms.interval_s == 0)
        terms.interval_s = ettr_best_interval(&terms);
    reply_begin(&answer, asked->json);
    answer_job(&answer, &terms);
    reply_span(&answer, "interval",
               asked->value[MODEL_EVERY] == 0 ? "interval between checkpoints (the best)"
                                              : "interval between checkpoints",
               terms.interval_s);
    reply_span(&answer, "write", "write", terms.write_s);
    reply_span(&answer, "restart", "restart", terms.restart_s);
    reply_span(&answer, "queue", "queue", terms.queue_s);
    reply_gap(&answer);
    answer_forms(&answer, asked, &terms);
    if (asked->given[MODEL_TRIALS])
        answer_drawn(&answer, asked, &terms);
    if (asked->given[MODEL_TARGET])
        answer_limits(&answer, asked, &terms);
    return reply_end(&answer);
}

/* --- phalanx model interval ----------------------------------------------------------------------------- */

static void answer_estimate(struct model_answer *answer, const struct ettr_terms *terms, const char *name,
                            double interval_s)
{
    struct ettr_terms tried = *terms;
    tried.interval_s = interval_s;
    reply_cell_text(answer, name);
    reply_cell_span(answer, interval_s);
    reply_cell(answer, ettr_exact(&tried), 4);
}

/* Answers with restarts of round times, up to the longest that reaches the target, and the longest interval
 * for each. */
static void answer_pairs(struct model_answer *answer, const struct ettr_terms *terms, double target)
{
    static const struct model_column columns[] = {
        {"RESTART", "restart"}, {"INTERVAL AT LEAST", "intervalLeast"}, {"AT MOST", "intervalMost"}};
    static const double round_s[] = {0, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200};
    double most_s = ettr_largest(terms, ETTR_OF_RESTART, target, true);
    double both_s = ettr_interval_for(terms, target, true);
    if (answer->json)
        reply_number(answer, "target", "", target, 4);
    if (most_s < 0) {
        reply_text(answer, "\nNo restart and no interval reach an ETTR of %.4g.", target);
        return;
    }
    reply_text(answer, "\nPairs of restart and interval that reach an ETTR of %.4g:", target);
    reply_table(answer, "pairs", columns, 3);
    for (size_t i = 0; i < sizeof round_s / sizeof *round_s && round_s[i] <= most_s; i++) {
        struct ettr_terms tried = *terms;
        tried.restart_s = round_s[i];
        double longest_s = ettr_interval_for(&tried, target, false);
        reply_cell_span(answer, round_s[i]);
        reply_cell_span(answer, ettr_least_interval_for(&tried, target));
        reply_cell_span(answer, longest_s > 0 ? longest_s : NAN);
    }
    reply_table_end(answer);
    reply_span(answer, "restartMost", "longest restart, at its best interval", most_s);
    reply_span(answer, "restartAndInterval", "restart and interval the same, at most",
               both_s > 0 ? both_s : NAN);
}

int model_run_interval(struct model_asked *asked)
{
    static const struct model_column columns[] = {{"BY", "by"}, {"INTERVAL", "interval"}, {"ETTR", "ettr"}};
    struct model_answer answer;
    struct ettr_terms terms;
    if (model_terms(asked, &terms) != EXIT_OK)
        return EXIT_USAGE;
    if (terms.write_s == 0 && !asked->given[MODEL_TARGET])
        return model_complain(asked, "checkpoints that cost nothing have no best interval: give --target");
    reply_begin(&answer, asked->json);
    answer_job(&answer, &terms);
    if (terms.write_s > 0) {
        reply_gap(&answer);
        reply_table(&answer, "best", columns, 3);
        answer_estimate(&answer, &terms, "exact", ettr_best_interval(&terms));
        answer_estimate(&answer, &terms, "Daly", ettr_daly_interval(&terms));
        answer_estimate(&answer, &terms, "Young", ettr_young_interval(&terms));
        reply_table_end(&answer);
    }
    if (asked->given[MODEL_TARGET])
        answer_pairs(&answer, &terms, asked->value[MODEL_TARGET]);
    return reply_end(&answer);
}
