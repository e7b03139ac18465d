/* ettr_forms.c - see ettr_forms.h. Searches bisect functions that are known to be monotone. */
#include "sim/model/ettr_forms.h"

#include <math.h>

#include "base/check.h"

enum { HALVINGS = 200 }; /* enough for any pair of doubles */

#define SECONDS_PER_DAY 86400.0

double ettr_failures_per_s(double machines, double per_1000_machine_days)
{
    return machines * per_1000_machine_days / 1000 / SECONDS_PER_DAY;
}

/* --- forms ---------------------------------------------------------------------------------------------- */

/* Returns 1 - L (u + d/2): the share that remains if each failure costs a restart and half an interval. */
static double kept_share(const struct ettr_terms *terms)
{
    return 1 - terms->failures_per_s * (terms->restart_s + terms->interval_s / 2);
}

double ettr_version_1(const struct ettr_terms *terms, double productive_s)
{
    double queued = terms->failures_per_s * terms->queue_s;
    return kept_share(terms) / (1 + (terms->restart_s + terms->queue_s) / productive_s + queued);
}

double ettr_version_2(const struct ettr_terms *terms)
{
    return kept_share(terms) / (1 + terms->write_s / terms->interval_s);
}

double ettr_linear(const struct ettr_terms *terms)
{
    double queued = terms->failures_per_s * terms->queue_s;
    return kept_share(terms) / ((1 + queued) * (1 + terms->write_s / terms->interval_s));
}

double ettr_exact_run(const struct ettr_terms *terms, double productive_s)
{
    double rate = terms->failures_per_s;
    double first_start_s = terms->queue_s + (1 / rate + terms->queue_s) * expm1(rate * terms->restart_s);
    return 1 / (first_start_s / productive_s + 1 / ettr_exact(terms));
}

static double exact_at_interval(const struct ettr_terms *terms, double interval_s, bool restart_too)
{
    struct ettr_terms tried = *terms;
    tried.interval_s = interval_s;
    if (restart_too)
        tried.restart_s = interval_s;
    return ettr_exact(&tried);
}

double ettr_at_best(const struct ettr_terms *terms)
{
    double best_s = ettr_best_interval(terms), rate = terms->failures_per_s;
    if (best_s > 0 && terms->write_s > 0)
        return exact_at_interval(terms, best_s, false);
    return exp(-rate * terms->restart_s) / (1 + rate * terms->queue_s);
}

double ettr_young_interval(const struct ettr_terms *terms)
{
    return sqrt(2 * terms->write_s / terms->failures_per_s);
}

double ettr_daly_interval(const struct ettr_terms *terms)
{
    double mttf_s = 1 / terms->failures_per_s, ratio = terms->write_s / (2 * mttf_s);
    if (ratio >= 1)
        return mttf_s;
    return sqrt(2 * terms->write_s * mttf_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - terms->write_s;
}

/* --- inverses ------------------------------------------------------------------------------------------- */

/* Returns the interval with the largest ETTR. A longer interval also makes a restart longer, so the best one
 * is shorter than usual. */
static double best_with_restart(const struct ettr_terms *terms)
{
    double low = 0, high = ettr_best_interval(terms);
    for (int i = 0; i < HALVINGS; i++) {
        double left = low + (high - low) / 3, right = high - (high - low) / 3;
        if (exact_at_interval(terms, left, true) < exact_at_interval(terms, right, true))
            low = left;
        else
            high = right;
    }
    return high;
}

double ettr_interval_for(const struct ettr_terms *terms, double target, bool restart_too)
{
    CHECK(target > 0 && target < 1);
    double low = restart_too ? best_with_restart(terms) : ettr_best_interval(terms);
    double high = 1000 / terms->failures_per_s; /* an interval with practically no progress */
    if (low <= 0 || terms->write_s == 0)
        low = high * 1e-18; /* writes cost nothing, so shorter is better, but 0 is not an interval */
    if (exact_at_interval(terms, low, restart_too) < target)
        return 0;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (exact_at_interval(terms, middle, restart_too) >= target)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double ettr_least_interval_for(const struct ettr_terms *terms, double target)
{
    double low = 0, high = ettr_best_interval(terms);
    if (terms->write_s == 0)
        return 0;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (middle > 0 && exact_at_interval(terms, middle, false) >= target)
            high = middle;
        else
            low = middle;
    }
    return high;
}

static double ettr_with_unknown(const struct ettr_terms *terms, enum ettr_unknown unknown, double value,
                                bool best_interval)
{
    struct ettr_terms tried = *terms;
    switch (unknown) {
    case ETTR_OF_RATE:
        tried.failures_per_s = value;
        break;
    case ETTR_OF_WRITE:
        tried.write_s = value;
        break;
    case ETTR_OF_RESTART:
        tried.restart_s = value;
        break;
    case ETTR_OF_QUEUE:
        tried.queue_s = value;
        break;
    case ETTR_UNKNOWNS:
        CHECK(false);
    }
    return best_interval ? ettr_at_best(&tried) : ettr_exact(&tried);
}

double ettr_largest(const struct ettr_terms *terms, enum ettr_unknown unknown, double target,
                    bool best_interval)
{
    CHECK(target > 0 && target < 1);
    /* A rate of 0 has no formula, so a very small rate replaces it. */
    double low = unknown == ETTR_OF_RATE ? terms->failures_per_s * 1e-12 : 0;
    double high = unknown == ETTR_OF_RATE ? terms->failures_per_s : 1 / terms->failures_per_s;
    if (!(ettr_with_unknown(terms, unknown, low, best_interval) >= target))
        return -1;
    while (ettr_with_unknown(terms, unknown, high, best_interval) >= target)
        high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (ettr_with_unknown(terms, unknown, middle, best_interval) >= target)
            low = middle;
        else
            high = middle;
    }
    return low;
}
