/* lemon_study.h - lemon nodes among many machines: how many a rule finds, and what their removal is worth.
 *
 * Among `machines`, `lemons` make their jobs fail `lemon_rate` times a day, and the others `good_rate` times.
 * A rule calls every machine with at least `threshold` failures in `days` a lemon. Closed forms:
 *
 *   found by the rule   P[Poisson(rate days) >= threshold] of each kind
 *   a job fails         1 - e^(-n g t) (1 - f (1 - e^(-(l - g) t)))^n      n machines of a job, t its days,
 *                       f the share of lemons, g and l the two rates; machines drawn with replacement
 *
 * The Monte-Carlo draw picks machines without replacement and counts failures one by one. The default terms
 * are a fit: 4 % of jobs on 64 machines fail without lemons and 14 % with them (arXiv 2410.21680). Pure
 * functions.
 */
#ifndef PHX_SIM_MODEL_LEMON_STUDY_H
#define PHX_SIM_MODEL_LEMON_STUDY_H

#include <stdint.h>

struct lemon_terms {
    uint32_t machines, lemons;
    double good_rate, lemon_rate; /* failures a day */
    double days;                  /* length of the rule's window */
    uint32_t job_machines;        /* machines of each job */
    double job_days;
};
#define LEMON_TERMS_DEFAULT                                                                                  \
    {                                                                                                        \
        .machines = 2000, .lemons = 24, .good_rate = 6.4e-4, .lemon_rate = .155, .days = 28,                 \
        .job_machines = 64, .job_days = 1                                                                    \
    }

struct lemon_verdicts {
    double precision; /* share of lemons among the machines called so; 1 if none is */
    double recall;    /* share of the lemons that are called so */
    double false_positives;
    /* shares of jobs, before and after the machines called lemons are removed */
    double failed_before, failed_after;
};
/* Returns expected values. threshold > 0. Precision is the ratio of expected counts. */
struct lemon_verdicts lemon_study_exact(const struct lemon_terms *terms, uint32_t threshold);
/* Returns means over `trials` random clusters, each with `jobs` jobs before and after the removal. */
struct lemon_verdicts lemon_study_draw(const struct lemon_terms *terms, uint32_t threshold, uint32_t trials,
                                       uint32_t jobs, uint64_t seed);

#endif
