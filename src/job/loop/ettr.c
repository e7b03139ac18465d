/* See ettr.h. The search bisects a function that is known to be monotone, which is slow but always
 * converges. */
#include "job/loop/ettr.h"

#include <math.h>
#include <stdbool.h>

enum { HALVINGS = 200 }; /* enough for any pair of doubles */

double ettr_exact(const struct ettr_terms *terms)
{
    double rate = terms->failures_per_s;
    double segment = expm1(rate * (terms->interval_s + terms->write_s)) * exp(rate * terms->restart_s);
    return rate * terms->interval_s / ((1 + rate * terms->queue_s) * segment);
}

/* Returns true if a longer interval is better: the derivative of d / (e^(L (d + w)) - 1), whose sign is that
 * of 1 - e^-x - L d with x = L (d + w), is positive. */
static bool longer_is_better(const struct ettr_terms *terms, double interval_s)
{
    double rate = terms->failures_per_s;
    return -expm1(-rate * (interval_s + terms->write_s)) > rate * interval_s;
}

double ettr_best_interval(const struct ettr_terms *terms)
{
    double low = 0, high = 1 / terms->failures_per_s;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (longer_is_better(terms, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}
